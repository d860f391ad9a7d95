/*
 * A child that is forked while threads of its parent call: each call on a NIC of the parent is
 * refused at once, and the child opens its own NIC.
 */

#include <signal.h>
#include <sys/wait.h>

#include "sides.h"

#define CHILDREN 60

static SIDE shared;
static VIP_CQ_HANDLE queue;
static volatile int is_over;

/* Has the locks of the NIC for much of the time. */
static void *take(void *unused) {
    VIP_DESCRIPTOR *descriptor;
    VIP_VI_STATE state;
    (void)unused;
    while (!is_over) {
        (void)VipRecvDone(shared.vi, &descriptor);
        (void)VipQueryVi(shared.vi, &state, NULL, NULL, NULL);
    }
    return NULL;
}

/* Has the table of the NICs for much of the time. */
static void *open_and_close(void *unused) {
    VIP_NIC_HANDLE nic;
    (void)unused;
    while (!is_over) {
        CHECK_OK(VipOpenNic("/dev/via0", &nic));
        CHECK_OK(VipCloseNic(nic));
    }
    return NULL;
}

static void on_entry(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_BOOLEAN is_receive) {
    (void)context, (void)nic, (void)vi, (void)is_receive;
}

static void on_completion(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_DESCRIPTOR *descriptor) {
    (void)context, (void)nic, (void)vi, (void)descriptor;
}

#define REFUSED(call) CHECK_CODE(call, VIP_ERROR_RESOURCE)

static void call_all(ADDRESS *address) {
    VIP_NIC_ATTRIBUTES nic;
    VIP_VI_ATTRIBUTES attributes = vi_attributes(&shared, VIP_SERVICE_UNRELIABLE);
    VIP_MEM_ATTRIBUTES memory = {shared.tag, VIP_FALSE, VIP_FALSE};
    VIP_DESCRIPTOR *descriptor = (VIP_DESCRIPTOR *)(void *)shared.memory;
    VIP_VI_HANDLE vi;
    VIP_CQ_HANDLE other;
    VIP_MEM_HANDLE handle;
    VIP_PROTECTION_HANDLE tag;
    VIP_BOOLEAN is_receive;
    REFUSED(VipPostSend(shared.vi, descriptor, shared.handle));
    REFUSED(VipPostRecv(shared.vi, descriptor, shared.handle));
    REFUSED(VipSendDone(shared.vi, &descriptor));
    REFUSED(VipRecvDone(shared.vi, &descriptor));
    REFUSED(VipSendWait(shared.vi, VIP_INFINITE, &descriptor));
    REFUSED(VipRecvWait(shared.vi, VIP_INFINITE, &descriptor));
    REFUSED(VipRecvNotify(shared.vi, NULL, on_completion));
    REFUSED(VipCQNotify(queue, NULL, on_entry));
    REFUSED(VipCQDone(queue, &vi, &is_receive));
    REFUSED(VipCQWait(queue, VIP_INFINITE, &vi, &is_receive));
    REFUSED(VipCreateCQ(shared.nic, 16, &other));
    REFUSED(VipResizeCQ(queue, 16));
    REFUSED(VipDestroyCQ(queue));
    REFUSED(VipQueryNic(shared.nic, &nic));
    REFUSED(VipCreateVi(shared.nic, &attributes, NULL, NULL, &vi));
    REFUSED(VipSetViAttributes(shared.vi, &attributes));
    REFUSED(VipConnectPeerRequest(shared.vi, &address->address, &address->address, LIMIT));
    REFUSED(VipConnectRequest(shared.vi, &address->address, &address->address, LIMIT, &attributes));
    REFUSED(VipDisconnect(shared.vi));
    REFUSED(VipDestroyVi(shared.vi));
    REFUSED(VipCreatePtag(shared.nic, &tag));
    REFUSED(VipRegisterMem(shared.nic, shared.data, BYTES, &memory, &handle));
    REFUSED(VipDeregisterMem(shared.nic, shared.memory, shared.handle));
    REFUSED(VipErrorCallback(shared.nic, &shared, on_fault));
    REFUSED(VipNSInit(shared.nic, NULL));
    REFUSED(VipCloseNic(shared.nic));
    CHECK(shared.faults[VIP_ERROR_CATASTROPHIC] <= 1);
}

static void be_child(ADDRESS *address, int at) {
    SIDE own;
    /* Beyond it a call hangs. */
    alarm(PATIENCE);
    if (at % 2 == 0)
        call_all(address);
    open_side(&own);
    CHECK(own.nic != shared.nic);
    call_all(address);
    close_side(&own);
    _exit(0);
}

int main(void) {
    ADDRESS address;
    pthread_t threads[2];
    int at, status;
    open_side(&shared);
    shared.vi = new_vi(&shared, VIP_SERVICE_UNRELIABLE, NULL, NULL);
    CHECK_OK(VipCreateCQ(shared.nic, 16, &queue));
    address = address_of(&shared, "forked", 6);
    CHECK(pthread_create(&threads[0], NULL, take, NULL) == 0);
    CHECK(pthread_create(&threads[1], NULL, open_and_close, NULL) == 0);
    for (at = 0; at < CHILDREN; at++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0)
            be_child(&address, at);
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    is_over = 1;
    CHECK(pthread_join(threads[0], NULL) == 0 && pthread_join(threads[1], NULL) == 0);
    CHECK(shared.faults[VIP_ERROR_CATASTROPHIC] == 0);
    CHECK_OK(VipDestroyCQ(queue));
    CHECK_OK(VipDestroyVi(shared.vi));
    close_side(&shared);
    puts("refused");
    return 0;
}
