/* Several events by one call, waits for several endpoints, and who sends a request. */

#include "check.h"

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

static void refused_arguments(void)
{
    cci_endpoint_t *endpoint = open_endpoint(NULL);
    cci_event_t *event = NULL;
    struct timeval now = {0, 0};
    uint32_t count = 7;

    CHECK_STATUS(ccix_get_events(NULL, &event, 1, &count), CCI_EINVAL);
    CHECK_STATUS(ccix_get_events(endpoint, NULL, 1, &count), CCI_EINVAL);
    CHECK_STATUS(ccix_get_events(endpoint, &event, 1, NULL), CCI_EINVAL);
    CHECK_STATUS(ccix_get_events(endpoint, &event, 0, &count), CCI_EINVAL);
    CHECK_STATUS(ccix_get_events(endpoint, &event, 1, &count), CCI_EAGAIN);
    CHECK(count == 0);
    CHECK_STATUS(ccix_poll(endpoint, 1, NULL, NULL, NULL), CCI_EINVAL);
    CHECK_STATUS(ccix_wait(NULL, 1, &now, &event, NULL), CCI_EINVAL);
    CHECK_STATUS(ccix_wait(&endpoint, 0, &now, &event, NULL), CCI_EINVAL);
    CHECK_STATUS(ccix_wait(&endpoint, 1, &now, NULL, NULL), CCI_EINVAL);
    CHECK_STATUS(ccix_wait(&endpoint, 1, &now, &event, NULL), CCI_EAGAIN);
    CHECK_STATUS(ccix_wake(NULL), CCI_EINVAL);
    CHECK_STATUS(ccix_request_peer(NULL, NULL), CCI_EINVAL);
    CHECK_OK(cci_destroy_endpoint(endpoint));
    CHECK_STATUS(ccix_wake(endpoint), CCI_EINVAL);
    CHECK_STATUS(ccix_get_events(endpoint, &event, 1, &count), CCI_EINVAL);
}

static void events_come_by_the_batch(void)
{
    cci_endpoint_t *endpoint = open_endpoint(NULL);
    struct pair pair = connect_self(endpoint, CCI_CONN_ATTR_RO);
    cci_event_t *events[40];
    uint32_t number, count, received = 0;

    for (number = 0; number < 100; number++) {
        CHECK_OK(cci_send(pair.client, &number, sizeof(number), NULL, CCI_FLAG_SILENT));
    }
    while (received < 100) {
        int status = ccix_get_events(endpoint, events, 40, &count);
        CHECK(status == (count ? CCI_SUCCESS : CCI_EAGAIN) && count <= 40);
        for (number = 0; number < count; number++) {
            CHECK(events[number]->type == CCI_EVENT_RECV);
            CHECK(memcmp(events[number]->recv.ptr, &received, sizeof(received)) == 0);
            CHECK_OK(cci_return_event(events[number]));
            received++;
        }
    }
    CHECK_OK(cci_destroy_endpoint(endpoint));
}

/* Answers go when sends do not. */
static void answers_have_buffers_of_their_own(void)
{
    struct ccix_endpoint_options options = {sizeof(options), 0, 0, 6, NULL};
    cci_endpoint_t *endpoint;
    struct pair pair;
    int number, received = 0, sent = 0;

    CHECK_OK(ccix_create_endpoint(NULL, &options, &endpoint, NULL));
    CHECK_STATUS(ccix_set_answer_buffers(NULL, 2), CCI_EINVAL);
    CHECK_STATUS(ccix_set_answer_buffers(endpoint, 6), CCI_EINVAL);
    CHECK_OK(ccix_set_answer_buffers(endpoint, 2));
    pair = connect_self(endpoint, CCI_CONN_ATTR_RO);
    CHECK_STATUS(ccix_answer(NULL, "x", 1, NULL, 0), CCI_EINVAL);
    CHECK_STATUS(ccix_answer(pair.client, NULL, 1, NULL, 0), CCI_EINVAL);
    CHECK_STATUS(ccix_answer(pair.client, "x", 1, NULL, CCI_FLAG_BLOCKING), CCI_EINVAL);
    for (number = 0; number < 4; number++) {
        CHECK_OK(cci_send(pair.client, "x", 1, NULL, 0));
    }
    CHECK_STATUS(cci_send(pair.client, "x", 1, NULL, 0), CCI_ENOBUFS);
    CHECK_OK(ccix_answer(pair.client, "x", 1, NULL, 0));
    CHECK_OK(ccix_answer(pair.client, "x", 1, NULL, 0));
    CHECK_STATUS(ccix_answer(pair.client, "x", 1, NULL, 0), CCI_ENOBUFS);
    while (received < 6 || sent < 6) {
        cci_event_t *event = next(endpoint);
        *(event->type == CCI_EVENT_RECV ? &received : &sent) += 1;
        CHECK_OK(cci_return_event(event));
    }
    CHECK_OK(cci_destroy_endpoint(endpoint));
}

