/*
 * Structures and constants are those of Portals 3.3.
 */

#include <p3/errno.h>
#include <p3api/api.h>
#include <p3api/debug.h>
#include <p3api/misc.h>
#include <p3api/types.h>
#include <p3nal_cci.h>
#include <p3nal_ibng.h>
#include <p3nal_utcp.h>
#include <p3rt/p3rt.h>
#include <portals3.h>

#include "../../../compat_check.h"

#define AT(type, member, offset) CHECK(offsetof(type, member) == (offset))

static void sizes(void) {
    CHECK(sizeof(ptl_size_t) == 8 && sizeof(ptl_match_bits_t) == 8 && sizeof(ptl_hdr_data_t) == 8);
    CHECK(sizeof(ptl_sr_value_t) == 8 && sizeof(ptl_sr_index_t) == 4 && sizeof(ptl_interface_t) == 4);
    CHECK(sizeof(ptl_handle_any_t) == 4 && sizeof(ptl_handle_ni_t) == 4 && sizeof(ptl_handle_md_t) == 4);
    CHECK(sizeof(ptl_handle_eq_t) == 4 && sizeof(ptl_handle_me_t) == 4 && sizeof(ptl_pt_index_t) == 4);
    CHECK(sizeof(ptl_ac_index_t) == 4 && sizeof(ptl_nid_t) == 4 && sizeof(ptl_pid_t) == 4);
    CHECK(sizeof(ptl_uid_t) == 4 && sizeof(ptl_jid_t) == 4 && sizeof(ptl_seq_t) == 4 && sizeof(ptl_time_t) == 4);
    CHECK(sizeof(ptl_ni_fail_t) == 4 && sizeof(ptl_process_id_t) == 8 && sizeof(ptl_ni_limits_t) == 32);
    CHECK(sizeof(ptl_md_iovec_t) == 16 && sizeof(ptl_md_t) == 56 && sizeof(ptl_event_t) == 144);
}

static void offsets(void) {
    AT(ptl_process_id_t, nid, 0);
    AT(ptl_process_id_t, pid, 4);
    AT(ptl_ni_limits_t, max_mes, 0);
    AT(ptl_ni_limits_t, max_mds, 4);
    AT(ptl_ni_limits_t, max_eqs, 8);
    AT(ptl_ni_limits_t, max_ac_index, 12);
    AT(ptl_ni_limits_t, max_pt_index, 16);
    AT(ptl_ni_limits_t, max_md_iovecs, 20);
    AT(ptl_ni_limits_t, max_me_list, 24);
    AT(ptl_ni_limits_t, max_getput_md, 28);
    AT(ptl_md_t, start, 0);
    AT(ptl_md_t, length, 8);
    AT(ptl_md_t, threshold, 16);
    AT(ptl_md_t, max_size, 24);
    AT(ptl_md_t, options, 32);
    AT(ptl_md_t, user_ptr, 40);
    AT(ptl_md_t, eq_handle, 48);
    AT(ptl_event_t, type, 0);
    AT(ptl_event_t, initiator, 4);
    AT(ptl_event_t, uid, 12);
    AT(ptl_event_t, jid, 16);
    AT(ptl_event_t, pt_index, 20);
    AT(ptl_event_t, match_bits, 24);
    AT(ptl_event_t, rlength, 32);
    AT(ptl_event_t, mlength, 40);
    AT(ptl_event_t, offset, 48);
    AT(ptl_event_t, md_handle, 56);
    AT(ptl_event_t, md, 64);
    AT(ptl_event_t, hdr_data, 120);
    AT(ptl_event_t, link, 128);
    AT(ptl_event_t, ni_fail_type, 132);
    AT(ptl_event_t, sequence, 136);
}

