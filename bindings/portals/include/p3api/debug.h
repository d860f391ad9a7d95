/*
 * Names for messages of Portals 3.3: all of them are in portals3.h.
 */

#ifndef P3API_DEBUG_H
#define P3API_DEBUG_H

#include "../portals3.h"

#endif /* P3API_DEBUG_H */
