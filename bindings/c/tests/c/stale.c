/* Pointers that were valid once are refused, for as long as the process lives. */

#include "check.h"

static void after_disconnect(void)
{
    cci_endpoint_t *endpoint = open_endpoint(NULL);
    struct pair pair = connect_self(endpoint, CCI_CONN_ATTR_RO);
    struct ccix_connection_report info;
    uint32_t value = 1;
    cci_event_t *event;

    /* What was sent is delivered, and its event outlives the connection. */
    CHECK_OK(cci_send(pair.client, "last words", 10, NULL, CCI_FLAG_SILENT));
    event = expect(endpoint, CCI_EVENT_RECV);
    CHECK_OK(cci_disconnect(pair.client));
    CHECK_OK(cci_disconnect(pair.server));
    CHECK(event->recv.connection == pair.server && event->recv.connection->context == MARK(1));
    CHECK(memcmp(event->recv.ptr, "last words", 10) == 0);
    CHECK_OK(cci_return_event(event));

    info.size = sizeof(info);
    CHECK_STATUS(cci_disconnect(pair.client), CCI_EINVAL);
    CHECK_STATUS(cci_send(pair.client, "x", 1, NULL, 0), CCI_ERR_DISCONNECTED);
    CHECK_STATUS(cci_sendv(pair.server, NULL, 0, NULL, 0), CCI_ERR_DISCONNECTED);
    CHECK_STATUS(cci_set_opt(pair.client, CCI_OPT_CONN_SEND_TIMEOUT, &value), CCI_EINVAL);
    CHECK_STATUS(cci_get_opt(pair.client, CCI_OPT_CONN_SEND_TIMEOUT, &value), CCI_EINVAL);
    CHECK_STATUS(ccix_connection_info(pair.client, &info), CCI_EINVAL);
    CHECK_STATUS(cci_get_event(endpoint, &event), CCI_EAGAIN);
    CHECK_OK(cci_destroy_endpoint(endpoint));
}

static void after_destroy(void)
{
    cci_endpoint_t *endpoint = open_endpoint(NULL);
    struct pair pair = connect_self(endpoint, CCI_CONN_ATTR_RO);
    static char memory[64];
    cci_rma_handle_t *handle;
    cci_event_t *event;
    cci_event_t *none;
    char *uri = NULL;
    uint32_t value = 0;

    CHECK_OK(cci_rma_register(endpoint, memory, sizeof(memory), CCI_FLAG_WRITE, &handle));
    CHECK_OK(cci_send(pair.client, "x", 1, NULL, CCI_FLAG_SILENT));
    event = expect(endpoint, CCI_EVENT_RECV);
    CHECK_OK(cci_destroy_endpoint(endpoint));

    CHECK_STATUS(cci_destroy_endpoint(endpoint), CCI_EINVAL);
    CHECK_STATUS(cci_get_event(endpoint, &none), CCI_EINVAL);
    CHECK_STATUS(cci_arm_os_handle(endpoint, 0), CCI_EINVAL);
    CHECK_STATUS(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri), CCI_EINVAL);
    CHECK_STATUS(cci_set_opt(endpoint, CCI_OPT_ENDPT_SEND_TIMEOUT, &value), CCI_EINVAL);
    CHECK_STATUS(cci_connect(endpoint, "sm://1/1", NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_EINVAL);
    CHECK_STATUS(cci_rma_register(endpoint, memory, 1, 0, &handle), CCI_EINVAL);
    CHECK_STATUS(cci_rma_deregister(endpoint, handle), CCI_EINVAL);
    CHECK(cci_send(pair.client, "x", 1, NULL, 0) != CCI_SUCCESS);
    CHECK(cci_rma(pair.client, NULL, 0, handle, 0, handle, 0, 1, NULL, CCI_FLAG_WRITE) != CCI_SUCCESS);
    CHECK_STATUS(cci_disconnect(pair.client), CCI_EINVAL);
    CHECK_STATUS(cci_return_event(event), CCI_EINVAL);
    CHECK_STATUS(cci_accept(event, NULL), CCI_EINVAL);
    CHECK(uri == NULL);
}

/* Neither are they mistaken for what comes after them. */
static void after_reuse(void)
{
    cci_endpoint_t *first = open_endpoint(NULL);
    cci_endpoint_t *later;
    cci_event_t *event;
    int round;

    CHECK_OK(cci_destroy_endpoint(first));
    for (round = 0; round < 16; round++) {
        later = open_endpoint(NULL);
        CHECK(later != first);
        CHECK_STATUS(cci_get_event(first, &event), CCI_EINVAL);
        CHECK_OK(cci_destroy_endpoint(later));
    }
}

static void after_deregistration(void)
{
    cci_endpoint_t *endpoint = open_endpoint(NULL);
    struct pair pair = connect_self(endpoint, CCI_CONN_ATTR_RO);
    static char memory[64];
    struct cci_rma_handle copy;
    cci_rma_handle_t *handle;
    cci_rma_handle_t *local;

    CHECK_OK(cci_rma_register(endpoint, memory, 8, 0, &local));
    CHECK_OK(cci_rma_register(endpoint, memory, sizeof(memory), CCI_FLAG_WRITE, &handle));
    memcpy(&copy, handle, sizeof(copy));
    CHECK_OK(cci_rma_deregister(endpoint, &copy));
    CHECK_STATUS(cci_rma_deregister(endpoint, handle), CCI_EINVAL);
    CHECK_STATUS(cci_rma_deregister(endpoint, &copy), CCI_EINVAL);
    CHECK_STATUS(cci_rma(pair.client, NULL, 0, handle, 0, local, 0, 1, NULL, CCI_FLAG_WRITE), CCI_EINVAL);
    CHECK_OK(cci_rma(pair.client, "m", 1, local, 0, handle, 0, 1, MARK(2), CCI_FLAG_WRITE));
    expect_sent(endpoint, CCI_ERR_RMA_HANDLE, MARK(2));
    copy.stuff[0] = 1;
    copy.stuff[1] = 2;
    CHECK_OK(cci_rma(pair.client, "m", 1, local, 0, &copy, 0, 1, MARK(3), CCI_FLAG_WRITE));
    expect_sent(endpoint, CCI_ERR_RMA_HANDLE, MARK(3));
    CHECK_OK(cci_destroy_endpoint(endpoint));
}

int main(void)
{
    start();
    after_disconnect();
    after_destroy();
    after_reuse();
    after_deregistration();
    CHECK_OK(cci_finalize());
    return 0;
}
