/* libsisci: segments, maps, sequences and copies. */

#include "sisci_calls.h"

static struct {
    sci_map_t map;
    volatile unsigned char *start;
    size_t size;
} maps[MAPS];
static sci_sequence_t sequences[OTHERS];

/* Sometimes again and again, sometimes once. Runs on a thread of the library. */
static sci_callback_action_t on_local(void *arg, sci_local_segment_t segment, sci_segment_cb_reason_t reason,
                                      unsigned int from, unsigned int adapter, sci_error_t status) {
    (void)arg, (void)segment, (void)from, (void)adapter, (void)status;
    return reason == SCI_CB_DISCONNECT ? SCI_CALLBACK_CANCEL : SCI_CALLBACK_CONTINUE;
}

static sci_callback_action_t on_remote(void *arg, sci_remote_segment_t segment, sci_segment_cb_reason_t reason,
                                       sci_error_t status) {
    (void)arg, (void)segment, (void)status;
    return reason == SCI_CB_LOST ? SCI_CALLBACK_CANCEL : SCI_CALLBACK_CONTINUE;
}

static void unmap(unsigned at) {
    if (DO(SCIUnmapSegment, maps[at].map, SCI_NO_FLAGS, &error) || one_in(2))
        maps[at].start = NULL;
}

/* Ends all that keeps a segment busy. */
static void let_go(void) {
    unsigned at;

    for (at = 0; at < OTHERS; at++) {
        DO(SCIRemoveSequence, sequences[at], SCI_NO_FLAGS, &error);
        sequences[at] = NULL;
    }
    for (at = 0; at < MAPS; at++)
        if (maps[at].start)
            unmap(at);
}

void create_segment(void) {
    unsigned at = below(SEGMENTS);
    int calls_back = one_in(3);
    sci_local_segment_t segment = NULL;

    if (one_in(3))
        let_go();
    DO(SCISetSegmentUnavailable, segments[at], 0, SCI_FLAG_FORCE_DISCONNECT, &error);
    DO(SCIRemoveSegment, segments[at], SCI_NO_FLAGS, &error);
    /* It keeps its name as long as something uses it. */
    if (error == SCI_ERR_BUSY && !one_in(20))
        return;
    if (!DO(SCICreateSegment, ONE_OF(devices), one_in(300) ? NULL : &segment,
            one_in(20) ? an_id() : first_id + (unsigned)process * 16 + at, one_in(100) ? (size_t)draw() : one_in(4) ? 1 + length_to(BYTES - 1) : 8192 + length_to(8192), calls_back ? on_local : SCI_NO_CALLBACK, NULL,
            calls_back ? SCI_FLAG_USE_CALLBACK : flags(SCI_FLAG_PRIVATE), &error))
        return;
    segments[at] = segment;
    if (!one_in(10))
        DO(SCIPrepareSegment, segment, one_in(100) ? 1 : 0, flags(SCI_FLAG_DMA_SOURCE_ONLY & 0), &error);
    if (!one_in(10))
        DO(SCISetSegmentAvailable, segment, 0, SCI_NO_FLAGS, &error);
}

void change_segment(void) {
    sci_local_segment_t segment = ONE_OF(segments);

    switch (below(6)) {
    case 0:
        DO(SCIPrepareSegment, segment, 0, flags(SCI_FLAG_BROADCAST), &error);
        break;
    case 1:
        DO(SCISetSegmentUnavailable, segment, 0, one_in(2) ? flags(SCI_FLAG_NOTIFY) : SCI_NO_FLAGS, &error);
        break;
    case 2:
        DO(SCIRegisterSegmentMemory, memory, sizeof memory, segment, SCI_NO_FLAGS, &error);
        DO(SCIAttachPhysicalMemory, draw(), memory, 0, sizeof memory, segment, SCI_NO_FLAGS, &error);
        break;
    case 3:
        ASK(SCIGetLocalSegmentId, segment);
        ASK(SCIGetLocalSegmentSize, segment);
        break;
    default:
        DO(SCISetSegmentAvailable, segment, 0, SCI_NO_FLAGS, &error);
    }
}

void connect_segment(void) {
    unsigned at = below(SEGMENTS);
    int calls_back = one_in(4);
    sci_remote_segment_t remote = NULL;

    DO(SCIDisconnectSegment, remotes[at], SCI_NO_FLAGS, &error);
    if (DO(SCIConnectSegment, ONE_OF(devices), one_in(300) ? NULL : &remote, a_node(), an_id(), one_in(100) ? 1 : 0,
           calls_back ? on_remote : SCI_NO_CALLBACK, NULL, 20 + below(20),
           (calls_back ? SCI_FLAG_USE_CALLBACK : 0) | flags(SCI_FLAG_ASYNCHRONOUS_CONNECT), &error) &&
        remote)
        remotes[at] = remote;
    remote = ONE_OF(remotes);
    ASK(SCIGetRemoteSegmentSize, remote);
    ASK(SCIGetRemoteSegmentId, remote);
}

