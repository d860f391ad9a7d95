/*
 * Walks through the calls of VIPL, two NICs in one process.
 */

#include "sides.h"

#define BUFFER 1024
#define ERRORS(status) ((status)&VIP_STATUS_ERROR_MASK)

static const VIP_RELIABILITY_LEVEL LEVELS[] = {VIP_SERVICE_UNRELIABLE, VIP_SERVICE_RELIABLE_DELIVERY,
                                               VIP_SERVICE_RELIABLE_RECEPTION};

static void nics(void) {
    VIP_NIC_HANDLE one, other;
    VIP_NIC_ATTRIBUTES attributes;
    CHECK_OK(VipOpenNic("/dev/clanvi0", &one));
    CHECK_OK(VipOpenNic("/dev/clanvi0", &other));
    CHECK(one != other);
    CHECK_OK(VipQueryNic(one, &attributes));
    CHECK(attributes.Name[0] != 0 && attributes.LocalNicAddress != NULL);
    CHECK(attributes.NicAddressLen == 4 || attributes.NicAddressLen == 16);
    CHECK(attributes.MaxDiscriminatorLen >= 12 && attributes.MaxTransferSize >= 65536);
    CHECK(attributes.MaxSegmentsPerDesc >= 252 && attributes.MaxDescriptorsPerQueue >= 1024);
    CHECK(attributes.ReliabilityLevelSupport == 7 && attributes.ThreadSafe == VIP_TRUE);
    CHECK_CODE(VipOpenNic(NULL, &one), VIP_INVALID_PARAMETER);
    CHECK_CODE(VipQueryNic(NULL, &attributes), VIP_INVALID_PARAMETER);
    CHECK_CODE(VipQueryNic(one, NULL), VIP_INVALID_PARAMETER);
    CHECK_CODE(VipQuerySystemManagementInfo(one, 1, NULL), VIP_ERROR_NOT_SUPPORTED);
    CHECK_OK(VipCloseNic(one));
    CHECK_CODE(VipCloseNic(one), VIP_INVALID_PARAMETER);
    CHECK_OK(VipCloseNic(other));
}

static void names(void) {
    VIP_NIC_HANDLE nic;
    VIP_NIC_ATTRIBUTES attributes;
    ADDRESS address;
    char name[256];
    VIP_ULONG length = sizeof(name);
    CHECK_OK(VipOpenNic("", &nic));
    CHECK_OK(VipQueryNic(nic, &attributes));
    CHECK_CODE(VipNSGetHostByName(nic, "localhost", &address.address, 0), VIP_ERROR_NAMESERVICE);
    CHECK_CODE(VipNSShutdown(nic), VIP_ERROR_NAMESERVICE);
    CHECK_OK(VipNSInit(nic, NULL));
    if (attributes.NicAddressLen == 4) {
        CHECK_OK(VipNSGetHostByName(nic, "localhost", &address.address, 0));
        CHECK(address.address.HostAddressLen == 4 && address.address.HostAddress[0] == 127);
        CHECK_CODE(VipNSGetHostByName(nic, "::1", &address.address, 0), VIP_ERROR_NAMESERVICE);
    } else {
        CHECK_OK(VipNSGetHostByName(nic, "::1", &address.address, 0));
        CHECK(address.address.HostAddressLen == 16 && address.room[4] == 0 && address.room[19] == 1);
        CHECK_CODE(VipNSGetHostByName(nic, "127.0.0.1", &address.address, 0), VIP_ERROR_NAMESERVICE);
    }
    CHECK_CODE(VipNSGetHostByName(nic, "localhost", &address.address, 1000), VIP_ERROR_NAMESERVICE);
    CHECK_CODE(VipNSGetHostByName(nic, "no such host.invalid", &address.address, 0), VIP_ERROR_NAMESERVICE);
    /* Not every host has a name for ::1. */
    if (VipNSGetHostByAddr(nic, &address.address, name, &length) == VIP_SUCCESS) {
        CHECK(length == strlen(name));
        length = 1;
        CHECK_CODE(VipNSGetHostByAddr(nic, &address.address, name, &length), VIP_ERROR_RESOURCE);
    } else {
        CHECK(attributes.NicAddressLen == 16);
    }
    CHECK_OK(VipNSShutdown(nic));
    CHECK_OK(VipCloseNic(nic));
}

