/*
 * Everything that a compiled program has taken from the headers, asserted by the compiler. C99, C11
 * and C++17.
 */

#include <cci.h>
#include <ccix.h>
#include <stddef.h>

#define JOIN_NAMES(left, right) left##right
#define NUMBERED(line) JOIN_NAMES(assertion_, line)
/* One assertion a line. */
#define ASSERT(condition) extern char NUMBERED(__LINE__)[(condition) ? 1 : -1]

#define SIZE(type, size) ASSERT(sizeof(type) == (size))
#define OFFSET(type, field, offset) ASSERT(offsetof(type, field) == (offset))

SIZE(struct cci_device, 72);
OFFSET(struct cci_device, name, 0);
OFFSET(struct cci_device, transport, 8);
OFFSET(struct cci_device, up, 16);
OFFSET(struct cci_device, info, 24);
OFFSET(struct cci_device, conf_argv, 32);
OFFSET(struct cci_device, max_send_size, 40);
OFFSET(struct cci_device, rate, 48);
OFFSET(struct cci_device, pci, 56);
OFFSET(struct cci_device, pci.domain, 56);
OFFSET(struct cci_device, pci.bus, 60);
OFFSET(struct cci_device, pci.dev, 64);
OFFSET(struct cci_device, pci.func, 68);

SIZE(struct cci_endpoint, 8);
OFFSET(struct cci_endpoint, device, 0);

SIZE(struct cci_connection, 32);
OFFSET(struct cci_connection, max_send_size, 0);
OFFSET(struct cci_connection, endpoint, 8);
OFFSET(struct cci_connection, attribute, 16);
OFFSET(struct cci_connection, context, 24);

SIZE(union cci_event, 24);
OFFSET(union cci_event, type, 0);
OFFSET(union cci_event, send, 0);
OFFSET(union cci_event, recv, 0);
OFFSET(union cci_event, connect, 0);
OFFSET(union cci_event, request, 0);
OFFSET(union cci_event, accept, 0);
OFFSET(union cci_event, keepalive, 0);
OFFSET(union cci_event, dev_failed, 0);

SIZE(cci_event_send_t, 24);
OFFSET(cci_event_send_t, type, 0);
OFFSET(cci_event_send_t, status, 4);
OFFSET(cci_event_send_t, connection, 8);
OFFSET(cci_event_send_t, context, 16);

SIZE(cci_event_recv_t, 24);
OFFSET(cci_event_recv_t, type, 0);
OFFSET(cci_event_recv_t, len, 4);
OFFSET(cci_event_recv_t, ptr, 8);
OFFSET(cci_event_recv_t, connection, 16);

SIZE(cci_event_connect_t, 24);
OFFSET(cci_event_connect_t, type, 0);
OFFSET(cci_event_connect_t, status, 4);
OFFSET(cci_event_connect_t, context, 8);
OFFSET(cci_event_connect_t, connection, 16);

SIZE(cci_event_accept_t, 24);
OFFSET(cci_event_accept_t, type, 0);
OFFSET(cci_event_accept_t, status, 4);
OFFSET(cci_event_accept_t, context, 8);
OFFSET(cci_event_accept_t, connection, 16);

SIZE(cci_event_connect_request_t, 24);
OFFSET(cci_event_connect_request_t, type, 0);
OFFSET(cci_event_connect_request_t, data_len, 4);
OFFSET(cci_event_connect_request_t, data_ptr, 8);
OFFSET(cci_event_connect_request_t, attribute, 16);

SIZE(cci_event_keepalive_timedout_t, 16);
OFFSET(cci_event_keepalive_timedout_t, type, 0);
OFFSET(cci_event_keepalive_timedout_t, connection, 8);

SIZE(cci_event_endpoint_device_failed_t, 16);
OFFSET(cci_event_endpoint_device_failed_t, type, 0);
OFFSET(cci_event_endpoint_device_failed_t, endpoint, 8);

SIZE(struct cci_rma_handle, 32);
OFFSET(struct cci_rma_handle, stuff, 0);

SIZE(struct cci_alignment, 24);
OFFSET(struct cci_alignment, rma_write_local_addr, 0);
OFFSET(struct cci_alignment, rma_write_remote_addr, 4);
OFFSET(struct cci_alignment, rma_write_length, 8);
OFFSET(struct cci_alignment, rma_read_local_addr, 12);
OFFSET(struct cci_alignment, rma_read_remote_addr, 16);
OFFSET(struct cci_alignment, rma_read_length, 20);

SIZE(struct ccix_endpoint_options, 24);
OFFSET(struct ccix_endpoint_options, size, 0);
OFFSET(struct ccix_endpoint_options, flags, 4);
OFFSET(struct ccix_endpoint_options, recv_buffers, 8);
OFFSET(struct ccix_endpoint_options, send_buffers, 12);
OFFSET(struct ccix_endpoint_options, service, 16);

