/*
 * Portals 3.3: the target's match lists decide where data go.
 *
 * The generic mode: progress is made by the calls of this process that read events, wait, update,
 * or read a status register, and by one of eight that begin operations. Any thread may make any
 * call, and so may the handler of an event queue. Calls return at once, but PtlEQWait, PtlEQPoll,
 * PtlProgress, and PtlNIInit in a parallel job, which waits for all ranks.
 *
 * A call returns 0 (PTL_OK) or the number of a code; then nothing has changed. A NULL where a
 * result goes is PTL_SEGV. Memory of a memory descriptor is the program's: it stays mapped, and is
 * not changed where an operation reads it, until the descriptor is unlinked.
 *
 * docs/design/portals.md has objects, events and limits.
 */

#ifndef PORTALS3_H
#define PORTALS3_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers. */

typedef uint64_t ptl_size_t;
typedef uint64_t ptl_match_bits_t;
typedef uint64_t ptl_hdr_data_t;
typedef uint64_t ptl_sr_value_t;
typedef uint32_t ptl_pt_index_t;
typedef uint32_t ptl_ac_index_t;
typedef uint32_t ptl_sr_index_t;
typedef uint32_t ptl_interface_t;
typedef uint32_t ptl_nid_t;
typedef uint32_t ptl_pid_t;
typedef uint32_t ptl_uid_t;
typedef uint32_t ptl_jid_t;
typedef uint32_t ptl_ni_fail_t;
typedef uint32_t ptl_seq_t;
/* Milliseconds. */
typedef uint32_t ptl_time_t;

/* Names of objects: a stale or invented one is refused. */

typedef uint32_t ptl_handle_any_t;
typedef ptl_handle_any_t ptl_handle_ni_t;
typedef ptl_handle_any_t ptl_handle_me_t;
typedef ptl_handle_any_t ptl_handle_md_t;
typedef ptl_handle_any_t ptl_handle_eq_t;

#define PTL_INVALID_HANDLE ((ptl_handle_any_t)0xffffffff)
#define PTL_HANDLE_NONE ((ptl_handle_any_t)0x7fffffff)
#define PTL_EQ_NONE ((ptl_handle_eq_t)0xbfffffff)

#define PTL_PT_INDEX_ANY ((ptl_pt_index_t)0xffffffff)
#define PTL_NID_ANY ((ptl_nid_t)0xffffffff)
#define PTL_PID_ANY ((ptl_pid_t)0xffffffff)
#define PTL_UID_ANY ((ptl_uid_t)0xffffffff)
#define PTL_JID_ANY ((ptl_jid_t)0xffffffff)

#define PTL_TIME_FOREVER ((ptl_time_t)-1)
#define PTL_MD_THRESH_INF (-1)
#define PTL_NI_OK 0
#define PTL_NI_FAIL 1

/* The interface of a program that does not care: generic, or accelerated where the environment has
 * CCI_PORTALS_MODE=accelerated. */
#define PTL_IFACE_DEFAULT ((ptl_interface_t)0)

/* Codes. */

enum {
    PTL_OK = 0,
    PTL_AC_INDEX_INVALID,
    PTL_EQ_DROPPED,
    PTL_EQ_EMPTY,
    PTL_EQ_INVALID,
    PTL_FAIL,
    PTL_HANDLE_INVALID,
    PTL_IFACE_INVALID,
    PTL_MD_ILLEGAL,
    PTL_MD_INVALID,
    PTL_MD_IN_USE,
    PTL_MD_NO_UPDATE,
    PTL_ME_INVALID,
    PTL_ME_IN_USE,
    PTL_ME_LIST_TOO_LONG,
    PTL_NI_INVALID,
    PTL_NO_INIT,
    PTL_NO_SPACE,
    PTL_PID_INVALID,
    PTL_PROCESS_INVALID,
    PTL_PT_FULL,
    PTL_PT_INDEX_INVALID,
    PTL_SEGV,
    PTL_SR_INDEX_INVALID,
    PTL_UNKNOWN_ERROR,
    /* Of the Cray dialect: the interface was open, and its handle is valid. */
    PTL_IFACE_DUP,
    /* Of this library: CCI_PORTALS_DEVICE names a device that itself uses a library of Portals. */
    PTL_IFACE_CYCLE
};

/* Status registers. */

enum {
    PTL_SR_DROP_COUNT = 0,
    PTL_SR_DROP_LENGTH,
    PTL_SR_RECV_COUNT,
    PTL_SR_RECV_LENGTH,
    PTL_SR_SEND_COUNT,
    PTL_SR_SEND_LENGTH
};

typedef enum { PTL_ACK_REQ = 0, PTL_NO_ACK_REQ = 1 } ptl_ack_req_t;
typedef enum { PTL_RETAIN = 0, PTL_UNLINK = 1 } ptl_unlink_t;
typedef enum { PTL_INS_BEFORE = 0, PTL_INS_AFTER = 1 } ptl_ins_pos_t;

