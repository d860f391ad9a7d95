/*
 * Echo server: prints its URI, accepts clients, sends every message back, and ends when a client
 * says goodbye by an empty message. To be used with echo_client.
 *
 *   cc echo_server.c $(pkg-config --cflags --libs cci) -o echo_server
 */

#include "example.h"

int main(int argc, char **argv)
{
    /* Without an OS handle: this server polls. */
    cci_endpoint_t *endpoint = open_server(argc, argv, NULL);
    int served = 0;

    print_uri(endpoint);

    while (!served) {
        cci_event_t *event = wait_event(endpoint);

        switch (event->type) {
        case CCI_EVENT_CONNECT_REQUEST:
            printf("a client says \"%.*s\"\n", (int)event->request.data_len, (const char *)event->request.data_ptr);
            check(cci_accept(event, NULL), "cci_accept");
            break;
        case CCI_EVENT_ACCEPT:
            check((int)event->accept.status, "accepting");
            break;
        case CCI_EVENT_RECV:
            if (event->recv.len == 0) {
                check(cci_disconnect(event->recv.connection), "cci_disconnect");
                served = 1;
            } else {
                /* Straight from the receive buffer, which is ours until the event is returned. */
                check(cci_send(event->recv.connection, event->recv.ptr, event->recv.len, NULL, 0), "cci_send");
            }
            break;
        case CCI_EVENT_SEND:
            check((int)event->send.status, "sending");
            break;
        default:
            printf("ignored %s\n", cci_event_type_str(event->type));
        }
        /* Every event goes back, whatever it was. */
        check(cci_return_event(event), "cci_return_event");
    }
    check(cci_destroy_endpoint(endpoint), "cci_destroy_endpoint");
    check(cci_finalize(), "cci_finalize");
    return 0;
}
