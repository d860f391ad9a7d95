/*
 * The run time of Portals: ranks, and which process each is. In a parallel job of CCI PtlNIInit
 * fills them in. Elsewhere PtlSetRank(ni, -1, -1) reads PTL_MY_RID, PTL_NIDMAP, PTL_PIDMAP and
 * PTL_MY_JID: numbers, or IPv4 addresses, with colons between them.
 *
 * ni may be PTL_INVALID_HANDLE before PtlNIInit, which then takes the pid of this rank from the map
 * if it is asked for any.
 */

#ifndef P3RT_P3RT_H
#define P3RT_P3RT_H

#include "../portals3.h"

#ifdef __cplusplus
extern "C" {
#endif

/* rank and size may be NULL. */
int PtlSetRank(ptl_handle_ni_t ni, int rank, int size);
int PtlGetRank(ptl_handle_ni_t ni, unsigned int *rank, unsigned int *size);
int PtlGetRankId(ptl_handle_ni_t ni, unsigned int rank, ptl_process_id_t *id);
/* PTL_NO_SPACE: there are more entries than count. */
int PtlSetNIDMap(ptl_handle_ni_t ni, const ptl_nid_t *map, int count);
int PtlGetNIDMap(ptl_handle_ni_t ni, ptl_nid_t *map, int count);
int PtlSetPIDMap(ptl_handle_ni_t ni, const ptl_pid_t *map, int count);
int PtlGetPIDMap(ptl_handle_ni_t ni, ptl_pid_t *map, int count);
int PtlSetJID(ptl_handle_ni_t ni, ptl_jid_t jid);

#ifdef __cplusplus
}
#endif

#endif /* P3RT_P3RT_H */
