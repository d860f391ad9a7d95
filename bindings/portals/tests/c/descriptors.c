/*
 * Two programs without standard descriptors, or that close them while they are connected: a put and
 * a get of each.
 */

#include "ranks.h"

#include "../../../descriptors.h"

#define LENGTH (256 << 10)

static unsigned char mine[LENGTH], theirs[LENGTH], copy[LENGTH];

int main(void) {
    SIDE side = begin(256);
    ptl_handle_md_t source = bind_memory(&side, mine, LENGTH, side.eq);
    ptl_handle_md_t sink = bind_memory(&side, copy, LENGTH, side.eq);
    ptl_handle_eq_t arrivals;
    ptl_process_id_t partner = of_rank(&side, 1 - side.rank);

    OK(PtlEQAlloc(side.ni, 256, PTL_EQ_HANDLER_NONE, &arrivals));
    memset(mine, 7 + (int)side.rank, LENGTH);
    post(&side, 1, memory_of(theirs, LENGTH, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, arrivals), PTL_RETAIN);
    post(&side, 2, memory_of(mine, LENGTH, PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, PTL_EQ_NONE), PTL_RETAIN);
    ready(&side);
    meet(&side, 1 - side.rank);
    close_standard("connected");
    OK(PtlPutRegion(source, 0, LENGTH, PTL_ACK_REQ, partner, 4, 0, 1, 0, 0));
    until(side.eq, PTL_EVENT_ACK);
    until(arrivals, PTL_EVENT_PUT_END);
    OK(PtlGetRegion(sink, 0, LENGTH, partner, 4, 0, 2, 0));
    until(side.eq, PTL_EVENT_REPLY_END);
    CHECK(theirs[0] == 8 - side.rank && memcmp(theirs, copy, LENGTH) == 0);
    /* Both have come here before either ends. */
    OK(PtlPutRegion(source, 0, 0, PTL_ACK_REQ, partner, 4, 0, 1, 0, 0));
    until(side.eq, PTL_EVENT_ACK);
    until(arrivals, PTL_EVENT_PUT_END);
    restore_standard("exchanged");
    return finish("exchanged");
}
