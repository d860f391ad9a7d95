/*
 * Active Messages II, names by value as socket addresses. `pkg-config --cflags --libs amudp`.
 */

#ifndef CCI_AMUDP_H
#define CCI_AMUDP_H

#include <netinet/in.h>

/* The name of an endpoint. The address stands for the host, and lies in 127.0.0.0/8. */
typedef struct sockaddr_in en_t;

#define AMX_DIALECT AMUDP_
#include "amx.h"

#define AMUDP_LIBRARY_VERSION 3
#define AMUDP_MAX_SHORT AMX_MAX_SHORT
#define AMUDP_MAX_MEDIUM AMX_MAX_MEDIUM
#define AMUDP_MAX_LONG AMX_MAX_LONG
#define AMUDP_MAX_NUMHANDLERS AMX_MAX_NUMHANDLERS
#define AMUDP_MAX_NUMTRANSLATIONS AMX_MAX_NUMTRANSLATIONS
#define AMUDP_MAX_SEGLENGTH AMX_MAX_SEGLENGTH
#define AMUDP_MAX_BUNDLES AMX_MAX_BUNDLES
#define AMUDP_MAX_NETWORKDEPTH AMX_MAX_NETWORKDEPTH
#define AMUDP_DEFAULT_NETWORKDEPTH AMX_DEFAULT_NETWORKDEPTH
typedef amx_stats_t amudp_stats_t;
typedef amx_category_t amudp_category_t;
#define amudp_Short amx_Short
#define amudp_Medium amx_Medium
#define amudp_Long amx_Long
#define amudp_NumCategories amx_NumCategories

#endif /* CCI_AMUDP_H */
