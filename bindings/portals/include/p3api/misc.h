/*
 * Names, extensions of Portals 3.3: all of them are in portals3.h.
 */

#ifndef P3API_MISC_H
#define P3API_MISC_H

#include "../portals3.h"

#endif /* P3API_MISC_H */
