/*
 * Each rank of a parallel job sends its number to the next one: `cci run -n 4 job_ring`.
 */

#include "example.h"

static void check_job(int status, const char *what)
{
    if (status != CCI_SUCCESS) {
        fprintf(stderr, "%s: %s\n", what, ccix_last_error());
        exit(1);
    }
}

int main(int argc, char **argv)
{
    struct ccix_job_report job = {0};
    struct timeval limit = {60, 0};
    cci_endpoint_t *endpoint;
    cci_event_t *event;
    uint32_t caps, from = 0;
    char next[32];
    int open = 0;

    if (argc > 1) {
        fprintf(stderr, "usage: cci run -n N %s\n", argv[0]);
        return 2;
    }
    check(cci_init(CCI_ABI_VERSION, 0, &caps), "cci_init");
    check_job(ccix_job_join(NULL), "ccix_job_join");
    job.size = sizeof(job);
    check_job(ccix_job_info(&job), "ccix_job_info");
    check_job(ccix_job_open(NULL, &endpoint, NULL), "ccix_job_open");

    snprintf(next, sizeof(next), "job:%u", (job.rank + 1) % job.ranks);
    check_job(cci_connect(endpoint, next, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, &limit), "cci_connect");
    /* The connection to the next rank, the request of the one before, and its message. */
    while (open < 3) {
        event = wait_event(endpoint);
        if (event->type == CCI_EVENT_CONNECT) {
            check((int)event->connect.status, next);
            check(cci_send(event->connect.connection, &job.rank, sizeof(job.rank), NULL, 0), "cci_send");
        } else if (event->type == CCI_EVENT_CONNECT_REQUEST) {
            check(cci_accept(event, NULL), "cci_accept");
        } else if (event->type == CCI_EVENT_RECV) {
            memcpy(&from, event->recv.ptr, sizeof(from));
            open++;
        } else if (event->type == CCI_EVENT_SEND || event->type == CCI_EVENT_ACCEPT) {
            check((int)(event->type == CCI_EVENT_SEND ? event->send.status : event->accept.status), "an event");
            open++;
        }
        check(cci_return_event(event), "cci_return_event");
    }
    printf("rank %u of %u got the message of rank %u\n", job.rank, job.ranks, from);
    /* Nobody closes before all have got theirs. */
    check_job(ccix_job_exchange(NULL, 0, NULL, 0, NULL), "ccix_job_exchange");
    check(cci_destroy_endpoint(endpoint), "cci_destroy_endpoint");
    check(cci_finalize(), "cci_finalize");
    return 0;
}
