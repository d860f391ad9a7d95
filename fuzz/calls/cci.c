/*
 * Random calls of libcci: cci.h and ccix.h.
 *
 * Not called, by the contract: BLOCKING without a send timeout, which may wait for this very
 * thread; calls on memory that is unmapped; changes of bytes that NO_COPY or an operation still
 * uses; reading of an event that was returned; a pointer that the library never gave, or that it
 * gave as something else; a multicast group, which would leave this host. Stale pointers are
 * passed: the library promises to refuse them.
 */

#include "cci_calls.h"

struct place endpoints[ENDPOINTS];
cci_connection_t *connections[CONNECTIONS];
cci_event_t *held[HELD];
unsigned char payload[BYTES];
unsigned long sum;
int joins;
static int depth;

cci_endpoint_t *an_endpoint(void) {
    return one_in(500) ? NULL : endpoints[below(ENDPOINTS)].endpoint;
}

cci_connection_t *a_connection(void) {
    unsigned tries;

    for (tries = 0; tries < 4; tries++) {
        cci_connection_t *connection = connections[below(CONNECTIONS)];

        if (connection)
            return connection;
    }
    return NULL;
}

const void *a_context(void) {
    return (const void *)(uintptr_t)draw();
}

uint32_t a_length(void) {
    uint32_t length = length_to(20000);

    return one_in(200) ? UINT32_MAX - below(16) : length;
}

/* A place in the payload with so many bytes behind it. */
const void *bytes_of(uint64_t length) {
    if (length > BYTES)
        return payload;
    return payload + below((uint32_t)(BYTES - length) + 1);
}

int send_flags(void) {
    int flags = 0;

    if (one_in(3))
        flags |= CCI_FLAG_SILENT;
    if (one_in(4))
        flags |= CCI_FLAG_NO_COPY;
    if (one_in(200))
        flags |= CCI_FLAG_BLOCKING;
    return one_in(300) ? (int)draw() & ~CCI_FLAG_BLOCKING : flags;
}

static void texts(void) {
    cci_device_t *device = NULL;
    char uri[ENTRY_BYTES];

    CALL_GOOD(cci_strerror, result_ != NULL, cci_strerror(an_endpoint(), (enum cci_status)below(130)));
    CALL_GOOD(ccix_last_error, result_ != NULL, ccix_last_error());
    CALL_GOOD(ccix_release, result_ != NULL, ccix_release());
    memcpy(uri, board->entries[process][below(ENDPOINTS)], sizeof uri);
    if (one_in(10))
        uri[below(20)] = (char)draw();
    uri[sizeof uri - 1] = 0;
    CALL(ccix_device_for, one_in(50) ? NULL : uri, &device);
}

/* Calls of a child are refused, or begin anew; none of them harms. */
static void as_child(void) {
    unsigned at;
    cci_event_t *event = NULL;
    uint32_t caps;

    for (at = 0; at < 40; at++) {
        switch (below(8)) {
        case 0:
            CALL(cci_get_event, an_endpoint(), &event);
            break;
        case 1:
            CALL(cci_send, a_connection(), payload, 8, NULL, 0);
            break;
        case 2:
            CALL(cci_disconnect, a_connection());
            break;
        case 3:
            CALL(cci_return_event, held[below(HELD)]);
            break;
        case 4:
            CALL(cci_destroy_endpoint, an_endpoint());
            break;
        case 5:
            CALL(cci_init, CCI_ABI_VERSION, 0, &caps);
            break;
        case 6:
            create_endpoint();
            break;
        default:
            CALL(cci_finalize);
        }
    }
}

static void fork_child(void) {
    in_fork(as_child);
}

static void initialize(void) {
    uint32_t caps = 0;

    if (CALL(cci_init, one_in(4) ? (uint32_t)draw() : CCI_ABI_VERSION, (uint32_t)draw(), one_in(20) ? NULL : &caps) ==
        CCI_SUCCESS)
        depth++;
}

/* All that was open is stale after the last one. */
static void finalize(void) {
    uint32_t caps;
    unsigned at;

    if (CALL(cci_finalize) != CCI_SUCCESS || --depth > 0)
        return;
    /* The library has left the job, too. */
    joins = 0;
    for (at = 0; at < ENDPOINTS; at++)
        memset(board->entries[process][at], 0, ENTRY_BYTES);
    if (one_in(2)) {
        CALL(cci_finalize);
        get_event();
        send_message();
    }
    if (CALL(cci_init, CCI_ABI_VERSION, 0, &caps) == CCI_SUCCESS)
        depth++;
    for (at = 0; at < ENDPOINTS; at++)
        create_endpoint();
}

const struct operation operations[] = {
    {get_event, 240},   {get_events, 30},  {poll_events, 30},        {wait_event, 10},        {return_event, 60},
    {wake, 4},          {arm, 8},          {watch_fd, 4},            {send_message, 120},     {send_parts, 40},
    {answer, 20},       {send_large, 10},  {in_place, 40},           {reserve, 4},            {set_large_limit, 1},
    {set_answer_buffers, 1},               {register_memory, 14},    {deregister, 3},         {rma, 60},
    {atomic, 20},       {import, 16},       {check_import, 8},        {allocate, 6},           {connect_to, 30},
    {disconnect, 6},    {connection_info, 20},                       {get_opt, 20},           {set_opt, 14},
    {create_endpoint, 1}, {texts, 8},      {answer_held, 4},         {initialize, 1},         {finalize, 1},
    {fork_child, 1},    {job, 4},          {NULL, 0},
};

static const char maps[] = "only sm maps memory of peers";
static const char jobs[] = "one rank joins the job; the two processes are no ranks";

const struct left_out left_out[] = {
    {AT_ccix_import, "sm", 0, maps},
    {AT_ccix_check_import, "sm", 0, maps},
    {AT_ccix_release_import, "sm", 0, maps},
    {AT_ccix_job_exchange, NULL, 1, jobs},
    {AT_ccix_job_info, NULL, 1, jobs},
    {AT_ccix_job_join, NULL, 1, jobs},
    {AT_ccix_job_leave, NULL, 1, jobs},
    {AT_ccix_job_look_up, NULL, 1, jobs},
    {AT_ccix_job_open, NULL, 1, jobs},
    {AT_ccix_job_publish, NULL, 1, jobs},
    {0, NULL, 0, NULL},
};

void set_up(void) {
    uint32_t caps = 0;
    unsigned at;

    for (at = 0; at < BYTES; at++)
        payload[at] = (unsigned char)(at * 7 + at / 251);
    if (CALL(cci_init, CCI_ABI_VERSION, 0, &caps) != CCI_SUCCESS) {
        fprintf(stderr, "cci_init: %s\n", ccix_last_error());
        exit(2);
    }
    depth = 1;
    for (at = 0; at < ENDPOINTS; at++)
        endpoints[at].fd = -1;
    if (processes == 1)
        begin_job();
    for (at = 0; at < 2 * ENDPOINTS; at++)
        create_endpoint();
}

void tear_down(void) {
    while (joins-- > 0)
        CALL(ccix_job_leave);
    while (depth-- > 0)
        CALL(cci_finalize);
}