void wait_for_segment(void) {
    unsigned int from, adapter;
    sci_error_t status;

    if (one_in(2))
        DO(SCIWaitForLocalSegmentEvent, ONE_OF(segments), &from, one_in(50) ? NULL : &adapter, below(2), SCI_NO_FLAGS, &error);
    else
        DO(SCIWaitForRemoteSegmentEvent, ONE_OF(remotes), one_in(50) ? NULL : &status, below(2), SCI_NO_FLAGS, &error);
}

void map(void) {
    unsigned at = below(MAPS);
    size_t offset = one_in(3) ? 8 * length_to(64) : 0, size = 8 + 8 * (size_t)length_to(2000);
    volatile void *start = NULL;

    if (maps[at].start)
        unmap(at);
    if (maps[at].start)
        return;
    if (one_in(50))
        offset = one_in(2) ? (size_t)draw() : 3;
    if (one_in(2)) {
        uint64_t number = enter(AT_SCIMapLocalSegment);

        start = SCIMapLocalSegment(ONE_OF(segments), &maps[at].map, offset, size, NULL, flags(SCI_FLAG_READONLY_MAP), &error);
        leave(number, AT_SCIMapLocalSegment, start != NULL && error == SCI_ERR_OK);
    } else {
        uint64_t number = enter(AT_SCIMapRemoteSegment);

        start = SCIMapRemoteSegment(ONE_OF(remotes), &maps[at].map, offset, size, NULL, flags(SCI_FLAG_READONLY_MAP), &error);
        leave(number, AT_SCIMapRemoteSegment, start != NULL && error == SCI_ERR_OK);
    }
    PROMISE((start != NULL) == (error == SCI_ERR_OK));
    maps[at].start = start;
    maps[at].size = size;
}

void forget_maps(void) {
    unsigned at;

    for (at = 0; at < MAPS; at++)
        maps[at].start = NULL;
}

/* A load and a store: maps never fault. */
void touch(void) {
    unsigned at = below(MAPS);

    if (!maps[at].start)
        return;
    sum += maps[at].start[below((uint32_t)maps[at].size)];
    maps[at].start[below((uint32_t)maps[at].size)] = (unsigned char)draw();
    if (one_in(2))
        DO(SCICacheSync, maps[at].map, (void *)(uintptr_t)maps[at].start, maps[at].size, SCI_NO_FLAGS, &error);
}

static sci_map_t a_map(void) {
    return one_in(200) ? (sci_map_t)(uintptr_t)draw() : maps[below(MAPS)].map;
}

void sequence(void) {
    unsigned at = below(OTHERS);
    sci_sequence_t of = ONE_OF(sequences);

    switch (below(6)) {
    case 0:
        DO(SCIRemoveSequence, sequences[at], SCI_NO_FLAGS, &error);
        sequences[at] = NULL;
        DO(SCICreateMapSequence, a_map(), one_in(300) ? NULL : &sequences[at], flags(SCI_FLAG_FAST_BARRIER), &error);
        break;
    case 1:
        DO(SCIStartSequence, of, SCI_NO_FLAGS, &error);
        break;
    case 2:
        DO(SCICheckSequence, of, flags(SCI_FLAG_NO_FLUSH), &error);
        break;
    case 3:
        ASK(SCIStoreBarrier, of, SCI_NO_FLAGS);
        break;
    case 4:
        ASK(SCIFlush, of, flags(SCI_FLAG_FLUSH_CPU_BUFFERS_ONLY));
        break;
    default:
        ASK(SCIFlushReadBuffers, of);
    }
}

void copy(void) {
    size_t size = 8 * (size_t)length_to(200), offset = 8 * (size_t)length_to(40);

    if (one_in(100))
        offset = (size_t)draw();
    if (one_in(3))
        DO(SCITransferBlock, a_map(), 0, a_map(), offset, one_in(100) ? (size_t)draw() : size, SCI_NO_FLAGS, &error);
    else if (one_in(3))
        DO(SCIMemCopy, memory, a_map(), offset, size, flags(0), &error);
    else
        DO(SCIMemCpy, ONE_OF(sequences), memory, a_map(), offset, size, flags(one_in(2) ? SCI_FLAG_BLOCK_READ : SCI_FLAG_ERROR_CHECK),
           &error);
}
