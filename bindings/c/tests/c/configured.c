/*
 * Run with a configuration of three devices: `ib` (verbs), `second` (sm, mss = 1024), `first` (sm,
 * the default).
 */

#include "check.h"

int main(void)
{
    cci_device_t *const *devices;
    cci_endpoint_t *endpoint = NULL;

    start();
    CHECK_OK(cci_get_devices(&devices));
    CHECK(devices[0] && devices[1] && devices[2] && !devices[3]);
    CHECK(strcmp(devices[0]->name, "first") == 0 && devices[0]->up);
    CHECK(devices[0]->conf_argv && !devices[0]->conf_argv[0]);
    CHECK(strcmp(devices[1]->name, "second") == 0 && devices[1]->up);
    CHECK(strcmp(devices[1]->conf_argv[0], "mss=1024") == 0 && !devices[1]->conf_argv[1]);
    CHECK(strcmp(devices[2]->name, "ib") == 0 && strcmp(devices[2]->transport, "verbs") == 0);
    CHECK(!devices[2]->up && devices[2]->info[0]);

    endpoint = open_endpoint(NULL);
    CHECK(endpoint->device == devices[0]);
    CHECK_OK(cci_destroy_endpoint(endpoint));
    CHECK_OK(cci_create_endpoint(devices[1], 0, &endpoint, NULL));
    CHECK(endpoint->device == devices[1]);
    CHECK(connect_self(endpoint, CCI_CONN_ATTR_RO).client->max_send_size == 1024);
    CHECK_OK(cci_destroy_endpoint(endpoint));
    endpoint = NULL;
    CHECK_STATUS(cci_create_endpoint(devices[2], 0, &endpoint, NULL), CCI_ENODEV);
    CHECK(endpoint == NULL && strstr(ccix_last_error(), "ib") != NULL);
    CHECK_OK(cci_finalize());
    return 0;
}
