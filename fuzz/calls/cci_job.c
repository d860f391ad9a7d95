/* libcci: the job of this process. */

#include "cci_calls.h"

/* Calls of the job of this process, which has one rank. Once it was left, none joins it again. */
void job(void) {
    struct timeval limit = {5, 0};
    struct ccix_job_report info = {0};
    char key[16] = "key";
    char value[64];
    uint32_t length = sizeof value;
    uint64_t values[4] = {0};
    uint32_t lengths[4];

    key[3] = (char)('a' + below(26));
    info.size = one_in(20) ? below(sizeof info + 1) : sizeof info;
    switch (below(6)) {
    case 0:
        if (joins > 0 && CALL(ccix_job_join, &limit) == CCI_SUCCESS)
            joins++;
        break;
    case 1:
        CALL(ccix_job_info, &info);
        break;
    case 2:
        CALL(ccix_job_publish, one_in(20) ? "" : key, payload, one_in(20) ? 65537 : below(80));
        break;
    case 3:
        /* One that nobody has published would be waited for. */
        if (CALL(ccix_job_publish, key, payload, 8) == CCI_EINVAL)
            CALL(ccix_job_look_up, one_in(20) ? 1 + below(9) : 0, key, value, &length);
        break;
    case 4:
        CALL(ccix_job_exchange, payload, below(9), one_in(3) ? NULL : values, 8, one_in(3) ? NULL : lengths);
        break;
    default:
        if (joins > 1 && CALL(ccix_job_leave) == CCI_SUCCESS)
            joins--;
    }
}

/* What is done once in a job, and much of the rest: the first end of the library ends the job. */
void begin_job(void) {
    struct timeval limit = {5, 0};
    struct ccix_job_report info = {0};
    cci_endpoint_t *endpoint = NULL;
    char value[8];
    uint32_t length = sizeof value;
    unsigned at;

    if (CALL(ccix_job_join, &limit) != CCI_SUCCESS)
        return;
    joins = 1;
    if (CALL(ccix_job_open, NULL, &endpoint, NULL) == CCI_SUCCESS) {
        endpoints[0].endpoint = endpoint;
        begin_endpoint(0);
    }
    CALL(ccix_job_open, NULL, &endpoint, NULL);
    CALL(ccix_job_publish, "first", payload, 8);
    CALL(ccix_job_look_up, 0, "first", value, &length);
    CALL(ccix_job_exchange, payload, 8, NULL, 0, NULL);
    info.size = sizeof info;
    CALL(ccix_job_info, &info);
    if (CALL(ccix_job_join, &limit) == CCI_SUCCESS && CALL(ccix_job_leave) != CCI_SUCCESS)
        joins++;
    for (at = 0; at < 200; at++)
        job();
}
