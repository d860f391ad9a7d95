/*
 * Myrinet Express over CCI: messages that receives match by 64 bits. docs/design/mx.md has the
 * picture. Any thread may call. A call returns MX_SUCCESS or the code of an error, after the error
 * handler has returned; the default handler prints the error and ends the program.
 */

#ifndef MYRIEXPRESS_H
#define MYRIEXPRESS_H

#include <inttypes.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MX_API 0x301

#define MX_ANY_NIC 0xffffffffu
#define MX_ANY_ENDPOINT 0xffffffffu
#define MX_MATCH_MASK_NONE (~(uint64_t)0)
/* A time-out, ms. */
#define MX_INFINITE 0
#define MX_MAX_SEGMENTS 256
#define MX_CONTEXT_ID_BITS_MAX 16
#define MX_MAX_HOSTNAME_LEN 80
/* Room that programs give to a name or a text. */
#define MX_MAX_STR_LEN 128
/* The upper and the lower half of a uint64_t, for printing. */
#define MX_U32(x) ((uint32_t)((uint64_t)(x) >> 32))
#define MX_L32(x) ((uint32_t)(x))

typedef enum mx_return_code {
    MX_SUCCESS = 0,
    MX_BAD_BAD_BAD = 1, /* a pointer is NULL */
    MX_FAILURE = 2,
    MX_ALREADY_INITIALIZED = 3,
    MX_NOT_INITIALIZED = 4,
    MX_NO_DEV = 5,
    MX_NO_DRIVER = 6,
    MX_NO_PERM = 7,
    MX_BOARD_UNKNOWN = 8,
    MX_BAD_ENDPOINT = 9,
    MX_BAD_SEG_LIST = 10,
    MX_BAD_SEG_MEM = 11,
    MX_BAD_SEG_CNT = 12,
    MX_BAD_REQUEST = 13,
    MX_BAD_MATCH_MASK = 14,
    MX_NO_RESOURCES = 15,
    MX_BAD_ADDR_LIST = 16,
    MX_BAD_ADDR_COUNT = 17,
    MX_BAD_ROOT = 18,
    MX_NOT_COMPLETED = 19,
    MX_BUSY = 20,
    MX_BAD_INFO_KEY = 21,
    MX_BAD_INFO_VAL = 22,
    MX_BAD_NIC = 23,
    MX_BAD_PARAM_LIST = 24,
    MX_BAD_PARAM_NAME = 25,
    MX_BAD_PARAM_VAL = 26,
    MX_BAD_HOSTNAME_ARGS = 27,
    MX_HOST_NOT_FOUND = 28,
    MX_REQUEST_PENDING = 29,
    MX_TIMEOUT = 30,
    MX_NO_MATCH = 31,
    MX_BAD_ENDPOINT_ID = 32,
    MX_CONNECTION_FAILED = 33,
    MX_BAD_CONNECTION_KEY = 34,
    MX_BAD_INFO_LENGTH = 35,
    MX_NIC_NOT_FOUND = 36,
    MX_BAD_KERNEL_VERSION = 37,
    MX_BAD_LIB_VERSION = 38,
    MX_NIC_DEAD = 39,
    MX_CANCEL_NOT_SUPPORTED = 40,
    MX_CLOSE_IN_HANDLER = 41,
    MX_BAD_MATCHING_FOR_CONTEXT_ID_MASK = 42,
    MX_NOT_SUPPORTED_WITH_CONTEXT_ID = 43,
    /* Of this library: CCI_MX_DEVICE names a device that itself uses another library. */
    MX_DEVICE_CYCLE = 64
} mx_return_t;

typedef enum mx_status_code {
    MX_STATUS_SUCCESS = 0,
    MX_STATUS_PENDING = 1,
    MX_STATUS_BUFFERED = 2,
    MX_STATUS_REJECTED = 3,
    MX_STATUS_TIMEOUT = 4,
    MX_STATUS_TRUNCATED = 5,
    MX_STATUS_CANCELLED = 6,
    MX_STATUS_ENDPOINT_UNKNOWN = 7,
    MX_STATUS_ENDPOINT_CLOSED = 8,
    MX_STATUS_ENDPOINT_UNREACHABLE = 9,
    MX_STATUS_BAD_SESSION = 10,
    MX_STATUS_BAD_KEY = 11,
    MX_STATUS_BAD_ENDPOINT = 12,
    MX_STATUS_BAD_RDMAWIN = 13,
    MX_STATUS_ABORTED = 14,
    MX_STATUS_EVENTQ_FULL = 15,
    MX_STATUS_NO_RESOURCES = 16
} mx_status_code_t;

