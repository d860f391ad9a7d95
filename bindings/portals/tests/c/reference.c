/*
 * The habits of programs that were written for the reference: its other headers, a mask and a
 * stream for what it traces, an ACK that is waited for by the partner that sends it, a descriptor
 * for one get, which goes with its reply, and one that goes without an event.
 */

#include "ranks.h"
#include <p3/debug.h>
#include <p3api/debug.h>
#include <p3utils.h>
#include <string.h>

/* Programs declare them again, as the reference has them. */
const char *PtlErrorStr(unsigned int code);
const char *PtlNIFailStr(ptl_handle_ni_t ni, ptl_ni_fail_t failure);

#define MATCH 1
#define LAST 99
#define AGAIN_MS 1000

static char token;

/* Until this rank has heard from its partner, who may not be there yet, and been heard. */
static void handshake(const SIDE *side, ptl_handle_md_t handle, ptl_process_id_t own, ptl_process_id_t partner) {
    int has_put = 0, has_sent = 0, has_ack = 0;
    ptl_event_t event;
    timeout_val_t limit;

    clear_timeout(&limit);
    CHECK(!test_timeout(&limit));
    while (!has_put || !has_sent || !has_ack) {
        has_sent = has_ack = 0;
        set_timeout(&limit, AGAIN_MS);
        OK(PtlPutRegion(handle, 0, 1, PTL_ACK_REQ, partner, 4, 0, MATCH, 0, 0));
        while (!test_timeout(&limit) && !(has_put && has_sent && has_ack)) {
            int code = PtlEQGet(side->eq, &event);

            CHECK(code == PTL_OK || code == PTL_EQ_EMPTY);
            if (code != PTL_OK)
                continue;
            CHECK(event.ni_fail_type == PTL_NI_OK);
            if (event.initiator.nid == partner.nid && event.initiator.pid == partner.pid) {
                has_put |= event.type == PTL_EVENT_PUT_END;
                has_ack |= event.type == PTL_EVENT_ACK && event.rlength == 1 && event.mlength == 1;
            } else if (event.initiator.nid == own.nid && event.initiator.pid == own.pid) {
                has_sent |= event.type == PTL_EVENT_SEND_END;
            }
        }
    }
}

/* Each is done, and knows that its partner is. */
static void part(const SIDE *side, ptl_handle_md_t handle, ptl_process_id_t partner) {
    int has_put = 0, has_sent = 0;
    ptl_event_t event;

    OK(PtlPutRegion(handle, 0, 1, PTL_NO_ACK_REQ, partner, 4, 0, MATCH, 0, LAST));
    while (!has_put || !has_sent) {
        OK(PtlEQWait(side->eq, &event));
        CHECK(event.ni_fail_type == PTL_NI_OK);
        has_put |= event.type == PTL_EVENT_PUT_END && event.hdr_data == LAST;
        has_sent |= event.type == PTL_EVENT_SEND_END && event.hdr_data == LAST;
    }
}

static void get_once(const SIDE *side, ptl_process_id_t partner) {
    char bytes[8] = "";
    ptl_md_t md = memory_of(bytes, sizeof bytes, 0, PTL_EQ_NONE);
    ptl_handle_md_t once;
    ptl_event_t event;

    OK(PtlEQAlloc(side->ni, 8, PTL_EQ_HANDLER_NONE, &md.eq_handle));
    md.threshold = 1;
    OK(PtlMDBind(side->ni, md, PTL_UNLINK, &once));
    OK(PtlGet(once, partner, 4, 0, MATCH + 1, 0));
    OK(PtlEQWait(md.eq_handle, &event));
    CHECK(event.type == PTL_EVENT_REPLY_START);
    OK(PtlEQWait(md.eq_handle, &event));
    CHECK(event.type == PTL_EVENT_REPLY_END && event.initiator.pid == partner.pid && event.rlength == 3);
    OK(PtlEQWait(md.eq_handle, &event));
    CHECK(event.type == PTL_EVENT_UNLINK && strcmp(bytes, "it") == 0);
    CHECK_CODE(PtlMDUnlink(once), PTL_MD_INVALID);
}

/* A descriptor that leaves neither START nor END goes without an event too. */
static void leave_nothing(const SIDE *side, ptl_process_id_t own) {
    char byte = 0;
    ptl_md_t md = memory_of(&byte, 1, PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE, PTL_EQ_NONE);
    ptl_handle_md_t silent;
    ptl_event_t event;

    OK(PtlEQAlloc(side->ni, 8, PTL_EQ_HANDLER_NONE, &md.eq_handle));
    md.threshold = 1;
    OK(PtlMDBind(side->ni, md, PTL_UNLINK, &silent));
    OK(PtlPut(silent, PTL_NO_ACK_REQ, own, 4, 0, MATCH + 2, 0, 0));
    while (PtlMDUpdate(silent, &md, NULL, PTL_EQ_NONE) == PTL_OK)
        CHECK_CODE(PtlEQGet(md.eq_handle, &event), PTL_EQ_EMPTY);
    CHECK_CODE(PtlEQGet(md.eq_handle, &event), PTL_EQ_EMPTY);
}

static void print_types(const SIDE *side, ptl_process_id_t own) {
    char text[200], expected[200];
    ptl_size_t length = 5;

    snprintf(text, sizeof text, FMT_SZ_T " " FMT_HDL_T " " FMT_SEQ_T FMT_NIDPID, length, side->eq, (ptl_seq_t)7,
             own.nid, own.pid);
    snprintf(expected, sizeof expected, "5 %#x 7 nid %#x pid %u", side->eq, own.nid, own.pid);
    CHECK(strcmp(text, expected) == 0);
}

int main(void) {
    char word[] = "it";
    unsigned int options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE;
    ptl_process_id_t own, partner;
    ptl_handle_md_t tokens;
    SIDE side;

    CHECK(PtlNIDebug(PTL_INVALID_HANDLE, PTL_DBG_NI_ALL | PTL_DBG_EVENT) == 0);
    side = begin(64);
    CHECK(p3_out == stderr);
    p3_out = stdout;
    CHECK(PtlNIDebug(side.ni, 0) == (PTL_DBG_NI_ALL | PTL_DBG_EVENT));
    CHECK(side.size == 2);
    own = of_rank(&side, side.rank);
    partner = of_rank(&side, 1 - side.rank);
    tokens = post(&side, MATCH, memory_of(&token, 1, options, side.eq), PTL_RETAIN);
    options = PTL_MD_OP_GET | PTL_MD_TRUNCATE | PTL_MD_MANAGE_REMOTE;
    post(&side, MATCH + 1, memory_of(word, sizeof word, options, PTL_EQ_NONE), PTL_RETAIN);
    print_types(&side, own);
    handshake(&side, tokens, own, partner);
    get_once(&side, partner);
    leave_nothing(&side, own);
    part(&side, tokens, partner);
    return finish("as the reference");
}
