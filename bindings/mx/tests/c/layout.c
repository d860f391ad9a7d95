/*
 * Sizes, offsets and numbers of the interface, on 64-bit systems.
 */

#include <stddef.h>

#include "pair.h"

#define IS(name, value) CHECK((name) == (value))

int main(void) {
    CHECK(sizeof(mx_endpoint_t) == 8 && sizeof(mx_request_t) == 8 && sizeof(mx_endpoint_addr_t) == 16);
    CHECK(sizeof(mx_segment_t) == 16 && offsetof(mx_segment_t, segment_length) == 8);
    CHECK(sizeof(mx_status_t) == 48 && offsetof(mx_status_t, source) == 8 && offsetof(mx_status_t, match_info) == 24);
    CHECK(offsetof(mx_status_t, msg_length) == 32 && offsetof(mx_status_t, xfer_length) == 36);
    CHECK(offsetof(mx_status_t, context) == 40 && sizeof(mx_param_t) == 16 && offsetof(mx_param_t, val) == 8);
    IS(MX_API, 0x301);
    IS(MX_ANY_NIC, 0xffffffff);
    IS(MX_ANY_ENDPOINT, 0xffffffff);
    IS(MX_MATCH_MASK_NONE, UINT64_MAX);
    IS(MX_INFINITE, 0);
    IS(MX_MAX_STR_LEN, 128);
    /* By the header alone. */
    CHECK(sizeof(PRIx64) > 1 && sizeof(SCNx64) > 1);
    IS(MX_FAILURE, 2);
    IS(MX_NO_DEV, 5);
    IS(MX_BAD_ENDPOINT, 9);
    IS(MX_BAD_SEG_LIST, 10);
    IS(MX_BAD_SEG_CNT, 12);
    IS(MX_BAD_REQUEST, 13);
    IS(MX_BAD_MATCH_MASK, 14);
    IS(MX_NO_RESOURCES, 15);
    IS(MX_BUSY, 20);
    IS(MX_BAD_INFO_KEY, 21);
    IS(MX_BAD_PARAM_LIST, 24);
    IS(MX_BAD_PARAM_VAL, 26);
    IS(MX_BAD_HOSTNAME_ARGS, 27);
    IS(MX_HOST_NOT_FOUND, 28);
    IS(MX_REQUEST_PENDING, 29);
    IS(MX_TIMEOUT, 30);
    IS(MX_NO_MATCH, 31);
    IS(MX_BAD_ENDPOINT_ID, 32);
    IS(MX_CONNECTION_FAILED, 33);
    IS(MX_BAD_CONNECTION_KEY, 34);
    IS(MX_BAD_INFO_LENGTH, 35);
    IS(MX_NIC_NOT_FOUND, 36);
    IS(MX_NIC_DEAD, 39);
    IS(MX_CANCEL_NOT_SUPPORTED, 40);
    IS(MX_CLOSE_IN_HANDLER, 41);
    IS(MX_BAD_MATCHING_FOR_CONTEXT_ID_MASK, 42);
    IS(MX_DEVICE_CYCLE, 64);
    IS(MX_STATUS_BUFFERED, 2);
    IS(MX_STATUS_TIMEOUT, 4);
    IS(MX_STATUS_TRUNCATED, 5);
    IS(MX_STATUS_CANCELLED, 6);
    IS(MX_STATUS_ENDPOINT_CLOSED, 8);
    IS(MX_STATUS_ENDPOINT_UNREACHABLE, 9);
    IS(MX_STATUS_BAD_SESSION, 10);
    IS(MX_STATUS_BAD_KEY, 11);
    IS(MX_STATUS_ABORTED, 14);
    IS(MX_STATUS_NO_RESOURCES, 16);
    IS(MX_PARAM_ERROR_HANDLER, 0);
    IS(MX_PARAM_UNEXP_QUEUE_MAX, 1);
    IS(MX_PARAM_CONTEXT_ID, 2);
    IS(MX_NIC_COUNT, 1);
    IS(MX_NIC_IDS, 2);
    IS(MX_MAX_NATIVE_ENDPOINTS, 3);
    /* Programs name the types by their tags too, and codes that no call here gives. */
    IS((enum mx_return_code)MX_BAD_ADDR_LIST, 16);
    IS(MX_BAD_ADDR_COUNT, 17);
    IS(MX_BAD_ROOT, 18);
    IS(MX_NOT_COMPLETED, 19);
    IS(MX_BAD_NIC, 23);
    IS(MX_BAD_KERNEL_VERSION, 37);
    IS(MX_BAD_LIB_VERSION, 38);
    IS(MX_NOT_SUPPORTED_WITH_CONTEXT_ID, 43);
    IS((enum mx_status_code)MX_STATUS_EVENTQ_FULL, 15);
    IS((enum mx_param_key)MX_PARAM_CONTEXT_ID, 2);
    IS((enum mx_get_info_key)MX_NIC_IDS, 2);
    IS((enum mx_unexp_handler_action)MX_RECV_FINISHED, 1);
    IS(sizeof(struct mx_status), sizeof(mx_status_t));
    IS(sizeof(mx_segment_ptr_t), sizeof(void *));
    IS(MX_CONTEXT_ID_BITS_MAX, 16);
    IS(MX_U32(UINT64_C(0x123456789abcdef0)), 0x12345678);
    IS(MX_L32(UINT64_C(0x123456789abcdef0)), 0x9abcdef0);
    puts("laid out");
    return 0;
}
