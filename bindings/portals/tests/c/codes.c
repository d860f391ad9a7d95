/*
 * Each code is provoked, but PTL_UNKNOWN_ERROR, which stands for faults of the library itself.
 */

#include <p3rt/p3rt.h>
#include <portals3.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../compat_check.h"

static const ptl_process_id_t ANYBODY = {PTL_NID_ANY, PTL_PID_ANY};
static char memory[64];
static ptl_handle_ni_t ni;

static ptl_md_t descriptor(void *start, ptl_size_t length, unsigned int options, ptl_handle_eq_t eq) {
    ptl_md_t md = {start, length, PTL_MD_THRESH_INF, 0, options, NULL, eq};

    return md;
}

static void before_init(void) {
    ptl_handle_any_t handle;
    ptl_event_t event;
    ptl_md_t md = descriptor(memory, 1, 0, PTL_EQ_NONE);
    int which;

    CHECK_CODE(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &handle), PTL_NO_INIT);
    CHECK_CODE(PtlNIFini(0), PTL_NO_INIT);
    CHECK_CODE(PtlEQWait(0, &event), PTL_NO_INIT);
    CHECK_CODE(PtlEQPoll(&handle, 1, 0, &event, &which), PTL_NO_INIT);
    CHECK_CODE(PtlMDBind(0, md, PTL_RETAIN, &handle), PTL_NO_INIT);
    CHECK_CODE(PtlPut(0, PTL_ACK_REQ, ANYBODY, 0, 0, 0, 0, 0), PTL_NO_INIT);
    CHECK_CODE(PtlMEUnlink(0), PTL_NO_INIT);
    CHECK_CODE(PtlInit(NULL), PTL_SEGV);
}

/* Everything after PtlNIFini, and before PtlNIInit. */
static void without_interface(void) {
    ptl_handle_any_t handle = 0;
    ptl_event_t event;
    ptl_md_t md = descriptor(memory, 1, 0, PTL_EQ_NONE);

    CHECK_CODE(PtlNIFini(ni), PTL_NI_INVALID);
    CHECK_CODE(PtlMDBind(ni, md, PTL_RETAIN, &handle), PTL_NI_INVALID);
    CHECK_CODE(PtlMEAttach(ni, 0, ANYBODY, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &handle), PTL_NI_INVALID);
    CHECK_CODE(PtlMEInsert(handle, ANYBODY, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &handle), PTL_ME_INVALID);
    CHECK_CODE(PtlMDAttach(handle, md, PTL_RETAIN, &handle), PTL_ME_INVALID);
    CHECK_CODE(PtlMDUnlink(handle), PTL_MD_INVALID);
    CHECK_CODE(PtlEQGet(handle, &event), PTL_EQ_INVALID);
    CHECK_CODE(PtlEQWait(handle, &event), PTL_EQ_INVALID);
    CHECK_CODE(PtlNIHandle(handle, &handle), PTL_HANDLE_INVALID);
}

