/*
 * The Common Communication Interface, version 2.2: the C contract.
 *
 * A process opens an endpoint on a device and connects it to other endpoints. Short messages travel
 * over connections through the library's buffers; long data moves between registered memories by
 * RMA. Whatever happens is reported by events: cci_get_event() hands one out, cci_return_event()
 * gives it back.
 *
 * Every function may be called from any thread at any time. Every int that a function returns is an
 * enum cci_status. A NULL where a pointer is needed gives CCI_EINVAL. Sizes are in bytes, times in
 * microseconds. Structures that the library hands out are for reading only.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */

#ifndef CCI_H
#define CCI_H

/* Programs rely on these: they are part of the contract. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifdef __cplusplus
#define BEGIN_C_DECLS extern "C" {
#define END_C_DECLS }
#else
#define BEGIN_C_DECLS
#define END_C_DECLS
#endif

#if defined(__GNUC__)
#define CCI_DECLSPEC __attribute__((visibility("default")))
#else
#define CCI_DECLSPEC
#endif

BEGIN_C_DECLS

/*
 * -------------------------------------------------------------------------------------------------
 * Status
 * -------------------------------------------------------------------------------------------------
 */

/* How a call or an operation ended. The later ones have the values of errno. */
typedef enum cci_status {
    CCI_SUCCESS = 0,
    /* The library is not initialized, or failed inside. */
    CCI_ERROR = 1,
    /* The connection is closed, or its peer is gone. */
    CCI_ERR_DISCONNECTED = 2,
    /* The receiver had no room until the send timeout. */
    CCI_ERR_RNR = 3,
    /*
     * The endpoint is not usable here: it belongs to the parent of this forked process, or its
     * device failed.
     */
    CCI_ERR_DEVICE_DEAD = 4,
    /*
     * The peer refused an RMA: handle unknown or stale, range outside the registration, or right
     * not granted.
     */
    CCI_ERR_RMA_HANDLE = 5,
    /* An RMA failed while copying. */
    CCI_ERR_RMA_OP = 6,
    /* This device does not offer that. */
    CCI_ERR_NOT_IMPLEMENTED = 7,
    CCI_ERR_NOT_FOUND = 8,
    CCI_EINVAL = EINVAL,
    /* No answer within the timeout. */
    CCI_ETIMEDOUT = ETIMEDOUT,
    CCI_ENOMEM = ENOMEM,
    /* No such device, or it is down. */
    CCI_ENODEV = ENODEV,
    CCI_ENETDOWN = ENETDOWN,
    CCI_EBUSY = EBUSY,
    CCI_ERANGE = ERANGE,
    /* Nothing to report now. */
    CCI_EAGAIN = EAGAIN,
    /* Out of buffers: return events, and see cci_os_handle_t for what to wait for. */
    CCI_ENOBUFS = ENOBUFS,
    /* Longer than the connection's maximum. */
    CCI_EMSGSIZE = EMSGSIZE,
    CCI_ENOMSG = ENOMSG,
    CCI_EADDRNOTAVAIL = EADDRNOTAVAIL,
    /* Rejected, or nobody listens there. */
    CCI_ECONNREFUSED = ECONNREFUSED
} cci_status_t;

/*
 * -------------------------------------------------------------------------------------------------
 * Structures that programs read
 * -------------------------------------------------------------------------------------------------
 */

/* A device of this host, found or configured. Valid until the last cci_finalize(). */
typedef const struct cci_device {
    /* The section of the configuration file, or a name that the library made. */
    const char *name;
    const char *transport;
    /* Whether endpoints can be opened on it. */
    unsigned up;
    /* Why it is, or is not, usable. */
    const char *info;
    /* The transport's settings as "key=value"; a NULL ends the list. Never NULL itself. */
    const char *const *conf_argv;
    /* Longest message. A connection's own maximum may be smaller. */
    uint32_t max_send_size;
    /* Bits per second; 0 = not known. */
    uint64_t rate;
    /* Where it sits; all UINT32_MAX when not on PCI. */
    struct {
        uint32_t domain;
        uint32_t bus;
        uint32_t dev;
        uint32_t func;
    } pci;
} cci_device_t;