static void constants(void) {
    CHECK(PTL_INVALID_HANDLE == 0xffffffffu && PTL_HANDLE_NONE == 0x7fffffffu && PTL_EQ_NONE == 0xbfffffffu);
    CHECK(PTL_PT_INDEX_ANY == 0xffffffffu && PTL_NID_ANY == 0xffffffffu && PTL_PID_ANY == 0xffffffffu);
    CHECK(PTL_UID_ANY == 0xffffffffu && PTL_JID_ANY == 0xffffffffu && PTL_TIME_FOREVER == 0xffffffffu);
    CHECK(PTL_MD_THRESH_INF == -1 && PTL_NI_OK == 0 && PTL_NI_FAIL == 1 && PTL_EQ_HANDLER_NONE == NULL);
    CHECK(PTL_ACK_REQ == 0 && PTL_NO_ACK_REQ == 1 && PTL_RETAIN == 0 && PTL_UNLINK == 1);
    CHECK(PTL_INS_BEFORE == 0 && PTL_INS_AFTER == 1);
    CHECK(PTL_MD_OP_PUT == 1 && PTL_MD_OP_GET == 2 && PTL_MD_MANAGE_REMOTE == 4 && PTL_MD_TRUNCATE == 8);
    CHECK(PTL_MD_ACK_DISABLE == 0x10 && PTL_MD_IOVEC == 0x20 && PTL_MD_MAX_SIZE == 0x40);
    CHECK(PTL_MD_EVENT_START_DISABLE == 0x80 && PTL_MD_EVENT_END_DISABLE == 0x100);
    CHECK(PTL_EVENT_GET_START == 0 && PTL_EVENT_GET_END == 1 && PTL_EVENT_PUT_START == 2 && PTL_EVENT_PUT_END == 3);
    CHECK(PTL_EVENT_GETPUT_START == 4 && PTL_EVENT_GETPUT_END == 5 && PTL_EVENT_REPLY_START == 6);
    CHECK(PTL_EVENT_REPLY_END == 7 && PTL_EVENT_SEND_START == 8 && PTL_EVENT_SEND_END == 9 && PTL_EVENT_ACK == 10);
    CHECK(PTL_EVENT_UNLINK == 11 && PTL_SR_DROP_COUNT == 0 && PTL_SR_DROP_LENGTH == 1 && PTL_SR_RECV_COUNT == 2);
    CHECK(PTL_SR_RECV_LENGTH == 3 && PTL_SR_SEND_COUNT == 4 && PTL_SR_SEND_LENGTH == 5);
}

static void codes(void) {
    static const struct {
        int code;
        const char *name;
    } all[] = {
        {PTL_OK, "PTL_OK"}, {PTL_AC_INDEX_INVALID, "PTL_AC_INDEX_INVALID"}, {PTL_EQ_DROPPED, "PTL_EQ_DROPPED"},
        {PTL_EQ_EMPTY, "PTL_EQ_EMPTY"}, {PTL_EQ_INVALID, "PTL_EQ_INVALID"}, {PTL_FAIL, "PTL_FAIL"},
        {PTL_HANDLE_INVALID, "PTL_HANDLE_INVALID"}, {PTL_IFACE_INVALID, "PTL_IFACE_INVALID"},
        {PTL_MD_ILLEGAL, "PTL_MD_ILLEGAL"}, {PTL_MD_INVALID, "PTL_MD_INVALID"}, {PTL_MD_IN_USE, "PTL_MD_IN_USE"},
        {PTL_MD_NO_UPDATE, "PTL_MD_NO_UPDATE"}, {PTL_ME_INVALID, "PTL_ME_INVALID"}, {PTL_ME_IN_USE, "PTL_ME_IN_USE"},
        {PTL_ME_LIST_TOO_LONG, "PTL_ME_LIST_TOO_LONG"}, {PTL_NI_INVALID, "PTL_NI_INVALID"},
        {PTL_NO_INIT, "PTL_NO_INIT"}, {PTL_NO_SPACE, "PTL_NO_SPACE"}, {PTL_PID_INVALID, "PTL_PID_INVALID"},
        {PTL_PROCESS_INVALID, "PTL_PROCESS_INVALID"}, {PTL_PT_FULL, "PTL_PT_FULL"},
        {PTL_PT_INDEX_INVALID, "PTL_PT_INDEX_INVALID"}, {PTL_SEGV, "PTL_SEGV"},
        {PTL_SR_INDEX_INVALID, "PTL_SR_INDEX_INVALID"}, {PTL_UNKNOWN_ERROR, "PTL_UNKNOWN_ERROR"},
        {PTL_IFACE_DUP, "PTL_IFACE_DUP"}, {PTL_IFACE_CYCLE, "PTL_IFACE_CYCLE"},
    };
    int number, count = sizeof all / sizeof all[0];

    for (number = 0; number < count; number++) {
        CHECK(all[number].code == number);
        CHECK(strcmp(ptl_err_str[number], all[number].name) == 0);
        CHECK(strcmp(PtlErrorStr(number), all[number].name) == 0);
    }
    CHECK(ptl_err_str[count] == NULL && ptl_event_str[PTL_EVENT_UNLINK + 1] == NULL);
    CHECK(strcmp(PtlEventKindStr(PTL_EVENT_PUT_END), "PTL_EVENT_PUT_END") == 0);
    CHECK(strcmp(ptl_event_str[PTL_EVENT_UNLINK], "PTL_EVENT_UNLINK") == 0);
    CHECK(PtlErrorStr(-1) != NULL && PtlErrorStr(count) != NULL && PtlEventKindStr((ptl_event_kind_t)12) != NULL);
    CHECK(strcmp(PtlNIFailStr(0, PTL_NI_FAIL), "PTL_NI_FAIL") == 0);
}

int main(void) {
    sizes();
    offsets();
    constants();
    codes();
    puts("laid out");
    return 0;
}
