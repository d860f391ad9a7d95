/*
 * Random calls of libcci: cci.h and ccix.h.
 *
 * Not called, by the contract: BLOCKING without a send timeout, which may wait for this very
 * thread; calls on memory that is unmapped; changes of bytes that NO_COPY or an operation still
 * uses; reading of an event that was returned; a pointer that the library never gave, or that it
 * gave as something else; a multicast group, which would leave this host. Stale pointers are
 * passed: the library promises to refuse them.
 */

#include "calls.h"

#include <ccix.h>
#include <poll.h>

#define ENDPOINTS 3
#define CONNECTIONS 16
#define HELD 24
#define REGISTRATIONS 8
#define OTHERS 6
#define BYTES (1u << 20)

static struct {
    cci_endpoint_t *endpoint;
    cci_os_handle_t fd;
    int dead;
} endpoints[ENDPOINTS];
/* The last entries of each are stale or foreign. */
static cci_connection_t *connections[CONNECTIONS];
static cci_event_t *held[HELD];
static struct cci_rma_handle registrations[REGISTRATIONS];
static cci_endpoint_t *registered_at[REGISTRATIONS];
static void *allocated[OTHERS];
static struct {
    cci_connection_t *connection;
    uint64_t room;
    uint32_t length;
} rooms[OTHERS];
static uint64_t imports[OTHERS];
/* What is sent, and never changes; what peers and this program write. */
static unsigned char payload[BYTES], memory[BYTES] __attribute__((aligned(64)));
static unsigned long sum;
static int depth, joins;

static cci_endpoint_t *an_endpoint(void) {
    return one_in(500) ? NULL : endpoints[below(ENDPOINTS)].endpoint;
}

static cci_connection_t *a_connection(void) {
    unsigned tries;

    for (tries = 0; tries < 4; tries++) {
        cci_connection_t *connection = connections[below(CONNECTIONS)];

        if (connection)
            return connection;
    }
    return NULL;
}

static const void *a_context(void) {
    return (const void *)(uintptr_t)draw();
}

static uint32_t a_length(void) {
    uint32_t length = length_to(20000);

    return one_in(200) ? UINT32_MAX - below(16) : length;
}

/* A place in the payload with so many bytes behind it. */
static const void *bytes_of(uint64_t length) {
    if (length > BYTES)
        return payload;
    return payload + below((uint32_t)(BYTES - length) + 1);
}

static int send_flags(void) {
    int flags = 0;

    if (one_in(3))
        flags |= CCI_FLAG_SILENT;
    if (one_in(4))
        flags |= CCI_FLAG_NO_COPY;
    if (one_in(200))
        flags |= CCI_FLAG_BLOCKING;
    return one_in(300) ? (int)draw() & ~CCI_FLAG_BLOCKING : flags;
}

static void add_connection(cci_connection_t *connection) {
    unsigned at = below(CONNECTIONS);

    if (!connection)
        return;
    if (connections[at] && !one_in(4))
        CALL(cci_disconnect, connections[at]);
    connections[at] = connection;
}

/* The bytes of an event are the program's until it is returned. */
static void look_at(const void *bytes, uint32_t length) {
    const unsigned char *at = bytes;
    uint32_t index;

    for (index = 0; index < length; index++)
        sum += at[index];
}

static void answer_request(cci_event_t *event) {
    struct ccix_peer peer;

    memset(&peer, 0, sizeof peer);
    peer.size = one_in(10) ? below(2 * sizeof peer) : sizeof peer;
    if (peer.size > sizeof peer)
        peer.size = sizeof peer;
    if (one_in(3))
        CALL(ccix_request_peer, event, &peer);
    switch (below(6)) {
    case 0:
        CALL(cci_reject, event);
        break;
    case 1:
    case 2:
        CALL(ccix_accept_on, event, an_endpoint(), a_context());
        break;
    default:
        CALL(cci_accept, event, a_context());
    }
    /* One that was not answered cannot be returned, and would hold its buffer. */
    if (one_in(2))
        CALL(cci_reject, event);
}

