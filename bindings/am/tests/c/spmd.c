/*
 * A parallel program that does what its first argument names: see the functions.
 */

#ifdef WITH_AMMPI
#include <ammpi_spmd.h>
#define DIALECT "ammpi"
#else
#include <amudp_spmd.h>
#define DIALECT "amudp"
#endif

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { NOTE = 1, ECHO, BACK };

static eb_t bundle;
static ep_t endpoint;
static uint64_t job;
static int me, workers;
static int notes, backs, returns, last_status;
static char got[64];

static void note(void *token, void *bytes, size_t length, int32_t from)
{
    int source;
    CHECK_OK(AMX_GetSourceId(token, &source));
    CHECK(source == from && length < sizeof(got));
    memcpy(got, bytes, length);
    notes++;
}

static void echo(void *token, int32_t a)
{
    CHECK_OK(AM_Reply1(token, BACK, a));
}

static void back(void *token, int32_t a)
{
    (void)token;
    CHECK(a == 17);
    backs++;
}

static void returned(int status, op_t operation, void *argblock)
{
    (void)operation, (void)argblock;
    last_status = status;
    returns++;
}

/* Names of endpoints that were made after the start lead there from all workers. */
static void later_endpoints(void)
{
    ep_t later;
    en_t own, *all = calloc((size_t)workers, sizeof(*all)), found;
    int at;
    CHECK_OK(AM_AllocateEndpoint(bundle, &later, &own));
    CHECK_OK(AM_SetTag(later, 1000 + (tag_t)me));
    CHECK_OK(AM_SetHandler(later, NOTE, note));
    CHECK_OK(AM_Map(later, me, own, 1));
    CHECK_OK(AMX_SPMDAllGather(&own, all, sizeof(own)));
    CHECK(AMX_enEqual(all[me], own));
    notes = 0;
    for (at = 0; at < workers; at++) {
        en_t name;
        /* Source identities are those of the table of `later`. */
        CHECK_OK(AM_GetTranslationName(endpoint, at, &name));
        if (at == me) {
            CHECK_OK(AM_UnMap(later, me));
        }
        CHECK_OK(AM_Map(later, at, name, 1));
        CHECK_OK(AM_Map(endpoint, workers + at, all[at], 1000 + (tag_t)at));
        CHECK_OK(AM_GetTranslationName(endpoint, workers + at, &found));
        CHECK(AMX_enEqual(found, all[at]));
    }
    CHECK_OK(AMX_SPMDBarrier());
    for (at = 0; at < workers; at++) {
        CHECK_OK(AM_RequestI1(endpoint, workers + at, NOTE, "later", 6, me));
    }
    POLL_UNTIL(bundle, notes == workers);
    CHECK(strcmp(got, "later") == 0);
    CHECK_OK(AMX_SPMDBarrier());
    CHECK_OK(AM_FreeEndpoint(later));
    free(all);
}

