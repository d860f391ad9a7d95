/*
 * Every call, and each code that this library returns, but those of faults of the system
 * (SCI_ERR_SYSTEM) and of other users (SCI_ERR_ACCESS of a name). PROGRAM RANK ID ID.
 */

#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

#define BAD ((void *)8)
#define NONE SCI_NO_FLAGS

static unsigned int id;
static sci_remote_segment_t remote;
static sci_map_t map;

static void before_initialize(void) {
    sci_desc_t device = NULL;
    unsigned int node;
    dis_nodeId_list_t list;
    dis_virt_adapter_t kind;

    FAILS(SCIOpen(&device, NONE, &error), SCI_ERR_NOT_INITIALIZED);
    FAILS(SCIClose(device, NONE, &error), SCI_ERR_NOT_INITIALIZED);
    FAILS(SCIGetLocalNodeId(0, &node, NONE, &error), SCI_ERR_NOT_INITIALIZED);
    /* The name leads nowhere, and is not read. */
    FAILS(SCIGetNodeIdByAdapterName(BAD, &list, &kind, NONE, &error), SCI_ERR_NOT_INITIALIZED);
    FAILS(SCIPrepareSegment(NULL, 0, NONE, &error), SCI_ERR_NOT_INITIALIZED);
    FAILS(SCICheckSequence(NULL, NONE, &error), SCI_ERR_NOT_INITIALIZED);
    FAILS(SCIRemoveSequence(NULL, NONE, &error), SCI_ERR_NOT_INITIALIZED);
    FAILS(SCIInitialize(SCI_FLAG_NOTIFY, &error), SCI_ERR_ILLEGAL_FLAG);
    OK(SCIInitialize(NONE, &error));
}

static void devices(void) {
    char text[80], room[4];
    unsigned int node = 0;
    dis_nodeId_list_t list;
    dis_virt_adapter_t kind;
    sci_query_string_t version = {text, sizeof text}, narrow = {room, sizeof room};
    /* The query does not read the port, and programs leave it as it is. */
    sci_query_adapter_t adapter = {0, 0xdeadbeef, SCI_Q_ADAPTER_NODEID, NULL};

    FAILS(SCIOpen(NULL, NONE, &error), SCI_ERR_ILLEGAL_PARAMETER);
    FAILS(SCIOpen(&sd, SCI_FLAG_NOTIFY, &error), SCI_ERR_ILLEGAL_FLAG);
    OK(SCIOpen(&sd, NONE, &error));
    OK(SCIGetLocalNodeId(0, &node, NONE, &error));
    CHECK(node == 4);
    FAILS(SCIGetLocalNodeId(1, &node, NONE, &error), SCI_ERR_NO_SUCH_ADAPTERNO);
    FAILS(SCIGetLocalNodeId(0, NULL, NONE, &error), SCI_ERR_ILLEGAL_PARAMETER);
    CHECK(SCIProbeNode(sd, 0, 4, NONE, &error) == 1 && error == SCI_ERR_OK);
    CHECK(SCIProbeNode(sd, 0, 12, NONE, &error) == 0 && error == SCI_ERR_NO_SUCH_NODEID);
    CHECK(SCIProbeNode(sd, 0, 16, NONE, &error) == 0 && error == SCI_ERR_NOT_IMPLEMENTED);
    CHECK(SCIProbeNode(sd, 0, 0, NONE, &error) == 0 && error == SCI_ERR_ILLEGAL_NODEID);
    CHECK(SCIProbeNode(BAD, 0, 4, NONE, &error) == 0 && error == SCI_ERR_ILLEGAL_PARAMETER);
    OK(SCIQuery(SCI_Q_API, &version, NONE, &error));
    CHECK(strstr(text, "SISCI") != NULL);
    FAILS(SCIQuery(SCI_Q_API, &narrow, NONE, &error), SCI_ERR_OUT_OF_RANGE);
    FAILS(SCIQuery(SCI_Q_ADAPTER, &adapter, NONE, &error), SCI_ERR_ILLEGAL_PARAMETER);
    adapter.data = &node;
    node = 0;
    OK(SCIQuery(SCI_Q_ADAPTER, &adapter, NONE, &error));
    CHECK(node == 4);
    adapter.subcommand = SCI_Q_ADAPTER_LINK_OPERATIONAL;
    OK(SCIQuery(SCI_Q_ADAPTER, &adapter, NONE, &error));
    CHECK(node == 1);
    adapter.subcommand = 99;
    FAILS(SCIQuery(SCI_Q_ADAPTER, &adapter, NONE, &error), SCI_ERR_ILLEGAL_QUERY);
    FAILS(SCIQuery(99, &version, NONE, &error), SCI_ERR_ILLEGAL_QUERY);
    OK(SCIGetNodeIdByAdapterName("localhost", &list, &kind, NONE, &error));
    CHECK(list[0] == 4 && list[1] == 8 && list[2] == 0);
    FAILS(SCIGetNodeIdByAdapterName("nobody", &list, &kind, NONE, &error), SCI_ERR_NO_SUCH_NODEID);
    CHECK(list[0] == 0);
    FAILS(SCIGetNodeIdByAdapterName(NULL, &list, &kind, NONE, &error), SCI_ERR_ILLEGAL_PARAMETER);
    FAILS(SCIGetNodeIdByAdapterName("localhost", NULL, &kind, NONE, &error), SCI_ERR_ILLEGAL_PARAMETER);
    FAILS(SCIGetNodeIdByAdapterName(BAD, NULL, &kind, NONE, &error), SCI_ERR_ILLEGAL_PARAMETER);
    FAILS(SCIQuery(SCI_Q_API, NULL, NONE, &error), SCI_ERR_ILLEGAL_PARAMETER);
}