/* What a program does with an event. */
static void handle(cci_event_t *event) {
    const char *name = cci_event_type_str(event->type);

    PROMISE(name != NULL);
    switch ((int)event->type) {
    case CCI_EVENT_RECV:
        PROMISE(event->recv.len == 0 || (uintptr_t)event->recv.ptr % 8 == 0);
        look_at(event->recv.ptr, event->recv.len);
        PROMISE(((const unsigned char *)event->recv.ptr)[event->recv.len] == 0);
        if (one_in(20))
            CALL(ccix_answer, event->recv.connection, bytes_of(16), below(17), a_context(), CCI_FLAG_SILENT);
        break;
    case CCI_EVENT_CONNECT_REQUEST:
        look_at(event->request.data_ptr, event->request.data_len);
        answer_request(event);
        break;
    case CCI_EVENT_CONNECT:
        CALL_GOOD(ccix_event_reason, result_ != NULL, ccix_event_reason(event));
        add_connection(event->connect.connection);
        break;
    case CCI_EVENT_ACCEPT:
        add_connection(event->accept.connection);
        break;
    case CCIX_EVENT_DISCONNECT:
        CALL(cci_disconnect, event->keepalive.connection);
        break;
    default:
        break;
    }
}

/* Returns it now or later, from time to time twice. */
static void put_away(cci_event_t *event) {
    unsigned at = below(HELD);

    if (!one_in(8)) {
        CALL(cci_return_event, event);
        if (one_in(50))
            CALL(cci_return_event, event);
        return;
    }
    if (held[at])
        CALL(cci_return_event, held[at]);
    held[at] = event;
}

static void get_event(void) {
    cci_event_t *event = NULL;
    cci_endpoint_t *endpoint = an_endpoint();

    while (CALL(cci_get_event, endpoint, one_in(5000) ? NULL : &event) == CCI_SUCCESS && event) {
        handle(event);
        put_away(event);
        event = NULL;
        if (one_in(40))
            break;
    }
}

static void get_events(void) {
    cci_event_t *events[8];
    uint32_t count = 0, most = below(9), at;

    if (CALL(ccix_get_events, an_endpoint(), events, most, &count) != CCI_SUCCESS)
        return;
    PROMISE(count <= most);
    for (at = 0; at < count; at++) {
        handle(events[at]);
        put_away(events[at]);
    }
}

static int on_event(void *argument, cci_event_t *event) {
    (void)argument;
    handle(event);
    if (!one_in(8) || event->type == CCI_EVENT_CONNECT_REQUEST)
        return 0;
    put_away(event);
    return 1;
}

static void poll_events(void) {
    uint32_t count;

    CALL(ccix_poll, an_endpoint(), below(9), one_in(1000) ? NULL : on_event, NULL, one_in(3) ? NULL : &count);
}

static void wait_event(void) {
    cci_endpoint_t *of[ENDPOINTS];
    struct timeval limit = {0, (suseconds_t)below(1000)};
    cci_event_t *event = NULL;
    uint32_t count = 1 + below(ENDPOINTS), at, which;

    for (at = 0; at < count; at++)
        of[at] = an_endpoint();
    if (CALL(ccix_wait, of, one_in(100) ? 0 : count, &limit, &event, one_in(2) ? &which : NULL) == CCI_SUCCESS) {
        handle(event);
        put_away(event);
    }
}

static void return_event(void) {
    unsigned at = below(HELD);

    if (!held[at])
        return;
    if (CALL(cci_return_event, held[at]) != CCI_SUCCESS)
        CALL(cci_reject, held[at]);
    /* Some stay, and are returned again. */
    if (!one_in(20))
        held[at] = NULL;
}

static void wake(void) {
    CALL(ccix_wake, an_endpoint());
}

static void arm(void) {
    CALL(cci_arm_os_handle, an_endpoint(), (int)below(2));
}

static void watch_fd(void) {
    struct pollfd of = {endpoints[below(ENDPOINTS)].fd, POLLIN, 0};

    /* A closed number may be another file's: only asked. */
    if (of.fd > 2)
        poll(&of, 1, 0);
}

static void send_message(void) {
    uint32_t length = a_length();

    CALL(cci_send, a_connection(), one_in(300) ? NULL : bytes_of(length), length, a_context(), send_flags());
}

static void send_parts(void) {
    struct iovec parts[5];
    uint32_t count = below(6), at;

    for (at = 0; at < count && at < 5; at++) {
        uint32_t length = length_to(4000);

        parts[at].iov_base = one_in(300) ? NULL : (void *)(uintptr_t)bytes_of(length);
        parts[at].iov_len = one_in(300) ? SIZE_MAX - below(9) : length;
    }
    CALL(cci_sendv, a_connection(), one_in(300) ? NULL : parts, count, a_context(), send_flags() & ~CCI_FLAG_NO_COPY);
}

