/*
 * Random calls of libam in one of its three dialects: amudp.h, ammpi.h (both with the calls of
 * parallel programs) or am.h.
 *
 * Not called, by the contract: SPMDExit, which ends the process; a bundle by two threads; waits for
 * a message that may not come (the mask is set, and a request to the own endpoint is under way);
 * memory of a segment that is unmapped.
 */

#include "calls.h"

#if defined(DIALECT_AMUDP)
#include <amudp_spmd.h>
#elif defined(DIALECT_AMMPI)
#include <ammpi_spmd.h>
#else
#include <am.h>
#endif

#ifdef DIALECT_AM
#define NOW 1
#define NAME(name) AMNOW_##name
typedef ea_t endpoint_t;
#else
#define NOW 0
#define NAME(name) AMX_NAME(name)
typedef ep_t endpoint_t;
#endif

/* Makes the call of this dialect. */
#define AM(name, ...) CALL_GOOD(name, result_ == AM_OK, NAME(name)(__VA_ARGS__))

#define BUNDLES 2
#define PLACES 4
#define TABLE 8
#define BYTES 65536u

static eb_t bundles[BUNDLES];
static endpoint_t endpoints[PLACES];
static unsigned bundle_of[PLACES];
static unsigned char segments[PLACES][BYTES], payload[BYTES];
static unsigned long sum;
/* Probes that were sent, the last that has arrived, and messages that have come back. */
static int32_t probe, arrived;
static unsigned returned;
static int depth;
/*
 * The send timeout, which an endpoint has from its allocation. A short one breaks connections of
 * this thread while it does not poll, so that a message which was sent need not arrive.
 */
#define PATIENT 30000u
static uint32_t timeout = PATIENT;
static int is_patient[PLACES];

static eb_t a_bundle(void) {
    return one_in(200) ? NULL : bundles[below(BUNDLES)];
}

static endpoint_t an_endpoint(void) {
    return one_in(200) ? NULL : endpoints[below(PLACES)];
}

static int an_index(void) {
    return one_in(100) ? (int)draw() : (int)below(TABLE);
}

/* Handlers 1 to 6 are of the three kinds. Handler 7 is of probes only. */
enum { SHORT_REQUEST = 1, MEDIUM_REQUEST, LONG_REQUEST, SHORT_REPLY, MEDIUM_REPLY, LONG_REPLY, PROBE, HANDLERS };

/* Sometimes one that is not set. One of another kind would read arguments that it has not got. */
static handler_t a_handler(handler_t good) {
    handler_t any = (handler_t)draw();

    return one_in(60) && any > PROBE ? any : good;
}

static int some_count(void) {
    if (NOW)
        return one_in(2) ? 4 : 8;
    return one_in(200) ? 17 + (int)below(9) : (int)below(17);
}

static const int32_t arguments[32] = {1, 2, 3, 4};

/* What a handler may ask of its token. */
static void ask_token(void *token) {
    endpoint_t endpoint;
    tag_t tag;
#if NOW
    en_t *name;

    AM(GetSourceEndpoint, token, &name);
#else
    en_t name;
    int number, is_request;
    handler_t handler;
    amx_category_t category;

    AM(GetSourceEndpoint, token, &name);
    AM(GetSourceId, token, &number);
    AM(GetTokenInfo, token, &handler, &category, one_in(50) ? NULL : &is_request);
#endif
    AM(GetDestEndpoint, token, one_in(50) ? NULL : &endpoint);
    AM(GetMsgTag, token, &tag);
}

/* A request handler replies once, or not, or twice, which is refused. */
static void reply(void *token) {
    unsigned times = one_in(50) ? 2 : 1;
    uint32_t length = length_to(4000);

    if (one_in(4))
        ask_token(token);
    while (times-- > 0) {
        switch (below(5)) {
        case 0:
            AM(ReplyI, token, a_handler(MEDIUM_REPLY), payload, length, some_count(), arguments);
            break;
        case 1:
            AM(ReplyXfer, token, one_in(50) ? draw() : length_to(1000), a_handler(LONG_REPLY), payload, length, some_count(),
               arguments);
            break;
        case 2:
            break;
        default:
            AM(Reply, token, a_handler(SHORT_REPLY), some_count(), arguments);
        }
    }
    /* In a handler these are refused. */
    if (one_in(50))
        AM(Poll, a_bundle());
    if (one_in(50))
        AM(SetTag, an_endpoint(), AM_ALL);
}

static void look_at(const void *buffer, size_t bytes) {
    size_t at;

    for (at = 0; at < bytes; at++)
        sum += ((const unsigned char *)buffer)[at];
}

static void on_short(void *token) {
    reply(token);
}

static void on_bytes(void *token, void *buffer, size_t bytes) {
    look_at(buffer, bytes);
    reply(token);
}

static void on_short_reply(void *token) {
    if (one_in(10))
        ask_token(token);
    if (one_in(100))
        AM(Reply, token, SHORT_REPLY, 0, arguments);
}

