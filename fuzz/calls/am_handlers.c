/* libam: handlers, and what an endpoint has beside them. */

#include "am_calls.h"

/* Sometimes one that is not set. One of another kind would read arguments that it has not got. */
handler_t a_handler(handler_t good) {
    handler_t any = (handler_t)draw();

    return one_in(60) && any > PROBE ? any : good;
}

int some_count(void) {
    if (NOW)
        return one_in(2) ? 4 : 8;
    return one_in(200) ? 17 + (int)below(9) : (int)below(17);
}

const int32_t arguments[32] = {1, 2, 3, 4};

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

void set_handlers(endpoint_t endpoint) {
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
                   uint32_t *values) {
    (void)category, (void)is_request, (void)handler, (void)token, (void)values;
    look_at(buffer, buffer ? bytes : 0);
    sum += (unsigned)count;
}

static void after(amx_category_t category, int is_request) {
    sum += (unsigned)category + (unsigned)is_request;
}
#endif

void others(void) {
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