static void answer(void) {
    uint32_t length = length_to(9000);

    CALL(ccix_answer, a_connection(), bytes_of(length), length, a_context(), send_flags());
}

static void send_large(void) {
    uint64_t length = one_in(4) ? below(BYTES + 1) : length_to(70000);

    if (one_in(300))
        length = one_in(2) ? UINT64_MAX - below(9) : UINT32_MAX - (uint64_t)below(4);
    CALL(ccix_send_large, a_connection(), one_in(300) ? NULL : bytes_of(length), length, a_context(), send_flags());
}

static void reserve(void) {
    unsigned at = below(OTHERS);
    uint32_t length = a_length();
    void *place = NULL;

    if (rooms[at].connection && !one_in(30))
        CALL(ccix_cancel, rooms[at].connection->endpoint, rooms[at].room);
    rooms[at].connection = NULL;
    if (CALL(ccix_reserve, a_connection(), length, one_in(500) ? NULL : &place, &rooms[at].room) == CCI_SUCCESS)
        memcpy(place, bytes_of(length), length);
}

/* A room is reserved, written and committed; or cancelled, or both, or neither for a while. */
static void in_place(void) {
    cci_connection_t *connection = a_connection();
    unsigned at = below(OTHERS);
    uint32_t length = length_to(5000);
    uint64_t room = 0;
    void *place = NULL;

    if (!connection || CALL(ccix_reserve, connection, length, &place, &room) != CCI_SUCCESS)
        return;
    memcpy(place, bytes_of(length), length);
    if (one_in(500))
        room = draw();
    if (one_in(3))
        CALL(ccix_cancel, connection->endpoint, room);
    if (CALL(ccix_commit, one_in(200) ? a_connection() : connection, room, one_in(9) ? a_length() : length, a_context(),
             send_flags() & ~CCI_FLAG_NO_COPY) != CCI_SUCCESS &&
        !one_in(50))
        CALL(ccix_cancel, connection->endpoint, room);
    rooms[at].room = room;
}

static void set_large_limit(void) {
    CALL(ccix_set_large_limit, an_endpoint(), one_in(50) ? draw() : (uint64_t)below(4 * BYTES));
}

static void set_answer_buffers(void) {
    CALL(ccix_set_answer_buffers, an_endpoint(), one_in(50) ? (uint32_t)draw() : below(5));
}

/* Names a registration for others. */
static void publish(unsigned at) {
    memcpy(board->entries[process][ENDPOINTS + at], &registrations[at], sizeof registrations[at]);
}

static void register_memory(void) {
    unsigned at = below(REGISTRATIONS);
    cci_rma_handle_t *handle = NULL;
    cci_endpoint_t *endpoint = an_endpoint();
    uint64_t length = one_in(300) ? draw() : one_in(300) ? 0 : 1 + length_to(BYTES - 1);
    int flags = one_in(200) ? (int)draw() : (int)below(4) << 4 | CCI_FLAG_READ;
    void *start = memory, *own = allocated[below(OTHERS)];
    int status;

    /* A length beyond the memory is never used: no range outside is named. */
    if (length <= BYTES && one_in(2))
        start = memory + (BYTES - length);
    if (own && one_in(2)) {
        start = own;
        length = 4096;
    } else if (length > BYTES) {
        length = UINT64_MAX - below(4096);
    }
    if (registered_at[at])
        CALL(cci_rma_deregister, registered_at[at], &registrations[at]);
    registered_at[at] = NULL;
    if (one_in(2))
        status = CALL(cci_rma_register, endpoint, start, length, flags, one_in(500) ? NULL : &handle);
    else
        status = CALL(ccix_rma_register, endpoint, one_in(3) ? a_connection() : NULL, start, length, flags,
                      one_in(50) ? below(5) : CCIX_MEMORY_HOST, &handle);
    if (status == CCI_SUCCESS && handle) {
        registered_at[at] = endpoint;
        memcpy((void *)(uintptr_t)&registrations[at], handle, sizeof registrations[at]);
        publish(at);
    }
}

static void deregister(void) {
    unsigned at = below(REGISTRATIONS);
    static const struct cci_rma_handle nothing = {{1, 2, 3, 4}};

    CALL(cci_rma_deregister, registered_at[at], one_in(100) ? NULL : one_in(50) ? &nothing : &registrations[at]);
    registered_at[at] = NULL;
}

