/*
 * Random calls of libsisci: sisci_api.h, with the symbols of programs with threads (_REENTRANT) or
 * those of other programs; these also by Scali's interface, scasci.h.
 *
 * Not called, by the contract: maps at an address of the program's choice, which would hide its own
 * memory; loads and stores of what was unmapped; waits without a limit; calls of several threads.
 */

#include "calls.h"

#include <sisci_api.h>
#ifndef _REENTRANT
#include <scasci.h>
#endif

#define DEVICES 2
#define SEGMENTS 6
#define MAPS 8
#define OTHERS 4
#define BYTES 65536u

static sci_desc_t devices[DEVICES];
static sci_local_segment_t segments[SEGMENTS];
static sci_remote_segment_t remotes[SEGMENTS];
static struct {
    sci_map_t map;
    volatile unsigned char *start;
    size_t size;
} maps[MAPS];
static sci_sequence_t sequences[OTHERS];
static sci_dma_queue_t queues[OTHERS];
static sci_local_interrupt_t interrupts[OTHERS];
static sci_remote_interrupt_t remote_interrupts[OTHERS];
static sci_local_data_interrupt_t data_interrupts[OTHERS];
static sci_remote_data_interrupt_t remote_data_interrupts[OTHERS];
static unsigned char memory[BYTES] __attribute__((aligned(4096)));
static unsigned int first_id, node = 4;
static sci_error_t error;
static unsigned long sum;

