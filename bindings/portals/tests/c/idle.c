/*
 * A wait sleeps: with a link, and with an operation that waits for a partner which is not there.
 */

#include <sys/resource.h>

#include "ranks.h"

/* Milliseconds. */
#define WAIT 1000
#define MOST 50

static long used(void) {
    struct rusage usage;

    CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
           (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
}

static void wait_in_vain(const SIDE *side) {
    ptl_handle_eq_t empty;
    ptl_event_t event;
    long before;
    int which;

    OK(PtlEQAlloc(side->ni, 4, PTL_EQ_HANDLER_NONE, &empty));
    before = used();
    CHECK_CODE(PtlEQPoll(&empty, 1, WAIT, &event, &which), PTL_EQ_EMPTY);
    CHECK(used() - before < MOST);
    OK(PtlEQFree(empty));
}

int main(void) {
    SIDE side = begin(64);
    ptl_handle_md_t source = bind_memory(&side, NULL, 0, side.eq);
    ptl_process_id_t nobody = of_rank(&side, 0);

    post(&side, 1, memory_of(NULL, 0, PTL_MD_OP_PUT, side.eq), PTL_RETAIN);
    ready(&side);
    meet(&side, 1 - side.rank);
    put_bits(&side, source, 1 - side.rank, 1);
    until(side.eq, PTL_EVENT_PUT_END);
    wait_in_vain(&side);
    nobody.pid += 2;
    OK(PtlPut(source, PTL_NO_ACK_REQ, nobody, 4, 0, 1, 0, 0));
    wait_in_vain(&side);
    return finish("idle");
}
