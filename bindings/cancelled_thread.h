/*
 * A thread that the program has cancelled before it calls: every call goes on to its end, and the
 * thread ends at its own next cancellation point.
 */

#ifndef CANCELLED_THREAD_H
#define CANCELLED_THREAD_H

#include <pthread.h>

#include "compat_check.h"

typedef struct {
    void (*calls)(void);
    int is_done;
} CANCELLED_CALLS;

static inline void *call_cancelled(void *argument) {
    CANCELLED_CALLS *part = (CANCELLED_CALLS *)argument;

    CHECK(pthread_cancel(pthread_self()) == 0);
    part->calls();
    part->is_done = 1;
    pthread_testcancel();
    return NULL;
}

/* Runs these calls so. */
static inline void run_cancelled(void (*calls)(void)) {
    CANCELLED_CALLS part = {calls, 0};
    pthread_t thread;
    void *ended;

    CHECK(pthread_create(&thread, NULL, call_cancelled, &part) == 0);
    CHECK(pthread_join(thread, &ended) == 0);
    CHECK(ended == PTHREAD_CANCELED && part.is_done);
}

#endif /* CANCELLED_THREAD_H */
