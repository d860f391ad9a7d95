/*
 * A parallel program whose workers have no standard descriptors, or close them once they have
 * started.
 */

#include <amudp_spmd.h>

#include "check.h"

#include "../../../descriptors.h"

enum { ASK = 1, BACK };

static int answers;

static void ask(void *token, void *bytes, size_t length, int32_t value)
{
    CHECK(length == 500 && ((char *)bytes)[499] == 7);
    CHECK_OK(AM_Reply1(token, BACK, value));
}

static void back(void *token, int32_t value)
{
    (void)token;
    CHECK(value == 17);
    answers++;
}

int main(int argc, char **argv)
{
    eb_t bundle;
    ep_t endpoint;
    uint64_t job;
    char bytes[500];
    int me, workers;

    if (AMX_SPMDStartup(&argc, &argv, 0, &job, &bundle, &endpoint) != AM_OK) {
        return 9;
    }
    me = AMX_SPMDMyProc();
    workers = AMX_SPMDNumProcs();
    CHECK_OK(AM_SetHandler(endpoint, ASK, ask));
    CHECK_OK(AM_SetHandler(endpoint, BACK, back));
    CHECK_OK(AMX_SPMDBarrier());
    memset(bytes, 7, sizeof(bytes));
    CHECK_OK(AM_RequestI1(endpoint, (me + 1) % workers, ASK, bytes, sizeof(bytes), 17));
    POLL_UNTIL(bundle, answers == 1);
    close_standard("connected");
    CHECK_OK(AM_RequestI1(endpoint, (me + 1) % workers, ASK, bytes, sizeof(bytes), 17));
    POLL_UNTIL(bundle, answers == 2);
    CHECK_OK(AMX_SPMDBarrier());
    restore_standard("exchanged");
    printf("worker %d of %d\n", me, workers);
    fflush(stdout);
    CHECK_OK(AMX_SPMDExit(0));
    return 0;
}
