/*
 * A job whose ranks have an interface of each mode: both put to both of the next rank. Then one of
 * them ends, and comes again.
 */

#include "ranks.h"
#include <p3nal_cci.h>

/* Without an answer for so long, a put is made again: what is not posted yet takes nothing. */
#define AGAIN_MS 20

typedef struct {
    ptl_handle_ni_t ni;
    ptl_handle_eq_t eq;
    ptl_handle_md_t source;
    char memory[8], bytes[8];
} NETWORK;

static unsigned int rank, size;

static void open_network(NETWORK *network, int is_accelerated) {
    ptl_md_t md = memory_of(network->memory, 8, 0, PTL_EQ_NONE);
    ptl_interface_t id = is_accelerated ? PTL_IFACE_CCI_ACCEL : PTL_IFACE_CCI;
    ptl_handle_me_t me;
    ptl_handle_md_t target;

    OK(PtlNIInit(id, PTL_PID_ANY, NULL, NULL, &network->ni));
    OK(PtlEQAlloc(network->ni, 1024, PTL_EQ_HANDLER_NONE, &network->eq));
    md.eq_handle = network->eq;
    md.options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE;
    OK(PtlMEAttach(network->ni, 4, ANYBODY, 0, ~0ull, PTL_RETAIN, PTL_INS_AFTER, &me));
    OK(PtlMDAttach(me, md, PTL_RETAIN, &target));
    md.start = network->bytes;
    md.options = PTL_MD_EVENT_START_DISABLE;
    OK(PtlMDBind(network->ni, md, PTL_RETAIN, &network->source));
}

static double now(void) {
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

/* Puts from each to each of the next rank, until all are acknowledged and all of the rank before
 * have come. The match bits say in which round, from which, and to which. A put fails if it was on
 * its way to an interface that has ended, and one of an earlier round may still come. */
static void meet_both(NETWORK networks[2], ptl_match_bits_t round) {
    int acked[4] = {0}, come[4] = {0}, number, missing = 1;
    double begun = now(), last = 0;
    ptl_process_id_t to;
    ptl_event_t event;

    while (missing) {
        CHECK(now() - begun < PATIENCE * 1e3);
        for (number = 0; number < 4 && now() - last > AGAIN_MS; number++) {
            if (acked[number])
                continue;
            OK(PtlGetRankId(networks[number % 2].ni, (rank + 1) % size, &to));
            OK(PtlPut(networks[number / 2].source, PTL_ACK_REQ, to, 4, 0, round << 8 | (ptl_match_bits_t)number, 0, 0));
        }
        if (now() - last > AGAIN_MS)
            last = now();
        for (number = 0; number < 2; number++)
            while (PtlEQGet(networks[number].eq, &event) == PTL_OK) {
                if (event.ni_fail_type != PTL_NI_OK || event.match_bits >> 8 != round)
                    continue;
                if (event.type == PTL_EVENT_ACK)
                    acked[event.match_bits & 3] = 1;
                if (event.type == PTL_EVENT_PUT_END) {
                    CHECK(event.match_bits % 2 == (ptl_match_bits_t)number);
                    come[event.match_bits & 3] = 1;
                }
            }
        missing = 0;
        for (number = 0; number < 4; number++)
            missing += !acked[number] || !come[number];
    }
}

int main(void) {
    static NETWORK networks[2];
    ptl_process_id_t first, second;
    int most;

    OK(PtlInit(&most));
    open_network(&networks[0], 0);
    OK(PtlGetRank(networks[0].ni, &rank, &size));
    open_network(&networks[1], 1);
    OK(PtlGetId(networks[0].ni, &first));
    OK(PtlGetId(networks[1].ni, &second));
    CHECK(first.pid == rank && second.pid == rank + size);
    meet_both(networks, 1);
    OK(PtlNIFini(networks[0].ni));
    open_network(&networks[0], 0);
    OK(PtlGetId(networks[0].ni, &second));
    CHECK(second.pid == first.pid);
    meet_both(networks, 2);
    return finish("both modes");
}
