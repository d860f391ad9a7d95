/*
 * What goes wrong: each status of a descriptor, and what becomes of the VI and of others.
 */

#include "sides.h"

#include <sys/mman.h>
#include <sys/wait.h>

static const VIP_RELIABILITY_LEVEL LEVELS[] = {VIP_SERVICE_UNRELIABLE, VIP_SERVICE_RELIABLE_DELIVERY,
                                               VIP_SERVICE_RELIABLE_RECEPTION};

#define IS_RELIABLE(level) ((level) != VIP_SERVICE_UNRELIABLE)
#define ERRORS(status) ((status)&VIP_STATUS_ERROR_MASK)

/* The end of a send that the peer's library has, and refuses. With delivery it depends on what the
 * sender learns first. */
static int is_refused(VIP_RELIABILITY_LEVEL level, VIP_UINT32 errors) {
    switch (level) {
    case VIP_SERVICE_UNRELIABLE:
        return errors == 0;
    case VIP_SERVICE_RELIABLE_DELIVERY:
        return errors == 0 || errors == VIP_STATUS_TRANSPORT_ERROR;
    default:
        return errors == VIP_STATUS_REMOTE_DESC_ERROR;
    }
}

static VIP_UINT32 send_bytes(SIDE *from, int index, VIP_UINT32 length, SIDE *to) {
    VIP_DESCRIPTOR *send = fill(from, index, 0, length);
    post_send(from, send);
    return ERRORS(finish(from, send, 0, to));
}

/* An unreliable VI goes on: a message comes through. */
static void still_works(SIDE *server, SIDE *client) {
    VIP_DESCRIPTOR *receive = fill(server, 60, 200000, 64);
    post_receive(server, receive);
    CHECK(send_bytes(client, 60, 16, server) == 0);
    CHECK(ERRORS(finish(server, receive, 1, client)) == 0);
}

static void no_receive(VIP_RELIABILITY_LEVEL level) {
    SIDE server, client;
    VIP_UINT32 errors;
    open_sides(&server, &client, level);
    errors = send_bytes(&client, 0, 100, &server);
    if (level == VIP_SERVICE_UNRELIABLE) {
        VIP_VI_STATE state;
        CHECK(errors == 0);
        CHECK_OK(VipQueryVi(server.vi, &state, NULL, NULL, NULL));
        still_works(&server, &client);
    } else {
        CHECK(is_refused(level, errors));
        await_state(&server, VIP_STATE_ERROR, &client);
        await_state(&client, VIP_STATE_ERROR, &server);
        CHECK(server.faults[VIP_ERROR_RECVQ_EMPTY] == 1 && client.faults[VIP_ERROR_CONN_LOST] == 1);
        /* Whatever is posted now is flushed. */
        CHECK(send_bytes(&client, 1, 100, &server) == VIP_STATUS_DESC_FLUSHED_ERROR);
    }
    close_sides(&server, &client);
}

static void receive_too_short(VIP_RELIABILITY_LEVEL level) {
    SIDE server, client;
    VIP_DESCRIPTOR *receive;
    VIP_UINT32 errors;
    open_sides(&server, &client, level);
    receive = fill(&server, 0, 0, 99);
    post_receive(&server, receive);
    errors = send_bytes(&client, 0, 100, &server);
    CHECK(is_refused(level, errors));
    CHECK(ERRORS(finish(&server, receive, 1, &client)) == VIP_STATUS_LENGTH_ERROR);
    CHECK(server.data[0] == 0 && server.data[98] == 0);
    if (IS_RELIABLE(level)) {
        await_state(&client, VIP_STATE_ERROR, &server);
    } else {
        still_works(&server, &client);
    }
    close_sides(&server, &client);
}