/* How much there is; "index" members are the largest index. */
typedef struct {
    int max_mes;
    int max_mds;
    int max_eqs;
    int max_ac_index;
    int max_pt_index;
    int max_md_iovecs;
    int max_me_list;
    int max_getput_md;
} ptl_ni_limits_t;

typedef struct {
    ptl_nid_t nid;
    ptl_pid_t pid;
} ptl_process_id_t;

/* A part of the memory of a descriptor. */
typedef struct {
    void *iov_base;
    ptl_size_t iov_len;
} ptl_md_iovec_t;

/* Options of a memory descriptor. */
#define PTL_MD_OP_PUT 0x1
#define PTL_MD_OP_GET 0x2
#define PTL_MD_MANAGE_REMOTE 0x4
#define PTL_MD_TRUNCATE 0x8
#define PTL_MD_ACK_DISABLE 0x10
#define PTL_MD_IOVEC 0x20
#define PTL_MD_MAX_SIZE 0x40
#define PTL_MD_EVENT_START_DISABLE 0x80
#define PTL_MD_EVENT_END_DISABLE 0x100

/* A memory descriptor. With PTL_MD_IOVEC, start leads to length parts, which the call reads. */
typedef struct {
    void *start;
    ptl_size_t length;
    int threshold;
    ptl_size_t max_size;
    unsigned int options;
    void *user_ptr;
    ptl_handle_eq_t eq_handle;
} ptl_md_t;

typedef enum {
    PTL_EVENT_GET_START = 0,
    PTL_EVENT_GET_END,
    PTL_EVENT_PUT_START,
    PTL_EVENT_PUT_END,
    PTL_EVENT_GETPUT_START,
    PTL_EVENT_GETPUT_END,
    PTL_EVENT_REPLY_START,
    PTL_EVENT_REPLY_END,
    PTL_EVENT_SEND_START,
    PTL_EVENT_SEND_END,
    PTL_EVENT_ACK,
    PTL_EVENT_UNLINK
} ptl_event_kind_t;

/* An event; md is the descriptor as it is after the operation. */
typedef struct {
    ptl_event_kind_t type;
    ptl_process_id_t initiator;
    ptl_uid_t uid;
    ptl_jid_t jid;
    ptl_pt_index_t pt_index;
    ptl_match_bits_t match_bits;
    ptl_size_t rlength;
    ptl_size_t mlength;
    ptl_size_t offset;
    ptl_handle_md_t md_handle;
    ptl_md_t md;
    ptl_hdr_data_t hdr_data;
    ptl_seq_t link;
    ptl_ni_fail_t ni_fail_type;
    volatile ptl_seq_t sequence;
} ptl_event_t;

/* Called for each event, in a call of the program that has found it. */
typedef void (*ptl_eq_handler_t)(ptl_event_t *event);
#define PTL_EQ_HANDLER_NONE ((ptl_eq_handler_t)0)

/* Names of codes and of events, by number; a NULL at the end. */
extern const char *ptl_err_str[];
extern const char *ptl_event_str[];

/* The library. A forked child begins anew. */

int PtlInit(int *max_interfaces);
void PtlFini(void);

/* Interfaces. One that is open is given again. desired and actual may be NULL. */

int PtlNIInit(ptl_interface_t iface, ptl_pid_t pid, ptl_ni_limits_t *desired, ptl_ni_limits_t *actual,
              ptl_handle_ni_t *ni);
int PtlNIFini(ptl_handle_ni_t ni);
int PtlNIStatus(ptl_handle_ni_t ni, ptl_sr_index_t index, ptl_sr_value_t *value);
int PtlNIDist(ptl_handle_ni_t ni, ptl_process_id_t process, unsigned long *distance);
int PtlNIHandle(ptl_handle_any_t handle, ptl_handle_ni_t *ni);
int PtlGetUid(ptl_handle_ni_t ni, ptl_uid_t *uid);
int PtlGetId(ptl_handle_ni_t ni, ptl_process_id_t *id);
int PtlGetJid(ptl_handle_ni_t ni, ptl_jid_t *jid);

/* Match entries. */

int PtlMEAttach(ptl_handle_ni_t ni, ptl_pt_index_t pt_index, ptl_process_id_t match_id, ptl_match_bits_t match_bits,
                ptl_match_bits_t ignore_bits, ptl_unlink_t unlink, ptl_ins_pos_t position, ptl_handle_me_t *me);
int PtlMEAttachAny(ptl_handle_ni_t ni, ptl_pt_index_t *pt_index, ptl_process_id_t match_id,
                   ptl_match_bits_t match_bits, ptl_match_bits_t ignore_bits, ptl_unlink_t unlink,
                   ptl_handle_me_t *me);
