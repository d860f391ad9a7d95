/*
 * Random calls of libvipl: vipl.h.
 *
 * Not called, by the contract: a descriptor that is posted is not touched and not posted again;
 * waits without a limit; addresses shorter than their lengths say.
 */

#include "vipl_calls.h"

VIP_NIC_HANDLE nics[NICS];
static VIP_PROTECTION_HANDLE tags[NICS];
VIP_VI_HANDLE vis[VIS];
unsigned nic_of[VIS];
VIP_CQ_HANDLE queues[QUEUES];
VIP_MEM_HANDLE handles[NICS];
static VIP_MEM_HANDLE others[4];
unsigned char descriptors[SLOTS * SLOT + BYTES] __attribute__((aligned(4096)));
unsigned char *const data = descriptors + SLOTS * SLOT;

static unsigned a_place(void) {
    return below(NICS);
}

static VIP_NIC_HANDLE a_nic(unsigned at) {
    return one_in(200) ? (VIP_NIC_HANDLE)(uintptr_t)draw() : nics[at];
}

VIP_VI_HANDLE a_vi(void) {
    return one_in(200) ? (VIP_VI_HANDLE)(uintptr_t)draw() : vis[below(VIS)];
}

VIP_CQ_HANDLE a_queue(void) {
    return one_in(200) ? (VIP_CQ_HANDLE)(uintptr_t)draw() : queues[below(QUEUES - !one_in(9))];
}

static VIP_VI_ATTRIBUTES attributes_of(unsigned nic) {
    static const VIP_RELIABILITY_LEVEL levels[] = {VIP_SERVICE_UNRELIABLE, VIP_SERVICE_RELIABLE_DELIVERY,
                                                   VIP_SERVICE_RELIABLE_RECEPTION};
    VIP_VI_ATTRIBUTES attributes = {levels[one_in(8) ? below(3) : 1], 65536, NULL, tags[nic], VIP_TRUE, VIP_FALSE};

    if (one_in(100))
        attributes.ReliabilityLevel = (VIP_RELIABILITY_LEVEL)draw();
    if (one_in(100))
        attributes.MaxTransferSize = draw();
    if (one_in(100))
        attributes.Ptag = (VIP_PROTECTION_HANDLE)(uintptr_t)draw();
    return attributes;
}

static void disconnect(void) {
    CALL(VipDisconnect, a_vi());
}

/* Takes all back, so that the VI can go. */
static void destroy(unsigned at) {
    VIP_DESCRIPTOR *descriptor = NULL;

    CALL(VipDisconnect, vis[at]);
    while (is_done(CALL_GOOD(VipSendDone, is_done(result_), VipSendDone(vis[at], &descriptor))) && descriptor) {
        note_done(descriptor);
        descriptor = NULL;
    }
    while (is_done(CALL_GOOD(VipRecvDone, is_done(result_), VipRecvDone(vis[at], &descriptor))) && descriptor) {
        note_done(descriptor);
        descriptor = NULL;
    }
    if (CALL(VipDestroyVi, vis[at]) == VIP_SUCCESS && !one_in(10))
        vis[at] = NULL;
}

static void create_vi(void) {
    unsigned at = below(VIS), nic = a_place();
    VIP_VI_ATTRIBUTES attributes = attributes_of(nic);
    VIP_CQ_HANDLE send = one_in(3) ? queues[nic] : NULL, receive = one_in(3) ? queues[nic] : NULL;
    VIP_VI_HANDLE vi = NULL;

    if (vis[at])
        destroy(at);
    if (CALL(VipCreateVi, a_nic(nic), one_in(300) ? NULL : &attributes, send, receive, one_in(300) ? NULL : &vi) ==
        VIP_SUCCESS) {
        vis[at] = vi;
        nic_of[at] = nic;
    }
}

static void ask_vi(void) {
    VIP_VI_STATE state;
    VIP_VI_ATTRIBUTES attributes;
    VIP_BOOLEAN is_empty[2];
    unsigned at = below(VIS);

    CALL(VipQueryVi, one_in(200) ? a_vi() : vis[at], one_in(100) ? NULL : &state, &attributes, is_empty, is_empty + 1);
    attributes = attributes_of(nic_of[at]);
    if (one_in(3))
        CALL(VipSetViAttributes, vis[at], one_in(100) ? NULL : &attributes);
}