/* What leads nowhere is not read where a call is refused for something else. */
static void unread(void) {
    VIP_VI_ATTRIBUTES *wanted = (VIP_VI_ATTRIBUTES *)8;
    VIP_MEM_ATTRIBUTES *attributes = (VIP_MEM_ATTRIBUTES *)8;
    char *name = (char *)8;
    SIDE side;
    ADDRESS address;
    VIP_VI_HANDLE vi;
    VIP_MEM_HANDLE handle;
    CHECK_CODE(VipOpenNic(name, NULL), VIP_INVALID_PARAMETER);
    open_side(&side);
    CHECK_CODE(VipCreateVi(side.nic, wanted, NULL, NULL, NULL), VIP_INVALID_PARAMETER);
    /* A tag is no completion queue. */
    CHECK_CODE(VipCreateVi(side.nic, wanted, side.tag, NULL, &vi), VIP_INVALID_PARAMETER);
    CHECK_CODE(VipRegisterMem(side.nic, side.memory, 64, attributes, NULL), VIP_INVALID_PARAMETER);
    CHECK_CODE(VipRegisterMem(side.nic, side.memory, ~0UL, attributes, &handle), VIP_INVALID_PARAMETER);
    CHECK_CODE(VipRegisterMem(side.nic, (void *)8, 64, attributes, &handle), VIP_INVALID_PARAMETER);
    CHECK_CODE(VipNSGetHostByName(side.nic, name, NULL, 0), VIP_INVALID_PARAMETER);
    CHECK_CODE(VipNSGetHostByName(side.nic, name, &address.address, 0), VIP_ERROR_NAMESERVICE);
    close_side(&side);
}

static void memory(void) {
    SIDE side, other;
    VIP_MEM_ATTRIBUTES attributes;
    VIP_MEM_HANDLE handle;
    VIP_PROTECTION_HANDLE second;
    open_side(&side);
    open_side(&other);
    CHECK_OK(VipQueryMem(side.nic, side.memory, side.handle, &attributes));
    CHECK(attributes.Ptag == side.tag && attributes.EnableRdmaWrite && attributes.EnableRdmaRead);
    CHECK_OK(VipCreatePtag(side.nic, &second));
    attributes.Ptag = second;
    attributes.EnableRdmaRead = VIP_FALSE;
    CHECK_OK(VipSetMemAttributes(side.nic, side.memory, side.handle, &attributes));
    CHECK_OK(VipQueryMem(side.nic, side.memory, side.handle, &attributes));
    CHECK(attributes.Ptag == second && !attributes.EnableRdmaRead);
    CHECK_CODE(VipDestroyPtag(side.nic, second), VIP_ERROR_RESOURCE);
    attributes.Ptag = side.tag;
    CHECK_OK(VipSetMemAttributes(side.nic, side.memory, side.handle, &attributes));
    CHECK_OK(VipDestroyPtag(side.nic, second));
    CHECK_CODE(VipDestroyPtag(side.nic, second), VIP_INVALID_PTAG);

    CHECK_CODE(VipRegisterMem(side.nic, side.memory, 0, &attributes, &handle), VIP_INVALID_PARAMETER);
    CHECK_CODE(VipRegisterMem(side.nic, NULL, 1, &attributes, &handle), VIP_INVALID_PARAMETER);
    CHECK_CODE(VipRegisterMem(side.nic, side.memory, ~0UL, &attributes, &handle), VIP_INVALID_PARAMETER);
    attributes.Ptag = second;
    CHECK_CODE(VipRegisterMem(side.nic, side.memory, 64, &attributes, &handle), VIP_INVALID_PTAG);
    /* A tag of another NIC. */
    attributes.Ptag = other.tag;
    CHECK_CODE(VipRegisterMem(side.nic, side.memory, 64, &attributes, &handle), VIP_INVALID_PTAG);
    CHECK_CODE(VipSetMemAttributes(side.nic, side.memory, side.handle, &attributes), VIP_INVALID_PTAG);
    CHECK_CODE(VipDeregisterMem(side.nic, side.memory + 64, side.handle), VIP_INVALID_PARAMETER);
    CHECK_CODE(VipDeregisterMem(side.nic, side.memory, 0), VIP_INVALID_PARAMETER);
    CHECK_CODE(VipQueryMem(side.nic, side.memory, side.handle + 1, &attributes), VIP_INVALID_PARAMETER);
    handle = side.handle;
    close_side(&side);
    CHECK_CODE(VipDeregisterMem(side.nic, side.memory, handle), VIP_INVALID_PARAMETER);
    close_side(&other);
}