/* Every call of parallel programs. */
static void walk(void)
{
    uint64_t *numbers = calloc((size_t)workers, sizeof(*numbers));
    char *blocks = malloc((size_t)workers * 100000), *block = malloc(100000);
    tag_t own, tag;
    int at, round, count;
    CHECK(AMX_SPMDIsWorker(NULL) == 1 && me >= 0 && me < workers);
    CHECK_OK(AM_GetTag(endpoint, &own));
    for (at = 0; at < workers; at++) {
        CHECK_OK(AM_GetTranslationInuse(endpoint, at));
        CHECK_OK(AM_GetTranslationTag(endpoint, at, &tag));
        CHECK((tag == own) == (at == me) && tag != AM_NONE && tag != AM_ALL);
    }
    CHECK_OK(AMX_SPMDAllGather(&job, numbers, sizeof(job)));
    for (at = 0; at < workers; at++) {
        CHECK(numbers[at] == job);
    }
    /* Blocks that need several messages, and empty ones. */
    for (round = 0; round < 5; round++) {
        memset(block, 'a' + me + round, 100000);
        CHECK_OK(AMX_SPMDAllGather(block, blocks, 100000));
        for (at = 0; at < workers * 100000; at++) {
            CHECK(blocks[at] == 'a' + at / 100000 + round);
        }
        CHECK_OK(AMX_SPMDAllGather(NULL, NULL, 0));
        memset(block, me, 100000);
        CHECK_OK(AMX_SPMDBroadcast(block, 100000, round % workers));
        CHECK(block[0] == round % workers && block[99999] == round % workers);
    }
    CHECK_CODE(AMX_SPMDBroadcast(block, 1, workers), AM_ERR_BAD_ARG);
    CHECK(AMX_SPMDgetenvMaster("SPMD_TEST") && strcmp(AMX_SPMDgetenvMaster("SPMD_TEST"), "of the master") == 0);
    CHECK(!AMX_SPMDgetenvMaster("SPMD_TES") && !AMX_SPMDgetenvMaster(NULL));
#ifndef WITH_AMMPI
    count = 7;
    CHECK_OK(AMUDP_SPMDHandleControlTraffic(&count));
    CHECK(count == 0);
    AMUDP_SPMDSetProc(me);
    AMUDP_SPMDSetProc(me + 1);
    CHECK(AMX_SPMDMyProc() == me);
    CHECK(AMUDP_check_env_prefix("SPMD_T") && strcmp(AMUDP_check_env_prefix("SPMD_T"), "SPMD_TEST=of the master") == 0);
    CHECK(!AMUDP_check_env_prefix("SPMD_X") && !AMUDP_check_env_prefix("SPMD_TEST=") && !AMUDP_check_env_prefix(NULL));
    CHECK(AMUDP_Spawnfn_Desc[0].abbrev == 'L' && !AMUDP_Spawnfn_Desc[3].abbrev);
#else
    {
        const char *provided = NULL;
        count = AMMPI_SPMDSetThreadMode(0, &provided, NULL, NULL);
        CHECK(count == 1 && provided);
    }
#endif
    notes = 0;
    CHECK_OK(AMX_SPMDBarrier());
    for (at = 0; at < workers; at++) {
        CHECK_OK(AM_RequestI1(endpoint, at, NOTE, "early", 6, me));
        CHECK_OK(AM_Request1(endpoint, at, ECHO, 17));
    }
    POLL_UNTIL(bundle, notes == workers && backs == workers);
    later_endpoints();
    CHECK(returns == 0);
    printf("worker %d of %d walks\n", me, workers);
    free(numbers);
    free(blocks);
    free(block);
}

/* A worker that comes late to barriers holds all others up, in each of many. */
static void barriers(void)
{
    int round, at, *counts = calloc((size_t)workers, sizeof(int));
    for (round = 1; round <= 200; round++) {
        CHECK_OK(AMX_SPMDAllGather(&round, counts, sizeof(round)));
        for (at = 0; at < workers; at++) {
            CHECK(counts[at] == round);
        }
        CHECK_OK(AMX_SPMDBarrier());
    }
    free(counts);
    printf("worker %d has met all\n", me);
}

/* A call of all workers after the first endpoint has gone, also where another one has its place. */
static void no_first(void)
{
    char byte = 1, *all = calloc((size_t)workers, 1);
    CHECK_CODE(AMX_SPMDBarrier(), AM_ERR_BAD_ARG);
    CHECK_CODE(AMX_SPMDAllGather(&byte, all, 1), AM_ERR_BAD_ARG);
    CHECK_CODE(AMX_SPMDBroadcast(&byte, 1, 0), AM_ERR_BAD_ARG);
    free(all);
}

static void terminated(void)
{
    eb_t next;
    ep_t other;
    en_t name;
    CHECK_OK(AMX_SPMDBarrier());
    CHECK_OK(AM_Terminate());
    no_first();
    CHECK_OK(AM_Init());
    CHECK_OK(AM_AllocateBundle(AM_SEQ, &next));
    CHECK_OK(AM_AllocateEndpoint(next, &other, &name));
    CHECK(other == endpoint);
    no_first();
    CHECK_OK(AM_Poll(next));
    printf("worker %d has ended the library\n", me);
    /* The others' launcher sees no early end. */
    exit(0);
}

