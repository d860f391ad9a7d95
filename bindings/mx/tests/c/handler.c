/*
 * The unexpected handler takes what is out of band, answers it, and leaves the rest to receives.
 */

#include "pair.h"

#define OUT_OF_BAND ((uint64_t)1 << 63)

static int taken, left;

static mx_unexp_handler_action_t handler(void *context, mx_endpoint_addr_t source, uint64_t match_info,
                                         uint32_t length, void *data) {
    mx_segment_t answer = segment(data, length);
    mx_request_t request;

    CHECK(context == &taken && memcmp(&source, &peer, sizeof peer) == 0);
    CHECK_CODE(mx_close_endpoint(endpoint), MX_CLOSE_IN_HANDLER);
    if ((match_info & OUT_OF_BAND) == 0) {
        /* The peer may say its farewell before this side is through. */
        left += match_info == 2;
        return MX_RECV_CONTINUE;
    }
    CHECK(data != NULL && length == 5 && memcmp(data, "hello", 5) == 0);
    OK(mx_isend(endpoint, &answer, 1, source, 1, NULL, &request));
    OK(mx_forget(endpoint, &request));
    taken++;
    return MX_RECV_FINISHED;
}

int main(int argc, char **argv) {
    static char large[100000];
    char in[5];
    int round;

    CHECK(argc == 5);
    begin(argv, NULL, 0);
    OK(mx_set_error_handler(MX_ERRORS_RETURN));
    if (rank == 0) {
        /* What comes before the handler is there is not shown to it. */
        finish(start_receive(in, 1, 3));
        for (round = 0; round < 50; round++) {
            mx_request_t answer = start_receive(in, 5, 1), sent;

            sent = start_send(large, round % 2 ? 8 : sizeof large, 2);
            finish(start_send("hello", 5, OUT_OF_BAND | (uint64_t)round));
            finish(answer);
            CHECK(memcmp(in, "hello", 5) == 0);
            finish(sent);
        }
    } else {
        OK(mx_register_unexp_handler(endpoint, handler, &taken));
        finish(start_send("g", 1, 3));
        for (round = 0; round < 50; round++) {
            while (taken <= round)
                OK(mx_progress(endpoint));
            finish(start_receive(large, sizeof large, 2));
        }
        CHECK(left == 50);
        OK(mx_register_unexp_handler(endpoint, NULL, NULL));
    }
    finish_together("handled");
    return 0;
}
