/*
 * Initialization, devices, endpoints: counted, repeatable, and everything closed by the last
 * finalize.
 */

#include "check.h"

#include <unistd.h>

static void init_is_counted(void)
{
    uint32_t caps;
    cci_device_t *const *devices;

    CHECK_STATUS(cci_finalize(), CCI_ERROR);
    CHECK_STATUS(cci_get_devices(&devices), CCI_ERROR);
    CHECK_STATUS(cci_init(1, 0, &caps), CCI_EINVAL);
    CHECK_STATUS(cci_init(3, 0, &caps), CCI_EINVAL);
    CHECK_STATUS(cci_init(CCI_ABI_VERSION, 0, NULL), CCI_EINVAL);
    CHECK_STATUS(cci_finalize(), CCI_ERROR);

    start();
    start();
    CHECK_OK(cci_finalize());
    CHECK_OK(cci_get_devices(&devices));
    CHECK_OK(cci_finalize());
    CHECK_STATUS(cci_finalize(), CCI_ERROR);
    CHECK_STATUS(cci_get_devices(&devices), CCI_ERROR);
}

static void devices_are_listed(void)
{
    cci_device_t *const *devices = NULL;
    const char *const *argument;
    int found = 0;

    start();
    CHECK_STATUS(cci_get_devices(NULL), CCI_EINVAL);
    CHECK_OK(cci_get_devices(&devices));
    for (; devices[found]; found++) {
        cci_device_t *device = devices[found];
        CHECK(device->name && device->name[0]);
        CHECK(device->transport && device->transport[0]);
        CHECK(device->info && device->info[0]);
        /* What a device is found with, such as "listen=local". */
        CHECK(device->conf_argv);
        for (argument = device->conf_argv; *argument; argument++)
            CHECK(strchr(*argument, '=') != NULL);
        if (strcmp(device->transport, "sm") == 0) {
            CHECK(device->up == 1 && device->max_send_size >= 256);
            CHECK(device->pci.domain == UINT32_MAX && device->pci.bus == UINT32_MAX);
            CHECK(device->pci.dev == UINT32_MAX && device->pci.func == UINT32_MAX);
        }
    }
    CHECK(found >= 1);
    CHECK_OK(cci_finalize());
}

static void statuses_have_names(void)
{
    int number;
    int named = 0;

    for (number = 0; number < 200; number++) {
        const char *name = cci_strerror(NULL, (enum cci_status)number);
        if (name) {
            CHECK(strncmp(name, "CCI_", 4) == 0);
            named++;
        }
    }
    CHECK(named == 22);
    CHECK(strncmp(cci_strerror(NULL, CCI_SUCCESS), "CCI_SUCCESS", 11) == 0);
    CHECK(strncmp(cci_strerror(NULL, CCI_EINVAL), "CCI_EINVAL", 10) == 0);
    CHECK(strncmp(cci_strerror(NULL, CCI_ERR_RMA_HANDLE), "CCI_ERR_RMA_HANDLE", 18) == 0);
    CHECK(cci_strerror(NULL, (enum cci_status)9) == NULL);
    CHECK(cci_strerror(NULL, (enum cci_status)100000) == NULL);
}

static void the_last_finalize_closes_endpoints(void)
{
    cci_endpoint_t *endpoint;
    cci_event_t *event;
    cci_device_t *const *devices;
    cci_os_handle_t fd = -1;
    int round;

    for (round = 0; round < 3; round++) {
        CHECK_STATUS(cci_create_endpoint(NULL, 0, &endpoint, &fd), CCI_ERROR);
        start();
        endpoint = open_endpoint(&fd);
        CHECK(fd >= 0);
        CHECK_OK(cci_get_devices(&devices));
        CHECK(endpoint->device == devices[0]);
        CHECK_STATUS(cci_get_event(endpoint, &event), CCI_EAGAIN);
        CHECK_OK(cci_finalize());
        CHECK_STATUS(cci_get_event(endpoint, &event), CCI_EINVAL);
        CHECK(event == NULL);
        CHECK_STATUS(cci_destroy_endpoint(endpoint), CCI_EINVAL);
    }
}

