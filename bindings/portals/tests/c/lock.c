/*
 * A lock by swaps: rank 0 has the word, and every rank adds to a counter under the lock.
 */

#include "ranks.h"

#define TURNS 200

static uint64_t word, counter, finished;

int main(void) {
    SIDE side = begin(256);
    uint64_t one = 1, zero = 0, old, sum;
    ptl_process_id_t home = of_rank(&side, 0);
    ptl_handle_md_t lock = bind_memory(&side, &one, 8, PTL_EQ_NONE);
    ptl_handle_md_t unlock = bind_memory(&side, &zero, 8, PTL_EQ_NONE);
    ptl_handle_md_t found = bind_memory(&side, &old, 8, side.eq);
    ptl_handle_md_t value = bind_memory(&side, &sum, 8, side.eq);
    ptl_handle_eq_t ends;
    unsigned int turn, rank;

    OK(PtlEQAlloc(side.ni, 64, PTL_EQ_HANDLER_NONE, &ends));
    if (side.rank == 0) {
        unsigned int both = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE;

        post(&side, 1, memory_of(&word, 8, both, PTL_EQ_NONE), PTL_RETAIN);
        post(&side, 2, memory_of(&counter, 8, both, PTL_EQ_NONE), PTL_RETAIN);
        post(&side, 3, memory_of(&finished, 8, both, ends), PTL_RETAIN);
    }
    /* Everybody has posted before anybody begins: each tells rank 0, which tells all. */
    post(&side, 4, memory_of(NULL, 0, PTL_MD_OP_PUT, ends), PTL_RETAIN);
    ready(&side);
    if (side.rank == 0) {
        for (rank = 1; rank < side.size; rank++)
            until(ends, PTL_EVENT_PUT_END);
        for (rank = 1; rank < side.size; rank++)
            OK(PtlPutRegion(lock, 0, 0, PTL_NO_ACK_REQ, of_rank(&side, rank), 4, 0, 4, 0, 0));
    } else {
        meet(&side, 0);
        OK(PtlPutRegion(lock, 0, 0, PTL_NO_ACK_REQ, home, 4, 0, 3, 0, 0));
        until(ends, PTL_EVENT_PUT_END);
    }
    for (turn = 0; turn < TURNS; turn++) {
        do {
            OK(PtlGetPut(found, lock, home, 4, 0, 1, 0, 0));
            until(side.eq, PTL_EVENT_REPLY_END);
        } while (old != 0);
        OK(PtlGet(value, home, 4, 0, 2, 0));
        until(side.eq, PTL_EVENT_REPLY_END);
        sum += 1;
        OK(PtlPut(value, PTL_ACK_REQ, home, 4, 0, 2, 0, 0));
        until(side.eq, PTL_EVENT_ACK);
        OK(PtlGetPut(found, unlock, home, 4, 0, 1, 0, 0));
        until(side.eq, PTL_EVENT_REPLY_END);
        CHECK(old == 1);
    }
    if (side.rank == 0) {
        for (rank = 1; rank < side.size; rank++)
            until(ends, PTL_EVENT_PUT_END);
        CHECK(counter == (uint64_t)TURNS * side.size && word == 0);
    } else {
        OK(PtlPut(unlock, PTL_ACK_REQ, home, 4, 0, 3, 0, 0));
    }
    return finish("locked");
}