static void on_exit_of_all(int status)
{
    printf("worker %d ends with %d\n", me, status);
    fflush(stdout);
}

static void kill_me(int status)
{
    printf("worker %d kills itself\n", me);
    fflush(stdout);
    _exit(status);
}

/* Worker 1 ends the program; the others poll. */
static void leave(int status)
{
    AMX_SPMDkillmyprocess = kill_me;
    CHECK_OK(AMX_SPMDSetExitCallback(on_exit_of_all));
    CHECK_OK(AMX_SPMDBarrier());
    if (me == 1) {
        AMX_SPMDExit(status);
    }
    POLL_UNTIL(bundle, 0);
}

static volatile sig_atomic_t asked;

/* A handler of the program's own, in the place of the library's. */
static void on_sigterm(int signal)
{
    const char text[] = "worker 0 is asked to end\n";
    (void)signal;
    asked = 1;
    if (me == 0 && write(STDOUT_FILENO, text, sizeof(text) - 1) < 0) {
        _exit(1);
    }
}

/* Worker 0's end takes until the others are gone, which its launcher has asked after it. */
static void last(int status)
{
    char bytes[16];
    const char *file = getenv("GONE");
    size_t gone = 0;
    (void)status;
    while (me == 0 && gone + 1 < (size_t)workers) {
        FILE *of_others = fopen(file, "r");
        gone = of_others ? fread(bytes, 1, sizeof(bytes), of_others) : 0;
        if (of_others) {
            fclose(of_others);
        }
    }
}

/* Worker 0 ends the program; the others do too, once they are asked to. */
static void own_handler(void)
{
    FILE *gone;
    CHECK(signal(SIGTERM, on_sigterm) != SIG_ERR);
    CHECK_OK(AMX_SPMDSetExitCallback(last));
    CHECK_OK(AMX_SPMDBarrier());
    if (me == 0) {
        AMX_SPMDExit(6);
    }
    POLL_UNTIL(bundle, asked);
    gone = fopen(getenv("GONE"), "a");
    CHECK(gone && fputc('.', gone) == '.' && fclose(gone) == 0);
    AMX_SPMDExit(4);
}

/* Worker 1 sends to itself in a handler's time, and ends the program there. */
static void in_handler(void *token, int32_t status)
{
    (void)token;
    AMX_SPMDExit(status);
}

/* Waits until requests to worker 1, which is stopped or killed from outside, come back. */
static void outlive(void)
{
    CHECK_OK(AMX_SPMDBarrier());
    printf("%d\n", (int)getpid());
    fflush(stdout);
    if (me == 1) {
        POLL_UNTIL(bundle, 0);
    }
    /* A line says that it has happened. */
    CHECK(getchar() != EOF);
    CHECK_OK(AM_Request1(endpoint, 1, ECHO, 17));
    POLL_UNTIL(bundle, returns == 1);
    CHECK(last_status == EUNREACHABLE);
    /* From now on at once. */
    CHECK_OK(AM_Request1(endpoint, 1, ECHO, 17));
    CHECK(returns == 2);
    CHECK_CODE(AMX_SPMDBarrier(), AM_ERR_NOT_SENT);
    puts("came back");
    exit(0);
}

/* Worker 1 ends well before the barrier of all. */
static void early(void)
{
    if (me == 1) {
        exit(0);
    }
    CHECK_CODE(AMX_SPMDBarrier(), AM_ERR_NOT_SENT);
    printf("worker %d does not wait for ever\n", me);
    exit(0);
}

static void end_of_child(int code)
{
    CHECK(code == 3);
    _exit(42);
}

