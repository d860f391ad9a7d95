/*
 * Random calls of libmyriexpress: myriexpress.h and mx_extensions.h.
 *
 * Not called, by the contract: the default error handler, which ends the program; segments that are
 * changed or unmapped before their request has ended; a NULL where segments or a text are read with
 * a length; waits without a limit for what may never come.
 */

#include "calls.h"

#include <mx_extensions.h>

#define ENDPOINTS 3
#define REQUESTS 48
#define ADDRESSES 12
#define KEY 7
#define BYTES (1u << 17)

static mx_endpoint_t endpoints[ENDPOINTS];
static struct {
    mx_request_t request;
    unsigned endpoint;
} requests[REQUESTS];
static mx_endpoint_addr_t addresses[ADDRESSES];
static char payload[BYTES], memory[BYTES];
static unsigned long sum;

/* Where an endpoint is, for the other process. */
struct place {
    uint64_t nic;
    uint32_t id;
};

static mx_endpoint_t an_endpoint(void) {
    if (one_in(400))
        return (mx_endpoint_t)(uintptr_t)draw();
    return one_in(400) ? NULL : endpoints[below(ENDPOINTS)];
}

static struct place a_place(void) {
    int of = processes == 2 && one_in(2) ? !process : process;
    struct place place;

    memcpy(&place, board->entries[of][below(ENDPOINTS)], sizeof place);
    if (one_in(100))
        place.id = (uint32_t)draw();
    if (one_in(200))
        place.nic = 0x7f000001;
    return place;
}

static mx_endpoint_addr_t an_address(void) {
    mx_endpoint_addr_t address = addresses[below(ADDRESSES)];

    if (one_in(200))
        address.stuff[below(2)] ^= draw();
    return address;
}

/* Bits that often match: receives and sends draw from a few. */
static uint64_t some_bits(void) {
    return one_in(50) ? draw() : below(4);
}

static uint64_t a_mask(void) {
    return one_in(3) ? 0 : one_in(20) ? draw() : MX_MATCH_MASK_NONE;
}

static uint32_t some_segments(mx_segment_t *segments, char *of) {
    uint32_t count = one_in(4) ? below(5) : 1, at;

    for (at = 0; at < count; at++) {
        uint32_t length = one_in(20) ? length_to(BYTES) : length_to(3000);

        segments[at].segment_length = length;
        segments[at].segment_ptr = length == 0 && one_in(2) ? NULL : of + below(BYTES - length + 1);
    }
    if (one_in(300))
        return MX_MAX_SEGMENTS + 1 + below(5);
    return count;
}

static void keep(mx_request_t request, unsigned endpoint) {
    unsigned at = below(REQUESTS);
    uint32_t result;

    if (requests[at].request && one_in(2)) {
        if (one_in(2))
            CALL(mx_forget, endpoints[requests[at].endpoint], &requests[at].request);
        else
            CALL(mx_cancel, endpoints[requests[at].endpoint], &requests[at].request, &result);
    }
    requests[at].request = request;
    requests[at].endpoint = endpoint;
}

static void send_some(void) {
    mx_segment_t segments[MX_MAX_SEGMENTS + 8] = {{NULL, 0}};
    uint32_t count = some_segments(segments, payload);
    unsigned at = below(ENDPOINTS);
    mx_request_t request = NULL;
    mx_endpoint_t endpoint = one_in(300) ? an_endpoint() : endpoints[at];
    void *context = (void *)(uintptr_t)draw();
    int code;

    if (one_in(3))
        code = CALL(mx_issend, endpoint, segments, count, an_address(), some_bits(), context, &request);
    else
        code = CALL(mx_isend, endpoint, segments, count, an_address(), some_bits(), context,
                    one_in(300) ? NULL : &request);
    if (code == MX_SUCCESS)
        keep(request, at);
}