static void segments(void) {
    sci_local_segment_t other;
    sci_error_t status = SCI_ERR_BUSY;
    unsigned int node = 0, adapter = 9;

    FAILS(SCICreateSegment(sd, &own, id, 0, NULL, NULL, NONE, &error), SCI_ERR_ILLEGAL_PARAMETER);
    FAILS(SCICreateSegment(sd, &own, id, (size_t)1 << 50, NULL, NULL, NONE, &error), SCI_ERR_NOSPC);
    FAILS(SCICreateSegment(sd, &own, id, SIZE, NULL, NULL, SCI_FLAG_EMPTY, &error), SCI_ERR_FLAG_NOT_IMPLEMENTED);
    FAILS(SCICreateSegment(sd, &own, id, 1, NULL, NULL, SCI_FLAG_DMA_READ, &error), SCI_ERR_ILLEGAL_FLAG);
    FAILS(SCICreateSegment(sd, &own, id, 1, NULL, NULL, SCI_FLAG_USE_CALLBACK, &error), SCI_ERR_ILLEGAL_PARAMETER);
    OK(SCICreateSegment(sd, &own, id, SIZE, NULL, NULL, NONE, &error));
    FAILS(SCICreateSegment(sd, &other, id, SIZE, NULL, NULL, NONE, &error), SCI_ERR_SEGMENTID_USED);
    CHECK(SCIGetLocalSegmentSize(own) == SIZE && SCIGetLocalSegmentSize(BAD) == 0);
    CHECK(SCIGetLocalSegmentId(own) == id && SCIGetLocalSegmentId(BAD) == 0);
    FAILS(SCISetSegmentAvailable(own, 0, NONE, &error), SCI_ERR_SEGMENT_NOT_PREPARED);
    FAILS(SCIPrepareSegment(own, 1, NONE, &error), SCI_ERR_NO_SUCH_ADAPTERNO);
    FAILS(SCIRegisterSegmentMemory(&node, sizeof node, own, NONE, &error), SCI_ERR_NOT_IMPLEMENTED);
    FAILS(SCIRegisterSegmentMemory(NULL, sizeof node, own, NONE, &error), SCI_ERR_ILLEGAL_PARAMETER);
    FAILS(SCIRegisterSegmentMemory(&node, 0, own, NONE, &error), SCI_ERR_ILLEGAL_PARAMETER);
    FAILS(SCIRegisterSegmentMemory(&node, sizeof node, BAD, NONE, &error), SCI_ERR_ILLEGAL_PARAMETER);
    FAILS(SCIRegisterSegmentMemory(&node, sizeof node, own, SCI_FLAG_EMPTY, &error), SCI_ERR_ILLEGAL_FLAG);
    FAILS(SCIAttachPhysicalMemory(0, &node, 0, sizeof node, own, SCI_FLAG_EMPTY, &error), SCI_ERR_NOT_IMPLEMENTED);
    OK(SCIPrepareSegment(own, 0, SCI_FLAG_DMA_SOURCE_ONLY, &error));
    FAILS(SCIPrepareSegment(own, 0, NONE, &error), SCI_ERR_ILLEGAL_OPERATION);
    FAILS(SCIConnectSegment(sd, &remote, 4, id, 0, NULL, NULL, WAIT, NONE, &error), SCI_ERR_NO_SUCH_SEGMENT);
    OK(SCISetSegmentAvailable(own, 0, NONE, &error));
    FAILS(SCIConnectSegment(sd, &remote, 4, id, 0, NULL, NULL, WAIT, SCI_FLAG_NOTIFY, &error), SCI_ERR_ILLEGAL_FLAG);
    FAILS(SCIConnectSegment(sd, &remote, 12, id, 0, NULL, NULL, WAIT, NONE, &error), SCI_ERR_NO_SUCH_NODEID);
    FAILS(SCIConnectSegment(sd, &remote, 16, id, 0, NULL, NULL, WAIT, NONE, &error), SCI_ERR_NOT_IMPLEMENTED);
    OK(SCIConnectSegment(sd, &remote, 4, id, 0, NULL, NULL, SCI_INFINITE_TIMEOUT, NONE, &error));
    CHECK(SCIGetRemoteSegmentSize(remote) == SIZE && SCIGetRemoteSegmentId(remote) == id);
    CHECK(SCIWaitForLocalSegmentEvent(own, &node, &adapter, WAIT, NONE, &error) == SCI_CB_CONNECT);
    CHECK(node == 4 && adapter == 0);
    CHECK(SCIWaitForLocalSegmentEvent(own, &node, &adapter, 1, NONE, &error) == 0 && error == SCI_ERR_TIMEOUT);
    OK(SCISetSegmentUnavailable(own, 0, SCI_FLAG_NOTIFY, &error));
    CHECK(SCIWaitForRemoteSegmentEvent(remote, &status, WAIT, NONE, &error) == SCI_CB_DISCONNECT);
    CHECK(status == SCI_ERR_OK);
    FAILS(SCIWaitForRemoteSegmentEvent(remote, &status, 0, NONE, &error), SCI_ERR_TIMEOUT);
}