/* A forked child may not use what it has inherited, and its end is not that of the job. */
static void children(void)
{
    int status;
    int gathered[16];
    pid_t child;
    fflush(stdout);
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK_CODE(AM_Poll(bundle), AM_ERR_RESOURCE);
        CHECK_CODE(AM_Request1(endpoint, (me + 1) % workers, ECHO, 17), AM_ERR_RESOURCE);
        CHECK_CODE(AMX_SPMDBarrier(), AM_ERR_RESOURCE);
        CHECK_CODE(AMX_SPMDAllGather(&me, gathered, sizeof me), AM_ERR_RESOURCE);
        CHECK_CODE(AMX_SPMDBroadcast(&me, sizeof me, 0), AM_ERR_RESOURCE);
        CHECK(me == 0 || AMX_SPMDgetenvMaster("PATH") == NULL);
        CHECK_OK(AMX_SPMDSetExitCallback(end_of_child));
        AMX_SPMDExit(3);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 42);
    CHECK_OK(AMX_SPMDBarrier());
    printf("worker %d has a child that refuses\n", me);
}

int main(int argc, char **argv)
{
    const char *what;
    AMX_VerboseErrors = getenv("VERBOSE") != NULL;
    if (getenv("SEND_TIMEOUT")) {
        CHECK_OK(AMX_SetSendTimeout((uint32_t)atoi(getenv("SEND_TIMEOUT"))));
    }
    if (getenv("NEVER") && getenv("RANK") && strcmp(getenv("NEVER"), getenv("RANK")) == 0) {
        pause();
    }
    CHECK(AMX_SPMDNumProcs() == 0 && AMX_SPMDMyProc() == -1);
    CHECK_CODE(AMX_SPMDBarrier(), AM_ERR_NOT_INIT);
    if (AMX_SPMDStartup(&argc, &argv, 0, &job, &bundle, &endpoint) != AM_OK) {
        return 9;
    }
    me = AMX_SPMDMyProc();
    workers = AMX_SPMDNumProcs();
    CHECK(argc > 1);
    what = argv[1];
    CHECK_OK(AM_SetHandler(endpoint, 0, returned));
    CHECK_OK(AM_SetHandler(endpoint, NOTE, note));
    CHECK_OK(AM_SetHandler(endpoint, ECHO, echo));
    CHECK_OK(AM_SetHandler(endpoint, BACK, back));
    if (strcmp(what, "walk") == 0) {
        walk();
    } else if (strcmp(what, "barriers") == 0) {
        barriers();
    } else if (strcmp(what, "leave") == 0) {
        leave(atoi(argv[2]));
    } else if (strcmp(what, "own_handler") == 0) {
        own_handler();
    } else if (strcmp(what, "handler") == 0) {
        CHECK_OK(AM_SetHandler(endpoint, NOTE, in_handler));
        CHECK_OK(AMX_SPMDBarrier());
        if (me == 1) {
            CHECK_OK(AM_Request1(endpoint, 0, NOTE, 5));
        }
        POLL_UNTIL(bundle, 0);
    } else if (strcmp(what, "busy") == 0) {
        CHECK_OK(AMX_SPMDBarrier());
        if (me == 1) {
            AMX_SPMDExit(atoi(argv[2]));
        }
        for (;;) {
            pause();
        }
    } else if (strcmp(what, "die") == 0) {
        CHECK_OK(AMX_SPMDBarrier());
        if (me == 1) {
            raise(SIGKILL);
        }
        POLL_UNTIL(bundle, 0);
    } else if (strcmp(what, "late") == 0) {
        CHECK_OK(AMX_SPMDBarrier());
        if (me == 1) {
            AMX_SPMDExit(0);
        }
        raise(SIGKILL);
    } else if (strcmp(what, "wait") == 0) {
        CHECK_OK(AMX_SPMDBarrier());
        printf("%d\n", (int)getpid());
        fflush(stdout);
        CHECK_OK(AM_SetEventMask(bundle, AM_NOTEMPTY));
        CHECK_OK(AM_WaitSema(bundle));
    } else if (strcmp(what, "outlive") == 0) {
        outlive();
    } else if (strcmp(what, "terminated") == 0) {
        terminated();
    } else if (strcmp(what, "early") == 0) {
        early();
    } else if (strcmp(what, "children") == 0) {
        children();
    } else {
        CHECK(!"a known name");
    }
    fflush(stdout);
    CHECK_OK(AMX_SPMDBarrier());
    AMX_SPMDExit(0);
    return 1;
}