static void register_memory(void) {
    unsigned nic = a_place(), at = below(4);
    VIP_MEM_ATTRIBUTES attributes = {tags[nic], (VIP_BOOLEAN)below(2), (VIP_BOOLEAN)below(2)};
    VIP_MEM_HANDLE handle = 0;

    CALL(VipDeregisterMem, nics[nic], data, others[at]);
    if (one_in(50))
        attributes.Ptag = (VIP_PROTECTION_HANDLE)(uintptr_t)draw();
    if (CALL(VipRegisterMem, a_nic(nic), one_in(100) ? NULL : data, one_in(100) ? 0 : 1 + length_to(BYTES - 1),
             one_in(300) ? NULL : &attributes, one_in(300) ? NULL : &handle) == VIP_SUCCESS)
        others[at] = handle;
    CALL(VipQueryMem, nics[nic], data, others[below(4)], &attributes);
    attributes.Ptag = tags[nic];
    CALL(VipSetMemAttributes, nics[nic], data, others[below(4)], &attributes);
}

static void create_queue(void) {
    unsigned at = below(NICS);
    VIP_CQ_HANDLE queue = NULL;

    if (queues[at] && CALL(VipDestroyCQ, queues[at]) != VIP_SUCCESS) {
        CALL(VipResizeCQ, queues[at], one_in(50) ? draw() : 1 + below(500));
        return;
    }
    queues[at] = NULL;
    if (CALL(VipCreateCQ, a_nic(at), one_in(50) ? draw() : 16 + below(200), one_in(300) ? NULL : &queue) == VIP_SUCCESS)
        queues[at] = queue;
}

/* They run on a thread of the library. */
static void on_completion(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_DESCRIPTOR *descriptor) {
    (void)context, (void)nic, (void)vi;
    note_done(descriptor);
}

static void on_entry(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_BOOLEAN is_receive) {
    (void)context, (void)nic, (void)vi, (void)is_receive;
}

static void on_fault(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *fault) {
    (void)context;
    PROMISE(fault->ErrorCode <= VIP_ERROR_CATASTROPHIC);
}

static void notify(void) {
    switch (below(4)) {
    case 0:
        CALL(VipSendNotify, a_vi(), NULL, on_completion);
        break;
    case 1:
        CALL(VipRecvNotify, a_vi(), NULL, on_completion);
        break;
    case 2:
        CALL(VipCQNotify, a_queue(), NULL, one_in(50) ? NULL : on_entry);
        break;
    default:
        CALL(VipErrorCallback, a_nic(a_place()), NULL, one_in(2) ? on_fault : NULL);
    }
}

static void names(void) {
    unsigned nic = a_place();
    ADDRESS address = address_at(nic, "");
    char name[256];
    VIP_ULONG length = one_in(4) ? below(sizeof name) : sizeof name;

    CALL(VipNSInit, a_nic(nic), NULL);
    CALL(VipNSGetHostByName, nics[nic], one_in(50) ? NULL : "localhost", &address.address, below(2));
    CALL(VipNSGetHostByAddr, nics[nic], &address.address, name, one_in(100) ? NULL : &length);
    if (one_in(3))
        CALL(VipNSShutdown, nics[nic]);
    CALL(VipQuerySystemManagementInfo, nics[nic], draw(), name);
}

static void tag(void) {
    unsigned nic = a_place();
    VIP_PROTECTION_HANDLE of = NULL;

    if (CALL(VipCreatePtag, a_nic(nic), one_in(200) ? NULL : &of) == VIP_SUCCESS)
        CALL(VipDestroyPtag, nics[nic], of);
    CALL(VipDestroyPtag, nics[nic], one_in(2) ? of : tags[nic]);
}

