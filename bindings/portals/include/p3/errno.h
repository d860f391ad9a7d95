/*
 * Codes of Portals 3.3: all of them are in portals3.h.
 */

#ifndef P3_ERRNO_H
#define P3_ERRNO_H

#include "../portals3.h"

#endif /* P3_ERRNO_H */
