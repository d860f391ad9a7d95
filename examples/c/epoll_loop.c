/*
 * An event loop: an echo server that sleeps in epoll, on the endpoint's OS handle and on a timer. It ends when a client says
 * goodbye by an empty message, or when nobody has said anything for half a minute. To be used with echo_client.
 *
 *   cc epoll_loop.c $(pkg-config --cflags --libs cci) -o epoll_loop
 */

#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE /* CLOCK_MONOTONIC, also with -std=c99 */
#endif
#include <cci.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

static void check(int status, const char *what)
{
    if (status != CCI_SUCCESS) {
        fprintf(stderr, "%s: %s\n", what, cci_strerror(NULL, (enum cci_status)status));
        exit(1);
    }
}

static void check_system(int result, const char *what)
{
    if (result < 0) {
        perror(what);
        exit(1);
    }
}

static void watch(int loop, int fd)
{
    struct epoll_event entry;

    /* Level-triggered: the handle stays readable as long as there is something to get. */
    entry.events = EPOLLIN;
    entry.data.fd = fd;
    check_system(epoll_ctl(loop, EPOLL_CTL_ADD, fd, &entry), "epoll_ctl");
}

static void start_timer(int timer)
{
    struct itimerspec limit = {{0, 0}, {30, 0}};

    check_system(timerfd_settime(timer, 0, &limit, NULL), "timerfd_settime");
}

/* Serves one event; 1 when a client has said goodbye. */
static int serve(cci_event_t *event)
{
    switch (event->type) {
    case CCI_EVENT_CONNECT_REQUEST:
        check(cci_accept(event, NULL), "cci_accept");
        return 0;
    case CCI_EVENT_RECV:
        if (event->recv.len == 0) {
            check(cci_disconnect(event->recv.connection), "cci_disconnect");
            return 1;
        }
        /* SILENT: no event if all goes well. */
        check(cci_send(event->recv.connection, event->recv.ptr, event->recv.len, NULL, CCI_FLAG_SILENT), "cci_send");
        return 0;
    default:
        return 0;
    }
}

int main(int argc, char **argv)
{
    cci_endpoint_t *endpoint;
    cci_os_handle_t handle;
    uint32_t caps;
    char *uri;
    int ended = 0;
    int timer;
    int loop;

    if (argc != 1) {
        fprintf(stderr, "usage: %s\nprints the URI that echo_client connects to\n", argv[0]);
        return 2;
    }
    check(cci_init(CCI_ABI_VERSION, 0, &caps), "cci_init");
    check(cci_create_endpoint(NULL, 0, &endpoint, &handle), "cci_create_endpoint");
    check(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri), "cci_get_opt");
    printf("%s\n", uri);
    fflush(stdout);
    free(uri);

    loop = epoll_create1(EPOLL_CLOEXEC);
    check_system(loop, "epoll_create1");
    timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    check_system(timer, "timerfd_create");
    start_timer(timer);
    watch(loop, handle);
    watch(loop, timer);

    while (!ended) {
        struct epoll_event ready;
        cci_event_t *event;
        int status;

        if (epoll_wait(loop, &ready, 1, -1) < 1) {
            continue; /* a signal */
        }
        if (ready.data.fd == timer) {
            fprintf(stderr, "nobody has said anything for 30 s\n");
            break;
        }
        /* One event a turn, so that other descriptors get theirs; the handle stays readable if there are more. It may also be
         * readable for nothing: then there is none. */
        status = cci_get_event(endpoint, &event);
        if (status == CCI_EAGAIN) {
            continue;
        }
        check(status, "cci_get_event");
        start_timer(timer);
        ended = serve(event);
        check(cci_return_event(event), "cci_return_event");
    }
    close(timer);
    close(loop);
    check(cci_destroy_endpoint(endpoint), "cci_destroy_endpoint");
    check(cci_finalize(), "cci_finalize");
    return ended ? 0 : 1;
}
