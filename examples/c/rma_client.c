/*
 * Remote memory, the client: writes into the buffer of rma_server, later reads it, and verifies
 * what it finds.
 *
 *   cc rma_client.c $(pkg-config --cflags --libs cci) -o rma_client
 */

#include "example.h"

static void ask(cci_endpoint_t *endpoint, const char *uri, unsigned char *buffer)
{
    struct timeval limit = {10, 0};
    struct cci_rma_handle remote;
    cci_connection_t *connection;
    cci_rma_handle_t *local;
    cci_event_t *event;

    check(cci_rma_register(endpoint, buffer, LENGTH, 0, &local), "cci_rma_register");
    check(cci_connect(endpoint, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, &limit), "cci_connect");
    event = wait_for(endpoint, CCI_EVENT_CONNECT);
    check((int)event->connect.status, "connecting");
    connection = event->connect.connection;
    check(cci_return_event(event), "cci_return_event");

    event = wait_for(endpoint, CCI_EVENT_RECV);
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
    cci_device_t *device;
    cci_endpoint_t *endpoint;
    unsigned char *buffer;
    uint32_t caps;

    if (argc != 2 || strncmp(argv[1], "--", 2) == 0) {
        fprintf(stderr, "usage: %s URI\nURI is what rma_server has printed\n", argv[0]);
        return 2;
    }
    buffer = calloc(1, LENGTH);
    if (!buffer) {
        fprintf(stderr, "no memory\n");
        return 1;
    }
    check(cci_init(CCI_ABI_VERSION, 0, &caps), "cci_init");
    check(ccix_device_for(argv[1], &device), "ccix_device_for");
    check(cci_create_endpoint(device, 0, &endpoint, NULL), "cci_create_endpoint");
    ask(endpoint, argv[1], buffer);
    check(cci_destroy_endpoint(endpoint), "cci_destroy_endpoint");
    check(cci_finalize(), "cci_finalize");
    free(buffer);
    return 0;
}
