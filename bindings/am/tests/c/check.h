/*
 * What the test programs share: checks that end the program.
 */

#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Longer than anything here takes, seconds. */
#define PATIENCE 60

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                                    \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#define CHECK_CODE(call, wanted)                                                                                       \
    do {                                                                                                               \
        int code_ = (call);                                                                                            \
        if (code_ != (wanted)) {                                                                                       \
            fprintf(stderr, "%s:%d: %s gave %d, not %d\n", __FILE__, __LINE__, #call, code_, (int)(wanted));           \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#define CHECK_OK(call) CHECK_CODE(call, AM_OK)

/* Polls a bundle until a condition holds. */
#define POLL_UNTIL(bundle, condition)                                                                                  \
    do {                                                                                                               \
        time_t deadline_ = time(NULL) + PATIENCE;                                                                      \
        while (!(condition)) {                                                                                         \
            CHECK_OK(AM_Poll(bundle));                                                                                 \
            CHECK(time(NULL) < deadline_);                                                                             \
        }                                                                                                              \
    } while (0)

#endif /* CHECK_H */
