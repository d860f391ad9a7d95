/* libcci: events: taken, handled, returned. */

#include "cci_calls.h"

#include <poll.h>

static void add_connection(cci_connection_t *connection) {
    unsigned at = below(CONNECTIONS);

    if (!connection)
        return;
    if (connections[at] && !one_in(4))
        CALL(cci_disconnect, connections[at]);
    connections[at] = connection;
}

/* The bytes of an event are the program's until it is returned. */
void look_at(const void *bytes, uint32_t length) {
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
void handle(cci_event_t *event) {
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

void get_event(void) {
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

void get_events(void) {
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

void poll_events(void) {
    uint32_t count;

    CALL(ccix_poll, an_endpoint(), below(9), one_in(1000) ? NULL : on_event, NULL, one_in(3) ? NULL : &count);
}

void wait_event(void) {
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

void return_event(void) {
    unsigned at = below(HELD);

    if (!held[at])
        return;
    if (CALL(cci_return_event, held[at]) != CCI_SUCCESS)
        CALL(cci_reject, held[at]);
    /* Some stay, and are returned again. */
    if (!one_in(20))
        held[at] = NULL;
}

void wake(void) {
    CALL(ccix_wake, an_endpoint());
}

void arm(void) {
    CALL(cci_arm_os_handle, an_endpoint(), (int)below(2));
}

void watch_fd(void) {
    struct pollfd of = {endpoints[below(ENDPOINTS)].fd, POLLIN, 0};

    /* A closed number may be another file's: only asked. */
    if (of.fd > 2)
        poll(&of, 1, 0);
}

void answer_held(void) {
    cci_event_t *event = held[below(HELD)];

    if (event && one_in(2))
        CALL(cci_accept, event, a_context());
    else
        CALL(ccix_request_peer, event, NULL);
}
