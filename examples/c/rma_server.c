/*
 * Remote memory, the server: registers a buffer, sends its handle, and verifies what the client has
 * written. To be used with rma_client.
 *
 *   cc rma_server.c $(pkg-config --cflags --libs cci) -o rma_server
 */

#include "example.h"

static void serve(cci_endpoint_t *endpoint, unsigned char *buffer)
{
    cci_connection_t *connection;
    cci_rma_handle_t *handle;
    cci_event_t *event;

    /* The flags are the rights of peers. */
    check(cci_rma_register(endpoint, buffer, LENGTH, CCI_FLAG_READ | CCI_FLAG_WRITE, &handle), "cci_rma_register");
    print_uri(endpoint);

    event = wait_for(endpoint, CCI_EVENT_CONNECT_REQUEST);
    check(cci_accept(event, NULL), "cci_accept");
    check(cci_return_event(event), "cci_return_event");
    event = wait_for(endpoint, CCI_EVENT_ACCEPT);
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

int main(int argc, char **argv)
{
    cci_endpoint_t *endpoint = open_server(argc, argv, NULL);
    unsigned char *buffer = calloc(1, LENGTH);

    if (!buffer) {
        fprintf(stderr, "no memory\n");
        return 1;
    }
    serve(endpoint, buffer);
    check(cci_destroy_endpoint(endpoint), "cci_destroy_endpoint");
    check(cci_finalize(), "cci_finalize");
    free(buffer);
    return 0;
}
