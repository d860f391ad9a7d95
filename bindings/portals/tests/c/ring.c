/*
 * A token goes round, and each rank adds its number. The descriptors for it go by themselves.
 */

#include "ranks.h"

#define LAPS 50

int main(void) {
    SIDE side = begin(64);
    uint64_t token = 0, mine;
    ptl_handle_md_t source = bind_memory(&side, &mine, 8, PTL_EQ_NONE);
    ptl_md_t md = memory_of(&token, 8, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, side.eq);
    unsigned int lap, next = (side.rank + 1) % side.size;
    uint64_t sum = (uint64_t)side.size * (side.size - 1) / 2;

    post(&side, 7, md, PTL_RETAIN);
    ready(&side);
    meet(&side, next);
    for (lap = 0; lap < LAPS; lap++) {
        if (side.rank == 0) {
            mine = token;
            put_bits(&side, source, next, 7);
        }
        until(side.eq, PTL_EVENT_PUT_END);
        if (side.rank != 0) {
            mine = token + side.rank;
            put_bits(&side, source, next, 7);
        } else {
            CHECK(token == sum * (lap + 1));
        }
    }
    /* The last message of a rank has left when nothing of its descriptor is pending. */
    while (PtlMDUnlink(source) == PTL_MD_IN_USE)
        OK(PtlProgress(side.ni, 10));
    return finish("round");
}
