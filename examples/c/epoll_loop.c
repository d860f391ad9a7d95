/*
 * An event loop: an echo server that sleeps in epoll, on the endpoint's OS handle. It ends when a
 * client says goodbye by an empty message, or when nobody has said anything for half a minute. To
 * be used with echo_client.
 *
 *   cc epoll_loop.c $(pkg-config --cflags --libs cci) -o epoll_loop
 */

#include "example.h"
#include <sys/epoll.h>
#include <unistd.h>

/* Serves one event; 1 when a client has said goodbye. */
static int serve(cci_event_t *event)
{
    if (event->type == CCI_EVENT_CONNECT_REQUEST) {
        check(cci_accept(event, NULL), "cci_accept");
    } else if (event->type == CCI_EVENT_RECV && event->recv.len == 0) {
        check(cci_disconnect(event->recv.connection), "cci_disconnect");
        return 1;
    } else if (event->type == CCI_EVENT_RECV) {
        /* SILENT: no event if all goes well. */
        check(cci_send(event->recv.connection, event->recv.ptr, event->recv.len, NULL, CCI_FLAG_SILENT), "cci_send");
    }
    return 0;
}

int main(int argc, char **argv)
{
    cci_os_handle_t handle;
    cci_endpoint_t *endpoint = open_server(argc, argv, &handle);
    struct epoll_event entry;
    int ended = 0;
    int loop;

    print_uri(endpoint);

    loop = epoll_create1(EPOLL_CLOEXEC);
    check_system(loop, "epoll_create1");
    /* Level-triggered: the handle stays readable as long as there is something to get. */
    entry.events = EPOLLIN;
    entry.data.fd = handle;
    check_system(epoll_ctl(loop, EPOLL_CTL_ADD, handle, &entry), "epoll_ctl");

    while (!ended) {
        cci_event_t *event;
        int status;
        int ready = epoll_wait(loop, &entry, 1, 30000);

        if (ready < 0) {
            continue; /* a signal */
        }
        if (ready == 0) {
            fprintf(stderr, "nobody has said anything for 30 s\n");
            break;
        }
        /*
         * One event a turn, so that other descriptors get theirs; the handle stays readable if
         * there are more. It may also be readable for nothing: then there is none.
         */
        status = cci_get_event(endpoint, &event);
        if (status != CCI_EAGAIN) {
            check(status, "cci_get_event");
            ended = serve(event);
            check(cci_return_event(event), "cci_return_event");
        }
    }
    close(loop);
    check(cci_destroy_endpoint(endpoint), "cci_destroy_endpoint");
    check(cci_finalize(), "cci_finalize");
    return ended ? 0 : 1;
}
