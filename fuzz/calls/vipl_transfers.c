/* libvipl: descriptors, posted and taken. */

#include "vipl_calls.h"

static volatile char is_posted[SLOTS];

void note_done(VIP_DESCRIPTOR *descriptor) {
    size_t at = (size_t)((unsigned char *)descriptor - descriptors) / SLOT;

    if (!descriptor)
        return;
    PROMISE(at < SLOTS && is_posted[at]);
    is_posted[at] = 0;
}

int is_done(VIP_RETURN code) {
    return code == VIP_SUCCESS || code == VIP_DESCRIPTOR_ERROR;
}

/* A free slot; NULL: all are posted. */
static VIP_DESCRIPTOR *fill(void) {
    unsigned at = below(SLOTS), segment;
    VIP_DESCRIPTOR *descriptor = (VIP_DESCRIPTOR *)(void *)(descriptors + at * SLOT);

    if (is_posted[at])
        return NULL;
    memset(descriptor, 0, SLOT);
    descriptor->Control.SegCount = (VIP_UINT16)(one_in(3) ? below(5) : 1);
    descriptor->Control.Control = one_in(6) ? VIP_CONTROL_IMMEDIATE : 0;
    descriptor->Control.ImmediateData = (VIP_UINT32)draw();
    if (one_in(100))
        descriptor->Control.Control = (VIP_UINT16)draw();
    for (segment = 0; segment < 4; segment++) {
        VIP_DATA_SEGMENT *local = &((VIP_DESCRIPTOR_SEGMENT *)(void *)(descriptor->Data + segment))->Local;
        uint32_t length = one_in(20) ? length_to(BYTES) : length_to(2000);

        local->Data.Address = data + below(BYTES - length + 1);
        local->Handle = one_in(50) ? (VIP_MEM_HANDLE)draw() : handles[0];
        local->Length = one_in(200) ? (VIP_UINT32)draw() : length;
    }
    return descriptor;
}

/* Memory of the own NIC, and of the peer for RDMA. */
static void address_memory(VIP_DESCRIPTOR *descriptor, unsigned nic, int rdma) {
    unsigned segment, first = 0;
    VIP_DESCRIPTOR_SEGMENT *segments = descriptor->Data;

    if (rdma) {
        int of = processes == 2 && one_in(2) ? !process : process;

        memcpy(&segments->Remote.Data.AddressBits, board->entries[of][8], 8);
        memcpy(&segments->Remote.Handle, board->entries[of][8] + 8 + 4 * below(NICS), 4);
        descriptor->Control.Control |= one_in(4) ? VIP_CONTROL_OP_RDMAREAD : VIP_CONTROL_OP_RDMAWRITE;
        if (descriptor->Control.SegCount == 0)
            descriptor->Control.SegCount = 1;
        first = 1;
    }
    for (segment = first; segment < 4; segment++)
        if (segments[segment].Local.Handle == handles[0])
            segments[segment].Local.Handle = handles[nic];
}

void post(void) {
    unsigned at = below(VIS);
    VIP_DESCRIPTOR *descriptor = fill();
    VIP_MEM_HANDLE handle = one_in(100) ? (VIP_MEM_HANDLE)draw() : handles[nic_of[at]];
    int is_receive = one_in(2);
    unsigned slot;
    VIP_RETURN code;

    if (!descriptor)
        return;
    slot = (unsigned)((unsigned char *)descriptor - descriptors) / SLOT;
    address_memory(descriptor, nic_of[at], !is_receive && one_in(4));
    if (one_in(300))
        descriptor = (VIP_DESCRIPTOR *)(void *)((unsigned char *)descriptor + 8);
    /* Before the call: a handler may take it back before that returns. */
    is_posted[slot] = 1;
    if (is_receive)
        code = CALL(VipPostRecv, vis[at], one_in(300) ? NULL : descriptor, handle);
    else
        code = CALL(VipPostSend, vis[at], descriptor, handle);
    if (code != VIP_SUCCESS)
        is_posted[slot] = 0;
}

/* Takes what has completed. */
void take(void) {
    VIP_VI_HANDLE vi = a_vi();
    VIP_DESCRIPTOR *descriptor = NULL;
    VIP_RETURN code;

    switch (below(8)) {
    case 0:
        code = CALL_GOOD(VipSendWait, is_done(result_), VipSendWait(vi, 1, &descriptor));
        break;
    case 1:
        code = CALL_GOOD(VipRecvWait, is_done(result_), VipRecvWait(vi, 1, &descriptor));
        break;
    case 2:
    case 3:
    case 4:
        code = CALL_GOOD(VipSendDone, is_done(result_), VipSendDone(vi, one_in(300) ? NULL : &descriptor));
        break;
    default:
        code = CALL_GOOD(VipRecvDone, is_done(result_), VipRecvDone(vi, one_in(300) ? NULL : &descriptor));
    }
    if (is_done(code))
        note_done(descriptor);
}

void take_from_queue(void) {
    VIP_VI_HANDLE vi = NULL;
    VIP_BOOLEAN is_receive = 0;
    VIP_DESCRIPTOR *descriptor = NULL;
    VIP_RETURN code;

    if (one_in(8))
        code = CALL(VipCQWait, a_queue(), 1, &vi, &is_receive);
    else
        code = CALL(VipCQDone, a_queue(), one_in(300) ? NULL : &vi, &is_receive);
    if (code != VIP_SUCCESS || !vi)
        return;
    if (is_receive)
        code = CALL_GOOD(VipRecvDone, is_done(result_), VipRecvDone(vi, &descriptor));
    else
        code = CALL_GOOD(VipSendDone, is_done(result_), VipSendDone(vi, &descriptor));
    if (is_done(code))
        note_done(descriptor);
}