/* What the sender's own library finds before anything leaves. */
static void bad_sends(VIP_RELIABILITY_LEVEL level) {
    int what;
    for (what = 0; what < 9; what++) {
        SIDE server, client;
        VIP_DESCRIPTOR *send;
        VIP_UINT32 wanted = VIP_STATUS_FORMAT_ERROR;
        VIP_PROTECTION_HANDLE other = NULL;
        VIP_MEM_ATTRIBUTES attributes;
        VIP_MEM_HANDLE foreign = 0;
        open_sides(&server, &client, level);
        send = fill(&client, 0, 0, 100);
        switch (what) {
        case 0:
            CONTROL(send).Control = 0x10;
            break;
        case 1:
            CONTROL(send).Control = VIP_CONTROL_OP_RESERVED;
            break;
        case 2:
            CONTROL(send).SegCount = 253;
            break;
        case 3:
            CONTROL(send).Control = VIP_CONTROL_OP_RDMAWRITE;
            CONTROL(send).SegCount = 0;
            break;
        case 4:
            /* Longer than the VI's maximum. */
            SEGMENTS(send)[0].Local.Length = 65537;
            wanted = VIP_STATUS_LENGTH_ERROR;
            break;
        case 5:
            SEGMENTS(send)[0].Local.Handle += 1;
            wanted = VIP_STATUS_PROTECTION_ERROR;
            break;
        case 6:
            /* One byte beyond the end. */
            SEGMENTS(send)[0].Local.Data.Address = client.data + BYTES - 99;
            wanted = VIP_STATUS_PROTECTION_ERROR;
            break;
        case 7:
            CHECK_OK(VipCreatePtag(client.nic, &other));
            attributes.Ptag = other;
            attributes.EnableRdmaWrite = attributes.EnableRdmaRead = VIP_FALSE;
            CHECK_OK(VipRegisterMem(client.nic, client.data, 4096, &attributes, &foreign));
            SEGMENTS(send)[0].Local.Handle = foreign;
            wanted = VIP_STATUS_PROTECTION_ERROR;
            break;
        case 8:
            /* The descriptor goes beyond its memory. */
            send = (VIP_DESCRIPTOR *)(void *)(client.memory + SLOTS * SLOT + BYTES - 64);
            memset(send, 0, 64);
            CONTROL(send).SegCount = 100;
            wanted = VIP_STATUS_PROTECTION_ERROR;
            break;
        }
        post_send(&client, send);
        CHECK(ERRORS(finish(&client, send, 0, &server)) == wanted);
        if (IS_RELIABLE(level)) {
            await_state(&client, VIP_STATE_ERROR, &server);
            await_state(&server, VIP_STATE_ERROR, &client);
        } else {
            still_works(&server, &client);
        }
        if (foreign != 0) {
            CHECK_OK(VipDeregisterMem(client.nic, client.data, foreign));
            CHECK_OK(VipDestroyPtag(client.nic, other));
        }
        close_sides(&server, &client);
    }
}