/* An endpoint: all buffers and one queue of events, for any number of connections. */
typedef const struct cci_endpoint {
    cci_device_t *device;
} cci_endpoint_t;

/* What a connection promises. */
typedef enum cci_conn_attribute {
    /* Reliable; completions and deliveries in order. */
    CCI_CONN_ATTR_RO = 0,
    /* Reliable; completions and deliveries in any order. */
    CCI_CONN_ATTR_RU = 1,
    /*
     * Unreliable and unordered: a message arrives intact and at most once, or not at all. No RMA.
     */
    CCI_CONN_ATTR_UU = 2,
    /* As UU, to all receivers of a multicast group. */
    CCI_CONN_ATTR_UU_MC_TX = 3,
    /* As UU, from the senders of a multicast group. */
    CCI_CONN_ATTR_UU_MC_RX = 4
} cci_conn_attribute_t;

/* A connection. Readable until it is disconnected, and as long as an event about it is held. */
typedef const struct cci_connection {
    /* Longest message. */
    uint32_t max_send_size;
    cci_endpoint_t *endpoint;
    cci_conn_attribute_t attribute;
    /* What was given to cci_connect() or cci_accept(). */
    void *context;
} cci_connection_t;

/*
 * -------------------------------------------------------------------------------------------------
 * Events
 * -------------------------------------------------------------------------------------------------
 */

typedef enum cci_event_type {
    CCI_EVENT_NONE = 0,
    /* A send or an RMA has ended. */
    CCI_EVENT_SEND = 1,
    /* A message has arrived. */
    CCI_EVENT_RECV = 2,
    /* A connect has ended. */
    CCI_EVENT_CONNECT = 3,
    /* A peer asks for a connection. */
    CCI_EVENT_CONNECT_REQUEST = 4,
    /* An accept has ended. */
    CCI_EVENT_ACCEPT = 5,
    /* Nothing was heard from the peer for the connection's keepalive time. */
    CCI_EVENT_KEEPALIVE_TIMEDOUT = 6,
    /* The endpoint's device has failed; the endpoint can only be destroyed. */
    CCI_EVENT_ENDPOINT_DEVICE_FAILED = 7,
    /*
     * Those of ccix.h, which has their meaning. Only endpoints that ask for them get them
     * (ccix_create_endpoint(), ccix_import()).
     */
    CCIX_EVENT_DISCONNECT = 0x100,
    CCIX_EVENT_IMPORT_ENDED = 0x101
} cci_event_type_t;

/*
 * CCI_EVENT_SEND: with CCI_SUCCESS, on a reliable connection, the peer's library has the message or
 * the data; otherwise it has them, or never will. A peer that disconnects acknowledges everything
 * that it has.
 */
typedef const struct cci_event_send {
    cci_event_type_t type;
    cci_status_t status;
    cci_connection_t *connection;
    /* What was given to the send or the RMA. */
    void *context;
} cci_event_send_t;

/*
 * CCI_EVENT_RECV: the bytes are the program's, in place, until it returns the event. A zero byte
 * follows the last one.
 */
typedef const struct cci_event_recv {
    cci_event_type_t type;
    /* May be 0. */
    uint32_t len;
    /* Aligned to 8 bytes when len > 0. */
    const void *ptr;
    cci_connection_t *connection;
} cci_event_recv_t;

/* CCI_EVENT_CONNECT */
typedef const struct cci_event_connect {
    cci_event_type_t type;
    cci_status_t status;
    /* What was given to cci_connect(). */
    void *context;
    /* NULL unless the status is CCI_SUCCESS. */
    cci_connection_t *connection;
} cci_event_connect_t;

