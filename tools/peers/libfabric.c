/*
 * libfabric: messages, or tagged messages, between two reliable, unconnected endpoints (FI_EP_RDM)
 * of one provider.
 */
#define LIBRARY "libfabric"
#include "peer.h"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

/* Receives that are posted all the time. All go to the same memory: nobody reads it. */
#define POSTED PEER_WINDOW
/* Of tagged messages. */
#define TAG 1

static struct fi_info *chosen;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *addresses;
static struct fid_cq *completions;
static struct fid_ep *endpoint;
static fi_addr_t peer;
static bool is_tagged;
/*
 * An operation's context is the library's until its completion, and completions come in any order.
 */
static struct fi_context receiving[POSTED], sending[PEER_WINDOW], *idle[PEER_WINDOW];
static unsigned idle_count;
static uint64_t received, taken;

static void check(ssize_t outcome, const char *what)
{
    if (outcome < 0)
        fail("%s: %s", what, fi_strerror((int)-outcome));
}

static const char *peer_version(void)
{
    static char version[32];
    snprintf(version, sizeof version, "%u.%u", FI_MAJOR(fi_version()), FI_MINOR(fi_version()));
    return version;
}

static const char *peer_describe(void)
{
    static char text[160];
    snprintf(text, sizeof text, "provider %s, FI_EP_RDM, %s up to %zu bytes, polling its completion queue",
             chosen->fabric_attr->prov_name, is_tagged ? "fi_tinject" : "fi_inject", chosen->tx_attr->inject_size);
    return text;
}

static size_t peer_limit(void)
{
    return chosen->ep_attr->max_msg_size;
}

static void choose(void)
{
    is_tagged = strcmp(self.setting, "tagged") == 0;
    bool is_shm = is_tagged || strcmp(self.setting, "shm") == 0;
    bool is_tcp = strcmp(self.setting, "tcp") == 0;
    const char *provider = is_shm ? "shm" : is_tcp ? "tcp" : "udp;ofi_rxd";
    if (!is_shm && !is_tcp && strcmp(self.setting, "udp") != 0)
        fail("no such setting: %s", self.setting);
    struct fi_info *hints = fi_allocinfo();
    if (!hints)
        fail("no memory");
    hints->ep_attr->type = FI_EP_RDM;
    hints->caps = is_tagged ? FI_TAGGED : FI_MSG;
    hints->mode = FI_CONTEXT;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
    hints->fabric_attr->prov_name = strdup(provider);
    int outcome = is_shm ? fi_getinfo(FI_VERSION(1, 9), NULL, NULL, 0, hints, &chosen)
                         : fi_getinfo(FI_VERSION(1, 9), "127.0.0.1", NULL, FI_SOURCE, hints, &chosen);
    if (outcome != 0)
        fail("libfabric has no provider %s here: %s", provider, fi_strerror(-outcome));
    fi_freeinfo(hints);
}

static void post_receive(struct fi_context *context)
{
    ssize_t outcome;
    for (;;) {
        outcome = is_tagged ? fi_trecv(endpoint, self.in, self.largest, NULL, FI_ADDR_UNSPEC, TAG, 0, context)
                            : fi_recv(endpoint, self.in, self.largest, NULL, FI_ADDR_UNSPEC, context);
        if (outcome != -FI_EAGAIN)
            break;
        fi_cq_read(completions, NULL, 0);
    }
    check(outcome, is_tagged ? "fi_trecv" : "fi_recv");
}

static void peer_open(void)
{
    char ours[256] = {0}, theirs[256];
    size_t len = sizeof ours;
    struct fi_cq_attr queue = {.format = FI_CQ_FORMAT_CONTEXT, .size = 4 * PEER_WINDOW, .wait_obj = FI_WAIT_NONE};
    struct fi_av_attr table = {.type = FI_AV_UNSPEC, .count = 2};
    choose();
    check(fi_fabric(chosen->fabric_attr, &fabric, NULL), "fi_fabric");
    check(fi_domain(fabric, chosen, &domain, NULL), "fi_domain");
    check(fi_av_open(domain, &table, &addresses, NULL), "fi_av_open");
    check(fi_cq_open(domain, &queue, &completions, NULL), "fi_cq_open");
    check(fi_endpoint(domain, chosen, &endpoint, NULL), "fi_endpoint");
    check(fi_ep_bind(endpoint, &addresses->fid, 0), "fi_ep_bind");
    check(fi_ep_bind(endpoint, &completions->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
    check(fi_enable(endpoint), "fi_enable");
    check(fi_getname(&endpoint->fid, ours, &len), "fi_getname");
    control_swap(ours, theirs, sizeof ours);
    if (fi_av_insert(addresses, theirs, 1, &peer, 0, NULL) != 1)
        fail("fi_av_insert failed");
    for (unsigned i = 0; i < POSTED; i++)
        post_receive(&receiving[i]);
    while (idle_count < PEER_WINDOW) {
        idle[idle_count] = &sending[idle_count];
        idle_count++;
    }
}

static void tell_error(void)
{
    struct fi_cq_err_entry error = {0};
    fi_cq_readerr(completions, &error, 0);
    fail("an operation failed: %s", fi_strerror(error.err));
}

/* Looks once. A receive is posted again at once. */
static inline void progress(void)
{
    struct fi_cq_entry entries[8];
    ssize_t seen = fi_cq_read(completions, entries, 8);
    if (seen == -FI_EAGAIN)
        return;
    if (seen < 0)
        tell_error();
    for (ssize_t i = 0; i < seen; i++) {
        struct fi_context *context = entries[i].op_context;
        if (context >= receiving && context < receiving + POSTED) {
            received++;
            post_receive(context);
        } else {
            idle[idle_count++] = context;
        }
    }
}

static inline void peer_progress(void)
{
    progress();
}

static inline ssize_t inject(size_t size)
{
    return is_tagged ? fi_tinject(endpoint, self.out, size, peer, TAG) : fi_inject(endpoint, self.out, size, peer);
}

static inline ssize_t start_send(size_t size, struct fi_context *context)
{
    return is_tagged ? fi_tsend(endpoint, self.out, size, NULL, peer, TAG, context)
                     : fi_send(endpoint, self.out, size, NULL, peer, context);
}

/*
 * Begins to send when less than `window` are on their way; what is small enough is injected, and
 * has no completion.
 */
static inline void begin(size_t size, unsigned window)
{
    ssize_t outcome;
    if (size <= chosen->tx_attr->inject_size) {
        while ((outcome = inject(size)) == -FI_EAGAIN)
            progress();
    } else {
        while (PEER_WINDOW - idle_count >= window)
            progress();
        struct fi_context *context = idle[--idle_count];
        while ((outcome = start_send(size, context)) == -FI_EAGAIN)
            progress();
    }
    check(outcome, "cannot send");
}

static inline void await_sends(void)
{
    while (idle_count < PEER_WINDOW)
        progress();
}

static inline void peer_send(size_t size)
{
    begin(size, 1);
    await_sends();
}

static inline void peer_receive(size_t size)
{
    (void)size;
    while (received == taken)
        progress();
    taken++;
}

static void peer_stream(size_t size, uint64_t count)
{
    unsigned window = window_of(size);
    for (uint64_t i = 0; i < count; i++)
        begin(size, window);
    await_sends();
}

static void peer_sink(size_t size, uint64_t count)
{
    sink_by_receives(size, count);
}

static void peer_close(void)
{
    fi_close(&endpoint->fid);
    fi_close(&completions->fid);
    fi_close(&addresses->fid);
    fi_close(&domain->fid);
    fi_close(&fabric->fid);
    fi_freeinfo(chosen);
}
