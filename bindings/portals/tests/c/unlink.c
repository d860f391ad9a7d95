/*
 * A descriptor is unlinked right after its END event; another goes by itself; a wait ends with its
 * queue.
 */

#include "ranks.h"

#define ROUNDS 100

int main(void) {
    SIDE side = begin(64);
    static char buffer[100000];
    ptl_handle_md_t handle, go;
    ptl_handle_eq_t turns;
    ptl_event_t event;
    unsigned int round, other = 1 - side.rank;

    OK(PtlEQAlloc(side.ni, 64, PTL_EQ_HANDLER_NONE, &turns));
    post(&side, 1, memory_of(NULL, 0, PTL_MD_OP_PUT, turns), PTL_RETAIN);
    ready(&side);
    meet(&side, other);
    go = bind_memory(&side, NULL, 0, PTL_EQ_NONE);
    for (round = 0; round < ROUNDS; round++) {
        /* Short and long ones; by hand and by themselves. */
        ptl_size_t size = round % 4 < 2 ? 8 : sizeof buffer;
        int goes = round % 2;

        if (side.rank == 0) {
            ptl_md_t md = memory_of(buffer, size, PTL_MD_OP_PUT, side.eq);

            md.threshold = goes ? 1 : PTL_MD_THRESH_INF;
            handle = post(&side, 2, md, goes ? PTL_UNLINK : PTL_RETAIN);
            put_bits(&side, go, other, 1);
            event = until(side.eq, PTL_EVENT_PUT_END);
            if (goes) {
                ptl_event_t last;

                OK(PtlEQWait(side.eq, &last));
                CHECK(last.type == PTL_EVENT_UNLINK && last.link == event.sequence && last.md_handle == handle);
                /* It tells of the put that ended the descriptor. */
                CHECK(last.initiator.pid == event.initiator.pid && last.match_bits == 2 && last.mlength == size);
                CHECK_CODE(PtlMDUnlink(handle), PTL_MD_INVALID);
            } else {
                OK(PtlMDUnlink(handle));
            }
        } else {
            until(turns, PTL_EVENT_PUT_END);
            handle = bind_memory(&side, buffer, size, side.eq);
            OK(PtlPut(handle, PTL_ACK_REQ, of_rank(&side, 0), 4, 0, 2, 0, 0));
            until(side.eq, PTL_EVENT_SEND_END);
            OK(PtlMDUnlink(handle));
        }
    }
    return finish("unlinked");
}
