/*
 * Active Messages II, call by call: types and limits, life, segment, tag, translations, handlers,
 * events, tokens, requests and replies with 0 to 16 arguments, and each status of handler 0.
 */

#ifdef WITH_AMMPI
#include <ammpi.h>
#else
#include <amudp.h>
#endif

#include <pthread.h>

#include "check.h"

enum { ECHO = 1, BACK, ECHO_I, BACK_I, ECHO_X, BACK_X, TWICE, NESTED, KEEPS, TO_NOBODY, SILENT, FIRST_FREE };

static ep_t client, server;
static en_t client_name, server_name;
static eb_t bundle;
static int32_t got[16];
static int got_count;
static char got_bytes[AMX_MAX_MEDIUM];
static size_t got_length;
static int replies, requests, returns;
static int last_status, last_operation;
static int32_t last_argument;
static void *kept;
static uint64_t server_segment[16384], client_segment[16384];

/* Takes 16 arguments however many came; those that came are checked. */
#define TAKE_16                                                                                                        \
    int32_t a0, int32_t a1, int32_t a2, int32_t a3, int32_t a4, int32_t a5, int32_t a6, int32_t a7, int32_t a8,        \
        int32_t a9, int32_t a10, int32_t a11, int32_t a12, int32_t a13, int32_t a14, int32_t a15
#define GIVE_16 a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15

static void note(int count, const int32_t *arguments, const void *bytes, size_t length)
{
    got_count = count;
    memcpy(got, arguments, (size_t)count * 4);
    got_length = length;
    if (bytes) {
        memcpy(got_bytes, bytes, length);
    }
}