static void vis(void) {
    SIDE side;
    VIP_VI_ATTRIBUTES attributes, found;
    VIP_VI_HANDLE vi;
    VIP_VI_STATE state;
    VIP_BOOLEAN is_send_empty, is_receive_empty;
    VIP_CQ_HANDLE queue;
    VIP_DESCRIPTOR *taken, *descriptor;
    open_side(&side);
    attributes = vi_attributes(&side, VIP_SERVICE_RELIABLE_DELIVERY);
    side.vi = vi = new_vi(&side, VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    CHECK_OK(VipQueryVi(vi, &state, &found, &is_send_empty, &is_receive_empty));
    CHECK(state == VIP_STATE_IDLE && is_send_empty && is_receive_empty);
    CHECK(found.MaxTransferSize == 65536 && found.Ptag == side.tag && found.ReliabilityLevel == 2);
    attributes.MaxTransferSize = 32768;
    CHECK_OK(VipSetViAttributes(vi, &attributes));

    attributes = vi_attributes(&side, 3);
    CHECK_CODE(VipSetViAttributes(vi, &attributes), VIP_INVALID_RELIABILITY_LEVEL);
    attributes = vi_attributes(&side, VIP_SERVICE_RELIABLE_DELIVERY);
    attributes.MaxTransferSize = 1UL << 40;
    CHECK_CODE(VipSetViAttributes(vi, &attributes), VIP_INVALID_MTU);
    attributes = vi_attributes(&side, VIP_SERVICE_RELIABLE_DELIVERY);
    attributes.QoS = &side;
    CHECK_CODE(VipSetViAttributes(vi, &attributes), VIP_INVALID_QOS);
    attributes = vi_attributes(&side, VIP_SERVICE_RELIABLE_DELIVERY);
    attributes.Ptag = NULL;
    CHECK_CODE(VipSetViAttributes(vi, &attributes), VIP_INVALID_PTAG);
    attributes = vi_attributes(&side, VIP_SERVICE_UNRELIABLE);
    attributes.EnableRdmaRead = VIP_TRUE;
    CHECK_CODE(VipSetViAttributes(vi, &attributes), VIP_INVALID_RDMAREAD);

    /* Empty queues, and one whose head waits. */
    taken = (VIP_DESCRIPTOR *)(void *)&side;
    CHECK_CODE(VipRecvDone(vi, &taken), VIP_DESCRIPTOR_ERROR);
    CHECK(taken == NULL);
    CHECK_CODE(VipSendDone(vi, &taken), VIP_DESCRIPTOR_ERROR);
    CHECK_CODE(VipSendWait(vi, SHORT, &taken), VIP_DESCRIPTOR_ERROR);
    descriptor = fill(&side, 0, 0, BUFFER);
    CHECK_CODE(VipPostSend(vi, descriptor, side.handle), VIP_INVALID_STATE);
    post_receive(&side, descriptor);
    CHECK_OK(VipQueryVi(vi, NULL, NULL, NULL, &is_receive_empty));
    CHECK(!is_receive_empty);
    CHECK_CODE(VipRecvDone(vi, &taken), VIP_NOT_DONE);
    CHECK_CODE(VipRecvWait(vi, SHORT, &taken), VIP_TIMEOUT);
    CHECK_CODE(VipDestroyVi(vi), VIP_ERROR_RESOURCE);
    CHECK_CODE(VipCloseNic(side.nic), VIP_ERROR_RESOURCE);
    CHECK_OK(VipDisconnect(vi));
    CHECK_CODE(VipRecvDone(vi, &taken), VIP_DESCRIPTOR_ERROR);
    CHECK(taken == descriptor && CONTROL(taken).Status == (VIP_STATUS_DONE | VIP_STATUS_DESC_FLUSHED_ERROR | VIP_STATUS_OP_RECEIVE));

    /* Descriptors that are not posted: not aligned, not registered, beyond the end. */
    descriptor = (VIP_DESCRIPTOR *)(void *)(side.memory + 32);
    CHECK_CODE(VipPostRecv(vi, descriptor, side.handle), VIP_INVALID_PARAMETER);
    CHECK_CODE(VipPostRecv(vi, NULL, side.handle), VIP_INVALID_PARAMETER);
    descriptor = fill(&side, 0, 0, BUFFER);
    CHECK_CODE(VipPostRecv(vi, descriptor, side.handle + 1), VIP_INVALID_PARAMETER);
    descriptor = (VIP_DESCRIPTOR *)(void *)(side.memory + SLOTS * SLOT + BYTES);
    CHECK_CODE(VipPostRecv(vi, descriptor, side.handle), VIP_INVALID_PARAMETER);

    /* Completion queues. */
    CHECK_CODE(VipCreateCQ(side.nic, 0, &queue), VIP_INVALID_PARAMETER);
    CHECK_OK(VipCreateCQ(side.nic, 4, &queue));
    CHECK_OK(VipResizeCQ(queue, 8));
    CHECK_CODE(VipResizeCQ(queue, 0), VIP_INVALID_PARAMETER);
    CHECK_CODE(VipCQDone(queue, &vi, &is_receive_empty), VIP_NOT_DONE);
    CHECK_CODE(VipCQWait(queue, SHORT, &vi, &is_receive_empty), VIP_TIMEOUT);
    vi = new_vi(&side, VIP_SERVICE_RELIABLE_DELIVERY, queue, queue);
    CHECK_CODE(VipDestroyCQ(queue), VIP_ERROR_RESOURCE);
    CHECK_CODE(VipRecvWait(vi, SHORT, &taken), VIP_INVALID_PARAMETER);
    CHECK_OK(VipDestroyVi(vi));
    CHECK_CODE(VipDestroyVi(vi), VIP_INVALID_PARAMETER);
    CHECK_OK(VipDestroyCQ(queue));
    CHECK_CODE(VipCQDone(queue, &vi, &is_receive_empty), VIP_INVALID_PARAMETER);
    CHECK_OK(VipDestroyVi(side.vi));
    close_side(&side);
}

static void transfers(VIP_RELIABILITY_LEVEL level) {
    SIDE server, client;
    VIP_DESCRIPTOR *receive, *send;
    VIP_UINT32 status;
    int index;
    open_sides(&server, &client, level);

    /* From a buffer to a buffer, with immediate data. */
    for (index = 0; index < 1000; index++) {
        client.data[index] = (unsigned char)(index * 3);
    }
    receive = fill(&server, 0, 0, BUFFER);
    post_receive(&server, receive);
    send = fill(&client, 0, 0, 1000);
    CONTROL(send).Control = VIP_CONTROL_IMMEDIATE;
    CONTROL(send).ImmediateData = 0xCAFE;
    post_send(&client, send);
    status = finish(&server, receive, 1, &client);
    CHECK(status == (VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE | VIP_STATUS_IMMEDIATE));
    CHECK(CONTROL(receive).Length == 1000 && CONTROL(receive).ImmediateData == 0xCAFE);
    CHECK(memcmp(server.data, client.data, 1000) == 0);
    CHECK(finish(&client, send, 0, &server) == (VIP_STATUS_DONE | VIP_STATUS_OP_SEND));

    /* The longest. */
    memset(client.data, 7, 65536);
    receive = fill(&server, 1, 0, 65536);
    post_receive(&server, receive);
    send = fill(&client, 1, 0, 65536);
    post_send(&client, send);
    CHECK(!(finish(&server, receive, 1, &client) & VIP_STATUS_ERROR_MASK));
    CHECK(CONTROL(receive).Length == 65536 && server.data[65535] == 7);
    CHECK(!(finish(&client, send, 0, &server) & VIP_STATUS_ERROR_MASK));

    /* RDMA: write, write with immediate data, read behind a fence. */
    send = fill_rdma(&client, 2, VIP_CONTROL_OP_RDMAWRITE, &server, 100000, 0, 5000);
    post_send(&client, send);
    CHECK(finish(&client, send, 0, &server) == (VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_WRITE));
    CHECK(server.data[99999] == 0 && server.data[100000] == 7 && server.data[104999] == 7 && server.data[105000] == 0);
    receive = slot(&server, 3);
    post_receive(&server, receive);
    send = fill_rdma(&client, 3, VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE, &server, 110000, 0, 10);
    CONTROL(send).ImmediateData = 99;
    post_send(&client, send);
    status = finish(&server, receive, 1, &client);
    CHECK(status == (VIP_STATUS_DONE | VIP_STATUS_OP_REMOTE_RDMA_WRITE | VIP_STATUS_IMMEDIATE));
    CHECK(CONTROL(receive).ImmediateData == 99 && server.data[110009] == 7 && server.data[110010] == 0);
    CHECK(!(finish(&client, send, 0, &server) & VIP_STATUS_ERROR_MASK));
    if (level != VIP_SERVICE_UNRELIABLE) {
        memset(server.data, 42, 100);
        send = fill_rdma(&client, 4, VIP_CONTROL_OP_RDMAREAD, &server, 0, 200000, 100);
        post_send(&client, send);
        receive = fill_rdma(&client, 5, VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_QFENCE, &server, 120000, 200000, 100);
        post_send(&client, receive);
        CHECK(finish(&client, send, 0, &server) == (VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_READ));
        CHECK(client.data[200099] == 42 && CONTROL(send).Length == 100);
        CHECK(!(finish(&client, receive, 0, &server) & VIP_STATUS_ERROR_MASK));
        CHECK(server.data[120099] == 42);
    }
    close_sides(&server, &client);
}

static void completion_queues(void) {
    SIDE server, client;
    VIP_CQ_HANDLE queue;
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN is_receive;
    VIP_DESCRIPTOR *taken;
    int index;
    open_side(&server);
    open_side(&client);
    CHECK_OK(VipCreateCQ(server.nic, 2, &queue));
    server.vi = new_vi(&server, VIP_SERVICE_RELIABLE_DELIVERY, NULL, queue);
    client.vi = new_vi(&client, VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    connect_sides(&server, &client);
    for (index = 0; index < 5; index++) {
        post_receive(&server, fill(&server, index, 0, 64));
    }
    post_send(&client, fill(&client, 0, 0, 8));
    CHECK_OK(VipCQWait(queue, LIMIT, &vi, &is_receive));
    CHECK(vi == server.vi && is_receive);
    CHECK_OK(VipRecvDone(vi, &taken));
    CHECK((void *)taken == server.memory);
    /* Overrun: two entries fit, the third is lost, its descriptor is not. */
    for (index = 1; index < 4; index++) {
        post_send(&client, fill(&client, index, 0, 8));
    }
    for (index = 1; index < 4; index++) {
        CHECK(!(finish(&server, (VIP_DESCRIPTOR *)(void *)(server.memory + index * SLOT), 1, &client) & VIP_STATUS_ERROR_MASK));
    }
    CHECK_OK(VipCQDone(queue, &vi, &is_receive));
    CHECK_OK(VipCQDone(queue, &vi, &is_receive));
    CHECK_CODE(VipCQDone(queue, &vi, &is_receive), VIP_NOT_DONE);
    CHECK(server.faults[VIP_ERROR_VI_OVERRUN] == 1);
    end_vi(&client);
    end_vi(&server);
    CHECK_OK(VipDestroyCQ(queue));
    close_side(&client);
    close_side(&server);
}

typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int sent, received, entries;
} CALLED;

static void called(CALLED *state, int *count) {
    pthread_mutex_lock(&state->lock);
    *count += 1;
    pthread_cond_signal(&state->changed);
    pthread_mutex_unlock(&state->lock);
}

static void on_sent(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_DESCRIPTOR *descriptor) {
    CHECK(nic != NULL && vi != NULL && !(CONTROL(descriptor).Status & VIP_STATUS_ERROR_MASK));
    called(context, &((CALLED *)context)->sent);
}

static void on_received(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_DESCRIPTOR *descriptor) {
    CHECK(nic != NULL && vi != NULL && CONTROL(descriptor).Length == 8);
    called(context, &((CALLED *)context)->received);
}

static void on_entry(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_BOOLEAN is_receive) {
    VIP_DESCRIPTOR *taken;
    CHECK(nic != NULL && !is_receive);
    CHECK_OK(VipSendDone(vi, &taken));
    called(context, &((CALLED *)context)->entries);
}

static void await(CALLED *state, const int *count, int wanted) {
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += PATIENCE;
    pthread_mutex_lock(&state->lock);
    while (*count < wanted) {
        CHECK(pthread_cond_timedwait(&state->changed, &state->lock, &deadline) == 0);
    }
    pthread_mutex_unlock(&state->lock);
}

static void notify(void) {
    SIDE server, client;
    VIP_CQ_HANDLE queue;
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN is_receive;
    clock_t used;
    CALLED state = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, 0};
    open_side(&server);
    open_side(&client);
    CHECK_OK(VipCreateCQ(server.nic, 8, &queue));
    server.vi = new_vi(&server, VIP_SERVICE_RELIABLE_RECEPTION, queue, NULL);
    client.vi = new_vi(&client, VIP_SERVICE_RELIABLE_RECEPTION, NULL, NULL);
    connect_sides(&server, &client);
    CHECK_CODE(VipRecvNotify(server.vi, &state, NULL), VIP_INVALID_PARAMETER);
    CHECK_CODE(VipRecvNotify(NULL, &state, on_received), VIP_INVALID_PARAMETER);
    post_receive(&server, fill(&server, 0, 0, 64));
    CHECK_OK(VipRecvNotify(server.vi, &state, on_received));
    CHECK_OK(VipSendNotify(client.vi, &state, on_sent));
    /* From here on the threads of the library make all progress. */
    post_send(&client, fill(&client, 0, 0, 8));
    await(&state, &state.received, 1);
    await(&state, &state.sent, 1);
    /* A thread of the library and one of the program wait, and nothing comes. */
    CHECK_OK(VipRecvNotify(server.vi, &state, on_received));
    post_receive(&server, fill(&server, 2, 0, 64));
    used = clock();
    CHECK_CODE(VipCQWait(queue, 500, &vi, &is_receive), VIP_TIMEOUT);
    CHECK(clock() - used < CLOCKS_PER_SEC / 10);
    post_send(&client, fill(&client, 2, 0, 8));
    await(&state, &state.received, 2);
    CHECK(!ERRORS(finish(&client, (VIP_DESCRIPTOR *)(void *)(client.memory + 2 * SLOT), 0, &server)));

    CHECK_OK(VipCQNotify(queue, &state, on_entry));
    CHECK_OK(VipRecvNotify(client.vi, &state, on_received));
    post_receive(&client, fill(&client, 1, 0, 64));
    post_send(&server, fill(&server, 1, 0, 8));
    await(&state, &state.received, 3);
    await(&state, &state.entries, 1);
    end_vi(&client);
    end_vi(&server);
    CHECK_OK(VipDestroyCQ(queue));
    close_side(&client);
    close_side(&server);
}

