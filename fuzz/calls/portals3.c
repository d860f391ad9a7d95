/*
 * Random calls of libportals3: portals3.h, p3rt.h, and what the Cray dialect adds.
 *
 * Not called, by the contract: waits for ever for what may not come (PtlEQWait only behind a put,
 * which leaves an event); memory that is unmapped while a descriptor has it; a descriptor whose
 * start leads to fewer parts than its length says.
 */

#include "calls.h"

#include <p3api/debug.h>
#include <p3rt/p3rt.h>
#include <portals3.h>

/* It is in portals/portals3.h, which takes the name PtlInit away. */
int PtlInitCray(int *max_interfaces);

#define QUEUES 4
#define ENTRIES_OF 24
#define DESCRIPTORS 24
#define PARTS 4
#define BYTES (1u << 18)
#define PORTAL 4

static ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
static ptl_handle_eq_t queues[QUEUES];
static ptl_handle_me_t entries[ENTRIES_OF];
static ptl_handle_md_t descriptors[DESCRIPTORS];
static char memory[BYTES];
static ptl_md_iovec_t parts[PARTS];
static const ptl_process_id_t anybody = {PTL_NID_ANY, PTL_PID_ANY};
static unsigned long sum;
static int is_in_handler;

static ptl_handle_ni_t an_interface(void) {
    return one_in(200) ? (ptl_handle_ni_t)draw() : ni;
}

static ptl_handle_eq_t a_queue(void) {
    return one_in(8) ? PTL_EQ_NONE : one_in(200) ? (ptl_handle_eq_t)draw() : queues[below(QUEUES)];
}

static ptl_handle_me_t an_entry(void) {
    return one_in(200) ? (ptl_handle_me_t)draw() : entries[below(ENTRIES_OF)];
}

static ptl_handle_md_t a_descriptor(void) {
    return one_in(200) ? (ptl_handle_md_t)draw() : descriptors[below(DESCRIPTORS)];
}

static ptl_process_id_t a_process(void) {
    int of = processes == 2 && one_in(2) ? !process : process;
    ptl_process_id_t id;

    memcpy(&id, board->entries[of][0], sizeof id);
    if (one_in(200))
        id.pid = (ptl_pid_t)draw();
    return id;
}

/* Few, so that many match. */
static ptl_match_bits_t some_bits(void) {
    return one_in(40) ? draw() : below(4);
}

static ptl_pt_index_t an_index(void) {
    return one_in(100) ? (ptl_pt_index_t)draw() : PORTAL + below(2);
}

static ptl_md_t memory_of(void) {
    ptl_size_t length = one_in(10) ? length_to(BYTES) : length_to(4000);
    ptl_md_t md = {memory, length, PTL_MD_THRESH_INF, 0, 0, NULL, a_queue()};

    md.start = memory + below(BYTES - (uint32_t)length + 1);
    md.options = PTL_MD_OP_PUT | PTL_MD_OP_GET | (one_in(2) ? PTL_MD_TRUNCATE : 0) |
                 (one_in(2) ? PTL_MD_MANAGE_REMOTE : 0) | (one_in(8) ? PTL_MD_EVENT_START_DISABLE : 0) |
                 (one_in(8) ? PTL_MD_EVENT_END_DISABLE : 0) | (one_in(8) ? PTL_MD_ACK_DISABLE : 0);
    if (one_in(3))
        md.threshold = (int)below(20);
    if (one_in(10)) {
        md.options |= PTL_MD_MAX_SIZE;
        md.max_size = length_to(500);
    }
    if (one_in(8)) {
        md.options |= PTL_MD_IOVEC;
        md.start = parts;
        md.length = below(PARTS + 1);
    }
    if (one_in(100) && !(md.options & PTL_MD_IOVEC))
        md.options = (unsigned)draw() & ~(unsigned)PTL_MD_IOVEC;
    if (one_in(300) && !(md.options & PTL_MD_IOVEC))
        md.start = NULL;
    return md;
}

static void keep_entry(ptl_handle_me_t me) {
    unsigned at = below(ENTRIES_OF);

    CALL(PtlMEUnlink, entries[at]);
    entries[at] = me;
}