/* One of this program: as a rule of the endpoint of the connection. */
static cci_rma_handle_t *a_local(const cci_connection_t *connection) {
    unsigned at = below(REGISTRATIONS), tries;

    for (tries = 0; tries < 8 && connection && registered_at[at] != connection->endpoint; tries++)
        at = below(REGISTRATIONS);
    return (cci_rma_handle_t *)&registrations[at];
}

/* A registration of a peer: that of the other process, or of this one; sometimes a forged one. */
static void a_remote(struct cci_rma_handle *into) {
    int of = processes == 2 && one_in(2) ? !process : process;

    memcpy((void *)(uintptr_t)into, board->entries[of][ENDPOINTS + below(REGISTRATIONS)], sizeof *into);
    if (one_in(100))
        ((unsigned char *)(uintptr_t)into)[below(sizeof *into)] ^= (unsigned char)draw();
}

static int rma_flags(void) {
    int flags = one_in(2) ? CCI_FLAG_READ : CCI_FLAG_WRITE;

    if (one_in(5))
        flags |= CCI_FLAG_FENCE;
    return one_in(100) ? flags ^ (CCI_FLAG_READ | CCI_FLAG_WRITE) : flags | send_flags();
}

static void rma(void) {
    struct cci_rma_handle remote;
    cci_connection_t *connection = a_connection();
    uint64_t length = length_to(one_in(10) ? BYTES : 4000);
    uint32_t message = one_in(2) ? 0 : length_to(500);

    a_remote(&remote);
    CALL(cci_rma, connection, message ? bytes_of(message) : NULL, message, one_in(300) ? NULL : a_local(connection), length_to(100),
         one_in(300) ? NULL : (cci_rma_handle_t *)&remote, one_in(200) ? draw() : length_to(100),
         one_in(200) ? draw() : length, a_context(), rma_flags());
}

static void atomic(void) {
    struct cci_rma_handle remote;
    cci_connection_t *connection = a_connection();
    struct ccix_atomic of = {1 + below(2), one_in(2) ? 4 : 8, draw(), draw() & 1};

    a_remote(&remote);
    if (one_in(50))
        of.operation = (uint32_t)draw();
    if (one_in(50))
        of.width = below(17);
    CALL(ccix_rma_atomic, connection, NULL, 0, a_local(connection), 8 * below(4), (cci_rma_handle_t *)&remote, one_in(50) ? draw() : 8 * (uint64_t)below(4),
         one_in(300) ? NULL : &of, a_context(), send_flags() | (one_in(5) ? CCI_FLAG_FENCE : 0));
}

static void import(void) {
    struct cci_rma_handle remote;
    unsigned at = below(OTHERS);
    uint64_t length = 0;
    void *start = NULL;
    int flags = 0;

    if (imports[at])
        CALL(ccix_release_import, imports[at]);
    imports[at] = 0;
    a_remote(&remote);
    if (CALL(ccix_import, a_connection(), (cci_rma_handle_t *)&remote, &start, &length, &flags, &imports[at]) ==
        CCI_SUCCESS)
        look_at(start, (uint32_t)length);
}

static void check_import(void) {
    unsigned at = below(OTHERS);

    if (!imports[at] && !one_in(20))
        return;
    CALL(ccix_check_import, imports[at]);
    if (one_in(4)) {
        CALL(ccix_release_import, imports[at]);
        if (!one_in(20))
            imports[at] = 0;
    }
}

static void allocate(void) {
    unsigned at = below(OTHERS);
    void *stale = allocated[at];

    if (stale) {
        CALL(ccix_free, stale);
        if (one_in(20))
            CALL(ccix_free, stale);
        allocated[at] = NULL;
    }
    if (CALL(ccix_alloc, one_in(100) ? 0 : one_in(100) ? SIZE_MAX - below(8192) : 4096 + length_to(70000),
             one_in(300) ? NULL : &allocated[at]) == CCI_SUCCESS)
        look_at(allocated[at], 4096);
    else
        allocated[at] = NULL;
}