SIZE(struct ccix_job_report, 96);
OFFSET(struct ccix_job_report, rank, 4);
OFFSET(struct ccix_job_report, ranks, 8);
OFFSET(struct ccix_job_report, local_rank, 12);
OFFSET(struct ccix_job_report, local_ranks, 16);
OFFSET(struct ccix_job_report, processors, 20);
OFFSET(struct ccix_job_report, ranks_per_core, 24);
OFFSET(struct ccix_job_report, authenticated, 32);
OFFSET(struct ccix_job_report, source, 36);

SIZE(struct ccix_peer, 176);
OFFSET(struct ccix_peer, size, 0);
OFFSET(struct ccix_peer, known, 4);
OFFSET(struct ccix_peer, user, 8);
OFFSET(struct ccix_peer, process, 12);
OFFSET(struct ccix_peer, address, 16);
OFFSET(struct ccix_peer, key, 144);

SIZE(struct ccix_connection_report, 2008);
OFFSET(struct ccix_connection_report, size, 0);
OFFSET(struct ccix_connection_report, mtu, 4);
OFFSET(struct ccix_connection_report, window, 8);
OFFSET(struct ccix_connection_report, open, 12);
OFFSET(struct ccix_connection_report, rtt_ns, 16);
OFFSET(struct ccix_connection_report, sent, 24);
OFFSET(struct ccix_connection_report, received, 32);
OFFSET(struct ccix_connection_report, rma_bytes, 40);
OFFSET(struct ccix_connection_report, rnr, 48);
OFFSET(struct ccix_connection_report, dropped, 56);
OFFSET(struct ccix_connection_report, transport, 64);
OFFSET(struct ccix_connection_report, path, 80);
OFFSET(struct ccix_connection_report, rma_path, 144);
OFFSET(struct ccix_connection_report, why, 208);
OFFSET(struct ccix_connection_report, strays, 464);
OFFSET(struct ccix_connection_report, path_text, 472);
OFFSET(struct ccix_connection_report, rma_path_text, 728);
OFFSET(struct ccix_connection_report, why_text, 984);

SIZE(cci_os_handle_t, 4);
SIZE(cci_status_t, 4);
SIZE(cci_conn_attribute_t, 4);
SIZE(cci_event_type_t, 4);
SIZE(cci_opt_name_t, 4);
SIZE(cci_endpoint_flags_t, 4);

ASSERT(CCI_SUCCESS == 0);
ASSERT(CCI_ERROR == 1);
ASSERT(CCI_ERR_DISCONNECTED == 2);
ASSERT(CCI_ERR_RNR == 3);
ASSERT(CCI_ERR_DEVICE_DEAD == 4);
ASSERT(CCI_ERR_RMA_HANDLE == 5);
ASSERT(CCI_ERR_RMA_OP == 6);
ASSERT(CCI_ERR_NOT_IMPLEMENTED == 7);
ASSERT(CCI_ERR_NOT_FOUND == 8);
ASSERT((int)CCI_EINVAL == EINVAL && (int)CCI_EINVAL == 22);
ASSERT((int)CCI_ETIMEDOUT == ETIMEDOUT && (int)CCI_ETIMEDOUT == 110);
ASSERT((int)CCI_ENOMEM == ENOMEM && (int)CCI_ENOMEM == 12);
ASSERT((int)CCI_ENODEV == ENODEV && (int)CCI_ENODEV == 19);
ASSERT((int)CCI_ENETDOWN == ENETDOWN && (int)CCI_ENETDOWN == 100);
ASSERT((int)CCI_EBUSY == EBUSY && (int)CCI_EBUSY == 16);
ASSERT((int)CCI_ERANGE == ERANGE && (int)CCI_ERANGE == 34);
ASSERT((int)CCI_EAGAIN == EAGAIN && (int)CCI_EAGAIN == 11);
ASSERT((int)CCI_ENOBUFS == ENOBUFS && (int)CCI_ENOBUFS == 105);
ASSERT((int)CCI_EMSGSIZE == EMSGSIZE && (int)CCI_EMSGSIZE == 90);
ASSERT((int)CCI_ENOMSG == ENOMSG && (int)CCI_ENOMSG == 42);
ASSERT((int)CCI_EADDRNOTAVAIL == EADDRNOTAVAIL && (int)CCI_EADDRNOTAVAIL == 99);
ASSERT((int)CCI_ECONNREFUSED == ECONNREFUSED && (int)CCI_ECONNREFUSED == 111);

ASSERT(CCI_CONN_ATTR_RO == 0);
ASSERT(CCI_CONN_ATTR_RU == 1);
ASSERT(CCI_CONN_ATTR_UU == 2);
ASSERT(CCI_CONN_ATTR_UU_MC_TX == 3);
ASSERT(CCI_CONN_ATTR_UU_MC_RX == 4);