/* Flags that ask for what every segment has, and numbers that the library chooses. */
static void hints(void) {
    sci_local_segment_t first, second;
    sci_map_t window;
    const unsigned int any = SCI_FLAG_AUTO_ID | SCI_FLAG_PRIVATE | SCI_FLAG_DMA_SOURCE_ONLY | SCI_FLAG_DMA_GLOBAL;

    OK(SCICreateSegment(sd, &first, id, SIZE, NULL, NULL, any, &error));
    OK(SCICreateSegment(sd, &second, id, SIZE, NULL, NULL, SCI_FLAG_AUTO_ID, &error));
    CHECK(SCIGetLocalSegmentId(first) != SCIGetLocalSegmentId(second) && SCIGetLocalSegmentId(second) != id);
    OK(SCIMapLocalSegment(first, &window, 0, SIZE, NULL, SCI_FLAG_IO_MAP_IOSPACE, &error));
    OK(SCIUnmapSegment(window, NONE, &error));
    OK(SCIRemoveSegment(first, NONE, &error));
    OK(SCIRemoveSegment(second, NONE, &error));
}

/* What a callback has been given. */
static volatile unsigned int reasons[4], told;

static sci_callback_action_t on_remote(void *arg, sci_remote_segment_t segment, sci_segment_cb_reason_t reason,
                                       sci_error_t status) {
    CHECK(arg == &told && segment != NULL && told < 4);
    reasons[told] = (unsigned int)reason | (status == SCI_ERR_OK ? 0 : 256);
    /* A callback must not wait, but for the connection that it is told of. */
    if (reason == SCI_CB_OPERATIONAL)
        CHECK(SCIGetRemoteSegmentSize(segment) == SIZE);
    told++;
    return SCI_CALLBACK_CONTINUE;
}

static void until_told(unsigned int count) {
    time_t begun = time(NULL);

    while (told < count)
        CHECK(time(NULL) - begun < PATIENCE);
}

/* Connects that do not wait. */
static void connects(void) {
    sci_remote_segment_t later;
    sci_local_segment_t third;
    sci_map_t none;
    sci_error_t status = SCI_ERR_BUSY;
    const unsigned int flags = SCI_FLAG_ASYNCHRONOUS_CONNECT;

    OK(SCISetSegmentAvailable(own, 0, NONE, &error));
    FAILS(SCIConnectSegment(sd, &later, 12, id, 0, NULL, NULL, WAIT, flags, &error), SCI_ERR_NO_SUCH_NODEID);
    FAILS(SCIConnectSegment(sd, &later, 4, id, 0, NULL, NULL, WAIT, flags | SCI_FLAG_USE_CALLBACK, &error),
          SCI_ERR_ILLEGAL_PARAMETER);
    FAILS(SCIConnectSegment(sd, &later, DIS_BROADCAST_NODEID_GROUP_ALL, id, 0, NULL, NULL, WAIT,
                            flags | SCI_FLAG_BROADCAST, &error),
          SCI_ERR_FLAG_NOT_IMPLEMENTED);
    OK(SCIConnectSegment(sd, &later, 4, id, 0, NULL, NULL, SCI_INFINITE_TIMEOUT, flags, &error));
    CHECK(SCIWaitForRemoteSegmentEvent(later, &status, WAIT, NONE, &error) == SCI_CB_CONNECT && status == SCI_ERR_OK);
    CHECK(SCIWaitForRemoteSegmentEvent(later, &status, WAIT, NONE, &error) == SCI_CB_OPERATIONAL);
    CHECK(SCIGetRemoteSegmentSize(later) == SIZE && SCIGetRemoteSegmentId(later) == id);
    FAILS(SCIWaitForRemoteSegmentEvent(later, &status, 1, NONE, &error), SCI_ERR_TIMEOUT);
    OK(SCIDisconnectSegment(later, NONE, &error));
    CHECK(SCIWaitForLocalSegmentEvent(own, NULL, NULL, WAIT, NONE, &error) == SCI_CB_CONNECT);
    CHECK(SCIWaitForLocalSegmentEvent(own, NULL, NULL, WAIT, NONE, &error) == SCI_CB_DISCONNECT);

    /* Nobody has it: the event says why. */
    OK(SCIConnectSegment(sd, &later, 4, id + 1, 0, NULL, NULL, WAIT, flags, &error));
    FAILS(SCIMapRemoteSegment(later, &none, 0, 1, NULL, NONE, &error), SCI_ERR_SEGMENT_NOT_CONNECTED);
    CHECK(SCIWaitForRemoteSegmentEvent(later, &status, WAIT, NONE, &error) == SCI_CB_LOST);
    CHECK_CODE((int)status, (int)SCI_ERR_NO_SUCH_SEGMENT);
    FAILS(SCIWaitForRemoteSegmentEvent(later, &status, WAIT, NONE, &error), SCI_ERR_SEGMENT_NOT_CONNECTED);
    OK(SCIDisconnectSegment(later, NONE, &error));

    /* The callback has the end of the connect, and what comes after it. */
    OK(SCICreateSegment(sd, &third, id + 1, SIZE, NULL, NULL, NONE, &error));
    OK(SCIPrepareSegment(third, 0, NONE, &error));
    OK(SCISetSegmentAvailable(third, 0, NONE, &error));
    OK(SCIConnectSegment(sd, &later, 4, id + 1, 0, on_remote, (void *)(uintptr_t)&told, WAIT,
                         flags | SCI_FLAG_USE_CALLBACK, &error));
    until_told(2);
    OK(SCISetSegmentUnavailable(third, 0, SCI_FLAG_FORCE_DISCONNECT, &error));
    until_told(3);
    CHECK(reasons[0] == SCI_CB_CONNECT && reasons[1] == SCI_CB_OPERATIONAL);
    CHECK(reasons[2] == (SCI_CB_LOST | 256));
    OK(SCIDisconnectSegment(later, NONE, &error));
    OK(SCIConnectSegment(sd, &later, 4, id + 1, 0, on_remote, (void *)(uintptr_t)&told, WAIT,
                         flags | SCI_FLAG_USE_CALLBACK, &error));
    until_told(4);
    CHECK(reasons[3] == (SCI_CB_LOST | 256));
    OK(SCIDisconnectSegment(later, NONE, &error));
    OK(SCIRemoveSegment(third, NONE, &error));
    OK(SCISetSegmentUnavailable(own, 0, NONE, &error));
}

