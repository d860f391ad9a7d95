#include <ccix.h>

static int failed(const char *why)
{
    fprintf(stderr, "hello: %s\n", why);
    return 1;
}

int main(int argc, char **argv)
{
    uint32_t caps;
    cci_device_t *device;
    cci_endpoint_t *endpoint;
    cci_event_t *event;

    if (argc != 2)
        return failed("pass the URI that a server printed");
    if (cci_init(CCI_ABI_VERSION, 0, &caps))
        return failed(ccix_last_error());
    if (ccix_device_for(argv[1], &device) || cci_create_endpoint(device, 0, &endpoint, NULL) ||
        cci_connect(endpoint, argv[1], NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL))
        return failed(ccix_last_error());
    while (ccix_wait(&endpoint, 1, NULL, &event, NULL) == CCI_SUCCESS) {
        if (event->type == CCI_EVENT_CONNECT && event->connect.status)
            return failed(ccix_event_reason(event));
        if (event->type == CCI_EVENT_CONNECT && cci_send(event->connect.connection, "hello", 5, NULL, 0))
            return failed(ccix_last_error());
        if (event->type == CCI_EVENT_RECV)
            return puts(event->recv.ptr) < 0;
        cci_return_event(event);
    }
    return failed(ccix_last_error());
}
