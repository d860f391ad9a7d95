/*
 * Random calls of libam in one of its three dialects: amudp.h, ammpi.h (both with the calls of
 * parallel programs) or am.h.
 *
 * Not called, by the contract: SPMDExit, which ends the process; a bundle by two threads; waits for
 * a message that may not come (the mask is set, and a request to the own endpoint is under way);
 * memory of a segment that is unmapped.
 */

#include "am_calls.h"

eb_t bundles[BUNDLES];
endpoint_t endpoints[PLACES];
unsigned bundle_of[PLACES];
unsigned char segments[PLACES][BYTES], payload[BYTES];
unsigned long sum;
int32_t arrived;
unsigned returned;
uint32_t timeout = PATIENT;
int is_patient[PLACES];
static int depth;

eb_t a_bundle(void) {
    return one_in(200) ? NULL : bundles[below(BUNDLES)];
}

endpoint_t an_endpoint(void) {
    return one_in(200) ? NULL : endpoints[below(PLACES)];
}

int an_index(void) {
    return one_in(100) ? (int)draw() : (int)below(TABLE);
}

static void free_endpoint(unsigned at) {
    memset(board->entries[process][at], 0, ENTRY_BYTES);
    AM(FreeEndpoint, endpoints[at]);
}

static void allocate_endpoint(void) {
    unsigned at = below(PLACES), index;
    endpoint_t endpoint = NULL;
    int code;
#if NOW
    en_t *given = NULL, name;
#else
    en_t name;
#endif

    free_endpoint(at);
    bundle_of[at] = below(BUNDLES);
#if NOW
    code = AM(AllocateEndpoint, bundles[bundle_of[at]], &endpoint, &given);
    if (code == AM_OK)
        name = *given;
#else
    code = AM(AllocateEndpoint, bundles[bundle_of[at]], &endpoint, one_in(300) ? NULL : &name);
#endif
    if (code != AM_OK)
        return;
    /* A stale handle stays until its cell is of another endpoint. */
    for (index = 0; index < PLACES; index++)
        if (endpoints[index] == endpoint)
            endpoints[index] = NULL;
    endpoints[at] = endpoint;
    is_patient[at] = timeout == PATIENT;
    publish(at, &name);
    AM(SetTag, endpoint, AM_ALL);
    AM(SetSeg, endpoint, segments[at], BYTES);
    set_handlers(endpoint);
    AM(SetNumTranslations, endpoint, TABLE);
#if NOW
    AM(Map, endpoint, 0, &name, AM_ALL - 1);
#else
    AM(Map, endpoint, 0, name, AM_ALL - 1);
#endif
    for (index = 1; index < TABLE; index++)
        map(endpoint, (int)index);
}

static void allocate_bundle(void) {
    unsigned at = below(BUNDLES), of;
    eb_t bundle = NULL;

    if (bundles[at]) {
        AM(FreeBundle, bundles[at]);
        for (of = 0; of < PLACES; of++)
            if (bundle_of[of] == at)
                memset(board->entries[process][of], 0, ENTRY_BYTES);
    }
    if (AM(AllocateBundle, one_in(20) ? AM_PAR : AM_SEQ, one_in(300) ? NULL : &bundle) == AM_OK) {
        if (bundles[!at] == bundle)
            bundles[!at] = NULL;
        bundles[at] = bundle;
    }
    for (of = 0; of < PLACES; of++)
        allocate_endpoint();
}

static void initialize(void) {
    if (AM(Init) == AM_OK)
        depth++;
}

static void begin(void) {
    unsigned at;

    initialize();
    for (at = 0; at < 2 * BUNDLES; at++)
        allocate_bundle();
}

static void terminate(void) {
    if (!one_in(4)) {
        allocate_bundle();
        return;
    }
    while (depth-- > 0)
        AM(Terminate);
    depth = 0;
    if (one_in(2)) {
        request();
        poll_bundles();
        AM(Terminate);
    }
    begin();
}

static void as_child(void) {
    unsigned at;

    for (at = 0; at < 5; at++) {
        request();
        ask_map();
    }
}

static void fork_child(void) {
    in_fork(as_child);
}

const struct operation operations[] = {
    {request, 160},       {poll_bundles, 80}, {change_map, 10}, {ask_map, 20}, {others, 12}, {wait_for_event, 20},
    {allocate_endpoint, 1}, {terminate, 1},   {initialize, 1},  {fork_child, 1},
#if !NOW
    {job, 2},
#endif
    {NULL, 0},
};

#if !NOW
static const char jobs[] = "one rank is the job; the two processes are no ranks";
#endif

const struct left_out left_out[] = {
#if !NOW
    {AT_SPMDExit, "", 0, "it ends the process"},
    {AT_SPMDIsWorker, NULL, 1, jobs},
    {AT_SPMDNumProcs, NULL, 1, jobs},
    {AT_SPMDMyProc, NULL, 1, jobs},
    {AT_SPMDBarrier, NULL, 1, jobs},
    {AT_SPMDAllGather, NULL, 1, jobs},
    {AT_SPMDBroadcast, NULL, 1, jobs},
    {AT_SPMDgetenvMaster, NULL, 1, jobs},
    {AT_SPMDSetExitCallback, NULL, 1, jobs},
    {AT_SPMDStartup, NULL, 1, jobs},
#ifdef DIALECT_AMUDP
    {AT_SPMDSetProc, NULL, 1, jobs},
    {AT_SPMDHandleControlTraffic, NULL, 1, jobs},
    {AT_check_env_prefix, NULL, 1, jobs},
#else
    {AT_SPMDSetThreadMode, NULL, 1, jobs},
#endif
#endif
    {0, NULL, 0, NULL},
};

void set_up(void) {
#if !NOW
    unsigned at;

    /* The first end of the library ends the job. */
    if (processes == 1)
        start_job();
    for (at = 0; at < 20 && processes == 1; at++)
        job();
    AM(SetSendTimeout, timeout);
#endif
    begin();
}

void tear_down(void) {
    while (depth-- > 0)
        AM(Terminate);
}
