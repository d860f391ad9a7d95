/*
 * A program without standard descriptors, or that closes them while it is connected: DESCRIPTORS
 * says which. The server says its URI; the client is given it.
 */

#include "check.h"

#include "../../../descriptors.h"

enum { SIZE = 100000 };

static cci_endpoint_t *endpoint;
static cci_connection_t *connection;
static unsigned char *memory;
static cci_rma_handle_t *handle;

static void expect_text(const char *text)
{
    cci_event_t *event = expect(endpoint, CCI_EVENT_RECV);
    CHECK(event->recv.len == strlen(text) && memcmp(event->recv.ptr, text, event->recv.len) == 0);
    CHECK_OK(cci_return_event(event));
}

static void tell(const char *text)
{
    CHECK_OK(cci_send(connection, text, (uint32_t)strlen(text), NULL, CCI_FLAG_BLOCKING | CCI_FLAG_SILENT));
}

/* Accepts, is written to and answers. */
static void serve(void)
{
    char *uri = uri_of(endpoint);
    cci_event_t *event;
    int at;

    dprintf(COPIES + 1, "%s\n", uri);
    free(uri);
    event = expect(endpoint, CCI_EVENT_CONNECT_REQUEST);
    CHECK_OK(cci_accept(event, NULL));
    CHECK_OK(cci_return_event(event));
    event = expect(endpoint, CCI_EVENT_ACCEPT);
    CHECK_STATUS((int)event->accept.status, CCI_SUCCESS);
    connection = event->accept.connection;
    CHECK_OK(cci_return_event(event));
    close_standard("accepted");
    CHECK_OK(cci_send(connection, handle, sizeof *handle, NULL, CCI_FLAG_BLOCKING | CCI_FLAG_SILENT));
    expect_text("written");
    for (at = 0; at < SIZE; at++) {
        CHECK(memory[at] == (unsigned char)(at * 7));
    }
    tell("seen");
    expect_text("over");
}

static void ask(const char *uri)
{
    struct cci_rma_handle remote;
    cci_event_t *event;
    int at;

    CHECK_OK(cci_connect(endpoint, uri, "hello", 5, CCI_CONN_ATTR_RO, NULL, 0, NULL));
    event = expect(endpoint, CCI_EVENT_CONNECT);
    CHECK_STATUS((int)event->connect.status, CCI_SUCCESS);
    connection = event->connect.connection;
    CHECK_OK(cci_return_event(event));
    close_standard("connected");
    event = expect(endpoint, CCI_EVENT_RECV);
    CHECK(event->recv.len == sizeof remote);
    memcpy(&remote, event->recv.ptr, sizeof remote);
    CHECK_OK(cci_return_event(event));
    for (at = 0; at < SIZE; at++) {
        memory[at] = (unsigned char)(at * 7);
    }
    CHECK_OK(cci_rma(connection, "written", 7, handle, 0, &remote, 0, SIZE, NULL,
                     CCI_FLAG_WRITE | CCI_FLAG_BLOCKING | CCI_FLAG_SILENT));
    expect_text("seen");
    tell("over");
}

int main(int argc, char **argv)
{
    cci_os_handle_t fd = -1;

    start();
    endpoint = open_endpoint(&fd);
    CHECK(fd > 2);
    memory = calloc(1, SIZE);
    CHECK(memory != NULL);
    CHECK_OK(cci_rma_register(endpoint, memory, SIZE, CCI_FLAG_READ | CCI_FLAG_WRITE, &handle));
    check_descriptors("opened");
    if (argc > 1) {
        ask(argv[1]);
    } else {
        serve();
    }
    restore_standard("exchanged");
    CHECK_OK(cci_rma_deregister(endpoint, handle));
    CHECK_OK(cci_destroy_endpoint(endpoint));
    CHECK_OK(cci_finalize());
    free(memory);
    return 0;
}
