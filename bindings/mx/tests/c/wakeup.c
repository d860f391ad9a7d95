/*
 * Threads that wait for what never comes are woken; one of them closes the endpoint.
 */

#include <pthread.h>
#include <unistd.h>

#include "pair.h"

static int woken;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *wait_for_ever(void *how) {
    mx_request_t request = start_receive(NULL, 0, 99), found;
    mx_status_t status;
    uint32_t result = 7;

    switch (*(int *)how) {
    case 0:
        OK(mx_wait(endpoint, &request, MX_INFINITE, &status, &result));
        break;
    case 1:
        OK(mx_wait_any(endpoint, MX_INFINITE, 99, MX_MATCH_MASK_NONE, &status, &result));
        break;
    case 2:
        OK(mx_peek(endpoint, MX_INFINITE, &found, &result));
        break;
    default:
        OK(mx_probe(endpoint, MX_INFINITE, 99, MX_MATCH_MASK_NONE, &status, &result));
    }
    CHECK(result == 0);
    OK(mx_cancel(endpoint, &request, &result));
    CHECK(result == 1);
    pthread_mutex_lock(&lock);
    woken++;
    pthread_mutex_unlock(&lock);
    return NULL;
}

static int all_woken(void) {
    int count;

    pthread_mutex_lock(&lock);
    count = woken;
    pthread_mutex_unlock(&lock);
    return count == 4;
}

int main(void) {
    pthread_t threads[4];
    int how[4], at;

    OK(mx_init());
    OK(mx_open_endpoint(0, MX_ANY_ENDPOINT, KEY, NULL, 0, &endpoint));
    for (at = 0; at < 4; at++) {
        how[at] = at;
        CHECK(pthread_create(&threads[at], NULL, wait_for_ever, &how[at]) == 0);
    }
    while (!all_woken()) {
        OK(mx_wakeup(endpoint));
        usleep(1000);
    }
    for (at = 0; at < 4; at++)
        CHECK(pthread_join(threads[at], NULL) == 0);
    OK(mx_close_endpoint(endpoint));
    OK(mx_finalize());
    puts("woken");
    return 0;
}
