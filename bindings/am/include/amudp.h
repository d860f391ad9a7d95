/*
 * Active Messages II, names by value as socket addresses. `pkg-config --cflags --libs amudp`.
 */

#ifndef CCI_AMUDP_H
#define CCI_AMUDP_H

#include <netinet/in.h>

/* The name of an endpoint. The address stands for the host, and lies in 127.0.0.0/8. */
typedef struct sockaddr_in en_t;

#define AMX_DIALECT AMUDP_
#include "amudp_const.h"
#include "amx.h"

typedef amx_stats_t amudp_stats_t;
typedef amx_category_t amudp_category_t;
typedef amx_handler_fn_t amudp_handler_fn_t;
#define amudp_Short amx_Short
#define amudp_Medium amx_Medium
#define amudp_Long amx_Long
#define amudp_NumCategories amx_NumCategories

#endif /* CCI_AMUDP_H */
