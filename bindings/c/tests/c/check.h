/*
 * What the test programs share: checks that end the program, and the way to a connected endpoint.
 */

#ifndef CHECK_H
#define CHECK_H

#include <cci.h>
#include <ccix.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Longer than anything here takes, seconds. */
#define PATIENCE 60

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: not so: %s (last error: %s)\n", __FILE__, __LINE__, #condition,                    \
                    ccix_last_error());                                                                                \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#define CHECK_STATUS(call, expected) check_status((call), (expected), #call, __FILE__, __LINE__)
#define CHECK_OK(call) CHECK_STATUS(call, CCI_SUCCESS)

static inline const char *status_name(int status)
{
    const char *name = cci_strerror(NULL, (enum cci_status)status);
    return name ? name : "no status at all";
}

static inline void check_status(int status, int expected, const char *call, const char *file, int line)
{
    if (status != expected) {
        fprintf(stderr, "%s:%d: %s\n    gave   %s\n    wanted %s\n    last error: %s\n", file, line, call,
                status_name(status), status_name(expected), ccix_last_error());
        exit(1);
    }
}

/* A context: any pointer will do, and these are easy to tell apart. */
static char marks[16];
#define MARK(number) ((void *)&marks[number])

static inline void start(void)
{
    uint32_t caps = 77;
    CHECK_OK(cci_init(CCI_ABI_VERSION, 0, &caps));
    CHECK(caps == 0);
}

static inline cci_endpoint_t *open_endpoint(cci_os_handle_t *fd)
{
    cci_endpoint_t *endpoint = NULL;
    CHECK_OK(cci_create_endpoint(NULL, 0, &endpoint, fd));
    CHECK(endpoint != NULL);
    return endpoint;
}

static inline char *uri_of(cci_endpoint_t *endpoint)
{
    char *uri = NULL;
    CHECK_OK(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri));
    CHECK(uri != NULL && uri[0] != '\0');
    return uri;
}

/*
 * The next event of `endpoint`, while `other` (or NULL) gets its turns too; `other` must have no
 * event of its own.
 */
static inline cci_event_t *next_of(cci_endpoint_t *endpoint, cci_endpoint_t *other)
{
    time_t deadline = time(NULL) + PATIENCE;
    while (time(NULL) < deadline) {
        cci_event_t *event = NULL;
        int status = cci_get_event(endpoint, &event);
        if (status == CCI_SUCCESS) {
            CHECK(event != NULL);
            return event;
        }
        CHECK_STATUS(status, CCI_EAGAIN);
        CHECK(event == NULL);
        if (other) {
            CHECK_STATUS(cci_get_event(other, &event), CCI_EAGAIN);
        }
    }
    fprintf(stderr, "no event within %d s\n", PATIENCE);
    exit(1);
}

static inline cci_event_t *next(cci_endpoint_t *endpoint)
{
    return next_of(endpoint, NULL);
}

/* The next event, which is of this type. */
static inline cci_event_t *expect(cci_endpoint_t *endpoint, cci_event_type_t type)
{
    cci_event_t *event = next(endpoint);
    if (event->type != type) {
        fprintf(stderr, "got %s, wanted %s\n", cci_event_type_str(event->type), cci_event_type_str(type));
        exit(1);
    }
    return event;
}

/* A SEND event with this status and context, returned. */
static inline void expect_sent(cci_endpoint_t *endpoint, int status, const void *context)
{
    cci_event_t *event = expect(endpoint, CCI_EVENT_SEND);
    CHECK_STATUS((int)event->send.status, status);
    CHECK(event->send.context == context);
    CHECK_OK(cci_return_event(event));
}

/* Both ends of a connection. */
struct pair {
    cci_connection_t *client;
    cci_connection_t *server;
};

/*
 * Connects an endpoint to itself: contexts MARK(0) for the client's end, MARK(1) for the server's.
 */
static inline struct pair connect_self(cci_endpoint_t *endpoint, cci_conn_attribute_t attribute)
{
    struct pair pair = {NULL, NULL};
    char *uri = uri_of(endpoint);
    cci_event_t *request;

    CHECK_OK(cci_connect(endpoint, uri, "hello", 5, attribute, MARK(0), 0, NULL));
    free(uri);
    request = expect(endpoint, CCI_EVENT_CONNECT_REQUEST);
    CHECK(request->request.data_len == 5 && memcmp(request->request.data_ptr, "hello", 5) == 0);
    CHECK(request->request.attribute == attribute);
    CHECK_OK(cci_accept(request, MARK(1)));
    CHECK_OK(cci_return_event(request));
    while (!pair.client || !pair.server) {
        cci_event_t *event = next(endpoint);
        if (event->type == CCI_EVENT_CONNECT) {
            CHECK_STATUS((int)event->connect.status, CCI_SUCCESS);
            CHECK(event->connect.context == MARK(0));
            pair.client = event->connect.connection;
        } else {
            CHECK(event->type == CCI_EVENT_ACCEPT);
            CHECK_STATUS((int)event->accept.status, CCI_SUCCESS);
            CHECK(event->accept.context == MARK(1));
            pair.server = event->accept.connection;
        }
        CHECK_OK(cci_return_event(event));
    }
    CHECK(pair.client->endpoint == endpoint && pair.server->endpoint == endpoint);
    CHECK(pair.client->context == MARK(0) && pair.server->context == MARK(1));
    CHECK(pair.client->attribute == attribute && pair.server->attribute == attribute);
    CHECK(pair.client->max_send_size > 0 && pair.server->max_send_size > 0);
    return pair;
}

#endif /* CHECK_H */
