/*
 * What the test programs share: checks that end the program, and two connected sides.
 */

#ifndef CHECK_H
#define CHECK_H

#include "../../../compat_check.h"

#define CHECK_OK(call) CHECK_CODE(call, VIP_SUCCESS)

/* Milliseconds. */
#define LIMIT ((VIP_ULONG)PATIENCE * 1000)
#define SHORT 50

#endif /* CHECK_H */
