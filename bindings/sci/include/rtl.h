/*
 * What programs of Scali's interface take from its run time: names of types, and aligned memory.
 */

#ifndef RTL_H
#define RTL_H

#include <stdint.h>
#include <stdlib.h>

/* C99 alone does not declare it. */
#if !defined(__cplusplus) && (!defined(__STDC_VERSION__) || __STDC_VERSION__ < 201112L)
void *aligned_alloc(size_t alignment, size_t size);
#endif

typedef uint16_t unsigned16;
typedef uint32_t unsigned32;

#ifndef BOOL
#define BOOL int
#endif
#ifndef TRUE
#define TRUE 1
#endif
#ifndef FALSE
#define FALSE 0
#endif

/* `size` bytes at a multiple of `alignment`, a power of two; NULL: there are not so many. */
static inline void *RtlMemAlign(size_t alignment, size_t size) {
    size_t whole;

    if (alignment == 0 || (alignment & (alignment - 1)) != 0)
        return NULL;
    if (alignment < sizeof(void *))
        alignment = sizeof(void *);
    whole = (size + alignment - 1) / alignment * alignment;
    return whole < size ? NULL : aligned_alloc(alignment, whole == 0 ? alignment : whole);
}

/* Frees it; free does so too. */
static inline void RtlMemFree(void *memory) {
    free(memory);
}

#endif /* RTL_H */
