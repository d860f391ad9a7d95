/*
 * More events than the queue has room for: the oldest go, and the next read says so once.
 */

#include "ranks.h"

#define PUTS 20

int main(void) {
    SIDE side = begin(64);
    ptl_handle_eq_t small, turns;
    ptl_handle_md_t source = bind_memory(&side, NULL, 0, side.eq);
    ptl_sr_value_t received;
    ptl_event_t event;
    unsigned int number;

    OK(PtlEQAlloc(side.ni, 64, PTL_EQ_HANDLER_NONE, &turns));
    post(&side, 1, memory_of(NULL, 0, PTL_MD_OP_PUT, turns), PTL_RETAIN);
    ready(&side);
    meet(&side, 1 - side.rank);
    if (side.rank == 0) {
        /* It is one of 8. */
        OK(PtlEQAlloc(side.ni, 5, PTL_EQ_HANDLER_NONE, &small));
        post(&side, 2, memory_of(NULL, 0, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, small), PTL_RETAIN);
        put_bits(&side, source, 1, 1);
        /* It comes behind them. */
        until(turns, PTL_EVENT_PUT_END);
        OK(PtlNIStatus(side.ni, PTL_SR_RECV_COUNT, &received));
        CHECK(received > PUTS);
        CHECK_CODE(PtlEQGet(small, &event), PTL_EQ_DROPPED);
        for (number = PUTS - 8; number < PUTS; number++) {
            CHECK(event.hdr_data == number && event.sequence == number && event.type == PTL_EVENT_PUT_END);
            CHECK_CODE(PtlEQGet(small, &event), number < PUTS - 1 ? PTL_OK : PTL_EQ_EMPTY);
        }
        put_bits(&side, source, 1, 1);
        until(side.eq, PTL_EVENT_SEND_END);
        until(side.eq, PTL_EVENT_SEND_END);
    } else {
        until(turns, PTL_EVENT_PUT_END);
        for (number = 0; number < PUTS; number++)
            OK(PtlPut(source, PTL_NO_ACK_REQ, of_rank(&side, 0), 4, 0, 2, 0, number));
        put_bits(&side, source, 0, 1);
        for (number = 0; number < PUTS + 1; number++)
            until(side.eq, PTL_EVENT_SEND_END);
        until(turns, PTL_EVENT_PUT_END);
    }
    return finish("overrun");
}
