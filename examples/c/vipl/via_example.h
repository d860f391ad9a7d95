/*
 * What the examples of the VI Architecture share: one end with a NIC, a VI, and memory for two
 * receives and a send. Errors end the program.
 */

#ifndef VIA_EXAMPLE_H
#define VIA_EXAMPLE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <vipl.h>

#define LIMIT 10000 /* milliseconds */
#define BYTES 64

/* Which work queues report to the completion queue. */
enum { NO_QUEUE, RECEIVE_QUEUE, BOTH_QUEUES };

static inline void check(VIP_RETURN code, const char *what)
{
    if (code != VIP_SUCCESS) {
        fprintf(stderr, "%s: VIPL code %d\n", what, (int)code);
        exit(1);
    }
}

/* Descriptors and bytes of one end, in one registration. */
struct memory {
    VIP_DESCRIPTOR receive[2];
    VIP_DESCRIPTOR send;
    char in[2][BYTES];
    char out[BYTES];
    char box[2][BYTES]; /* for RDMA writes of the other end */
};

struct end {
    VIP_NIC_HANDLE nic;
    VIP_PROTECTION_HANDLE tag;
    VIP_CQ_HANDLE queue;
    VIP_VI_HANDLE vi;
    VIP_MEM_HANDLE handle;
    struct memory *memory;
    int waiting[2]; /* sends and receives that the completion queue has named, and nobody taken */
};

union address {
    VIP_NET_ADDRESS net;
    unsigned char room[4 + 16 + 64];
};

static inline void name(union address *address, const char *discriminator)
{
    size_t length = strlen(discriminator);

    address->net.DiscriminatorLen = (VIP_UINT16)length;
    memcpy(address->room + 4 + address->net.HostAddressLen, discriminator, length);
}

static inline void post_receive(struct end *end, VIP_DESCRIPTOR *descriptor)
{
    long index = descriptor - end->memory->receive;

    memset(descriptor, 0, sizeof(*descriptor));
    descriptor->Control.SegCount = 1;
    descriptor->Data[0].Local.Data.Address = end->memory->in[index];
    descriptor->Data[0].Local.Handle = end->handle;
    descriptor->Data[0].Local.Length = BYTES;
    check(VipPostRecv(end->vi, descriptor, end->handle), "VipPostRecv");
}

static inline void send_text(struct end *end, int number)
{
    VIP_DESCRIPTOR *descriptor = &end->memory->send;
    VIP_DESCRIPTOR *done;

    snprintf(end->memory->out, BYTES, "message %d", number);
    memset(descriptor, 0, sizeof(*descriptor));
    descriptor->Control.SegCount = 1;
    descriptor->Control.Control = VIP_CONTROL_IMMEDIATE;
    descriptor->Control.ImmediateData = (VIP_UINT32)number;
    descriptor->Data[0].Local.Data.Address = end->memory->out;
    descriptor->Data[0].Local.Handle = end->handle;
    descriptor->Data[0].Local.Length = BYTES;
    check(VipPostSend(end->vi, descriptor, end->handle), "VipPostSend");
    check(VipSendWait(end->vi, LIMIT, &done), "VipSendWait");
}

/* Posts a send of `out`, or an RDMA write of it to that place of the other end, with a number. */
static inline void start_send(struct end *end, int number, char *place, VIP_MEM_HANDLE handle)
{
    VIP_DESCRIPTOR *descriptor = &end->memory->send;
    VIP_DESCRIPTOR_SEGMENT *segment = descriptor->Data;

    memset(descriptor, 0, sizeof(*descriptor));
    descriptor->Control.Control = VIP_CONTROL_IMMEDIATE;
    descriptor->Control.ImmediateData = (VIP_UINT32)number;
    if (place != NULL) {
        descriptor->Control.Control |= VIP_CONTROL_OP_RDMAWRITE;
        descriptor->Control.SegCount = 1;
        segment->Remote.Data.Address = place;
        segment->Remote.Handle = handle;
        segment++;
    }
    descriptor->Control.SegCount++;
    segment->Local.Data.Address = end->memory->out;
    segment->Local.Handle = end->handle;
    segment->Local.Length = BYTES;
    check(VipPostSend(end->vi, descriptor, end->handle), "VipPostSend");
}

