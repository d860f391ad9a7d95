/*
 * What the programs of two processes share: PROGRAM RANK OWN_ID PEER_HOST PEER_ID.
 */

#ifndef PAIR_H
#define PAIR_H

#include <mx_extensions.h>

#include "../../../compat_check.h"

#define KEY 0x1234
#define OK(call) CHECK_CODE(call, MX_SUCCESS)

static int rank;
static mx_endpoint_t endpoint;
static mx_endpoint_addr_t peer;

static inline mx_segment_t segment(void *start, uint32_t length) {
    mx_segment_t segment = {start, length};

    return segment;
}

/* Waits for a request, which is to end well. */
static inline mx_status_t finish(mx_request_t request) {
    mx_status_t status;
    uint32_t result = 0;

    OK(mx_wait(endpoint, &request, PATIENCE * 1000, &status, &result));
    CHECK(result == 1);
    if (status.code != MX_STATUS_SUCCESS)
        fprintf(stderr, "rank %d: %s\n", rank, mx_strstatus(status.code));
    CHECK(status.code == MX_STATUS_SUCCESS);
    return status;
}

static inline mx_request_t start_send(void *start, uint32_t length, uint64_t bits) {
    mx_segment_t of = segment(start, length);
    mx_request_t request;

    OK(mx_isend(endpoint, &of, 1, peer, bits, NULL, &request));
    return request;
}

static inline mx_request_t start_receive(void *start, uint32_t length, uint64_t bits) {
    mx_segment_t of = segment(start, length);
    mx_request_t request;

    OK(mx_irecv(endpoint, &of, 1, bits, MX_MATCH_MASK_NONE, NULL, &request));
    return request;
}

/* Opens and connects both ways. */
static inline void begin(char **argv, mx_param_t *params, uint32_t count) {
    uint64_t nic;

    rank = atoi(argv[1]);
    OK(mx_init());
    OK(mx_open_endpoint(MX_ANY_NIC, (uint32_t)atoi(argv[2]), KEY, params, count, &endpoint));
    OK(mx_hostname_to_nic_id(argv[3], &nic));
    OK(mx_connect(endpoint, nic, (uint32_t)atoi(argv[4]), KEY, PATIENCE * 1000, &peer));
}

/* Both have come here before either ends. */
static inline void finish_together(const char *said) {
    mx_request_t request = start_receive(NULL, 0, 0x7fffffff);
    mx_segment_t none = segment(NULL, 0);
    mx_request_t send;

    OK(mx_issend(endpoint, &none, 1, peer, 0x7fffffff, NULL, &send));
    finish(request);
    finish(send);
    OK(mx_close_endpoint(endpoint));
    OK(mx_finalize());
    puts(said);
}

#endif /* PAIR_H */
