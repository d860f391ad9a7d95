/* libam: the parallel program of one worker. */

#include "am_calls.h"

#if !NOW
static eb_t own_bundle;
static endpoint_t own_endpoint;

static void on_exit_of(int status) {
    (void)status;
}

/* The parallel program of one worker. */
void start_job(void) {
    static char name[] = "calls";
    static char *words[] = {name, NULL};
    char **argv = words;
    int argc = 1;
    uint64_t number;

#ifdef DIALECT_AMUDP
    AM(SPMDStartup, &argc, &argv, 0, 16, NULL, &number, &own_bundle, &own_endpoint);
#else
    AM(SPMDStartup, &argc, &argv, 16, &number, &own_bundle, &own_endpoint);
#endif
}

void job(void) {
    static char *words[] = {NULL};
    uint64_t values[4];
    const char *text;

    CALL_GOOD(SPMDIsWorker, result_ != 0, NAME(SPMDIsWorker)(words));
    CALL_GOOD(SPMDNumProcs, result_ == 1, NAME(SPMDNumProcs)());
    CALL_GOOD(SPMDMyProc, result_ == 0, NAME(SPMDMyProc)());
    AM(SPMDBarrier);
    AM(SPMDAllGather, payload, values, 8);
    AM(SPMDBroadcast, values, 8, one_in(9) ? 1 : 0);
    text = CALL_GOOD(SPMDgetenvMaster, result_ != NULL, NAME(SPMDgetenvMaster)(one_in(9) ? "NO_SUCH" : "PATH"));
    sum += text ? strlen(text) : 0;
    AM(SPMDSetExitCallback, one_in(2) ? NULL : on_exit_of);
#ifdef DIALECT_AMUDP
    {
        int count;

        CALL_GOOD(SPMDSetProc, result_ == 0, (AMUDP_SPMDSetProc(one_in(2) ? 0 : 1), 0));
        text = CALL_GOOD(check_env_prefix, result_ != NULL, AMUDP_check_env_prefix(one_in(9) ? "NO_SUCH" : "PAT"));
        sum += text ? strlen(text) : 0;
        AM(SPMDHandleControlTraffic, &count);
    }
#else
    CALL_GOOD(SPMDSetThreadMode, result_ == 1, NAME(SPMDSetThreadMode)(1, &text, NULL, NULL));
#endif
}
#endif
