/*
 * The interface of programs that were written for Portals over TCP: here that of CCI, whatever its
 * device is.
 */

#ifndef P3NAL_UTCP_H
#define P3NAL_UTCP_H

#include "portals3.h"

#define PTL_IFACE_UTCP ((ptl_interface_t)1)

#endif /* P3NAL_UTCP_H */
