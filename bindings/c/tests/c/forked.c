/*
 * Fork: inherited handles are dead in the child, which starts afresh; the parent goes on as if
 * nothing had happened.
 */

#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

static cci_endpoint_t *endpoint;
static struct pair pair;
static cci_event_t *held;
static cci_event_t *request;
static cci_rma_handle_t *handle;
static char memory[64];

static void inherited_handles_are_dead(void)
{
    struct ccix_connection_report info;
    cci_event_t *event = NULL;
    cci_rma_handle_t *other;
    uint32_t value = 0;
    char *uri = NULL;

    info.size = sizeof(info);
    CHECK_STATUS(cci_get_event(endpoint, &event), CCI_ERR_DEVICE_DEAD);
    CHECK(event == NULL);
    CHECK_STATUS(cci_return_event(held), CCI_ERR_DEVICE_DEAD);
    CHECK_STATUS(cci_accept(request, NULL), CCI_ERR_DEVICE_DEAD);
    CHECK_STATUS(cci_reject(request), CCI_ERR_DEVICE_DEAD);
    CHECK_STATUS(ccix_accept_on(request, endpoint, NULL), CCI_ERR_DEVICE_DEAD);
    CHECK_STATUS(cci_arm_os_handle(endpoint, 0), CCI_ERR_DEVICE_DEAD);
    CHECK_STATUS(cci_connect(endpoint, "sm://1/1", NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_ERR_DEVICE_DEAD);
    CHECK_STATUS(cci_send(pair.client, "x", 1, NULL, 0), CCI_ERR_DEVICE_DEAD);
    CHECK_STATUS(cci_send(pair.client, "x", 1, NULL, CCI_FLAG_BLOCKING), CCI_ERR_DEVICE_DEAD);
    CHECK_STATUS(cci_sendv(pair.client, NULL, 0, NULL, 0), CCI_ERR_DEVICE_DEAD);
    CHECK_STATUS(cci_rma(pair.client, NULL, 0, handle, 0, handle, 0, 1, NULL, CCI_FLAG_WRITE), CCI_ERR_DEVICE_DEAD);
    CHECK_STATUS(cci_rma_register(endpoint, memory, 1, 0, &other), CCI_ERR_DEVICE_DEAD);
    CHECK_STATUS(cci_rma_deregister(endpoint, handle), CCI_ERR_DEVICE_DEAD);
    CHECK_STATUS(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri), CCI_ERR_DEVICE_DEAD);
    CHECK_STATUS(cci_set_opt(endpoint, CCI_OPT_ENDPT_SEND_TIMEOUT, &value), CCI_ERR_DEVICE_DEAD);
    CHECK_STATUS(cci_get_opt(pair.client, CCI_OPT_CONN_SEND_TIMEOUT, &value), CCI_ERR_DEVICE_DEAD);
    CHECK_STATUS(cci_set_opt(pair.client, CCI_OPT_CONN_SEND_TIMEOUT, &value), CCI_ERR_DEVICE_DEAD);
    CHECK_STATUS(ccix_connection_info(pair.client, &info), CCI_ERR_DEVICE_DEAD);
    CHECK_STATUS(cci_disconnect(pair.client), CCI_ERR_DEVICE_DEAD);
    CHECK_STATUS(cci_destroy_endpoint(endpoint), CCI_ERR_DEVICE_DEAD);
    /* The child has initialized nothing. */
    CHECK_STATUS(cci_finalize(), CCI_ERROR);
    CHECK_STATUS(cci_create_endpoint(NULL, 0, &endpoint, NULL), CCI_ERROR);
}

static void ping(cci_endpoint_t *on, struct pair ends)
{
    cci_event_t *event;
    CHECK_OK(cci_send(ends.client, "ping", 4, MARK(2), CCI_FLAG_SILENT));
    event = expect(on, CCI_EVENT_RECV);
    CHECK(event->recv.connection == ends.server && memcmp(event->recv.ptr, "ping", 4) == 0);
    CHECK_OK(cci_return_event(event));
}

static int child(void)
{
    cci_endpoint_t *own;
    inherited_handles_are_dead();
    start();
    own = open_endpoint(NULL);
    CHECK(own != endpoint);
    ping(own, connect_self(own, CCI_CONN_ATTR_RO));
    CHECK_STATUS(cci_send(pair.client, "x", 1, NULL, 0), CCI_ERR_DEVICE_DEAD);
    CHECK_OK(cci_destroy_endpoint(own));
    CHECK_OK(cci_finalize());
    return 0;
}

int main(void)
{
    char *uri;
    pid_t pid;
    int status;
    int way;

    start();
    endpoint = open_endpoint(NULL);
    pair = connect_self(endpoint, CCI_CONN_ATTR_RO);
    CHECK_OK(cci_rma_register(endpoint, memory, sizeof(memory), CCI_FLAG_READ | CCI_FLAG_WRITE, &handle));
    CHECK_OK(cci_send(pair.client, "held", 4, NULL, CCI_FLAG_SILENT));
    held = expect(endpoint, CCI_EVENT_RECV);
    uri = uri_of(endpoint);
    CHECK_OK(cci_connect(endpoint, uri, NULL, 0, CCI_CONN_ATTR_RO, MARK(3), 0, NULL));
    request = expect(endpoint, CCI_EVENT_CONNECT_REQUEST);

    /* The child may leave with or without its exit handlers. */
    for (way = 0; way < 2; way++) {
        pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            status = child();
            if (way == 0) {
                _exit(status);
            }
            exit(status);
        }
        ping(endpoint, pair);
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        ping(endpoint, pair);
    }
    CHECK(memcmp(held->recv.ptr, "held", 4) == 0);
    CHECK_OK(cci_return_event(held));
    CHECK_OK(cci_reject(request));
    CHECK_OK(cci_return_event(request));
    CHECK_OK(cci_return_event(expect(endpoint, CCI_EVENT_CONNECT)));
    CHECK_OK(cci_rma_deregister(endpoint, handle));
    CHECK_OK(cci_destroy_endpoint(endpoint));
    CHECK_OK(cci_finalize());
    free(uri);
    return 0;
}
