/*
 * A forked child uses the library as its parent did before: each has handles of its own, and those
 * of the parent name nothing in the child. PROGRAM RANK ID ID.
 */

#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

static sci_sequence_t order;
static sci_map_t map;

/* A sequence over a segment of this process. */
static void open_sequence(unsigned int number) {
    volatile unsigned int *words;
    unsigned int node;

    OK(SCIInitialize(SCI_NO_FLAGS, &error));
    OK(SCIOpen(&sd, SCI_NO_FLAGS, &error));
    OK(SCIGetLocalNodeId(0, &node, SCI_NO_FLAGS, &error));
    OK(SCICreateSegment(sd, &own, number, SIZE, NULL, NULL, SCI_NO_FLAGS, &error));
    OK(SCIPrepareSegment(own, 0, SCI_NO_FLAGS, &error));
    OK(SCISetSegmentAvailable(own, 0, SCI_NO_FLAGS, &error));
    OK(SCIConnectSegment(sd, &far, node, number, 0, NULL, NULL, WAIT, SCI_NO_FLAGS, &error));
    OK(words = SCIMapRemoteSegment(far, &map, 0, SIZE, NULL, SCI_NO_FLAGS, &error));
    OK(SCICreateMapSequence(map, &order, SCI_NO_FLAGS, &error));
    CHECK(SCIStartSequence(order, SCI_NO_FLAGS, &error) == SCI_SEQ_OK && error == SCI_ERR_OK);
    words[0] = 5;
    CHECK(SCICheckSequence(order, SCI_NO_FLAGS, &error) == SCI_SEQ_OK && error == SCI_ERR_OK);
}

static void close_sequence(void) {
    OK(SCIRemoveSequence(order, SCI_NO_FLAGS, &error));
    OK(SCIUnmapSegment(map, SCI_NO_FLAGS, &error));
    OK(SCIDisconnectSegment(far, SCI_NO_FLAGS, &error));
    OK(SCIRemoveSegment(own, SCI_NO_FLAGS, &error));
    OK(SCIClose(sd, SCI_NO_FLAGS, &error));
    SCITerminate();
}

/* In a child, what the parent did; before that a look at the parent's sequence. */
static void in_a_child(unsigned int number) {
    sci_sequence_t of_parent = order;
    pid_t child = fork();
    int status;

    CHECK(child >= 0);
    if (child == 0) {
        open_sequence(number);
        CHECK(of_parent != order);
        SCIStartSequence(of_parent, SCI_NO_FLAGS, &error);
        CHECK(error == SCI_ERR_ILLEGAL_PARAMETER);
        close_sequence();
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
}

static unsigned int id;

static void fork_often(void) {
    unsigned int round;

    for (round = 0; round < 10; round++) {
        open_sequence(id);
        in_a_child(id + 1);
        close_sequence();
        in_a_child(id + 1);
    }
}

int main(int argc, char **argv) {
    CHECK(argc == 4);
    id = (unsigned int)atoi(argv[2]);
    FORKS(fork_often);
    puts("forked");
    return 0;
}
