/*
 * Stores to an owner that is stopped: rank 1 stops itself, rank 0 goes on and has it continue. No
 * call hangs: over a network a sequence says in time that the stores have not arrived yet.
 */

#include <signal.h>
#include <unistd.h>

#include "pair.h"

/* Seconds in which a call of a process whose peer is stopped ends: it waits for one, and a machine
 * may be busy. */
#define IN_TIME 20

#define ROUNDS 4

static volatile unsigned int *word(volatile unsigned char *bytes) { return (volatile unsigned int *)bytes; }

/* Waits until the system says that a process is stopped. */
static void until_stopped(unsigned int process) {
    time_t begun = time(NULL);
    char path[64], state = '?';

    snprintf(path, sizeof path, "/proc/%u/stat", process);
    while (state != 'T') {
        FILE *file = fopen(path, "r");

        CHECK(file != NULL && fscanf(file, "%*u (%*[^)]) %c", &state) == 1);
        fclose(file);
        CHECK(time(NULL) - begun < PATIENCE);
    }
}

static void send_all(int is_far) {
    static unsigned char bytes[SIZE];
    sci_sequence_status_t expected = is_far ? SCI_SEQ_RETRIABLE : SCI_SEQ_OK;
    unsigned int round;

    for (round = 1; round <= ROUNDS; round++) {
        time_t begun = time(NULL);

        there[SIZE - 1] = (unsigned char)round;
        SCIFlush(sequence, SCI_NO_FLAGS);
        SCIStoreBarrier(sequence, SCI_NO_FLAGS);
        CHECK(SCICheckSequence(sequence, SCI_NO_FLAGS, &error) == expected && error == SCI_ERR_OK);
        memset(bytes, (int)(round + 100), sizeof bytes);
        SCIMemCpy(sequence, bytes, far_map, 64, SIZE / 2, SCI_FLAG_ERROR_CHECK, &error);
        CHECK_CODE(error, is_far ? SCI_ERR_TRANSFER_FAILED : SCI_ERR_OK);
        CHECK(time(NULL) - begun < IN_TIME);
    }
}

int main(int argc, char **argv) {
    time_t begun = time(NULL);
    unsigned int at;

    begin(argc, argv);
    if (rank == 1) {
        /* The other one is connected, too. */
        until(1, 9);
        *word(there) = (unsigned int)getpid();
        confirm();
        CHECK(raise(SIGSTOP) == 0);
        until(0, ROUNDS + 1);
        for (at = 64; at < 64 + SIZE / 2; at++)
            CHECK(here[at] == 100 + ROUNDS);
    } else {
        there[SIZE - 2] = 9;
        while (*word(here) == 0)
            CHECK(time(NULL) - begun < PATIENCE);
        until_stopped(*word(here));
        send_all(getenv("CCI_LISTEN") != NULL);
        CHECK(kill((pid_t)*word(here), SIGCONT) == 0);
        /* Nothing of it is lost. */
        confirm();
        there[SIZE - 1] = ROUNDS + 1;
    }
    finish_together("stopped and continued");
    return 0;
}
