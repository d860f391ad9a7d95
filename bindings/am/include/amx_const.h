/*
 * The limits of Active Messages II, whatever the dialect. Programs include amudp.h, ammpi.h or
 * amudp_const.h.
 */

#ifndef CCI_AMX_CONST_H
#define CCI_AMX_CONST_H

#include <stdint.h>

#define AMX_MAX_SHORT 16
#define AMX_MAX_MEDIUM 65000
#define AMX_MAX_LONG 65000
#define AMX_MAX_NUMHANDLERS 256
#define AMX_MAX_NUMTRANSLATIONS (1 << 20)
#define AMX_MAX_SEGLENGTH (~(uintptr_t)0)
#define AMX_MAX_BUNDLES 255
#define AMX_MAX_NETWORKDEPTH 1024
#define AMX_DEFAULT_NETWORKDEPTH 128

/* As calls, also for headers that include constants alone. */
#define AM_MaxShort() AMX_MAX_SHORT
#define AM_MaxMedium() AMX_MAX_MEDIUM
#define AM_MaxLong() AMX_MAX_LONG
#define AM_MaxNumHandlers() AMX_MAX_NUMHANDLERS

#endif /* CCI_AMX_CONST_H */
