/*
 * DMA both ways: rank 0 writes half of its segment into the other one's and reads it back.
 */

#include "pair.h"

#define HALF (SIZE / 2 - 64)

static sci_error_t told = SCI_ERR_BUSY;

static sci_callback_action_t on_end(void *arg, sci_dma_queue_t queue, sci_error_t status) {
    CHECK(arg == &told && queue != NULL);
    *(volatile sci_error_t *)arg = status;
    return SCI_CALLBACK_CONTINUE;
}

int main(int argc, char **argv) {
    sci_dma_queue_t queue;
    unsigned int at;
    time_t begun = time(NULL);

    begin(argc, argv);
    if (rank == 1) {
        until(0, 1);
        for (at = 0; at < HALF; at++)
            CHECK(here[at] == (unsigned char)(at * 7));
        finish_together("transferred");
        return 0;
    }
    for (at = 0; at < HALF; at++)
        here[at] = (unsigned char)(at * 7);
    OK(SCICreateDMAQueue(sd, &queue, 0, 2, SCI_NO_FLAGS, &error));
    CHECK(SCIDMAQueueState(queue) == SCI_DMAQUEUE_IDLE);
    OK(SCIEnqueueDMATransfer(queue, own, far, 0, 0, HALF - 5, SCI_NO_FLAGS, &error));
    OK(SCIEnqueueDMATransfer(queue, own, far, HALF - 5, HALF - 5, 5, SCI_NO_FLAGS, &error));
    CHECK(SCIDMAQueueState(queue) == SCI_DMAQUEUE_GATHER);
    OK(SCIPostDMAQueue(queue, on_end, &told, SCI_FLAG_USE_CALLBACK, &error));
    CHECK(SCIWaitForDMAQueue(queue, WAIT, SCI_NO_FLAGS, &error) == SCI_DMAQUEUE_DONE);
    while (*(volatile sci_error_t *)&told != SCI_ERR_OK)
        CHECK(time(NULL) - begun < PATIENCE);
    FAILS(SCIPostDMAQueue(queue, NULL, NULL, SCI_NO_FLAGS, &error), SCI_ERR_ILLEGAL_OPERATION);
    OK(SCIResetDMAQueue(queue, SCI_NO_FLAGS, &error));
    OK(SCIStartDmaTransfer(queue, own, far, SIZE / 2, HALF, 0, NULL, NULL, SCI_FLAG_DMA_READ | SCI_FLAG_DMA_WAIT,
                           &error));
    CHECK(SCIDMAQueueState(queue) == SCI_DMAQUEUE_DONE);
    for (at = 0; at < HALF; at++)
        CHECK(here[SIZE / 2 + at] == (unsigned char)(at * 7));
    OK(SCIRemoveDMAQueue(queue, SCI_NO_FLAGS, &error));
    there[SIZE - 1] = 1;
    finish_together("transferred");
    return 0;
}
