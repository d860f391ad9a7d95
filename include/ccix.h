/*
 * What this library offers beyond CCI 2.2. The rules of cci.h hold here too.
 *
 * Structures that may grow begin with `size`: the program sets it to sizeof the structure before
 * the call, and the library reads or writes no more than that.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */

#ifndef CCIX_H
#define CCIX_H

#include <cci.h>
#include <stddef.h>

BEGIN_C_DECLS

/*
 * Why the last failing call of this thread failed, as a sentence; "" when none has failed.
 * CCI_EAGAIN is no failure. The text is valid until this thread's next call that fails, or next
 * ccix_last_error().
 */
CCI_DECLSPEC const char *ccix_last_error(void);

/*
 * Why the connect failed that this event tells of (CCI_EVENT_CONNECT with a status other than
 * CCI_SUCCESS), as a sentence: the peer's own words when it refused the handshake, for one, and
 * what the status means where no more is known. Of CCIX_EVENT_DISCONNECT and
 * CCI_EVENT_KEEPALIVE_TIMEDOUT: frames of the peer that came from another address, where a NAT has
 * mapped it anew. "" for other events. To be asked before the event is returned; the text is valid
 * until this thread's next ccix_event_reason().
 */
CCI_DECLSPEC const char *ccix_event_reason(const cci_event_t *event);

/*
 * The release of this library, such as "0.2.0". The contract of C has versions of its own: 2.2, and
 * CCI_ABI_VERSION. Valid for ever. Does not need cci_init().
 */
CCI_DECLSPEC const char *ccix_release(void);

/*
 * -------------------------------------------------------------------------------------------------
 * Devices
 * -------------------------------------------------------------------------------------------------
 */

/*
 * Sets *device to the device that leads to the endpoint at `uri`: the first of cci_get_devices()
 * that is up and whose transport the URI names. A client that opens its endpoint there can connect
 * to every URI that a server prints. CCI_EINVAL: not a URI, or an unknown transport. CCI_ENODEV: no
 * usable device of it. CCI_ERROR: not initialized.
 */
CCI_DECLSPEC int ccix_device_for(const char *uri, cci_device_t **device);

/*
 * -------------------------------------------------------------------------------------------------
 * Library-allocated memory
 * -------------------------------------------------------------------------------------------------
 */

/*
 * Allocates `len` bytes of zeroes, aligned to a page, that peers of this host can map: RMA with
 * such memory needs no system call. It is registered like any other. Does not need cci_init().
 * CCI_EINVAL: len is 0. CCI_ENOMEM.
 */
CCI_DECLSPEC int ccix_alloc(size_t len, void **ptr);

/*
 * Frees what ccix_alloc() gave. Registrations that touch it, on every transport, keep the memory
 * until they end. CCI_EINVAL: not from ccix_alloc().
 */
CCI_DECLSPEC int ccix_free(void *ptr);

/*
 * -------------------------------------------------------------------------------------------------
 * Endpoints
 * -------------------------------------------------------------------------------------------------
 */

/*
 * Only the thread that opens the endpoint may use it, and it takes no lock; other threads get
 * CCI_EINVAL. Any thread may still return events.
 */
#define CCIX_ENDPOINT_SINGLE_THREAD (1u << 0)
/*
 * Raise CCIX_EVENT_DISCONNECT: else a program that only receives is not told that its peer is gone.
 */
#define CCIX_ENDPOINT_DISCONNECT_EVENTS (1u << 1)

/*
 * CCIX_EVENT_DISCONNECT, a value of cci_event_type_t: the peer has disconnected or died. The
 * connection is event->keepalive.connection; the program still disconnects it by cci_disconnect().
 * All that the peer had sent was delivered before. Only endpoints with
 * CCIX_ENDPOINT_DISCONNECT_EVENTS raise it. A peer whose host dies says nothing:
 * CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT bounds how long a silent peer goes unnoticed.
 *
 * CCIX_EVENT_IMPORT_ENDED: memory imported by ccix_import() is its registration's no more, and
 * ccix_check_import() tells which. The connection is event->keepalive.connection.
 */