static void of_interfaces(ptl_pid_t pid) {
    ptl_ni_limits_t desired = {8, 3, 2, 1, 1, 0, 4, 1000}, actual;
    ptl_handle_ni_t again;
    ptl_process_id_t id;
    ptl_sr_value_t value;
    unsigned long distance;
    ptl_uid_t uid;
    ptl_jid_t jid;

    CHECK_CODE(PtlNIInit(PTL_IFACE_DEFAULT, pid, NULL, NULL, NULL), PTL_SEGV);
    CHECK_CODE(PtlNIInit(77, pid, NULL, NULL, &ni), PTL_IFACE_INVALID);
    CHECK_CODE(PtlNIInit(PTL_IFACE_DEFAULT, 4000000000u, NULL, NULL, &ni), PTL_PID_INVALID);
    setenv("CCI_CONFIG", "/no/such/file", 1);
    CHECK_CODE(PtlNIInit(PTL_IFACE_DEFAULT, pid, NULL, NULL, &ni), PTL_FAIL);
    unsetenv("CCI_CONFIG");
    if (getenv("TEST_CONFIG") != NULL)
        setenv("CCI_CONFIG", getenv("TEST_CONFIG"), 1);
    CHECK_CODE(PtlNIInit(PTL_IFACE_DEFAULT, pid, &desired, &actual, &ni), PTL_OK);
    CHECK(actual.max_mes == 8 && actual.max_mds == 3 && actual.max_eqs == 2 && actual.max_ac_index == 1);
    CHECK(actual.max_pt_index == 1 && actual.max_md_iovecs == 1 && actual.max_me_list == 4);
    CHECK(actual.max_getput_md == 64);
    CHECK_CODE(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &again), PTL_OK);
    CHECK(again == ni);
    CHECK_CODE(PtlGetId(ni, &id), PTL_OK);
    CHECK(id.pid == pid);
    CHECK_CODE(PtlGetUid(ni, &uid), PTL_OK);
    CHECK(uid == getuid());
    CHECK_CODE(PtlGetJid(ni, &jid), PTL_OK);
    CHECK_CODE(PtlSetJID(ni, 12), PTL_OK);
    CHECK_CODE(PtlGetJid(ni, &jid), PTL_OK);
    CHECK(jid == 12);
    CHECK_CODE(PtlNIDist(ni, id, &distance), PTL_OK);
    CHECK(distance == 0);
    CHECK_CODE(PtlNIDist(ni, ANYBODY, &distance), PTL_PROCESS_INVALID);
    CHECK_CODE(PtlNIStatus(ni, PTL_SR_DROP_COUNT, &value), PTL_OK);
    CHECK(value == 0);
    CHECK_CODE(PtlNIStatus(ni, 6, &value), PTL_SR_INDEX_INVALID);
    CHECK_CODE(PtlNIStatus(ni, 0, NULL), PTL_SEGV);
    CHECK_CODE(PtlNIStatus(ni + 1, 0, &value), PTL_NI_INVALID);
    CHECK_CODE(PtlGetId(PTL_INVALID_HANDLE, &id), PTL_NI_INVALID);
    CHECK_CODE(PtlNIHandle(ni, &again), PTL_OK);
    CHECK(again == ni);
    CHECK_CODE(PtlNIHandle(PTL_HANDLE_NONE, &again), PTL_HANDLE_INVALID);
    CHECK_CODE(PtlACEntry(ni, 1, ANYBODY, PTL_UID_ANY, PTL_JID_ANY, PTL_PT_INDEX_ANY), PTL_OK);
    CHECK_CODE(PtlACEntry(ni, 2, ANYBODY, PTL_UID_ANY, PTL_JID_ANY, PTL_PT_INDEX_ANY), PTL_AC_INDEX_INVALID);
    CHECK_CODE(PtlACEntry(ni, 1, ANYBODY, PTL_UID_ANY, PTL_JID_ANY, 2), PTL_PT_INDEX_INVALID);
}

static void of_entries(void) {
    ptl_handle_me_t first, other, more[3];
    ptl_pt_index_t index;
    int number;

    CHECK_CODE(PtlMEAttachAny(ni, &index, ANYBODY, 0, 0, PTL_RETAIN, &first), PTL_OK);
    CHECK(index == 0);
    CHECK_CODE(PtlMEAttachAny(ni, &index, ANYBODY, 0, 0, PTL_RETAIN, &other), PTL_OK);
    CHECK(index == 1);
    CHECK_CODE(PtlMEAttachAny(ni, &index, ANYBODY, 0, 0, PTL_RETAIN, &other), PTL_PT_FULL);
    CHECK_CODE(PtlMEAttach(ni, 2, ANYBODY, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &other), PTL_PT_INDEX_INVALID);
    CHECK_CODE(PtlMEAttach(ni, 0, ANYBODY, 0, 0, PTL_RETAIN, PTL_INS_AFTER, NULL), PTL_SEGV);
    for (number = 0; number < 3; number++)
        CHECK_CODE(PtlMEInsert(first, ANYBODY, 0, 0, PTL_RETAIN, PTL_INS_BEFORE, &more[number]), PTL_OK);
    CHECK_CODE(PtlMEInsert(first, ANYBODY, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &other), PTL_ME_LIST_TOO_LONG);
    for (number = 0; number < 3; number++)
        CHECK_CODE(PtlMEAttach(ni, 1, ANYBODY, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &more[number]), PTL_OK);
    CHECK_CODE(PtlMEUnlink(more[0]), PTL_OK);
    CHECK_CODE(PtlMEUnlink(more[0]), PTL_ME_INVALID);
    CHECK_CODE(PtlMEInsert(ni, ANYBODY, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &other), PTL_ME_INVALID);
}

