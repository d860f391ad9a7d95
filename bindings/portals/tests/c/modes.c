/*
 * A generic and an accelerated interface of one process: each puts to the other one, and the end of
 * one leaves the other.
 */

#include <p3nal_cci.h>
#include <portals3.h>

#include "../../../compat_check.h"

static const ptl_process_id_t ANYBODY = {PTL_NID_ANY, PTL_PID_ANY};

typedef struct {
    ptl_handle_ni_t ni;
    ptl_handle_eq_t eq;
    ptl_process_id_t id;
    ptl_handle_me_t entry;
    ptl_handle_md_t target, source;
    char memory[8], bytes[8];
} SIDE;

static void begin(SIDE *side, ptl_interface_t iface, const char *bytes) {
    ptl_md_t md = {side->memory, sizeof side->memory, PTL_MD_THRESH_INF, 0, 0, NULL, PTL_EQ_NONE};

    memcpy(side->bytes, bytes, sizeof side->bytes);
    CHECK_CODE(PtlNIInit(iface, PTL_PID_ANY, NULL, NULL, &side->ni), PTL_OK);
    CHECK_CODE(PtlGetId(side->ni, &side->id), PTL_OK);
    CHECK_CODE(PtlEQAlloc(side->ni, 16, PTL_EQ_HANDLER_NONE, &side->eq), PTL_OK);
    CHECK_CODE(PtlMEAttach(side->ni, 4, ANYBODY, 7, 0, PTL_RETAIN, PTL_INS_AFTER, &side->entry), PTL_OK);
    md.eq_handle = side->eq;
    md.options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE;
    CHECK_CODE(PtlMDAttach(side->entry, md, PTL_RETAIN, &side->target), PTL_OK);
    md.start = side->bytes;
    md.options = PTL_MD_EVENT_START_DISABLE;
    CHECK_CODE(PtlMDBind(side->ni, md, PTL_RETAIN, &side->source), PTL_OK);
}

/* The next event of this kind. The other side's calls make its progress meanwhile. */
static void until(SIDE *side, SIDE *other, ptl_event_kind_t kind) {
    time_t begun = time(NULL);
    ptl_sr_value_t dropped;
    ptl_event_t event;
    int code;

    do {
        CHECK(time(NULL) - begun < PATIENCE);
        CHECK_CODE(PtlNIStatus(other->ni, PTL_SR_DROP_COUNT, &dropped), PTL_OK);
        CHECK(dropped == 0);
        code = PtlEQGet(side->eq, &event);
        CHECK(code == PTL_EQ_EMPTY || (code == PTL_OK && event.ni_fail_type == PTL_NI_OK));
    } while (code != PTL_OK || event.type != kind);
}

static void put(SIDE *from, SIDE *to) {
    CHECK_CODE(PtlPut(from->source, PTL_ACK_REQ, to->id, 4, 0, 7, 0, 0), PTL_OK);
    until(from, to, PTL_EVENT_ACK);
    /* Of a put to itself it was before the ack. */
    if (from != to)
        until(to, from, PTL_EVENT_PUT_END);
    CHECK(memcmp(from->bytes, to->memory, sizeof to->memory) == 0);
}

int main(void) {
    static SIDE generic, accelerated;
    ptl_handle_any_t handle, queues[2];
    ptl_process_id_t id;
    ptl_event_t event;
    int most, which;

    CHECK_CODE(PtlInit(&most), PTL_OK);
    CHECK(most == 2);
    begin(&generic, PTL_IFACE_CCI, "generic");
    begin(&accelerated, PTL_IFACE_CCI_ACCEL, "engine ");
    CHECK(generic.ni != accelerated.ni && generic.id.pid != accelerated.id.pid);
    put(&generic, &accelerated);
    put(&accelerated, &generic);
    put(&accelerated, &accelerated);

    /* Each object is of one of them. */
    CHECK_CODE(PtlNIHandle(accelerated.target, &handle), PTL_OK);
    CHECK(handle == accelerated.ni);
    CHECK_CODE(PtlNIHandle(generic.eq, &handle), PTL_OK);
    CHECK(handle == generic.ni);
    queues[0] = generic.eq;
    queues[1] = accelerated.eq;
    CHECK_CODE(PtlEQPoll(queues, 2, 0, &event, &which), PTL_EQ_INVALID);
    CHECK_CODE(PtlGetPut(generic.source, accelerated.source, generic.id, 4, 0, 7, 0, 0), PTL_MD_INVALID);

    /* The other one goes on. */
    CHECK_CODE(PtlNIFini(generic.ni), PTL_OK);
    CHECK_CODE(PtlNIFini(generic.ni), PTL_NI_INVALID);
    CHECK_CODE(PtlEQGet(generic.eq, &event), PTL_EQ_INVALID);
    put(&accelerated, &accelerated);
    CHECK_CODE(PtlNIInit(PTL_IFACE_CCI, PTL_PID_ANY, NULL, NULL, &generic.ni), PTL_OK);
    CHECK_CODE(PtlGetId(generic.ni, &id), PTL_OK);
    CHECK(id.pid != accelerated.id.pid);
    PtlFini();
    puts("two modes");
    return 0;
}
