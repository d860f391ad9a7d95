/*
 * A thread that is cancelled makes endpoints and gives them back all the same.
 */

#include <amudp.h>

#include "check.h"

#include "../../../cancelled_thread.h"

static char segment[4096];

static void from_begin_to_end(void)
{
    eb_t bundle;
    ep_t endpoint;
    en_t name;

    CHECK_OK(AM_Init());
    CHECK_OK(AM_AllocateBundle(AM_SEQ, &bundle));
    CHECK_OK(AM_AllocateEndpoint(bundle, &endpoint, &name));
    CHECK_OK(AM_SetTag(endpoint, AM_ALL));
    CHECK_OK(AM_SetSeg(endpoint, segment, sizeof(segment)));
    CHECK_OK(AM_Map(endpoint, 0, name, AM_ALL));
    CHECK_OK(AM_Poll(bundle));
    CHECK_OK(AM_UnMap(endpoint, 0));
    CHECK_OK(AM_FreeEndpoint(endpoint));
    CHECK_OK(AM_FreeBundle(bundle));
    CHECK_OK(AM_Terminate());
}

int main(void)
{
    run_cancelled(from_begin_to_end);
    puts("called");
    return 0;
}
