/*
 * Two NICs of one process, each with memory for descriptors and data, and VIs between them.
 */

#ifndef SIDES_H
#define SIDES_H

#include <pthread.h>
#include <unistd.h>

#include <vipl.h>

#include "check.h"

#ifdef VIPL095
#define CONTROL(descriptor) ((descriptor)->CS)
#define SEGMENTS(descriptor) ((descriptor)->DS)
#else
#define CONTROL(descriptor) ((descriptor)->Control)
#define SEGMENTS(descriptor) ((descriptor)->Data)
#endif

/* Descriptors of four segments, and bytes of data. */
#define SLOTS 64
#define SLOT 128
#define BYTES 262144

typedef struct {
    VIP_NIC_HANDLE nic;
    VIP_PROTECTION_HANDLE tag;
    VIP_VI_HANDLE vi;
    unsigned char *memory;
    unsigned char *data;
    VIP_MEM_HANDLE handle;
    VIP_ULONG faults[11];
} SIDE;

typedef union {
    VIP_NET_ADDRESS address;
    unsigned char room[4 + 16 + 64];
} ADDRESS;

static inline void on_fault(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error) {
    SIDE *side = context;
    CHECK(error->NicHandle == side->nic && error->ErrorCode <= VIP_ERROR_CATASTROPHIC);
    side->faults[error->ErrorCode]++;
}

static inline VIP_MEM_HANDLE register_memory(SIDE *side, void *start, size_t length, VIP_BOOLEAN is_open) {
    VIP_MEM_ATTRIBUTES attributes = {side->tag, is_open, is_open};
    VIP_MEM_HANDLE handle = 0;
    CHECK_OK(VipRegisterMem(side->nic, start, length, &attributes, &handle));
    CHECK(handle != 0);
    return handle;
}

static inline void open_side(SIDE *side) {
    void *memory = NULL;
    memset(side, 0, sizeof(*side));
    CHECK_OK(VipOpenNic("/dev/via0", &side->nic));
    CHECK_OK(VipCreatePtag(side->nic, &side->tag));
    CHECK(posix_memalign(&memory, 4096, SLOTS * SLOT + BYTES) == 0);
    memset(memory, 0, SLOTS * SLOT + BYTES);
    side->memory = memory;
    side->data = side->memory + SLOTS * SLOT;
    side->handle = register_memory(side, memory, SLOTS * SLOT + BYTES, VIP_TRUE);
    CHECK_OK(VipErrorCallback(side->nic, side, on_fault));
}

static inline void close_side(SIDE *side) {
    CHECK_OK(VipDeregisterMem(side->nic, side->memory, side->handle));
    CHECK_OK(VipDestroyPtag(side->nic, side->tag));
    CHECK_OK(VipCloseNic(side->nic));
    free(side->memory);
}

static inline VIP_VI_ATTRIBUTES vi_attributes(const SIDE *side, VIP_RELIABILITY_LEVEL level) {
    VIP_VI_ATTRIBUTES attributes = {level, 65536, NULL, side->tag, VIP_TRUE, level != VIP_SERVICE_UNRELIABLE};
    return attributes;
}

static inline VIP_VI_HANDLE new_vi(SIDE *side, VIP_RELIABILITY_LEVEL level, VIP_CQ_HANDLE send, VIP_CQ_HANDLE receive) {
    VIP_VI_ATTRIBUTES attributes = vi_attributes(side, level);
    VIP_VI_HANDLE vi = NULL;
    CHECK_OK(VipCreateVi(side->nic, &attributes, send, receive, &vi));
    return vi;
}

/* An address at the host of a NIC. */
static inline ADDRESS address_of(SIDE *side, const void *discriminator, size_t length) {
    VIP_NIC_ATTRIBUTES attributes;
    ADDRESS address;
    CHECK_OK(VipQueryNic(side->nic, &attributes));
    memset(&address, 0, sizeof(address));
    address.address.HostAddressLen = attributes.NicAddressLen;
    address.address.DiscriminatorLen = (VIP_UINT16)length;
    memcpy(address.room + 4, attributes.LocalNicAddress, attributes.NicAddressLen);
    memcpy(address.room + 4 + attributes.NicAddressLen, discriminator, length);
    return address;
}

typedef struct {
    SIDE *server;
    ADDRESS address;
    VIP_RETURN code;
} WAITING;

static inline void *accept_one(void *argument) {
    WAITING *waiting = argument;
    VIP_CONN_HANDLE connection = NULL;
    VIP_VI_ATTRIBUTES attributes;
    ADDRESS remote;
    CHECK_OK(VipConnectWait(waiting->server->nic, &waiting->address.address, LIMIT, &remote.address, &attributes,
                            &connection));
    waiting->code = VipConnectAccept(connection, waiting->server->vi);
    return NULL;
}

/* Asks until somebody waits. */
static inline VIP_RETURN request_matched(VIP_VI_HANDLE vi, ADDRESS *local, ADDRESS *remote, VIP_ULONG timeout) {
    time_t deadline = time(NULL) + PATIENCE;
    VIP_RETURN code;
    do {
        VIP_VI_ATTRIBUTES attributes;
        code = VipConnectRequest(vi, &local->address, &remote->address, timeout, &attributes);
        CHECK(time(NULL) < deadline);
    } while (code == VIP_NO_MATCH);
    return code;
}

