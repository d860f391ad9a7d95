/*
 * Heat that spreads along a rod: each worker has a part of it, and writes the ends of its part into
 * the segments of its neighbours after each step. The result is compared with that of a sequential
 * program, bit for bit. `am_stencil 4` or `cci run -n 4 am_stencil`.
 *
 *     cc am_stencil.c $(pkg-config --cflags --libs amudp) -o am_stencil
 */

#include <amudp_spmd.h>

#include "example.h"

enum { HALO = 1, CELLS = 1000, STEPS = 200 };

/* The segment: what the neighbours on the left and on the right have written, for even and for odd
 * steps. A neighbour is at most one step ahead, because it waits for this worker's end too. */
static double halo[2][2];
static int came[2];

static void take_halo(void *token, void *bytes, size_t length, int32_t side)
{
    (void)token, (void)bytes, (void)length;
    came[side]++;
}

static double start(int at)
{
    return (double)(at * 7919 % 1000);
}

/* The next temperature of a cell. */
static double mix(double left, double own, double right)
{
    return own + 0.25 * (left - 2 * own + right);
}

/* One step over `count` cells between two others. */
static void step(const double *from, double *into, int count, double left, double right)
{
    int at;
    for (at = 0; at < count; at++) {
        into[at] = mix(at > 0 ? from[at - 1] : left, from[at], at < count - 1 ? from[at + 1] : right);
    }
}

/* Whether the own part is that of a sequential program; the ends of the rod are cold. */
static int is_right(int workers, int me, const double *own)
{
    int all = workers * CELLS, at, round;
    double *from = malloc(sizeof(double) * (size_t)all), *into = malloc(sizeof(double) * (size_t)all), *other;
    for (at = 0; at < all; at++) {
        from[at] = start(at);
    }
    for (round = 0; round < STEPS; round++) {
        step(from, into, all, 0, 0);
        other = from;
        from = into;
        into = other;
    }
    at = memcmp(from + (size_t)me * CELLS, own, sizeof(double) * CELLS);
    free(from);
    free(into);
    return at == 0;
}

int main(int argc, char **argv)
{
    static double cells[2][CELLS];
    int me, workers, at, round;
    eb_t bundle;
    ep_t endpoint;

    if (AMX_SPMDStartup(&argc, &argv, 0, NULL, &bundle, &endpoint) != AM_OK) {
        return 1;
    }
    me = AMX_SPMDMyProc();
    workers = AMX_SPMDNumProcs();
    for (at = 0; at < CELLS; at++) {
        cells[0][at] = start(me * CELLS + at);
    }
    TRY(AM_SetHandler(endpoint, HALO, take_halo));
    TRY(AM_SetSeg(endpoint, halo, sizeof(halo)));
    TRY(AMX_SPMDBarrier());
    for (round = 0; round < STEPS; round++) {
        double *from = cells[round % 2], *into = cells[(round + 1) % 2], *ends = halo[round % 2];
        if (me > 0) {
            /* This worker is on the right of that one. */
            uintptr_t offset = (uintptr_t)((char *)&ends[1] - (char *)halo);
            TRY(AM_RequestXfer1(endpoint, me - 1, offset, HALO, &from[0], sizeof(double), 1));
        }
        if (me < workers - 1) {
            uintptr_t offset = (uintptr_t)((char *)&ends[0] - (char *)halo);
            TRY(AM_RequestXfer1(endpoint, me + 1, offset, HALO, &from[CELLS - 1], sizeof(double), 0));
        }
        while ((me > 0 && came[0] <= round) || (me < workers - 1 && came[1] <= round)) {
            TRY(AM_Poll(bundle));
        }
        step(from, into, CELLS, me > 0 ? ends[0] : 0, me < workers - 1 ? ends[1] : 0);
    }
    printf("worker %d: %s\n", me, is_right(workers, me, cells[STEPS % 2]) ? "as one program alone" : "WRONG");
    fflush(stdout);
    TRY(AMX_SPMDBarrier());
    AMX_SPMDExit(0);
    return 1;
}
