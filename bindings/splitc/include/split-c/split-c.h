/*
 * Split-C: the global address space.
 *
 * In C a global pointer and a spread pointer are numbers of 64 bits: the rank in the upper 16, the
 * address there in the lower 48. `splitcc` translates the language to these calls. Memory of ranks
 * on this host is reached in place; other memory by the library.
 */

#ifndef SPLIT_C_SPLIT_C_H
#define SPLIT_C_SPLIT_C_H

#include "control.h"
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A global or a spread pointer. */
typedef uint64_t sc_global;

/* Out of line. `now`: complete on return; otherwise by sync(). */
void sc_copy_out(void *to, sc_global from, size_t n, int now);
void sc_copy_in(sc_global to, const void *from, size_t n, int now);
void sc_store_bytes(sc_global to, const void *from, size_t n);
void sc_wake(int rank);

/* Waits for all gets, puts and stores of this rank. */
void sc_sync(void);
#define sync() sc_sync()
/* Waits for n more bytes that are stored here; for all that anybody has stored (all ranks call it);
 * counts off what has come. */
void sc_store_sync(size_t n);
void sc_all_store_sync(void);
void sc_reset_store_sync(void);
#define store_sync(n) sc_store_sync(n)
#define all_store_sync() sc_all_store_sync()
#define reset_store_sync() sc_reset_store_sync()

/* The pointer to an address of a rank, and its parts. */
static inline sc_global sc_pack(int rank, const volatile void *address)
{
    return (uint64_t)rank << 48 | ((uint64_t)(uintptr_t)address << 16 >> 16);
}

static inline int sc_rank(sc_global g)
{
    return (int)(g >> 48);
}

static inline void *sc_address(sc_global g)
{
    return (void *)(uintptr_t)(g << 16 >> 16);
}

#ifdef __SPLITC__
/* splitcc knows their types. */
#define toglobal(rank, address) sc_toglobal_(rank, address)
#define toproc(g) sc_toproc_(g)
#define tolocal(g) sc_tolocal_(g)
#else
#define toglobal(rank, address) sc_pack(rank, address)
#define toproc(g) sc_rank(g)
#define tolocal(g) sc_address(g)
#endif

/* Arithmetic on elements of `size` bytes: on the rank, and over all ranks. */
static inline sc_global sc_global_add(sc_global g, int64_t elements, size_t size)
{
    return (g & (uint64_t)0xffff << 48) | ((g + (uint64_t)elements * size) << 16 >> 16);
}

static inline int64_t sc_global_sub(sc_global g, sc_global h, size_t size)
{
    return ((int64_t)(g << 16 >> 16) - (int64_t)(h << 16 >> 16)) / (int64_t)size;
}

static inline sc_global sc_spread_add(sc_global g, int64_t elements, size_t size)
{
    int64_t at = (int64_t)(g >> 48) + elements;
    int64_t rows = at / PROCS, rank = at % PROCS;
    if (rank < 0) {
        rank += PROCS;
        rows -= 1;
    }
    return (uint64_t)rank << 48 | ((g + (uint64_t)rows * size) << 16 >> 16);
}

static inline int64_t sc_spread_sub(sc_global g, sc_global h, size_t size)
{
    return sc_global_sub(g, h, size) * PROCS + (int64_t)(g >> 48) - (int64_t)(h >> 48);
}

/* Accesses are inline however many a program has: the size of a value is known where they stand. */
#define SC_ACCESS_ static inline __attribute__((always_inline))

/* Whether n bytes lie in a range, at `offset` from its start. Of a word one comparison tells. */
SC_ACCESS_ int sc_within_(uint64_t offset, uint64_t words, size_t n)
{
    return offset < words && (n <= 8 || n - 8 < words - offset);
}

/* Where n bytes of the global address space lie in this process; NULL: the library serves them. */
SC_ACCESS_ void *sc_at(sc_global g, size_t n)
{
    uint64_t rank = g >> 48, address = g << 16 >> 16, offset;
    const struct sc_way *way;
    if (__builtin_expect(rank == (uint64_t)sc_world_.me, 0))
        return (void *)(uintptr_t)address;
    if (rank >= (uint64_t)sc_world_.procs)
        return NULL;
    way = sc_world_.ways + rank;
    offset = address - way->start;
    if (__builtin_expect(sc_within_(offset, way->words, n), 1))
        return (void *)(uintptr_t)(address + way->shift);
    offset = address - way->statics_start;
    if (sc_within_(offset, way->statics_words, n))
        return (void *)(uintptr_t)(address + way->statics_shift);
    return NULL;
}

