/*
 * Sorts keys that lie at all workers by a histogram: each worker counts its keys by their upper
 * bits, all gather the counts, and each bucket goes to one worker, which sorts it. The result is
 * compared with that of a sequential sort. `cci run -n 4 am_sort`.
 *
 *     cc am_sort.c $(pkg-config --cflags --libs ammpi) -o am_sort
 */

#include <ammpi_spmd.h>

#include "example.h"

enum { KEYS = 1, COUNT = 20000, BUCKETS = 256, BATCH = 500 };

static uint32_t *sorted;
static size_t come;

static void take_keys(void *token, void *bytes, size_t length)
{
    (void)token;
    memcpy(sorted + come, bytes, length);
    come += length / sizeof(uint32_t);
}

static int compare(const void *one, const void *other)
{
    uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;
    return a < b ? -1 : a > b;
}

static int bucket_of(uint32_t key)
{
    return (int)(key >> 23); /* Keys have 31 bits. */
}

static void fill(int worker, uint32_t *keys)
{
    uint64_t state = (uint64_t)worker + 1;
    int at;
    for (at = 0; at < COUNT; at++) {
        /* More small keys than great ones. */
        uint32_t one = draw(&state), other = draw(&state);
        keys[at] = one < other ? one : other;
    }
}

/* Gives each bucket an owner, so that all have about as many keys; returns how many keys lie before
 * those of `me`, and how many it has. */
static void plan(int workers, int me, const uint64_t *histogram, int *owner, size_t *before, size_t *own)
{
    size_t all = (size_t)workers * COUNT, count = 0;
    int bucket;
    *before = *own = 0;
    for (bucket = 0; bucket < BUCKETS; bucket++) {
        owner[bucket] = (int)(count * (size_t)workers / all);
        count += histogram[bucket];
        *before += owner[bucket] < me ? histogram[bucket] : 0;
        *own += owner[bucket] == me ? histogram[bucket] : 0;
    }
}

/* Whether the own part is that of a sequential sort of all keys. */
static int is_right(int workers, size_t before, size_t own)
{
    uint32_t *all = malloc(sizeof(*all) * COUNT * (size_t)workers);
    int worker, right;
    for (worker = 0; worker < workers; worker++) {
        fill(worker, all + (size_t)worker * COUNT);
    }
    qsort(all, COUNT * (size_t)workers, sizeof(*all), compare);
    right = memcmp(all + before, sorted, own * sizeof(*all)) == 0;
    free(all);
    return right;
}

int main(int argc, char **argv)
{
    static uint32_t keys[COUNT], batch[BATCH];
    static uint64_t counts[BUCKETS], histogram[BUCKETS];
    int owner[BUCKETS], me, workers, worker, at, bucket;
    uint64_t *gathered;
    size_t before, own, length;
    eb_t bundle;
    ep_t endpoint;

    if (AMX_SPMDStartup(&argc, &argv, 0, NULL, &bundle, &endpoint) != AM_OK) {
        return 1;
    }
    me = AMX_SPMDMyProc();
    workers = AMX_SPMDNumProcs();
    fill(me, keys);
    for (at = 0; at < COUNT; at++) {
        counts[bucket_of(keys[at])]++;
    }
    gathered = malloc(sizeof(counts) * (size_t)workers);
    TRY(AMX_SPMDAllGather(counts, gathered, sizeof(counts)));
    for (at = 0; at < workers * BUCKETS; at++) {
        histogram[at % BUCKETS] += gathered[at];
    }
    plan(workers, me, histogram, owner, &before, &own);
    sorted = malloc(sizeof(*sorted) * (own + 1));
    TRY(AM_SetHandler(endpoint, KEYS, take_keys));
    TRY(AMX_SPMDBarrier());

    /* Each worker begins with another one, so that not all send to one. */
    for (worker = 0; worker < workers; worker++) {
        int target = (me + worker) % workers;
        for (at = 0, length = 0; at < COUNT; at++) {
            bucket = bucket_of(keys[at]);
            if (owner[bucket] == target) {
                batch[length++] = keys[at];
            }
            if (length == BATCH || (at == COUNT - 1 && length > 0)) {
                TRY(AM_RequestI0(endpoint, target, KEYS, batch, length * sizeof(*batch)));
                length = 0;
            }
        }
    }
    while (come < own) {
        TRY(AM_Poll(bundle));
    }
    qsort(sorted, own, sizeof(*sorted), compare);
    printf("worker %d: %s\n", me, is_right(workers, before, own) ? "its part is sorted" : "its part is WRONG");
    fflush(stdout);
    TRY(AMX_SPMDBarrier());
    AMX_SPMDExit(0);
    return 1;
}
