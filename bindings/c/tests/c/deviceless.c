/* Run with every transport left out: there is no device, and that is no mistake. */

#include "check.h"

int main(void)
{
    cci_device_t *const *devices = NULL;
    cci_endpoint_t *endpoint = NULL;

    start();
    CHECK_OK(cci_get_devices(&devices));
    CHECK(devices != NULL && devices[0] == NULL);
    CHECK_STATUS(cci_create_endpoint(NULL, 0, &endpoint, NULL), CCI_ENODEV);
    CHECK(endpoint == NULL && ccix_last_error()[0]);
    CHECK_OK(cci_finalize());
    return 0;
}
