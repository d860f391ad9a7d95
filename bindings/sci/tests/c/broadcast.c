/*
 * Broadcast: rank 0 produces, ranks 1 to 3 consume: PROGRAM RANK COUNT GROUP. Each has a segment of
 * the group. One store of the producer reaches them all; they answer by segments of their own.
 */

#include "pair.h"

#define ITEMS 200
#define SLOTS 16

static sci_remote_segment_t all;
static sci_map_t all_map;
static volatile unsigned int *there_all;
static unsigned int count;

/* A segment of the group, mapped. */
static volatile unsigned int *join(unsigned int group) {
    volatile unsigned int *mine;

    OK(SCIInitialize(SCI_NO_FLAGS, &error));
    OK(SCIOpen(&sd, SCI_NO_FLAGS, &error));
    OK(SCICreateSegment(sd, &own, group, SIZE, SCI_NO_CALLBACK, NULL, SCI_FLAG_BROADCAST, &error));
    OK(SCIPrepareSegment(own, 0, SCI_FLAG_BROADCAST, &error));
    OK(mine = SCIMapLocalSegment(own, &own_map, 0, SIZE, NULL, SCI_NO_FLAGS, &error));
    OK(SCISetSegmentAvailable(own, 0, SCI_NO_FLAGS, &error));
    OK(SCIConnectSegment(sd, &all, DIS_BROADCAST_NODEID_GROUP_ALL, group, 0, SCI_NO_CALLBACK, NULL, WAIT,
                         SCI_FLAG_BROADCAST, &error));
    CHECK(SCIGetRemoteSegmentSize(all) == SIZE);
    there_all = map_remote(all, &all_map, SCI_FLAG_BROADCAST);
    return mine;
}

/* Waits until a word of the own segment has at least a value. */
static void until_word(volatile unsigned int *mine, unsigned int at, unsigned int value) {
    time_t begun = time(NULL);
    struct timespec pause = {0, 1000};

    while (mine[at] < value) {
        nanosleep(&pause, NULL);
        CHECK(time(NULL) - begun < PATIENCE);
    }
}

/* Words: 0 what was produced, 16 + rank what each has consumed, 32 + rank how often it has said
 * that it is there, from 64 on the slots. */
static void produce(volatile unsigned int *mine) {
    unsigned int item, from;

    /* All have joined. */
    for (from = 1; from < count; from++)
        until_word(mine, 32 + from, 1);
    for (item = 1; item <= ITEMS; item++) {
        for (from = 1; item > SLOTS && from < count; from++)
            until_word(mine, 16 + from, item - SLOTS);
        there_all[64 + item % SLOTS] = item * 7;
        SCIStoreBarrier(sequence, SCI_NO_FLAGS);
        there_all[0] = item;
        SCIFlush(sequence, SCI_NO_FLAGS);
    }
    confirm();
    for (from = 1; from < count; from++)
        until_word(mine, 16 + from, ITEMS);
}

static void consume(volatile unsigned int *mine) {
    time_t begun = time(NULL);
    struct timespec pause = {0, 1000000};
    unsigned int item;

    /* Who joins later hears nothing of what was stored before, and an equal value is not sent
     * again: another one is stored until the producer is heard. */
    while (mine[0] < 1) {
        there_all[32 + rank]++;
        SCIFlush(sequence, SCI_NO_FLAGS);
        nanosleep(&pause, NULL);
        CHECK(time(NULL) - begun < PATIENCE);
    }
    for (item = 1; item <= ITEMS; item++) {
        until_word(mine, 0, item);
        CHECK(mine[64 + item % SLOTS] == item * 7);
        there_all[16 + rank] = item;
        SCIFlush(sequence, SCI_NO_FLAGS);
    }
    confirm();
}

int main(int argc, char **argv) {
    volatile unsigned int *mine;

    CHECK(argc == 4);
    rank = atoi(argv[1]);
    count = (unsigned int)atoi(argv[2]);
    mine = join((unsigned int)atoi(argv[3]));
    if (rank == 0)
        produce(mine);
    else
        consume(mine);
    OK(SCIRemoveSequence(sequence, SCI_NO_FLAGS, &error));
    OK(SCIUnmapSegment(all_map, SCI_NO_FLAGS, &error));
    OK(SCIDisconnectSegment(all, SCI_NO_FLAGS, &error));
    OK(SCIUnmapSegment(own_map, SCI_NO_FLAGS, &error));
    OK(SCISetSegmentUnavailable(own, 0, SCI_NO_FLAGS, &error));
    OK(SCIRemoveSegment(own, SCI_NO_FLAGS, &error));
    OK(SCIClose(sd, SCI_NO_FLAGS, &error));
    SCITerminate();
    puts("to all of them");
    return 0;
}