/* Waits for the next completion of either kind by the completion queue; what comes of the other
 * kind is counted for a later call. Of a receive: its index. */
static inline long take(struct end *end, int wants_receive)
{
    VIP_DESCRIPTOR *done;
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN is_receive;

    while (end->waiting[wants_receive] == 0) {
        check(VipCQWait(end->queue, LIMIT, &vi, &is_receive), "VipCQWait");
        end->waiting[is_receive ? 1 : 0]++;
    }
    end->waiting[wants_receive]--;
    if (!wants_receive) {
        check(VipSendDone(end->vi, &done), "VipSendDone");
        return 0;
    }
    check(VipRecvDone(end->vi, &done), "VipRecvDone");
    return done - end->memory->receive;
}

/* The next message, in a descriptor that is posted again for the one after the next. */
static inline int receive(struct end *end)
{
    VIP_DESCRIPTOR *done;
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN is_receive;
    int number;

    if (end->queue != NULL) {
        check(VipCQWait(end->queue, LIMIT, &vi, &is_receive), "VipCQWait");
        check(VipRecvDone(vi, &done), "VipRecvDone");
    } else {
        check(VipRecvWait(end->vi, LIMIT, &done), "VipRecvWait");
    }
    number = (int)done->Control.ImmediateData;
    post_receive(end, done);
    return number;
}

static inline void open_end(struct end *end, int queues)
{
    VIP_VI_ATTRIBUTES attributes = {0};
    VIP_MEM_ATTRIBUTES access = {0};
    void *memory = NULL;

    memset(end, 0, sizeof(*end));
    check(VipOpenNic("/dev/via0", &end->nic), "VipOpenNic");
    check(VipNSInit(end->nic, NULL), "VipNSInit");
    check(VipCreatePtag(end->nic, &end->tag), "VipCreatePtag");
    if (queues != NO_QUEUE) {
        check(VipCreateCQ(end->nic, 4, &end->queue), "VipCreateCQ");
    }
    attributes.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
    attributes.MaxTransferSize = 4096;
    attributes.Ptag = end->tag;
    attributes.EnableRdmaWrite = VIP_TRUE;
    check(VipCreateVi(end->nic, &attributes, queues == BOTH_QUEUES ? end->queue : NULL, end->queue, &end->vi),
          "VipCreateVi");
    if (posix_memalign(&memory, VIP_DESCRIPTOR_ALIGNMENT, sizeof(struct memory)) != 0) {
        fprintf(stderr, "no memory\n");
        exit(1);
    }
    end->memory = memset(memory, 0, sizeof(struct memory));
    access.Ptag = end->tag;
    access.EnableRdmaWrite = VIP_TRUE;
    check(VipRegisterMem(end->nic, memory, sizeof(struct memory), &access, &end->handle), "VipRegisterMem");
    /* Receives are posted before the peer can send. */
    post_receive(end, &end->memory->receive[0]);
    post_receive(end, &end->memory->receive[1]);
}

static inline void close_end(struct end *end)
{
    VIP_DESCRIPTOR *done;

    check(VipDisconnect(end->vi), "VipDisconnect");
    do {
        (void)VipRecvDone(end->vi, &done);
    } while (done != NULL);
    check(VipDestroyVi(end->vi), "VipDestroyVi");
    if (end->queue != NULL) {
        check(VipDestroyCQ(end->queue), "VipDestroyCQ");
    }
    check(VipDeregisterMem(end->nic, end->memory, end->handle), "VipDeregisterMem");
    check(VipDestroyPtag(end->nic, end->tag), "VipDestroyPtag");
    check(VipNSShutdown(end->nic), "VipNSShutdown");
    check(VipCloseNic(end->nic), "VipCloseNic");
    free(end->memory);
}

static inline void own_address(struct end *end, union address *address)
{
    VIP_NIC_ATTRIBUTES attributes;

    check(VipQueryNic(end->nic, &attributes), "VipQueryNic");
    memset(address, 0, sizeof(*address));
    address->net.HostAddressLen = attributes.NicAddressLen;
    memcpy(address->net.HostAddress, attributes.LocalNicAddress, attributes.NicAddressLen);
}

#endif /* VIA_EXAMPLE_H */