/*
 * CCI_EVENT_CONNECT_REQUEST: to be accepted or rejected, now or later, and then returned. Over
 * sock, requests without an answer hold at most a quarter of the receive buffers, and those of one
 * host a sixteenth (an eighth where that is 16 or fewer). Clients beyond that ask again until their
 * time is over.
 */
typedef const struct cci_event_connect_request {
    cci_event_type_t type;
    uint32_t data_len;
    /* The client's payload, the program's until it returns the event. */
    const void *data_ptr;
    /* What the client asks for. */
    cci_conn_attribute_t attribute;
} cci_event_connect_request_t;

/* CCI_EVENT_ACCEPT */
typedef const struct cci_event_accept {
    cci_event_type_t type;
    cci_status_t status;
    /* What was given to cci_accept(). */
    void *context;
    /* NULL unless the status is CCI_SUCCESS. */
    cci_connection_t *connection;
} cci_event_accept_t;

/* CCI_EVENT_KEEPALIVE_TIMEDOUT: the connection stays, its keepalive timeout is 0 from now on. */
typedef const struct cci_event_keepalive_timedout {
    cci_event_type_t type;
    cci_connection_t *connection;
} cci_event_keepalive_timedout_t;

/* CCI_EVENT_ENDPOINT_DEVICE_FAILED */
typedef const struct cci_event_endpoint_device_failed {
    cci_event_type_t type;
    cci_endpoint_t *endpoint;
} cci_event_endpoint_device_failed_t;

/* An event: valid until returned, whatever happens meanwhile to its connection. */
typedef const union cci_event {
    cci_event_type_t type;
    cci_event_send_t send;
    cci_event_recv_t recv;
    cci_event_connect_t connect;
    cci_event_connect_request_t request;
    cci_event_accept_t accept;
    cci_event_keepalive_timedout_t keepalive;
    cci_event_endpoint_device_failed_t dev_failed;
} cci_event_t;

/* The name of an event's type, those of ccix.h among them. */
static inline const char *cci_event_type_str(cci_event_type_t type)
{
    switch (type) {
    case CCI_EVENT_NONE:
        return "CCI_EVENT_NONE";
    case CCI_EVENT_SEND:
        return "CCI_EVENT_SEND";
    case CCI_EVENT_RECV:
        return "CCI_EVENT_RECV";
    case CCI_EVENT_CONNECT:
        return "CCI_EVENT_CONNECT";
    case CCI_EVENT_CONNECT_REQUEST:
        return "CCI_EVENT_CONNECT_REQUEST";
    case CCI_EVENT_ACCEPT:
        return "CCI_EVENT_ACCEPT";
    case CCI_EVENT_KEEPALIVE_TIMEDOUT:
        return "CCI_EVENT_KEEPALIVE_TIMEDOUT";
    case CCI_EVENT_ENDPOINT_DEVICE_FAILED:
        return "CCI_EVENT_ENDPOINT_DEVICE_FAILED";
    case CCIX_EVENT_DISCONNECT:
        return "CCIX_EVENT_DISCONNECT";
    case CCIX_EVENT_IMPORT_ENDED:
        return "CCIX_EVENT_IMPORT_ENDED";
    }
    return "unknown event type";
}

/*
 * -------------------------------------------------------------------------------------------------
 * Initialization, devices
 * -------------------------------------------------------------------------------------------------
 */

/* The version of this contract, to be given to cci_init(). */
#define CCI_ABI_VERSION 2

/*
 * Initializes the library: reads the configuration file that the environment variable CCI_CONFIG
 * names, or finds the devices. Calls are counted: each needs its cci_finalize(). A forked child
 * initializes afresh.
 *
 * abi_ver  CCI_ABI_VERSION
 * flags    ignored: none is defined
 * caps     set to 0: no capability is defined
 *
 * CCI_EINVAL: another version, NULL, or a mistake in the configuration file.
 */