static void on_reply_bytes(void *token, void *buffer, size_t bytes) {
    look_at(buffer, bytes);
    if (one_in(10))
        ask_token(token);
}

/* What a wait is for: no other message is taken for it. */
static void on_probe(void *token, int32_t number, int32_t second, int32_t third, int32_t fourth) {
    (void)token, (void)second, (void)third, (void)fourth;
    arrived = number;
}

static void on_return(int status, op_t operation, void *block) {
    (void)operation;
    returned++;
    sum += (unsigned)status + (unsigned)*(int32_t *)block;
}

static void request(void) {
    endpoint_t endpoint = an_endpoint();
    int target = an_index();
    uint32_t length = one_in(300) ? 65001 + below(9) : length_to(4000);

    if (length > BYTES)
        length = BYTES;
    switch (below(5)) {
    case 0:
        AM(RequestI, endpoint, target, a_handler(MEDIUM_REQUEST), one_in(300) ? NULL : payload, length, some_count(), arguments);
        break;
    case 1:
        AM(RequestXfer, endpoint, target, one_in(50) ? draw() : length_to(1000), a_handler(LONG_REQUEST), payload, length,
           (int)below(2), some_count(), arguments);
        break;
    case 2:
        AM(GetXfer, endpoint, target, one_in(50) ? draw() : length_to(1000), a_handler(LONG_REPLY), length_to(1000), length,
           (int)below(2), some_count(), arguments);
        break;
    default:
        AM(Request, endpoint, target, a_handler(SHORT_REQUEST), some_count(), arguments);
    }
}

static void poll_bundles(void) {
    unsigned at;

    for (at = 0; at < BUNDLES; at++)
        AM(Poll, bundles[at]);
    AM(Poll, a_bundle());
}

static void publish(unsigned at, const en_t *name) {
    memcpy(board->entries[process][at], name, sizeof *name);
}

static en_t a_name(void) {
    int of = NOW && processes == 2 && one_in(2) ? !process : process;
    en_t name;

    memcpy(&name, board->entries[of][below(PLACES)], sizeof name);
    if (one_in(60))
        ((unsigned char *)&name)[below(sizeof name < 16 ? sizeof name : 16)] ^= (unsigned char)draw();
    return name;
}

static void map(endpoint_t endpoint, int at) {
    en_t name = a_name();
    tag_t tag = one_in(30) ? draw() : AM_ALL - 1;
    int any;

#if NOW
    if (one_in(8))
        AM(MapAny, endpoint, &any, one_in(100) ? NULL : &name, tag);
    else
        AM(Map, endpoint, at, one_in(100) ? NULL : &name, tag);
#else
    if (one_in(8))
        AM(MapAny, endpoint, &any, name, tag);
    else
        AM(Map, endpoint, at, name, tag);
#endif
}

static void change_map(void) {
    endpoint_t endpoint = an_endpoint();
    int at = an_index(), count;

    switch (below(6)) {
    case 0:
        AM(UnMap, endpoint, at);
        break;
    case 1:
        AM(SetNumTranslations, endpoint, one_in(20) ? (int)draw() % 4096 : TABLE + (int)below(8));
        break;
    case 2:
        AM(SetExpectedResources, endpoint, (int)below(9), (int)below(9));
        break;
    case 3:
        AM(GetNumTranslations, endpoint, one_in(100) ? NULL : &count);
        break;
    default:
        AM(UnMap, endpoint, at);
        map(endpoint, at);
    }
}

static void ask_map(void) {
    endpoint_t endpoint = an_endpoint();
    int at = an_index(), count;
    tag_t tag;
    uintptr_t bytes;
#if NOW
    en_t *name;
#else
    en_t name = a_name();
#endif

    AM(GetTranslationInuse, endpoint, at);
    AM(GetTranslationTag, endpoint, at, one_in(100) ? NULL : &tag);
    AM(GetTranslationName, endpoint, at, &name);
    AM(MaxNumTranslations, &count);
    AM(MaxSegLength, &bytes);
#if !NOW
    CALL_GOOD(enEqual, result_ != 0, NAME(enEqual)(name, name));
    if (one_in(4))
        AM(SetTranslationTag, endpoint, at, AM_ALL - 1);
#endif
}

static void set_handlers(endpoint_t endpoint) {
    static void (*const functions[])(void) = {
        (void (*)(void))on_return,      (void (*)(void))on_short,       (void (*)(void))on_bytes,
        (void (*)(void))on_bytes,       (void (*)(void))on_short_reply, (void (*)(void))on_reply_bytes,
        (void (*)(void))on_reply_bytes, (void (*)(void))on_probe,
    };
    handler_t at, any;
    int count;

    for (at = 0; at < HANDLERS; at++)
        AM(SetHandler, endpoint, at, functions[at]);
    if (one_in(4))
        AM(SetHandlerAny, endpoint, &any, functions[1]);
    AM(GetNumHandlers, endpoint, one_in(100) ? NULL : &count);
    if (one_in(10))
        AM(SetNumHandlers, endpoint, 7 + (int)below(250));
}

