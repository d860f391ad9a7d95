/* UCX: tagged messages, or active messages, between two workers (UCP). */
#define LIBRARY "ucx"
#include "peer.h"

#include <ucp/api/ucp.h>

#define TAG 1
#define ID 1

static ucp_context_h context;
static ucp_worker_h worker;
static ucp_ep_h peer;
static const char *transports;
static bool is_am;
/* Active messages that have arrived, and that the program has taken. */
static uint64_t arrived, taken;

static void check(ucs_status_t status, const char *what)
{
    if (status != UCS_OK)
        fail("%s: %s", what, ucs_status_string(status));
}

static const char *peer_version(void)
{
    static char version[32];
    unsigned major, minor, release;
    ucp_get_version(&major, &minor, &release);
    snprintf(version, sizeof version, "%u.%u.%u", major, minor, release);
    return version;
}

static const char *peer_describe(void)
{
    static char text[128];
    snprintf(text, sizeof text, "UCX_TLS=%s, UCP %s messages, no locks (UCS_THREAD_MODE_SINGLE), polling its worker", transports,
             is_am ? "active" : "tagged");
    return text;
}

static size_t peer_limit(void)
{
    return SIZE_MAX;
}

static void on_pulled(void *request, ucs_status_t status, size_t length, void *unused)
{
    (void)length;
    (void)unused;
    check(status, "cannot receive");
    ucp_request_free(request);
    arrived++;
}

/* The bytes of a short message are read where the library has put them; the loops read self.in. */
static ucs_status_t on_message(void *unused, const void *header, size_t header_length, void *data, size_t length,
                               const ucp_am_recv_param_t *how)
{
    (void)unused;
    (void)header;
    (void)header_length;
    if (how->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
        const ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK, .cb.recv_am = on_pulled};
        ucs_status_ptr_t pulled = ucp_am_recv_data_nbx(worker, data, self.in, length, &param);
        if (UCS_PTR_IS_ERR(pulled))
            check(UCS_PTR_STATUS(pulled), "cannot receive");
        arrived += pulled == NULL;
        return pulled == NULL ? UCS_OK : UCS_INPROGRESS;
    }
    if (length > 0)
        self.in[0] = ((const unsigned char *)data)[0] ^ ((const unsigned char *)data)[length - 1];
    if (self.reads)
        memcpy(self.in, data, length);
    arrived++;
    return UCS_OK;
}

static void open_worker(void)
{
    ucp_config_t *config;
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG | UCP_FEATURE_AM};
    ucp_worker_params_t threads = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE, .thread_mode = UCS_THREAD_MODE_SINGLE};
    bool is_tcp = strcmp(self.setting, "tcp") == 0;
    is_am = strcmp(self.setting, "am") == 0;
    if (!is_tcp && !is_am && strcmp(self.setting, "posix") != 0)
        fail("no such setting: %s", self.setting);
    transports = is_tcp ? "self,tcp" : "self,posix,cma";
    check(ucp_config_read(NULL, NULL, &config), "no configuration");
    check(ucp_config_modify(config, "TLS", transports), "no such transports");
    if (is_tcp)
        check(ucp_config_modify(config, "NET_DEVICES", "lo"), "no loop-back device");
    check(ucp_init(&params, config, &context), "ucp_init");
    ucp_config_release(config);
    check(ucp_worker_create(context, &threads, &worker), "ucp_worker_create");
    ucp_am_handler_param_t handler = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB, .id = ID, .cb = on_message};
    if (is_am)
        check(ucp_worker_set_am_recv_handler(worker, &handler), "ucp_worker_set_am_recv_handler");
}

static inline void peer_progress(void)
{
    ucp_worker_progress(worker);
}

static void peer_open(void)
{
    ucp_address_t *address;
    size_t len, len_there;
    open_worker();
    check(ucp_worker_get_address(worker, &address, &len), "no address");
    control_swap(&len, &len_there, sizeof len);
    void *there = must_allocate(len_there);
    control_write(address, len);
    if (!control_read(there, len_there))
        fail("the other process has ended");
    ucp_worker_release_address(worker, address);
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS, .address = there};
    check(ucp_ep_create(worker, &params, &peer), "ucp_ep_create");
    free(there);
}

static inline void await(ucs_status_ptr_t request, const char *what)
{
    if (request == NULL)
        return;
    if (UCS_PTR_IS_ERR(request))
        check(UCS_PTR_STATUS(request), what);
    ucs_status_t status;
    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS)
        ucp_worker_progress(worker);
    check(status, what);
    ucp_request_free(request);
}

static inline ucs_status_ptr_t begin_send(size_t size)
{
    static const ucp_request_param_t plain;
    if (is_am)
        return ucp_am_send_nbx(peer, ID, NULL, 0, self.out, size, &plain);
    return ucp_tag_send_nbx(peer, self.out, size, TAG, &plain);
}

static inline ucs_status_ptr_t begin_receive(size_t size)
{
    /* A receive that finds its message here already ends at once, and has no request. */
    static ucp_tag_recv_info_t seen;
    static const ucp_request_param_t plain = {.op_attr_mask = UCP_OP_ATTR_FIELD_RECV_INFO, .recv_info.tag_info = &seen};
    return ucp_tag_recv_nbx(worker, self.in, size, TAG, UINT64_MAX, &plain);
}

static inline void peer_send(size_t size)
{
    await(begin_send(size), "cannot send");
}

static inline void await_active(void)
{
    while (arrived == taken)
        ucp_worker_progress(worker);
    taken++;
}

static inline void peer_receive(size_t size)
{
    if (is_am) {
        await_active();
        return;
    }
    await(begin_receive(size), "cannot receive");
}

/* Runs `count` operations, so many at a time. */
static inline void run_window(size_t size, uint64_t count, ucs_status_ptr_t (*begin)(size_t), bool reads, const char *what)
{
    ucs_status_ptr_t requests[PEER_WINDOW] = {NULL};
    unsigned window = window_of(size);
    for (uint64_t i = 0; i < count + window; i++) {
        await(requests[i % window], what);
        /* All receive into the same memory. */
        if (reads && i >= window)
            read_bytes(self.in, size);
        requests[i % window] = i < count ? begin(size) : NULL;
    }
}

static void peer_stream(size_t size, uint64_t count)
{
    run_window(size, count, begin_send, false, "cannot send");
}

static void peer_sink(size_t size, uint64_t count)
{
    if (is_am) {
        for (; count > 0; count--)
            await_active();
        return;
    }
    run_window(size, count, begin_receive, true, "cannot receive");
}

static void peer_close(void)
{
    static const ucp_request_param_t plain;
    ucs_status_ptr_t closing = ucp_ep_close_nbx(peer, &plain);
    char rest = 0, theirs;
    /* Each works until the other has closed, too. */
    while (closing && !UCS_PTR_IS_ERR(closing) && ucp_request_check_status(closing) == UCS_INPROGRESS)
        ucp_worker_progress(worker);
    if (closing && !UCS_PTR_IS_ERR(closing))
        ucp_request_free(closing);
    control_write(&rest, 1);
    while (recv(self.control, &theirs, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN)
        ucp_worker_progress(worker);
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
}
