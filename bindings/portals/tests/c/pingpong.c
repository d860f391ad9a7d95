/*
 * Puts go to and fro, and gets bring them back, 0 to 256 KiB.
 */

#include "ranks.h"

#define LONGEST (256 << 10)
#define ROUNDS 20

static unsigned char mine[LONGEST], theirs[LONGEST], copy[LONGEST];

static void check(const unsigned char *bytes, size_t size, unsigned int seed) {
    size_t at;

    for (at = 0; at < size; at++)
        CHECK(bytes[at] == (unsigned char)(at * 7 + seed));
}

static void fill(size_t size, unsigned int seed) {
    size_t at;

    for (at = 0; at < size; at++)
        mine[at] = (unsigned char)(at * 7 + seed);
}

int main(void) {
    static const size_t sizes[] = {0, 1, 8, 1000, 16000, 17000, 65536, LONGEST};
    SIDE side = begin(256);
    ptl_handle_md_t source = bind_memory(&side, mine, LONGEST, side.eq);
    ptl_handle_md_t sink = bind_memory(&side, copy, LONGEST, side.eq);
    ptl_handle_eq_t arrivals;
    ptl_event_t event;
    ptl_process_id_t partner;
    unsigned int number, round;

    CHECK(side.size == 2);
    partner = of_rank(&side, 1 - side.rank);
    OK(PtlEQAlloc(side.ni, 256, PTL_EQ_HANDLER_NONE, &arrivals));
    post(&side, 1, memory_of(theirs, LONGEST, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, arrivals), PTL_RETAIN);
    post(&side, 2, memory_of(mine, LONGEST, PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, PTL_EQ_NONE), PTL_RETAIN);
    ready(&side);
    meet(&side, 1 - side.rank);
    for (number = 0; number < sizeof sizes / sizeof sizes[0]; number++) {
        for (round = 0; round < ROUNDS; round++) {
            if ((round + side.rank) % 2 == 0) {
                fill(sizes[number], round);
                OK(PtlPutRegion(source, 0, sizes[number], PTL_ACK_REQ, partner, 4, 0, 1, 0, round));
                until(side.eq, PTL_EVENT_SEND_END);
                event = until(side.eq, PTL_EVENT_ACK);
                CHECK(event.mlength == sizes[number]);
            } else {
                event = until(arrivals, PTL_EVENT_PUT_END);
                CHECK(event.mlength == sizes[number] && event.hdr_data == round && event.initiator.pid == partner.pid);
                check(theirs, sizes[number], round);
                /* The same from where it came. */
                OK(PtlGetRegion(sink, 0, sizes[number], partner, 4, 0, 2, 0));
                until(side.eq, PTL_EVENT_REPLY_END);
                check(copy, sizes[number], round);
            }
            /* The partner's get must be over before its source changes: wait for a token. */
            OK(PtlPutRegion(source, 0, 0, PTL_NO_ACK_REQ, partner, 4, 0, 1, 0, 1000 + round));
            event = until(arrivals, PTL_EVENT_PUT_END);
            CHECK(event.hdr_data == 1000 + round);
            until(side.eq, PTL_EVENT_SEND_END);
        }
    }
    return finish("ping and pong");
}