static void keep_descriptor(ptl_handle_md_t md) {
    unsigned at = below(DESCRIPTORS);

    if (!one_in(3))
        CALL(PtlMDUnlink, descriptors[at]);
    descriptors[at] = md;
}

static void attach(void) {
    ptl_handle_me_t me = 0;
    ptl_pt_index_t index;
    ptl_unlink_t unlink = (ptl_unlink_t)below(2);
    ptl_ins_pos_t position = (ptl_ins_pos_t)below(2);
    ptl_match_bits_t ignore = one_in(2) ? ~(ptl_match_bits_t)0 : 0;
    ptl_process_id_t from = one_in(10) ? a_process() : anybody;
    int code;

    switch (below(4)) {
    case 0:
        code = CALL(PtlMEAttachAny, an_interface(), one_in(300) ? NULL : &index, from, some_bits(), ignore, unlink, &me);
        break;
    case 1:
        code = CALL(PtlMEInsert, an_entry(), from, some_bits(), ignore, unlink, position, &me);
        break;
    default:
        code = CALL(PtlMEAttach, an_interface(), an_index(), from, some_bits(), ignore, unlink, position,
                    one_in(300) ? NULL : &me);
    }
    if (code == PTL_OK)
        keep_entry(me);
}

static void attach_both(void) {
    ptl_handle_me_t me = 0;
    ptl_handle_md_t md = 0;
    ptl_unlink_t unlink = (ptl_unlink_t)below(2);
    ptl_match_bits_t ignore = one_in(2) ? ~(ptl_match_bits_t)0 : 0;
    int code;

    if (one_in(2))
        code = CALL(PtlMEMDAttach, an_interface(), an_index(), anybody, some_bits(), ignore, unlink,
                    (ptl_ins_pos_t)below(2), memory_of(), unlink, &me, &md);
    else
        code = CALL(PtlMEMDPost, an_interface(), an_entry(), anybody, some_bits(), ignore, unlink,
                    (ptl_ins_pos_t)below(2), memory_of(), unlink, &me, &md, a_queue());
    if (code != PTL_OK)
        return;
    keep_entry(me);
    keep_descriptor(md);
}

static void bind_some(void) {
    ptl_handle_md_t md = 0;
    int code;

    if (one_in(2))
        code = CALL(PtlMDAttach, an_entry(), memory_of(), (ptl_unlink_t)below(2), one_in(300) ? NULL : &md);
    else
        code = CALL(PtlMDBind, an_interface(), memory_of(), (ptl_unlink_t)below(2), &md);
    if (code == PTL_OK)
        keep_descriptor(md);
}

static void unlink_some(void) {
    if (one_in(2))
        CALL(PtlMDUnlink, a_descriptor());
    else
        CALL(PtlMEUnlink, an_entry());
}

static void update(void) {
    ptl_md_t old, new = memory_of();

    CALL(PtlMDUpdate, a_descriptor(), one_in(2) ? NULL : &old, one_in(2) ? NULL : &new, a_queue());
}

static void look_at(const ptl_event_t *event) {
    sum += event->type + event->mlength + event->md.length;
}

static void put(void) {
    ptl_ack_req_t ack = (ptl_ack_req_t)below(2);
    ptl_size_t offset = one_in(200) ? draw() : length_to(200);
    ptl_ac_index_t access = one_in(50) ? (ptl_ac_index_t)draw() : 0;

    switch (below(5)) {
    case 0:
        CALL(PtlPutRegion, a_descriptor(), length_to(100), one_in(100) ? draw() : length_to(2000), ack, a_process(),
             an_index(), access, some_bits(), offset, draw());
        break;
    case 1:
        CALL(PtlGet, a_descriptor(), a_process(), an_index(), access, some_bits(), offset);
        break;
    case 2:
        CALL(PtlGetRegion, a_descriptor(), length_to(100), one_in(100) ? draw() : length_to(2000), a_process(), an_index(),
             access, some_bits(), offset);
        break;
    case 3:
        CALL(PtlGetPut, a_descriptor(), a_descriptor(), a_process(), an_index(), access, some_bits(), offset, draw());
        break;
    default:
        CALL(PtlPut, a_descriptor(), ack, a_process(), an_index(), access, some_bits(), offset, draw());
    }
}

