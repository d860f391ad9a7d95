/*
 * Flags that do not apply mean nothing: programs written to CCI 2.2 pass the flags of their RMA to
 * every send.
 */

#include "check.h"

static cci_endpoint_t *endpoint;
static struct pair pair;

static void sends(void)
{
    static const int flags[] = {CCI_FLAG_READ, CCI_FLAG_WRITE, CCI_FLAG_FENCE,
                                CCI_FLAG_READ | CCI_FLAG_WRITE | CCI_FLAG_FENCE};
    struct iovec parts[2] = {{"ab", 2}, {"c", 1}};
    cci_event_t *event;
    size_t at;

    for (at = 0; at < sizeof(flags) / sizeof(flags[0]); at++) {
        CHECK_OK(cci_send(pair.client, "abc", 3, MARK(2), flags[at] | CCI_FLAG_SILENT));
        event = expect(endpoint, CCI_EVENT_RECV);
        CHECK(event->recv.len == 3 && memcmp(event->recv.ptr, "abc", 3) == 0);
        CHECK_OK(cci_return_event(event));
        CHECK_OK(cci_sendv(pair.client, parts, 2, MARK(2), flags[at] | CCI_FLAG_BLOCKING));
        event = expect(endpoint, CCI_EVENT_RECV);
        CHECK(event->recv.len == 3 && memcmp(event->recv.ptr, "abc", 3) == 0);
        CHECK_OK(cci_return_event(event));
        /* SILENT and BLOCKING still count: neither send has an event. */
        CHECK_STATUS(cci_get_event(endpoint, &event), CCI_EAGAIN);
    }
}

/* A write to `handle` and a read from it; the status of both. */
static void transfer(cci_rma_handle_t *local, cci_rma_handle_t *handle, int write, int read)
{
    CHECK_STATUS(cci_rma(pair.client, NULL, 0, local, 0, handle, 0, 8, NULL, CCI_FLAG_WRITE | CCI_FLAG_BLOCKING),
                 write);
    CHECK_STATUS(cci_rma(pair.client, NULL, 0, local, 0, handle, 0, 8, NULL, CCI_FLAG_READ | CCI_FLAG_BLOCKING), read);
}

/*
 * Bits of cci_rma_register() other than READ and WRITE are ignored. `open`: the device waives both.
 */
static void registrations(int open)
{
    static char source[8];
    static char target[8];
    static const int others = ~(CCI_FLAG_READ | CCI_FLAG_WRITE);
    const int refused = open ? CCI_SUCCESS : CCI_ERR_RMA_HANDLE;
    struct cci_rma_handle forged;
    cci_rma_handle_t *local;
    cci_rma_handle_t *remote;

    CHECK_OK(cci_rma_register(endpoint, source, sizeof(source), 0, &local));
    CHECK_OK(cci_rma_register(endpoint, target, sizeof(target), others, &remote));
    transfer(local, remote, refused, refused);
    memcpy(&forged, remote, sizeof(forged));
    forged.stuff[1] ^= 1;
    transfer(local, &forged, CCI_ERR_RMA_HANDLE, CCI_ERR_RMA_HANDLE);
    CHECK_OK(cci_rma_deregister(endpoint, remote));
    CHECK_OK(cci_rma_register(endpoint, target, sizeof(target), others | CCI_FLAG_WRITE, &remote));
    transfer(local, remote, CCI_SUCCESS, refused);
    CHECK_OK(cci_rma_deregister(endpoint, remote));
    CHECK_OK(cci_rma_deregister(endpoint, local));
}

/* Flags of the functions that have none. */
static void others(void)
{
    uint32_t caps = 77;
    cci_device_t *const *devices;
    cci_endpoint_t *other;
    cci_event_t *event;
    char *uri = uri_of(endpoint);

    CHECK_OK(cci_init(CCI_ABI_VERSION, UINT32_MAX, &caps));
    CHECK(caps == 0);
    CHECK_OK(cci_get_devices(&devices));
    CHECK_OK(cci_create_endpoint(NULL, -1, &other, NULL));
    CHECK_OK(cci_arm_os_handle(other, -1));
    CHECK_OK(cci_destroy_endpoint(other));
    CHECK_OK(cci_connect(endpoint, uri, NULL, 0, CCI_CONN_ATTR_RO, MARK(3), -1, NULL));
    free(uri);
    event = expect(endpoint, CCI_EVENT_CONNECT_REQUEST);
    CHECK_OK(cci_reject(event));
    CHECK_OK(cci_return_event(event));
    event = expect(endpoint, CCI_EVENT_CONNECT);
    CHECK(event->connect.context == MARK(3) && event->connect.status == CCI_ECONNREFUSED);
    CHECK_OK(cci_return_event(event));
    CHECK_OK(cci_finalize());
}

int main(int argc, char **argv)
{
    start();
    endpoint = open_endpoint(NULL);
    pair = connect_self(endpoint, CCI_CONN_ATTR_RO);
    sends();
    registrations(argc > 1 && strcmp(argv[1], "open") == 0);
    others();
    CHECK_OK(cci_destroy_endpoint(endpoint));
    CHECK_OK(cci_finalize());
    return 0;
}