/* Broadcast segments: the codes alone. */
static void broadcasts(void) {
    sci_local_segment_t member, other;
    sci_remote_segment_t all;
    sci_map_t here, there;
    sci_dma_queue_t queue;
    volatile unsigned char *seen, *stored;
    const unsigned int every = DIS_BROADCAST_NODEID_GROUP_ALL, flag = SCI_FLAG_BROADCAST;
    const unsigned int dma = flag | SCI_FLAG_DMA_GLOBAL | SCI_FLAG_DMA_WAIT;

    /* Its members agree on the number of a group. */
    OK(SCICreateSegment(sd, &member, id + 2, SIZE, NULL, NULL, flag | SCI_FLAG_AUTO_ID, &error));
    CHECK(SCIGetLocalSegmentId(member) == id + 2);
    FAILS(SCICreateSegment(sd, &other, id + 2, SIZE, NULL, NULL, flag, &error), SCI_ERR_SEGMENTID_USED);
    FAILS(SCIConnectSegment(sd, &all, every, id + 2, 0, NULL, NULL, WAIT, flag, &error), SCI_ERR_NO_SUCH_SEGMENT);
    OK(SCIPrepareSegment(member, 0, flag, &error));
    OK(SCISetSegmentAvailable(member, 0, flag, &error));
    FAILS(SCIConnectSegment(sd, &all, 4, id + 2, 0, NULL, NULL, WAIT, flag, &error), SCI_ERR_ILLEGAL_NODEID);
    FAILS(SCIConnectSegment(sd, &all, every, id + 2, 0, NULL, NULL, WAIT, NONE, &error), SCI_ERR_NO_SUCH_NODEID);
    FAILS(SCIConnectSegment(sd, &all, 4, id + 2, 0, NULL, NULL, WAIT, NONE, &error), SCI_ERR_NO_SUCH_SEGMENT);
    OK(SCIConnectSegment(sd, &all, every, id + 2, 0, NULL, NULL, WAIT, flag, &error));
    OK(stored = SCIMapRemoteSegment(all, &there, 0, SIZE, NULL, flag, &error));
    OK(seen = SCIMapLocalSegment(member, &here, 0, SIZE, NULL, NONE, &error));
    FAILS(SCIMapRemoteSegment(remote, &there, 0, SIZE, NULL, flag, &error), SCI_ERR_ILLEGAL_FLAG);
    stored[5] = 9;
    CHECK(seen[5] == 9);
    OK(SCICreateSegment(sd, &other, id, SIZE, NULL, NULL, SCI_FLAG_AUTO_ID, &error));
    OK(SCIPrepareSegment(other, 0, SCI_FLAG_DMA_SOURCE_ONLY, &error));
    OK(SCICreateDMAQueue(sd, &queue, 0, 1, NONE, &error));
    OK(SCIStartDmaTransfer(queue, other, all, 0, 1, 5, NULL, NULL, dma | SCI_FLAG_DMA_READ, &error));
    OK(SCIStartDmaTransfer(queue, other, all, 0, 1, 7, NULL, NULL, dma, &error));
    CHECK(seen[7] == 9);
    OK(SCIRemoveDMAQueue(queue, NONE, &error));
    OK(SCIRemoveSegment(other, NONE, &error));
    FAILS(SCIRemoveSegment(member, NONE, &error), SCI_ERR_BUSY);
    OK(SCIUnmapSegment(there, NONE, &error));
    OK(SCIUnmapSegment(here, NONE, &error));
    OK(SCIDisconnectSegment(all, NONE, &error));
    OK(SCIRemoveSegment(member, NONE, &error));
}

