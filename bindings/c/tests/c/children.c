/*
 * Children that live on without exec: the parent's endpoints end for their peers all the same, and
 * can be opened again.
 */

#define _GNU_SOURCE
#include "check.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* How a child is made: by fork(), whose handlers run, or without them. */
enum way { FORK, PLAIN_FORK, CLONE };

static pid_t child(enum way way)
{
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
    if (way == PLAIN_FORK) {
        return _Fork();
    }
#endif
    return way == FORK ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static pid_t sleeper(enum way way)
{
    int ready[2];
    char byte = 0;
    pid_t pid;

    CHECK(pipe(ready) == 0);
    pid = child(way);
    CHECK(pid >= 0);
    if (pid == 0) {
        /* Not longer than this program, however that ends. */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (write(ready[1], &byte, 1) != 1) {
            _exit(1);
        }
        for (;;) {
            pause();
        }
    }
    /* The handlers of fork() have run when the child comes here. */
    CHECK(read(ready[0], &byte, 1) == 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static void end(pid_t pid)
{
    CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
}

static cci_endpoint_t *open_at(cci_device_t *device, const char *service)
{
    struct ccix_endpoint_options options;
    cci_endpoint_t *endpoint = NULL;

    memset(&options, 0, sizeof(options));
    options.size = sizeof(options);
    options.flags = CCIX_ENDPOINT_DISCONNECT_EVENTS;
    options.service = service;
    return ccix_create_endpoint(device, &options, &endpoint, NULL) == CCI_SUCCESS ? endpoint : NULL;
}

/* The beginning of the reason why it cannot be opened again. */
#define HOLDS "a child process of this program still holds "

/* What the endpoint is opened by again: "PID/ID" of sm, the port of sock and tcp. */
static const char *service_of(cci_device_t *device, const char *uri)
{
    return strcmp(device->transport, "sm") == 0 ? strstr(uri, "://") + 3 : strrchr(uri, ':') + 1;
}

static cci_event_t *next_of_type(cci_endpoint_t *one, cci_endpoint_t *other, int type)
{
    time_t deadline = time(NULL) + PATIENCE;
    while (time(NULL) < deadline) {
        cci_endpoint_t *both[2];
        int at;
        both[0] = one;
        both[1] = other;
        for (at = 0; at < 2; at++) {
            cci_event_t *event = NULL;
            if (!both[at] || cci_get_event(both[at], &event) != CCI_SUCCESS) {
                continue;
            }
            if ((int)event->type == type) {
                return event;
            }
            CHECK_OK(cci_return_event(event));
        }
    }
    fprintf(stderr, "no event %d within %d s\n", type, PATIENCE);
    exit(1);
}

/* Whether a process beside this one has taken the port since it was free. */
static int is_taken(const cci_endpoint_t *endpoint)
{
    return !endpoint && strstr(ccix_last_error(), "is in use") != NULL;
}

/* False: the port of the endpoint was taken by another process before it was opened again. */
static int lives_on(cci_device_t *device, enum way way)
{
    cci_endpoint_t *client = open_at(device, NULL);
    cci_endpoint_t *server = open_at(device, NULL);
    cci_endpoint_t *again;
    cci_event_t *event;
    char *uri;
    pid_t pid;
    int taken;

    CHECK(client && server);
    uri = uri_of(server);
    CHECK_OK(cci_connect(client, uri, NULL, 0, CCI_CONN_ATTR_RO, MARK(0), 0, NULL));
    event = next_of_type(server, client, CCI_EVENT_CONNECT_REQUEST);
    CHECK_OK(cci_accept(event, MARK(1)));
    CHECK_OK(cci_return_event(event));
    event = next_of_type(client, server, CCI_EVENT_CONNECT);
    CHECK_STATUS((int)event->connect.status, CCI_SUCCESS);
    CHECK_OK(cci_return_event(event));

    pid = sleeper(way);
    CHECK_OK(cci_destroy_endpoint(server));
    CHECK_OK(cci_return_event(next_of_type(client, NULL, CCIX_EVENT_DISCONNECT)));
    again = open_at(device, service_of(device, uri));
    taken = is_taken(again);
    if (taken) {
        /* Only who lets go of the port can lose it to another process. */
    } else if (way == FORK || strcmp(device->transport, "tcp") == 0) {
        /* A socket that listens is shut down, which ends it in every process that has it. */
        CHECK(again != NULL);
        CHECK_OK(cci_destroy_endpoint(again));
    } else {
        char *holds = NULL;

        CHECK(again == NULL);
        CHECK(asprintf(&holds, strcmp(device->transport, "sm") == 0 ? HOLDS "sm://%s" : HOLDS "port %s",
                       service_of(device, uri)) > 0);
        CHECK(strstr(ccix_last_error(), holds) != NULL);
        free(holds);
    }
    end(pid);
    again = open_at(device, service_of(device, uri));
    taken = taken || is_taken(again);
    CHECK(again != NULL || taken);
    if (again) {
        CHECK_OK(cci_destroy_endpoint(again));
    }
    CHECK_OK(cci_destroy_endpoint(client));
    free(uri);
    return !taken;
}

/* Tries again with another port while other processes take it. */
static void child_lives_on(cci_device_t *device, enum way way)
{
    int tries = 0;
    while (!lives_on(device, way)) {
        CHECK(++tries < 20);
    }
}

int main(void)
{
    cci_device_t *const *devices;
    int at;
    int found = 0;

    start();
    CHECK_OK(cci_get_devices(&devices));
    for (at = 0; devices[at]; at++) {
        const char *transport = devices[at]->transport;
        if (strcmp(transport, "sm") == 0 || strcmp(transport, "sock") == 0 || strcmp(transport, "tcp") == 0) {
            found++;
            child_lives_on(devices[at], FORK);
            child_lives_on(devices[at], PLAIN_FORK);
            child_lives_on(devices[at], CLONE);
        }
    }
    CHECK(found >= 3);
    CHECK_OK(cci_finalize());
    return 0;
}
