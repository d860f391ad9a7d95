/* The OS handle: one select, one get_event, and so on, as many programs do it. */

#include "check.h"

#include <poll.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>

/* Waits by select until the handle is readable, then gets at most one event. */
static cci_event_t *wait_one(cci_endpoint_t *endpoint, cci_os_handle_t fd)
{
    time_t deadline = time(NULL) + PATIENCE;
    while (time(NULL) < deadline) {
        struct timeval limit = {PATIENCE, 0};
        cci_event_t *event = NULL;
        fd_set set;
        int status;

        FD_ZERO(&set);
        FD_SET(fd, &set);
        CHECK(select(fd + 1, &set, NULL, NULL, &limit) == 1);
        status = cci_get_event(endpoint, &event);
        if (status == CCI_SUCCESS) {
            return event;
        }
        CHECK_STATUS(status, CCI_EAGAIN);
    }
    fprintf(stderr, "no event within %d s\n", PATIENCE);
    exit(1);
}

/* With nothing to do the handle becomes silent after a few calls. */
static void becomes_silent(cci_endpoint_t *endpoint, cci_os_handle_t fd)
{
    time_t deadline = time(NULL) + PATIENCE;
    struct pollfd entry;
    cci_event_t *event;

    entry.fd = fd;
    entry.events = POLLIN;
    while (poll(&entry, 1, 10) != 0) {
        CHECK_STATUS(cci_get_event(endpoint, &event), CCI_EAGAIN);
        CHECK(time(NULL) < deadline);
    }
}

/*
 * Clients that connect, each with a payload and from an endpoint of its own, which needs the
 * server's help for that.
 */
#define CLIENTS 50

/* Connects with a payload, and sleeps until the answer is there. */
static cci_connection_t *connected(cci_endpoint_t *endpoint, cci_os_handle_t fd, const char *uri)
{
    static const char payload[512] = "hello";
    cci_connection_t *connection;
    cci_event_t *event;

    /* The server, which has had nothing to do for as long, sleeps too. */
    becomes_silent(endpoint, fd);
    CHECK_OK(cci_connect(endpoint, uri, payload, sizeof(payload), CCI_CONN_ATTR_RO, NULL, 0, NULL));
    event = wait_one(endpoint, fd);
    CHECK(event->type == CCI_EVENT_CONNECT);
    CHECK_STATUS((int)event->connect.status, CCI_SUCCESS);
    connection = event->connect.connection;
    CHECK_OK(cci_return_event(event));
    return connection;
}

/* The other process: connects again and again, sends one message, waits for its echo, twice. */
static int client(const char *uri)
{
    cci_connection_t *connection = NULL;
    cci_endpoint_t *endpoint;
    cci_os_handle_t fd;
    cci_event_t *event;
    int round;

    start();
    for (round = 0; round < CLIENTS; round++) {
        endpoint = open_endpoint(&fd);
        (void)connected(endpoint, fd, uri);
        CHECK_OK(cci_destroy_endpoint(endpoint));
    }
    endpoint = open_endpoint(&fd);
    connection = connected(endpoint, fd, uri);
    for (round = 0; round < 2; round++) {
        becomes_silent(endpoint, fd);
        CHECK_OK(cci_send(connection, "ping", 4, NULL, CCI_FLAG_SILENT));
        event = wait_one(endpoint, fd);
        CHECK(event->type == CCI_EVENT_RECV && event->recv.len == 4);
        CHECK_OK(cci_return_event(event));
    }
    CHECK_OK(cci_destroy_endpoint(endpoint));
    CHECK_OK(cci_finalize());
    return 0;
}

int main(void)
{
    cci_endpoint_t *endpoint;
    cci_os_handle_t fd = -1;
    int messages = 0;
    int status;
    char *uri;
    pid_t pid;

    start();
    endpoint = open_endpoint(&fd);
    CHECK(fd >= 0);
    uri = uri_of(endpoint);
    CHECK(strncmp(uri, "cci://", 6) == 0);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        _exit(client(uri));
    }
    while (messages < 2) {
        cci_event_t *event = wait_one(endpoint, fd);
        if (event->type == CCI_EVENT_CONNECT_REQUEST) {
            CHECK(event->request.data_len == 512 && strcmp(event->request.data_ptr, "hello") == 0);
            CHECK_OK(cci_accept(event, NULL));
        } else if (event->type == CCI_EVENT_RECV) {
            CHECK_OK(cci_send(event->recv.connection, event->recv.ptr, event->recv.len, NULL, CCI_FLAG_SILENT));
            messages++;
        } else {
            /* A client that has its answer may be gone before this side has its event. */
            CHECK(event->type == CCI_EVENT_ACCEPT);
        }
        CHECK_OK(cci_return_event(event));
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    becomes_silent(endpoint, fd);
    free(uri);
    CHECK_OK(cci_destroy_endpoint(endpoint));
    CHECK_OK(cci_finalize());
    return 0;
}
