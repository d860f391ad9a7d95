/*
 * Portals 3.3 in the dialect of the Cray XT: names of interfaces, access control without jobs, and
 * UNLINK events only for descriptors that ask for them.
 */

#ifndef PORTALS_PORTALS3_H
#define PORTALS_PORTALS3_H

#include "../portals3.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An interface: how it is reached, and what it is. */
#define PTL_BRIDGE_UK 0
#define PTL_BRIDGE_QK 1
#define CRAY_USER_NAL 2
/* An engine, which is a thread of the process, makes the progress. */
#define CRAY_ACCEL 0x1000
#define IFACE_FROM_BRIDGE_AND_NALID(bridge, nal) ((ptl_interface_t)(bridge) << 16 | (ptl_interface_t)(nal))
#define PTL_IFACE_SS ((ptl_interface_t)0x200)

/* What programs add to the pid of an accelerated process: the interface alone tells here. */
#define ACCEL_PTLS_PID_SPACE_OFFSET 0

#define PTL_NOACK_REQ PTL_NO_ACK_REQ

#define PTL_MD_EVENT_AUTO_UNLINK_ENABLE 0x10000
#define PTL_MD_EVENT_MANUAL_UNLINK_ENABLE 0x20000

/* Says that the program speaks this dialect. */
int PtlInitCray(int *max_interfaces);
#define PtlInit(max_interfaces) PtlInitCray(max_interfaces)

#define PtlACEntry(ni, index, match_id, uid, pt_index) (PtlACEntry)(ni, index, match_id, uid, PTL_JID_ANY, pt_index)

#ifdef __cplusplus
}
#endif

#endif /* PORTALS_PORTALS3_H */
