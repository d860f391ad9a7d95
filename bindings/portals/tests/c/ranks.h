/*
 * Two or more processes: which rank this is, and its interface.
 */

#ifndef RANKS_H
#define RANKS_H

#include <p3rt/p3rt.h>
#include <portals3.h>

#include "../../../compat_check.h"

#define OK(call) CHECK_CODE(call, PTL_OK)

static const ptl_process_id_t ANYBODY = {PTL_NID_ANY, PTL_PID_ANY};

typedef struct {
    ptl_handle_ni_t ni;
    ptl_handle_eq_t eq;
    unsigned int rank, size;
} SIDE;

static inline SIDE begin(ptl_size_t events) {
    SIDE side;
    int most;

    OK(PtlInit(&most));
    /* The environment has ranks and maps; in a job, PtlNIInit fills them in. */
    OK(PtlSetRank(PTL_INVALID_HANDLE, -1, -1));
    OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &side.ni));
    OK(PtlGetRank(side.ni, &side.rank, &side.size));
    OK(PtlEQAlloc(side.ni, events, PTL_EQ_HANDLER_NONE, &side.eq));
    return side;
}

static inline ptl_process_id_t of_rank(const SIDE *side, unsigned int rank) {
    ptl_process_id_t id;

    OK(PtlGetRankId(side->ni, rank, &id));
    return id;
}

/* A descriptor without a limit. */
static inline ptl_md_t memory_of(void *start, ptl_size_t length, unsigned int options, ptl_handle_eq_t eq) {
    ptl_md_t md = {start, length, PTL_MD_THRESH_INF, 0, options, NULL, eq};

    return md;
}

static inline ptl_handle_md_t bind_memory(const SIDE *side, void *start, ptl_size_t length, ptl_handle_eq_t eq) {
    ptl_handle_md_t handle;

    OK(PtlMDBind(side->ni, memory_of(start, length, 0, eq), PTL_RETAIN, &handle));
    return handle;
}

/* An entry for these match bits at index 4. */
static inline ptl_handle_md_t post(const SIDE *side, ptl_match_bits_t bits, ptl_md_t md, ptl_unlink_t unlink) {
    ptl_handle_me_t me;
    ptl_handle_md_t handle;

    OK(PtlMEAttach(side->ni, 4, ANYBODY, bits, 0, unlink, PTL_INS_AFTER, &me));
    OK(PtlMDAttach(me, md, unlink, &handle));
    return handle;
}

/* Waits for an event of this kind, and passes over others. */
static inline ptl_event_t until(ptl_handle_eq_t eq, ptl_event_kind_t kind) {
    ptl_event_t event;

    do {
        OK(PtlEQWait(eq, &event));
        CHECK(event.ni_fail_type == PTL_NI_OK);
    } while (event.type != kind);
    return event;
}

static inline void put_bits(const SIDE *side, ptl_handle_md_t md, unsigned int rank, ptl_match_bits_t bits) {
    OK(PtlPut(md, PTL_NO_ACK_REQ, of_rank(side, rank), 4, 0, bits, 0, 0));
}

/* What is not posted yet takes nothing: a put that comes before it is dropped, and nobody hears of
 * it. So a rank says when it has posted what others begin with, and they wait for that. */
#define READY ((ptl_match_bits_t)1 << 63)

static inline void ready(const SIDE *side) {
    post(side, READY, memory_of(NULL, 0, PTL_MD_OP_PUT, PTL_EQ_NONE), PTL_RETAIN);
}

/* Waits until a rank is ready: an acknowledgement comes from one that is. */
static inline void meet(const SIDE *side, unsigned int rank) {
    ptl_handle_eq_t acks;
    ptl_handle_md_t asks;
    ptl_event_t event;
    int which, code;

    OK(PtlEQAlloc(side->ni, 256, PTL_EQ_HANDLER_NONE, &acks));
    asks = bind_memory(side, NULL, 0, acks);
    for (;;) {
        OK(PtlPut(asks, PTL_ACK_REQ, of_rank(side, rank), 4, 0, READY, 0, 0));
        while ((code = PtlEQPoll(&acks, 1, 20, &event, &which)) == PTL_OK)
            if (event.type == PTL_EVENT_ACK)
                return;
        CHECK(code == PTL_EQ_EMPTY);
    }
}

static inline int finish(const char *what) {
    PtlFini();
    puts(what);
    return 0;
}

#endif /* RANKS_H */
