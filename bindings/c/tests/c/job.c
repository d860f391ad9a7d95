/*
 * A rank of a job of two, by `ccix_job_*`. The argument names the source that the job is to have.
 */

#include "check.h"

#include <time.h>

static struct ccix_job_report info_of_job(void)
{
    struct ccix_job_report info;
    memset(&info, 0, sizeof(info));
    CHECK_STATUS(ccix_job_info(&info), CCI_EINVAL);
    info.size = 8;
    CHECK_OK(ccix_job_info(&info));
    CHECK(info.ranks == 0);
    info.size = sizeof(info);
    CHECK_OK(ccix_job_info(&info));
    return info;
}

static void values(const struct ccix_job_report *job)
{
    char text[8] = "before", all[2][4];
    uint32_t lengths[2], length = sizeof(text);

    CHECK_OK(ccix_job_publish("key", job->rank ? "one" : "null", job->rank ? 3 : 4));
    CHECK_STATUS(ccix_job_publish("key", "again", 5), CCI_EINVAL);
    CHECK_STATUS(ccix_job_publish("", "value", 5), CCI_EINVAL);
    CHECK_STATUS(ccix_job_publish(NULL, "value", 5), CCI_EINVAL);
    CHECK_OK(ccix_job_look_up(1, "key", text, &length));
    CHECK(length == 3 && memcmp(text, "onefor", 3) == 0);
    length = 2;
    CHECK_STATUS(ccix_job_look_up(0, "key", text, &length), CCI_EMSGSIZE);
    CHECK(length == 4 && memcmp(text, "nu", 2) == 0);
    length = 0;
    CHECK_STATUS(ccix_job_look_up(0, "key", NULL, &length), CCI_EMSGSIZE);
    CHECK(length == 4);
    CHECK_STATUS(ccix_job_look_up(0, "key", text, NULL), CCI_EINVAL);
    CHECK_STATUS(ccix_job_look_up(2, "key", text, &length), CCI_EINVAL);

    CHECK_OK(ccix_job_exchange(job->rank ? "ab" : "c", job->rank ? 2 : 1, all, sizeof(all[0]), lengths));
    CHECK(lengths[0] == 1 && all[0][0] == 'c' && lengths[1] == 2 && memcmp(all[1], "ab", 2) == 0);
    CHECK_STATUS(ccix_job_exchange("abcde", 1 + 4 * job->rank, all, sizeof(all[0]), lengths), CCI_EMSGSIZE);
    CHECK(lengths[0] == 1 && lengths[1] == 5 && memcmp(all[1], "abcd", 4) == 0);
    CHECK_STATUS(ccix_job_exchange("abcde", 5 - 4 * job->rank, all, sizeof(all[0]), lengths), CCI_EMSGSIZE);
    CHECK(lengths[0] == 5 && lengths[1] == 1 && memcmp(all[0], "abcd", 4) == 0 && all[1][0] == 'a');
    CHECK_STATUS(ccix_job_exchange(NULL, 1, NULL, 0, NULL), CCI_EINVAL);
    CHECK_OK(ccix_job_exchange("x", 1, NULL, 0, lengths));
    CHECK(lengths[0] == 1 && lengths[1] == 1);
}

/* A rank whose store never comes gives up at its limit, and not at that of 60 s. */
static int alone(void)
{
    struct timeval limit = {0, 300000};
    time_t begin = time(NULL);

    start();
    CHECK_STATUS(ccix_job_join(&limit), CCI_ERROR);
    CHECK(strstr(ccix_last_error(), "see that rank 0 runs there") != NULL);
    CHECK(time(NULL) - begin < 30);
    CHECK_STATUS(ccix_job_leave(), CCI_ERR_NOT_FOUND);
    CHECK_OK(cci_finalize());
    return 0;
}

int main(int argc, char **argv)
{
    struct ccix_job_report job;
    cci_endpoint_t *endpoint = NULL, *second = NULL;
    cci_device_t *device = NULL;
    char *uri, published[256];
    uint32_t length = sizeof(published);

    CHECK(argc == 2);
    if (strcmp(argv[1], "alone") == 0)
        return alone();
    CHECK_STATUS(ccix_job_join(NULL), CCI_ERROR);
    start();
    CHECK_STATUS(ccix_job_leave(), CCI_ERR_NOT_FOUND);
    endpoint = open_endpoint(NULL);
    CHECK_STATUS(cci_connect(endpoint, "job:0", NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_ERR_NOT_FOUND);
    CHECK(strstr(ccix_last_error(), "ccix_job_open") != NULL);
    CHECK_OK(cci_destroy_endpoint(endpoint));

    CHECK_OK(ccix_job_join(NULL));
    CHECK_OK(ccix_job_join(NULL));
    CHECK_OK(ccix_job_leave());
    job = info_of_job();
    CHECK(job.ranks == 2 && job.rank < 2 && job.local_ranks == 2 && job.local_rank == job.rank);
    CHECK(job.processors >= 1 && job.ranks_per_core == 2.0 / job.processors);
    CHECK(strcmp(job.source, argv[1]) == 0);
    CHECK(job.authenticated == (strcmp(argv[1], "cci run") == 0));
    values(&job);

    CHECK_STATUS(ccix_job_open(NULL, NULL, NULL), CCI_EINVAL);
    CHECK_OK(ccix_job_open(NULL, &endpoint, NULL));
    uri = uri_of(endpoint);
    CHECK_OK(ccix_job_look_up(job.rank, "uri", published, &length));
    CHECK(length == strlen(uri) && memcmp(uri, published, length) == 0);
    free(uri);
    CHECK_STATUS(ccix_job_open(NULL, &second, NULL), CCI_EINVAL);
    CHECK(second == NULL);
    CHECK_OK(ccix_device_for("job:1", &device));
    CHECK(device == endpoint->device);
    CHECK_STATUS(cci_connect(endpoint, "job:2", NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_ERR_NOT_FOUND);
    CHECK_STATUS(cci_connect(endpoint, "job", NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_EINVAL);

    /* Rank 1 connects to rank 0. */
    if (job.rank == 1) {
        cci_event_t *event;
        CHECK_OK(cci_connect(endpoint, "job:0", "hello", 5, CCI_CONN_ATTR_RO, NULL, 0, NULL));
        event = next_of(endpoint, NULL);
        CHECK(event->type == CCI_EVENT_CONNECT && event->connect.status == CCI_SUCCESS);
        CHECK_OK(cci_return_event(event));
    } else {
        cci_event_t *event = next_of(endpoint, NULL);
        CHECK(event->type == CCI_EVENT_CONNECT_REQUEST && event->request.data_len == 5);
        CHECK_OK(cci_accept(event, NULL));
        CHECK_OK(cci_return_event(event));
        event = next_of(endpoint, NULL);
        CHECK(event->type == CCI_EVENT_ACCEPT && event->accept.status == CCI_SUCCESS);
        CHECK_OK(cci_return_event(event));
    }
    CHECK_OK(ccix_job_exchange(NULL, 0, NULL, 0, NULL));
    CHECK_OK(ccix_job_leave());
    CHECK_STATUS(ccix_job_leave(), CCI_ERR_NOT_FOUND);
    CHECK_STATUS(ccix_job_exchange(NULL, 0, NULL, 0, NULL), CCI_ERR_NOT_FOUND);
    CHECK_OK(cci_destroy_endpoint(endpoint));
    CHECK_OK(cci_finalize());
    return 0;
}