static void maps(void) {
    sci_map_t half, read_only;
    unsigned char bytes[100];
    volatile unsigned char *first, *second;

    FAILS(SCIMapRemoteSegment(remote, &map, 1, SIZE, NULL, NONE, &error), SCI_ERR_OUT_OF_RANGE);
    FAILS(SCIMapRemoteSegment(remote, &map, 1, SIZE_MAX, NULL, NONE, &error), SCI_ERR_OUT_OF_RANGE);
    FAILS(SCIMapRemoteSegment(remote, &map, 0, SIZE, NULL, SCI_FLAG_FIXED_MAP_ADDR, &error),
          SCI_ERR_FLAG_NOT_IMPLEMENTED);
    FAILS(SCIMapRemoteSegment((sci_remote_segment_t)(void *)own, &map, 0, SIZE, NULL, NONE, &error), SCI_ERR_ILLEGAL_PARAMETER);
    OK(first = SCIMapRemoteSegment(remote, &map, 0, SIZE, NULL, SCI_FLAG_IO_MAP_IOSPACE, &error));
    OK(second = SCIMapLocalSegment(own, &half, 1000, 100, NULL, NONE, &error));
    first[1001] = 77;
    CHECK(second[1] == 77);
    OK(SCIMapLocalSegment(own, &read_only, 0, 100, NULL, SCI_FLAG_READONLY_MAP, &error));
    OK(SCICreateMapSequence(map, &sequence, NONE, &error));
    FAILS(SCICreateMapSequence((sci_map_t)(void *)sequence, &sequence, NONE, &error), SCI_ERR_ILLEGAL_PARAMETER);
    CHECK(SCIStartSequence(sequence, NONE, &error) == SCI_SEQ_OK && error == SCI_ERR_OK);
    CHECK(SCICheckSequence(sequence, SCI_FLAG_NO_FLUSH, &error) == SCI_SEQ_OK && error == SCI_ERR_OK);
    CHECK(SCICheckSequence(BAD, NONE, &error) == SCI_SEQ_NOT_RETRIABLE && error == SCI_ERR_ILLEGAL_PARAMETER);
    memset(bytes, 5, sizeof bytes);
    OK(SCIMemCpy(sequence, bytes, map, 1000, 100, SCI_FLAG_ERROR_CHECK, &error));
    CHECK(second[0] == 5 && second[99] == 5);
    memset(bytes, 0, sizeof bytes);
    OK(SCIMemCpy(sequence, bytes, map, 1000, 100, SCI_FLAG_BLOCK_READ, &error));
    CHECK(bytes[0] == 5 && bytes[99] == 5);
    memset(bytes, 6, sizeof bytes);
    OK(SCIMemCopy(bytes, map, 1000, 100, SCI_FLAG_ERROR_CHECK, &error));
    CHECK(second[0] == 6 && second[99] == 6);
    memset(bytes, 5, sizeof bytes);
    OK(SCIMemCopy(bytes, map, 1000, 100, NONE, &error));
    FAILS(SCIMemCopy(bytes, map, SIZE, 1, NONE, &error), SCI_ERR_OUT_OF_RANGE);
    FAILS(SCIMemCpy(sequence, bytes, half, 1, 100, NONE, &error), SCI_ERR_OUT_OF_RANGE);
    FAILS(SCIMemCpy(sequence, NULL, half, 0, 100, NONE, &error), SCI_ERR_ILLEGAL_PARAMETER);
    FAILS(SCIMemCpy(sequence, bytes, read_only, 0, 1, NONE, &error), SCI_ERR_ACCESS);
    OK(SCITransferBlock(half, 0, map, 0, 100, SCI_FLAG_ERROR_CHECK, &error));
    CHECK(first[0] == 5 && first[99] == 5 && first[100] == 0);
    FAILS(SCITransferBlock(half, 1, map, 0, 100, NONE, &error), SCI_ERR_OUT_OF_RANGE);
    FAILS(SCITransferBlock(half, 0, read_only, 0, 1, NONE, &error), SCI_ERR_ACCESS);
    OK(SCICacheSync(map, (void *)(uintptr_t)first, SIZE, NONE, &error));
    OK(SCICacheSync(map, (void *)(uintptr_t)first, SIZE, SCI_FLAG_CACHE_FLUSH | SCI_FLAG_CACHE_INVALIDATE, &error));
    OK(SCICacheSync(NULL, bytes, sizeof bytes, SCI_FLAG_CACHE_FLUSH | SCI_FLAG_CACHE_INVALIDATE, &error));
    FAILS(SCICacheSync(map, (void *)(uintptr_t)first, SIZE + 1, NONE, &error), SCI_ERR_OUT_OF_RANGE);
    SCIStoreBarrier(sequence, NONE);
    SCIFlush(sequence, NONE);
    SCIFlushReadBuffers(sequence);
    FAILS(SCIDisconnectSegment(remote, NONE, &error), SCI_ERR_BUSY);
    OK(SCIUnmapSegment(half, NONE, &error));
    OK(SCIUnmapSegment(read_only, NONE, &error));
    FAILS(SCIUnmapSegment(half, NONE, &error), SCI_ERR_ILLEGAL_PARAMETER);
}

static sci_callback_action_t on_ring(void *arg, sci_local_interrupt_t interrupt, sci_error_t status) {
    CHECK(arg == &id && interrupt != NULL && status == SCI_ERR_OK);
    /* A callback must not wait. */
    FAILS(SCIWaitForLocalSegmentEvent(own, NULL, NULL, WAIT, NONE, &error), SCI_ERR_ILLEGAL_OPERATION);
    *(volatile unsigned int *)arg = 0;
    return SCI_CALLBACK_CONTINUE;
}

