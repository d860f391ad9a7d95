/*
 * Active Messages: the types and numbers that all dialects have in common. Programs include
 * amudp.h, ammpi.h or am.h.
 */

#ifndef CCI_AM_BASE_H
#define CCI_AM_BASE_H

#include <stddef.h>
#include <stdint.h>

typedef uint64_t tag_t;
typedef uint8_t handler_t;
typedef int op_t;
typedef struct cci_am_bundle *eb_t;

#define AM_NONE ((tag_t)0)
#define AM_ALL (~(tag_t)0)

#define AM_SEQ 0
#define AM_PAR 1

#define AM_NOEVENTS 0
#define AM_NOTEMPTY 1

/* The operation that handler 0 gets. */
enum {
    AM_REQUEST_M = 1,
    AM_REQUEST_IM = 2,
    AM_REQUEST_XFER_M = 3,
    AM_REPLY_M = 4,
    AM_REPLY_IM = 5,
    AM_REPLY_XFER_M = 6
};

#endif /* CCI_AM_BASE_H */