static void bad_rdma(VIP_RELIABILITY_LEVEL level) {
    int what;
    for (what = 0; what < 6; what++) {
        SIDE server, client;
        VIP_DESCRIPTOR *send;
        VIP_MEM_ATTRIBUTES attributes;
        VIP_MEM_HANDLE closed;
        VIP_PROTECTION_HANDLE other;
        VIP_UINT16 control = VIP_CONTROL_OP_RDMAWRITE;
        open_sides(&server, &client, level);
        memset(client.data, 9, 4096);
        CHECK_OK(VipCreatePtag(server.nic, &other));
        if (what == 0) {
            /* It works; then the target ends the registration that the client knows. */
            send = fill_rdma(&client, 0, control, &server, 0, 0, 100);
            post_send(&client, send);
            CHECK(ERRORS(finish(&client, send, 0, &server)) == 0);
            closed = register_memory(&server, server.data, 4096, VIP_TRUE);
            send = fill_rdma(&client, 1, control, &server, 0, 0, 100);
            SEGMENTS(send)[0].Remote.Handle = closed;
            post_send(&client, send);
            CHECK(ERRORS(finish(&client, send, 0, &server)) == 0);
            CHECK_OK(VipDeregisterMem(server.nic, server.data, closed));
            memset(server.data, 0, 100);
        } else {
            closed = register_memory(&server, server.data, 4096, what != 1);
            if (what == 5) {
                attributes.Ptag = other;
                attributes.EnableRdmaWrite = attributes.EnableRdmaRead = VIP_TRUE;
                CHECK_OK(VipSetMemAttributes(server.nic, server.data, closed, &attributes));
            }
        }
        if (what == 4) {
            control = VIP_CONTROL_OP_RDMAREAD;
            attributes.Ptag = server.tag;
            attributes.EnableRdmaWrite = VIP_TRUE;
            attributes.EnableRdmaRead = VIP_FALSE;
            CHECK_OK(VipSetMemAttributes(server.nic, server.data, closed, &attributes));
        }
        send = fill_rdma(&client, 2, control, &server, 0, 0, 100);
        SEGMENTS(send)[0].Remote.Handle = what == 2 ? closed + 1 : closed;
        if (what == 3) {
            /* Beyond the end. */
            SEGMENTS(send)[0].Remote.Data.Address = server.data + 4000;
        }
        post_send(&client, send);
        CHECK(ERRORS(finish(&client, send, 0, &server)) == VIP_STATUS_RDMA_PROT_ERROR);
        CHECK(server.data[0] == 0 && server.data[4000] == 0 && server.data[4096] == 0);
        if (IS_RELIABLE(level)) {
            await_state(&client, VIP_STATE_ERROR, &server);
            await_state(&server, VIP_STATE_ERROR, &client);
            CHECK(server.faults[VIP_ERROR_RDMAW_PROT] == (what != 4));
            CHECK(server.faults[VIP_ERROR_RDMAR_PROT] == (what == 4));
        } else {
            still_works(&server, &client);
        }
        if (what != 0) {
            CHECK_OK(VipDeregisterMem(server.nic, server.data, closed));
        }
        CHECK_OK(VipDestroyPtag(server.nic, other));
        close_sides(&server, &client);
    }
}

/* Rights that the target changes are asked for again, and the transfer goes on. */
static void changed_rights(void) {
    SIDE server, client;
    VIP_DESCRIPTOR *send;
    VIP_MEM_ATTRIBUTES attributes;
    open_sides(&server, &client, VIP_SERVICE_RELIABLE_DELIVERY);
    memset(client.data, 9, 100);
    send = fill_rdma(&client, 0, VIP_CONTROL_OP_RDMAWRITE, &server, 0, 0, 100);
    post_send(&client, send);
    CHECK(ERRORS(finish(&client, send, 0, &server)) == 0);
    attributes.Ptag = server.tag;
    attributes.EnableRdmaWrite = VIP_TRUE;
    attributes.EnableRdmaRead = VIP_FALSE;
    CHECK_OK(VipSetMemAttributes(server.nic, server.memory, server.handle, &attributes));
    send = fill_rdma(&client, 1, VIP_CONTROL_OP_RDMAWRITE, &server, 1000, 0, 100);
    post_send(&client, send);
    CHECK(ERRORS(finish(&client, send, 0, &server)) == 0);
    CHECK(server.data[1099] == 9);
    close_sides(&server, &client);
}

/* The memory of a posted receive is deregistered, and unmapped: nothing is written there. */
static void deregistered_under_a_descriptor(VIP_RELIABILITY_LEVEL level) {
    SIDE server, client;
    VIP_DESCRIPTOR *receive;
    VIP_MEM_HANDLE handle;
    VIP_UINT32 errors;
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    open_sides(&server, &client, level);
    handle = register_memory(&server, page, 4096, VIP_FALSE);
    receive = fill(&server, 0, 0, 4096);
    SEGMENTS(receive)[0].Local.Data.Address = page;
    SEGMENTS(receive)[0].Local.Handle = handle;
    post_receive(&server, receive);
    CHECK_OK(VipDeregisterMem(server.nic, page, handle));
    CHECK(munmap(page, 4096) == 0);
    errors = send_bytes(&client, 0, 100, &server);
    CHECK(is_refused(level, errors));
    CHECK(ERRORS(finish(&server, receive, 1, &client)) == VIP_STATUS_PROTECTION_ERROR);
    if (IS_RELIABLE(level)) {
        await_state(&client, VIP_STATE_ERROR, &server);
    } else {
        still_works(&server, &client);
    }
    close_sides(&server, &client);
}