CCI_DECLSPEC int cci_init(uint32_t abi_ver, uint32_t flags, uint32_t *caps);

/*
 * Undoes one cci_init(). The last one closes all endpoints, also those that belong to other threads
 * (ccix_create_endpoint()); their threads' later calls are refused. After it cci_init() may be
 * called again.
 *
 * CCI_ERROR: not initialized. CCI_EBUSY: all endpoints are closed, but a peer that does not run is
 * in the midst of a transfer, see cci_destroy_endpoint(); ccix_last_error() names it. The library
 * stays initialized: call cci_finalize() again, which waits at most 100 ms for such peers each
 * time.
 */
CCI_DECLSPEC int cci_finalize(void);

/*
 * Name and meaning of a status, never to be freed. `endpoint` may be NULL. NULL when there is no
 * such status.
 */
CCI_DECLSPEC const char *cci_strerror(cci_endpoint_t *endpoint, enum cci_status status);

/*
 * The devices as an array that a NULL ends: those up first, then the default, then by priority and
 * rate. Valid until the last cci_finalize(). CCI_ERROR: not initialized.
 */
CCI_DECLSPEC int cci_get_devices(cci_device_t *const **devices);

/*
 * -------------------------------------------------------------------------------------------------
 * Endpoints
 * -------------------------------------------------------------------------------------------------
 */

/*
 * A file descriptor for poll(), select() and epoll: readable means "call cci_get_event()". The
 * library closes it.
 *
 * Level-triggered: while an event waits the descriptor is readable. It may be readable for nothing.
 *
 * Edge-triggered (EPOLLET): a program that calls cci_get_event() until it answers CCI_EAGAIN, or
 * CCI_ENOBUFS, gets an edge for whatever comes after that call, without another call. After polling
 * without a pause the edge may come up to 1 ms late, and the first one after waiting
 * level-triggered up to 16 ms. An edge may come for nothing. EPOLLONESHOT works too.
 *
 * After CCI_ENOBUFS from cci_send(), cci_sendv(), cci_rma(), cci_connect() or cci_accept() a
 * program takes and returns its events until cci_get_event() answers CCI_EAGAIN, and waits for the
 * descriptor: it becomes readable also when the refused call can succeed again, though no event
 * says so. The program then calls cci_get_event() until CCI_EAGAIN, and tries again.
 */
typedef int cci_os_handle_t;

/* No flag is defined. */
typedef enum cci_endpoint_flags {
    CCI_ENDPOINT_FLAGS_DUMMY = 0
} cci_endpoint_flags_t;

/*
 * Opens an endpoint.
 *
 * device    NULL: the default device, else the first
 * flags     ignored: none is defined
 * endpoint  set to the endpoint
 * fd        set to the endpoint's descriptor; NULL: the program polls
 *
 * CCI_ENODEV: no device, or it is down. CCI_ENOMEM: no memory or descriptors. CCI_ERROR: not
 * initialized.
 */
CCI_DECLSPEC int cci_create_endpoint(cci_device_t *device, int flags, cci_endpoint_t **endpoint, cci_os_handle_t *fd);

/*
 * Opens an endpoint at a place of the program's choice: a port for `sock` and `tcp`, "pid/id" for
 * `sm`. A text that has neither, such as the name of a host, is a hint: any place is taken, and
 * CCI_LOG=info says so. A host before a port is one of this machine, whose name is looked up for
 * 5 s at most. The device is needed.
 *
 * As cci_create_endpoint(); also CCI_EINVAL: the service is malformed; CCI_EADDRNOTAVAIL: it is
 * taken.
 */
CCI_DECLSPEC int cci_create_endpoint_at(cci_device_t *device, const char *service, int flags, cci_endpoint_t **endpoint,
                                        cci_os_handle_t *fd);