static void connect_to(void) {
    char uri[ENTRY_BYTES], data[CCI_CONN_REQ_LEN + 8] = {0};
    struct timeval limit = {0, (suseconds_t)(1000 + below(500000))};
    uint32_t length = one_in(4) ? below(CCI_CONN_REQ_LEN + 4) : below(16);
    int of = processes == 2 && one_in(2) ? !process : process;
    cci_conn_attribute_t attribute = (cci_conn_attribute_t)below(3);

    memcpy(uri, board->entries[of][below(ENDPOINTS)], sizeof uri);
    uri[sizeof uri - 1] = 0;
    if (one_in(50))
        uri[below(16)] = (char)draw();
    /* A group or another host would leave this one. */
    if (one_in(200))
        attribute = (cci_conn_attribute_t)(5 + below(9));
    if (one_in(100))
        limit.tv_sec = -1;
    CALL(cci_connect, an_endpoint(), one_in(300) ? NULL : uri, one_in(300) ? NULL : data, length, attribute, a_context(),
         0, one_in(20) ? NULL : &limit);
}

static void disconnect(void) {
    unsigned at = below(CONNECTIONS);

    CALL(cci_disconnect, connections[at]);
    if (!one_in(8))
        connections[at] = NULL;
}

static void connection_info(void) {
    struct ccix_connection_report info;

    memset(&info, 0, sizeof info);
    info.size = one_in(10) ? below(sizeof info + 1) : sizeof info;
    CALL(ccix_connection_info, a_connection(), one_in(300) ? NULL : &info);
}

static void get_opt(void) {
    cci_opt_name_t name = (cci_opt_name_t)below(one_in(20) ? 12 : 8);
    union {
        char *uri;
        uint32_t number;
        uint32_t alignment[6];
    } value;
    const void *of = name >= CCI_OPT_CONN_SEND_TIMEOUT ? (const void *)a_connection() : (const void *)an_endpoint();

    memset(&value, 0, sizeof value);
    if (CALL(cci_get_opt, of, name, one_in(300) ? NULL : &value) == CCI_SUCCESS && name == CCI_OPT_ENDPT_URI)
        free(value.uri);
}

static void set_opt(void) {
    static const cci_opt_name_t settable[] = {CCI_OPT_ENDPT_SEND_TIMEOUT,       CCI_OPT_ENDPT_RECV_BUF_COUNT,
                                              CCI_OPT_ENDPT_SEND_BUF_COUNT,     CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT,
                                              CCI_OPT_CONN_SEND_TIMEOUT,        CCI_OPT_CONN_KEEPALIVE_TIMEOUT};
    cci_opt_name_t name = one_in(50) ? (cci_opt_name_t)(4 + below(2) * 5) : settable[below(6)];
    uint32_t value = 10000 + below(100000);
    const void *of = name >= CCI_OPT_CONN_SEND_TIMEOUT ? (const void *)a_connection() : (const void *)an_endpoint();

    if (name == CCI_OPT_ENDPT_RECV_BUF_COUNT || name == CCI_OPT_ENDPT_SEND_BUF_COUNT)
        value = one_in(50) ? (uint32_t)draw() : 16 + below(64);
    else if (name != CCI_OPT_ENDPT_SEND_TIMEOUT && name != CCI_OPT_CONN_SEND_TIMEOUT && one_in(3))
        value = 0;
    CALL(cci_set_opt, of, name, one_in(300) ? NULL : &value);
}

static cci_device_t *a_device(void) {
    cci_device_t *const *devices = NULL;

    if (CALL(cci_get_devices, one_in(300) ? NULL : &devices) != CCI_SUCCESS || one_in(4))
        return NULL;
    return devices[0];
}

static void forget_endpoint(unsigned at) {
    memset(board->entries[process][at], 0, ENTRY_BYTES);
    if (endpoints[at].endpoint)
        CALL(cci_destroy_endpoint, endpoints[at].endpoint);
}

/* Its URI, and a send timeout, so that BLOCKING ends. */
static void begin_endpoint(unsigned at) {
    cci_endpoint_t *endpoint = endpoints[at].endpoint;
    uint32_t limit = 50000;
    char *uri = NULL;

    CALL(cci_set_opt, endpoint, CCI_OPT_ENDPT_SEND_TIMEOUT, &limit);
    CALL(ccix_set_large_limit, endpoint, 4 * BYTES);
    if (CALL(cci_get_opt, endpoint, CCI_OPT_ENDPT_URI, &uri) != CCI_SUCCESS)
        return;
    PROMISE(strlen(uri) < ENTRY_BYTES);
    strcpy((char *)board->entries[process][at], uri);
    free(uri);
}

