/* Requests: each is answered once, and returned after that. */

#include "check.h"

static cci_endpoint_t *endpoint;

static cci_event_t *ask(const void *context)
{
    char *uri = uri_of(endpoint);
    CHECK_OK(cci_connect(endpoint, uri, NULL, 0, CCI_CONN_ATTR_RU, context, 0, NULL));
    free(uri);
    return expect(endpoint, CCI_EVENT_CONNECT_REQUEST);
}

static void rejected(void)
{
    cci_event_t *request = ask(MARK(3));
    cci_event_t *event;

    CHECK(request->request.data_len == 0);
    CHECK_STATUS(cci_return_event(request), CCI_EINVAL);
    CHECK_OK(cci_reject(request));
    CHECK_STATUS(cci_reject(request), CCI_EINVAL);
    CHECK_STATUS(cci_accept(request, NULL), CCI_EINVAL);
    CHECK_STATUS(ccix_accept_on(request, endpoint, NULL), CCI_EINVAL);
    CHECK_OK(cci_return_event(request));
    CHECK_STATUS(cci_return_event(request), CCI_EINVAL);
    CHECK_STATUS(cci_reject(request), CCI_EINVAL);
    event = expect(endpoint, CCI_EVENT_CONNECT);
    CHECK_STATUS((int)event->connect.status, CCI_ECONNREFUSED);
    CHECK(event->connect.context == MARK(3) && event->connect.connection == NULL);
    CHECK_OK(cci_return_event(event));
}

static void accepted(void)
{
    cci_event_t *request = ask(MARK(4));
    cci_connection_t *ends[2] = {NULL, NULL};
    int count;

    CHECK_OK(cci_accept(request, MARK(5)));
    CHECK_STATUS(cci_accept(request, MARK(5)), CCI_EINVAL);
    CHECK_STATUS(cci_reject(request), CCI_EINVAL);
    CHECK_OK(cci_return_event(request));
    CHECK_STATUS(cci_return_event(request), CCI_EINVAL);
    for (count = 0; count < 2; count++) {
        cci_event_t *event = next(endpoint);
        /* An event of another type is no request. */
        CHECK_STATUS(cci_accept(event, NULL), CCI_EINVAL);
        CHECK_STATUS(cci_reject(event), CCI_EINVAL);
        if (event->type == CCI_EVENT_ACCEPT) {
            CHECK_STATUS((int)event->accept.status, CCI_SUCCESS);
            CHECK(event->accept.context == MARK(5));
            ends[0] = event->accept.connection;
        } else {
            CHECK(event->type == CCI_EVENT_CONNECT);
            CHECK_STATUS((int)event->connect.status, CCI_SUCCESS);
            CHECK(event->connect.context == MARK(4));
            ends[1] = event->connect.connection;
        }
        CHECK_OK(cci_return_event(event));
    }
    CHECK(ends[0] && ends[1] && ends[0] != ends[1]);
    CHECK(ends[0]->attribute == CCI_CONN_ATTR_RU);
    CHECK_OK(cci_disconnect(ends[0]));
    CHECK_OK(cci_disconnect(ends[1]));
}

/* A request may stay open while others are served. */
static void left_open(void)
{
    cci_event_t *waiting = ask(MARK(6));
    cci_event_t *event;

    accepted();
    rejected();
    CHECK_OK(cci_reject(waiting));
    CHECK_OK(cci_return_event(waiting));
    event = expect(endpoint, CCI_EVENT_CONNECT);
    CHECK(event->connect.context == MARK(6));
    CHECK_OK(cci_return_event(event));
}

static void nobody_listens(void)
{
    cci_endpoint_t *other = open_endpoint(NULL);
    char *uri = uri_of(other);
    cci_event_t *event;

    CHECK_OK(cci_destroy_endpoint(other));
    CHECK_OK(cci_connect(endpoint, uri, NULL, 0, CCI_CONN_ATTR_RO, MARK(7), 0, NULL));
    event = expect(endpoint, CCI_EVENT_CONNECT);
    CHECK_STATUS((int)event->connect.status, CCI_ECONNREFUSED);
    CHECK(event->connect.context == MARK(7) && event->connect.connection == NULL);
    CHECK_OK(cci_return_event(event));
    free(uri);
}

static void nobody_answers(void)
{
    cci_endpoint_t *other = open_endpoint(NULL);
    struct timeval limit = {0, 20000};
    char *uri = uri_of(other);
    cci_event_t *event;

    /* The other endpoint listens, but its program does not look. */
    CHECK_OK(cci_connect(endpoint, uri, NULL, 0, CCI_CONN_ATTR_RO, MARK(8), 0, &limit));
    event = expect(endpoint, CCI_EVENT_CONNECT);
    CHECK_STATUS((int)event->connect.status, CCI_ETIMEDOUT);
    CHECK(event->connect.context == MARK(8) && event->connect.connection == NULL);
    CHECK_OK(cci_return_event(event));
    CHECK_OK(cci_destroy_endpoint(other));
    free(uri);
}

int main(void)
{
    start();
    endpoint = open_endpoint(NULL);
    rejected();
    accepted();
    left_open();
    nobody_listens();
    nobody_answers();
    CHECK_OK(cci_destroy_endpoint(endpoint));
    CHECK_OK(cci_finalize());
    return 0;
}
