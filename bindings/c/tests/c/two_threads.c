/*
 * A server and a client in two threads, which exchange short and long messages and sleep in
 * between: for a sanitizer of the program. With an argument both write one word without a lock.
 */

#include "check.h"

#include <pthread.h>

#define MESSAGES 500

static cci_endpoint_t *server;
static int word;
static int is_racing;

static cci_event_t *next_event(cci_endpoint_t *endpoint)
{
    cci_event_t *event;
    CHECK_OK(ccix_wait(&endpoint, 1, NULL, &event, NULL));
    return event;
}

static void *serve(void *unused)
{
    int left = MESSAGES;
    (void)unused;
    if (is_racing)
        word++;
    while (left > 0) {
        cci_event_t *event = next_event(server);
        if (event->type == CCI_EVENT_CONNECT_REQUEST) {
            CHECK_OK(cci_accept(event, NULL));
        } else if (event->type == CCI_EVENT_RECV) {
            left--;
            CHECK_OK(cci_send(event->recv.connection, event->recv.ptr, event->recv.len, NULL, CCI_FLAG_SILENT));
        }
        CHECK_OK(cci_return_event(event));
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static char bytes[2000];
    cci_endpoint_t *client;
    cci_connection_t *connection = NULL;
    cci_device_t *device;
    pthread_t thread;
    char *uri;
    int left = MESSAGES;

    (void)argv;
    is_racing = argc > 1;
    start();
    server = open_endpoint(NULL);
    CHECK_OK(cci_get_opt((cci_opt_handle_t *)server, CCI_OPT_ENDPT_URI, &uri));
    CHECK_OK(ccix_device_for(uri, &device));
    CHECK_OK(cci_create_endpoint(device, 0, &client, NULL));
    CHECK(pthread_create(&thread, NULL, serve, NULL) == 0);
    if (is_racing)
        word++;
    CHECK_OK(cci_connect(client, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL));
    while (left > 0) {
        cci_event_t *event = next_event(client);
        int is_due = event->type == CCI_EVENT_CONNECT;
        if (is_due) {
            CHECK_STATUS((int)event->connect.status, CCI_SUCCESS);
            connection = event->connect.connection;
        } else if (event->type == CCI_EVENT_RECV) {
            is_due = --left > 0;
        }
        if (is_due)
            CHECK_OK(cci_send(connection, bytes, left % 2 ? 8 : sizeof bytes, NULL, CCI_FLAG_SILENT));
        CHECK_OK(cci_return_event(event));
    }
    CHECK(pthread_join(thread, NULL) == 0);
    free(uri);
    CHECK_OK(cci_destroy_endpoint(client));
    CHECK_OK(cci_destroy_endpoint(server));
    CHECK_OK(cci_finalize());
    return 0;
}