struct ccix_endpoint_options {
    /* sizeof(struct ccix_endpoint_options) */
    uint32_t size;
    /* CCIX_ENDPOINT_... */
    uint32_t flags;
    /* Number of buffers, at most 1048576 (else CCI_EINVAL); 0 = the default, 4096 and 8192.
     * CCI_OPT_ENDPT_..._BUF_COUNT can lower it later. */
    uint32_t recv_buffers;
    uint32_t send_buffers;
    /* As of cci_create_endpoint_at(); NULL: any place. */
    const char *service;
};

/*
 * cci_create_endpoint() with options; NULL means all defaults. `fd` serves level- and
 * edge-triggered programs, as of cci_os_handle_t.
 */
CCI_DECLSPEC int ccix_create_endpoint(cci_device_t *device, const struct ccix_endpoint_options *options,
                                      cci_endpoint_t **endpoint, cci_os_handle_t *fd);

/*
 * -------------------------------------------------------------------------------------------------
 * Events
 * -------------------------------------------------------------------------------------------------
 */

/*
 * Writes the next events to `events`, oldest first and at most `most`, and their number to *count:
 * what cci_get_event() would give call by call, for one lock. The program returns each by
 * cci_return_event(), in any order. Of a program that waits edge-triggered, only a call that
 * answers CCI_EAGAIN promises an edge. CCI_EAGAIN: none now. CCI_ENOBUFS: none, and the program
 * holds every receive buffer. Then *count is 0. CCI_EINVAL: `most` is 0, or a place is NULL.
 */
CCI_DECLSPEC int ccix_get_events(cci_endpoint_t *endpoint, cci_event_t **events, uint32_t most, uint32_t *count);

/*
 * What ccix_poll() calls for each event, with its `arg`. 0: the library returns the event, so that
 * its payload is gone once the handler has returned; else the program keeps it, and returns it by
 * cci_return_event(). A request that is neither answered nor kept is rejected. The handler runs
 * without the endpoint's lock, and may call everything but cci_destroy_endpoint() of this endpoint
 * and cci_finalize(). It must not leave by longjmp() or an exception.
 */
typedef int ccix_handler_t(void *arg, cci_event_t *event);

/*
 * Hands the next events to `handler`, oldest first and at most `most`, and writes their number to
 * *count (NULL: nowhere). Messages lie where they arrived. Answers as ccix_get_events(); then the
 * handler has not been called.
 */
CCI_DECLSPEC int ccix_poll(cci_endpoint_t *endpoint, uint32_t most, ccix_handler_t *handler, void *arg, uint32_t *count);

/*
 * Sets *event to the next event of one of `count` endpoints and *which (NULL: nowhere) to the place
 * of that one, and sleeps until there is an event, at most for `timeout`; NULL: for ever. Each call
 * begins with another endpoint, so that one with many events does not keep the others waiting. The
 * program returns the event by cci_return_event(). CCI_EAGAIN: the time is over, or ccix_wake() has
 * ended the wait; *event is NULL. An endpoint that is destroyed meanwhile ends the wait with
 * CCI_EINVAL. CCI_ENOBUFS: as cci_get_event(). CCI_EINVAL also: `count` is 0.
 */
CCI_DECLSPEC int ccix_wait(cci_endpoint_t *const *endpoints, uint32_t count, const struct timeval *timeout,
                           cci_event_t **event, uint32_t *which);

/*
 * Ends one ccix_wait() for the endpoint, or the next one if none waits now, and makes its
 * descriptor readable once. From any thread, also for an endpoint of one thread; wake-ups that
 * nobody has taken yet count as one. CCI_EINVAL: it is no endpoint any more. Another status: no
 * descriptor is left, as ccix_last_error() says.
 */
CCI_DECLSPEC int ccix_wake(cci_endpoint_t *endpoint);

