/* A client of examples/store that puts a hundred times, disconnects before any answer, and dies. */

#include "../../../../examples/c/example.h"
#include <signal.h>

int main(int argc, char **argv)
{
    char slot[64] = "colour";
    cci_device_t *device;
    cci_endpoint_t *endpoint;
    cci_event_t *event;
    uint32_t caps;
    int put;

    if (argc != 2) {
        return 2;
    }
    memcpy(slot + 24, "green", 6);
    check(cci_init(CCI_ABI_VERSION, 0, &caps), "cci_init");
    check(ccix_device_for(argv[1], &device), "ccix_device_for");
    check(cci_create_endpoint(device, 0, &endpoint, NULL), "cci_create_endpoint");
    check(cci_connect(endpoint, argv[1], NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), "cci_connect");
    event = wait_for(endpoint, CCI_EVENT_CONNECT);
    check((int)event->connect.status, "connecting");
    for (put = 0; put < 100; put++) {
        check(cci_send(event->connect.connection, slot, sizeof(slot), NULL, CCI_FLAG_SILENT), "cci_send");
    }
    check(cci_disconnect(event->connect.connection), "cci_disconnect");
    return raise(SIGKILL);
}