/* A service names the place of an endpoint, which only one can have. */
static void services_are_taken_once(void)
{
    cci_endpoint_t *one;
    cci_endpoint_t *two = NULL;
    cci_device_t *device;
    char service[64];

    start();
    CHECK_OK(ccix_device_for("sm://1/1", &device));
    snprintf(service, sizeof(service), "%ld/77", (long)getpid());
    CHECK_OK(cci_create_endpoint_at(device, service, 0, &one, NULL));
    CHECK_STATUS(cci_create_endpoint_at(device, service, 0, &two, NULL), CCI_EADDRNOTAVAIL);
    CHECK(two == NULL && ccix_last_error()[0]);
    connect_self(one, CCI_CONN_ATTR_RO);
    CHECK_OK(cci_destroy_endpoint(one));
    CHECK_OK(cci_create_endpoint_at(device, service, 0, &two, NULL));
    CHECK_OK(cci_destroy_endpoint(two));
    CHECK_OK(cci_finalize());
}

/* Programs pass the name of their host: a hint, as which it names no place. */
static void a_service_without_a_place_is_a_hint(void)
{
    static const char *const of_devices[] = {"sm://1/1", "sock://127.0.0.1:1", "tcp://127.0.0.1:1", "cci://x"};
    static const char *const hints[] = {"localhost", "node17.example.org", "a host", "127.0.0.1"};
    cci_endpoint_t *endpoints[2];
    cci_device_t *device;
    unsigned at, hint, both;

    start();
    for (at = 0; at < sizeof(of_devices) / sizeof(*of_devices); at++) {
        CHECK_OK(ccix_device_for(of_devices[at], &device));
        for (hint = 0; hint < sizeof(hints) / sizeof(*hints); hint++) {
            for (both = 0; both < 2; both++)
                CHECK_OK(cci_create_endpoint_at(device, hints[hint], 0, &endpoints[both], NULL));
            connect_self(endpoints[0], CCI_CONN_ATTR_RO);
            for (both = 0; both < 2; both++)
                CHECK_OK(cci_destroy_endpoint(endpoints[both]));
        }
    }
    CHECK_OK(cci_finalize());
}

/* Without a configuration the first device has every way, and its service is a port. */
static void the_first_device_takes_a_port(void)
{
    cci_endpoint_t *one;
    cci_endpoint_t *two = NULL;
    cci_device_t *const *devices;
    char *uri;
    char *way;
    char port[16];

    start();
    CHECK_OK(cci_get_devices(&devices));
    CHECK(strcmp(devices[0]->transport, "auto") == 0);
    CHECK_STATUS(cci_create_endpoint_at(devices[0], "1/77", 0, &one, NULL), CCI_EINVAL);
    CHECK(strstr(ccix_last_error(), "is not PORT or ADDRESS:PORT") != NULL);
    CHECK_OK(cci_create_endpoint_at(devices[0], "0", 0, &one, NULL));
    uri = uri_of(one);
    CHECK(strncmp(uri, "cci://", 6) == 0 && strlen(uri) <= 120);
    way = strstr(uri, "sock=");
    CHECK(way != NULL);
    way[strcspn(way, ",")] = '\0';
    CHECK(sscanf(strrchr(way, ':'), ":%15[0-9]", port) == 1);
    CHECK_STATUS(cci_create_endpoint_at(devices[0], port, 0, &two, NULL), CCI_EADDRNOTAVAIL);
    CHECK(two == NULL && strstr(ccix_last_error(), port) != NULL);
    connect_self(one, CCI_CONN_ATTR_RO);
    CHECK_OK(cci_destroy_endpoint(one));
    free(uri);
    CHECK_OK(cci_finalize());
}

int main(void)
{
    CHECK(strcmp(ccix_last_error(), "") == 0);
    init_is_counted();
    CHECK(strcmp(ccix_last_error(), "") != 0);
    devices_are_listed();
    statuses_have_names();
    the_last_finalize_closes_endpoints();
    services_are_taken_once();
    a_service_without_a_place_is_a_hint();
    the_first_device_takes_a_port();
    return 0;
}
