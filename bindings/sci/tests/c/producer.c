/*
 * Producer and consumer: rank 0 fills slots of rank 1's segment and rings; rank 1 takes them and
 * answers with bytes.
 */

#include "pair.h"

#define SLOTS 8
#define ITEMS 500

static unsigned int produced, consumed;

static sci_callback_action_t on_answer(void *arg, sci_local_data_interrupt_t interrupt, void *data,
                                       unsigned int length, sci_error_t status) {
    CHECK(arg == &consumed && interrupt != NULL && length == sizeof consumed && status == SCI_ERR_OK);
    memcpy(arg, data, length);
    return SCI_CALLBACK_CONTINUE;
}

static void produce(void) {
    sci_remote_interrupt_t bell;
    sci_local_data_interrupt_t answers;
    unsigned int number = own_id;
    time_t begun = time(NULL);

    OK(SCICreateDataInterrupt(sd, &answers, 0, &number, on_answer, &consumed,
                              SCI_FLAG_FIXED_INTNO | SCI_FLAG_USE_CALLBACK, &error));
    do {
        SCIConnectInterrupt(sd, &bell, peer_node, 0, peer_id, WAIT, SCI_NO_FLAGS, &error);
        CHECK(time(NULL) - begun < PATIENCE);
    } while (error == SCI_ERR_NO_SUCH_INTNO);
    OK((void)0);
    while (*(volatile unsigned int *)&consumed < ITEMS) {
        CHECK(time(NULL) - begun < PATIENCE);
        if (produced == ITEMS || produced - *(volatile unsigned int *)&consumed == SLOTS) {
            struct timespec pause = {0, 10000};

            nanosleep(&pause, NULL);
            continue;
        }
        ((volatile unsigned int *)there)[1 + produced % SLOTS] = produced * 7;
        produced++;
        SCIStoreBarrier(sequence, SCI_NO_FLAGS);
        ((volatile unsigned int *)there)[0] = produced;
        OK(SCITriggerInterrupt(bell, SCI_NO_FLAGS, &error));
    }
    OK(SCIDisconnectInterrupt(bell, SCI_NO_FLAGS, &error));
    do {
        SCIRemoveDataInterrupt(answers, SCI_NO_FLAGS, &error);
        CHECK(time(NULL) - begun < PATIENCE);
    } while (error == SCI_ERR_BUSY);
    OK((void)0);
    finish_together("produced and consumed");
}

static void consume(void) {
    sci_local_interrupt_t bell;
    sci_remote_data_interrupt_t answers;
    unsigned int number = own_id, taken = 0;
    time_t begun = time(NULL);

    OK(SCICreateInterrupt(sd, &bell, 0, &number, SCI_NO_CALLBACK, NULL, SCI_FLAG_FIXED_INTNO, &error));
    do {
        SCIConnectDataInterrupt(sd, &answers, peer_node, 0, peer_id, WAIT, SCI_NO_FLAGS, &error);
        CHECK(time(NULL) - begun < PATIENCE);
    } while (error == SCI_ERR_NO_SUCH_INTNO);
    OK((void)0);
    while (taken < ITEMS) {
        OK(SCIWaitForInterrupt(bell, WAIT, SCI_NO_FLAGS, &error));
        while (taken < ((volatile unsigned int *)here)[0]) {
            SCIFlushReadBuffers(sequence);
            CHECK(((volatile unsigned int *)here)[1 + taken % SLOTS] == taken * 7);
            taken++;
        }
        do {
            SCITriggerDataInterrupt(answers, &taken, sizeof taken, SCI_NO_FLAGS, &error);
            CHECK(time(NULL) - begun < PATIENCE);
        } while (error == SCI_ERR_NOSPC);
        OK((void)0);
    }
    OK(SCIDisconnectDataInterrupt(answers, SCI_NO_FLAGS, &error));
    do {
        SCIRemoveInterrupt(bell, SCI_NO_FLAGS, &error);
        CHECK(time(NULL) - begun < PATIENCE);
    } while (error == SCI_ERR_BUSY);
    OK((void)0);
    finish_together("produced and consumed");
}

int main(int argc, char **argv) {
    begin(argc, argv);
    if (rank == 0)
        produce();
    else
        consume();
    return 0;
}
