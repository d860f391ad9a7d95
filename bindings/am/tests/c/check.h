/*
 * What the test programs share: checks that end the program.
 */

#ifndef CHECK_H
#define CHECK_H

#include "../../../compat_check.h"

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
