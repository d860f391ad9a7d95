/*
 * The dialect of the Cray XT.
 */

#include <portals/portals3.h>

#include "../../../compat_check.h"

static const ptl_process_id_t ANYBODY = {PTL_NID_ANY, PTL_PID_ANY};

/* The kinds of events that a put to oneself leaves in the target's queue. */
static int unlinks(ptl_handle_ni_t ni, unsigned int options) {
    static char memory[8];
    ptl_md_t md = {memory, sizeof memory, 1, 0, PTL_MD_OP_PUT | options, NULL, PTL_EQ_NONE};
    ptl_handle_me_t me;
    ptl_handle_md_t target, source;
    ptl_handle_eq_t eq;
    ptl_process_id_t self;
    ptl_event_t event;
    int count = 0;

    CHECK_CODE(PtlGetId(ni, &self), PTL_OK);
    CHECK_CODE(PtlEQAlloc(ni, 16, PTL_EQ_HANDLER_NONE, &eq), PTL_OK);
    CHECK_CODE(PtlMDBind(ni, md, PTL_UNLINK, &source), PTL_OK);
    md.eq_handle = eq;
    CHECK_CODE(PtlMEMDAttach(ni, 4, ANYBODY, 7, 0, PTL_UNLINK, PTL_INS_AFTER, md, PTL_UNLINK, &me, &target), PTL_OK);
    CHECK_CODE(PtlPut(source, PTL_NOACK_REQ, self, 4, 0, 7, 0, 0), PTL_OK);
    while (PtlEQGet(eq, &event) == PTL_OK)
        count += event.type == PTL_EVENT_UNLINK;
    CHECK_CODE(PtlMDUnlink(target), PTL_MD_INVALID);
    CHECK_CODE(PtlEQFree(eq), PTL_OK);
    return count;
}

int main(void) {
    ptl_interface_t iface = IFACE_FROM_BRIDGE_AND_NALID(PTL_BRIDGE_UK, CRAY_USER_NAL);
    ptl_interface_t accelerated = IFACE_FROM_BRIDGE_AND_NALID(PTL_BRIDGE_UK, CRAY_ACCEL);
    ptl_handle_ni_t ni, again;
    int most;

    CHECK_CODE(PtlInit(&most), PTL_OK);
    CHECK_CODE(PtlNIInit(iface, PTL_PID_ANY, NULL, NULL, &ni), PTL_OK);
    CHECK_CODE(PtlNIInit(PTL_IFACE_SS, PTL_PID_ANY, NULL, NULL, &again), PTL_IFACE_DUP);
    CHECK(ni == again);
    CHECK_CODE(PtlNIInit(accelerated, PTL_PID_ANY, NULL, NULL, &again), PTL_OK);
    CHECK(ni != again);
    CHECK_CODE(PtlNIInit(accelerated, PTL_PID_ANY, NULL, NULL, &again), PTL_IFACE_DUP);
    CHECK_CODE(PtlNIFini(again), PTL_OK);
    CHECK_CODE(PtlACEntry(ni, 1, ANYBODY, PTL_UID_ANY, PTL_PT_INDEX_ANY), PTL_OK);
    CHECK(unlinks(ni, 0) == 0 && unlinks(ni, PTL_MD_EVENT_AUTO_UNLINK_ENABLE) == 1);
    CHECK_CODE(PtlNIFini(ni), PTL_OK);
    CHECK_CODE(PtlNIInit(accelerated, PTL_PID_ANY, NULL, NULL, &ni), PTL_OK);
    PtlFini();
    puts(ptl_err_str[PTL_IFACE_DUP]);
    return 0;
}
