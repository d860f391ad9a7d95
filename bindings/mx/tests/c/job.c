/*
 * Ranks of a job find each other by job:RANK and their ids, on a default device by shared memory:
 * PROGRAM SIZE TRANSPORT, under `cci run`.
 */

#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

#define LONG (1 << 20)

static unsigned char out[LONG], in[LONG];

/* Whether a segment of shared memory is mapped: an endpoint that meets partners there has lanes. */
static int has_lane(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    int found = 0;

    CHECK(maps != NULL);
    while (fgets(line, sizeof line, maps) != NULL)
        found |= strstr(line, "memfd:cci-lane") != NULL;
    fclose(maps);
    return found;
}

/* A child has no part in the job: its endpoint is found by the rule alone. */
static void fork_one(void) {
    pid_t child = fork();
    int status;

    if (child == 0) {
        OK(mx_init());
        OK(mx_open_endpoint(MX_ANY_NIC, MX_ANY_ENDPOINT, KEY, NULL, 0, &endpoint));
        OK(mx_close_endpoint(endpoint));
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(int argc, char **argv) {
    static mx_endpoint_addr_t peers[64];
    static const uint32_t lengths[] = {8, LONG};
    uint32_t size, id, other, length, round, at;
    mx_endpoint_addr_t own;
    mx_endpoint_t second;
    uint64_t nic, own_nic;
    mx_request_t request, sends[64];
    mx_param_t outside, wrong;
    char name[32];

    CHECK(argc == 3);
    size = (uint32_t)atoi(argv[1]);
    OK(mx_init());
    CHECK_CODE(mx_hostname_to_nic_id("localhost", &own_nic), MX_SUCCESS);
    /* What fails before the ranks meet is made up for by the next call. */
    mx_set_error_handler(MX_ERRORS_RETURN);
    memset(&wrong, 0, sizeof wrong);
    wrong.key = MX_PARAM_CONTEXT_ID;
    CHECK_CODE(mx_open_endpoint(MX_ANY_NIC, MX_ANY_ENDPOINT, KEY, &wrong, 1, &endpoint), MX_BAD_PARAM_VAL);
    CHECK_CODE(mx_open_endpoint(MX_ANY_NIC, 2048, KEY, NULL, 0, &endpoint), MX_BAD_ENDPOINT_ID);
    OK(mx_open_endpoint(MX_ANY_NIC, MX_ANY_ENDPOINT, KEY, NULL, 0, &endpoint));
    OK(mx_get_endpoint_addr(endpoint, &own));
    OK(mx_decompose_endpoint_addr(own, &nic, &id));
    CHECK(id < size && nic == own_nic);
    rank = (int)id;
    for (other = 0; other < size; other++) {
        snprintf(name, sizeof name, "job:%u", other);
        OK(mx_hostname_to_nic_id(name, &nic));
        OK(mx_connect(endpoint, nic, other, KEY, PATIENCE * 1000, &peers[other]));
    }
    CHECK(peers[id].stuff[0] == own.stuff[0] && peers[id].stuff[1] == own.stuff[1]);
    CHECK(has_lane() == (size > 1 && strcmp(argv[2], "tcp") != 0));
    CHECK_CODE(mx_hostname_to_nic_id("job:99", &nic), MX_HOST_NOT_FOUND);
    CHECK_CODE(mx_hostname_to_nic_id("job:x", &nic), MX_HOST_NOT_FOUND);
    CHECK_CODE(mx_connect(endpoint, own_nic, size, KEY, PATIENCE * 1000, &peers[63]), MX_NIC_NOT_FOUND);
    /* Round the ring, short and long. */
    for (round = 0; round < sizeof lengths / sizeof *lengths; round++) {
        length = lengths[round];
        for (at = 0; at < length; at++)
            out[at] = (unsigned char)(at * 7 + id);
        request = start_receive(in, length, length);
        peer = peers[(id + 1) % size];
        finish(start_send(out, length, length));
        finish(request);
        for (at = 0; at < length; at++)
            CHECK(in[at] == (unsigned char)(at * 7 + (id + size - 1) % size));
    }
    /* Others than the first are no ranks, and so is what does not want to be one. */
    OK(mx_open_endpoint(MX_ANY_NIC, MX_ANY_ENDPOINT, KEY, NULL, 0, &second));
    OK(mx_close_endpoint(second));
    memset(&outside, 0, sizeof outside);
    outside.key = MX_PARAM_OUTSIDE_JOB;
    OK(mx_open_endpoint(MX_ANY_NIC, MX_ANY_ENDPOINT, KEY, &outside, 1, &second));
    OK(mx_close_endpoint(second));
    fork_one();
    /* Nobody closes before all have what they wait for: each hears of each. */
    for (other = 0; other < size; other++) {
        mx_segment_t none = segment(NULL, 0);

        OK(mx_issend(endpoint, &none, 1, peers[other], 1000 + id, NULL, &sends[other]));
    }
    for (other = 0; other < size; other++)
        finish(start_receive(NULL, 0, 1000 + other));
    for (other = 0; other < size; other++)
        finish(sends[other]);
    OK(mx_close_endpoint(endpoint));
    OK(mx_finalize());
    puts("all found");
    return 0;
}
