/*
 * What the examples share: errors end the program, waiting for events, and a pattern of bytes for
 * RMA.
 */

#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <ccix.h>
#include <stdlib.h>
#include <string.h>

static inline void check(int status, const char *what)
{
    if (status != CCI_SUCCESS) {
        fprintf(stderr, "%s: %s\n", what, cci_strerror(NULL, (enum cci_status)status));
        exit(1);
    }
}

static inline void check_system(int result, const char *what)
{
    if (result < 0) {
        perror(what);
        exit(1);
    }
}

/* The next event, however long it takes. */
static inline cci_event_t *wait_event(cci_endpoint_t *endpoint)
{
    cci_event_t *event;
    int status;

    do {
        status = cci_get_event(endpoint, &event);
    } while (status == CCI_EAGAIN);
    check(status, "cci_get_event");
    return event;
}

/* The next event of this type; others are returned on the way, unless they report a failure. */
static inline cci_event_t *wait_for(cci_endpoint_t *endpoint, cci_event_type_t type)
{
    for (;;) {
        cci_event_t *event;
        int status = cci_get_event(endpoint, &event);

        if (status == CCI_EAGAIN) {
            continue;
        }
        check(status, "cci_get_event");
        if (event->type == CCI_EVENT_SEND) {
            check((int)event->send.status, "an operation");
        }
        if (event->type == type) {
            return event;
        }
        check(cci_return_event(event), "cci_return_event");
    }
}

/* A message that says only that something has happened. */
static inline void wait_message(cci_endpoint_t *endpoint, const char *text)
{
    cci_event_t *event = wait_for(endpoint, CCI_EVENT_RECV);

    if (strcmp((const char *)event->recv.ptr, text) != 0) {
        fprintf(stderr, "got \"%s\" instead of \"%s\"\n", (const char *)event->recv.ptr, text);
        exit(1);
    }
    check(cci_return_event(event), "cci_return_event");
}

/* The length of the memory in the examples of RMA, and what is in it. */
#define LENGTH ((uint64_t)1 << 20)

static inline void fill(unsigned char *buffer, unsigned seed)
{
    uint64_t at;

    for (at = 0; at < LENGTH; at++) {
        buffer[at] = (unsigned char)(at * 131 + at / 4096 + seed);
    }
}

static inline void verify(const unsigned char *buffer, unsigned seed, const char *what)
{
    uint64_t at;

    for (at = 0; at < LENGTH; at++) {
        if (buffer[at] != (unsigned char)(at * 131 + at / 4096 + seed)) {
            fprintf(stderr, "%s: byte %lu is wrong\n", what, (unsigned long)at);
            exit(1);
        }
    }
    printf("%s verified: %lu bytes\n", what, (unsigned long)LENGTH);
}

/*
 * The endpoint of a server, on the default device. With a port (of UDP and TCP) as the only
 * argument of the program other hosts reach it too.
 */
static inline cci_endpoint_t *open_server(int argc, char **argv, cci_os_handle_t *handle)
{
    cci_device_t *const *devices;
    cci_endpoint_t *endpoint;
    uint32_t caps;

    if (argc > 2 || (argc == 2 && argv[1][0] == '-')) {
        fprintf(stderr, "usage: %s [PORT]\nprints the URI that a client connects to\n", argv[0]);
        exit(2);
    }
    check(cci_init(CCI_ABI_VERSION, 0, &caps), "cci_init");
    if (argc == 1) {
        check(cci_create_endpoint(NULL, 0, &endpoint, handle), "cci_create_endpoint");
    } else {
        check(cci_get_devices(&devices), "cci_get_devices");
        check(cci_create_endpoint_at(devices[0], argv[1], 0, &endpoint, handle), "cci_create_endpoint_at");
    }
    return endpoint;
}

static inline void print_uri(cci_endpoint_t *endpoint)
{
    char *uri;

    check(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri), "cci_get_opt");
    printf("%s\n", uri);
    fflush(stdout);
    free(uri);
}

#endif
