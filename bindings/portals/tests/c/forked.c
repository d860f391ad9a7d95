/*
 * Handles of an interface that was ended, and of the process that has forked this one, name nothing
 * of an interface that is opened later.
 */

#include <sys/wait.h>
#include <unistd.h>

#include "ranks.h"

typedef struct {
    ptl_handle_ni_t ni;
    ptl_handle_eq_t eq;
    ptl_handle_me_t me;
    ptl_handle_md_t md;
} HANDLES;

static HANDLES open_all(void) {
    HANDLES all;
    ptl_md_t md;

    OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &all.ni));
    OK(PtlEQAlloc(all.ni, 4, PTL_EQ_HANDLER_NONE, &all.eq));
    OK(PtlMEAttach(all.ni, 4, ANYBODY, 1, 0, PTL_RETAIN, PTL_INS_AFTER, &all.me));
    md = memory_of(NULL, 0, PTL_MD_OP_PUT, all.eq);
    OK(PtlMDAttach(all.me, md, PTL_RETAIN, &all.md));
    return all;
}

static void are_stale(HANDLES stale, HANDLES now) {
    ptl_event_t event;
    ptl_handle_ni_t ni;
    ptl_process_id_t id;

    CHECK(stale.ni != now.ni && stale.eq != now.eq && stale.me != now.me && stale.md != now.md);
    CHECK_CODE(PtlGetId(stale.ni, &id), PTL_NI_INVALID);
    CHECK_CODE(PtlNIFini(stale.ni), PTL_NI_INVALID);
    CHECK_CODE(PtlEQGet(stale.eq, &event), PTL_EQ_INVALID);
    CHECK_CODE(PtlEQFree(stale.eq), PTL_EQ_INVALID);
    CHECK_CODE(PtlMDUnlink(stale.md), PTL_MD_INVALID);
    CHECK_CODE(PtlMEUnlink(stale.me), PTL_ME_INVALID);
    CHECK_CODE(PtlNIHandle(stale.md, &ni), PTL_HANDLE_INVALID);
}

/* What this process has opened names nothing in a child that opens the same. */
static void in_a_child(HANDLES of_parent, unsigned depth) {
    pid_t child = fork();
    int ended, most;

    CHECK(child >= 0);
    if (child == 0) {
        HANDLES own;

        OK(PtlInit(&most));
        own = open_all();
        are_stale(of_parent, own);
        if (depth > 0)
            in_a_child(own, depth - 1);
        PtlFini();
        exit(0);
    }
    CHECK(waitpid(child, &ended, 0) == child && ended == 0);
}

static HANDLES last;

static void fork_twice(void) {
    in_a_child(last, 1);
}

int main(void) {
    unsigned round;
    int most;

    OK(PtlInit(&most));
    last = open_all();
    for (round = 0; round < 3; round++) {
        HANDLES before = last;

        OK(PtlNIFini(last.ni));
        last = open_all();
        are_stale(before, last);
    }
    FORKS(fork_twice);
    return finish("stale");
}