static void interrupts(void) {
    sci_local_interrupt_t bell, second;
    sci_remote_interrupt_t ring;
    sci_local_data_interrupt_t bytes;
    sci_remote_data_interrupt_t to_bytes;
    unsigned int number = 0, data_number = id, length, at, kept = id;
    char text[8];

    OK(SCICreateInterrupt(sd, &bell, 0, &number, NULL, NULL, NONE, &error));
    FAILS(SCICreateInterrupt(sd, &second, 0, &number, NULL, NULL, SCI_FLAG_FIXED_INTNO, &error),
          SCI_ERR_SEGMENTID_USED);
    FAILS(SCICreateInterrupt(sd, &second, 0, &number, NULL, NULL, SCI_FLAG_SHARED_INT, &error),
          SCI_ERR_FLAG_NOT_IMPLEMENTED);
    FAILS(SCIConnectInterrupt(sd, &ring, 4, 0, number + 5000, WAIT, NONE, &error), SCI_ERR_NO_SUCH_INTNO);
    FAILS(SCIConnectDataInterrupt(sd, &to_bytes, 4, 0, number, WAIT, NONE, &error), SCI_ERR_NO_SUCH_INTNO);
    OK(SCIConnectInterrupt(sd, &ring, 4, 0, number, WAIT, NONE, &error));
    FAILS(SCIWaitForInterrupt(bell, 1, NONE, &error), SCI_ERR_TIMEOUT);
    OK(SCITriggerInterrupt(ring, NONE, &error));
    OK(SCIWaitForInterrupt(bell, WAIT, NONE, &error));
    OK(SCIDisconnectInterrupt(ring, NONE, &error));
    FAILS(SCITriggerInterrupt(ring, NONE, &error), SCI_ERR_ILLEGAL_PARAMETER);
    OK(SCIRemoveInterrupt(bell, NONE, &error));

    OK(SCICreateInterrupt(sd, &bell, 0, &number, on_ring, &id, SCI_FLAG_USE_CALLBACK, &error));
    OK(SCIConnectInterrupt(sd, &ring, 4, 0, number, WAIT, NONE, &error));
    OK(SCITriggerInterrupt(ring, NONE, &error));
    while (*(volatile unsigned int *)&id != 0)
        usleep(100);
    id = kept;
    OK(SCIDisconnectInterrupt(ring, NONE, &error));
    OK(SCIRemoveInterrupt(bell, NONE, &error));

    OK(SCICreateDataInterrupt(sd, &bytes, 0, &data_number, NULL, NULL, SCI_FLAG_FIXED_INTNO, &error));
    CHECK(data_number == id);
    OK(SCIConnectDataInterrupt(sd, &to_bytes, 4, 0, data_number, WAIT, NONE, &error));
    for (at = 0; at < 16; at++)
        OK(SCITriggerDataInterrupt(to_bytes, &at, sizeof at, NONE, &error));
    FAILS(SCITriggerDataInterrupt(to_bytes, &at, sizeof at, NONE, &error), SCI_ERR_NOSPC);
    FAILS(SCITriggerDataInterrupt(to_bytes, NULL, 1, NONE, &error), SCI_ERR_ILLEGAL_PARAMETER);
    for (at = 0; at < 15; at++) {
        length = sizeof text;
        OK(SCIWaitForDataInterrupt(bytes, text, &length, WAIT, NONE, &error));
        CHECK(length == sizeof at && memcmp(text, &at, sizeof at) == 0);
    }
    length = 2;
    FAILS(SCIWaitForDataInterrupt(bytes, text, &length, WAIT, NONE, &error), SCI_ERR_OVERFLOW);
    CHECK(length == sizeof at);
    FAILS(SCIWaitForDataInterrupt(bytes, text, &length, 0, NONE, &error), SCI_ERR_TIMEOUT);
    OK(SCIDisconnectDataInterrupt(to_bytes, NONE, &error));
    OK(SCIRemoveDataInterrupt(bytes, NONE, &error));
    FAILS(SCIRemoveDataInterrupt(bytes, NONE, &error), SCI_ERR_ILLEGAL_PARAMETER);
}

/* Both ends are memory of one segment: the connection is to this process's own. */
static void vectors(sci_dma_queue_t queue) {
    dis_dma_vec_t parts[DIS_DMA_MAX_VECLEN];
    unsigned char bytes[256];
    sci_sequence_t none = sequence;
    size_t at;

    for (at = 0; at < DIS_DMA_MAX_VECLEN; at++) {
        bytes[at] = (unsigned char)(at * 3 + 1);
        parts[at].size = 1;
        parts[at].local_offset = 2000 + at;
        parts[at].remote_offset = 3000 + 2 * at;
        parts[at].flags = 0xffffffffu;
    }
    OK(SCIMemCpy(none, bytes, map, 2000, 256, NONE, &error));
    OK(SCIStartDmaTransferVec(queue, own, remote, DIS_DMA_MAX_VECLEN, parts, NULL, NULL, SCI_FLAG_DMA_WAIT, &error));
    for (at = 0; at < 256; at++) {
        unsigned char found = 0;

        OK(SCIMemCpy(none, &found, map, 3000 + 2 * at, 1, SCI_FLAG_BLOCK_READ, &error));
        CHECK(found == bytes[at]);
    }
    FAILS(SCIStartDmaTransferVec(queue, own, remote, DIS_DMA_MAX_VECLEN + 1, parts, NULL, NULL, NONE, &error),
          SCI_ERR_MAX_ENTRIES);
    FAILS(SCIStartDmaTransferVec(queue, own, remote, 1, NULL, NULL, NULL, NONE, &error), SCI_ERR_ILLEGAL_PARAMETER);
    FAILS(SCIStartDmaTransferVec(queue, own, remote, 0, parts, NULL, NULL, NONE, &error), SCI_ERR_ILLEGAL_PARAMETER);
    parts[1].remote_offset = SIZE;
    FAILS(SCIStartDmaTransferVec(queue, own, remote, 2, parts, NULL, NULL, NONE, &error), SCI_ERR_OUT_OF_RANGE);
    CHECK(SCIDMAQueueState(queue) == SCI_DMAQUEUE_IDLE);
}