#if !NOW
static void before(amx_category_t category, int is_request, int handler, void *token, void *buffer, size_t bytes, int count,
                   const int32_t *values) {
    (void)category, (void)is_request, (void)handler, (void)token, (void)values;
    look_at(buffer, buffer ? bytes : 0);
    sum += (unsigned)count;
}

static void after(amx_category_t category, int is_request) {
    sum += (unsigned)category + (unsigned)is_request;
}
#endif

static void others(void) {
    unsigned at = below(PLACES), to = below(BUNDLES);
    endpoint_t endpoint = endpoints[at];
    void *start;
    uintptr_t bytes;
    tag_t tag;

    switch (below(5)) {
    case 0:
        AM(SetSeg, endpoint, segments[at], one_in(50) ? 0 : BYTES - below(2) * 4096);
        AM(GetSeg, endpoint, &start, one_in(100) ? NULL : &bytes);
        break;
    case 1:
        AM(SetTag, endpoint, one_in(8) ? draw() : AM_ALL);
        AM(GetTag, endpoint, &tag);
        break;
    case 2:
        if (AM(MoveEndpoint, endpoint, bundles[bundle_of[at]], bundles[to]) == AM_OK)
            bundle_of[at] = to;
        break;
    case 3:
        set_handlers(endpoint);
        break;
    default: {
#if !NOW
        amx_stats_t stats, all = NAME(initial_stats);
        uint32_t limit = one_in(20) ? below(8) : one_in(4) ? 10 + below(40) : PATIENT;

        AM(SetHandlerCallbacks, endpoint, one_in(2) ? before : NULL, one_in(2) ? after : NULL);
        if (AM(GetEndpointStatistics, endpoint, one_in(100) ? NULL : &stats) == AM_OK)
            AM(AggregateStatistics, &all, &stats);
        AM(ResetEndpointStatistics, endpoint);
        if (AM(SetSendTimeout, limit) == AM_OK)
            timeout = limit;
#endif
    }
    }
}

static void set_mask(eb_t bundle) {
    int mask = 0;

#if NOW
    CALL_GOOD(GetEventMask, result_ == AM_NOTEMPTY, NAME(GetEventMask)(bundle));
#else
    AM(GetEventMask, bundle, &mask);
#endif
    AM(SetEventMask, bundle, one_in(20) ? (int)draw() : AM_NOTEMPTY);
    sum += (unsigned)mask;
}

static int wait_at(eb_t bundle) {
#if NOW
    return AM(Wait, bundle);
#else
    return AM(WaitSema, bundle);
#endif
}

/* Sends a request that only a probe's handler takes. */
static int send_probe(unsigned from) {
    const int32_t words[4] = {++probe, 0, 0, 0};

    return AM(Request, endpoints[from], TABLE - 1, PROBE, 4, words) == AM_OK;
}

/* Maps an endpoint of another bundle, and sends it a probe that arrives: both are connected. */
static int connect_bundles(unsigned from, unsigned to) {
    unsigned tries;
    en_t name;

    memcpy(&name, board->entries[process][to], sizeof name);
    AM(UnMap, endpoints[from], TABLE - 1);
#if NOW
    if (AM(Map, endpoints[from], TABLE - 1, &name, AM_ALL - 1) != AM_OK)
#else
    if (AM(Map, endpoints[from], TABLE - 1, name, AM_ALL - 1) != AM_OK)
#endif
        return 0;
    if (!send_probe(from))
        return 0;
    for (tries = 0; tries < 500 && arrived != probe; tries++)
        poll_bundles();
    return arrived == probe;
}

/* A request from another bundle is under way, so that the wait ends. */
static void wait_for_event(void) {
    unsigned from = below(PLACES), to = below(PLACES), before;
    eb_t bundle = bundles[bundle_of[to]];

    set_mask(bundle);
    if (one_in(4)) {
        AM(SetEventMask, bundle, AM_NOEVENTS);
        wait_at(bundle);
        return;
    }
    if (bundle_of[from] == bundle_of[to] || !is_patient[from] || !is_patient[to] || AM(SetEventMask, bundle, AM_NOTEMPTY) != AM_OK || !connect_bundles(from, to))
        return;
    /* The next one goes the same way, unless it comes back or arrives within the call. */
    before = returned;
    if (send_probe(from) && arrived != probe && returned == before)
        wait_at(bundle);
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

#if !NOW
static eb_t own_bundle;
static endpoint_t own_endpoint;

static void on_exit_of(int status) {
    (void)status;
}

/* The parallel program of one worker. */
static void start_job(void) {
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

static void job(void) {
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

        AM(SPMDSetProc, 0);
        AM(SPMDHandleControlTraffic, &count);
    }
#else
    CALL_GOOD(SPMDSetThreadMode, result_ == 1, NAME(SPMDSetThreadMode)(1, &text, NULL, NULL));
#endif
}
#endif

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