struct handled {
    struct pair pair;
    uint32_t received, answers;
    cci_event_t *kept;
};

/* Answers each message; keeps every tenth. */
static int handle(void *arg, cci_event_t *event)
{
    struct handled *handled = arg;

    CHECK(event->type == CCI_EVENT_RECV);
    if (event->recv.connection == handled->pair.client) {
        handled->answers++;
        return 0;
    }
    CHECK_OK(ccix_answer(handled->pair.server, event->recv.ptr, event->recv.len, NULL, CCI_FLAG_SILENT));
    if (++handled->received % 10) {
        return 0;
    }
    if (handled->kept) {
        CHECK_OK(cci_return_event(handled->kept));
    }
    handled->kept = event;
    return 1;
}

static void handlers_answer_and_keep(void)
{
    cci_endpoint_t *endpoint = open_endpoint(NULL);
    struct handled handled = {connect_self(endpoint, CCI_CONN_ATTR_RO), 0, 0, NULL};
    uint32_t number, count;

    for (number = 0; number < 100; number++) {
        CHECK_OK(cci_send(handled.pair.client, &number, sizeof(number), NULL, CCI_FLAG_SILENT));
    }
    while (handled.answers < 100) {
        int status = ccix_poll(endpoint, 64, handle, &handled, &count);
        CHECK(status == (count ? CCI_SUCCESS : CCI_EAGAIN) && count <= 64);
    }
    CHECK(handled.received == 100);
    number = 99;
    CHECK(memcmp(handled.kept->recv.ptr, &number, sizeof(number)) == 0);
    CHECK_OK(cci_return_event(handled.kept));
    CHECK_STATUS(cci_return_event(handled.kept), CCI_EINVAL);
    CHECK_OK(cci_destroy_endpoint(endpoint));
}

static int ignore(void *seen, cci_event_t *event)
{
    *(cci_event_type_t *)seen = event->type;
    return 0;
}

static void request_that_a_handler_ignores_is_rejected(void)
{
    cci_endpoint_t *endpoint = open_endpoint(NULL);
    cci_event_type_t seen = CCI_EVENT_NONE;
    char *uri = uri_of(endpoint);
    cci_event_t *event;

    CHECK_OK(cci_connect(endpoint, uri, NULL, 0, CCI_CONN_ATTR_RO, MARK(2), 0, NULL));
    while (seen != CCI_EVENT_CONNECT_REQUEST) {
        int status = ccix_poll(endpoint, 1, ignore, &seen, NULL);
        CHECK(status == CCI_SUCCESS || status == CCI_EAGAIN);
    }
    event = expect(endpoint, CCI_EVENT_CONNECT);
    CHECK_STATUS((int)event->connect.status, CCI_ECONNREFUSED);
    CHECK_OK(cci_return_event(event));
    free(uri);
    CHECK_OK(cci_destroy_endpoint(endpoint));
}

static void *wake(void *endpoint)
{
    CHECK_OK(ccix_wake(endpoint));
    return NULL;
}

/* Waits until the endpoint is destroyed. */
static void *wait_in_vain(void *endpoint)
{
    cci_endpoint_t *waited = endpoint;
    cci_event_t *event;

    CHECK_STATUS(ccix_wait(&waited, 1, NULL, &event, NULL), CCI_EINVAL);
    return NULL;
}