/*
 * Closes an endpoint, its connections and registrations; waits at most 100 ms for acknowledgements
 * and transfers of peers. Events of this endpoint are not to be used any more.
 *
 * CCI_EBUSY: the endpoint is closed, and no more to be used, but a peer that does not run is in the
 * midst of a transfer to or from registered memory (sm), which goes on when the peer does;
 * ccix_last_error() names it. The memory has to stay mapped until a later cci_finalize() succeeds.
 */
CCI_DECLSPEC int cci_destroy_endpoint(cci_endpoint_t *endpoint);

/*
 * -------------------------------------------------------------------------------------------------
 * Connections
 * -------------------------------------------------------------------------------------------------
 */

/* Longest payload of a connection request. */
#define CCI_CONN_REQ_LEN (1024)

/*
 * Accepts a request: one CCI_EVENT_ACCEPT with this context follows. The request event is still to
 * be returned. Over sock a client has 5 s to confirm; then the event has the status CCI_ETIMEDOUT.
 * CCI_EINVAL: no request, or one that was answered before.
 */
CCI_DECLSPEC int cci_accept(cci_event_t *conn_req, const void *context);

/*
 * Rejects a request: its client sees CCI_ECONNREFUSED. The request event is still to be returned.
 */
CCI_DECLSPEC int cci_reject(cci_event_t *conn_req);

/*
 * Asks the endpoint at a URI for a connection. Never blocks: one CCI_EVENT_CONNECT with this
 * context follows.
 *
 * data_ptr, data_len  up to CCI_CONN_REQ_LEN bytes for the server's request event; copied
 * flags               ignored: none is defined
 * timeout             how long to try; NULL: for ever
 *
 * A URI of `sock` may name its host. The name is looked up by a thread of the library, and the
 * timeout includes that.
 *
 * CCI_EINVAL: bad URI, payload too long, unknown attribute, negative timeout. CCI_ENOMEM: also no
 * thread for a name.
 */
CCI_DECLSPEC int cci_connect(cci_endpoint_t *endpoint, const char *server_uri, const void *data_ptr, uint32_t data_len,
                             cci_conn_attribute_t attribute, const void *context, int flags,
                             const struct timeval *timeout);

/*
 * Closes a connection: local and immediate, without an event here or there. Messages whose
 * CCI_EVENT_SEND succeeded are delivered; other operations end with CCI_ERR_DISCONNECTED.
 */
CCI_DECLSPEC int cci_disconnect(cci_connection_t *connection);

/*
 * -------------------------------------------------------------------------------------------------
 * Options
 * -------------------------------------------------------------------------------------------------
 */

/* What an option belongs to: an endpoint or a connection, as its name says. */
typedef const void cci_opt_handle_t;

/* The value is a uint32_t unless said otherwise; timeouts in microseconds, 0 = none. */
typedef enum cci_opt_name {
    /* Endpoint: send timeout of its later connections. */
    CCI_OPT_ENDPT_SEND_TIMEOUT = 0,
    /* Endpoint: number of receive buffers. */
    CCI_OPT_ENDPT_RECV_BUF_COUNT = 1,
    /* Endpoint: number of send buffers. */
    CCI_OPT_ENDPT_SEND_BUF_COUNT = 2,
    /* Endpoint: keepalive timeout of its later connections. */
    CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT = 3,
    /*
     * Endpoint, get only: what others connect to. `val` is a char **, set to a string that the
     * program frees by free().
     */
    CCI_OPT_ENDPT_URI = 4,
    /* Endpoint, get only: alignment that RMA needs. `val` is a struct cci_alignment *. */
    CCI_OPT_ENDPT_RMA_ALIGN = 5,
    /*
     * Connection: how long a send may stay open, and how long an RMA and what waits for it may make
     * no progress.
     */
    CCI_OPT_CONN_SEND_TIMEOUT = 6,
    /* Connection: silence of the peer after which CCI_EVENT_KEEPALIVE_TIMEDOUT is raised. */
    CCI_OPT_CONN_KEEPALIVE_TIMEOUT = 7
} cci_opt_name_t;

