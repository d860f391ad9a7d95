/*
 * A stream of messages that come before their receives: the sender stalls, nothing is lost, and all
 * is in order. Every tenth is large.
 */

#include "pair.h"

#define COUNT 5000
#define LARGE 50000

static uint32_t words[COUNT], in[LARGE / 4], large[LARGE / 4];

int main(int argc, char **argv) {
    mx_param_t param;
    mx_request_t requests[COUNT], go;
    mx_status_t status;
    uint32_t at, result;

    CHECK(argc == 5);
    memset(&param, 0, sizeof param);
    param.key = MX_PARAM_UNEXP_QUEUE_MAX;
    param.val.unexp_queue_max = 256 * 1024;
    begin(argv, &param, 1);
    if (rank == 0) {
        for (at = 0; at < COUNT; at++) {
            words[at] = at;
            requests[at] = at % 10 == 9 ? start_send(large, LARGE, 1) : start_send(&words[at], 4, 1);
        }
        OK(mx_test(endpoint, &requests[COUNT - 1], &status, &result));
        CHECK(result == 0);
        go = start_send(NULL, 0, 2);
        for (at = 0; at < COUNT; at++)
            finish(requests[at]);
        finish(go);
    } else {
        /* What has come is bounded, and this is behind all of it. */
        OK(mx_probe(endpoint, 50, 2, MX_MATCH_MASK_NONE, &status, &result));
        CHECK(result == 0);
        for (at = 0; at < COUNT; at++) {
            in[0] = 77;
            status = finish(start_receive(in, LARGE, 1));
            CHECK(status.msg_length == (at % 10 == 9 ? LARGE : 4u) && in[0] == (at % 10 == 9 ? 0 : at));
        }
        finish(start_receive(NULL, 0, 2));
    }
    finish_together("streamed");
    return 0;
}
