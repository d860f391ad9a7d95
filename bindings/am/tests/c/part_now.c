/*
 * The dialect of 1996: names by pointer, shifted codes, status bits.
 */

#include <am.h>

#include "part.h"

PART(round_trip, now, ea_t, en_t *)

static int status, operation;

static void returned(int why, op_t what, void *argblock)
{
    (void)argblock;
    status |= why;
    operation = what;
}

int part_now(void);
int part_now(void)
{
    eb_t bundle;
    ea_t endpoint;
    en_t *name;
    CHECK_CODE(AM_AllocateBundle(AM_SEQ, &bundle), AM_ERR_NOT_INIT);
    CHECK(round_trip() == 10);
    CHECK_OK(AM_Init());
    CHECK_CODE(AM_Init(), AM_ERR_NOT_TERM);
    CHECK_OK(AM_AllocateBundle(AM_SEQ, &bundle));
    CHECK_CODE(AM_AllocateBundle(AM_PAR, &bundle), AM_ERR_RESOURCE);
    CHECK_OK(AM_AllocateEndpoint(bundle, &endpoint, &name));
    CHECK_OK(AM_SetEventMask(bundle, AM_NOTEMPTY));
    CHECK(AM_GetEventMask(bundle) == AM_NOTEMPTY);
    CHECK_OK(AM_SetHandler(endpoint, 0, returned));
    CHECK_CODE(AM_Request4(endpoint, 0, 1, 1, 2, 3, 4), AM_ERR_BAD_ARG);
    CHECK(status == EBADENTRY && operation == AM_REQUEST_M);
    CHECK_OK(AM_Map(endpoint, 0, name, 1));
    CHECK_OK(AM_RequestI8(endpoint, 0, 1, "x", 1, 1, 2, 3, 4, 5, 6, 7, 8));
    CHECK(status == (EBADENTRY | EBADTAG) && operation == AM_REQUEST_IM);
    CHECK_OK(AM_Terminate());
    return now_answers;
}