/* Handlers of each sort with each number of arguments. */
#define HANDLERS(M)                                                                                                    \
    static void echo##M(void *token AMX_P##M)                                                                          \
    {                                                                                                                  \
        const int32_t a[] = {AMX_V##M};                                                                                \
        requests++;                                                                                                    \
        CHECK_OK(AMX_NAME(Reply)(token, BACK, M, a));                                                                  \
    }                                                                                                                  \
    static void back##M(void *token AMX_P##M)                                                                          \
    {                                                                                                                  \
        const int32_t a[] = {AMX_V##M};                                                                                \
        CHECK_CODE(AM_Reply0(token, BACK), AM_ERR_RESOURCE);                                                           \
        replies++;                                                                                                     \
        note(M, a, NULL, 0);                                                                                           \
    }                                                                                                                  \
    static void echo_i##M(void *token, void *bytes, size_t length AMX_P##M)                                            \
    {                                                                                                                  \
        const int32_t a[] = {AMX_V##M};                                                                                \
        CHECK((uintptr_t)bytes % 8 == 0);                                                                              \
        requests++;                                                                                                    \
        CHECK_OK(AMX_NAME(ReplyI)(token, BACK_I, bytes, length, M, a));                                                \
    }                                                                                                                  \
    static void back_i##M(void *token, void *bytes, size_t length AMX_P##M)                                            \
    {                                                                                                                  \
        const int32_t a[] = {AMX_V##M};                                                                                \
        (void)token;                                                                                                   \
        replies++;                                                                                                     \
        note(M, a, bytes, length);                                                                                     \
    }                                                                                                                  \
    static void echo_x##M(void *token, void *bytes, size_t length AMX_P##M)                                            \
    {                                                                                                                  \
        const int32_t a[] = {AMX_V##M};                                                                                \
        CHECK((char *)bytes == (char *)server_segment + 64);                                                           \
        requests++;                                                                                                    \
        CHECK_OK(AMX_NAME(ReplyXfer)(token, 128, BACK_X, bytes, length, M, a));                                        \
    }                                                                                                                  \
    static void back_x##M(void *token, void *bytes, size_t length AMX_P##M)                                            \
    {                                                                                                                  \
        const int32_t a[] = {AMX_V##M};                                                                                \
        (void)token;                                                                                                   \
        CHECK((char *)bytes == (char *)client_segment + 128);                                                          \
        replies++;                                                                                                     \
        note(M, a, bytes, length);                                                                                     \
    }                                                                                                                  \
    static void set_handlers##M(void)                                                                                  \
    {                                                                                                                  \
        CHECK_OK(AM_SetHandler(server, ECHO, echo##M));                                                                \
        CHECK_OK(AM_SetHandler(client, BACK, back##M));                                                                \
        CHECK_OK(AM_SetHandler(server, ECHO_I, echo_i##M));                                                            \
        CHECK_OK(AM_SetHandler(client, BACK_I, back_i##M));                                                            \
        CHECK_OK(AM_SetHandler(server, ECHO_X, echo_x##M));                                                            \
        CHECK_OK(AM_SetHandler(client, BACK_X, back_x##M));                                                            \
    }

HANDLERS(0)
HANDLERS(1)
HANDLERS(2)
HANDLERS(3)
HANDLERS(4)
HANDLERS(5)
HANDLERS(6)
HANDLERS(7)
HANDLERS(8)
HANDLERS(9)
HANDLERS(10)
HANDLERS(11)
HANDLERS(12)
HANDLERS(13)
HANDLERS(14)
HANDLERS(15)
HANDLERS(16)

#define NUMBERS_0
#define NUMBERS_1 , 101
#define NUMBERS_2 NUMBERS_1, -102
#define NUMBERS_3 NUMBERS_2, 103
#define NUMBERS_4 NUMBERS_3, -104
#define NUMBERS_5 NUMBERS_4, 105
#define NUMBERS_6 NUMBERS_5, -106
#define NUMBERS_7 NUMBERS_6, 107
#define NUMBERS_8 NUMBERS_7, -108
#define NUMBERS_9 NUMBERS_8, 109
#define NUMBERS_10 NUMBERS_9, -110
#define NUMBERS_11 NUMBERS_10, 111
#define NUMBERS_12 NUMBERS_11, -112
#define NUMBERS_13 NUMBERS_12, 113
#define NUMBERS_14 NUMBERS_13, -114
#define NUMBERS_15 NUMBERS_14, 115
#define NUMBERS_16 NUMBERS_15, -116

static void came_back(int count, const void *bytes, size_t length)
{
    int at;
    CHECK(got_count == count && got_length == length);
    for (at = 0; at < count; at++) {
        CHECK(got[at] == (at % 2 ? -102 - at + 1 : 101 + at));
    }
    CHECK(memcmp(got_bytes, bytes, length) == 0);
}

/* Each sort there and back, with M arguments. */
#define ROUND(M)                                                                                                       \
    do {                                                                                                               \
        static const char text[] = "some bytes that go there and back";                                                \
        int before = replies;                                                                                          \
        set_handlers##M();                                                                                             \
        CHECK_OK(AM_Request##M(client, 5, ECHO NUMBERS_##M));                                                          \
        POLL_UNTIL(bundle, replies == before + 1);                                                                     \
        came_back(M, "", 0);                                                                                           \
        CHECK_OK(AM_RequestI##M(client, 5, ECHO_I, text, sizeof(text) NUMBERS_##M));                                   \
        POLL_UNTIL(bundle, replies == before + 2);                                                                     \
        came_back(M, text, sizeof(text));                                                                              \
        CHECK_OK(AM_RequestI##M(client, 5, ECHO_I, NULL, 0 NUMBERS_##M));                                              \
        POLL_UNTIL(bundle, replies == before + 3);                                                                     \
        came_back(M, "", 0);                                                                                           \
        CHECK_OK(AM_RequestXfer##M(client, 5, 64, ECHO_X, text, sizeof(text) NUMBERS_##M));                            \
        POLL_UNTIL(bundle, replies == before + 4);                                                                     \
        came_back(M, text, sizeof(text));                                                                              \
        while (AM_RequestXferAsync##M(client, 5, 64, ECHO_X, text, 5 NUMBERS_##M) == AM_ERR_NOT_SENT) {                \
        }                                                                                                              \
        POLL_UNTIL(bundle, replies == before + 5);                                                                     \
        came_back(M, text, 5);                                                                                         \
        memset((char *)client_segment + 128, 0, 64);                                                                   \
        CHECK_OK(AM_GetXfer##M(client, 5, 64, BACK_X, 128, sizeof(text) NUMBERS_##M));                                 \
        POLL_UNTIL(bundle, replies == before + 6);                                                                     \
        came_back(M, text, sizeof(text));                                                                              \
    } while (0)

static void returned(int status, op_t operation, void *argblock)
{
    handler_t handler;
    amx_category_t category;
    int is_request;
    returns++;
    last_status = status;
    last_operation = operation;
    last_argument = ((amx_argblock_t *)argblock)->arguments[0];
    CHECK_CODE(AM_Reply0(argblock, BACK), AM_ERR_RESOURCE);
    CHECK_OK(AMX_GetTokenInfo(argblock, &handler, &category, &is_request));
    CHECK((int)category == (operation - 1) % 3 && !is_request);
}

/* Messages that came back and were expected to. */
static int seen;

static void expect_returned(int status, int operation)
{
    POLL_UNTIL(bundle, returns > seen);
    seen = returns;
    if (last_status != status || last_operation != operation) {
        fprintf(stderr, "handler 0 got status %d and operation %d, not %d and %d\n", last_status, last_operation,
                status, operation);
        exit(1);
    }
}

static void twice(void *token)
{
    CHECK_OK(AM_Reply0(token, BACK));
    CHECK_CODE(AM_Reply0(token, BACK), AM_ERR_RESOURCE);
    requests++;
}

/* What no handler may do, and the calls that only read. */
static void nested(void *token)
{
    en_t name;
    ep_t endpoint;
    tag_t tag;
    handler_t handler;
    amx_category_t category;
    int number;
    CHECK_CODE(AM_Request0(server, 0, ECHO), AM_ERR_RESOURCE);
    CHECK_CODE(AM_Poll(bundle), AM_ERR_RESOURCE);
    CHECK_CODE(AM_WaitSema(bundle), AM_ERR_RESOURCE);
    CHECK_CODE(AM_FreeEndpoint(client), AM_ERR_RESOURCE);
    CHECK_CODE(AM_FreeBundle(bundle), AM_ERR_RESOURCE);
    CHECK_CODE(AM_Terminate(), AM_ERR_RESOURCE);
    CHECK_CODE(AM_SetTag(server, 1), AM_ERR_RESOURCE);
    CHECK_CODE(AM_SetSeg(server, NULL, 0), AM_ERR_RESOURCE);
    CHECK_CODE(AM_Map(server, 0, client_name, AM_ALL), AM_ERR_RESOURCE);
    CHECK_OK(AM_GetSourceEndpoint(token, &name));
    CHECK(AMX_enEqual(name, client_name) && !AMX_enEqual(name, server_name));
    CHECK_OK(AM_GetDestEndpoint(token, &endpoint));
    CHECK(endpoint == server);
    CHECK_OK(AM_GetMsgTag(token, &tag));
    CHECK(tag == 77);
    CHECK_OK(AMX_GetTokenInfo(token, &handler, &category, &number));
    CHECK(handler == NESTED && category == amx_Short && number == 1);
    CHECK_CODE(AMX_GetSourceId(token, &number), AM_ERR_RESOURCE);
    requests++;
}

static void keeps(void *token)
{
    kept = token;
    requests++;
}

static void to_nobody(void *token)
{
    CHECK_OK(AM_Reply1(token, 200, 55));
}

static void silent(void *token)
{
    (void)token;
    requests++;
}

static void life(void)
{
    eb_t bundles[AMX_MAX_BUNDLES], more;
    ep_t endpoint;
    en_t name;
    int at;
    CHECK_CODE(AM_AllocateBundle(AM_SEQ, &more), AM_ERR_NOT_INIT);
    CHECK_CODE(AM_Terminate(), AM_ERR_NOT_INIT);
    CHECK_OK(AM_Init());
    CHECK_CODE(AM_AllocateBundle(AM_PAR, &more), AM_ERR_RESOURCE);
    CHECK_CODE(AM_AllocateBundle(2, &more), AM_ERR_BAD_ARG);
    CHECK_CODE(AM_AllocateBundle(AM_SEQ, NULL), AM_ERR_BAD_ARG);
    for (at = 0; at < AMX_MAX_BUNDLES; at++) {
        CHECK_OK(AM_AllocateBundle(AM_SEQ, &bundles[at]));
    }
    CHECK_CODE(AM_AllocateBundle(AM_SEQ, &more), AM_ERR_RESOURCE);
    for (at = 1; at < AMX_MAX_BUNDLES; at++) {
        CHECK_OK(AM_FreeBundle(bundles[at]));
        CHECK_CODE(AM_FreeBundle(bundles[at]), AM_ERR_BAD_ARG);
    }
    bundle = bundles[0];
    CHECK_CODE(AMX_SetSendTimeout(7), AM_ERR_BAD_ARG);
    CHECK_OK(AMX_SetSendTimeout(4000));
    CHECK_CODE(AM_AllocateEndpoint(NULL, &endpoint, &name), AM_ERR_BAD_ARG);
    CHECK_CODE(AM_AllocateEndpoint(bundle, NULL, &name), AM_ERR_BAD_ARG);
    CHECK_OK(AM_AllocateEndpoint(bundle, &client, &client_name));
    CHECK_OK(AM_AllocateEndpoint(bundle, &server, &server_name));
    CHECK(!AMX_enEqual(client_name, server_name) && AMX_enEqual(client_name, client_name));
    CHECK_CODE(AM_FreeEndpoint((ep_t)bundle), AM_ERR_BAD_ARG);
    CHECK_OK(AM_AllocateBundle(AM_SEQ, &more));
    CHECK_CODE(AM_MoveEndpoint(server, more, bundle), AM_ERR_BAD_ARG);
    CHECK_OK(AM_MoveEndpoint(server, bundle, more));
    CHECK_OK(AM_MoveEndpoint(server, more, bundle));
    CHECK_OK(AM_AllocateEndpoint(more, &endpoint, &name));
    CHECK_OK(AM_FreeEndpoint(endpoint));
    CHECK_CODE(AM_FreeEndpoint(endpoint), AM_ERR_BAD_ARG);
    CHECK_CODE(AM_SetTag(endpoint, 1), AM_ERR_BAD_ARG);
}

static void tables(void)
{
    tag_t tag;
    en_t name, invented = client_name;
    void *start;
    uintptr_t bytes;
    int number;
    handler_t handler;
    CHECK(AM_MaxShort() >= 8 && AM_MaxMedium() >= 512 && AM_MaxLong() >= 512 && AM_MaxNumHandlers() == 256);
    CHECK_OK(AM_GetTag(server, &tag));
    CHECK(tag == AM_NONE);
    CHECK_OK(AM_SetTag(server, 77));
    CHECK_OK(AM_GetTag(server, &tag));
    CHECK(tag == 77);
    CHECK_OK(AM_MaxSegLength(&bytes));
    CHECK(bytes == AMX_MAX_SEGLENGTH);
    CHECK_CODE(AM_SetSeg(server, NULL, 8), AM_ERR_BAD_ARG);
    CHECK_OK(AM_SetSeg(server, server_segment, sizeof(server_segment)));
    CHECK_OK(AM_GetSeg(server, &start, &bytes));
    CHECK(start == (void *)server_segment && bytes == sizeof(server_segment));
    CHECK_CODE(AM_SetSeg(server, NULL, AMX_MAX_SEGLENGTH - 1), AM_ERR_BAD_ARG);
    CHECK_OK(AM_SetSeg(client, client_segment, sizeof(client_segment)));

    CHECK_OK(AM_MaxNumTranslations(&number));
    CHECK(number == 1 << 20);
    CHECK_OK(AM_GetNumTranslations(client, &number));
    CHECK(number >= 6);
    CHECK_CODE(AM_GetTranslationInuse(client, 5), AM_ERR_RESOURCE);
    CHECK_CODE(AM_GetTranslationInuse(client, number), AM_ERR_BAD_ARG);
    CHECK_CODE(AM_GetTranslationTag(client, 5, &tag), AM_ERR_BAD_ARG);
    CHECK_CODE(AM_Map(client, number, server_name, 77), AM_ERR_BAD_ARG);
    CHECK_CODE(AM_Map(client, -1, server_name, 77), AM_ERR_BAD_ARG);
    CHECK_OK(AM_Map(client, 5, server_name, 77));
    CHECK_CODE(AM_Map(client, 5, server_name, 77), AM_ERR_RESOURCE);
    CHECK_OK(AM_GetTranslationInuse(client, 5));
    CHECK_OK(AM_GetTranslationTag(client, 5, &tag));
    CHECK_OK(AM_GetTranslationName(client, 5, &name));
    CHECK(tag == 77 && AMX_enEqual(name, server_name));
    CHECK_OK(AM_MapAny(client, &number, server_name, 78));
    CHECK(number == 0);
    CHECK_CODE(AM_SetNumTranslations(client, 5), AM_ERR_RESOURCE);
    CHECK_OK(AM_SetNumTranslations(client, 6));
    CHECK_CODE(AM_SetNumTranslations(client, (1 << 20) + 1), AM_ERR_BAD_ARG);
    CHECK_OK(AM_SetExpectedResources(client, 2, 4));
#ifdef WITH_AMMPI
    invented.mpitag ^= 1;
#else
    invented.sin_zero[7] ^= 1;
#endif
    CHECK_OK(AM_Map(client, 1, invented, 77));
    CHECK_OK(AM_Map(client, 2, client_name, 1));

    CHECK_OK(AM_GetNumHandlers(client, &number));
    CHECK(number == 256);
    CHECK_CODE(AM_SetNumHandlers(client, 257), AM_ERR_BAD_ARG);
    CHECK_OK(AM_SetHandler(client, 255, silent));
    CHECK_CODE(AM_SetNumHandlers(client, 255), AM_ERR_RESOURCE);
    CHECK_OK(AM_SetHandler(client, 255, NULL));
    CHECK_OK(AM_SetNumHandlers(client, 20));
    CHECK_CODE(AM_SetHandler(client, 20, silent), AM_ERR_BAD_ARG);
    CHECK_OK(AM_SetNumHandlers(client, 256));
    CHECK_OK(AM_SetHandlerAny(client, &handler, silent));
    CHECK(handler == 1);
    CHECK_OK(AM_SetHandler(client, 0, returned));
    CHECK_OK(AM_SetHandler(server, TWICE, twice));
    CHECK_OK(AM_SetHandler(server, NESTED, nested));
    CHECK_OK(AM_SetHandler(server, KEEPS, keeps));
    CHECK_OK(AM_SetHandler(server, TO_NOBODY, to_nobody));
    CHECK_OK(AM_SetHandler(server, SILENT, silent));
}

/* A table of 2^20 entries with 1,000 mapped ones: what it takes is looked at by its caller. */
static long resident(void)
{
    long pages = 0, unused;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%ld %ld", &unused, &pages) == 2);
    fclose(file);
    return pages * 4096;
}

static void large_table(void)
{
    int at, number;
    long before = resident();
    CHECK_OK(AM_SetNumTranslations(client, 1 << 20));
    CHECK(resident() - before <= 16 * (1L << 20));
    CHECK_OK(AM_GetNumTranslations(client, &number));
    CHECK(number == 1 << 20);
    for (at = 0; at < 1000; at++) {
        CHECK_OK(AM_Map(client, (1 << 20) - 1 - at * 1000, client_name, 1));
    }
    before = requests;
    CHECK_OK(AM_SetTag(client, 1));
    CHECK_OK(AM_SetHandler(client, SILENT, silent));
    CHECK_OK(AM_Request0(client, (1 << 20) - 1 - 999 * 1000, SILENT));
    CHECK(requests == before + 1);
    for (at = 0; at < 1000; at++) {
        CHECK_OK(AM_UnMap(client, (1 << 20) - 1 - at * 1000));
    }
    CHECK_OK(AM_SetNumTranslations(client, 6));
    CHECK_OK(AM_SetTag(client, AM_NONE));
}

static void refusals(void)
{
    static char bytes[AMX_MAX_MEDIUM + 1];
    int before = replies;
    CHECK_CODE(AM_Request0(client, 6, SILENT), AM_ERR_BAD_ARG);
    CHECK_CODE(AM_Request0(client, 5, 0), AM_ERR_BAD_ARG);
    CHECK_CODE(AM_Request1(client, 3, SILENT, 9), AM_ERR_BAD_ARG);
    expect_returned(EBADENTRY, AM_REQUEST_M);
    CHECK(last_argument == 9);
    CHECK_CODE(AM_RequestI0(client, 5, SILENT, bytes, sizeof(bytes)), AM_ERR_BAD_ARG);
    expect_returned(EBADARGS, AM_REQUEST_IM);
    CHECK_CODE(AM_RequestXfer0(client, 5, 0, SILENT, bytes, sizeof(bytes)), AM_ERR_BAD_ARG);
    expect_returned(EBADARGS, AM_REQUEST_XFER_M);
    CHECK_OK(AM_Request0(client, 1, SILENT));
    expect_returned(EBADENDPOINT, AM_REQUEST_M);
    CHECK_OK(AM_RequestI1(client, 0, SILENT, bytes, 3, 12));
    expect_returned(EBADTAG, AM_REQUEST_IM);
    CHECK(last_argument == 12);
    CHECK_OK(AMX_SetTranslationTag(client, 0, 77));
    CHECK_OK(AM_RequestI1(client, 0, FIRST_FREE, bytes, 3, 13));
    expect_returned(EBADHANDLER, AM_REQUEST_IM);
    CHECK_OK(AM_RequestXfer0(client, 5, sizeof(server_segment) - 2, SILENT, bytes, 3));
    expect_returned(EBADLENGTH, AM_REQUEST_XFER_M);
    CHECK_CODE(AM_GetXfer0(client, 5, 0, BACK_X, sizeof(client_segment), 1), AM_ERR_BAD_ARG);
    CHECK_OK(AM_SetSeg(server, NULL, 0));
    CHECK_OK(AM_RequestXfer0(client, 5, 0, SILENT, bytes, 3));
    expect_returned(EBADSEGOFF, AM_REQUEST_XFER_M);
    CHECK_OK(AM_SetSeg(server, server_segment, sizeof(server_segment)));
    CHECK_OK(AM_Request0(client, 5, TO_NOBODY));
    expect_returned(EREPLYREJECTED, AM_REPLY_M);
    CHECK(last_argument == 55);
    /* The own endpoint, in the call: its tag is AM_NONE. */
    CHECK_OK(AM_Request0(client, 2, SILENT));
    expect_returned(EBADTAG, AM_REQUEST_M);

    requests = 0;
    set_handlers0();
    CHECK_OK(AM_Request0(client, 5, TWICE));
    CHECK_OK(AM_Request0(client, 5, NESTED));
    CHECK_OK(AM_Request0(client, 5, KEEPS));
    POLL_UNTIL(bundle, requests == 3 && replies == before + 1);
    CHECK_CODE(AM_Reply0(kept, BACK), AM_ERR_BAD_ARG);
    CHECK_CODE(AM_Reply0(NULL, BACK), AM_ERR_BAD_ARG);
}

static char steps[16];
static uint32_t around[16];
static size_t around_length;

static void before_each(amx_category_t category, int is_request, int handler, void *token, void *buffer, size_t length,
                        int count, uint32_t *arguments)
{
    CHECK(token && category == amx_Medium && !buffer == !length);
    CHECK(is_request ? handler == ECHO_I : handler == BACK_I);
    strcat(steps, is_request ? "<" : "(");
    memcpy(around, arguments, (size_t)count * 4);
    around_length = length;
}

static void after_each(amx_category_t category, int is_request)
{
    CHECK(category == amx_Medium);
    strcat(steps, is_request ? ">" : ")");
}

/* Functions around each handler, which have the types that programs declare. */
static void callbacks(void)
{
    int before = replies;
    set_handlers2();
    CHECK_OK(AMX_SetHandlerCallbacks(server, before_each, after_each));
    CHECK_OK(AM_RequestI2(client, 5, ECHO_I, "four", 4, -1, 7));
    POLL_UNTIL(bundle, replies == before + 1);
    CHECK(strcmp(steps, "<>") == 0 && around[0] == 0xffffffffu && around[1] == 7 && around_length == 4);
    CHECK_OK(AMX_SetHandlerCallbacks(server, NULL, NULL));
    CHECK_OK(AMX_SetHandlerCallbacks(client, before_each, after_each));
    CHECK_OK(AM_RequestI2(client, 5, ECHO_I, "three", 3, 8, 9));
    POLL_UNTIL(bundle, replies == before + 2);
    CHECK(strcmp(steps, "<>()") == 0 && around[0] == 8 && around[1] == 9 && around_length == 3);
    CHECK_OK(AMX_SetHandlerCallbacks(client, NULL, NULL));
}

/* A segment that is the whole address space: offsets are addresses. */
static void everywhere(void)
{
    static char bytes[AMX_MAX_LONG], here[AMX_MAX_LONG + 1];
    const size_t sizes[] = {1, 8, 4000, AMX_MAX_LONG};
    void *start = bytes;
    uintptr_t length;
    unsigned int at;
    CHECK_OK(AM_SetSeg(server, NULL, AMX_MAX_SEGLENGTH));
    CHECK_OK(AM_GetSeg(server, &start, &length));
    CHECK(!start && length == AMX_MAX_SEGLENGTH);
    set_handlers0();
    for (at = 0; at < sizeof(sizes) / sizeof(sizes[0]); at++) {
        int before = requests;
        memset(bytes, 'a' + (int)at, sizes[at]);
        /* Until the client has heard of the segment, its requests come back. */
        for (;;) {
            CHECK_OK(AM_RequestXfer0(client, 5, (uintptr_t)here, SILENT, bytes, sizes[at]));
            POLL_UNTIL(bundle, requests == before + 1 || returns > seen);
            if (requests == before + 1)
                break;
            expect_returned(EBADLENGTH, AM_REQUEST_XFER_M);
        }
        CHECK(memcmp(here, bytes, sizes[at]) == 0 && !here[sizes[at]]);
    }
    CHECK_OK(AM_SetSeg(server, server_segment, sizeof(server_segment)));
}

static void events(void)
{
    int mask = 7, before = replies;
    CHECK_OK(AM_GetEventMask(bundle, &mask));
    CHECK(mask == AM_NOEVENTS);
    CHECK_CODE(AM_WaitSema(bundle), AM_ERR_BAD_ARG);
    CHECK_CODE(AM_SetEventMask(bundle, 2), AM_ERR_BAD_ARG);
    CHECK_OK(AM_SetEventMask(bundle, AM_NOTEMPTY));
    set_handlers0();
    CHECK_OK(AM_Request0(client, 5, ECHO));
    while (replies == before) {
        CHECK_OK(AM_WaitSema(bundle));
    }
}

static void statistics(void)
{
    amx_stats_t stats, sum = AMX_initial_stats;
    CHECK_OK(AMX_GetEndpointStatistics(client, &stats));
    CHECK(stats.RequestsSent[amx_Short] >= 17 && stats.RequestsSent[amx_Medium] >= 34);
    CHECK(stats.ReturnedMessages == (uint64_t)returns && stats.RepliesReceived[amx_Long] >= 51);
    CHECK_OK(AMX_AggregateStatistics(&sum, &stats));
    CHECK_OK(AMX_AggregateStatistics(&sum, &stats));
    CHECK(sum.RequestsSent[amx_Short] == 2 * stats.RequestsSent[amx_Short]);
    CHECK(strstr(AMX_DumpStatistics(NULL, &sum, 0), "an endpoint") && !AMX_DumpStatistics(stdout, NULL, 1));
    CHECK(strstr(AMX_DumpStatistics(stdout, &sum, 1), "all endpoints"));
    CHECK_OK(AMX_ResetEndpointStatistics(client));
    CHECK_OK(AMX_GetEndpointStatistics(client, &stats));
    CHECK(memcmp(&stats, &AMX_initial_stats, sizeof(stats)) == 0);
}

static int by_list(int count, ...)
{
    va_list list;
    int code;
    va_start(list, count);
    code = AMX_RequestVA(client, 5, ECHO, count, list);
    va_end(list);
    return code;
}

/* A target of another bundle, which is gone later. */
static void timeouts(void)
{
    eb_t other;
    ep_t deaf;
    en_t name;
    int before = replies;
    CHECK_OK(AM_AllocateBundle(AM_SEQ, &other));
    CHECK_OK(AM_AllocateEndpoint(other, &deaf, &name));
    CHECK_OK(AM_SetTag(deaf, AM_ALL));
    CHECK_OK(AM_SetHandler(deaf, ECHO, echo0));
    set_handlers0();
    CHECK_OK(AM_Map(client, 3, name, 1));
    CHECK_OK(AM_Request0(client, 3, ECHO));
    while (replies == before) {
        CHECK_OK(AM_Poll(other));
        CHECK_OK(AM_Poll(bundle));
    }
    CHECK_OK(AM_FreeBundle(other));
    CHECK_CODE(AM_Poll(other), AM_ERR_BAD_ARG);
    before = returns;
    CHECK_OK(AM_Request0(client, 3, SILENT));
    expect_returned(EUNREACHABLE, AM_REQUEST_M);
    CHECK(returns == before + 1);
}

/* A bundle of another thread, which polls for a while and then no more. */
static struct {
    pthread_mutex_t lock;
    pthread_barrier_t steps;
    en_t name;
    int is_deaf;
} other_thread = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void answer(void *token)
{
    CHECK_OK(AM_Reply0(token, BACK));
}

static int is_deaf(void)
{
    int deaf;
    pthread_mutex_lock(&other_thread.lock);
    deaf = other_thread.is_deaf;
    pthread_mutex_unlock(&other_thread.lock);
    return deaf;
}

static void *poll_and_stop(void *unused)
{
    eb_t own;
    ep_t endpoint;
    CHECK_OK(AM_AllocateBundle(AM_SEQ, &own));
    CHECK_OK(AM_AllocateEndpoint(own, &endpoint, &other_thread.name));
    CHECK_OK(AM_SetTag(endpoint, AM_ALL));
    CHECK_OK(AM_SetHandler(endpoint, ECHO, answer));
    pthread_barrier_wait(&other_thread.steps);
    while (!is_deaf()) {
        CHECK_OK(AM_Poll(own));
    }
    pthread_barrier_wait(&other_thread.steps);
    CHECK_OK(AM_FreeBundle(own));
    return unused;
}

/* Requests take the credits that there are; the next one finds none; then all come back, once. */
static void congestion(void)
{
    pthread_t thread;
    int before = replies, first = returns, sent = 0;
    CHECK(pthread_barrier_init(&other_thread.steps, NULL, 2) == 0);
    CHECK(pthread_create(&thread, NULL, poll_and_stop, NULL) == 0);
    pthread_barrier_wait(&other_thread.steps);
    CHECK_OK(AM_Map(client, 4, other_thread.name, 1));
    CHECK_OK(AM_Request0(client, 4, ECHO));
    POLL_UNTIL(bundle, replies == before + 1);
    pthread_mutex_lock(&other_thread.lock);
    other_thread.is_deaf = 1;
    pthread_mutex_unlock(&other_thread.lock);
    last_status = 0;
    for (sent = 0; returns == first; sent++) {
        CHECK_OK(AM_Request0(client, 4, ECHO));
    }
    CHECK(last_status == ECONGESTION && last_operation == AM_REQUEST_M && sent > 1);
    POLL_UNTIL(bundle, returns + replies == first + before + 1 + sent);
    CHECK(last_status == EUNREACHABLE);
    pthread_barrier_wait(&other_thread.steps);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_OK(AM_UnMap(client, 4));
}

int main(void)
{
    life();
    tables();
    ROUND(0);
    ROUND(1);
    ROUND(2);
    ROUND(3);
    ROUND(4);
    ROUND(5);
    ROUND(6);
    ROUND(7);
    ROUND(8);
    ROUND(9);
    ROUND(10);
    ROUND(11);
    ROUND(12);
    ROUND(13);
    ROUND(14);
    ROUND(15);
    ROUND(16);
    set_handlers3();
    replies = 0;
    CHECK_OK(by_list(3, 101, -102, 103));
    POLL_UNTIL(bundle, replies == 1);
    came_back(3, "", 0);
    refusals();
    callbacks();
    everywhere();
    events();
    statistics();
    large_table();
    timeouts();
    congestion();
    CHECK_OK(AM_UnMap(client, 5));
    CHECK_CODE(AM_UnMap(client, 5), AM_ERR_BAD_ARG);
    CHECK_OK(AM_Terminate());
    CHECK_CODE(AM_Poll(bundle), AM_ERR_BAD_ARG);
    puts("conforms");
    return 0;
}