ASSERT(CCI_EVENT_NONE == 0);
ASSERT(CCI_EVENT_SEND == 1);
ASSERT(CCI_EVENT_RECV == 2);
ASSERT(CCI_EVENT_CONNECT == 3);
ASSERT(CCI_EVENT_CONNECT_REQUEST == 4);
ASSERT(CCI_EVENT_ACCEPT == 5);
ASSERT(CCI_EVENT_KEEPALIVE_TIMEDOUT == 6);
ASSERT(CCI_EVENT_ENDPOINT_DEVICE_FAILED == 7);
ASSERT(CCIX_EVENT_DISCONNECT == 0x100);

ASSERT(CCI_OPT_ENDPT_SEND_TIMEOUT == 0);
ASSERT(CCI_OPT_ENDPT_RECV_BUF_COUNT == 1);
ASSERT(CCI_OPT_ENDPT_SEND_BUF_COUNT == 2);
ASSERT(CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT == 3);
ASSERT(CCI_OPT_ENDPT_URI == 4);
ASSERT(CCI_OPT_ENDPT_RMA_ALIGN == 5);
ASSERT(CCI_OPT_CONN_SEND_TIMEOUT == 6);
ASSERT(CCI_OPT_CONN_KEEPALIVE_TIMEOUT == 7);

ASSERT(CCI_FLAG_BLOCKING == 1);
ASSERT(CCI_FLAG_NO_COPY == 2);
ASSERT(CCI_FLAG_SILENT == 8);
ASSERT(CCI_FLAG_READ == 16);
ASSERT(CCI_FLAG_WRITE == 32);
ASSERT(CCI_FLAG_FENCE == 64);

ASSERT(CCI_ABI_VERSION == 2);
ASSERT(CCI_CONN_REQ_LEN == 1024);
ASSERT(CCIX_ENDPOINT_SINGLE_THREAD == 1);
ASSERT(CCIX_ENDPOINT_DISCONNECT_EVENTS == 2);

/*
 * The functions, by the types that programs may point to them with: another one would not compile.
 */
struct functions {
    int (*init)(uint32_t, uint32_t, uint32_t *);
    int (*finalize)(void);
    const char *(*strerror)(cci_endpoint_t *, enum cci_status);
    int (*get_devices)(cci_device_t *const **);
    int (*create_endpoint)(cci_device_t *, int, cci_endpoint_t **, cci_os_handle_t *);
    int (*create_endpoint_at)(cci_device_t *, const char *, int, cci_endpoint_t **, cci_os_handle_t *);
    int (*destroy_endpoint)(cci_endpoint_t *);
    int (*accept)(cci_event_t *, const void *);
    int (*reject)(cci_event_t *);
    int (*connect)(cci_endpoint_t *, const char *, const void *, uint32_t, cci_conn_attribute_t, const void *, int,
                   const struct timeval *);
    int (*disconnect)(cci_connection_t *);
    int (*set_opt)(cci_opt_handle_t *, cci_opt_name_t, const void *);
    int (*get_opt)(cci_opt_handle_t *, cci_opt_name_t, void *);
    int (*arm_os_handle)(cci_endpoint_t *, int);
    int (*get_event)(cci_endpoint_t *, cci_event_t **);
    int (*return_event)(cci_event_t *);
    int (*send)(cci_connection_t *, const void *, uint32_t, const void *, int);
    int (*sendv)(cci_connection_t *, const struct iovec *, uint32_t, const void *, int);
    int (*rma_register)(cci_endpoint_t *, void *, uint64_t, int, cci_rma_handle_t **);
    int (*rma_deregister)(cci_endpoint_t *, cci_rma_handle_t *);
    int (*rma)(cci_connection_t *, const void *, uint32_t, cci_rma_handle_t *, uint64_t, cci_rma_handle_t *, uint64_t,
               uint64_t, const void *, int);
    const char *(*event_type_str)(cci_event_type_t);
};

struct functions functions_of_cci(void);

struct functions functions_of_cci(void)
{
    struct functions functions = {
        cci_init,       cci_finalize,     cci_strerror,       cci_get_devices, cci_create_endpoint, cci_create_endpoint_at,
        cci_destroy_endpoint, cci_accept, cci_reject,         cci_connect,     cci_disconnect,      cci_set_opt,
        cci_get_opt,    cci_arm_os_handle, cci_get_event,     cci_return_event, cci_send,           cci_sendv,
        cci_rma_register, cci_rma_deregister, cci_rma,        cci_event_type_str,
    };
    return functions;
}

/* Programs fill in alignments and handles, and read the rest through constant pointers. */
uint64_t programs_use_the_fields(cci_event_t *event, struct cci_rma_handle *handle, struct cci_alignment *alignment);

uint64_t programs_use_the_fields(cci_event_t *event, struct cci_rma_handle *handle, struct cci_alignment *alignment)
{
    handle->stuff[0] = event->recv.len;
    alignment->rma_write_length = event->request.data_len;
    return handle->stuff[0] + alignment->rma_write_length;
}