static void of_descriptors(void) {
    ptl_handle_eq_t eq, other;
    ptl_handle_me_t me = PTL_INVALID_HANDLE;
    ptl_handle_md_t md, bound;
    ptl_md_iovec_t part = {NULL, 1};
    ptl_md_t good, old;

    CHECK_CODE(PtlEQAlloc(ni, 4, PTL_EQ_HANDLER_NONE, &eq), PTL_OK);
    good = descriptor(memory, sizeof memory, PTL_MD_OP_PUT, eq);
    CHECK_CODE(PtlMEAttach(ni, 1, ANYBODY, 0, ~0ull, PTL_RETAIN, PTL_INS_BEFORE, &me), PTL_OK);
    CHECK_CODE(PtlMDAttach(me, descriptor(NULL, 1, 0, eq), PTL_RETAIN, &md), PTL_MD_ILLEGAL);
    CHECK_CODE(PtlMDAttach(me, descriptor(memory, ~0ull, 0, eq), PTL_RETAIN, &md), PTL_MD_ILLEGAL);
    CHECK_CODE(PtlMDAttach(me, descriptor(&part, 1, PTL_MD_IOVEC, eq), PTL_RETAIN, &md), PTL_MD_ILLEGAL);
    CHECK_CODE(PtlMDAttach(me, descriptor(NULL, 1, PTL_MD_IOVEC, eq), PTL_RETAIN, &md), PTL_MD_ILLEGAL);
    CHECK_CODE(PtlMDAttach(me, descriptor(memory, 1, 0x200, eq), PTL_RETAIN, &md), PTL_MD_ILLEGAL);
    CHECK_CODE(PtlMDAttach(me, descriptor(memory, 1, 0, me), PTL_RETAIN, &md), PTL_EQ_INVALID);
    CHECK_CODE(PtlMDAttach(me, good, PTL_RETAIN, NULL), PTL_SEGV);
    CHECK_CODE(PtlMDAttach(me, good, PTL_RETAIN, &md), PTL_OK);
    CHECK_CODE(PtlMDAttach(me, good, PTL_RETAIN, &bound), PTL_ME_IN_USE);
    /* Without memory, with an address. */
    CHECK_CODE(PtlMDBind(ni, descriptor(memory, 0, 0, eq), PTL_RETAIN, &bound), PTL_OK);
    CHECK_CODE(PtlMDBind(ni, good, PTL_RETAIN, &other), PTL_OK);
    CHECK_CODE(PtlMDBind(ni, good, PTL_RETAIN, &other), PTL_NO_SPACE);
    CHECK_CODE(PtlMDUpdate(md, &old, &good, eq), PTL_OK);
    CHECK(old.start == memory && old.length == sizeof memory && old.eq_handle == eq && old.threshold == -1);
    CHECK_CODE(PtlMDUpdate(md, NULL, &good, me), PTL_EQ_INVALID);
    CHECK_CODE(PtlMDUpdate(me, NULL, NULL, PTL_EQ_NONE), PTL_MD_INVALID);
    CHECK_CODE(PtlMDUnlink(bound), PTL_OK);
    CHECK_CODE(PtlMDUnlink(bound), PTL_MD_INVALID);
    CHECK_CODE(PtlEQAlloc(ni, 4, PTL_EQ_HANDLER_NONE, NULL), PTL_SEGV);
    CHECK_CODE(PtlEQAlloc(ni, 1ull << 40, PTL_EQ_HANDLER_NONE, &other), PTL_NO_SPACE);
    CHECK_CODE(PtlEQAlloc(ni, 0, PTL_EQ_HANDLER_NONE, &other), PTL_OK);
    CHECK(other == PTL_EQ_NONE);
    CHECK_CODE(PtlEQAlloc(ni, 4, PTL_EQ_HANDLER_NONE, &other), PTL_OK);
    CHECK_CODE(PtlEQAlloc(ni, 4, PTL_EQ_HANDLER_NONE, &other), PTL_NO_SPACE);
}