static void connections(void) {
    SIDE server, client;
    VIP_VI_ATTRIBUTES attributes;
    VIP_CONN_HANDLE connection = NULL;
    ADDRESS local, remote;
    VIP_RETURN left, right;
    clock_t used;
    char names[2][32];
    open_side(&server);
    open_side(&client);
    server.vi = new_vi(&server, VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    client.vi = new_vi(&client, VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    snprintf(names[0], sizeof(names[0]), "a%d", (int)getpid());
    snprintf(names[1], sizeof(names[1]), "b%d", (int)getpid());
    local = address_of(&client, names[0], strlen(names[0]));
    remote = address_of(&server, names[1], strlen(names[1]));
    CHECK_CODE(VipConnectRequest(client.vi, &local.address, &remote.address, 0, &attributes), VIP_INVALID_PARAMETER);
    CHECK_CODE(VipConnectRequest(client.vi, NULL, &remote.address, LIMIT, &attributes), VIP_INVALID_PARAMETER);
    CHECK_CODE(VipConnectRequest(client.vi, &local.address, &remote.address, LIMIT, &attributes), VIP_NO_MATCH);
    used = clock();
    CHECK_CODE(VipConnectWait(server.nic, &remote.address, 500, &local.address, &attributes, &connection), VIP_TIMEOUT);
    CHECK(clock() - used < CLOCKS_PER_SEC / 10);
    CHECK_CODE(VipConnectAccept(connection, server.vi), VIP_INVALID_PARAMETER);
    CHECK_CODE(VipConnectReject(connection), VIP_INVALID_PARAMETER);
    CHECK_CODE(VipConnectPeerDone(client.vi, &attributes), VIP_INVALID_STATE);

    /* Peer to peer, driven by one thread. */
    CHECK_OK(VipConnectPeerRequest(client.vi, &local.address, &remote.address, LIMIT));
    CHECK_CODE(VipConnectPeerRequest(client.vi, &local.address, &remote.address, LIMIT), VIP_INVALID_STATE);
    CHECK_OK(VipConnectPeerRequest(server.vi, &remote.address, &local.address, LIMIT));
    do {
        left = VipConnectPeerDone(client.vi, &attributes);
        right = VipConnectPeerDone(server.vi, &attributes);
        CHECK(left == VIP_SUCCESS || left == VIP_NOT_DONE);
        CHECK(right == VIP_SUCCESS || right == VIP_NOT_DONE);
    } while (left != VIP_SUCCESS || right != VIP_SUCCESS);
    CHECK(attributes.MaxTransferSize == 65536 && attributes.Ptag == NULL);
    CHECK_CODE(VipDestroyVi(client.vi), VIP_INVALID_STATE);
    CHECK_CODE(VipSetViAttributes(client.vi, &attributes), VIP_INVALID_PTAG);
    attributes.Ptag = client.tag;
    CHECK_CODE(VipSetViAttributes(client.vi, &attributes), VIP_INVALID_STATE);
    CHECK_OK(VipDisconnect(client.vi));
    await_state(&server, VIP_STATE_ERROR, &client);
    CHECK(server.faults[VIP_ERROR_CONN_LOST] == 1);
    CHECK_OK(VipDisconnect(server.vi));

    /* Nobody comes. */
    used = clock();
    CHECK_OK(VipConnectPeerRequest(client.vi, &local.address, &remote.address, 500));
    CHECK_CODE(VipConnectPeerWait(client.vi, &attributes), VIP_TIMEOUT);
    CHECK_OK(VipConnectPeerRequest(client.vi, &remote.address, &local.address, 500));
    CHECK_CODE(VipConnectPeerWait(client.vi, &attributes), VIP_TIMEOUT);
    CHECK(clock() - used < CLOCKS_PER_SEC / 5);
    close_sides(&server, &client);
}

int main(void) {
    size_t level;
    nics();
    names();
    unread();
    memory();
    vis();
    for (level = 0; level < sizeof(LEVELS) / sizeof(*LEVELS); level++) {
        transfers(LEVELS[level]);
    }
    completion_queues();
    notify();
    connections();
    puts("conforms");
    return 0;
}
