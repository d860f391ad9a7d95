/*
 * Time limits, by the names that programs written for the reference use.
 *
 *     timeout_val_t limit;
 *     set_timeout(&limit, 500);
 *     while (!test_timeout(&limit))
 *         ...
 */

#ifndef P3UTILS_H
#define P3UTILS_H

#include <sys/time.h>
#include <time.h>

#include "p3api/debug.h"

/* When it is over, milliseconds; 0: never. */
typedef int64_t timeout_val_t;

/* Milliseconds: of a clock that nobody sets, where the compiler's dialect has one. */
static inline int64_t p3utils_now(void)
{
#ifdef CLOCK_MONOTONIC
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + (int64_t)now.tv_nsec / 1000000;
#else
    struct timeval now;

    gettimeofday(&now, NULL);
    return (int64_t)now.tv_sec * 1000 + (int64_t)now.tv_usec / 1000;
#endif
}

/* So many milliseconds from now. */
static inline void set_timeout(timeout_val_t *limit, int milliseconds)
{
    *limit = p3utils_now() + milliseconds;
}

/* It is never over then. */
static inline void clear_timeout(timeout_val_t *limit)
{
    *limit = 0;
}

static inline int test_timeout(const timeout_val_t *limit)
{
    return *limit != 0 && p3utils_now() >= *limit;
}

#endif /* P3UTILS_H */