/* Alignments that RMA needs, bytes; 0 = none. */
typedef const struct cci_alignment {
    uint32_t rma_write_local_addr;
    uint32_t rma_write_remote_addr;
    uint32_t rma_write_length;
    uint32_t rma_read_local_addr;
    uint32_t rma_read_remote_addr;
    uint32_t rma_read_length;
} cci_alignment_t;

/* Sets an option. CCI_EINVAL: it cannot be set, or the value is out of range. */
CCI_DECLSPEC int cci_set_opt(cci_opt_handle_t *handle, cci_opt_name_t name, const void *val);

/* Reads an option. */
CCI_DECLSPEC int cci_get_opt(cci_opt_handle_t *handle, cci_opt_name_t name, void *val);

/*
 * -------------------------------------------------------------------------------------------------
 * Getting and returning events
 * -------------------------------------------------------------------------------------------------
 */

/*
 * Arms the descriptor now. No program needs it: cci_get_event() arms when the program seems to
 * sleep. The call ends the time in which the library expects the program to poll: the descriptor is
 * quiet at once if nothing waits. Flags: reserved, pass 0. Without a descriptor it does nothing.
 */
CCI_DECLSPEC int cci_arm_os_handle(cci_endpoint_t *endpoint, int flags);

/*
 * The next event. Never blocks, and moves everything that can move.
 *
 * CCI_EAGAIN: nothing now. CCI_ENOBUFS: nothing, and the program holds every receive buffer. In
 * both cases *event is NULL.
 */
CCI_DECLSPEC int cci_get_event(cci_endpoint_t *endpoint, cci_event_t **event);

/*
 * Gives an event back: in any order, from any thread. CCI_EINVAL: returned already, or a request
 * that was neither accepted nor rejected (which stays valid).
 */
CCI_DECLSPEC int cci_return_event(cci_event_t *event);

/*
 * -------------------------------------------------------------------------------------------------
 * Messages
 * -------------------------------------------------------------------------------------------------
 */

/* Flags of cci_send(), cci_sendv() and cci_rma(): */
/* Return when the operation has ended, with its status; no event. */
#define CCI_FLAG_BLOCKING (1 << 0)
/* The bytes stay untouched by the program until the operation has ended. */
#define CCI_FLAG_NO_COPY (1 << 1)
/* No event on success. */
#define CCI_FLAG_SILENT (1 << 3)
/* cci_rma(): from the remote registration to the local one. cci_rma_register(): peers may read. */
#define CCI_FLAG_READ (1 << 4)
/* cci_rma(): from the local registration to the remote one. cci_rma_register(): peers may write. */
#define CCI_FLAG_WRITE (1 << 5)
/* cci_rma(): after all earlier operations of the connection, before all later ones. */
#define CCI_FLAG_FENCE (1 << 6)

/*
 * Sends a message; msg_len may be 0. One CCI_EVENT_SEND with this context follows, unless the flags
 * say otherwise.
 *
 * flags  CCI_FLAG_BLOCKING, CCI_FLAG_NO_COPY, CCI_FLAG_SILENT; NO_COPY with SILENT on reliable
 *        ordered connections only. The flags READ, WRITE and FENCE of cci_rma() are ignored.
 *        CCI_EINVAL: a bit that is no flag.
 *
 * CCI_EMSGSIZE: longer than the connection's max_send_size. CCI_ENOBUFS: no free buffer, nothing
 * was sent: return events, wait for the endpoint's descriptor (see cci_os_handle_t), and try again.
 * CCI_ERR_DISCONNECTED: the connection is closed or broken.
 */
CCI_DECLSPEC int cci_send(cci_connection_t *connection, const void *msg_ptr, uint32_t msg_len, const void *context,
                          int flags);

