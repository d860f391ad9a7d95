/*
 * A thread that is cancelled opens, waits for clients, connects and closes all the same.
 */

#include "sides.h"

#include "../../../cancelled_thread.h"

static void from_begin_to_end(void) {
    SIDE side;
    ADDRESS own, other;
    VIP_VI_ATTRIBUTES attributes;
    VIP_CONN_HANDLE connection;
    VIP_CQ_HANDLE queue;
    VIP_VI_HANDLE vi;

    open_side(&side);
    own = address_of(&side, &side, sizeof(void *));
    other = own;
    CHECK_OK(VipNSInit(side.nic, NULL));
    CHECK_OK(VipNSGetHostByName(side.nic, "localhost", &other.address, 0));
    CHECK_OK(VipNSShutdown(side.nic));
    CHECK_CODE(VipConnectWait(side.nic, &own.address, SHORT, &other.address, &attributes, &connection), VIP_TIMEOUT);
    CHECK_OK(VipCreateCQ(side.nic, 8, &queue));
    vi = new_vi(&side, VIP_SERVICE_RELIABLE_DELIVERY, NULL, queue);
    CHECK_CODE(VipConnectRequest(vi, &own.address, &own.address, SHORT, &attributes), VIP_NO_MATCH);
    CHECK_OK(VipDestroyVi(vi));
    CHECK_OK(VipDestroyCQ(queue));
    close_side(&side);
}

int main(void) {
    run_cancelled(from_begin_to_end);
    puts("called");
    return 0;
}
