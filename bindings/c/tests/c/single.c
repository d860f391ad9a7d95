/*
 * cci_finalize() closes endpoints that belong to other threads, whether these are within a call or
 * not.
 */

#include "check.h"

#include <dirent.h>
#include <pthread.h>

enum { THREADS = 50, BUSY = 4 };

static pthread_barrier_t opened;
static pthread_barrier_t finalized;

static int descriptors(void)
{
    DIR *list = opendir("/proc/self/fd");
    int count = 0;

    CHECK(list != NULL);
    while (readdir(list)) {
        count++;
    }
    closedir(list);
    return count;
}

static void *own(void *number)
{
    struct ccix_endpoint_options asked = {sizeof(asked), CCIX_ENDPOINT_SINGLE_THREAD, 16, 16, NULL};
    cci_endpoint_t *endpoint;
    cci_event_t *event;
    cci_os_handle_t fd;
    struct pair pair;
    int status;

    CHECK_OK(ccix_create_endpoint(NULL, &asked, &endpoint, &fd));
    pair = connect_self(endpoint, CCI_CONN_ATTR_RO);
    pthread_barrier_wait(&opened);
    if ((size_t)number < BUSY) {
        do {
            status = cci_get_event(endpoint, &event);
        } while (status == CCI_EAGAIN);
        CHECK_STATUS(status, CCI_EINVAL);
    }
    pthread_barrier_wait(&finalized);
    CHECK_STATUS(cci_get_event(endpoint, &event), CCI_EINVAL);
    CHECK(event == NULL && strstr(ccix_last_error(), "closed") != NULL);
    CHECK(cci_send(pair.client, "x", 1, NULL, 0) != CCI_SUCCESS);
    CHECK(cci_rma_register(endpoint, &asked, 1, 0, (cci_rma_handle_t **)&number) != CCI_SUCCESS);
    CHECK_STATUS(cci_arm_os_handle(endpoint, 0), CCI_EINVAL);
    CHECK_STATUS(cci_destroy_endpoint(endpoint), CCI_EINVAL);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    size_t at;
    int round;
    int before = 0;

    for (round = 0; round < 3; round++) {
        CHECK(pthread_barrier_init(&opened, NULL, THREADS + 1) == 0);
        CHECK(pthread_barrier_init(&finalized, NULL, THREADS + 1) == 0);
        start();
        for (at = 0; at < THREADS; at++) {
            CHECK(pthread_create(&threads[at], NULL, own, (void *)at) == 0);
        }
        pthread_barrier_wait(&opened);
        CHECK_OK(cci_finalize());
        /* What the library keeps for the whole process is there after the first round. */
        if (round > 0) {
            CHECK(descriptors() <= before);
        }
        before = descriptors();
        CHECK(before < THREADS);
        pthread_barrier_wait(&finalized);
        for (at = 0; at < THREADS; at++) {
            CHECK(pthread_join(threads[at], NULL) == 0);
        }
    }
    return 0;
}
