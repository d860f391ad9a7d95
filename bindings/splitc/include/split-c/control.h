/*
 * Split-C: the ranks of a program, and what they do together.
 *
 * A program defines `int splitc_main(int argc, char **argv)`, which each rank runs, and is started
 * by `cci run -n N PROGRAM`. Where SPLITC_OWN_MAIN is defined it has a `main` of its own, which
 * calls splitc_run. An operation that cannot be done ends the program with status 1 and a sentence.
 */

#ifndef SPLIT_C_CONTROL_H
#define SPLIT_C_CONTROL_H

#include <stddef.h>
#include <stdint.h>
#include <unistd.h> /* its sync() is not that of Split-C */

#ifdef __cplusplus
extern "C" {
#endif

/*
 * How addresses of a rank become addresses here; the library fills it. A range of addresses has
 * `words` at which a word of 8 bytes begins. This rank counts what it stores there in the line at
 * `counts`, and sees at `sleeping` whether that rank sleeps.
 */
struct sc_way {
    uint64_t start, words, shift;
    uint64_t statics_start, statics_words, statics_shift;
    uint64_t counts, sleeping;
};

/* What a program knows of its job. */
struct sc_world {
    int me, procs, procslog, layout;
    const struct sc_way *ways;
};

/* One in a program, however many of its files include this. */
__attribute__((weak)) struct sc_world sc_world_;

/* The layout that this header knows. */
#define SC_LAYOUT_ 2

/* The number of this rank, how many there are, and the logarithm of that; -1: no power of two. */
#define MYPROC (sc_world_.me)
#define PROCS (sc_world_.procs)
#define PROCSLOG (sc_world_.procslog)

/*
 * Runs `program` as a rank of the job, and returns its value. When that is 0, all ranks have come
 * to their end. Call it before the process starts a thread.
 */
int sc_run(struct sc_world *world, int layout, int argc, char **argv, int (*program)(int, char **));
#define splitc_run(argc, argv, program) sc_run(&sc_world_, SC_LAYOUT_, argc, argv, program)

#ifdef __SPLITC__
/* Translated programs: their spread arrays of file scope get memory before they begin. */
struct sc_static_ {
    struct sc_static_ *next;
    void **variable;
    size_t count, size;
};

__attribute__((weak)) struct sc_static_ *sc_statics_;

static inline void sc_add_static_(struct sc_static_ *array, void *variable, size_t count, size_t size)
{
    array->variable = (void **)variable;
    array->count = count;
    array->size = size;
    array->next = sc_statics_;
    sc_statics_ = array;
}

uint64_t sc_spread_malloc(size_t count, size_t size);
int splitc_main();

__attribute__((weak)) int sc_program_(int argc, char **argv)
{
    struct sc_static_ *array, *other;
    for (array = sc_statics_; array; array = array->next) {
        size_t count = array->count;
        /* Files that share a header have one array. */
        if (*array->variable)
            continue;
        for (other = array->next; other; other = other->next)
            if (other->variable == array->variable && other->count > count)
                count = other->count;
        *array->variable = (void *)sc_spread_malloc(count, array->size);
    }
    return splitc_main(argc, argv);
}

__attribute__((weak)) int main(int argc, char **argv)
{
    return splitc_run(argc, argv, sc_program_);
}
#elif !defined(SPLITC_OWN_MAIN)
int splitc_main(int argc, char **argv);

__attribute__((weak)) int main(int argc, char **argv)
{
    return splitc_run(argc, argv, splitc_main);
}
#endif

/* Waits until all ranks have come here. */
void sc_barrier(void);
#define barrier() sc_barrier()

/* Serves what other ranks have asked by messages. Calls that wait do it too. */
void sc_poll(void);
#define splitc_poll() sc_poll()

/* Seconds since some moment. */
double sc_seconds(void);
#define get_seconds() sc_seconds()

#define on_one if (MYPROC == 0)
#define on_proc(p) if (MYPROC == (p))
/* Over the numbers below n, or the pairs below l and m, whose elements lie on this rank. */
#define for_my_1d(i, n) for ((i) = MYPROC; (i) < (n); (i) += PROCS)
#define for_my_2d(i, j, l, m)                                                                                          \
    for ((i) = MYPROC / (m), (j) = MYPROC % (m); (i) < (l); (j) += PROCS, (i) += (j) / (m), (j) %= (m))

/* Reductions over all ranks, scans over ranks 0 to this one, and what rank 0 gives to all. */
enum { SC_ADD_, SC_MUL_, SC_MAX_, SC_MIN_ };
int sc_reduce_i(int operation, int value);
long sc_reduce_l(int operation, long value);
float sc_reduce_f(int operation, float value);
double sc_reduce_d(int operation, double value);
int sc_scan_i(int operation, int value);
long sc_scan_l(int operation, long value);
float sc_scan_f(int operation, float value);
double sc_scan_d(int operation, double value);
int sc_broadcast_i(int value);
long sc_broadcast_l(long value);
float sc_broadcast_f(float value);
double sc_broadcast_d(double value);
/* Fills n bytes of all ranks with those of rank `from`. */
void sc_broadcast_bytes(void *bytes, size_t n, int from);

/* No prefix: int; l: long; f: float; d: double. */
#define all_reduce_to_all_add(v) sc_reduce_i(SC_ADD_, v)
#define all_reduce_to_all_mul(v) sc_reduce_i(SC_MUL_, v)
#define all_reduce_to_all_max(v) sc_reduce_i(SC_MAX_, v)
#define all_reduce_to_all_min(v) sc_reduce_i(SC_MIN_, v)
#define all_reduce_to_all_ladd(v) sc_reduce_l(SC_ADD_, v)
#define all_reduce_to_all_lmul(v) sc_reduce_l(SC_MUL_, v)
#define all_reduce_to_all_lmax(v) sc_reduce_l(SC_MAX_, v)
#define all_reduce_to_all_lmin(v) sc_reduce_l(SC_MIN_, v)
#define all_reduce_to_all_fadd(v) sc_reduce_f(SC_ADD_, v)
#define all_reduce_to_all_fmul(v) sc_reduce_f(SC_MUL_, v)
#define all_reduce_to_all_fmax(v) sc_reduce_f(SC_MAX_, v)
#define all_reduce_to_all_fmin(v) sc_reduce_f(SC_MIN_, v)
#define all_reduce_to_all_dadd(v) sc_reduce_d(SC_ADD_, v)
#define all_reduce_to_all_dmul(v) sc_reduce_d(SC_MUL_, v)
#define all_reduce_to_all_dmax(v) sc_reduce_d(SC_MAX_, v)
#define all_reduce_to_all_dmin(v) sc_reduce_d(SC_MIN_, v)

/* The result is for rank 0; here all have it. */
#define all_reduce_to_one_add(v) sc_reduce_i(SC_ADD_, v)
#define all_reduce_to_one_max(v) sc_reduce_i(SC_MAX_, v)
#define all_reduce_to_one_min(v) sc_reduce_i(SC_MIN_, v)
#define all_reduce_to_one_ladd(v) sc_reduce_l(SC_ADD_, v)
#define all_reduce_to_one_dadd(v) sc_reduce_d(SC_ADD_, v)
#define all_reduce_to_one_dmax(v) sc_reduce_d(SC_MAX_, v)
#define all_reduce_to_one_dmin(v) sc_reduce_d(SC_MIN_, v)

#define all_scan_add(v) sc_scan_i(SC_ADD_, v)
#define all_scan_max(v) sc_scan_i(SC_MAX_, v)
#define all_scan_min(v) sc_scan_i(SC_MIN_, v)
#define all_scan_ladd(v) sc_scan_l(SC_ADD_, v)
#define all_scan_fadd(v) sc_scan_f(SC_ADD_, v)
#define all_scan_dadd(v) sc_scan_d(SC_ADD_, v)

#define all_bcast(v) sc_broadcast_i(v)
#define all_bcast_i(v) sc_broadcast_i(v)
#define all_bcast_l(v) sc_broadcast_l(v)
#define all_bcast_f(v) sc_broadcast_f(v)
#define all_bcast_d(v) sc_broadcast_d(v)
#define all_bcast_buffer(bytes, n) sc_broadcast_bytes(bytes, n, 0)

#ifdef __cplusplus
}
#endif

#endif /* SPLIT_C_CONTROL_H */