static void receive(void) {
    mx_segment_t segments[MX_MAX_SEGMENTS + 8] = {{NULL, 0}};
    uint32_t count = some_segments(segments, memory);
    unsigned at = below(ENDPOINTS);
    mx_request_t request = NULL;

    if (CALL(mx_irecv, one_in(300) ? an_endpoint() : endpoints[at], one_in(300) ? NULL : segments, count, some_bits(),
             a_mask(), (void *)(uintptr_t)draw(), &request) == MX_SUCCESS)
        keep(request, at);
}

static void finish(void) {
    unsigned at = below(REQUESTS);
    mx_endpoint_t endpoint = endpoints[requests[at].endpoint];
    mx_request_t *request = one_in(300) ? NULL : &requests[at].request;
    mx_status_t status;
    uint32_t result = 0;
    int code;

    if (!requests[at].request && !one_in(20))
        return;
    switch (below(24)) {
    case 0:
        code = CALL(mx_wait, endpoint, request, 1, &status, &result);
        break;
    case 1:
        code = CALL(mx_cancel, endpoint, request, &result);
        break;
    case 2:
        CALL(mx_ibuffered, endpoint, request, &result);
        return;
    case 3:
        CALL(mx_buffered, endpoint, request, 1, &result);
        return;
    case 4: {
        void *context;

        CALL(mx_context, request, one_in(300) ? NULL : &context);
        return;
    }
    default:
        code = CALL(mx_test, endpoint, request, one_in(300) ? NULL : &status, &result);
    }
    if (code == MX_SUCCESS && result == 1 && !one_in(30))
        requests[at].request = NULL;
}

static void finish_any(void) {
    mx_status_t status;
    mx_request_t request = NULL;
    uint32_t result = 0;
    mx_endpoint_t endpoint = an_endpoint();

    switch (below(24)) {
    case 0:
        CALL(mx_wait_any, endpoint, 1, some_bits(), a_mask(), &status, &result);
        break;
    case 1:
        CALL(mx_ipeek, endpoint, &request, &result);
        break;
    case 2:
        CALL(mx_peek, endpoint, 1, &request, &result);
        break;
    case 3:
        CALL(mx_iprobe, endpoint, some_bits(), a_mask(), &status, &result);
        break;
    case 4:
        CALL(mx_probe, endpoint, 1, some_bits(), a_mask(), &status, &result);
        break;
    default:
        CALL(mx_test_any, endpoint, some_bits(), a_mask(), one_in(300) ? NULL : &status, one_in(300) ? NULL : &result);
    }
}

static void progress(void) {
    unsigned at;

    for (at = 0; at < ENDPOINTS; at++)
        CALL(mx_progress, endpoints[at]);
    CALL(mx_progress, an_endpoint());
}

static mx_unexp_handler_action_t on_unexpected(void *context, mx_endpoint_addr_t source, uint64_t bits,
                                               uint32_t length, void *data) {
    uint32_t at;

    (void)context;
    (void)bits;
    for (at = 0; data && at < length; at++)
        sum += ((unsigned char *)data)[at];
    addresses[below(ADDRESSES)] = source;
    if (one_in(10))
        send_some();
    if (one_in(10))
        finish();
    return one_in(3) ? MX_RECV_FINISHED : MX_RECV_CONTINUE;
}

static void set_handler(void) {
    CALL(mx_register_unexp_handler, an_endpoint(), one_in(2) ? NULL : on_unexpected, NULL);
}

/* Connects, and takes the address. Within one process nobody else makes progress meanwhile. */
static void connect_to(void) {
    struct place place = a_place();
    unsigned at = below(ENDPOINTS), tries;
    mx_endpoint_t endpoint = endpoints[at];
    mx_request_t request = NULL;
    mx_status_t status;
    uint32_t result = 0, key = one_in(50) ? 8 : KEY;

    if (one_in(4)) {
        CALL(mx_connect, endpoint, place.nic, place.id, key, 1 + below(5), &addresses[below(ADDRESSES)]);
        return;
    }
    if (CALL(mx_iconnect, endpoint, place.nic, place.id, key, some_bits(), NULL, &request) != MX_SUCCESS)
        return;
    if (one_in(4))
        CALL(mx_set_request_timeout, endpoint, request, 1 + below(100));
    for (tries = 0; tries < 30 && result == 0; tries++) {
        progress();
        if (CALL(mx_test, endpoint, &request, &status, &result) != MX_SUCCESS)
            return;
    }
    if (result == 0)
        keep(request, at);
    else if (status.code == MX_STATUS_SUCCESS)
        addresses[below(ADDRESSES)] = status.source;
}

