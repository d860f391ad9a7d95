/*
 * A token goes round a ring of workers: a handler notes it, and the program passes it on.
 * `am_ring 4` starts four workers of its own; `cci run -n 4 am_ring` is the same ring.
 *
 *     cc am_ring.c $(pkg-config --cflags --libs amudp) -o am_ring
 */

#include <amudp_spmd.h>

#include "example.h"

/* The number of the handler that takes the token, and how often it goes round. */
enum { TOKEN = 1, ROUNDS = 3 };

static int came, hops;

static void take(void *token, int32_t count)
{
    (void)token;
    came++;
    hops = count;
}

int main(int argc, char **argv)
{
    eb_t bundle;
    ep_t endpoint;
    int me, next, passed = 0;

    if (AMX_SPMDStartup(&argc, &argv, 0, NULL, &bundle, &endpoint) != AM_OK) {
        return 1;
    }
    me = AMX_SPMDMyProc();
    next = (me + 1) % AMX_SPMDNumProcs();
    TRY(AM_SetHandler(endpoint, TOKEN, take));
    TRY(AM_SetEventMask(bundle, AM_NOTEMPTY));
    /* From here on all have the handler. */
    TRY(AMX_SPMDBarrier());
    if (me == 0) {
        TRY(AM_Request1(endpoint, next, TOKEN, 1));
    }
    while (passed < ROUNDS) {
        while (came == passed) {
            TRY(AM_WaitSema(bundle));
        }
        passed++;
        if (me != 0 || passed < ROUNDS) {
            TRY(AM_Request1(endpoint, next, TOKEN, hops + 1));
        }
    }
    printf("worker %d: the token has come %d times, last after %d hops\n", me, passed, hops);
    fflush(stdout);
    TRY(AMX_SPMDBarrier());
    AMX_SPMDExit(0);
    return 1;
}
