/*
 * What the examples of Active Messages share: a call that fails ends the program, for all workers.
 */

#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        int code_ = (call);                                                                                            \
        if (code_ != AM_OK) {                                                                                          \
            fprintf(stderr, "worker %d: %s gave %d\n", AMX_SPMDMyProc(), #call, code_);                                \
            AMX_SPMDExit(1);                                                                                           \
        }                                                                                                              \
    } while (0)

/* The next number of a sequence: so that each worker can tell what all others have drawn. */
static inline uint32_t draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

#endif /* EXAMPLE_H */
