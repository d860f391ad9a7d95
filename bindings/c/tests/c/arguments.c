/* NULL where something is needed, and values that mean nothing. */

#include "check.h"

static cci_endpoint_t *endpoint;
static struct pair pair;
static cci_rma_handle_t *handle;
static char memory[64];

static void endpoints(void)
{
    cci_endpoint_t *other = NULL;
    cci_device_t *const *devices;
    cci_device_t *unknown = (cci_device_t *)(const void *)memory;
    cci_event_t *event;

    CHECK_OK(cci_get_devices(&devices));
    CHECK_STATUS(cci_create_endpoint(NULL, 0, NULL, NULL), CCI_EINVAL);
    CHECK_STATUS(cci_create_endpoint(unknown, 0, &other, NULL), CCI_EINVAL);
    CHECK_STATUS(cci_create_endpoint_at(NULL, "1/1", 0, &other, NULL), CCI_EINVAL);
    CHECK_STATUS(cci_create_endpoint_at(devices[0], NULL, 0, &other, NULL), CCI_EINVAL);
    CHECK_STATUS(cci_create_endpoint_at(devices[0], "1/1", 0, NULL, NULL), CCI_EINVAL);
    CHECK_STATUS(cci_create_endpoint_at(devices[0], "\xff\xfe", 0, &other, NULL), CCI_EINVAL);
    CHECK_STATUS(cci_create_endpoint_at(devices[0], "", 0, &other, NULL), CCI_EINVAL);
    CHECK_STATUS(cci_create_endpoint_at(devices[0], "a b:1", 0, &other, NULL), CCI_EINVAL);
    CHECK(other == NULL);
    CHECK_STATUS(cci_destroy_endpoint(NULL), CCI_EINVAL);
    CHECK_STATUS(cci_arm_os_handle(NULL, 0), CCI_EINVAL);
    CHECK_OK(cci_arm_os_handle(endpoint, 0));
    CHECK_STATUS(cci_get_event(NULL, &event), CCI_EINVAL);
    CHECK(event == NULL);
    CHECK_STATUS(cci_get_event(endpoint, NULL), CCI_EINVAL);
    CHECK_STATUS(cci_return_event(NULL), CCI_EINVAL);
}

