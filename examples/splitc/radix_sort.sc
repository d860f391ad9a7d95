/*
 * Radix sort of 32-bit keys, 8 bits at a time: each rank counts its keys, a scan over all ranks
 * gives each key its place in the whole, and stores carry the keys there.
 *
 *   cci run -n 4 ./radix_sort [keys of a rank]
 */

#include <string.h>
#include <split-c/split-c.h>
#include "check.h"

#define BITS 8
#define BUCKETS (1 << BITS)

/* The counts of all ranks, those of a bucket side by side. */
static unsigned counts[BUCKETS]::[256];

static int by_value(const void *a, const void *b)
{
    unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
    return (x > y) - (x < y);
}

/* Where this rank's keys of each bucket go, by their number in the whole. */
static void places(unsigned *place, unsigned *own)
{
    unsigned all[BUCKETS], i, rank, sum = 0;
    for (i = 0; i < BUCKETS; i++)
        counts[i][MYPROC] := own[i];
    sync();
    barrier();
    for (i = 0; i < BUCKETS; i++) {
        bulk_read(all, counts[i], PROCS * sizeof all[0]);
        for (rank = 0; rank < PROCS; rank++) {
            if (rank == MYPROC)
                place[i] = sum;
            sum += all[rank];
        }
    }
}

static void pass(unsigned *spread to, unsigned *keys, int n, int shift)
{
    unsigned own[BUCKETS], place[BUCKETS];
    int i;
    memset(own, 0, sizeof own);
    for (i = 0; i < n; i++)
        own[keys[i] >> shift & (BUCKETS - 1)]++;
    places(place, own);
    for (i = 0; i < n; i++) {
        unsigned at = place[keys[i] >> shift & (BUCKETS - 1)]++;
        /* The first n keys lie on rank 0, the next n on rank 1, and so on. */
        *((unsigned *global)(to + at / n) + at % n) :- keys[i];
    }
    all_store_sync();
}

/* Compares this rank's keys with those that one process sorts. */
static void check(unsigned *keys, int n)
{
    unsigned *all = malloc(n * PROCS * sizeof *all);
    int rank, i;
    for (rank = 0; rank < PROCS; rank++) {
        unsigned long state = rank + 1;
        for (i = 0; i < n; i++)
            all[rank * n + i] = random_next(&state) * 2 + i % 2;
    }
    qsort(all, n * PROCS, sizeof *all, by_value);
    for (i = 0; i < n; i++)
        if (keys[i] != all[MYPROC * n + i])
            wrong("key", MYPROC * n + i, keys[i], all[MYPROC * n + i]);
    free(all);
}

int splitc_main(int argc, char **argv)
{
    int n = argument(argc, argv, 1, 2000), i, shift;
    unsigned *spread from = all_spread_malloc(n * PROCS, sizeof(unsigned));
    unsigned *spread to = all_spread_malloc(n * PROCS, sizeof(unsigned)), *spread other;
    unsigned *keys = tolocal(from + MYPROC);
    unsigned long state = MYPROC + 1;
    for (i = 0; i < n; i++)
        keys[i] = random_next(&state) * 2 + i % 2;
    barrier();
    for (shift = 0; shift < 32; shift += BITS) {
        pass(to, tolocal(from + MYPROC), n, shift);
        other = from;
        from = to;
        to = other;
    }
    check(tolocal(from + MYPROC), n);
    barrier();
    on_one {
        printf("radix sort: %d keys are in order\n", n * PROCS);
    }
    return 0;
}