static void queues(void) {
    sci_dma_queue_t queue;

    /* For transfers one at a time. */
    OK(SCICreateDMAQueue(sd, &queue, 0, 0, NONE, &error));
    OK(SCIRemoveDMAQueue(queue, NONE, &error));
    OK(SCICreateDMAQueue(sd, &queue, 0, 1, NONE, &error));
    FAILS(SCIPostDMAQueue(queue, NULL, NULL, NONE, &error), SCI_ERR_ILLEGAL_OPERATION);
    FAILS(SCIAbortDMAQueue(queue, NONE, &error), SCI_ERR_ILLEGAL_OPERATION);
    FAILS(SCIEnqueueDMATransfer(queue, own, remote, 1, 0, SIZE, NONE, &error), SCI_ERR_OUT_OF_RANGE);
    OK(SCIEnqueueDMATransfer(queue, own, remote, 0, 100, 100, SCI_FLAG_DMA_GLOBAL, &error));
    FAILS(SCIEnqueueDMATransfer(queue, own, remote, 0, 100, 100, NONE, &error), SCI_ERR_MAX_ENTRIES);
    OK(SCIPostDMAQueue(queue, NULL, NULL, NONE, &error));
    CHECK(SCIWaitForDMAQueue(queue, WAIT, NONE, &error) == SCI_DMAQUEUE_DONE);
    OK(SCIResetDMAQueue(queue, NONE, &error));
    vectors(queue);
    OK(SCIResetDMAQueue(queue, NONE, &error));
    CHECK(SCIDMAQueueState(queue) == SCI_DMAQUEUE_IDLE && SCIDMAQueueState(BAD) == SCI_DMAQUEUE_ERROR);
    OK(SCIEnqueueDMATransfer(queue, own, remote, 0, 100, 100, NONE, &error));
    /* The connection ends: the sequence, a copy and the queue say so. */
    OK(SCISetSegmentUnavailable(own, 0, SCI_FLAG_FORCE_DISCONNECT, &error));
    CHECK(SCICheckSequence(sequence, NONE, &error) == SCI_SEQ_NOT_RETRIABLE && error == SCI_ERR_OK);
    FAILS(SCIMemCpy(sequence, &queue, map, 0, 8, SCI_FLAG_ERROR_CHECK, &error), SCI_ERR_TRANSFER_FAILED);
    OK(SCIPostDMAQueue(queue, NULL, NULL, NONE, &error));
    CHECK(SCIWaitForDMAQueue(queue, WAIT, NONE, &error) == SCI_DMAQUEUE_ERROR);
    OK(SCIResetDMAQueue(queue, NONE, &error));
    FAILS(SCIEnqueueDMATransfer(queue, own, remote, 0, 100, 100, NONE, &error), SCI_ERR_SEGMENT_NOT_CONNECTED);
    OK(SCIRemoveDMAQueue(queue, NONE, &error));
}

