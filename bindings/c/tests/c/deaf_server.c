/*
 * A server for clients whose server dies: prints its URI, accepts, says "received", and answers
 * nothing until it is killed.
 */

#include "check.h"

int main(void)
{
    cci_endpoint_t *endpoint;
    cci_event_t *event;
    char *uri;

    start();
    endpoint = open_endpoint(NULL);
    uri = uri_of(endpoint);
    printf("%s\n", uri);
    fflush(stdout);
    free(uri);
    for (;;) {
        if (cci_get_event(endpoint, &event) != CCI_SUCCESS) {
            continue;
        }
        if (event->type == CCI_EVENT_CONNECT_REQUEST) {
            CHECK_OK(cci_accept(event, NULL));
        }
        if (event->type == CCI_EVENT_RECV) {
            printf("received\n");
            fflush(stdout);
        }
        CHECK_OK(cci_return_event(event));
    }
}