/* Puts to itself, on the entry and the queue of its own. */
static void of_operations(void) {
    ptl_process_id_t self;
    ptl_handle_me_t me;
    ptl_handle_md_t md, target;
    ptl_handle_eq_t eq;
    ptl_event_t event;
    ptl_md_t spent, good;
    int number, which;

    CHECK_CODE(PtlNIFini(ni), PTL_OK);
    without_interface();
    CHECK_CODE(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni), PTL_OK);
    CHECK_CODE(PtlGetId(ni, &self), PTL_OK);
    CHECK_CODE(PtlEQAlloc(ni, 2, PTL_EQ_HANDLER_NONE, &eq), PTL_OK);
    good = descriptor(memory, 8, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, PTL_EQ_NONE);
    CHECK_CODE(PtlMEMDAttach(ni, 4, ANYBODY, 7, 0, PTL_RETAIN, PTL_INS_AFTER, good, PTL_RETAIN, &me, &target), PTL_OK);
    good.eq_handle = eq;
    spent = good;
    spent.threshold = 0;
    CHECK_CODE(PtlMDBind(ni, spent, PTL_RETAIN, &md), PTL_OK);
    CHECK_CODE(PtlPut(md, PTL_NO_ACK_REQ, self, 4, 0, 7, 0, 0), PTL_MD_INVALID);
    CHECK_CODE(PtlMDUnlink(md), PTL_OK);
    CHECK_CODE(PtlPut(md, PTL_NO_ACK_REQ, self, 4, 0, 7, 0, 0), PTL_MD_INVALID);
    CHECK_CODE(PtlMDBind(ni, good, PTL_RETAIN, &md), PTL_OK);
    CHECK_CODE(PtlPut(md, PTL_NO_ACK_REQ, ANYBODY, 4, 0, 7, 0, 0), PTL_PROCESS_INVALID);
    CHECK_CODE(PtlPut(md, PTL_NO_ACK_REQ, self, 65536, 0, 7, 0, 0), PTL_PT_INDEX_INVALID);
    CHECK_CODE(PtlPut(md, PTL_NO_ACK_REQ, self, 4, 65536, 7, 0, 0), PTL_AC_INDEX_INVALID);
    CHECK_CODE(PtlPutRegion(md, 1, 8, PTL_NO_ACK_REQ, self, 4, 0, 7, 0, 0), PTL_MD_ILLEGAL);
    CHECK_CODE(PtlGetPut(md, target, ANYBODY, 4, 0, 7, 0, 0), PTL_PROCESS_INVALID);
    CHECK_CODE(PtlEQGet(eq, &event), PTL_EQ_EMPTY);
    CHECK_CODE(PtlEQPoll(&eq, 1, 1, &event, &which), PTL_EQ_EMPTY);
    CHECK_CODE(PtlEQPoll(&eq, 0, 1, &event, &which), PTL_EQ_INVALID);
    CHECK_CODE(PtlEQGet(eq, NULL), PTL_SEGV);
    CHECK_CODE(PtlEQGet(me, &event), PTL_EQ_INVALID);
    for (number = 0; number < 2; number++)
        CHECK_CODE(PtlPut(md, PTL_NO_ACK_REQ, self, 4, 0, 7, 0, 0), PTL_OK);
    /* Two starts and two ends, in a queue of two. */
    CHECK_CODE(PtlMDUpdate(md, NULL, &good, eq), PTL_MD_NO_UPDATE);
    CHECK_CODE(PtlMEMDPost(ni, me, ANYBODY, 0, 0, PTL_RETAIN, PTL_INS_BEFORE, good, PTL_RETAIN, &me, &md, eq),
               PTL_MD_NO_UPDATE);
    CHECK_CODE(PtlEQGet(eq, &event), PTL_EQ_DROPPED);
    CHECK(event.type == PTL_EVENT_SEND_START);
    CHECK_CODE(PtlEQGet(eq, &event), PTL_OK);
    CHECK(event.type == PTL_EVENT_SEND_END && event.ni_fail_type == PTL_NI_OK && event.mlength == 8);
    CHECK_CODE(PtlMEMDPost(ni, me, ANYBODY, 0, 0, PTL_RETAIN, PTL_INS_BEFORE, good, PTL_RETAIN, &me, &md, eq), PTL_OK);
    CHECK_CODE(PtlProgress(eq, 0), PTL_OK);
    CHECK_CODE(PtlProgress(PTL_HANDLE_NONE, 0), PTL_HANDLE_INVALID);
}

