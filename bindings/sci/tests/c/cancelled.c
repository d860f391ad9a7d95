/*
 * Threads that store, and are cancelled meanwhile: they end, their handlers may call, and nobody
 * waits for a lock that they held. PROGRAM RANK ID ID.
 */

#include <pthread.h>
#include <unistd.h>

#include "pair.h"

#define ROUNDS 200

static sci_map_t map;
static sci_sequence_t order;

static void clean_up(void *arg) {
    sci_error_t code;

    (void)arg;
    SCIRemoveSequence(order, SCI_NO_FLAGS, &code);
    CHECK(code == SCI_ERR_OK);
    SCIUnmapSegment(map, SCI_NO_FLAGS, &code);
    CHECK(code == SCI_ERR_OK);
}

static void *store(void *arg) {
    volatile unsigned int *words = arg;
    unsigned int kind = words[0], count = 0;
    sci_error_t code;

    pthread_cleanup_push(clean_up, NULL);
    pthread_setcanceltype(kind % 2 ? PTHREAD_CANCEL_ASYNCHRONOUS : PTHREAD_CANCEL_DEFERRED, NULL);
    for (;;) {
        words[1] = ++count;
        SCIFlush(order, SCI_NO_FLAGS);
        if (kind % 4 < 2)
            SCICheckSequence(order, SCI_NO_FLAGS, &code);
        else
            SCIGetRemoteSegmentSize(far);
        if (kind % 2 == 0)
            pthread_testcancel();
    }
    pthread_cleanup_pop(0);
    return NULL;
}

int main(int argc, char **argv) {
    unsigned int id, round;
    volatile unsigned int *words;
    pthread_t thread;
    void *ended;

    CHECK(argc == 4);
    id = (unsigned int)atoi(argv[2]);
    OK(SCIInitialize(SCI_NO_FLAGS, &error));
    OK(SCIOpen(&sd, SCI_NO_FLAGS, &error));
    OK(SCICreateSegment(sd, &own, id, SIZE, NULL, NULL, SCI_NO_FLAGS, &error));
    OK(SCIPrepareSegment(own, 0, SCI_NO_FLAGS, &error));
    OK(SCISetSegmentAvailable(own, 0, SCI_NO_FLAGS, &error));
    OK(SCIConnectSegment(sd, &far, 4, id, 0, NULL, NULL, WAIT, SCI_NO_FLAGS, &error));
    for (round = 0; round < ROUNDS; round++) {
        OK(words = SCIMapRemoteSegment(far, &map, 0, SIZE, NULL, SCI_NO_FLAGS, &error));
        OK(SCICreateMapSequence(map, &order, SCI_NO_FLAGS, &error));
        words[0] = round;
        words[1] = 0;
        CHECK(pthread_create(&thread, NULL, store, (void *)(uintptr_t)words) == 0);
        while (words[1] < 10 + round)
            ;
        CHECK(pthread_cancel(thread) == 0);
        CHECK(pthread_join(thread, &ended) == 0 && ended == PTHREAD_CANCELED);
    }
    OK(SCIDisconnectSegment(far, SCI_NO_FLAGS, &error));
    OK(SCIRemoveSegment(own, SCI_NO_FLAGS, &error));
    OK(SCIClose(sd, SCI_NO_FLAGS, &error));
    SCITerminate();
    puts("cancelled");
    return 0;
}