/* The descriptor's own memory is gone when it completes. */
static void descriptor_gone(void) {
    SIDE server, client;
    VIP_DESCRIPTOR *receive, *taken;
    VIP_MEM_HANDLE handle;
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    open_sides(&server, &client, VIP_SERVICE_RELIABLE_DELIVERY);
    handle = register_memory(&server, page, 4096, VIP_FALSE);
    receive = page;
    memcpy(receive, fill(&server, 0, 0, 64), 64);
    CHECK_OK(VipPostRecv(server.vi, receive, handle));
    CHECK_OK(VipDeregisterMem(server.nic, page, handle));
    CHECK(munmap(page, 4096) == 0);
    CHECK(is_refused(VIP_SERVICE_RELIABLE_DELIVERY, send_bytes(&client, 0, 10, &server)));
    await_state(&server, VIP_STATE_ERROR, &client);
    CHECK(server.faults[VIP_ERROR_COMP_PROT] == 1);
    (void)VipRecvDone(server.vi, &taken);
    CHECK(taken == page);
    close_sides(&server, &client);
}

static void flushed_in_order(void) {
    SIDE server, client;
    VIP_DESCRIPTOR *taken;
    int index;
    open_sides(&server, &client, VIP_SERVICE_RELIABLE_DELIVERY);
    for (index = 0; index < 10; index++) {
        post_receive(&server, fill(&server, index, 0, 64));
        /* The question for the handle is not answered yet. */
        post_send(&client, fill_rdma(&client, index, VIP_CONTROL_OP_RDMAWRITE, &server, 0, 0, 64));
    }
    CHECK_OK(VipDisconnect(client.vi));
    CHECK_OK(VipDisconnect(server.vi));
    for (index = 0; index < 10; index++) {
        CHECK_CODE(VipSendDone(client.vi, &taken), VIP_DESCRIPTOR_ERROR);
        CHECK((unsigned char *)taken == client.memory + index * SLOT);
        CHECK(ERRORS(CONTROL(taken).Status) == VIP_STATUS_DESC_FLUSHED_ERROR);
        CHECK_CODE(VipRecvDone(server.vi, &taken), VIP_DESCRIPTOR_ERROR);
        CHECK((unsigned char *)taken == server.memory + index * SLOT);
        CHECK(CONTROL(taken).Status == (VIP_STATUS_DONE | VIP_STATUS_DESC_FLUSHED_ERROR | VIP_STATUS_OP_RECEIVE));
    }
    /* Both connect again, with VIs that have a past. */
    connect_sides(&server, &client);
    still_works(&server, &client);
    close_sides(&server, &client);
}

/* The peer leaves while a send waits for its word. */
static void peer_leaves(void) {
    SIDE server, client;
    VIP_DESCRIPTOR *send;
    open_sides(&server, &client, VIP_SERVICE_RELIABLE_RECEPTION);
    send = fill(&client, 0, 0, 100);
    post_send(&client, send);
    CHECK_OK(VipDisconnect(server.vi));
    CHECK(ERRORS(finish(&client, send, 0, &server)) == VIP_STATUS_TRANSPORT_ERROR);
    CHECK(client.faults[VIP_ERROR_CONN_LOST] == 1);
    close_sides(&server, &client);
}

