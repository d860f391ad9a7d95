/*
 * Names for messages of Portals 3.3, which are in portals3.h, and what programs that were written
 * for the reference ask for beside them: how to print its types, and a mask of what to trace.
 *
 * Tracing is by CCI_LOG and CCI_TRACE here. PtlNIDebug keeps the mask and gives the one before; no
 * bit of it makes the library print.
 */

#ifndef P3API_DEBUG_H
#define P3API_DEBUG_H

#include <inttypes.h>

#include "../portals3.h"

#ifdef __cplusplus
extern "C" {
#endif

/* For printf: a size, a handle, a sequence number; a node with a process, which begins with a
 * space. */
#define FMT_SZ_T "%" PRIu64
#define FMT_HDL_T "%#" PRIx32
#define FMT_SEQ_T "%" PRIu32
#define FMT_NIDPID " nid %#" PRIx32 " pid %" PRIu32

#define PTL_DBG_API 0x1u
#define PTL_DBG_PARSE 0x2u
#define PTL_DBG_MOVE 0x4u
#define PTL_DBG_DROP 0x8u
#define PTL_DBG_REQUEST 0x10u
#define PTL_DBG_DELIVERY 0x20u
#define PTL_DBG_MD 0x40u
#define PTL_DBG_ME 0x80u
#define PTL_DBG_UNLINK 0x100u
#define PTL_DBG_EQ 0x200u
#define PTL_DBG_EVENT 0x400u
#define PTL_DBG_MEMORY 0x800u
#define PTL_DBG_SETUP 0x1000u
#define PTL_DBG_SHUTDOWN 0x2000u
#define PTL_DBG_ALL 0x0000ffffu
/* Those of an interface. */
#define PTL_DBG_NI_ALL 0xffff0000u

/* ni may be PTL_INVALID_HANDLE: the mask is that of the process. May be called before PtlInit. */
unsigned int PtlNIDebug(ptl_handle_ni_t ni, unsigned int mask);

#ifdef __cplusplus
}
#endif

#endif /* P3API_DEBUG_H */
