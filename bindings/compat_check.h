/*
 * What the test programs of older interfaces share: checks that end the program, and parts that
 * fork.
 */

#ifndef COMPAT_CHECK_H
#define COMPAT_CHECK_H

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

/*
 * Runs a part of a test that forks. Without it under the address sanitizer, whose allocator hangs
 * in a child that is forked while another thread allocates.
 */
#ifdef __SANITIZE_ADDRESS__
#define FORKS(part) ((void)(part))
#else
#define FORKS(part) part()
#endif

#endif /* COMPAT_CHECK_H */
