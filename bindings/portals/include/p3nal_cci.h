/*
 * Interfaces of Portals over CCI. The device is that of CCI's configuration.
 */

#ifndef P3NAL_CCI_H
#define P3NAL_CCI_H

#include "portals3.h"

/* The generic mode: calls of the program make the progress. */
#define PTL_IFACE_CCI ((ptl_interface_t)0x100)
/* The accelerated mode: an engine, which is a thread of the process, makes the progress. */
#define PTL_IFACE_CCI_ACCEL ((ptl_interface_t)0x101)

#endif /* P3NAL_CCI_H */
