/*
 * The interface of programs that were written for Portals over InfiniBand: here that of CCI,
 * whatever its device is.
 */

#ifndef P3NAL_IBNG_H
#define P3NAL_IBNG_H

#include "portals3.h"

#define PTL_IFACE_IBNG ((ptl_interface_t)2)

#endif /* P3NAL_IBNG_H */
