/* libsisci: DMA queues. */

#include "sisci_calls.h"

static sci_dma_queue_t queues[OTHERS];

static sci_callback_action_t on_transfer(void *arg, sci_dma_queue_t queue, sci_error_t status) {
    (void)arg, (void)queue;
    return status == SCI_ERR_OK ? SCI_CALLBACK_CONTINUE : SCI_CALLBACK_CANCEL;
}

/*
 * Posts as many transfers as a queue takes, and ends it before they have ended: as a rule, where
 * they go to another process by a network.
 */
void abort_dma(void) {
    unsigned at = below(2), left = 300, tries = 8;
    sci_remote_segment_t to;
    sci_local_segment_t from;

    DO(SCIRemoveDMAQueue, queues[at], SCI_NO_FLAGS, &error);
    DO(SCICreateDMAQueue, ONE_OF(devices), &queues[at], 0, left, SCI_NO_FLAGS, &error);
    do
        from = ONE_OF(segments), to = ONE_OF(remotes);
    while (!DO(SCIEnqueueDMATransfer, queues[at], from, to, 0, 0, 4096, SCI_NO_FLAGS, &error) && tries-- > 0);
    while (left-- > 0 && error == SCI_ERR_OK)
        DO(SCIEnqueueDMATransfer, queues[at], from, to, 0, 0, 4096, SCI_NO_FLAGS, &error);
    if (DO(SCIPostDMAQueue, queues[at], one_in(2) ? on_transfer : NULL, NULL, one_in(2) ? SCI_FLAG_USE_CALLBACK : SCI_NO_FLAGS,
           &error))
        DO(SCIAbortDMAQueue, queues[at], SCI_NO_FLAGS, &error);
}

/* A transfer of several parts, sometimes of none or of too many. */
static void vector(sci_dma_queue_t queue, size_t size, size_t offset, unsigned int way) {
    static dis_dma_vec_t parts[DIS_DMA_MAX_VECLEN + 1];
    size_t count = 1 + below(4), at;

    for (at = 0; at < count; at++)
        parts[at] = (dis_dma_vec_t){.size = size, .local_offset = offset, .remote_offset = offset};
    if (one_in(50))
        count = one_in(2) ? 0 : DIS_DMA_MAX_VECLEN + 1;
    DO(SCIStartDmaTransferVec, queue, ONE_OF(segments), ONE_OF(remotes), count, one_in(100) ? NULL : parts, NULL, NULL,
       flags(way | SCI_FLAG_DMA_WAIT), &error);
}

void dma(void) {
    unsigned at = below(2);
    sci_dma_queue_t queue = one_in(50) ? ONE_OF(queues) : queues[at];
    size_t size = 8 + 8 * (size_t)length_to(200), offset = 8 * (size_t)length_to(40);
    unsigned int way = one_in(2) ? SCI_FLAG_DMA_READ : 0;

    if (one_in(100))
        size = (size_t)draw();
    switch (below(9)) {
    case 0:
        DO(SCIRemoveDMAQueue, queues[at], SCI_NO_FLAGS, &error);
        DO(SCICreateDMAQueue, ONE_OF(devices), one_in(300) ? NULL : &queues[at], 0, one_in(50) ? (unsigned)draw() : 1 + below(8),
           SCI_NO_FLAGS, &error);
        break;
    case 1:
    case 2:
        DO(SCIEnqueueDMATransfer, queue, ONE_OF(segments), ONE_OF(remotes), offset, offset, size, flags(way), &error);
        break;
    case 3:
        if (DO(SCIPostDMAQueue, queue, one_in(2) ? on_transfer : NULL, NULL, one_in(2) ? SCI_FLAG_USE_CALLBACK : SCI_NO_FLAGS,
               &error) &&
            one_in(2))
            DO(SCIAbortDMAQueue, queue, SCI_NO_FLAGS, &error);
        break;
    case 4:
        DO(SCIStartDmaTransfer, queue, ONE_OF(segments), ONE_OF(remotes), offset, size, offset, NULL, NULL,
           flags(way | SCI_FLAG_DMA_WAIT), &error);
        if (one_in(3))
            vector(queue, size, offset, way);
        break;
    case 5:
        DO(SCIAbortDMAQueue, queue, SCI_NO_FLAGS, &error);
        break;
    case 6:
        DO(SCIResetDMAQueue, queue, SCI_NO_FLAGS, &error);
        break;
    case 7:
        ASK(SCIDMAQueueState, queue);
        break;
    default:
        DO(SCIWaitForDMAQueue, queue, below(3), SCI_NO_FLAGS, &error);
    }
}