/*
 * Sets `count` of the endpoint's send buffers aside for answers: only ccix_answer() takes them. At
 * first there are none. CCI_EINVAL: so many leave none for other sends.
 * CCI_OPT_ENDPT_SEND_BUF_COUNT cannot be lowered to that number or less.
 */
CCI_DECLSPEC int ccix_set_answer_buffers(cci_endpoint_t *endpoint, uint32_t count);

/*
 * cci_send() of a message that answers another one, with the send buffers that are set aside for
 * answers. While fewer answers than that are open, CCI_ENOBUFS does not come, whatever else the
 * program sends; on sock and sim this holds for answers of up to one frame (`mtu` of
 * ccix_connection_info()). For handlers of ccix_poll(). `flags`: CCI_FLAG_SILENT, CCI_FLAG_NO_COPY,
 * or 0; CCI_EINVAL for CCI_FLAG_BLOCKING, with which nobody would handle requests.
 */
CCI_DECLSPEC int ccix_answer(cci_connection_t *connection, const void *msg_ptr, uint32_t msg_len, const void *context,
                             int flags);

/*
 * -------------------------------------------------------------------------------------------------
 * Connections
 * -------------------------------------------------------------------------------------------------
 */

/*
 * Accepts a request on another endpoint of the same transport than the one that received it: one
 * endpoint takes the requests and others serve them. The CCI_EVENT_ACCEPT comes on `endpoint`.
 * CCI_EINVAL also: another transport.
 */
CCI_DECLSPEC int ccix_accept_on(cci_event_t *conn_req, cci_endpoint_t *endpoint, const void *context);

struct ccix_peer {
    /* sizeof(struct ccix_peer) */
    uint32_t size;
    /* Which of the fields below are known: CCIX_PEER_... */
    uint32_t known;
    /* Its effective user when it connected, and its process, by the kernel of this host. */
    uint32_t user;
    uint32_t process;
    /*
     * Where its frames come from, as a URI, cut to fit; "" on one host. A network may let others
     * use an address.
     */
    char address[128];
    /* The key by which it has proved who it is; no transport does that yet. */
    uint8_t key[32];
};

#define CCIX_PEER_USER (1u << 0)
#define CCIX_PEER_PROCESS (1u << 1)
#define CCIX_PEER_KEY (1u << 2)

/*
 * Tells who sent a request (CCI_EVENT_CONNECT_REQUEST) that is not yet answered, as far as the
 * system tells: nothing is the peer's own word. CCI_EINVAL: not such an event, or `size` holds
 * nothing but itself. CCI_ERR_DISCONNECTED: the client is gone.
 */
CCI_DECLSPEC int ccix_request_peer(const cci_event_t *conn_req, struct ccix_peer *peer);

struct ccix_connection_report {
    /* sizeof(struct ccix_connection_report) */
    uint32_t size;
    /* Largest frame. */
    uint32_t mtu;
    /* Frames that may be in flight. */
    uint32_t window;
    /* Operations that are open. */
    uint32_t open;
    /* Smoothed round-trip time, nanoseconds; 0 = not measured. */
    uint64_t rtt_ns;
    /* Messages sent and received. */
    uint64_t sent;
    uint64_t received;
    /* Bytes moved by RMA that this side began. */
    uint64_t rma_bytes;
    /* Times that a message had to wait for room at the receiver. */
    uint64_t rnr;
    /* Messages dropped, on unreliable connections. */
    uint64_t dropped;
    char transport[16];
    /* How messages and RMA travel, cut to fit; path_text and rma_path_text have all of it. */
    char path[64];
    char rma_path[64];
    /* Why these paths and no others, cut to fit; why_text has all of it. */
    char why[256];
    /* Frames that the whole endpoint dropped because their connection does not exist (any more). */
    uint64_t strays;
    /* The texts above in full. */
    char path_text[256];
    char rma_path_text[256];
    char why_text[1024];
};