/* A long put to a process that does not answer holds its descriptor. */
static void of_pending(ptl_process_id_t nobody) {
    ptl_handle_md_t md;
    ptl_handle_me_t me;
    ptl_md_t good = descriptor(memory, 8, PTL_MD_OP_PUT, PTL_EQ_NONE);

    CHECK_CODE(PtlMEAttach(ni, 9, ANYBODY, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me), PTL_OK);
    CHECK_CODE(PtlMDAttach(me, good, PTL_RETAIN, &md), PTL_OK);
    CHECK_CODE(PtlPut(md, PTL_NO_ACK_REQ, nobody, 4, 0, 7, 0, 0), PTL_OK);
    CHECK_CODE(PtlMDUnlink(md), PTL_MD_IN_USE);
    CHECK_CODE(PtlMEUnlink(me), PTL_ME_IN_USE);
}

static void of_ranks(void) {
    unsigned int rank, size;
    ptl_process_id_t id;
    ptl_nid_t map[3] = {5, 6, 7};

    CHECK_CODE(PtlGetRank(PTL_INVALID_HANDLE, &rank, &size), PTL_FAIL);
    CHECK_CODE(PtlSetRank(PTL_INVALID_HANDLE, -1, -1), PTL_FAIL);
    CHECK_CODE(PtlSetRank(PTL_INVALID_HANDLE, 3, 3), PTL_PROCESS_INVALID);
    CHECK_CODE(PtlSetRank(PTL_INVALID_HANDLE, 1, 3), PTL_OK);
    CHECK_CODE(PtlGetRank(PTL_INVALID_HANDLE, &rank, &size), PTL_OK);
    CHECK(rank == 1 && size == 3);
    CHECK_CODE(PtlGetRankId(PTL_INVALID_HANDLE, 1, &id), PTL_PROCESS_INVALID);
    CHECK_CODE(PtlSetNIDMap(PTL_INVALID_HANDLE, map, 3), PTL_OK);
    CHECK_CODE(PtlSetPIDMap(PTL_INVALID_HANDLE, map, 3), PTL_OK);
    CHECK_CODE(PtlSetPIDMap(PTL_INVALID_HANDLE, NULL, 3), PTL_SEGV);
    CHECK_CODE(PtlGetRankId(PTL_INVALID_HANDLE, 2, &id), PTL_OK);
    CHECK(id.nid == 7 && id.pid == 7);
    CHECK_CODE(PtlGetNIDMap(PTL_INVALID_HANDLE, map, 2), PTL_NO_SPACE);
    CHECK_CODE(PtlGetPIDMap(PTL_INVALID_HANDLE, map, 3), PTL_OK);
    CHECK_CODE(PtlGetRank(77, &rank, &size), PTL_NO_INIT);
}

/* A child has nothing of its parent's, and may begin anew. */
static void in_a_child(void) {
    ptl_handle_ni_t own;
    ptl_sr_value_t value;
    int status, most;
    pid_t child = fork();

    CHECK(child >= 0);
    if (child == 0) {
        CHECK_CODE(PtlNIStatus(ni, 0, &value), PTL_NO_INIT);
        PtlFini();
        CHECK_CODE(PtlInit(&most), PTL_OK);
        CHECK_CODE(PtlNIStatus(ni, 0, &value), PTL_NI_INVALID);
        CHECK_CODE(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &own), PTL_OK);
        CHECK_CODE(PtlNIStatus(own, 0, &value), PTL_OK);
        PtlFini();
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK_CODE(PtlNIStatus(ni, 0, &value), PTL_OK);
}

int main(int argc, char **argv) {
    ptl_process_id_t nobody;
    ptl_pid_t pid;
    int most;

    CHECK(argc == 2);
    pid = (ptl_pid_t)atoi(argv[1]);
    before_init();
    of_ranks();
    CHECK_CODE(PtlInit(&most), PTL_OK);
    CHECK(most == 2);
    without_interface();
    of_interfaces(pid);
    of_entries();
    of_descriptors();
    of_operations();
    CHECK_CODE(PtlGetId(ni, &nobody), PTL_OK);
    nobody.pid = pid + 1;
    of_pending(nobody);
    FORKS(in_a_child);
    PtlFini();
    CHECK_CODE(PtlNIFini(ni), PTL_NO_INIT);
    puts("codes");
    return 0;
}