/* An aligned word of 1, 2, 4 or 8 bytes moves as a whole. */
SC_ACCESS_ void sc_word_out_(void *to, const void *from, size_t n)
{
    if (n == 8 && __builtin_expect((uintptr_t)from % 8 == 0, 1)) {
        uint64_t word = __atomic_load_n((const uint64_t *)from, __ATOMIC_ACQUIRE);
        memcpy(to, &word, 8);
    } else if (n == 4 && (uintptr_t)from % 4 == 0) {
        uint32_t word = __atomic_load_n((const uint32_t *)from, __ATOMIC_ACQUIRE);
        memcpy(to, &word, 4);
    } else if (n == 2 && (uintptr_t)from % 2 == 0) {
        uint16_t word = __atomic_load_n((const uint16_t *)from, __ATOMIC_ACQUIRE);
        memcpy(to, &word, 2);
    } else {
        memmove(to, from, n);
    }
}

SC_ACCESS_ void sc_word_in_(void *to, const void *from, size_t n)
{
    if (n == 8 && __builtin_expect((uintptr_t)to % 8 == 0, 1)) {
        uint64_t word;
        memcpy(&word, from, 8);
        __atomic_store_n((uint64_t *)to, word, __ATOMIC_RELEASE);
    } else if (n == 4 && (uintptr_t)to % 4 == 0) {
        uint32_t word;
        memcpy(&word, from, 4);
        __atomic_store_n((uint32_t *)to, word, __ATOMIC_RELEASE);
    } else if (n == 2 && (uintptr_t)to % 2 == 0) {
        uint16_t word;
        memcpy(&word, from, 2);
        __atomic_store_n((uint16_t *)to, word, __ATOMIC_RELEASE);
    } else {
        memmove(to, from, n);
    }
}

/* Reads and writes are complete on return; gets and puts by sync(). */
SC_ACCESS_ void sc_read(void *to, sc_global from, size_t n)
{
    void *at = sc_at(from, n);
    if (at)
        sc_word_out_(to, at, n);
    else
        sc_copy_out(to, from, n, 1);
}

SC_ACCESS_ void sc_get(void *to, sc_global from, size_t n)
{
    void *at = sc_at(from, n);
    if (at)
        sc_word_out_(to, at, n);
    else
        sc_copy_out(to, from, n, 0);
}

SC_ACCESS_ void sc_write(sc_global to, const void *from, size_t n)
{
    void *at = sc_at(to, n);
    if (at) {
        sc_word_in_(at, from, n);
        if (sc_rank(to) != MYPROC)
            __atomic_thread_fence(__ATOMIC_SEQ_CST);
    } else {
        sc_copy_in(to, from, n, 1);
    }
}

SC_ACCESS_ void sc_put(sc_global to, const void *from, size_t n)
{
    void *at = sc_at(to, n);
    if (at)
        sc_word_in_(at, from, n);
    else
        sc_copy_in(to, from, n, 0);
}

/* Stores what is mapped here, at `at`. */
SC_ACCESS_ void sc_store_at_(void *at, const struct sc_way *way, sc_global to, const void *from, size_t n)
{
    /* Neighbours count in different words, so that none waits for the count of the one before. */
    uint64_t *count = (uint64_t *)(uintptr_t)(way->counts + (to & 0x38));
    sc_word_in_(at, from, n);
    /* This rank alone writes it, after the bytes that it counts. */
    __atomic_store_n(count, *count + n, __ATOMIC_RELEASE);
    /* The sleeper fences for both. */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (__builtin_expect(__atomic_load_n((uint64_t *)(uintptr_t)way->sleeping, __ATOMIC_RELAXED) != 0, 0))
        sc_wake(sc_rank(to));
}