static void *destroy(void *endpoint)
{
    usleep(10000);
    CHECK_OK(cci_destroy_endpoint(endpoint));
    return NULL;
}

static void waits_end(void)
{
    cci_os_handle_t fd;
    cci_endpoint_t *both[2] = {open_endpoint(&fd), open_endpoint(NULL)};
    struct pair pair = connect_self(both[1], CCI_CONN_ATTR_RO);
    struct pollfd polled = {fd, POLLIN, 0};
    cci_event_t *event = MARK(0);
    uint32_t which = 7;
    pthread_t thread, waiting[4];

    CHECK_OK(cci_send(pair.client, "x", 1, NULL, CCI_FLAG_SILENT));
    CHECK_OK(ccix_wait(both, 2, NULL, &event, &which));
    CHECK(which == 1 && event->type == CCI_EVENT_RECV);
    CHECK_OK(cci_return_event(event));
    CHECK(pthread_create(&thread, NULL, wake, (void *)both[0]) == 0);
    CHECK_STATUS(ccix_wait(both, 2, NULL, &event, &which), CCI_EAGAIN);
    CHECK(event == NULL && pthread_join(thread, NULL) == 0);
    while (poll(&polled, 1, 0) == 1) {
        CHECK_STATUS(cci_get_event(both[0], &event), CCI_EAGAIN);
    }
    CHECK_OK(ccix_wake(both[0]));
    CHECK(poll(&polled, 1, PATIENCE * 1000) == 1);
    /* The wake-up that no wait has taken ends the next one. */
    CHECK_STATUS(ccix_wait(both, 1, NULL, &event, NULL), CCI_EAGAIN);
    CHECK(pthread_create(&thread, NULL, destroy, (void *)both[0]) == 0);
    CHECK_STATUS(ccix_wait(both, 2, NULL, &event, &which), CCI_EINVAL);
    CHECK(event == NULL && pthread_join(thread, NULL) == 0);
    /* Every thread that waits for it is told. */
    for (which = 0; which < 4; which++) {
        CHECK(pthread_create(&waiting[which], NULL, wait_in_vain, (void *)both[1]) == 0);
    }
    destroy((void *)both[1]);
    for (which = 0; which < 4; which++) {
        CHECK(pthread_join(waiting[which], NULL) == 0);
    }
}

static void requests_tell_their_peer(void)
{
    cci_endpoint_t *endpoint = open_endpoint(NULL);
    char *uri = uri_of(endpoint);
    struct ccix_peer peer;
    cci_event_t *request;

    CHECK_OK(cci_connect(endpoint, uri, NULL, 0, CCI_CONN_ATTR_RO, MARK(2), 0, NULL));
    request = expect(endpoint, CCI_EVENT_CONNECT_REQUEST);
    memset(&peer, 0xee, sizeof(peer));
    peer.size = sizeof(peer);
    CHECK_OK(ccix_request_peer(request, &peer));
    CHECK(peer.size == sizeof(peer) && peer.known == (CCIX_PEER_USER | CCIX_PEER_PROCESS));
    CHECK(peer.user == geteuid() && peer.process == (uint32_t)getpid() && peer.address[0] == '\0');
    peer.size = 4;
    CHECK_STATUS(ccix_request_peer(request, &peer), CCI_EINVAL);
    CHECK_STATUS(ccix_request_peer(request, NULL), CCI_EINVAL);
    CHECK_OK(cci_reject(request));
    peer.size = sizeof(peer);
    CHECK_STATUS(ccix_request_peer(request, &peer), CCI_EINVAL);
    CHECK_OK(cci_return_event(request));
    free(uri);
    CHECK_OK(cci_destroy_endpoint(endpoint));
}

int main(void)
{
    start();
    refused_arguments();
    events_come_by_the_batch();
    answers_have_buffers_of_their_own();
    handlers_answer_and_keep();
    request_that_a_handler_ignores_is_rejected();
    waits_end();
    requests_tell_their_peer();
    CHECK_OK(cci_finalize());
    return 0;
}
