/* libcci: endpoints, connections, and their options. */

#include "cci_calls.h"

void connect_to(void) {
    char uri[ENTRY_BYTES], data[CCI_CONN_REQ_LEN + 8] = {0};
    struct timeval limit = {0, (suseconds_t)(1000 + below(500000))};
    uint32_t length = one_in(4) ? below(CCI_CONN_REQ_LEN + 4) : below(16);
    int of = processes == 2 && one_in(2) ? !process : process;
    cci_conn_attribute_t attribute = (cci_conn_attribute_t)below(3);

    memcpy(uri, board->entries[of][below(ENDPOINTS)], sizeof uri);
    uri[sizeof uri - 1] = 0;
    if (one_in(50))
        uri[below(16)] = (char)draw();
    /* A group or another host would leave this one. */
    if (one_in(200))
        attribute = (cci_conn_attribute_t)(5 + below(9));
    if (one_in(100))
        limit.tv_sec = -1;
    CALL(cci_connect, an_endpoint(), one_in(300) ? NULL : uri, one_in(300) ? NULL : data, length, attribute, a_context(),
         0, one_in(20) ? NULL : &limit);
}

void disconnect(void) {
    unsigned at = below(CONNECTIONS);

    CALL(cci_disconnect, connections[at]);
    if (!one_in(8))
        connections[at] = NULL;
}

void connection_info(void) {
    struct ccix_connection_report info;

    memset(&info, 0, sizeof info);
    info.size = one_in(10) ? below(sizeof info + 1) : sizeof info;
    CALL(ccix_connection_info, a_connection(), one_in(300) ? NULL : &info);
}

void get_opt(void) {
    cci_opt_name_t name = (cci_opt_name_t)below(one_in(20) ? 12 : 8);
    union {
        char *uri;
        uint32_t number;
        uint32_t alignment[6];
    } value;
    const void *of = name >= CCI_OPT_CONN_SEND_TIMEOUT ? (const void *)a_connection() : (const void *)an_endpoint();

    memset(&value, 0, sizeof value);
    if (CALL(cci_get_opt, of, name, one_in(300) ? NULL : &value) == CCI_SUCCESS && name == CCI_OPT_ENDPT_URI)
        free(value.uri);
}

void set_opt(void) {
    static const cci_opt_name_t settable[] = {CCI_OPT_ENDPT_SEND_TIMEOUT,       CCI_OPT_ENDPT_RECV_BUF_COUNT,
                                              CCI_OPT_ENDPT_SEND_BUF_COUNT,     CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT,
                                              CCI_OPT_CONN_SEND_TIMEOUT,        CCI_OPT_CONN_KEEPALIVE_TIMEOUT};
    cci_opt_name_t name = one_in(50) ? (cci_opt_name_t)(4 + below(2) * 5) : settable[below(6)];
    uint32_t value = 10000 + below(100000);
    const void *of = name >= CCI_OPT_CONN_SEND_TIMEOUT ? (const void *)a_connection() : (const void *)an_endpoint();

    if (name == CCI_OPT_ENDPT_RECV_BUF_COUNT || name == CCI_OPT_ENDPT_SEND_BUF_COUNT)
        value = one_in(50) ? (uint32_t)draw() : 16 + below(64);
    else if (name != CCI_OPT_ENDPT_SEND_TIMEOUT && name != CCI_OPT_CONN_SEND_TIMEOUT && one_in(3))
        value = 0;
    CALL(cci_set_opt, of, name, one_in(300) ? NULL : &value);
}

static cci_device_t *a_device(void) {
    cci_device_t *const *devices = NULL;

    if (CALL(cci_get_devices, one_in(300) ? NULL : &devices) != CCI_SUCCESS || one_in(4))
        return NULL;
    return devices[0];
}

static void forget_endpoint(unsigned at) {
    memset(board->entries[process][at], 0, ENTRY_BYTES);
    if (endpoints[at].endpoint)
        CALL(cci_destroy_endpoint, endpoints[at].endpoint);
}

/* Its URI, and a send timeout, so that BLOCKING ends. */
void begin_endpoint(unsigned at) {
    cci_endpoint_t *endpoint = endpoints[at].endpoint;
    uint32_t limit = 50000;
    char *uri = NULL;

    CALL(cci_set_opt, endpoint, CCI_OPT_ENDPT_SEND_TIMEOUT, &limit);
    CALL(ccix_set_large_limit, endpoint, 4 * BYTES);
    if (CALL(cci_get_opt, endpoint, CCI_OPT_ENDPT_URI, &uri) != CCI_SUCCESS)
        return;
    PROMISE(strlen(uri) < ENTRY_BYTES);
    strcpy((char *)board->entries[process][at], uri);
    free(uri);
}

void create_endpoint(void) {
    unsigned at = below(ENDPOINTS);
    struct ccix_endpoint_options options = {sizeof options, below(4), 32 + below(64), 32 + below(64), NULL};
    cci_endpoint_t *endpoint = NULL;
    cci_os_handle_t *fd = one_in(2) ? &endpoints[at].fd : NULL;
    cci_device_t *device = a_device();
    int status;

    forget_endpoint(at);
    endpoints[at].fd = -1;
    if (one_in(50))
        options.size = below(2 * sizeof options);
    if (options.size > sizeof options)
        options.size = sizeof options;
    if (one_in(50))
        options.flags = (uint32_t)draw();
    switch (below(8)) {
    case 0:
        status = CALL(cci_create_endpoint, device, (int)draw(), one_in(50) ? NULL : &endpoint, fd);
        break;
    case 1:
        status = CALL(cci_create_endpoint_at, device, one_in(3) ? "no such place" : strcmp(transport, "sm") ? "0" : "0/0",
                      0, &endpoint, fd);
        break;
    default:
        status = CALL(ccix_create_endpoint, device, one_in(20) ? NULL : &options, &endpoint, fd);
    }
    if (status != CCI_SUCCESS)
        return;
    endpoints[at].endpoint = endpoint;
    begin_endpoint(at);
}