static void create_endpoint(void) {
    unsigned at = below(ENDPOINTS);
    struct ccix_endpoint_options options = {sizeof options, below(4), 32 + below(64), 32 + below(64), NULL};
    cci_endpoint_t *endpoint = NULL;
    cci_os_handle_t *fd = one_in(2) ? &endpoints[at].fd : NULL;
    cci_device_t *device = a_device();
    int status;

    forget_endpoint(at);
    endpoints[at].fd = -1;
    if (one_in(50))
        options.size = below(2 * sizeof options);
    if (options.size > sizeof options)
        options.size = sizeof options;
    if (one_in(50))
        options.flags = (uint32_t)draw();
    switch (below(8)) {
    case 0:
        status = CALL(cci_create_endpoint, device, (int)draw(), one_in(50) ? NULL : &endpoint, fd);
        break;
    case 1:
        status = CALL(cci_create_endpoint_at, device, one_in(3) ? "no such place" : strcmp(transport, "sm") ? "0" : "0/0",
                      0, &endpoint, fd);
        break;
    default:
        status = CALL(ccix_create_endpoint, device, one_in(20) ? NULL : &options, &endpoint, fd);
    }
    if (status != CCI_SUCCESS)
        return;
    endpoints[at].endpoint = endpoint;
    begin_endpoint(at);
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

static void answer_held(void) {
    cci_event_t *event = held[below(HELD)];

    if (event && one_in(2))
        CALL(cci_accept, event, a_context());
    else
        CALL(ccix_request_peer, event, NULL);
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

/* Calls of the job of this process, which has one rank. Once it was left, none joins it again. */
static void job(void) {
    struct timeval limit = {5, 0};
    struct ccix_job_report info = {0};
    char key[16] = "key";
    char value[64];
    uint32_t length = sizeof value;
    uint64_t values[4] = {0};
    uint32_t lengths[4];

    key[3] = (char)('a' + below(26));
    info.size = one_in(20) ? below(sizeof info + 1) : sizeof info;
    switch (below(6)) {
    case 0:
        if (joins > 0 && CALL(ccix_job_join, &limit) == CCI_SUCCESS)
            joins++;
        break;
    case 1:
        CALL(ccix_job_info, &info);
        break;
    case 2:
        CALL(ccix_job_publish, one_in(20) ? "" : key, payload, one_in(20) ? 65537 : below(80));
        break;
    case 3:
        /* One that nobody has published would be waited for. */
        if (CALL(ccix_job_publish, key, payload, 8) == CCI_EINVAL)
            CALL(ccix_job_look_up, one_in(20) ? 1 + below(9) : 0, key, value, &length);
        break;
    case 4:
        CALL(ccix_job_exchange, payload, below(9), one_in(3) ? NULL : values, 8, one_in(3) ? NULL : lengths);
        break;
    default:
        if (joins > 1 && CALL(ccix_job_leave) == CCI_SUCCESS)
            joins--;
    }
}

/* What is done once in a job, and much of the rest: the first end of the library ends the job. */
static void begin_job(void) {
    struct timeval limit = {5, 0};
    struct ccix_job_report info = {0};
    cci_endpoint_t *endpoint = NULL;
    char value[8];
    uint32_t length = sizeof value;
    unsigned at;

    if (CALL(ccix_job_join, &limit) != CCI_SUCCESS)
        return;
    joins = 1;
    if (CALL(ccix_job_open, NULL, &endpoint, NULL) == CCI_SUCCESS) {
        endpoints[0].endpoint = endpoint;
        begin_endpoint(0);
    }
    CALL(ccix_job_open, NULL, &endpoint, NULL);
    CALL(ccix_job_publish, "first", payload, 8);
    CALL(ccix_job_look_up, 0, "first", value, &length);
    CALL(ccix_job_exchange, payload, 8, NULL, 0, NULL);
    info.size = sizeof info;
    CALL(ccix_job_info, &info);
    if (CALL(ccix_job_join, &limit) == CCI_SUCCESS && CALL(ccix_job_leave) != CCI_SUCCESS)
        joins++;
    for (at = 0; at < 200; at++)
        job();
}

const struct operation operations[] = {
    {get_event, 240},   {get_events, 30},  {poll_events, 30},        {wait_event, 10},        {return_event, 60},
    {wake, 4},          {arm, 8},          {watch_fd, 4},            {send_message, 120},     {send_parts, 40},
    {answer, 20},       {send_large, 10},  {in_place, 40},           {reserve, 4},            {set_large_limit, 1},
    {set_answer_buffers, 1},               {register_memory, 14},    {deregister, 3},         {rma, 60},
    {atomic, 20},       {import, 8},       {check_import, 8},        {allocate, 6},           {connect_to, 30},
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