static void open_nic(unsigned at) {
    VIP_MEM_ATTRIBUTES attributes = {NULL, VIP_TRUE, VIP_TRUE};

    if (CALL(VipOpenNic, "/dev/via0", &nics[at]) != VIP_SUCCESS)
        return;
    CALL(VipCreatePtag, nics[at], &tags[at]);
    attributes.Ptag = tags[at];
    CALL(VipRegisterMem, nics[at], descriptors, sizeof descriptors, &attributes, &handles[at]);
    CALL(VipErrorCallback, nics[at], NULL, on_fault);
    memcpy(board->entries[process][8], &(void *){data}, 8);
    memcpy(board->entries[process][8] + 8 + 4 * at, &handles[at], 4);
}

/* All of a NIC goes, then the NIC. */
static void reopen(void) {
    unsigned nic = a_place(), at;

    for (at = 0; at < VIS; at++)
        if (vis[at] && nic_of[at] == nic)
            destroy(at);
    if (queues[nic] && CALL(VipDestroyCQ, queues[nic]) == VIP_SUCCESS)
        queues[nic] = NULL;
    for (at = 0; at < 4; at++)
        CALL(VipDeregisterMem, nics[nic], data, others[at]);
    CALL(VipDeregisterMem, nics[nic], descriptors, handles[nic]);
    CALL(VipDestroyPtag, nics[nic], tags[nic]);
    if (CALL(VipCloseNic, nics[nic]) == VIP_SUCCESS)
        open_nic(nic);
    else
        CALL(VipRegisterMem, nics[nic], descriptors, sizeof descriptors,
             &(VIP_MEM_ATTRIBUTES){tags[nic], VIP_TRUE, VIP_TRUE}, &handles[nic]);
    for (at = 0; at < NICS; at++)
        create_queue();
    for (at = 0; at < VIS; at++) {
        create_vi();
        connect_peers();
    }
}

/* Calls on the NICs of the parent, which are refused. */
static void call_parents(void) {
    static void (*const calls[])(void) = {post, take, take_from_queue, connect_peers, disconnect, ask_vi,
                                          register_memory, notify, names, tag, reopen};
    unsigned at;

    for (at = 0; at < 20; at++)
        calls[below(sizeof calls / sizeof *calls)]();
}

/* A child opens a NIC of its own. */
static void as_child(void) {
    VIP_NIC_HANDLE nic = NULL;
    VIP_PROTECTION_HANDLE of;

    if (one_in(2))
        call_parents();
    if (CALL(VipOpenNic, "/dev/via0", &nic) != VIP_SUCCESS)
        return;
    PROMISE(nic != nics[0] && nic != nics[1]);
    call_parents();
    CALL(VipCreatePtag, nic, &of);
    CALL(VipDestroyPtag, nic, of);
    CALL(VipCloseNic, nic);
}

static void fork_child(void) {
    in_fork(as_child);
}

const struct operation operations[] = {
    {post, 120},          {take, 90},         {take_from_queue, 20}, {connect_some, 6}, {disconnect, 1},
    {create_vi, 2},       {ask_vi, 20},       {register_memory, 8},  {create_queue, 1}, {notify, 1},
    {names, 1},           {tag, 3},           {reopen, 1},           {fork_child, 1},   {NULL, 0},
};

static const char both[] = "the server and the client of one process would each wait for the other one";

const struct left_out left_out[] = {
    {AT_VipQuerySystemManagementInfo, "", 0, "the library has no such information"},
    {AT_VipConnectWait, NULL, 2, both},
    {AT_VipConnectAccept, NULL, 2, both},
    {AT_VipConnectReject, NULL, 2, both},
    {AT_VipConnectRequest, NULL, 2, both},
    {0, NULL, 0, NULL},
};

void set_up(void) {
    unsigned at;

    if (process == 0)
        *(unsigned *)(void *)board->entries[0][9] = (unsigned)getpid();
    for (at = 0; at < NICS; at++)
        open_nic(at);
    for (at = 0; at < 4; at++)
        create_queue();
    for (at = 0; at < 2 * VIS; at++)
        create_vi();
}

void tear_down(void) {
    unsigned at;

    for (at = 0; at < VIS; at++)
        if (vis[at])
            destroy(at);
    for (at = 0; at < NICS; at++)
        CALL(VipCloseNic, nics[at]);
}
