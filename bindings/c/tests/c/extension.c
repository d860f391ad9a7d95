/* The calls of ccix.h. */

#include "check.h"

#include <pthread.h>

static void connections_are_reported(void)
{
    cci_endpoint_t *endpoint = open_endpoint(NULL);
    struct pair pair = connect_self(endpoint, CCI_CONN_ATTR_RO);
    struct ccix_connection_report info;

    CHECK_OK(cci_send(pair.client, "x", 1, NULL, CCI_FLAG_SILENT));
    CHECK_OK(cci_return_event(expect(endpoint, CCI_EVENT_RECV)));
    memset(&info, 0xee, sizeof(info));
    info.size = sizeof(info);
    CHECK_OK(ccix_connection_info(pair.client, &info));
    CHECK(info.size == sizeof(info) && info.sent == 1 && info.received == 0);
    CHECK(strcmp(info.transport, endpoint->device->transport) == 0);
    CHECK(info.path[0] && info.rma_path[0] && info.why[0] && info.mtu > 0 && info.strays == 0);
    /* The texts are whole, and the short fields begin as they do. */
    CHECK(strlen(info.path_text) < sizeof(info.path_text) - 1 && strlen(info.why_text) < sizeof(info.why_text) - 1);
    CHECK(strlen(info.rma_path_text) < sizeof(info.rma_path_text) - 1);
    CHECK(strncmp(info.path, info.path_text, strlen(info.path)) == 0 && strlen(info.path_text) > 63);
    CHECK(strncmp(info.rma_path, info.rma_path_text, strlen(info.rma_path)) == 0);
    CHECK(strncmp(info.why, info.why_text, strlen(info.why)) == 0);
    CHECK_OK(ccix_connection_info(pair.server, &info));
    CHECK(info.sent == 0 && info.received == 1);

    /* A program of an older version, with a shorter structure, gets no more than that. */
    memset(&info, 0xee, sizeof(info));
    info.size = 8;
    CHECK_OK(ccix_connection_info(pair.client, &info));
    CHECK(info.why_text[0] == (char)0xee);
    CHECK(info.size == 8 && info.mtu > 0 && info.mtu != 0xeeeeeeee && info.window == 0xeeeeeeee);
    CHECK_OK(cci_destroy_endpoint(endpoint));
}

static void the_release_has_three_numbers(void)
{
    unsigned major, minor, patch;
    CHECK(sscanf(ccix_release(), "%u.%u.%u", &major, &minor, &patch) == 3);
    CHECK(major + minor + patch > 0);
}

static void uris_lead_to_devices(void)
{
    cci_endpoint_t *endpoint;
    cci_device_t *device = NULL;
    char *uri;

    CHECK_STATUS(ccix_device_for(NULL, &device), CCI_EINVAL);
    CHECK_STATUS(ccix_device_for("sm://1/1", NULL), CCI_EINVAL);
    CHECK_STATUS(ccix_device_for("nowhere", &device), CCI_EINVAL);
    CHECK_STATUS(ccix_device_for("scok://192.0.2.1:5000", &device), CCI_EINVAL);
    CHECK(strstr(ccix_last_error(), "sock") != NULL);
    CHECK_STATUS(ccix_device_for("verbs://1", &device), CCI_ENODEV);
    CHECK(device == NULL);
    CHECK_OK(ccix_device_for("sock://192.0.2.1:5000", &device));
    CHECK(device->up && strcmp(device->transport, "sock") == 0);
    CHECK_OK(cci_create_endpoint(device, 0, &endpoint, NULL));
    CHECK(endpoint->device == device);
    uri = uri_of(endpoint);
    CHECK_OK(ccix_device_for(uri, &device));
    CHECK(endpoint->device == device);
    free(uri);
    CHECK_OK(cci_destroy_endpoint(endpoint));
}

static cci_endpoint_t *single;

static void *use_from_another_thread(void *unused)
{
    cci_event_t *event;
    (void)unused;
    CHECK_STATUS(cci_get_event(single, &event), CCI_EINVAL);
    CHECK(strstr(ccix_last_error(), "thread") != NULL);
    return NULL;
}

static void *return_from_another_thread(void *event)
{
    CHECK_OK(cci_return_event(event));
    return NULL;
}