/* What others are connected to, or has sequences, is ended all the same: programs do not wait. */
static void partners(void) {
    sci_local_segment_t segment, next;
    sci_remote_segment_t far, other;
    sci_map_t here, there;
    sci_sequence_t order;
    sci_local_interrupt_t bell;
    sci_remote_interrupt_t ring;
    sci_local_data_interrupt_t bytes;
    sci_remote_data_interrupt_t to_bytes;
    volatile unsigned char *stored;
    unsigned char *seen;
    sci_desc_t device;
    unsigned int number = 0, data_number = 0;

    OK(SCIOpen(&device, NONE, &error));
    OK(SCICreateSegment(device, &segment, id + 3, SIZE, NULL, NULL, NONE, &error));
    OK(SCIPrepareSegment(segment, 0, NONE, &error));
    OK(SCISetSegmentAvailable(segment, 0, NONE, &error));
    OK(SCIConnectSegment(device, &far, 4, id + 3, 0, NULL, NULL, WAIT, NONE, &error));
    OK(seen = SCIMapLocalSegment(segment, &here, 0, SIZE, NULL, NONE, &error));
    seen[7] = 70;
    FAILS(SCIRemoveSegment(segment, NONE, &error), SCI_ERR_BUSY);
    OK(SCIUnmapSegment(here, NONE, &error));
    OK(SCIRemoveSegment(segment, NONE, &error));
    FAILS(SCIRemoveSegment(segment, NONE, &error), SCI_ERR_ILLEGAL_PARAMETER);
    /* The number is free, and the one who is connected keeps the memory. */
    OK(SCICreateSegment(device, &next, id + 3, SIZE, NULL, NULL, NONE, &error));
    FAILS(SCIConnectSegment(device, &other, 4, id + 3, 0, NULL, NULL, WAIT, NONE, &error), SCI_ERR_NO_SUCH_SEGMENT);
    OK(stored = SCIMapRemoteSegment(far, &there, 0, SIZE, NULL, NONE, &error));
    CHECK(stored[7] == 70);
    OK(SCICreateMapSequence(there, &order, NONE, &error));
    CHECK(SCIStartSequence(order, NONE, &error) == SCI_SEQ_OK);
    stored[7] = 71;
    CHECK(SCICheckSequence(order, NONE, &error) == SCI_SEQ_OK);
    FAILS(SCIDisconnectSegment(far, NONE, &error), SCI_ERR_BUSY);
    OK(SCIUnmapSegment(there, NONE, &error));
    CHECK(SCICheckSequence(order, NONE, &error) == SCI_SEQ_NOT_RETRIABLE && error == SCI_ERR_OK);
    SCIFlush(order, NONE);
    OK(SCIDisconnectSegment(far, NONE, &error));
    CHECK(SCIGetRemoteSegmentId(far) == id + 3 && SCIGetRemoteSegmentSize(far) == 0);
    OK(SCIRemoveSequence(order, NONE, &error));
    FAILS(SCIRemoveSequence(order, NONE, &error), SCI_ERR_ILLEGAL_PARAMETER);

    OK(SCICreateInterrupt(device, &bell, 0, &number, NULL, NULL, NONE, &error));
    OK(SCIConnectInterrupt(device, &ring, 4, 0, number, WAIT, NONE, &error));
    OK(SCIRemoveInterrupt(bell, NONE, &error));
    FAILS(SCITriggerInterrupt(ring, NONE, &error), SCI_ERR_NOT_CONNECTED);
    OK(SCIDisconnectInterrupt(ring, NONE, &error));
    OK(SCICreateDataInterrupt(device, &bytes, 0, &data_number, NULL, NULL, NONE, &error));
    OK(SCIConnectDataInterrupt(device, &to_bytes, 4, 0, data_number, WAIT, NONE, &error));
    OK(SCIRemoveDataInterrupt(bytes, NONE, &error));
    FAILS(SCITriggerDataInterrupt(to_bytes, &number, 4, NONE, &error), SCI_ERR_NOT_CONNECTED);
    OK(SCIDisconnectDataInterrupt(to_bytes, NONE, &error));

    /* What it has made lives on. */
    OK(SCIClose(device, NONE, &error));
    CHECK(SCIGetLocalSegmentId(next) == id + 3);
    OK(SCIRemoveSegment(next, NONE, &error));
}

/* A child of a fork begins anew. */
static void forks(void) {
    int status;
    pid_t child = fork();

    CHECK(child >= 0);
    if (child == 0) {
        sci_desc_t fresh;

        FAILS(SCIPrepareSegment(own, 0, NONE, &error), SCI_ERR_NOT_INITIALIZED);
        CHECK(SCICheckSequence(sequence, NONE, &error) == SCI_SEQ_NOT_RETRIABLE);
        OK(SCIInitialize(NONE, &error));
        OK(SCIOpen(&fresh, NONE, &error));
        FAILS(SCIPrepareSegment(own, 0, NONE, &error), SCI_ERR_ILLEGAL_PARAMETER);
        OK(SCIClose(fresh, NONE, &error));
        SCITerminate();
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(int argc, char **argv) {
    sci_desc_t second;

    CHECK(argc == 4);
    id = (unsigned int)atoi(argv[2]);
    before_initialize();
    devices();
    hints();
    segments();
    connects();
    broadcasts();
    maps();
    interrupts();
    partners();
    FORKS(forks);
    queues();
    OK(SCIOpen(&second, NONE, &error));
    OK(SCIClose(second, NONE, &error));
    OK(SCIRemoveSequence(sequence, NONE, &error));
    FAILS(SCIRemoveSequence(sequence, NONE, &error), SCI_ERR_ILLEGAL_PARAMETER);
    OK(SCIUnmapSegment(map, NONE, &error));
    OK(SCIDisconnectSegment(remote, NONE, &error));
    FAILS(SCIDisconnectSegment(remote, NONE, &error), SCI_ERR_ILLEGAL_PARAMETER);
    OK(SCIRemoveSegment(own, NONE, &error));
    FAILS(SCIRemoveSegment(own, NONE, &error), SCI_ERR_ILLEGAL_PARAMETER);
    OK(SCIClose(sd, NONE, &error));
    FAILS(SCIClose(sd, NONE, &error), SCI_ERR_ILLEGAL_PARAMETER);
    CHECK(strstr(SCIGetErrorString(SCI_ERR_BUSY), "in use") != NULL);
    CHECK(strstr(SCIGetErrorString(SCI_ERR_ILLEGAL_FLAG), "flag") != NULL);
    CHECK(strcmp(SCIGetErrorString(SCI_ERR_OK), "success") == 0);
    CHECK(strcmp(SCIGetErrorString((sci_error_t)1), "no code of SISCI") == 0);
    SCITerminate();
    FAILS(SCIOpen(&sd, NONE, &error), SCI_ERR_NOT_INITIALIZED);
    puts("codes");
    return 0;
}