static void own_address(void) {
    mx_endpoint_addr_t address;
    struct place place;
    uint32_t session;
    void *context;

    if (CALL(mx_get_endpoint_addr, an_endpoint(), &address) == MX_SUCCESS && one_in(2))
        addresses[below(ADDRESSES)] = address;
    address = an_address();
    CALL(mx_decompose_endpoint_addr, address, &place.nic, one_in(300) ? NULL : &place.id);
    CALL(mx_decompose_endpoint_addr2, address, &place.nic, &place.id, &session);
    CALL(mx_set_endpoint_addr_context, address, (void *)(uintptr_t)draw());
    CALL(mx_get_endpoint_addr_context, one_in(2) ? address : an_address(), &context);
}

static void names(void) {
    char name[MX_MAX_HOSTNAME_LEN];
    uint64_t nic = 0;
    uint32_t board_number;

    CALL(mx_hostname_to_nic_id, one_in(3) ? "localhost:0" : one_in(50) ? "" : "localhost", &nic);
    CALL(mx_nic_id_to_hostname, one_in(50) ? draw() : nic, name);
    CALL(mx_board_number_to_nic_id, one_in(20) ? (uint32_t)draw() : 0, &nic);
    CALL(mx_nic_id_to_board_number, one_in(20) ? draw() : nic, &board_number);
}

static void info(void) {
    mx_get_info_key_t key = (mx_get_info_key_t)below(11);
    uint64_t room[256];
    uint32_t in = one_in(10) ? below(9) : 0;

    CALL(mx_get_info, one_in(3) ? NULL : an_endpoint(), key, one_in(2) ? NULL : &in, sizeof in, one_in(100) ? NULL : room,
         one_in(4) ? below(sizeof room) : sizeof room);
}

static void texts(void) {
    CALL_GOOD(mx_strerror, result_ != NULL, mx_strerror((mx_return_t)(one_in(9) ? (int)draw() : (int)below(70))));
    CALL_GOOD(mx_strstatus, result_ != NULL, mx_strstatus((mx_status_code_t)(one_in(9) ? (int)draw() : (int)below(18))));
    CALL_GOOD(MX_ERRORS_RETURN, result_ == MX_BUSY, MX_ERRORS_RETURN("busy", MX_BUSY));
    CALL(mx_set_error_handler, MX_ERRORS_RETURN);
}

static void others(void) {
    mx_endpoint_t endpoint = an_endpoint();
    unsigned at = below(REQUESTS);

    switch (below(6)) {
    case 0:
        CALL(mx_wakeup, endpoint);
        break;
    case 1:
        CALL(mx_disable_progression, endpoint);
        break;
    case 2:
        CALL(mx_reenable_progression, endpoint);
        break;
    case 3:
        CALL(mx_set_request_timeout, endpoint, one_in(20) ? NULL : requests[at].request, 1 + below(2000));
        break;
    case 4:
        CALL(mx_forget, endpoints[requests[at].endpoint], &requests[at].request);
        if (!one_in(4))
            requests[at].request = NULL;
        break;
    default:
        if (one_in(10))
            CALL(mx_disconnect, endpoint, an_address());
    }
}

