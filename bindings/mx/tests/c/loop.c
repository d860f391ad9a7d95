/*
 * An endpoint sends to itself, and probes for what it has sent.
 */

#include "pair.h"

int main(void) {
    mx_endpoint_addr_t own;
    mx_status_t status;
    mx_request_t send, receive, found;
    uint32_t result, id, session;
    uint64_t nic;
    char out[20000], in[20000];
    int size;

    OK(mx_init());
    OK(mx_open_endpoint(0, MX_ANY_ENDPOINT, KEY, NULL, 0, &endpoint));
    OK(mx_get_endpoint_addr(endpoint, &own));
    OK(mx_decompose_endpoint_addr2(own, &nic, &id, &session));
    OK(mx_connect(endpoint, nic, id, KEY, MX_INFINITE, &peer));
    CHECK(memcmp(&own, &peer, sizeof own) == 0);
    memset(out, 5, sizeof out);
    for (size = 0; size <= (int)sizeof out; size = size * 3 + 1) {
        mx_segment_t parts[3];

        OK(mx_iprobe(endpoint, 3, MX_MATCH_MASK_NONE, &status, &result));
        CHECK(result == 0);
        send = start_send(out, (uint32_t)size, 0x13);
        OK(mx_probe(endpoint, MX_INFINITE, 3, 0xf, &status, &result));
        CHECK(result == 1 && status.match_info == 0x13 && status.msg_length == (uint32_t)size);
        memset(in, 0, sizeof in);
        parts[0] = segment(in, (uint32_t)size / 2);
        parts[1] = segment(NULL, 0);
        parts[2] = segment(in + size / 2, (uint32_t)sizeof in - (uint32_t)size / 2);
        OK(mx_irecv(endpoint, parts, 3, 3, 0xf, &size, &receive));
        OK(mx_peek(endpoint, MX_INFINITE, &found, &result));
        CHECK(result == 1 && (found == send || found == receive));
        status = finish(receive);
        CHECK(status.xfer_length == (uint32_t)size && status.context == &size);
        CHECK(memcmp(in, out, (size_t)size) == 0);
        finish(send);
        OK(mx_ipeek(endpoint, &found, &result));
        CHECK(result == 0);
    }
    OK(mx_close_endpoint(endpoint));
    OK(mx_finalize());
    puts("looped");
    return 0;
}
