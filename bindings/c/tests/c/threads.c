/*
 * Several threads send over one connection, get the events of one endpoint, and return them for one
 * another.
 */

#include "check.h"

#include <pthread.h>

enum { THREADS = 4, EACH = 5000, TOTAL = THREADS * EACH };

static cci_endpoint_t *endpoint;
static struct pair pair;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static unsigned char seen[TOTAL];
static int received;
static int completed;
/* One event that another thread is to return. */
static cci_event_t *handed_over;

/* Counts what an event reports, and swaps it for the one that another thread has left here. */
static cci_event_t *account(cci_event_t *event)
{
    cci_event_t *other;
    uint32_t number;

    pthread_mutex_lock(&guard);
    if (event->type == CCI_EVENT_RECV) {
        memcpy(&number, event->recv.ptr, sizeof(number));
        CHECK(number < TOTAL && !seen[number]);
        seen[number] = 1;
        received++;
    } else {
        CHECK(event->type == CCI_EVENT_SEND && event->send.status == CCI_SUCCESS);
        completed++;
    }
    other = handed_over;
    handed_over = event;
    pthread_mutex_unlock(&guard);
    return other;
}

static int finished(void)
{
    int all;
    pthread_mutex_lock(&guard);
    all = received == TOTAL && completed == TOTAL;
    pthread_mutex_unlock(&guard);
    return all;
}

static void *work(void *argument)
{
    uint32_t first = (uint32_t)(*(int *)argument * EACH);
    uint32_t sent = 0;
    time_t deadline = time(NULL) + PATIENCE;

    while (sent < EACH || !finished()) {
        cci_event_t *event;
        int status;
        CHECK(time(NULL) < deadline);
        if (sent < EACH) {
            uint32_t number = first + sent;
            status = cci_send(pair.client, &number, sizeof(number), NULL, 0);
            if (status == CCI_SUCCESS) {
                sent++;
            } else {
                CHECK_STATUS(status, CCI_ENOBUFS);
            }
        }
        status = cci_get_event(endpoint, &event);
        if (status == CCI_SUCCESS) {
            event = account(event);
            if (event) {
                CHECK_OK(cci_return_event(event));
            }
        } else {
            CHECK_STATUS(status, CCI_EAGAIN);
        }
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    int numbers[THREADS];
    int at;

    start();
    endpoint = open_endpoint(NULL);
    pair = connect_self(endpoint, CCI_CONN_ATTR_RO);
    for (at = 0; at < THREADS; at++) {
        numbers[at] = at;
        CHECK(pthread_create(&threads[at], NULL, work, &numbers[at]) == 0);
    }
    for (at = 0; at < THREADS; at++) {
        CHECK(pthread_join(threads[at], NULL) == 0);
    }
    CHECK_OK(cci_return_event(handed_over));
    CHECK_OK(cci_destroy_endpoint(endpoint));
    CHECK_OK(cci_finalize());
    return 0;
}
