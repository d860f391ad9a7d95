/*
 * A thread that is cancelled opens, connects, closes and ends the library all the same.
 */

#include "pair.h"

#include "../../../cancelled_thread.h"

/* As one that prints. */
static mx_return_t tell(char *text, mx_return_t code) {
    CHECK(strlen(text) > 0);
    pthread_testcancel();
    return code;
}

static int taken;

static mx_unexp_handler_action_t take(void *context, mx_endpoint_addr_t source, uint64_t bits, uint32_t length,
                                      void *data) {
    (void)context, (void)source, (void)bits, (void)length, (void)data;
    pthread_testcancel();
    taken = 1;
    return MX_RECV_FINISHED;
}

static void from_begin_to_end(void) {
    mx_endpoint_addr_t own, nobody;
    char host[MX_MAX_HOSTNAME_LEN];
    uint64_t nic;
    uint32_t id;
    mx_request_t request;

    OK(mx_init());
    OK(mx_open_endpoint(MX_ANY_NIC, MX_ANY_ENDPOINT, KEY, NULL, 0, &endpoint));
    OK(mx_get_endpoint_addr(endpoint, &own));
    OK(mx_decompose_endpoint_addr(own, &nic, &id));
    OK(mx_nic_id_to_hostname(nic, host));
    OK(mx_connect(endpoint, nic, id, KEY, 1000 * PATIENCE, &own));
    OK(mx_register_unexp_handler(endpoint, take, NULL));
    peer = own;
    request = start_send("hello", 5, 1);
    while (!taken)
        OK(mx_progress(endpoint));
    OK(mx_forget(endpoint, &request));
    mx_set_error_handler(tell);
    CHECK(mx_connect(endpoint, nic, id + 1, KEY, 100, &nobody) != MX_SUCCESS);
    OK(mx_close_endpoint(endpoint));
    OK(mx_finalize());
}

int main(void) {
    run_cancelled(from_begin_to_end);
    puts("called");
    return 0;
}
