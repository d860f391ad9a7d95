/*
 * Context ids part the receives of four users of an endpoint, and their waits.
 */

#include "pair.h"

#define USERS 4
#define SHIFT 60

int main(int argc, char **argv) {
    mx_param_t param;
    uint64_t mask = (uint64_t)0xf << SHIFT, user;
    uint32_t result, in[USERS];
    int round;

    CHECK(argc == 5);
    memset(&param, 0, sizeof param);
    param.key = MX_PARAM_CONTEXT_ID;
    param.val.context_id.bits = 4;
    param.val.context_id.shift = SHIFT;
    begin(argv, &param, 1);
    for (round = 0; round < 200; round++) {
        for (user = 0; rank == 1 && user < USERS; user++) {
            mx_segment_t place = segment(&in[user], 4);
            mx_request_t request;

            OK(mx_irecv(endpoint, &place, 1, user << SHIFT, mask, &in[user], &request));
        }
        /* Sent in one order, waited for in another. */
        for (user = USERS; rank == 0 && user-- > 0;) {
            uint32_t word = (uint32_t)(user * 1000) + (uint32_t)round;

            finish(start_send(&word, 4, user << SHIFT | (uint64_t)round));
        }
        for (user = 0; rank == 1 && user < USERS; user++) {
            mx_status_t status;

            OK(mx_wait_any(endpoint, PATIENCE * 1000, user << SHIFT, mask, &status, &result));
            CHECK(result == 1 && status.context == &in[user]);
            CHECK(status.match_info == (user << SHIFT | (uint64_t)round));
            CHECK(in[user] == user * 1000 + (uint32_t)round);
        }
    }
    finish_together("parted");
    return 0;
}