/* Connects the idle VIs of both sides. */
static inline void connect_sides(SIDE *server, SIDE *client) {
    static int last;
    char name[32];
    ADDRESS local = address_of(client, "client", 6);
    WAITING waiting;
    pthread_t thread;
    int length = snprintf(name, sizeof(name), "%d.%d", (int)getpid(), last++);
    waiting.server = server;
    waiting.address = address_of(server, name, (size_t)length);
    CHECK(pthread_create(&thread, NULL, accept_one, &waiting) == 0);
    CHECK_OK(request_matched(client->vi, &local, &waiting.address, LIMIT));
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_OK(waiting.code);
}

static inline void open_sides(SIDE *server, SIDE *client, VIP_RELIABILITY_LEVEL level) {
    open_side(server);
    open_side(client);
    server->vi = new_vi(server, level, NULL, NULL);
    client->vi = new_vi(client, level, NULL, NULL);
    connect_sides(server, client);
}

/* Disconnects, takes what is left, and destroys. */
static inline void end_vi(SIDE *side) {
    VIP_DESCRIPTOR *taken;
    CHECK_OK(VipDisconnect(side->vi));
    do {
        (void)VipSendDone(side->vi, &taken);
    } while (taken != NULL);
    do {
        (void)VipRecvDone(side->vi, &taken);
    } while (taken != NULL);
    CHECK_OK(VipDestroyVi(side->vi));
}

static inline void close_sides(SIDE *server, SIDE *client) {
    end_vi(client);
    end_vi(server);
    close_side(client);
    close_side(server);
}

static inline VIP_DESCRIPTOR *slot(SIDE *side, int index) {
    VIP_DESCRIPTOR *descriptor = (VIP_DESCRIPTOR *)(void *)(side->memory + index * SLOT);
    memset(descriptor, 0, SLOT);
    return descriptor;
}

/* A descriptor of one segment in the side's data. */
static inline VIP_DESCRIPTOR *fill(SIDE *side, int index, size_t offset, VIP_UINT32 length) {
    VIP_DESCRIPTOR *descriptor = slot(side, index);
    CONTROL(descriptor).SegCount = 1;
    CONTROL(descriptor).Length = length;
    SEGMENTS(descriptor)[0].Local.Data.Address = side->data + offset;
    SEGMENTS(descriptor)[0].Local.Handle = side->handle;
    SEGMENTS(descriptor)[0].Local.Length = length;
    return descriptor;
}

/* An RDMA descriptor: to or from the other side's data. */
static inline VIP_DESCRIPTOR *fill_rdma(SIDE *side, int index, VIP_UINT16 control, SIDE *other, size_t at,
                                        size_t offset, VIP_UINT32 length) {
    VIP_DESCRIPTOR *descriptor = slot(side, index);
    VIP_DESCRIPTOR_SEGMENT *segments = SEGMENTS(descriptor);
    CONTROL(descriptor).SegCount = 2;
    CONTROL(descriptor).Control = control;
    segments[0].Remote.Data.Address = other->data + at;
    segments[0].Remote.Handle = other->handle;
    segments += 1;
    segments->Local.Data.Address = side->data + offset;
    segments->Local.Handle = side->handle;
    segments->Local.Length = length;
    return descriptor;
}

static inline void post_send(SIDE *side, VIP_DESCRIPTOR *descriptor) {
    CHECK_OK(VipPostSend(side->vi, descriptor, side->handle));
}

static inline void post_receive(SIDE *side, VIP_DESCRIPTOR *descriptor) {
    CHECK_OK(VipPostRecv(side->vi, descriptor, side->handle));
}

/* Takes a completed descriptor; the other side makes progress meanwhile. Its status. */
static inline VIP_UINT32 finish(SIDE *side, VIP_DESCRIPTOR *wanted, int is_receive, SIDE *other) {
    time_t deadline = time(NULL) + PATIENCE;
    VIP_DESCRIPTOR *taken = NULL;
    VIP_VI_STATE state;
    VIP_RETURN code;
    for (;;) {
        code = is_receive ? VipRecvDone(side->vi, &taken) : VipSendDone(side->vi, &taken);
        if (code != VIP_NOT_DONE) {
            break;
        }
        CHECK_OK(VipQueryVi(other->vi, &state, NULL, NULL, NULL));
        CHECK(time(NULL) < deadline);
    }
    CHECK(taken == wanted);
    CHECK_CODE(code, CONTROL(taken).Status & VIP_STATUS_ERROR_MASK ? VIP_DESCRIPTOR_ERROR : VIP_SUCCESS);
    CHECK(CONTROL(taken).Status & VIP_STATUS_DONE);
    return CONTROL(taken).Status;
}

static inline void await_state(SIDE *side, VIP_VI_STATE wanted, SIDE *other) {
    time_t deadline = time(NULL) + PATIENCE;
    VIP_VI_STATE state, ignored;
    do {
        CHECK_OK(VipQueryVi(other->vi, &ignored, NULL, NULL, NULL));
        CHECK_OK(VipQueryVi(side->vi, &state, NULL, NULL, NULL));
        CHECK(time(NULL) < deadline);
    } while (state != wanted);
}

#endif /* SIDES_H */