/* Compared and handed back, never followed. */
typedef struct mx_endpoint *mx_endpoint_t;
typedef struct mx_request *mx_request_t;

typedef struct {
    uint64_t stuff[2];
} mx_endpoint_addr_t;

typedef void *mx_segment_ptr_t;

typedef struct {
    mx_segment_ptr_t segment_ptr;
    uint32_t segment_length;
} mx_segment_t;

typedef struct mx_status {
    mx_status_code_t code;
    mx_endpoint_addr_t source;
    uint64_t match_info;
    uint32_t msg_length;  /* bytes of the message */
    uint32_t xfer_length; /* bytes that were transferred */
    void *context;
} mx_status_t;

/* What it returns the call returns. */
typedef mx_return_t (*mx_error_handler_t)(char *text, mx_return_t code);

typedef enum mx_param_key {
    MX_PARAM_ERROR_HANDLER = 0,
    MX_PARAM_UNEXP_QUEUE_MAX = 1, /* bytes */
    MX_PARAM_CONTEXT_ID = 2,
    /* Of this library: the endpoint is not that of the rank, where the process is one of a job. */
    MX_PARAM_OUTSIDE_JOB = 64,
    /* Of this library: how long sends and connects wait for an endpoint that nobody has. */
    MX_PARAM_ABSENT_LIMIT = 65 /* ms */
} mx_param_key_t;

typedef struct {
    mx_param_key_t key;
    union {
        mx_error_handler_t error_handler;
        uint32_t unexp_queue_max;
        struct {
            uint8_t bits; /* 1 to 16 */
            uint8_t shift;
        } context_id;
        uint32_t absent_limit;
    } val;
} mx_param_t;

typedef enum mx_get_info_key {
    MX_NIC_COUNT = 1,             /* out: uint32_t */
    MX_NIC_IDS = 2,               /* out: uint64_t each, then 0 if there is room */
    MX_MAX_NATIVE_ENDPOINTS = 3,  /* out: uint32_t */
    MX_NATIVE_REQUESTS = 4,       /* out: uint32_t */
    MX_COUNTERS_COUNT = 5,        /* out: uint32_t */
    MX_COUNTERS_LABELS = 6,       /* out: char[32] each */
    MX_COUNTERS_VALUES = 7,       /* out: uint64_t each; of an open endpoint */
    MX_PRODUCT_CODE = 8,          /* out: char[], at least 4 */
    MX_LINE_SPEED = 9             /* out: uint64_t, bits per second; 0: unknown */
} mx_get_info_key_t;

#define mx_init() mx__init_api(MX_API)
mx_return_t mx__init_api(int api);
mx_return_t mx_finalize(void);

/* Handlers to be named: the default one, and one that only returns the code. */
mx_return_t MX_ERRORS_ARE_FATAL(char *text, mx_return_t code);
mx_return_t MX_ERRORS_RETURN(char *text, mx_return_t code);
mx_return_t mx_set_error_handler(mx_error_handler_t handler);

/* `board` is 0 or MX_ANY_NIC; `id` up to 2047, or MX_ANY_ENDPOINT. `key` is what connects name. */
mx_return_t mx_open_endpoint(uint32_t board, uint32_t id, uint32_t key, mx_param_t *params, uint32_t count,
                             mx_endpoint_t *endpoint);
/* Requests that have not ended are gone; their memory is the program's. */
mx_return_t mx_close_endpoint(mx_endpoint_t endpoint);
/* Ends all waits of the moment, with result 0; and each mx_connect, with MX_TIMEOUT. */
mx_return_t mx_wakeup(mx_endpoint_t endpoint);
/* There is no progress thread: both do nothing. */
mx_return_t mx_disable_progression(mx_endpoint_t endpoint);
mx_return_t mx_reenable_progression(mx_endpoint_t endpoint);

/*
 * The segments' memory is the library's until the request has ended; the list is read by the call.
 */
