/*
 * Sizes, offsets and values of vipl.h, with both spellings of the members.
 */

#include <stddef.h>

#include <vipl.h>

#include "check.h"

#define IS(what, wanted) CHECK((long)(what) == (long)(wanted))
#define AT(type, member, wanted) IS(offsetof(type, member), wanted)

int main(void) {
    IS(sizeof(VIP_CONTROL_SEGMENT), 32);
    AT(VIP_CONTROL_SEGMENT, Next, 0);
    AT(VIP_CONTROL_SEGMENT, NextHandle, 8);
    AT(VIP_CONTROL_SEGMENT, SegCount, 12);
    AT(VIP_CONTROL_SEGMENT, Control, 14);
    AT(VIP_CONTROL_SEGMENT, Reserved, 16);
    AT(VIP_CONTROL_SEGMENT, ImmediateData, 20);
    AT(VIP_CONTROL_SEGMENT, Length, 24);
    AT(VIP_CONTROL_SEGMENT, Status, 28);
    IS(sizeof(VIP_DATA_SEGMENT), 16);
    AT(VIP_DATA_SEGMENT, Data, 0);
    AT(VIP_DATA_SEGMENT, Handle, 8);
    AT(VIP_DATA_SEGMENT, Length, 12);
    IS(sizeof(VIP_ADDRESS_SEGMENT), 16);
    AT(VIP_ADDRESS_SEGMENT, Handle, 8);
    AT(VIP_ADDRESS_SEGMENT, Reserved, 12);
    IS(sizeof(VIP_DESCRIPTOR), 64);
    AT(VIP_DESCRIPTOR, CS, 0);
    AT(VIP_DESCRIPTOR, DS, 32);
    AT(VIP_DESCRIPTOR, DS[1], 48);
    AT(VIP_DESCRIPTOR, Control, 0);
    AT(VIP_DESCRIPTOR, Data, 32);
    {
        VIP_DESCRIPTOR descriptor;
        memset(&descriptor, 0, sizeof(descriptor));
        descriptor.CS.SegCount = 3;
        descriptor.DS[0].Local.Length = 5;
        IS(descriptor.Control.SegCount, 3);
        IS(descriptor.Data[0].Local.Length, 5);
    }
    {
        struct {
            char before;
            VIP_DESCRIPTOR descriptor;
        } aligned;
        IS((char *)&aligned.descriptor - &aligned.before, 64);
    }
    IS(sizeof(VIP_NIC_ATTRIBUTES), 200);
    IS(sizeof(VIP_VI_ATTRIBUTES), 40);
    IS(sizeof(VIP_MEM_ATTRIBUTES), 16);
    IS(sizeof(VIP_ERROR_DESCRIPTOR), 48);
    AT(VIP_NET_ADDRESS, DiscriminatorLen, 2);
    AT(VIP_NET_ADDRESS, HostAddress, 4);
    IS(sizeof(VIP_MEM_HANDLE), 4);
    IS(sizeof(VIP_ULONG), sizeof(unsigned long));
    IS(sizeof(VIP_NIC_HANDLE), sizeof(void *));

    IS(VIP_CONTROL_OP_SENDRECV, 0);
    IS(VIP_CONTROL_OP_RDMAWRITE, 1);
    IS(VIP_CONTROL_OP_RDMAREAD, 2);
    IS(VIP_CONTROL_OP_MASK, 3);
    IS(VIP_CONTROL_IMMEDIATE, 4);
    IS(VIP_CONTROL_QFENCE, 8);
    IS(VIP_STATUS_DONE, 1);
    IS(VIP_STATUS_FORMAT_ERROR, 2);
    IS(VIP_STATUS_PROTECTION_ERROR, 4);
    IS(VIP_STATUS_LENGTH_ERROR, 8);
    IS(VIP_STATUS_PARTIAL_ERROR, 0x10);
    IS(VIP_STATUS_DESC_FLUSHED_ERROR, 0x20);
    IS(VIP_STATUS_TRANSPORT_ERROR, 0x40);
    IS(VIP_STATUS_RDMA_PROT_ERROR, 0x80);
    IS(VIP_STATUS_REMOTE_DESC_ERROR, 0x100);
    IS(VIP_STATUS_ERROR_MASK, 0x1FE);
    IS(VIP_STATUS_OP_SEND, 0);
    IS(VIP_STATUS_OP_RECEIVE, 0x10000);
    IS(VIP_STATUS_OP_RDMA_WRITE, 0x20000);
    IS(VIP_STATUS_OP_REMOTE_RDMA_WRITE, 0x30000);
    IS(VIP_STATUS_OP_RDMA_READ, 0x40000);
    IS(VIP_STATUS_OP_MASK, 0x70000);
    IS(VIP_STATUS_IMMEDIATE, 0x80000);

    IS(VIP_SUCCESS, 0);
    IS(VIP_NOT_DONE, 1);
    IS(VIP_INVALID_PARAMETER, 2);
    IS(VIP_ERROR_RESOURCE, 3);
    IS(VIP_TIMEOUT, 4);
    IS(VIP_REJECT, 5);
    IS(VIP_INVALID_RELIABILITY_LEVEL, 6);
    IS(VIP_INVALID_MTU, 7);
    IS(VIP_INVALID_QOS, 8);
    IS(VIP_INVALID_PTAG, 9);
    IS(VIP_INVALID_RDMAREAD, 10);
    IS(VIP_DESCRIPTOR_ERROR, 11);
    IS(VIP_INVALID_STATE, 12);
    IS(VIP_ERROR_NAMESERVICE, 13);
    IS(VIP_NO_MATCH, 14);
    IS(VIP_NOT_REACHABLE, 15);
    IS(VIP_ERROR_NOT_SUPPORTED, 16);

    IS(VIP_ERROR_POST_DESC, 0);
    IS(VIP_ERROR_CATASTROPHIC, 10);
    IS(VIP_RESOURCE_NIC, 0);
    IS(VIP_RESOURCE_DESCRIPTOR, 3);
    IS(VIP_STATE_IDLE, 0);
    IS(VIP_STATE_CONNECTED, 1);
    IS(VIP_STATE_CONNECT_PENDING, 2);
    IS(VIP_STATE_ERROR, 3);
    IS(VIP_SERVICE_UNRELIABLE, 1);
    IS(VIP_SERVICE_RELIABLE_DELIVERY, 2);
    IS(VIP_SERVICE_RELIABLE_RECEPTION, 4);
    puts("laid out");
    return 0;
}
