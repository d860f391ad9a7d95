/*
 * Handles of endpoints that were closed, and of the process that has forked this one, name nothing
 * of an endpoint that is opened later, also where it has the place of the first one.
 */

#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

#define REQUESTS 4

static mx_request_t requests[REQUESTS];

static void open_and_receive(void) {
    unsigned at;

    OK(mx_open_endpoint(MX_ANY_NIC, MX_ANY_ENDPOINT, KEY, NULL, 0, &endpoint));
    for (at = 0; at < REQUESTS; at++)
        requests[at] = start_receive(NULL, 0, at);
}

/* Each of these is none of the endpoint that is open now. */
static void are_stale(const mx_request_t *stale) {
    mx_status_t status;
    uint32_t result;
    unsigned at, other;
    void *context;

    for (at = 0; at < REQUESTS; at++) {
        mx_request_t request = stale[at];

        for (other = 0; other < REQUESTS; other++)
            CHECK(request != requests[other]);
        CHECK_CODE(mx_test(endpoint, &request, &status, &result), MX_BAD_REQUEST);
        CHECK_CODE(mx_cancel(endpoint, &request, &result), MX_BAD_REQUEST);
        CHECK_CODE(mx_context(&request, &context), MX_BAD_REQUEST);
    }
}

/* What this process has opened names nothing in a child that opens the same. */
static void in_a_child(unsigned depth) {
    mx_request_t of_parent[REQUESTS];
    mx_endpoint_t closed = endpoint;
    pid_t child;
    int ended;

    memcpy(of_parent, requests, sizeof(requests));
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        OK(mx_init());
        OK(mx_set_error_handler(MX_ERRORS_RETURN));
        open_and_receive();
        CHECK(endpoint != closed);
        CHECK_CODE(mx_progress(closed), MX_BAD_ENDPOINT);
        are_stale(of_parent);
        if (depth > 0)
            in_a_child(depth - 1);
        OK(mx_finalize());
        exit(0);
    }
    CHECK(waitpid(child, &ended, 0) == child && ended == 0);
}

static void fork_twice(void) {
    in_a_child(1);
}

int main(void) {
    mx_request_t before[REQUESTS];
    mx_endpoint_t closed;
    unsigned round;

    OK(mx_init());
    OK(mx_set_error_handler(MX_ERRORS_RETURN));
    open_and_receive();
    for (round = 0; round < 3; round++) {
        memcpy(before, requests, sizeof(requests));
        closed = endpoint;
        OK(mx_close_endpoint(endpoint));
        open_and_receive();
        CHECK_CODE(mx_progress(closed), MX_BAD_ENDPOINT);
        are_stale(before);
    }
    FORKS(fork_twice);
    OK(mx_finalize());
    puts("stale");
    return 0;
}
