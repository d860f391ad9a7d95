/*
 * Echo client: sends each word of its command line as a message and prints what comes back. To be
 * used with echo_server or epoll_loop.
 *
 *   cc echo_client.c $(pkg-config --cflags --libs cci) -o echo_client
 */

#include "example.h"

/* A reliable, ordered connection; the payload reaches the server with the request. */
static cci_connection_t *connect_to(cci_endpoint_t *endpoint, const char *uri)
{
    static const char payload[] = "I would like an echo";
    struct timeval limit = {10, 0};
    cci_connection_t *connection;
    cci_event_t *event;

    check(cci_connect(endpoint, uri, payload, sizeof(payload) - 1, CCI_CONN_ATTR_RO, NULL, 0, &limit), "cci_connect");
    /* Nothing else is under way, so the next event is the answer. */
    event = wait_event(endpoint);
    check((int)event->connect.status, "connecting");
    connection = event->connect.connection;
    check(cci_return_event(event), "cci_return_event");
    return connection;
}

/*
 * Waits for the echo. The message itself is done when its SEND event has come too; the context
 * tells which it was.
 */
static void wait_echo(cci_endpoint_t *endpoint, const char *word)
{
    int sent = 0;
    int echoed = 0;

    while (!sent || !echoed) {
        cci_event_t *event = wait_event(endpoint);

        if (event->type == CCI_EVENT_SEND && event->send.context == word) {
            check((int)event->send.status, "sending");
            sent = 1;
        } else if (event->type == CCI_EVENT_RECV) {
            /* A zero byte follows every message, so text can be printed as it is. */
            printf("%s\n", (const char *)event->recv.ptr);
            echoed = 1;
        }
        check(cci_return_event(event), "cci_return_event");
    }
}

int main(int argc, char **argv)
{
    cci_connection_t *connection;
    cci_endpoint_t *endpoint;
    cci_device_t *device;
    uint32_t caps;
    int at;

    if (argc < 3) {
        fprintf(stderr, "usage: %s URI WORD...\nURI is what echo_server or epoll_loop has printed\n", argv[0]);
        return 2;
    }
    check(cci_init(CCI_ABI_VERSION, 0, &caps), "cci_init");
    check(ccix_device_for(argv[1], &device), "ccix_device_for");
    check(cci_create_endpoint(device, 0, &endpoint, NULL), "cci_create_endpoint");
    connection = connect_to(endpoint, argv[1]);
    for (at = 2; at < argc; at++) {
        check(cci_send(connection, argv[at], (uint32_t)strlen(argv[at]), argv[at], 0), "cci_send");
        wait_echo(endpoint, argv[at]);
    }
    /* Goodbye: on a reliable connection what was sent is delivered, even if we leave at once. */
    check(cci_send(connection, NULL, 0, NULL, CCI_FLAG_BLOCKING), "cci_send");
    check(cci_disconnect(connection), "cci_disconnect");
    check(cci_destroy_endpoint(endpoint), "cci_destroy_endpoint");
    check(cci_finalize(), "cci_finalize");
    return 0;
}