/*
 * As cci_send(), for a message in iovcnt parts, whose list and bytes are the program's again on
 * return.
 */
CCI_DECLSPEC int cci_sendv(cci_connection_t *connection, const struct iovec *data, uint32_t iovcnt, const void *context,
                           int flags);

/*
 * -------------------------------------------------------------------------------------------------
 * Remote memory
 * -------------------------------------------------------------------------------------------------
 */

/*
 * Names a registration, by content: programs copy it and send it to peers as 32 bytes. The type is
 * constant. A place for a handle that arrives is a `struct cci_rma_handle`:
 *
 *     struct cci_rma_handle theirs;
 *     memcpy(&theirs, event->recv.ptr, sizeof theirs);
 *     cci_rma(connection, NULL, 0, mine, 0, &theirs, 0, length, context, CCI_FLAG_WRITE);
 */
typedef const struct cci_rma_handle {
    uint64_t stuff[4];
} cci_rma_handle_t;

/*
 * Registers memory of this process. *rma_handle stays valid until deregistration.
 *
 * The memory has to stay mapped until then; memory of ccix_alloc() stays mapped by itself, also
 * after ccix_free(). What the program unmaps while it is registered is the program's fault: an
 * operation whose memory the system cannot read or write ends with CCI_ERR_RMA_OP, but where the
 * library itself copies, the process gets SIGSEGV. The library has no signal handler.
 *
 * flags  what peers may do: 0, CCI_FLAG_READ, CCI_FLAG_WRITE, or both; other bits are ignored. The
 *        library enforces these rights, unless the device has the key rma_rights = open: then peers
 *        may do both. CCI_LOG=warn names the key where a program registers without a right.
 *
 * CCI_EINVAL: NULL, or length 0. CCI_ENOMEM: no room for another registration.
 */
CCI_DECLSPEC int cci_rma_register(cci_endpoint_t *endpoint, void *start, uint64_t length, int flags,
                                  cci_rma_handle_t **rma_handle);

/*
 * Ends a registration; a copy of its handle will do. After success nobody touches the memory any
 * more. CCI_EINVAL: no such registration. CCI_EBUSY: after 100 ms a peer that does not run is still
 * in the midst of a transfer; ccix_last_error() names it. The registration takes no new transfer;
 * try again.
 */
CCI_DECLSPEC int cci_rma_deregister(cci_endpoint_t *endpoint, cci_rma_handle_t *rma_handle);

/*
 * Copies data_len bytes between a local and a remote registration. One CCI_EVENT_SEND with this
 * context follows, unless the flags say otherwise; with CCI_ERR_RMA_HANDLE when the peer refuses,
 * and then nothing was copied and no message is delivered.
 *
 * msg_ptr, msg_len  a message that the peer receives once the data are in place; msg_len 0: none
 * flags             one of CCI_FLAG_READ and CCI_FLAG_WRITE, and CCI_FLAG_BLOCKING,
 *                   CCI_FLAG_NO_COPY, CCI_FLAG_SILENT, CCI_FLAG_FENCE
 *
 * CCI_EINVAL: length 0, unreliable connection, wrong flags, or a range outside the local
 * registration. CCI_EMSGSIZE: the message is longer than the connection's max_send_size.
 * CCI_ENOBUFS: too many operations are open.
 *
 * Over sm the library copies from and to the peer's address space. A peer that executes another
 * program closes its endpoint by it: a copy that is under way goes on in the old program's memory,
 * and no later one reaches the new program.
 */
CCI_DECLSPEC int cci_rma(cci_connection_t *connection, const void *msg_ptr, uint32_t msg_len,
                         cci_rma_handle_t *local_handle, uint64_t local_offset, cci_rma_handle_t *remote_handle,
                         uint64_t remote_offset, uint64_t data_len, const void *context, int flags);

END_C_DECLS

#endif /* CCI_H */
