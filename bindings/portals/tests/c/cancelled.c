/*
 * A thread that is cancelled opens the interface, sends to itself and ends it all the same.
 */

#include "ranks.h"

#include "../../../cancelled_thread.h"

static void from_begin_to_end(void) {
    SIDE side = begin(64);
    ptl_handle_md_t source = bind_memory(&side, NULL, 0, side.eq);

    post(&side, 1, memory_of(NULL, 0, PTL_MD_OP_PUT, side.eq), PTL_RETAIN);
    put_bits(&side, source, side.rank, 1);
    until(side.eq, PTL_EVENT_PUT_END);
    OK(PtlEQFree(side.eq));
    OK(PtlNIFini(side.ni));
    PtlFini();
}

int main(void) {
    run_cancelled(from_begin_to_end);
    puts("called");
    return 0;
}
