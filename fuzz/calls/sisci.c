/*
 * Random calls of libsisci: sisci_api.h, with the symbols of programs with threads (_REENTRANT) or
 * those of other programs; these also by Scali's interface, scasci.h.
 *
 * Not called, by the contract: maps at an address of the program's choice, which would hide its own
 * memory; loads and stores of what was unmapped; waits without a limit; calls of several threads.
 */

#include "sisci_calls.h"

sci_desc_t devices[DEVICES];
sci_local_segment_t segments[SEGMENTS];
sci_remote_segment_t remotes[SEGMENTS];
unsigned char memory[BYTES] __attribute__((aligned(4096)));
unsigned int first_id, node = 4;
unsigned long sum;

unsigned int flags(unsigned int maybe) {
    unsigned int of = one_in(3) ? maybe : SCI_NO_FLAGS;

    return one_in(100) ? (unsigned int)draw() & ~SCI_FLAG_FIXED_MAP_ADDR : of;
}

unsigned int an_id(void) {
    int of = processes == 2 && one_in(2) ? !process : process;

    return one_in(100) ? (unsigned int)draw() : first_id + (unsigned)of * 16 + below(SEGMENTS);
}

unsigned int a_node(void) {
    return one_in(50) ? below(32) : node;
}

static void ask(void) {
    char text[80];
    unsigned int own = 0;
    dis_nodeId_list_t nodes;
    dis_virt_adapter_t kind;
    sci_query_string_t version = {text, below(81)};
    sci_query_adapter_t adapter = {0, 0, one_in(9) ? below(4) : SCI_Q_ADAPTER_NODEID, &own};
    uint64_t number = enter(AT_SCIGetErrorString);
    const char *sentence = SCIGetErrorString((sci_error_t)(0x40000900 + below(0x110)));

    leave(number, AT_SCIGetErrorString, sentence != NULL);
    if (DO(SCIGetLocalNodeId, one_in(50) ? 1 : 0, &own, SCI_NO_FLAGS, &error))
        node = own;
    DO(SCIProbeNode, ONE_OF(devices), 0, a_node(), SCI_NO_FLAGS, &error);
    DO(SCIGetNodeIdByAdapterName, one_in(50) ? NULL : one_in(2) ? "localhost" : "nobody", one_in(50) ? NULL : &nodes,
       one_in(50) ? NULL : &kind, flags(0), &error);
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

static void terminate(void) {
    unsigned at;

    if (!one_in(4)) {
        open_device();
        return;
    }
    forget_maps();
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
    {AT_SCIAttachPhysicalMemory, "", 0, "the library refuses it always"},
    {AT_SCIAbortDMAQueue, "sock tcp", 2, "a transfer over shared memory has ended, as a rule, when the post returns"},
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
