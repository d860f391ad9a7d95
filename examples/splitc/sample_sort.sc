/*
 * Sample sort: each rank takes samples of its keys, all agree on splitters, each key goes to the
 * rank between whose splitters it lies, and the ranks sort what they have got.
 *
 *   cci run -n 4 ./sample_sort [keys of a rank]
 */

#include <string.h>
#include <split-c/split-c.h>
#include "check.h"

#define SAMPLES 32

static int by_value(const void *a, const void *b)
{
    unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
    return (x > y) - (x < y);
}

/* How many keys each rank has got, and where they begin in the order of all. */
static int arrived;

static unsigned *own_keys(int rank, int n)
{
    unsigned *keys = malloc(n * sizeof *keys);
    unsigned long state = 77 * rank + 5;
    int i;
    for (i = 0; i < n; i++)
        keys[i] = random_next(&state) >> (rank % 3);
    return keys;
}

/* The splitters: PROCS - 1 of them, the same in all ranks. */
static unsigned *splitters(unsigned *keys, int n)
{
    unsigned samples[PROCS * SAMPLES]::;
    unsigned *all = malloc(PROCS * SAMPLES * sizeof *all);
    int i, rank;
    for (i = 0; i < SAMPLES; i++)
        samples[i * PROCS + MYPROC] = keys[(long)i * n / SAMPLES];
    barrier();
    for (rank = 0; rank < PROCS; rank++)
        bulk_get(all + rank * SAMPLES, &samples[rank], SAMPLES * sizeof *all);
    sync();
    qsort(all, PROCS * SAMPLES, sizeof *all, by_value);
    for (rank = 1; rank < PROCS; rank++)
        all[rank - 1] = all[rank * SAMPLES];
    barrier();
    return all;
}

/* Sends each rank its keys; returns how many have come here. */
static int exchange_keys(unsigned *keys, int n, unsigned *splits, unsigned *spread room)
{
    int rank, from = 0, to, at;
    qsort(keys, n, sizeof *keys, by_value);
    arrived = 0;
    barrier();
    for (rank = 0; rank < PROCS; rank++) {
        for (to = from; to < n && (rank == PROCS - 1 || keys[to] < splits[rank]); to++)
            ;
        /* Room among the keys that others send to this rank. */
        at = fetch_and_add(toglobal(rank, &arrived), to - from);
        bulk_store((unsigned *global)(room + rank) + at, keys + from, (to - from) * sizeof *keys);
        from = to;
    }
    all_store_sync();
    return arrived;
}

/* Compares this rank's part of the order with that of one process. */
static void check(unsigned *sorted, int count, int n)
{
    unsigned *all = malloc(n * PROCS * sizeof *all);
    int rank, i, first = all_scan_add(count) - count;
    for (rank = 0; rank < PROCS; rank++) {
        unsigned *keys = own_keys(rank, n);
        memcpy(all + rank * n, keys, n * sizeof *all);
        free(keys);
    }
    qsort(all, n * PROCS, sizeof *all, by_value);
    if (all_reduce_to_all_add(count) != n * PROCS)
        wrong("the number of keys on rank", MYPROC, count, n);
    for (i = 0; i < count; i++)
        if (sorted[i] != all[first + i])
            wrong("key", first + i, sorted[i], all[first + i]);
    free(all);
}

int splitc_main(int argc, char **argv)
{
    int n = argument(argc, argv, 1, 3000), count;
    unsigned *keys = own_keys(MYPROC, n), *splits = splitters(keys, n);
    /* One rank might get all. */
    unsigned *spread room = all_spread_malloc((size_t)n * PROCS * PROCS, sizeof(unsigned));
    unsigned *sorted = tolocal(room + MYPROC);
    count = exchange_keys(keys, n, splits, room);
    qsort(sorted, count, sizeof *sorted, by_value);
    check(sorted, count, n);
    barrier();
    on_one {
        printf("sample sort: %d keys are in order\n", n * PROCS);
    }
    free(keys);
    free(splits);
    return 0;
}
