/*
 * Random calls of libsplitc: control.h and split-c.h.
 *
 * All ranks draw the same numbers, because each call of all ranks is made by all. Not called, by
 * the contract: whatever cannot be done, for it ends the program; calls of all ranks by one alone;
 * waits for stores that nobody makes.
 */

#include "calls.h"

#define SPLITC_OWN_MAIN
#include <split-c/split-c.h>

#undef sync

#define ROWS 4
#define ROW 4096
#define BLOCKS 8

static sc_global spread[ROWS];
static void *blocks[BLOCKS];
static unsigned char bytes[ROW] __attribute__((aligned(8)));
static double total;

int calls_main(int argc, char **argv);

/* Makes a call that succeeds by returning. */
#define DO(function, ...) CALL_VOID(function, __VA_ARGS__)
#define DO_NOTHING(function)                                                                                           \
    do {                                                                                                               \
        uint64_t number_ = enter(AT_##function);                                                                       \
        function();                                                                                                    \
        leave(number_, AT_##function, 1);                                                                              \
    } while (0)
#define ADD(function, ...) (total += (double)CALL_GOOD(function, 1, function(__VA_ARGS__)))

/* Bytes of another rank, or of this one. */
static sc_global a_place(size_t n) {
    int rank = (int)((unsigned)(MYPROC + (int)below(4)) % (unsigned)PROCS);
    void *base = sc_address(spread[below(ROWS)]);

    return sc_pack(rank, (unsigned char *)base + 8 * below((uint32_t)((ROW - n) / 8 + 1)));
}

static size_t a_size(void) {
    return one_in(3) ? (size_t)1 << below(4) : 1 + length_to(ROW - 1);
}

static void copy(void) {
    size_t n = a_size();
    sc_global at = a_place(n);
    int now = (int)below(2);

    if (one_in(2))
        DO(sc_copy_in, at, bytes, n, now);
    else
        DO(sc_copy_out, bytes, at, n, now);
    if (!now)
        DO_NOTHING(sc_sync);
}

/* The forms that the header has inline. */
static void access_inline(void) {
    size_t n = a_size();
    sc_global at = a_place(n);

    sc_read(bytes, at, n);
    sc_write(at, bytes, n);
    sc_get(bytes, at, n);
    DO_NOTHING(sc_sync);
    sc_put(at, bytes, n);
    DO_NOTHING(sc_sync);
}

/* Each rank stores to the next one, and waits for what the one before stores. */
static void store(void) {
    size_t n = a_size();
    void *base = sc_address(spread[below(ROWS)]);
    sc_global next = sc_pack((MYPROC + 1) % PROCS, base);

    DO_NOTHING(sc_all_store_sync);
    DO_NOTHING(sc_reset_store_sync);
    DO_NOTHING(sc_barrier);
    DO(sc_store_bytes, next, bytes, n);
    if (one_in(2))
        DO(sc_store_sync, n);
    DO_NOTHING(sc_all_store_sync);
    DO_NOTHING(sc_reset_store_sync);
    DO_NOTHING(sc_barrier);
}

static void change(void) {
    int size = one_in(2) ? 4 : 8;

    ADD(sc_change, a_place(8), size, (int)below(3), draw(), draw());
}

static void reduce(void) {
    int operation = (int)below(4);

    switch (below(14)) {
    case 0:
        ADD(sc_reduce_i, operation, (int)below(9));
        break;
    case 1:
        ADD(sc_reduce_l, operation, (long)below(9));
        break;
    case 2:
        ADD(sc_reduce_f, operation, 1.5f);
        break;
    case 3:
        ADD(sc_reduce_d, operation, 1.5);
        break;
    case 4:
        ADD(sc_scan_i, operation, (int)below(9));
        break;
    case 5:
        ADD(sc_scan_l, operation, (long)below(9));
        break;
    case 6:
        ADD(sc_scan_f, operation, 1.5f);
        break;
    case 7:
        ADD(sc_scan_d, operation, 1.5);
        break;
    case 8:
        ADD(sc_broadcast_i, MYPROC);
        break;
    case 9:
        ADD(sc_broadcast_l, MYPROC);
        break;
    case 10:
        ADD(sc_broadcast_f, 1.5f);
        break;
    case 11:
        ADD(sc_broadcast_d, 1.5);
        break;
    default: {
        size_t n = a_size();

        DO(sc_broadcast_bytes, bytes, n, (int)below((uint32_t)PROCS));
    }
    }
}

static void others(void) {
    DO_NOTHING(sc_poll);
    DO(sc_wake, (int)below((uint32_t)PROCS));
    total += CALL_GOOD(sc_seconds, result_ > 0, sc_seconds());
    if (one_in(3))
        DO_NOTHING(sc_barrier);
}

static void allocate(void) {
    unsigned at = below(BLOCKS);
    size_t n = 1 + length_to(70000);

    switch (below(4)) {
    case 0:
        DO(sc_free, blocks[at]);
        blocks[at] = CALL_GOOD(sc_malloc, result_ != NULL, sc_malloc(n));
        break;
    case 1:
        DO(sc_free, blocks[at]);
        blocks[at] = CALL_GOOD(sc_calloc, result_ != NULL, sc_calloc(n, 2));
        break;
    case 2:
        blocks[at] = CALL_GOOD(sc_realloc, result_ != NULL, sc_realloc(blocks[at], n));
        break;
    default:
        /* The sanitizer would say on standard error that there is not so much. */
#ifndef __SANITIZE_ADDRESS__
        total += CALL_GOOD(sc_malloc, result_ == NULL, sc_malloc(SIZE_MAX - below(4096))) != NULL;
#endif
        return;
    }
    if (blocks[at])
        memset(blocks[at], 7, n);
}

static void allocate_spread(void) {
    unsigned at = below(ROWS);

    DO_NOTHING(sc_sync);
    DO_NOTHING(sc_barrier);
    if (spread[at])
        DO(sc_spread_free, spread[at]);
    spread[at] = CALL_GOOD(sc_spread_malloc, result_ != 0, sc_spread_malloc((size_t)PROCS, ROW));
}

const struct operation operations[] = {
    {copy, 60}, {access_inline, 20}, {store, 4}, {change, 20}, {reduce, 6}, {others, 10}, {allocate, 20}, {allocate_spread, 1},
    {NULL, 0},
};

const struct left_out left_out[] = {{0, NULL, 0, NULL}};

void set_up(void) {
    unsigned at;

    /* The call that this runs in. */
    leave(enter(AT_sc_run), AT_sc_run, 1);
    for (at = 0; at < ROWS; at++)
        spread[at] = CALL_GOOD(sc_spread_malloc, result_ != 0, sc_spread_malloc((size_t)PROCS, ROW));
}

void tear_down(void) {
    DO_NOTHING(sc_barrier);
}

int main(int argc, char **argv) {
    return splitc_run(argc, argv, calls_main);
}