static void one_thread_owns_an_endpoint(void)
{
    struct ccix_endpoint_options asked = {sizeof(asked), CCIX_ENDPOINT_SINGLE_THREAD, 0, 0, NULL};
    cci_event_t *event;
    struct pair pair;
    pthread_t thread;

    CHECK_OK(ccix_create_endpoint(NULL, &asked, &single, NULL));
    pair = connect_self(single, CCI_CONN_ATTR_RO);
    CHECK(pthread_create(&thread, NULL, use_from_another_thread, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_OK(cci_send(pair.client, "x", 1, NULL, CCI_FLAG_SILENT));
    event = expect(single, CCI_EVENT_RECV);
    CHECK(pthread_create(&thread, NULL, return_from_another_thread, (void *)event) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_STATUS(cci_return_event(event), CCI_EINVAL);
    CHECK_OK(cci_destroy_endpoint(single));
}

static void buffers_and_service_are_as_asked(void)
{
    struct ccix_endpoint_options asked = {sizeof(asked), 0, 33, 44, NULL};
    cci_endpoint_t *endpoint;
    uint32_t value;

    CHECK_OK(ccix_create_endpoint(NULL, &asked, &endpoint, NULL));
    CHECK_OK(cci_get_opt(endpoint, CCI_OPT_ENDPT_RECV_BUF_COUNT, &value));
    CHECK(value == 33);
    CHECK_OK(cci_get_opt(endpoint, CCI_OPT_ENDPT_SEND_BUF_COUNT, &value));
    CHECK(value == 44);
    CHECK_OK(cci_destroy_endpoint(endpoint));
    asked.service = "no such place";
    CHECK_STATUS(ccix_create_endpoint(NULL, &asked, &endpoint, NULL), CCI_EINVAL);
    CHECK_OK(ccix_create_endpoint(NULL, NULL, &endpoint, NULL));
    CHECK_OK(cci_destroy_endpoint(endpoint));
}

/*
 * Connects `client` to `front`, which lets `worker` accept (NULL: itself), and gives the client's
 * end.
 */
static struct pair connect_by(cci_endpoint_t *client, cci_endpoint_t *front, cci_endpoint_t *worker)
{
    struct pair pair = {NULL, NULL};
    time_t deadline = time(NULL) + PATIENCE;
    char *uri = uri_of(front);
    cci_event_t *event;

    CHECK_OK(cci_connect(client, uri, "work", 4, CCI_CONN_ATTR_RO, MARK(2), 0, NULL));
    free(uri);
    event = next_of(front, client);
    CHECK(event->type == CCI_EVENT_CONNECT_REQUEST);
    CHECK_OK(worker ? ccix_accept_on(event, worker, MARK(3)) : cci_accept(event, MARK(3)));
    CHECK_STATUS(cci_accept(event, NULL), CCI_EINVAL);
    CHECK_OK(cci_return_event(event));
    while (!pair.client || !pair.server) {
        CHECK(time(NULL) < deadline);
        if (worker) {
            CHECK_STATUS(cci_get_event(front, &event), CCI_EAGAIN);
        }
        if (cci_get_event(client, &event) == CCI_SUCCESS) {
            CHECK(event->type == CCI_EVENT_CONNECT && event->connect.context == MARK(2));
            CHECK_STATUS((int)event->connect.status, CCI_SUCCESS);
            pair.client = event->connect.connection;
            CHECK_OK(cci_return_event(event));
        }
        if (cci_get_event(worker ? worker : front, &event) == CCI_SUCCESS) {
            CHECK(event->type == CCI_EVENT_ACCEPT && event->accept.context == MARK(3));
            CHECK_STATUS((int)event->accept.status, CCI_SUCCESS);
            pair.server = event->accept.connection;
            CHECK_OK(cci_return_event(event));
        }
    }
    return pair;
}

static void another_endpoint_accepts(void)
{
    cci_endpoint_t *front = open_endpoint(NULL);
    cci_endpoint_t *worker = open_endpoint(NULL);
    cci_endpoint_t *client = open_endpoint(NULL);
    struct pair pair = connect_by(client, front, worker);
    cci_event_t *event;

    CHECK(pair.server->endpoint == worker && pair.server->context == MARK(3));
    CHECK_OK(cci_send(pair.client, "to do", 5, NULL, CCI_FLAG_SILENT));
    event = next_of(worker, front);
    CHECK(event->type == CCI_EVENT_RECV && event->recv.connection == pair.server);
    CHECK_OK(cci_send(pair.server, event->recv.ptr, event->recv.len, NULL, CCI_FLAG_SILENT));
    CHECK_OK(cci_return_event(event));
    event = next_of(client, front);
    CHECK(event->type == CCI_EVENT_RECV && event->recv.connection == pair.client);
    CHECK_OK(cci_return_event(event));
    CHECK_OK(cci_destroy_endpoint(front));
    CHECK_OK(cci_destroy_endpoint(worker));
    CHECK_OK(cci_destroy_endpoint(client));
}

/* Only the endpoint that asked for it hears of a disconnect, after what was sent before it. */
static void disconnects_are_told(void)
{
    struct ccix_endpoint_options asked = {sizeof(asked), CCIX_ENDPOINT_DISCONNECT_EVENTS, 0, 0, NULL};
    cci_endpoint_t *server;
    cci_endpoint_t *client = open_endpoint(NULL);
    struct pair pair;
    cci_event_t *event;

    CHECK_OK(ccix_create_endpoint(NULL, &asked, &server, NULL));
    pair = connect_by(client, server, NULL);
    CHECK_OK(cci_send(pair.client, "bye", 3, NULL, CCI_FLAG_SILENT));
    CHECK_OK(cci_disconnect(pair.client));
    event = next_of(server, client);
    CHECK(event->type == CCI_EVENT_RECV);
    CHECK_OK(cci_return_event(event));
    event = next_of(server, client);
    CHECK(event->type == CCIX_EVENT_DISCONNECT);
    CHECK(strcmp(cci_event_type_str(event->type), "CCIX_EVENT_DISCONNECT") == 0);
    CHECK(strcmp(cci_event_type_str(CCIX_EVENT_IMPORT_ENDED), "CCIX_EVENT_IMPORT_ENDED") == 0);
    /* The compiler refuses, by -Wswitch, a case that is not in the enumeration. */
    switch (event->type) {
    case CCIX_EVENT_DISCONNECT:
        break;
    default:
        CHECK(0);
    }
    CHECK(event->keepalive.connection == pair.server && pair.server->context == MARK(3));
    CHECK_OK(cci_return_event(event));
    CHECK_STATUS(cci_send(pair.server, "x", 1, NULL, 0), CCI_ERR_DISCONNECTED);
    CHECK_OK(cci_disconnect(pair.server));
    CHECK_OK(cci_destroy_endpoint(server));
    CHECK_OK(cci_destroy_endpoint(client));
}

/* A connect that fails says why, beyond its status; other events have nothing to say. */
static void failed_connects_give_a_reason(void)
{
    cci_endpoint_t *endpoint = open_endpoint(NULL);
    cci_endpoint_t *gone = open_endpoint(NULL);
    char *uri = uri_of(gone);
    cci_event_t *event;

    CHECK_OK(cci_destroy_endpoint(gone));
    CHECK_OK(cci_connect(endpoint, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL));
    event = expect(endpoint, CCI_EVENT_CONNECT);
    CHECK_STATUS((int)event->connect.status, CCI_ECONNREFUSED);
    /* Way by way. */
    CHECK(strstr(ccix_event_reason(event), "nobody listens at sm://") != NULL);
    CHECK(strstr(ccix_event_reason(event), "nobody listens at tcp://") != NULL);
    CHECK_OK(cci_return_event(event));
    CHECK(ccix_event_reason(event)[0] == '\0');
    CHECK(ccix_event_reason(NULL)[0] == '\0');
    free(uri);

    uri = uri_of(endpoint);
    CHECK_OK(cci_connect(endpoint, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL));
    free(uri);
    event = expect(endpoint, CCI_EVENT_CONNECT_REQUEST);
    CHECK(ccix_event_reason(event)[0] == '\0');
    CHECK_OK(cci_reject(event));
    CHECK_OK(cci_return_event(event));
    event = expect(endpoint, CCI_EVENT_CONNECT);
    CHECK(strstr(ccix_event_reason(event), "rejected") != NULL);
    CHECK_OK(cci_return_event(event));
    CHECK_OK(cci_destroy_endpoint(endpoint));
}

int main(void)
{
    start();
    the_release_has_three_numbers();
    uris_lead_to_devices();
    connections_are_reported();
    one_thread_owns_an_endpoint();
    buffers_and_service_are_as_asked();
    another_endpoint_accepts();
    disconnects_are_told();
    failed_connects_give_a_reason();
    CHECK_OK(cci_finalize());
    return 0;
}