static void connections(void)
{
    char *uri = uri_of(endpoint);
    char payload[CCI_CONN_REQ_LEN + 1] = {0};
    struct timeval negative = {-1, 0};
    struct timeval negative_too = {0, -1};
    cci_conn_attribute_t none = (cci_conn_attribute_t)5;

    CHECK_STATUS(cci_connect(NULL, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_EINVAL);
    CHECK_STATUS(cci_connect(endpoint, NULL, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_EINVAL);
    CHECK_STATUS(cci_connect(endpoint, "", NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_EINVAL);
    CHECK_STATUS(cci_connect(endpoint, "nowhere", NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_EINVAL);
    CHECK_STATUS(cci_connect(endpoint, "\xff", NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_EINVAL);
    CHECK_STATUS(cci_connect(endpoint, uri, NULL, 1, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_EINVAL);
    CHECK_STATUS(cci_connect(endpoint, uri, payload, sizeof(payload), CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_EINVAL);
    CHECK_STATUS(cci_connect(endpoint, uri, NULL, 0, none, NULL, 0, NULL), CCI_EINVAL);
    CHECK_STATUS(cci_connect(endpoint, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, &negative), CCI_EINVAL);
    CHECK_STATUS(cci_connect(endpoint, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, &negative_too), CCI_EINVAL);
    CHECK_STATUS(cci_accept(NULL, NULL), CCI_EINVAL);
    CHECK_STATUS(cci_reject(NULL), CCI_EINVAL);
    CHECK_STATUS(cci_disconnect(NULL), CCI_EINVAL);
    free(uri);
}

static void messages(void)
{
    struct iovec hole = {NULL, 1};
    struct iovec wrap[2];

    wrap[0].iov_base = wrap[1].iov_base = memory;
    wrap[0].iov_len = SIZE_MAX;
    wrap[1].iov_len = 2;
    CHECK_STATUS(cci_send(NULL, "x", 1, NULL, 0), CCI_EINVAL);
    CHECK_STATUS(cci_send(pair.client, NULL, 1, NULL, 0), CCI_EINVAL);
    CHECK_STATUS(cci_send(pair.client, "x", 1, NULL, 4), CCI_EINVAL);
    CHECK_STATUS(cci_send(pair.client, "x", 1, NULL, -1), CCI_EINVAL);
    CHECK_STATUS(cci_sendv(NULL, &hole, 1, NULL, 0), CCI_EINVAL);
    CHECK_STATUS(cci_sendv(pair.client, NULL, 1, NULL, 0), CCI_EINVAL);
    CHECK_STATUS(cci_sendv(pair.client, &hole, 1, NULL, 0), CCI_EINVAL);
    CHECK_STATUS(cci_sendv(pair.client, &hole, 0, NULL, 1 << 10), CCI_EINVAL);
    CHECK_STATUS(cci_sendv(pair.client, wrap, 2, NULL, 0), CCI_EMSGSIZE);
}

static void remote_memory(void)
{
    cci_rma_handle_t *other = NULL;
    cci_connection_t *conn = pair.client;
    const int write = CCI_FLAG_WRITE;

    CHECK_STATUS(cci_rma_register(NULL, memory, 1, 0, &other), CCI_EINVAL);
    CHECK_STATUS(cci_rma_register(endpoint, NULL, 1, 0, &other), CCI_EINVAL);
    CHECK_STATUS(cci_rma_register(endpoint, memory, 0, 0, &other), CCI_EINVAL);
    CHECK_STATUS(cci_rma_register(endpoint, memory, 1, 0, NULL), CCI_EINVAL);
    CHECK_STATUS(cci_rma_register(endpoint, memory, UINT64_MAX, 0, &other), CCI_EINVAL);
    CHECK(other == NULL);
    CHECK_STATUS(cci_rma_deregister(NULL, handle), CCI_EINVAL);
    CHECK_STATUS(cci_rma_deregister(endpoint, NULL), CCI_EINVAL);
    CHECK_STATUS(cci_rma(NULL, NULL, 0, handle, 0, handle, 0, 1, NULL, write), CCI_EINVAL);
    CHECK_STATUS(cci_rma(conn, NULL, 0, NULL, 0, handle, 0, 1, NULL, write), CCI_EINVAL);
    CHECK_STATUS(cci_rma(conn, NULL, 0, handle, 0, NULL, 0, 1, NULL, write), CCI_EINVAL);
    CHECK_STATUS(cci_rma(conn, NULL, 1, handle, 0, handle, 0, 1, NULL, write), CCI_EINVAL);
    CHECK_STATUS(cci_rma(conn, NULL, 0, handle, 0, handle, 0, 0, NULL, write), CCI_EINVAL);
    CHECK_STATUS(cci_rma(conn, NULL, 0, handle, 0, handle, 0, 1, NULL, 0), CCI_EINVAL);
    CHECK_STATUS(cci_rma(conn, NULL, 0, handle, 0, handle, 0, 1, NULL, write | CCI_FLAG_READ), CCI_EINVAL);
    CHECK_STATUS(cci_rma(conn, NULL, 0, handle, 0, handle, 0, 1, NULL, write | 4), CCI_EINVAL);
    CHECK_STATUS(cci_rma(conn, NULL, 0, handle, 60, handle, 0, 5, NULL, write), CCI_EINVAL);
    CHECK_STATUS(cci_rma(conn, NULL, 0, handle, UINT64_MAX, handle, 0, 2, NULL, write), CCI_EINVAL);
}

static void options(void)
{
    uint32_t value = 0;
    char *text = NULL;
    cci_opt_name_t none = (cci_opt_name_t)8;

    CHECK_STATUS(cci_get_opt(NULL, CCI_OPT_ENDPT_SEND_TIMEOUT, &value), CCI_EINVAL);
    CHECK_STATUS(cci_get_opt(NULL, CCI_OPT_CONN_SEND_TIMEOUT, &value), CCI_EINVAL);
    CHECK_STATUS(cci_get_opt(endpoint, CCI_OPT_ENDPT_SEND_TIMEOUT, NULL), CCI_EINVAL);
    CHECK_STATUS(cci_get_opt(endpoint, none, &value), CCI_EINVAL);
    CHECK_STATUS(cci_set_opt(NULL, CCI_OPT_ENDPT_SEND_TIMEOUT, &value), CCI_EINVAL);
    CHECK_STATUS(cci_set_opt(NULL, CCI_OPT_CONN_SEND_TIMEOUT, &value), CCI_EINVAL);
    CHECK_STATUS(cci_set_opt(endpoint, CCI_OPT_ENDPT_SEND_TIMEOUT, NULL), CCI_EINVAL);
    CHECK_STATUS(cci_set_opt(endpoint, none, &value), CCI_EINVAL);
    CHECK_STATUS(cci_set_opt(endpoint, CCI_OPT_ENDPT_URI, &text), CCI_EINVAL);
    CHECK_STATUS(cci_set_opt(endpoint, CCI_OPT_ENDPT_RMA_ALIGN, &value), CCI_EINVAL);
    CHECK_STATUS(cci_set_opt(endpoint, CCI_OPT_ENDPT_RECV_BUF_COUNT, &value), CCI_EINVAL);
    CHECK_STATUS(cci_set_opt(endpoint, CCI_OPT_ENDPT_SEND_BUF_COUNT, &value), CCI_EINVAL);
    value = UINT32_MAX;
    CHECK_STATUS(cci_set_opt(endpoint, CCI_OPT_ENDPT_RECV_BUF_COUNT, &value), CCI_EINVAL);
    CHECK_STATUS(cci_set_opt(endpoint, CCI_OPT_ENDPT_SEND_BUF_COUNT, &value), CCI_EINVAL);
}

static void extensions(void)
{
    struct ccix_connection_report info;
    struct ccix_endpoint_options asked = {sizeof(asked), 4, 0, 0, NULL};
    cci_endpoint_t *other = NULL;
    void *ptr = NULL;

    CHECK_STATUS(ccix_alloc(0, &ptr), CCI_EINVAL);
    CHECK_STATUS(ccix_alloc(1, NULL), CCI_EINVAL);
    CHECK_STATUS(ccix_alloc(SIZE_MAX, &ptr), CCI_ENOMEM);
    CHECK(ptr == NULL);
    CHECK_STATUS(ccix_free(NULL), CCI_EINVAL);
    CHECK_STATUS(ccix_free(memory), CCI_EINVAL);
    info.size = sizeof(info);
    CHECK_STATUS(ccix_connection_info(NULL, &info), CCI_EINVAL);
    CHECK_STATUS(ccix_connection_info(pair.client, NULL), CCI_EINVAL);
    info.size = 0;
    CHECK_STATUS(ccix_connection_info(pair.client, &info), CCI_EINVAL);
    CHECK_STATUS(ccix_create_endpoint(NULL, &asked, &other, NULL), CCI_EINVAL);
    asked.flags = 0;
    asked.size = 4;
    CHECK_STATUS(ccix_create_endpoint(NULL, &asked, &other, NULL), CCI_EINVAL);
    CHECK_STATUS(ccix_create_endpoint(NULL, NULL, NULL, NULL), CCI_EINVAL);
    CHECK(other == NULL);
    CHECK_STATUS(ccix_accept_on(NULL, endpoint, NULL), CCI_EINVAL);
    CHECK_STATUS(ccix_accept_on(NULL, NULL, NULL), CCI_EINVAL);
}

int main(void)
{
    cci_event_t *event;

    start();
    endpoint = open_endpoint(NULL);
    pair = connect_self(endpoint, CCI_CONN_ATTR_RO);
    CHECK_OK(cci_rma_register(endpoint, memory, sizeof(memory), CCI_FLAG_READ | CCI_FLAG_WRITE, &handle));
    endpoints();
    connections();
    messages();
    remote_memory();
    options();
    extensions();
    /* None of it had an effect. */
    CHECK_STATUS(cci_get_event(endpoint, &event), CCI_EAGAIN);
    CHECK_OK(cci_send(pair.client, "x", 1, MARK(2), CCI_FLAG_SILENT));
    event = expect(endpoint, CCI_EVENT_RECV);
    CHECK(event->recv.len == 1 && event->recv.connection == pair.server);
    CHECK_OK(cci_return_event(event));
    CHECK_OK(cci_destroy_endpoint(endpoint));
    CHECK_OK(cci_finalize());
    return 0;
}