/* Handlers may make any call. */
static void on_event(ptl_event_t *event) {
    look_at(event);
    if (is_in_handler || !one_in(10))
        return;
    is_in_handler = 1;
    if (one_in(2))
        put();
    else
        unlink_some();
    is_in_handler = 0;
}

static int is_event(int code) {
    return code == PTL_OK || code == PTL_EQ_DROPPED;
}

static void read_events(void) {
    ptl_event_t event;
    ptl_handle_eq_t of[QUEUES];
    int which, at;

    if (one_in(3)) {
        for (at = 0; at < QUEUES; at++)
            of[at] = queues[at];
        if (one_in(50))
            of[below(QUEUES)] = a_queue();
        if (is_event(CALL_GOOD(PtlEQPoll, is_event(result_),
                               PtlEQPoll(of, one_in(100) ? (int)below(20) - 15 : 1 + (int)below(QUEUES),
                                         one_in(20) ? 1 : 0, one_in(300) ? NULL : &event, &which))))
            sum++;
        return;
    }
    for (at = 0; at < 8; at++) {
        if (!is_event(CALL_GOOD(PtlEQGet, is_event(result_), PtlEQGet(a_queue(), one_in(300) ? NULL : &event))))
            return;
    }
}

/* A put leaves an event, so that the wait ends. */
static void wait_for_event(void) {
    ptl_md_t md = {memory, 64, PTL_MD_THRESH_INF, 0, 0, NULL, 0};
    ptl_handle_eq_t eq;
    ptl_handle_md_t handle;
    ptl_process_id_t id;
    ptl_event_t event;

    if (CALL(PtlEQAlloc, ni, 16, PTL_EQ_HANDLER_NONE, &eq) != PTL_OK)
        return;
    md.eq_handle = eq;
    if (CALL(PtlGetId, ni, &id) == PTL_OK && CALL(PtlMDBind, ni, md, PTL_RETAIN, &handle) == PTL_OK) {
        if (CALL(PtlPut, handle, PTL_NO_ACK_REQ, id, PORTAL, 0, some_bits(), 0, 0) == PTL_OK)
            CALL_GOOD(PtlEQWait, is_event(result_), PtlEQWait(eq, &event));
        CALL(PtlMDUnlink, handle);
    }
    CALL(PtlEQFree, eq);
}

static void allocate_queue(void) {
    unsigned at = below(QUEUES);
    ptl_handle_eq_t eq = 0;

    CALL(PtlEQFree, queues[at]);
    if (CALL(PtlEQAlloc, an_interface(), one_in(100) ? draw() : 4 + length_to(400), one_in(3) ? on_event : PTL_EQ_HANDLER_NONE,
             one_in(300) ? NULL : &eq) == PTL_OK)
        queues[at] = eq;
}

static void progress(void) {
    CALL(PtlProgress, one_in(10) ? a_queue() : an_interface(), one_in(20) ? 1 : 0);
}

static void ask(void) {
    ptl_sr_value_t value;
    unsigned long distance;
    ptl_handle_ni_t of;
    ptl_uid_t uid;
    ptl_jid_t jid;
    ptl_process_id_t id;

    CALL(PtlNIStatus, an_interface(), below(8), one_in(300) ? NULL : &value);
    CALL(PtlNIDist, an_interface(), a_process(), one_in(300) ? NULL : &distance);
    CALL(PtlNIHandle, one_in(2) ? a_descriptor() : an_entry(), &of);
    CALL(PtlGetUid, an_interface(), &uid);
    CALL(PtlGetId, an_interface(), &id);
    CALL(PtlGetJid, an_interface(), &jid);
}

static void texts(void) {
    CALL_GOOD(PtlNIDebug, result_ <= PTL_DBG_ALL, PtlNIDebug(an_interface(), draw() & PTL_DBG_ALL));
    CALL_GOOD(PtlErrorStr, result_ != NULL, PtlErrorStr(one_in(9) ? (unsigned int)draw() : (unsigned int)below(30)));
    CALL_GOOD(PtlNIFailStr, result_ != NULL,
              PtlNIFailStr(an_interface(), one_in(9) ? (ptl_ni_fail_t)draw() : (ptl_ni_fail_t)below(3)));
    CALL_GOOD(PtlEventKindStr, result_ != NULL, PtlEventKindStr((ptl_event_kind_t)below(14)));
}

