/*
 * Where programs that were written for the reference send what it traces. The library writes
 * nothing there.
 */

#ifndef P3_DEBUG_H
#define P3_DEBUG_H

#include <stdio.h>

#include "../p3api/debug.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The program may set it; from PtlInit on it is stderr otherwise. */
extern FILE *p3_out;

#ifdef __cplusplus
}
#endif

#endif /* P3_DEBUG_H */