/*
 * Reports on a connection. CCI_EINVAL: it is closed, or `size` is too small to hold anything but
 * itself.
 */
CCI_DECLSPEC int ccix_connection_info(cci_connection_t *connection, struct ccix_connection_report *info);

/*
 * -------------------------------------------------------------------------------------------------
 * Messages written in place
 * -------------------------------------------------------------------------------------------------
 */

/*
 * Room for a message of at most `length` bytes. *ptr: where to write it. *room: its number, for the
 * calls below. On sm a message of more than 56 bytes is written where its receiver reads it, as
 * long as there are slots to spare; any other is copied when it is sent. The room is the program's
 * until it is sent or given back, or the endpoint is destroyed; others may wait for it, so it is
 * for a message that is written at once. Bytes that are not written are those of an earlier
 * message. CCI_EMSGSIZE, CCI_ERR_DISCONNECTED: as for cci_send(). CCI_ENOBUFS: as many rooms as
 * send buffers are held.
 */
CCI_DECLSPEC int ccix_reserve(cci_connection_t *connection, uint32_t length, void **ptr, uint64_t *room);

/*
 * cci_send() of the first `length` bytes of a room. On success the room is given back; on any
 * failure it is still the program's, but for one of CCI_FLAG_BLOCKING that was reported after the
 * message was sent. CCI_EINVAL also: no such room, or one of another connection. CCI_EMSGSIZE:
 * longer than the room.
 */
CCI_DECLSPEC int ccix_commit(cci_connection_t *connection, uint64_t room, uint32_t length, const void *context, int flags);

/*
 * Gives a room back without a message, also after its connection has ended. CCI_EINVAL: no such
 * room; sent or given back already.
 */
CCI_DECLSPEC int ccix_cancel(cci_endpoint_t *endpoint, uint64_t room);

/*
 * -------------------------------------------------------------------------------------------------
 * Messages of any length
 * -------------------------------------------------------------------------------------------------
 */

/*
 * Sends `length` bytes (less than 4 GiB - 1) as one message, which its receiver gets as one
 * CCI_EVENT_RECV. Up to the connection's max_send_size it goes as by cci_send(). A longer one is
 * not copied here: the peer is asked for memory, and its library gets the bytes when it has some;
 * `ptr` must stay readable and unchanged until the operation has ended. On an ordered connection it
 * takes its place among the messages, and what is sent after it waits for it. `flags`: as for
 * cci_send(). CCI_EMSGSIZE: too long, or longer than max_send_size on an unreliable connection. The
 * event's status may be CCI_EMSGSIZE too: the peer does not allow messages of this length; the
 * connection lives on.
 */
CCI_DECLSPEC int ccix_send_large(cci_connection_t *connection, const void *ptr, uint64_t length, const void *context,
                                 int flags);

/*
 * Allows peers to send messages longer than max_send_size to this endpoint: `limit` bytes for all
 * of them together that are on their way here or with the program. A longer one is refused, one for
 * which there is no room now waits. At first none are allowed. A lower limit takes no memory from
 * those that have it.
 */
CCI_DECLSPEC int ccix_set_large_limit(cci_endpoint_t *endpoint, uint64_t limit);

/*
 * -------------------------------------------------------------------------------------------------
 * Registrations
 * -------------------------------------------------------------------------------------------------
 */

/*
 * Memory of the host. Other values are reserved for memory of devices; this version refuses them by
 * CCI_EINVAL.
 */
#define CCIX_MEMORY_HOST 0u

/*
 * cci_rma_register() of memory of this kind, for `connection` alone, or for all if that is NULL.
 * Any operation of another connection that names the registration ends with CCI_ERR_RMA_HANDLE, at
 * either side, and touches nothing. When the connection ends, so does all use of the memory; the
 * program still deregisters it before it frees the memory. CCI_EINVAL also: the connection is
 * unreliable, or is of another endpoint. CCI_ERR_DISCONNECTED: it is closed, or its peer gone.
 */