static void control_access(void) {
    CALL(PtlACEntry, an_interface(), one_in(50) ? (ptl_ac_index_t)draw() : 1 + below(3),
         one_in(2) ? anybody : a_process(), PTL_UID_ANY, PTL_JID_ANY, one_in(2) ? PTL_PT_INDEX_ANY : an_index());
}

static void ranks(void) {
    unsigned int rank, size;
    ptl_process_id_t id;
    ptl_nid_t nids[4] = {0};
    ptl_pid_t pids[4] = {0};
    ptl_handle_ni_t of = one_in(10) ? PTL_INVALID_HANDLE : an_interface();

    CALL(PtlSetRank, of, one_in(5) ? -1 : (int)below(5), one_in(5) ? -1 : 1 + (int)below(4));
    CALL(PtlGetRank, of, one_in(9) ? NULL : &rank, &size);
    CALL(PtlSetNIDMap, of, one_in(50) ? NULL : nids, (int)below(5));
    CALL(PtlSetPIDMap, of, pids, one_in(50) ? -1 : (int)below(5));
    CALL(PtlGetNIDMap, of, nids, (int)below(5));
    CALL(PtlGetPIDMap, of, pids, (int)below(5));
    CALL(PtlGetRankId, of, below(5), &id);
    CALL(PtlSetJID, of, one_in(2) ? PTL_JID_ANY : 1);
}

static void open_interface(void) {
    ptl_ni_limits_t desired = {200, 200, 20, 8, 32, 8, 100, 1000}, actual;
    ptl_process_id_t id;
    ptl_handle_ni_t of = PTL_INVALID_HANDLE;
    unsigned at;

    if (one_in(20))
        desired.max_mes = (int)draw();
    if (CALL(PtlNIInit, one_in(30) ? (ptl_interface_t)draw() : PTL_IFACE_DEFAULT, PTL_PID_ANY,
             one_in(2) ? NULL : &desired, one_in(2) ? NULL : &actual, one_in(300) ? NULL : &of) != PTL_OK)
        return;
    ni = of;
    if (CALL(PtlGetId, ni, &id) == PTL_OK)
        memcpy(board->entries[process][0], &id, sizeof id);
    for (at = 0; at < 2 * QUEUES; at++)
        allocate_queue();
}

static void initialize(void) {
    int most;

    if (one_in(4))
        CALL(PtlInitCray, &most);
    else
        CALL(PtlInit, one_in(100) ? NULL : &most);
}

static void close_interface(void) {
    memset(board->entries[process][0], 0, sizeof(ptl_process_id_t));
    CALL(PtlNIFini, ni);
    if (one_in(2)) {
        CALL_VOID(PtlFini);
        put();
        ask();
    }
    initialize();
    initialize();
    open_interface();
    open_interface();
}

static void as_child(void) {
    unsigned at;
    int most;

    for (at = 0; at < 10; at++) {
        put();
        read_events();
        bind_some();
    }
    if (one_in(2) && CALL(PtlInit, &most) == PTL_OK) {
        open_interface();
        put();
        CALL_VOID(PtlFini);
    }
}

static void fork_child(void) {
    in_fork(as_child);
}

const struct operation operations[] = {
    {attach, 20},   {attach_both, 20},   {bind_some, 30},     {unlink_some, 10},    {update, 8},
    {put, 120},     {read_events, 90},   {wait_for_event, 4}, {allocate_queue, 2},  {progress, 20},
    {ask, 8},       {texts, 4},          {control_access, 2}, {ranks, 2},           {open_interface, 1},
    {initialize, 1}, {close_interface, 1}, {fork_child, 1},   {NULL, 0},
};

const struct left_out left_out[] = {{0, NULL, 0, NULL}};

void set_up(void) {
    int most;
    unsigned at;

    for (at = 0; at < PARTS; at++) {
        parts[at].iov_base = memory + at * 4096;
        parts[at].iov_len = at * 700;
    }
    CALL(PtlInit, &most);
    open_interface();
    open_interface();
}

void tear_down(void) {
    CALL(PtlNIFini, ni);
    CALL_VOID(PtlFini);
}