SC_ACCESS_ void sc_store(sc_global to, const void *from, size_t n)
{
    uint64_t rank = to >> 48, address = to << 16 >> 16;
    const struct sc_way *way = sc_world_.ways + rank;
    void *at;
    if (__builtin_expect(rank < (uint64_t)sc_world_.procs && sc_within_(address - way->start, way->words, n), 1)) {
        sc_store_at_((void *)(uintptr_t)(address + way->shift), way, to, from, n);
        return;
    }
    at = sc_at(to, n);
    if (at) {
        sc_store_at_(at, way, to, from, n);
    } else if (n <= 8) {
        /* A copy, so that a value which is stored need not lie in memory. */
        uint64_t word = 0;
        memcpy(&word, from, n);
        sc_store_bytes(to, &word, n);
    } else {
        sc_store_bytes(to, from, n);
    }
}

#define bulk_read(to, from, n) sc_read(to, (sc_global)(from), n)
#define bulk_get(to, from, n) sc_get(to, (sc_global)(from), n)
#define bulk_write(to, from, n) sc_write((sc_global)(to), from, n)
#define bulk_put(to, from, n) sc_put((sc_global)(to), from, n)
#define bulk_store(to, from, n) sc_store((sc_global)(to), from, n)

/* Atomic operations on words of 4 or 8 bytes; all return the old value. */
enum { SC_FETCH_ADD_, SC_EXCHANGE_, SC_COMPARE_SWAP_ };
uint64_t sc_change(sc_global at, int size, int operation, uint64_t first, uint64_t second);

static inline int sc_change_i_(sc_global at, int operation, int first, int second)
{
    return (int)sc_change(at, 4, operation, (uint32_t)first, (uint32_t)second);
}

static inline long sc_change_l_(sc_global at, int operation, long first, long second)
{
    return (long)sc_change(at, 8, operation, (uint64_t)first, (uint64_t)second);
}

#define fetch_and_add(g, v) sc_change_i_((sc_global)(g), SC_FETCH_ADD_, v, 0)
#define fetch_and_add_l(g, v) sc_change_l_((sc_global)(g), SC_FETCH_ADD_, v, 0)
#define exchange(g, v) sc_change_i_((sc_global)(g), SC_EXCHANGE_, v, 0)
#define exchange_l(g, v) sc_change_l_((sc_global)(g), SC_EXCHANGE_, v, 0)
#define test_and_set(g) sc_change_i_((sc_global)(g), SC_EXCHANGE_, 1, 0)
#define cmp_swap(g, old, desired) sc_change_i_((sc_global)(g), SC_COMPARE_SWAP_, old, desired)
#define cmp_swap_l(g, old, desired) sc_change_l_((sc_global)(g), SC_COMPARE_SWAP_, old, desired)

/*
 * Memory of zeroes for `count` elements of `size` bytes, spread over all ranks from rank 0 on, at
 * the same addresses of each. All ranks call both.
 */
sc_global sc_spread_malloc(size_t count, size_t size);
void sc_spread_free(sc_global memory);
#ifdef __SPLITC__
#define all_spread_malloc(count, size) ((void *spread)sc_spread_malloc(count, size))
#else
#define all_spread_malloc(count, size) sc_spread_malloc(count, size)
#endif
#define all_spread_free(memory) sc_spread_free((sc_global)(memory))

/*
 * Memory of this rank that other ranks of its host reach in place, as the C library's malloc; what
 * finds no room there comes from that.
 */
void *sc_malloc(size_t n);
void *sc_calloc(size_t count, size_t n);
void *sc_realloc(void *memory, size_t n);
void sc_free(void *memory);

#ifdef __SPLITC__
/* The spread arrays of a block. */
static inline void *sc_spread_auto_(size_t count, size_t size)
{
    return (void *)sc_spread_malloc(count, size);
}

static inline void sc_free_auto_(void *variable)
{
    sc_spread_free(*(sc_global *)variable);
}

#include <stdlib.h>
#define malloc(n) sc_malloc(n)
#define calloc(count, n) sc_calloc(count, n)
#define realloc(memory, n) sc_realloc(memory, n)
#define free(memory) sc_free(memory)
#endif

#ifdef __cplusplus
}
#endif

#endif /* SPLIT_C_SPLIT_C_H */