static void queue_overrun(void) {
    SIDE server;
    VIP_NIC_ATTRIBUTES attributes;
    VIP_ULONG count;
    VIP_DESCRIPTOR *descriptor, *taken;
    open_side(&server);
    server.vi = new_vi(&server, VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    CHECK_OK(VipQueryNic(server.nic, &attributes));
    /* The same one again and again: each is an entry of its own. */
    descriptor = fill(&server, 0, 0, 64);
    for (count = 0; count < attributes.MaxDescriptorsPerQueue; count++) {
        post_receive(&server, descriptor);
    }
    CHECK_CODE(VipPostRecv(server.vi, descriptor, server.handle), VIP_ERROR_RESOURCE);
    CHECK_OK(VipDisconnect(server.vi));
    for (count = 0; count < attributes.MaxDescriptorsPerQueue; count++) {
        CHECK_CODE(VipRecvDone(server.vi, &taken), VIP_DESCRIPTOR_ERROR);
        CHECK(taken == descriptor);
    }
    CHECK_CODE(VipRecvDone(server.vi, &taken), VIP_DESCRIPTOR_ERROR);
    CHECK(taken == NULL);
    CHECK_OK(VipDestroyVi(server.vi));
    close_side(&server);
}

/* A program scribbles over posted descriptors: the transfer is what was posted. */
static void scribbled(void) {
    SIDE server, client;
    VIP_DESCRIPTOR *receive, *send;
    VIP_UINT32 status;
    int seed;
    for (seed = 0; seed < 256; seed++) {
        if (seed % 64 == 0) {
            open_sides(&server, &client, VIP_SERVICE_RELIABLE_DELIVERY);
        }
        memset(client.data, seed, 5000);
        receive = fill(&server, seed % 64, 1000, 5000);
        post_receive(&server, receive);
        send = fill(&client, seed % 64, 0, 5000);
        memset(receive, seed, 64);
        post_send(&client, send);
        memset(send, 255 - seed, 64);
        status = finish(&server, receive, 1, &client);
        CHECK(status == (VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE) && CONTROL(receive).Length == 5000);
        CHECK(server.data[999] == 0 && server.data[1000] == seed && server.data[5999] == seed && server.data[6000] == 0);
        CHECK(ERRORS(finish(&client, send, 0, &server)) == 0);
        if (seed % 64 == 63) {
            close_sides(&server, &client);
        }
    }
}

static void *reject_one(void *argument) {
    WAITING *waiting = argument;
    VIP_CONN_HANDLE connection = NULL;
    VIP_VI_ATTRIBUTES attributes;
    ADDRESS remote;
    CHECK_OK(VipConnectWait(waiting->server->nic, &waiting->address.address, LIMIT, &remote.address, &attributes,
                            &connection));
    CHECK(remote.address.DiscriminatorLen == 6 && memcmp(remote.room + 4 + remote.address.HostAddressLen, "client", 6) == 0);
    /* Another level, then another maximum: the client notices neither. */
    CHECK_CODE(VipConnectAccept(connection, waiting->server->vi), VIP_INVALID_RELIABILITY_LEVEL);
    attributes = vi_attributes(waiting->server, VIP_SERVICE_RELIABLE_DELIVERY);
    attributes.MaxTransferSize = 100;
    CHECK_OK(VipSetViAttributes(waiting->server->vi, &attributes));
    CHECK_CODE(VipConnectAccept(connection, waiting->server->vi), VIP_INVALID_MTU);
    CHECK_OK(VipConnectReject(connection));
    CHECK_CODE(VipConnectReject(connection), VIP_INVALID_PARAMETER);
    return NULL;
}

static void rejected(int has_no_route) {
    SIDE server, client;
    WAITING waiting;
    pthread_t thread;
    ADDRESS local, nowhere;
    VIP_VI_ATTRIBUTES attributes;
    VIP_RETURN code;
    char name[32];
    open_side(&server);
    open_side(&client);
    server.vi = new_vi(&server, VIP_SERVICE_UNRELIABLE, NULL, NULL);
    client.vi = new_vi(&client, VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    local = address_of(&client, "client", 6);
    waiting.server = &server;
    snprintf(name, sizeof(name), "r%d", (int)getpid());
    waiting.address = address_of(&server, name, strlen(name));
    CHECK(pthread_create(&thread, NULL, reject_one, &waiting) == 0);
    CHECK_CODE(request_matched(client.vi, &local, &waiting.address, LIMIT), VIP_REJECT);
    CHECK(pthread_join(thread, NULL) == 0);
    /* No route leads to addresses of class E, and to those that discard; some hosts just do not
     * answer. */
    nowhere = address_of(&client, "nobody", 6);
    if (nowhere.address.HostAddressLen == 4) {
        memcpy(nowhere.room + 4, "\360\0\0\1", 4);
    } else {
        memcpy(nowhere.room + 4, "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 16);
    }
    code = VipConnectRequest(client.vi, &local.address, &nowhere.address, SHORT, &attributes);
    CHECK(code == VIP_NOT_REACHABLE || (!has_no_route && (code == VIP_TIMEOUT || code == VIP_NO_MATCH)));
    close_sides(&server, &client);
}

/* In a forked child the NIC of the parent is lost, which its error handler is told. */
static void forked(void) {
    SIDE server, client;
    VIP_VI_STATE state;
    int status = -1;
    pid_t child;
    open_sides(&server, &client, VIP_SERVICE_RELIABLE_DELIVERY);
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK_CODE(VipQueryVi(client.vi, &state, NULL, NULL, NULL), VIP_ERROR_RESOURCE);
        CHECK_CODE(VipQueryVi(client.vi, &state, NULL, NULL, NULL), VIP_ERROR_RESOURCE);
        _exit(client.faults[VIP_ERROR_CATASTROPHIC] == 1 ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(client.faults[VIP_ERROR_CATASTROPHIC] == 0);
    still_works(&server, &client);
    close_sides(&server, &client);
}

/* Handles that were never handed out are refused, whatever the call. */
static void invented(void) {
    VIP_NIC_ATTRIBUTES nic;
    VIP_DESCRIPTOR *taken;
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN is_receive;
    unsigned long bits;
    for (bits = 1; bits != 0; bits <<= 1) {
        VIP_PVOID handle = (VIP_PVOID)bits;
        CHECK_CODE(VipQueryNic(handle, &nic), VIP_INVALID_PARAMETER);
        CHECK_CODE(VipCloseNic(handle), VIP_INVALID_PARAMETER);
        CHECK_CODE(VipDestroyVi(handle), VIP_INVALID_PARAMETER);
        CHECK_CODE(VipRecvDone(handle, &taken), VIP_INVALID_PARAMETER);
        CHECK_CODE(VipPostSend(handle, NULL, 0), VIP_INVALID_PARAMETER);
        CHECK_CODE(VipDisconnect(handle), VIP_INVALID_PARAMETER);
        CHECK_CODE(VipCQDone(handle, &vi, &is_receive), VIP_INVALID_PARAMETER);
        CHECK_CODE(VipDestroyCQ(handle), VIP_INVALID_PARAMETER);
        CHECK_CODE(VipConnectReject(handle), VIP_INVALID_PARAMETER);
    }
}

/* With an argument: on a host without a route to others. */
int main(int argc, char **argv) {
    size_t at;
    (void)argv;
    for (at = 0; at < sizeof(LEVELS) / sizeof(*LEVELS); at++) {
        no_receive(LEVELS[at]);
        receive_too_short(LEVELS[at]);
        bad_sends(LEVELS[at]);
        bad_rdma(LEVELS[at]);
        deregistered_under_a_descriptor(LEVELS[at]);
    }
    changed_rights();
    descriptor_gone();
    flushed_in_order();
    peer_leaves();
    queue_overrun();
    scribbled();
    rejected(argc > 1);
    forked();
    invented();
    puts("fails well");
    return 0;
}