CCI_DECLSPEC int ccix_rma_register(cci_endpoint_t *endpoint, cci_connection_t *connection, void *start, uint64_t length,
                                   int flags, uint32_t kind, cci_rma_handle_t **rma_handle);

/* The word becomes the sum of itself and `operand`, wrapping around. */
#define CCIX_FETCH_ADD 1u
/* The word becomes `operand` where it is `expected`. */
#define CCIX_COMPARE_SWAP 2u

/* An atomic operation on a word of a peer's memory. */
typedef struct ccix_atomic {
    /* CCIX_FETCH_ADD or CCIX_COMPARE_SWAP. */
    uint32_t operation;
    /* Bytes of the word: 4 or 8. Of operands for 4 the lower half counts. */
    uint32_t width;
    uint64_t operand;
    /* Of CCIX_COMPARE_SWAP. */
    uint64_t expected;
} ccix_atomic_t;

/*
 * cci_rma() that changes one word of the peer's memory, and brings its old value to the local
 * memory. The peer has registered it with CCI_FLAG_READ | CCI_FLAG_WRITE, and the word is aligned
 * to its width; otherwise the operation ends with CCI_ERR_RMA_HANDLE, and nothing is changed. After
 * any other failure the word may have been changed, once. The change happens exactly once, also
 * where frames are lost, and is one operation of the processor: all that change the word by such,
 * through whatever connection or transport, or in the peer's own program (by C11 atomics), see one
 * order of changes. `flags`: CCI_FLAG_BLOCKING, CCI_FLAG_NO_COPY, CCI_FLAG_SILENT, CCI_FLAG_FENCE.
 * CCI_EINVAL also: another operation or width.
 */
CCI_DECLSPEC int ccix_rma_atomic(cci_connection_t *connection, const void *msg_ptr, uint32_t msg_len,
                                 cci_rma_handle_t *local_handle, uint64_t local_offset, cci_rma_handle_t *remote_handle,
                                 uint64_t remote_offset, const ccix_atomic_t *atomic, const void *context, int flags);

/*
 * Maps memory that the peer has registered, as a whole, so that this process reads and writes it
 * without a call: on sm, memory of ccix_alloc(), registered with CCI_FLAG_READ at least. *ptr,
 * *length: the memory. *flags: what the peer allows, CCI_FLAG_READ or also CCI_FLAG_WRITE; a
 * program that writes without leave breaks the contract. *import: its number, for the calls below.
 * The peer may end its registration at any time: CCIX_EVENT_IMPORT_ENDED comes, the memory stays
 * mapped, may be others' by then, and is zero once the peer has freed it. CCI_ERR_NOT_IMPLEMENTED:
 * the transport maps none, or not this: use cci_rma(). CCI_ERR_RMA_HANDLE: the peer has no such
 * registration that this connection may read. CCI_ERR_DISCONNECTED.
 */
CCI_DECLSPEC int ccix_import(cci_connection_t *connection, cci_rma_handle_t *remote_handle, void **ptr, uint64_t *length,
                             int *flags, uint64_t *import);

/*
 * CCI_SUCCESS: the registration lives, as far as this side has been told. CCI_ERR_RMA_HANDLE: it or
 * its connection has ended. CCI_EINVAL: no such import. From any thread.
 */
CCI_DECLSPEC int ccix_check_import(uint64_t import);

/*
 * Unmaps what was imported. From any thread, also after the endpoint is destroyed. CCI_EINVAL: no
 * such import.
 */
CCI_DECLSPEC int ccix_release_import(uint64_t import);

/*
 * -------------------------------------------------------------------------------------------------
 * Parallel jobs
 * -------------------------------------------------------------------------------------------------
 */

