/*
 * Remote memory: the server registers a buffer and sends its handle; the client writes into the buffer, and later reads it.
 * Both verify what they find.
 *
 *   cc rma.c $(pkg-config --cflags --libs cci) -o rma
 *   ./rma server            prints its URI
 *   ./rma client URI
 */

#include <ccix.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH ((uint64_t)1 << 20)

static void check(int status, const char *what)
{
    if (status != CCI_SUCCESS) {
        fprintf(stderr, "%s: %s\n", what, cci_strerror(NULL, (enum cci_status)status));
        exit(1);
    }
}

/* The next event of this type; others are returned on the way, unless they report a failure. */
static cci_event_t *wait_event(cci_endpoint_t *endpoint, cci_event_type_t type)
{
    for (;;) {
        cci_event_t *event;
        int status = cci_get_event(endpoint, &event);

        if (status == CCI_EAGAIN) {
            continue;
        }
        check(status, "cci_get_event");
        if (event->type == CCI_EVENT_SEND) {
            check((int)event->send.status, "an operation");
        }
        if (event->type == type) {
            return event;
        }
        check(cci_return_event(event), "cci_return_event");
    }
}

/* A message that says only that something has happened. */
static void wait_message(cci_endpoint_t *endpoint, const char *text)
{
    cci_event_t *event = wait_event(endpoint, CCI_EVENT_RECV);

    if (strcmp((const char *)event->recv.ptr, text) != 0) {
        fprintf(stderr, "got \"%s\" instead of \"%s\"\n", (const char *)event->recv.ptr, text);
        exit(1);
    }
    check(cci_return_event(event), "cci_return_event");
}

static void fill(unsigned char *buffer, unsigned seed)
{
    uint64_t at;

    for (at = 0; at < LENGTH; at++) {
        buffer[at] = (unsigned char)(at * 131 + at / 4096 + seed);
    }
}

static void verify(const unsigned char *buffer, unsigned seed, const char *what)
{
    uint64_t at;

    for (at = 0; at < LENGTH; at++) {
        if (buffer[at] != (unsigned char)(at * 131 + at / 4096 + seed)) {
            fprintf(stderr, "%s: byte %lu is wrong\n", what, (unsigned long)at);
            exit(1);
        }
    }
    printf("%s verified: %lu bytes\n", what, (unsigned long)LENGTH);
}

static void serve(cci_endpoint_t *endpoint, unsigned char *buffer)
{
    cci_connection_t *connection;
    cci_rma_handle_t *handle;
    cci_event_t *event;
    char *uri;

    /* The flags are the rights of peers. */
    check(cci_rma_register(endpoint, buffer, LENGTH, CCI_FLAG_READ | CCI_FLAG_WRITE, &handle), "cci_rma_register");
    check(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri), "cci_get_opt");
    printf("%s\n", uri);
    fflush(stdout);
    free(uri);

    event = wait_event(endpoint, CCI_EVENT_CONNECT_REQUEST);
    check(cci_accept(event, NULL), "cci_accept");
    check(cci_return_event(event), "cci_return_event");
    event = wait_event(endpoint, CCI_EVENT_ACCEPT);
    check((int)event->accept.status, "accepting");
    connection = event->accept.connection;
    check(cci_return_event(event), "cci_return_event");

    /* A handle is its 32 bytes: whoever has them, and a connection to us, can use the buffer. */
    check(cci_send(connection, handle, sizeof(*handle), NULL, 0), "cci_send");
    wait_message(endpoint, "written");
    verify(buffer, 1, "write");
    fill(buffer, 2);
    check(cci_send(connection, "refilled", 8, NULL, 0), "cci_send");
    wait_message(endpoint, "read");
    /* From here on nobody touches the buffer. */
    check(cci_rma_deregister(endpoint, handle), "cci_rma_deregister");
    check(cci_disconnect(connection), "cci_disconnect");
}

static void ask(cci_endpoint_t *endpoint, const char *uri, unsigned char *buffer)
{
    struct timeval limit = {10, 0};
    struct cci_rma_handle remote;
    cci_connection_t *connection;
    cci_rma_handle_t *local;
    cci_event_t *event;

    check(cci_rma_register(endpoint, buffer, LENGTH, 0, &local), "cci_rma_register");
    check(cci_connect(endpoint, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, &limit), "cci_connect");
    event = wait_event(endpoint, CCI_EVENT_CONNECT);
    check((int)event->connect.status, "connecting");
    connection = event->connect.connection;
    check(cci_return_event(event), "cci_return_event");

    event = wait_event(endpoint, CCI_EVENT_RECV);
    if (event->recv.len != sizeof(remote)) {
        fprintf(stderr, "the first message is no handle\n");
        exit(1);
    }
    memcpy(&remote, event->recv.ptr, sizeof(remote));
    check(cci_return_event(event), "cci_return_event");

    /* The server gets the message when the data have arrived. */
    fill(buffer, 1);
    check(cci_rma(connection, "written", 7, local, 0, &remote, 0, LENGTH, NULL, CCI_FLAG_WRITE), "cci_rma");
    wait_message(endpoint, "refilled");

    /* BLOCKING: no event; the data are here when the call returns. */
    check(cci_rma(connection, "read", 4, local, 0, &remote, 0, LENGTH, NULL, CCI_FLAG_READ | CCI_FLAG_BLOCKING),
          "cci_rma");
    printf("write verified by the server\n");
    verify(buffer, 2, "read");
    check(cci_rma_deregister(endpoint, local), "cci_rma_deregister");
    check(cci_disconnect(connection), "cci_disconnect");
}

int main(int argc, char **argv)
{
    int is_server = argc == 2 && strcmp(argv[1], "server") == 0;
    int is_client = argc == 3 && strcmp(argv[1], "client") == 0;
    cci_device_t *device = NULL;
    cci_endpoint_t *endpoint;
    unsigned char *buffer;
    uint32_t caps;

    if (!is_server && !is_client) {
        fprintf(stderr, "usage: %s server\n       %s client URI\n", argv[0], argv[0]);
        return 2;
    }
    buffer = calloc(1, LENGTH);
    if (!buffer) {
        fprintf(stderr, "no memory\n");
        return 1;
    }
    check(cci_init(CCI_ABI_VERSION, 0, &caps), "cci_init");
    /* A server takes the default device, a client the one that leads to its server. */
    if (is_client) {
        check(ccix_device_for(argv[2], &device), "ccix_device_for");
    }
    check(cci_create_endpoint(device, 0, &endpoint, NULL), "cci_create_endpoint");
    if (is_server) {
        serve(endpoint, buffer);
    } else {
        ask(endpoint, argv[2], buffer);
    }
    check(cci_destroy_endpoint(endpoint), "cci_destroy_endpoint");
    check(cci_finalize(), "cci_finalize");
    free(buffer);
    return 0;
}