int PtlMEInsert(ptl_handle_me_t base, ptl_process_id_t match_id, ptl_match_bits_t match_bits,
                ptl_match_bits_t ignore_bits, ptl_unlink_t unlink, ptl_ins_pos_t position, ptl_handle_me_t *me);
int PtlMEUnlink(ptl_handle_me_t me);

/* Memory descriptors. PtlMDUpdate writes what start was into old->start, and no parts. */

int PtlMDAttach(ptl_handle_me_t me, ptl_md_t md, ptl_unlink_t unlink, ptl_handle_md_t *handle);
int PtlMDBind(ptl_handle_ni_t ni, ptl_md_t md, ptl_unlink_t unlink, ptl_handle_md_t *handle);
int PtlMDUnlink(ptl_handle_md_t md);
int PtlMDUpdate(ptl_handle_md_t md, ptl_md_t *old_md, ptl_md_t *new_md, ptl_handle_eq_t test_eq);

/* A match entry with its memory descriptor: at the end or the front of a list; beside another
 * entry, if test_eq is empty and nothing of it is pending (PTL_MD_NO_UPDATE). */

int PtlMEMDAttach(ptl_handle_ni_t ni, ptl_pt_index_t pt_index, ptl_process_id_t match_id, ptl_match_bits_t match_bits,
                  ptl_match_bits_t ignore_bits, ptl_unlink_t me_unlink, ptl_ins_pos_t position, ptl_md_t md,
                  ptl_unlink_t md_unlink, ptl_handle_me_t *me, ptl_handle_md_t *handle);
int PtlMEMDPost(ptl_handle_ni_t ni, ptl_handle_me_t base, ptl_process_id_t match_id, ptl_match_bits_t match_bits,
                ptl_match_bits_t ignore_bits, ptl_unlink_t me_unlink, ptl_ins_pos_t position, ptl_md_t md,
                ptl_unlink_t md_unlink, ptl_handle_me_t *me, ptl_handle_md_t *handle, ptl_handle_eq_t test_eq);

/* Event queues. PTL_EQ_DROPPED comes with a good event, before which others were lost. */

int PtlEQAlloc(ptl_handle_ni_t ni, ptl_size_t count, ptl_eq_handler_t handler, ptl_handle_eq_t *eq);
int PtlEQFree(ptl_handle_eq_t eq);
int PtlEQGet(ptl_handle_eq_t eq, ptl_event_t *event);
int PtlEQWait(ptl_handle_eq_t eq, ptl_event_t *event);
int PtlEQPoll(ptl_handle_eq_t *eqs, int size, ptl_time_t timeout, ptl_event_t *event, int *which);

/* Who may use which portal index. */

int PtlACEntry(ptl_handle_ni_t ni, ptl_ac_index_t index, ptl_process_id_t match_id, ptl_uid_t uid, ptl_jid_t jid,
               ptl_pt_index_t pt_index);

/* Operations. */

int PtlPut(ptl_handle_md_t md, ptl_ack_req_t ack, ptl_process_id_t target, ptl_pt_index_t pt_index,
           ptl_ac_index_t ac_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset, ptl_hdr_data_t hdr_data);
int PtlPutRegion(ptl_handle_md_t md, ptl_size_t local_offset, ptl_size_t length, ptl_ack_req_t ack,
                 ptl_process_id_t target, ptl_pt_index_t pt_index, ptl_ac_index_t ac_index,
                 ptl_match_bits_t match_bits, ptl_size_t remote_offset, ptl_hdr_data_t hdr_data);
int PtlGet(ptl_handle_md_t md, ptl_process_id_t target, ptl_pt_index_t pt_index, ptl_ac_index_t ac_index,
           ptl_match_bits_t match_bits, ptl_size_t remote_offset);
int PtlGetRegion(ptl_handle_md_t md, ptl_size_t local_offset, ptl_size_t length, ptl_process_id_t target,
                 ptl_pt_index_t pt_index, ptl_ac_index_t ac_index, ptl_match_bits_t match_bits,
                 ptl_size_t remote_offset);
int PtlGetPut(ptl_handle_md_t get_md, ptl_handle_md_t put_md, ptl_process_id_t target, ptl_pt_index_t pt_index,
              ptl_ac_index_t ac_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
              ptl_hdr_data_t hdr_data);

/* Names, and progress without an event: for at most timeout, as long as nothing happens. */

const char *PtlErrorStr(unsigned int code);
const char *PtlNIFailStr(ptl_handle_ni_t ni, ptl_ni_fail_t failure);
const char *PtlEventKindStr(ptl_event_kind_t kind);
int PtlProgress(ptl_handle_any_t handle, ptl_time_t timeout);

#ifdef __cplusplus
}
#endif

#endif /* PORTALS3_H */