/*
 * A job is a set of processes that were started together, by `cci run` or another launcher. Each
 * has a rank, from 0. A program that does not call ccix_job_join() opens nothing for it. All calls
 * need cci_init(), may come from any thread, and fail with
 *
 *   CCI_ERR_NOT_FOUND      this process belongs to no job, or has not joined it
 *   CCI_ETIMEDOUT          ranks did not come within the limit; ccix_last_error() names them
 *   CCI_ERR_DISCONNECTED   ranks that the call waits for have ended, or the launcher has
 *
 * Those that wait for other ranks wait for one another too: one thread of a process at a time.
 */

/*
 * Joins the job that the environment names, and waits for its store; under launchers other than
 * `cci run` until all ranks have joined. `limit`: how long this call, and each later one, waits for
 * other ranks; NULL: 60 s. Calls after the first one only count; two threads must not make the
 * first one at once. CCI_ERROR: the job cannot be joined, as ccix_last_error() explains.
 */
CCI_DECLSPEC int ccix_job_join(const struct timeval *limit);

/*
 * Leaves the job, once it was called as often as ccix_job_join(); cci_finalize() does so too. A
 * process joins its job once: the next ccix_job_join() fails. Endpoints go on, and connect to
 * job:RANK as before. Rank 0 of a job without a store of its launcher serves the others for up to
 * 5 s more.
 */
CCI_DECLSPEC int ccix_job_leave(void);

struct ccix_job_report {
    /* sizeof(struct ccix_job_report) */
    uint32_t size;
    /* The number of this process in the job, and how many processes the job has. */
    uint32_t rank;
    uint32_t ranks;
    /* The same among those of the job on this host. */
    uint32_t local_rank;
    uint32_t local_ranks;
    /* Processors of the host that these may use, at least 1. */
    uint32_t processors;
    /* local_ranks / processors: above 1, ranks that busy-poll take time from others. */
    double ranks_per_core;
    /* 1: ranks prove to each other that they belong to the job. 0: they do not. */
    uint32_t authenticated;
    /* Where the job comes from, such as "cci run". */
    char source[60];
};

/*
 * Writes what is known of the job and of this process in it. CCI_EINVAL: `size` holds nothing but
 * itself.
 */
CCI_DECLSPEC int ccix_job_info(struct ccix_job_report *info);

/*
 * Publishes `length` bytes of this rank, at most 65536, under a key of 1 to 255 bytes. Over PMI
 * other ranks find them after this rank's next ccix_job_exchange(). CCI_EINVAL also: this rank has
 * published the key before.
 */
CCI_DECLSPEC int ccix_job_publish(const char *key, const void *value, uint32_t length);

/*
 * Copies what a rank has published under a key to `value`, which has room for *length bytes, and
 * sets *length to its length. Waits until that rank has published it. CCI_EMSGSIZE: it is longer
 * than the room; its first bytes are copied.
 */
CCI_DECLSPEC int ccix_job_look_up(uint32_t rank, const char *key, void *value, uint32_t *length);

/*
 * A barrier that carries data: gives `length` bytes, at most 65536, to all ranks, waits until all
 * have come to this exchange, and copies what they gave to `values`, `room` bytes for each in the
 * order of ranks, and how long each was to `lengths`. Either may be NULL, if it is not wanted.
 * CCI_EMSGSIZE: one was longer than `room`, and its first bytes are copied; the exchange is over.
 */
CCI_DECLSPEC int ccix_job_exchange(const void *value, uint32_t length, void *values, uint32_t room, uint32_t *lengths);

/*
 * Opens the endpoint of this rank, as ccix_create_endpoint() does on the default device, publishes
 * its URI under the key "uri", and waits until all ranks have opened theirs: all ranks call it,
 * once. From then on cci_connect() of any endpoint takes "job:3" in place of the URI of rank 3, and
 * waits for nobody. CCI_EINVAL also: it was called before.
 */
CCI_DECLSPEC int ccix_job_open(const struct ccix_endpoint_options *options, cci_endpoint_t **endpoint,
                               cci_os_handle_t *fd);

END_C_DECLS

#endif /* CCIX_H */