/* Makes a call whose last argument is &error. */
#define DO(function, ...)                                                                                              \
    __extension__({                                                                                                    \
        uint64_t number_ = enter(AT_##function);                                                                       \
        error = SCI_ERR_SYSTEM;                                                                                        \
        function(__VA_ARGS__);                                                                                         \
        leave(number_, AT_##function, error == SCI_ERR_OK);                                                            \
        error == SCI_ERR_OK;                                                                                           \
    })
/* One that has a result or nothing but no error. */
#define ASK(function, ...)                                                                                             \
    do {                                                                                                               \
        uint64_t number_ = enter(AT_##function);                                                                       \
        function(__VA_ARGS__);                                                                                         \
        leave(number_, AT_##function, 1);                                                                              \
    } while (0)
/* One of a pool; sometimes NULL, or no handle of the library. */
#define ONE_OF(pool)                                                                                                   \
    (one_in(200) ? (__typeof__(*(pool)))(uintptr_t)draw() : one_in(200) ? NULL : (pool)[below(sizeof(pool) / sizeof *(pool))])

static unsigned int flags(unsigned int maybe) {
    unsigned int of = one_in(3) ? maybe : SCI_NO_FLAGS;

    return one_in(100) ? (unsigned int)draw() & ~SCI_FLAG_FIXED_MAP_ADDR : of;
}

static unsigned int an_id(void) {
    int of = processes == 2 && one_in(2) ? !process : process;

    return one_in(100) ? (unsigned int)draw() : first_id + (unsigned)of * 16 + below(SEGMENTS);
}

static unsigned int a_node(void) {
    return one_in(50) ? below(32) : node;
}

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

static sci_callback_action_t on_transfer(void *arg, sci_dma_queue_t queue, sci_error_t status) {
    (void)arg, (void)queue;
    return status == SCI_ERR_OK ? SCI_CALLBACK_CONTINUE : SCI_CALLBACK_CANCEL;
}

static sci_callback_action_t on_interrupt(void *arg, sci_local_interrupt_t interrupt, sci_error_t status) {
    (void)arg, (void)interrupt, (void)status;
    return SCI_CALLBACK_CONTINUE;
}

static sci_callback_action_t on_data(void *arg, sci_local_data_interrupt_t interrupt, void *data, unsigned int length,
                                     sci_error_t status) {
    (void)arg, (void)interrupt, (void)data, (void)status;
    return length % 2 ? SCI_CALLBACK_CANCEL : SCI_CALLBACK_CONTINUE;
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

static void create_segment(void) {
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

static void change_segment(void) {
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
        break;
    case 3:
        ASK(SCIGetLocalSegmentId, segment);
        break;
    default:
        DO(SCISetSegmentAvailable, segment, 0, SCI_NO_FLAGS, &error);
    }
}

static void connect_segment(void) {
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

static void wait_for_segment(void) {
    unsigned int from, adapter;
    sci_error_t status;

    if (one_in(2))
        DO(SCIWaitForLocalSegmentEvent, ONE_OF(segments), &from, one_in(50) ? NULL : &adapter, below(2), SCI_NO_FLAGS, &error);
    else
        DO(SCIWaitForRemoteSegmentEvent, ONE_OF(remotes), one_in(50) ? NULL : &status, below(2), SCI_NO_FLAGS, &error);
}

static void map(void) {
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

/* A load and a store: maps never fault. */
static void touch(void) {
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

static void sequence(void) {
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

static void copy(void) {
    size_t size = 8 * (size_t)length_to(200), offset = 8 * (size_t)length_to(40);

    if (one_in(100))
        offset = (size_t)draw();
    if (one_in(3))
        DO(SCITransferBlock, a_map(), 0, a_map(), offset, one_in(100) ? (size_t)draw() : size, SCI_NO_FLAGS, &error);
    else
        DO(SCIMemCpy, ONE_OF(sequences), memory, a_map(), offset, size, flags(one_in(2) ? SCI_FLAG_BLOCK_READ : SCI_FLAG_ERROR_CHECK),
           &error);
}

/*
 * Posts as many transfers as a queue takes, and ends it before they have ended: as a rule, where
 * they go to another process by a network.
 */
static void abort_dma(void) {
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

static void dma(void) {
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

/* The numbers of interrupts on the board: at 0 those without bytes, at 1 those with. */
static unsigned int *number_at(int of, unsigned kind, unsigned at) {
    return (unsigned int *)(void *)board->entries[of][kind] + at;
}

static unsigned int a_number(unsigned kind) {
    int of = processes == 2 && one_in(2) ? !process : process;

    return one_in(50) ? (unsigned int)draw() : *number_at(of, kind, below(OTHERS));
}

static void interrupt(void) {
    unsigned at = below(OTHERS);
    unsigned int number = first_id + below(100);
    int calls_back = one_in(3);

    switch (below(9)) {
    case 0:
        DO(SCIRemoveInterrupt, interrupts[at], SCI_NO_FLAGS, &error);
        if (DO(SCICreateInterrupt, ONE_OF(devices), &interrupts[at], 0, one_in(300) ? NULL : &number,
               calls_back ? on_interrupt : NULL, NULL, calls_back ? SCI_FLAG_USE_CALLBACK : flags(SCI_FLAG_FIXED_INTNO),
               &error))
            *number_at(process, 0, at) = number;
        break;
    case 1:
    case 2:
        DO(SCIDisconnectInterrupt, remote_interrupts[at], SCI_NO_FLAGS, &error);
        DO(SCIConnectInterrupt, ONE_OF(devices), &remote_interrupts[at], a_node(), 0, a_number(0), 20, SCI_NO_FLAGS, &error);
        break;
    case 3:
        DO(SCIWaitForInterrupt, ONE_OF(interrupts), below(3), SCI_NO_FLAGS, &error);
        break;
    default:
        DO(SCITriggerInterrupt, ONE_OF(remote_interrupts), SCI_NO_FLAGS, &error);
    }
}

static void data_interrupt(void) {
    unsigned at = below(OTHERS);
    unsigned int number = first_id + below(100), length = length_to(500);
    static unsigned char bytes[1024];
    int calls_back = one_in(3);

    switch (below(9)) {
    case 0:
        DO(SCIRemoveDataInterrupt, data_interrupts[at], SCI_NO_FLAGS, &error);
        if (DO(SCICreateDataInterrupt, ONE_OF(devices), &data_interrupts[at], 0, &number, calls_back ? on_data : NULL, NULL,
               calls_back ? SCI_FLAG_USE_CALLBACK : flags(SCI_FLAG_FIXED_INTNO), &error))
            *number_at(process, 1, at) = number;
        break;
    case 1:
    case 2:
        DO(SCIDisconnectDataInterrupt, remote_data_interrupts[at], SCI_NO_FLAGS, &error);
        DO(SCIConnectDataInterrupt, ONE_OF(devices), &remote_data_interrupts[at], a_node(), 0, a_number(1), 20, SCI_NO_FLAGS,
           &error);
        break;
    case 3:
    case 4:
        DO(SCIWaitForDataInterrupt, ONE_OF(data_interrupts), bytes, one_in(300) ? NULL : &length, below(3), SCI_NO_FLAGS,
           &error);
        break;
    default:
        DO(SCITriggerDataInterrupt, ONE_OF(remote_data_interrupts), one_in(300) ? NULL : memory, length, SCI_NO_FLAGS, &error);
    }
}

static void ask(void) {
    char text[80];
    unsigned int own = 0;
    sci_query_string_t version = {text, below(81)};
    sci_query_adapter_t adapter = {0, 0, one_in(9) ? below(4) : SCI_Q_ADAPTER_NODEID, &own};
    uint64_t number = enter(AT_SCIGetErrorString);
    const char *sentence = SCIGetErrorString((sci_error_t)(0x40000900 + below(0x110)));

    leave(number, AT_SCIGetErrorString, sentence != NULL);
    if (DO(SCIGetLocalNodeId, one_in(50) ? 1 : 0, &own, SCI_NO_FLAGS, &error))
        node = own;
    DO(SCIProbeNode, ONE_OF(devices), 0, a_node(), SCI_NO_FLAGS, &error);
    if (one_in(2))
        DO(SCIQuery, SCI_Q_API, &version, SCI_NO_FLAGS, &error);
    else
        DO(SCIQuery, SCI_Q_ADAPTER, &adapter, flags(0), &error);
}

static void open_device(void) {
    unsigned at = below(DEVICES);
    sci_desc_t other = NULL;

    /* One that has nothing. */
    if (one_in(2) && DO(SCIOpen, &other, SCI_NO_FLAGS, &error))
        DO(SCIClose, other, SCI_NO_FLAGS, &error);

    if (!devices[at] || DO(SCIClose, devices[at], SCI_NO_FLAGS, &error))
        DO(SCIOpen, one_in(100) ? NULL : &devices[at], SCI_NO_FLAGS, &error);
}

#ifndef _REENTRANT
static PSHARABLE chunks[OTHERS];
static PCONNECTOR connectors[OTHERS];

/* Scali's calls are made of those of SISCI, which count. */
static void scali(void) {
    unsigned at = below(OTHERS);
    ICM_STATUS status;
    void *address;

    /* Set anew where the devices were closed. */
    scasci_desc = devices[0];
    (void)enter(AT_SCICreateSegment);
    switch (below(9)) {
    case 0:
        if (chunks[at])
            SciCloseLocalChunk(&chunks[at], &status);
        if (!chunks[at])
            SciAllocateLocalChunk(&chunks[at], 1 + length_to(BYTES - 1), LMAP_CONSISTENT, &status);
        break;
    case 1:
        SciMapLocalChunk(chunks[at], length_to(4000), 0, MP_READWRITE, &status, &address);
        break;
    case 2:
        SciOffer(chunks[at], 0, first_id & 0x7fff, at, LMAP_CONSISTENT, &status);
        break;
    case 3:
        SciWithdraw(chunks[at], 0, first_id & 0x7fff, at, &status);
        break;
    case 4:
        if (connectors[at])
            SciDisconnectFromRemoteChunk(&connectors[at], &status);
        break;
    case 5:
        if (!connectors[at])
            SciConnectToRemoteChunk(&connectors[at], 0, node, first_id & 0x7fff, below(OTHERS), &status);
        break;
    case 6:
        if (connectors[at])
            SciMapRemoteChunk(connectors[at], length_to(4000), 0, RMAP_GATHERING, LMAP_CONSISTENT, MP_READWRITE, &status, &address);
        break;
    case 7:
        SciFlush(0);
        break;
    default:
        sum += SciGetNodeId(0) + SciGetNumberOfAdapters() + SciGetSizeOfRemoteChunk(connectors[at]);
    }
}
#endif

static void terminate(void) {
    unsigned at;

    if (!one_in(4)) {
        open_device();
        return;
    }
    for (at = 0; at < MAPS; at++)
        maps[at].start = NULL;
    ASK(SCITerminate);
    if (one_in(2)) {
        create_segment();
        connect_segment();
    }
    DO(SCIInitialize, one_in(20) ? (unsigned int)draw() : SCI_NO_FLAGS, &error);
    DO(SCIInitialize, SCI_NO_FLAGS, &error);
    for (at = 0; at < DEVICES; at++)
        DO(SCIOpen, &devices[at], SCI_NO_FLAGS, &error);
}

static void as_child(void) {
    unsigned at;

    for (at = 0; at < 10; at++) {
        create_segment();
        map();
        dma();
        interrupt();
    }
}

static void fork_child(void) {
    in_fork(as_child);
}

const struct operation operations[] = {
    {create_segment, 10}, {change_segment, 30}, {connect_segment, 12}, {wait_for_segment, 8}, {map, 30},
    {touch, 60},          {sequence, 60},       {copy, 40},            {dma, 60},             {interrupt, 30},
    {data_interrupt, 30}, {ask, 10},            {terminate, 1},     {abort_dma, 1},        {fork_child, 1},
#ifndef _REENTRANT
    {scali, 40},
#endif
    {NULL, 0},
};

const struct left_out left_out[] = {
    {AT_SCIRegisterSegmentMemory, "", 0, "the library refuses it always"},
    {AT_SCIAbortDMAQueue, NULL, 2, "a transfer within a process has ended when the post returns"},
    {0, NULL, 0, NULL},
};

void set_up(void) {
    unsigned at;

    first_id = (unsigned)(process == 0 ? getpid() : getppid()) << 5;
    DO(SCIInitialize, SCI_NO_FLAGS, &error);
    for (at = 0; at < DEVICES; at++)
        DO(SCIOpen, &devices[at], SCI_NO_FLAGS, &error);
}

void tear_down(void) {
    ASK(SCITerminate);
}