mx_return_t mx_isend(mx_endpoint_t endpoint, mx_segment_t *segments, uint32_t count, mx_endpoint_addr_t dest,
                     uint64_t match_info, void *context, mx_request_t *request);
/* The same; it ends once a receive has matched it. */
mx_return_t mx_issend(mx_endpoint_t endpoint, mx_segment_t *segments, uint32_t count, mx_endpoint_addr_t dest,
                      uint64_t match_info, void *context, mx_request_t *request);
/* A mask bit of 1 is compared. */
mx_return_t mx_irecv(mx_endpoint_t endpoint, mx_segment_t *segments, uint32_t count, uint64_t match_info,
                     uint64_t match_mask, void *context, mx_request_t *request);
/*
 * result 1: the request was taken back, and has no status: a receive, a connect, or a send that has
 * not left. 0: the receive has matched. Of a send that has left: MX_CANCEL_NOT_SUPPORTED.
 */
mx_return_t mx_cancel(mx_endpoint_t endpoint, mx_request_t *request, uint32_t *result);

/* result 1: the request has ended, and is gone. */
mx_return_t mx_test(mx_endpoint_t endpoint, mx_request_t *request, mx_status_t *status, uint32_t *result);
mx_return_t mx_wait(mx_endpoint_t endpoint, mx_request_t *request, uint32_t timeout, mx_status_t *status,
                    uint32_t *result);
mx_return_t mx_test_any(mx_endpoint_t endpoint, uint64_t match_info, uint64_t match_mask, mx_status_t *status,
                        uint32_t *result);
mx_return_t mx_wait_any(mx_endpoint_t endpoint, uint32_t timeout, uint64_t match_info, uint64_t match_mask,
                        mx_status_t *status, uint32_t *result);
/* The oldest request that has ended, which stays. */
mx_return_t mx_ipeek(mx_endpoint_t endpoint, mx_request_t *request, uint32_t *result);
mx_return_t mx_peek(mx_endpoint_t endpoint, uint32_t timeout, mx_request_t *request, uint32_t *result);
/* The oldest unexpected message that matches, which stays. */
mx_return_t mx_iprobe(mx_endpoint_t endpoint, uint64_t match_info, uint64_t match_mask, mx_status_t *status,
                      uint32_t *result);
mx_return_t mx_probe(mx_endpoint_t endpoint, uint32_t timeout, uint64_t match_info, uint64_t match_mask,
                     mx_status_t *status, uint32_t *result);
/* result 1: the memory of a send is the program's again, though the request may not have ended. */
mx_return_t mx_ibuffered(mx_endpoint_t endpoint, mx_request_t *request, uint32_t *result);
mx_return_t mx_buffered(mx_endpoint_t endpoint, mx_request_t *request, uint32_t timeout, uint32_t *result);
mx_return_t mx_context(mx_request_t *request, void **context);

mx_return_t mx_connect(mx_endpoint_t endpoint, uint64_t nic_id, uint32_t id, uint32_t key, uint32_t timeout,
                       mx_endpoint_addr_t *addr);

/*
 * `in` is NULL, or leads to the number of a board, uint32_t. `endpoint` may be NULL where no key
 * needs one.
 */
mx_return_t mx_get_info(mx_endpoint_t endpoint, mx_get_info_key_t key, void *in, uint32_t in_length, void *out,
                        uint32_t out_length);
/* HOST or HOST:BOARD. MX_HOST_NOT_FOUND after 5 s where no name server answers. */
mx_return_t mx_hostname_to_nic_id(char *hostname, uint64_t *nic_id);
mx_return_t mx_board_number_to_nic_id(uint32_t board, uint64_t *nic_id);
mx_return_t mx_nic_id_to_board_number(uint64_t nic_id, uint32_t *board);
/* Room for MX_MAX_HOSTNAME_LEN bytes. */
mx_return_t mx_nic_id_to_hostname(uint64_t nic_id, char *hostname);
mx_return_t mx_get_endpoint_addr(mx_endpoint_t endpoint, mx_endpoint_addr_t *addr);
mx_return_t mx_decompose_endpoint_addr(mx_endpoint_addr_t addr, uint64_t *nic_id, uint32_t *id);

const char *mx_strerror(mx_return_t code);
const char *mx_strstatus(mx_status_code_t code);

#ifdef __cplusplus
}
#endif

#endif /* MYRIEXPRESS_H */
