/*
 * What the programs share: PROGRAM RANK OWN_ID PEER_ID. Each of the two has a segment of its own
 * node, 4 for rank 0 and 8 for rank 1, and maps the other one's.
 */

#ifndef PAIR_H
#define PAIR_H

#include <sisci_api.h>
#include <stdint.h>

#include "../../../compat_check.h"

#define WAIT (PATIENCE * 1000)
#define SIZE 65536

static sci_error_t error;
static int rank;
static unsigned int own_id, peer_id, peer_node;
static sci_desc_t sd;
static sci_local_segment_t own;
static sci_remote_segment_t far;
static sci_map_t own_map, far_map;
static volatile unsigned char *here, *there;
static sci_sequence_t sequence;

/* The call, whose last argument is `&error`, has succeeded. */
#define OK(call)                                                                                                       \
    do {                                                                                                               \
        call;                                                                                                          \
        if (error != SCI_ERR_OK)                                                                                       \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, SCIGetErrorString(error));                              \
        CHECK(error == SCI_ERR_OK);                                                                                    \
    } while (0)

#define FAILS(call, code)                                                                                              \
    do {                                                                                                               \
        call;                                                                                                          \
        CHECK_CODE((int)error, (int)(code));                                                                           \
    } while (0)

/* Waits until all stores have arrived. A peer that does not run for a while is asked again. */
static inline void confirm(void) {
    time_t begun = time(NULL);
    sci_sequence_status_t status;

    while ((status = SCICheckSequence(sequence, SCI_NO_FLAGS, &error)) == SCI_SEQ_RETRIABLE)
        CHECK(time(NULL) - begun < PATIENCE);
    CHECK(status == SCI_SEQ_OK);
}

/* Maps a segment and begins a sequence. Over a network that reads, and the owner may be slow. */
static inline volatile void *map_remote(sci_remote_segment_t segment, sci_map_t *map, unsigned int flags) {
    time_t begun = time(NULL);
    volatile void *address;

    do {
        address = SCIMapRemoteSegment(segment, map, 0, SIZE, NULL, flags, &error);
        CHECK(time(NULL) - begun < PATIENCE);
    } while (error == SCI_ERR_TIMEOUT);
    OK((void)0);
    OK(SCICreateMapSequence(*map, &sequence, SCI_NO_FLAGS, &error));
    CHECK(SCIStartSequence(sequence, SCI_NO_FLAGS, &error) == SCI_SEQ_OK);
    return address;
}

static inline void begin(int argc, char **argv) {
    time_t begun = time(NULL);

    CHECK(argc == 4);
    rank = atoi(argv[1]);
    own_id = (unsigned int)atoi(argv[2]);
    peer_id = (unsigned int)atoi(argv[3]);
    peer_node = rank == 0 ? 8 : 4;
    OK(SCIInitialize(SCI_NO_FLAGS, &error));
    OK(SCIOpen(&sd, SCI_NO_FLAGS, &error));
    OK(SCICreateSegment(sd, &own, own_id, SIZE, SCI_NO_CALLBACK, NULL, SCI_NO_FLAGS, &error));
    OK(SCIPrepareSegment(own, 0, SCI_NO_FLAGS, &error));
    OK(here = SCIMapLocalSegment(own, &own_map, 0, SIZE, NULL, SCI_NO_FLAGS, &error));
    OK(SCISetSegmentAvailable(own, 0, SCI_NO_FLAGS, &error));
    do {
        SCIConnectSegment(sd, &far, peer_node, peer_id, 0, SCI_NO_CALLBACK, NULL, WAIT, SCI_NO_FLAGS, &error);
        CHECK(time(NULL) - begun < PATIENCE);
    } while (error == SCI_ERR_NO_SUCH_SEGMENT);
    OK((void)0);
    CHECK(SCIGetRemoteSegmentSize(far) == SIZE);
    there = map_remote(far, &far_map, SCI_NO_FLAGS);
}

/* Waits until the other side has stored a value in this side's last byte but `at`. */
static inline void until(unsigned int at, unsigned char value) {
    time_t begun = time(NULL);
    unsigned int looks = 0;

    while (here[SIZE - 1 - at] != value)
        if (++looks % 4096 == 0) {
            struct timespec pause = {0, 1000};

            nanosleep(&pause, NULL);
            CHECK(time(NULL) - begun < PATIENCE);
        }
}

/* Both have come here before either ends. */
static inline void finish_together(const char *said) {
    sci_segment_cb_reason_t reason;

    there[SIZE - 3] = 99;
    until(2, 99);
    confirm();
    /*
     * Of a connection by the directory of a device its owner is not told, so it would not wait
     * for the confirmation of the other side. A store there needs none: it has arrived.
     */
    if (getenv("BY_DIRECTORY") != NULL) {
        there[SIZE - 4] = 98;
        until(3, 98);
    }
    OK(SCIRemoveSequence(sequence, SCI_NO_FLAGS, &error));
    OK(SCIUnmapSegment(far_map, SCI_NO_FLAGS, &error));
    OK(SCIDisconnectSegment(far, SCI_NO_FLAGS, &error));
    OK(SCIUnmapSegment(own_map, SCI_NO_FLAGS, &error));
    if (getenv("BY_DIRECTORY") == NULL) {
        do
            OK(reason = SCIWaitForLocalSegmentEvent(own, NULL, NULL, WAIT, SCI_NO_FLAGS, &error));
        while (reason == SCI_CB_CONNECT);
        CHECK(reason == SCI_CB_DISCONNECT || reason == SCI_CB_LOST);
    }
    OK(SCISetSegmentUnavailable(own, 0, SCI_NO_FLAGS, &error));
    OK(SCIRemoveSegment(own, SCI_NO_FLAGS, &error));
    OK(SCIClose(sd, SCI_NO_FLAGS, &error));
    SCITerminate();
    puts(said);
}

#endif /* PAIR_H */
