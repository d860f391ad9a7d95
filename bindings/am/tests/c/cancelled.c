/*
 * A thread that is cancelled makes endpoints and gives them back all the same, and is a worker of a
 * parallel program from its start to its end.
 *
 * Without an argument, and without a job: endpoints. A worker of a job, or the number of workers
 * that this program starts: a parallel program. ENDS=asked: that worker is asked to end.
 */

#ifdef WITH_AMMPI
#include <ammpi_spmd.h>
#else
#include <amudp_spmd.h>
#endif

#include <signal.h>
#include <unistd.h>

#include "check.h"

#include "../../../cancelled_thread.h"

static char segment[4096];
static int count;
static char **words;
static eb_t bundle;

/* A refused call that writes its line to a pipe. */
static void refused_with_a_line(ep_t endpoint)
{
    int ends[2], code, before = dup(STDERR_FILENO);
    char line[256];
    CHECK(before >= 0 && pipe(ends) == 0 && dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
    AMX_VerboseErrors = 1;
    code = AM_GetTag(endpoint, NULL);
    AMX_VerboseErrors = 0;
    CHECK(dup2(before, STDERR_FILENO) == STDERR_FILENO);
    CHECK(code == AM_ERR_BAD_ARG);
    /* Later reads and closes would end this thread. */
    CHECK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL) == 0);
    CHECK(read(ends[0], line, sizeof(line)) > 0);
    CHECK(close(ends[0]) == 0 && close(ends[1]) == 0 && close(before) == 0);
    CHECK(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL) == 0);
}

static void from_begin_to_end(void)
{
    ep_t endpoint;
    en_t name;

    CHECK_OK(AM_Init());
    CHECK_OK(AM_AllocateBundle(AM_SEQ, &bundle));
    CHECK_OK(AM_AllocateEndpoint(bundle, &endpoint, &name));
    CHECK_OK(AM_SetTag(endpoint, AM_ALL));
    CHECK_OK(AM_SetSeg(endpoint, segment, sizeof(segment)));
    CHECK_OK(AM_Map(endpoint, 0, name, AM_ALL));
    CHECK_OK(AM_Poll(bundle));
    CHECK_OK(AMX_SetTranslationTag(endpoint, 0, 7));
    refused_with_a_line(endpoint);
    CHECK_OK(AM_UnMap(endpoint, 0));
    CHECK_OK(AM_FreeEndpoint(endpoint));
    CHECK_OK(AM_FreeBundle(bundle));
    CHECK_OK(AM_Terminate());
}

/* A worker; or the master, which ends in its start. */
static void worker(void)
{
    uint64_t job;
    ep_t endpoint;
    int own, *all;

    CHECK_OK(AMX_SPMDStartup(&count, &words, 0, &job, &bundle, &endpoint));
    own = AMX_SPMDMyProc();
    CHECK((all = calloc((size_t)AMX_SPMDNumProcs(), sizeof(int))) != NULL);
    CHECK_OK(AMX_SPMDBarrier());
    CHECK_OK(AMX_SPMDAllGather(&own, all, sizeof(own)));
    CHECK_OK(AMX_SPMDBroadcast(&own, sizeof(own), 0));
    CHECK(own == 0 && all[AMX_SPMDMyProc()] == AMX_SPMDMyProc());
    CHECK(AMX_SPMDgetenvMaster("PATH") != NULL);
    CHECK_OK(AMX_SPMDSetExitCallback(NULL));
#ifndef WITH_AMMPI
    CHECK_OK(AMUDP_SPMDHandleControlTraffic(NULL));
#endif
    free(all);
    /* No handler waits for this worker any more. */
    CHECK_OK(AMX_SPMDBarrier());
}

static void leaves(void)
{
    const char *ends = getenv("ENDS");

    if (ends && strcmp(ends, "asked") == 0) {
        CHECK(raise(SIGTERM) == 0);
#ifdef WITH_AMMPI
        CHECK_OK(AM_Poll(bundle));
#else
        CHECK_OK(AMUDP_SPMDHandleControlTraffic(NULL));
#endif
        CHECK(!"it has been asked to end");
    }
    AMX_SPMDExit(0);
}

int main(int argc, char **argv)
{
    count = argc;
    words = argv;
    if (argc == 1 && !getenv("PARALLEL")) {
        run_cancelled(from_begin_to_end);
        puts("called");
        return 0;
    }
    run_cancelled(worker);
    /* The end of the process writes it, which is a cancellation point. */
    puts("called");
    run_cancelled(leaves);
    return 1;
}