static void open_endpoint(void) {
    unsigned at = below(ENDPOINTS);
    mx_param_t params[3] = {{MX_PARAM_UNEXP_QUEUE_MAX, {.unexp_queue_max = 1u << 20}},
                            {MX_PARAM_CONTEXT_ID, {.context_id = {2, 0}}},
                            {MX_PARAM_ABSENT_LIMIT, {.absent_limit = 200}}};
    mx_endpoint_t endpoint = NULL;
    mx_endpoint_addr_t address;
    struct place place = {0, 0};
    uint32_t id = (uint32_t)(getpid() * 16 + (int)below(16)) % 2048;

    if (one_in(40))
        params[below(3)].key = (mx_param_key_t)below(70);
    params[1].key = one_in(2) ? params[1].key : MX_PARAM_UNEXP_QUEUE_MAX;
    if (params[1].key == MX_PARAM_UNEXP_QUEUE_MAX)
        params[1].val.unexp_queue_max = 1u << 16;
    memcpy(board->entries[process][at], &place, sizeof place);
    if (endpoints[at])
        CALL(mx_close_endpoint, endpoints[at]);
    if (one_in(30))
        id = 2048 + below(100);
    params[0].val.unexp_queue_max = params[0].key == MX_PARAM_ERROR_HANDLER ? 0 : 1u << 20;
    if (params[0].key == MX_PARAM_ERROR_HANDLER || params[1].key == MX_PARAM_ERROR_HANDLER ||
        params[2].key == MX_PARAM_ERROR_HANDLER) {
        unsigned of;

        for (of = 0; of < 3; of++)
            if (params[of].key == MX_PARAM_ERROR_HANDLER)
                params[of].val.error_handler = MX_ERRORS_RETURN;
    }
    if (CALL(mx_open_endpoint, one_in(20) ? below(3) : MX_ANY_NIC, one_in(4) ? MX_ANY_ENDPOINT : id, KEY, params, below(4),
             &endpoint) != MX_SUCCESS)
        return;
    endpoints[at] = endpoint;
    if (CALL(mx_get_endpoint_addr, endpoint, &address) != MX_SUCCESS ||
        CALL(mx_decompose_endpoint_addr, address, &place.nic, &place.id) != MX_SUCCESS)
        return;
    memcpy(board->entries[process][at], &place, sizeof place);
    addresses[below(ADDRESSES)] = address;
    CALL(mx_set_request_timeout, endpoint, NULL, 2000);
}

/* Each end of an endpoint may wait for its last acknowledgements: not often. */
static void reopen(void) {
    if (one_in(4))
        open_endpoint();
}

static void initialize(void) {
    CALL(mx__init_api, one_in(20) ? (int)draw() : MX_API);
}

static void finalize(void) {
    unsigned at;

    if (!one_in(6))
        return;
    CALL(mx_finalize);
    if (one_in(2)) {
        CALL(mx_finalize);
        send_some();
        texts();
    }
    CALL(mx__init_api, MX_API);
    for (at = 0; at < 2 * ENDPOINTS; at++)
        open_endpoint();
}

static void as_child(void) {
    unsigned at;

    /* The child begins with the default handler. */
    CALL(mx_set_error_handler, MX_ERRORS_RETURN);
    for (at = 0; at < 10; at++) {
        send_some();
        finish();
        finish_any();
    }
    if (one_in(2)) {
        CALL(mx__init_api, MX_API);
        open_endpoint();
        send_some();
        CALL(mx_finalize);
    }
}

static void fork_child(void) {
    in_fork(as_child);
}

const struct operation operations[] = {
    {send_some, 100}, {receive, 80},      {finish, 120},    {finish_any, 60}, {progress, 20}, {set_handler, 2},
    {connect_to, 6},  {own_address, 10},  {names, 3},       {info, 8},        {texts, 4},     {others, 12},
    {reopen, 1},      {initialize, 1},    {finalize, 1},    {fork_child, 1},  {NULL, 0},
};

const struct left_out left_out[] = {
    {AT_MX_ERRORS_ARE_FATAL, "", 0, "it ends the program"},
    {0, NULL, 0, NULL},
};

void set_up(void) {
    unsigned at;

    for (at = 0; at < BYTES; at++)
        payload[at] = (char)(at * 7);
    CALL(mx_set_error_handler, MX_ERRORS_RETURN);
    CALL(mx__init_api, MX_API);
    for (at = 0; at < 2 * ENDPOINTS; at++)
        open_endpoint();
}

void tear_down(void) {
    CALL(mx_finalize);
}
