/*
 * A thread with a cancellation pending calls every function of the library: none of them is a
 * cancellation point. It ends at the point of its own, and the process and the endpoints of other
 * threads live on. Argument: the transport.
 */

#include "check.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Half of it is a large RMA, which is copied past the caches. More messages than find room at a
 * peer that takes none.
 */
enum { SIZE = 32 << 20, BUFFERS = 64, BLOCKING = 5000 };

static const char *transport;
static atomic_int pending;
/* Whose events the second thread takes meanwhile, if any, and how many messages were among them. */
static atomic_uintptr_t served;
static atomic_int taken, idle, over;
/* The thread with a cancellation pending, once it has one. */
static atomic_int thread_id;
/* What the thread is at, for the message if it ends there. */
static const char *volatile at = "the beginning";

/* Nothing of the C library that is a cancellation point, printing above all. */
#define DO(call)                                                                                                       \
    do {                                                                                                               \
        at = #call;                                                                                                    \
        if ((call) != CCI_SUCCESS) {                                                                                   \
            return at;                                                                                                 \
        }                                                                                                              \
    } while (0)

static cci_device_t *device_of_transport(void)
{
    cci_device_t *const *devices;
    if (cci_get_devices(&devices) != CCI_SUCCESS) {
        return NULL;
    }
    while (*devices && (strcmp((*devices)->transport, transport) != 0 || !(*devices)->up)) {
        devices++;
    }
    return *devices;
}

/* The next event of this type; events of others in between are returned. */
static cci_event_t *awaited(cci_endpoint_t *one, cci_endpoint_t *other, cci_event_type_t type)
{
    time_t deadline = time(NULL) + PATIENCE;
    at = "cci_get_event, cci_return_event";
    while (time(NULL) < deadline) {
        cci_event_t *event;
        if (cci_get_event(other, &event) == CCI_SUCCESS && cci_return_event(event) != CCI_SUCCESS) {
            return NULL;
        }
        if (cci_get_event(one, &event) != CCI_SUCCESS) {
            continue;
        }
        if (event->type == type) {
            return event;
        }
        if (cci_return_event(event) != CCI_SUCCESS) {
            return NULL;
        }
    }
    return NULL;
}

/* Whether the system says that the thread with a cancellation pending sleeps. */
static int is_asleep(void)
{
    char path[64], text[256], *end;
    size_t length;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", atomic_load(&thread_id));
    file = fopen(path, "r");
    CHECK(file != NULL);
    length = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[length] = '\0';
    end = strrchr(text, ')');
    return end && end[1] == ' ' && end[2] == 'S';
}

/*
 * Takes what is sent to the endpoint that is served, once its sender sleeps: without it a send that
 * is waited for would not end.
 */
static void *take(void *unused)
{
    int serves = 0;

    (void)unused;
    while (!atomic_load(&over)) {
        cci_endpoint_t *endpoint = (cci_endpoint_t *)atomic_load(&served);
        cci_event_t *event;
        atomic_store(&idle, !endpoint);
        serves = serves || (endpoint && is_asleep());
        if (endpoint && serves && cci_get_event(endpoint, &event) == CCI_SUCCESS) {
            if (event->type == CCI_EVENT_RECV) {
                atomic_fetch_add(&taken, 1);
            }
            CHECK_OK(cci_return_event(event));
        }
    }
    return NULL;
}

static const char *send_and_wait(cci_connection_t *connection, cci_endpoint_t *peer)
{
    time_t deadline = time(NULL) + PATIENCE;
    int i;

    atomic_store(&served, (uintptr_t)peer);
    for (i = 0; i < BLOCKING; i++) {
        DO(cci_send(connection, "abcd", 4, NULL, CCI_FLAG_BLOCKING));
    }
    at = "messages that were waited for";
    while (atomic_load(&taken) < BLOCKING) {
        if (time(NULL) > deadline) {
            return at;
        }
    }
    atomic_store(&served, 0);
    /* The endpoint is this thread's again once the other has left it. */
    while (!atomic_load(&idle)) {
    }
    return NULL;
}

static int returned(void *arg, cci_event_t *event)
{
    (void)arg;
    (void)event;
    return 0;
}

static const char *call_everything(cci_endpoint_t **of_others)
{
    cci_endpoint_t *one, *other, *third;
    cci_connection_t *connection, *redirected;
    cci_rma_handle_t *local, *remote;
    ccix_atomic_t atomic = {CCIX_FETCH_ADD, 8, 1, 0};
    uint64_t room, import, length;
    int flags, status;
    cci_device_t *device;
    cci_event_t *event;
    cci_os_handle_t fd;
    struct iovec parts[2] = {{"ab", 2}, {"cd", 2}};
    struct ccix_connection_report info;
    struct ccix_job_report job = {sizeof(job), 0, 0, 0, 0, 0, 0, 0, {0}};
    struct ccix_peer peer;
    struct timeval now = {0, 0};
    uint32_t caps, value = 1000000 * PATIENCE, buffers = BUFFERS;
    void *memory, *imported;
    char *uri;

    DO(cci_init(CCI_ABI_VERSION, 0, &caps));
    at = "cci_get_devices";
    if (!(device = device_of_transport())) {
        return at;
    }
    DO(cci_create_endpoint(device, 0, &one, &fd));
    DO(ccix_create_endpoint(device, NULL, &other, NULL));
    DO(cci_set_opt(other, CCI_OPT_ENDPT_RECV_BUF_COUNT, &buffers));
    DO(cci_get_opt(other, CCI_OPT_ENDPT_URI, &uri));
    DO(ccix_device_for(uri, &device));
    DO(cci_set_opt(one, CCI_OPT_ENDPT_SEND_TIMEOUT, &value));

    /* Rejected, then accepted. */
    DO(cci_connect(one, uri, "hello", 5, CCI_CONN_ATTR_RO, NULL, 0, NULL));
    if (!(event = awaited(other, one, CCI_EVENT_CONNECT_REQUEST))) {
        return at;
    }
    DO(ccix_request_peer(event, (peer.size = sizeof(peer), &peer)));
    DO(cci_reject(event));
    DO(cci_return_event(event));
    if (!(event = awaited(one, other, CCI_EVENT_CONNECT))) {
        return at;
    }
    at = "ccix_event_reason";
    (void)ccix_event_reason(event);
    DO(cci_return_event(event));
    DO(cci_connect(one, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL));
    if (!(event = awaited(other, one, CCI_EVENT_CONNECT_REQUEST))) {
        return at;
    }
    DO(cci_accept(event, NULL));
    DO(cci_return_event(event));
    if (!(event = awaited(one, other, CCI_EVENT_CONNECT)) || event->connect.status != CCI_SUCCESS) {
        return at;
    }
    connection = event->connect.connection;
    DO(cci_return_event(event));
    DO(ccix_connection_info(connection, (memset(&info, 0, sizeof(info)), info.size = sizeof(info), &info)));

    /* Messages, kept by the library and not, and one that is waited for. */
    DO(cci_send(connection, "abcd", 4, NULL, 0));
    if (!(event = awaited(other, one, CCI_EVENT_RECV))) {
        return at;
    }
    DO(cci_return_event(event));
    DO(ccix_set_answer_buffers(one, 2));
    DO(ccix_answer(connection, "abcd", 4, NULL, CCI_FLAG_SILENT));
    if (!(event = awaited(other, one, CCI_EVENT_RECV))) {
        return at;
    }
    DO(cci_return_event(event));
    DO(cci_sendv(connection, parts, 2, NULL, CCI_FLAG_SILENT));
    if (!(event = awaited(other, one, CCI_EVENT_RECV))) {
        return at;
    }
    DO(cci_return_event(event));
    if (send_and_wait(connection, other)) {
        return at;
    }

    /* Written in place, given up, and longer than a message. */
    DO(ccix_reserve(connection, 100, &memory, &room));
    DO(ccix_cancel(one, room));
    DO(ccix_reserve(connection, 100, &memory, &room));
    DO(ccix_commit(connection, room, 4, NULL, CCI_FLAG_SILENT));
    if (!(event = awaited(other, one, CCI_EVENT_RECV))) {
        return at;
    }
    DO(cci_return_event(event));
    DO(ccix_set_large_limit(other, SIZE));
    DO(ccix_alloc(SIZE, &memory));
    DO(ccix_send_large(connection, memory, SIZE / 4, NULL, CCI_FLAG_SILENT));
    if (!(event = awaited(other, one, CCI_EVENT_RECV))) {
        return at;
    }
    DO(cci_return_event(event));

    /* A request that another endpoint accepts. */
    DO(ccix_create_endpoint(device, NULL, &third, NULL));
    DO(cci_connect(one, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL));
    if (!(event = awaited(other, one, CCI_EVENT_CONNECT_REQUEST))) {
        return at;
    }
    DO(ccix_accept_on(event, third, NULL));
    DO(cci_return_event(event));
    if (!(event = awaited(one, third, CCI_EVENT_CONNECT)) || event->connect.status != CCI_SUCCESS) {
        return at;
    }
    redirected = event->connect.connection;
    DO(cci_return_event(event));
    DO(cci_disconnect(redirected));
    DO(cci_destroy_endpoint(third));

    /* Memory. */
    DO(ccix_rma_register(one, NULL, memory, SIZE, 0, CCIX_MEMORY_HOST, &local));
    DO(cci_rma_register(other, (char *)memory + SIZE / 2, SIZE / 2, CCI_FLAG_WRITE, &remote));
    DO(cci_rma(connection, "done", 4, local, 0, remote, 0, SIZE / 2, NULL, CCI_FLAG_WRITE));
    if (!(event = awaited(other, one, CCI_EVENT_RECV))) {
        return at;
    }
    DO(cci_return_event(event));
    DO(cci_rma_deregister(other, remote));
    DO(cci_rma_register(other, memory, SIZE / 2, CCI_FLAG_READ | CCI_FLAG_WRITE, &remote));
    DO(ccix_rma_atomic(connection, NULL, 0, local, SIZE / 2, remote, 0, &atomic, NULL, 0));
    if (!(event = awaited(one, other, CCI_EVENT_SEND))) {
        return at;
    }
    DO(cci_return_event(event));
    at = "ccix_import";
    status = ccix_import(connection, remote, &imported, &length, &flags, &import);
    if (status == CCI_SUCCESS) {
        DO(ccix_check_import(import));
        DO(ccix_release_import(import));
    } else if (strcmp(transport, "sm") == 0 || status != CCI_ERR_NOT_IMPLEMENTED) {
        return at;
    }
    DO(cci_rma_deregister(other, remote));
    DO(cci_rma_deregister(one, local));
    DO(ccix_free(memory));

    /* The process belongs to no job. */
    at = "ccix_job_...";
    if (ccix_job_join(&now) != CCI_ERR_NOT_FOUND || ccix_job_info(&job) != CCI_ERR_NOT_FOUND ||
        ccix_job_publish("key", "", 0) != CCI_ERR_NOT_FOUND || ccix_job_look_up(0, "key", NULL, &value) == CCI_SUCCESS ||
        ccix_job_exchange(NULL, 0, NULL, 0, NULL) != CCI_ERR_NOT_FOUND ||
        ccix_job_open(NULL, &third, NULL) != CCI_ERR_NOT_FOUND || ccix_job_leave() != CCI_ERR_NOT_FOUND) {
        return at;
    }
    at = "ccix_get_events, ccix_poll";
    (void)ccix_get_events(one, &event, 1, &value);
    (void)ccix_poll(one, 1, returned, NULL, NULL);
    at = "ccix_wait";
    (void)ccix_wait(&one, 1, &now, &event, NULL);
    DO(ccix_wake(one));
    at = "cci_arm_os_handle";
    (void)cci_arm_os_handle(one, 0);
    at = "cci_strerror, ccix_last_error, ccix_release";
    (void)ccix_release();
    (void)cci_strerror(one, CCI_EINVAL);
    (void)ccix_last_error();
    DO(cci_disconnect(connection));
    at = "cci_get_event, cci_return_event";
    while (cci_get_event(one, &event) == CCI_SUCCESS) {
        DO(cci_return_event(event));
    }
    free(uri);
    DO(cci_get_opt(other, CCI_OPT_ENDPT_URI, &uri));
    DO(cci_destroy_endpoint(other));
    at = "cci_create_endpoint_at";
    if (cci_create_endpoint_at(device, strcmp(transport, "sm") == 0 ? strstr(uri, "://") + 3 : strrchr(uri, ':') + 1, 0,
                               &third, &fd) != CCI_SUCCESS) {
        /*
         * Another process may have taken the port meanwhile; the call has been made all the same.
         */
        if (!strstr(ccix_last_error(), "is in use")) {
            return at;
        }
        third = NULL;
    }
    free(uri);
    if (third) {
        DO(cci_destroy_endpoint(third));
    }
    *of_others = one;
    DO(cci_finalize());
    return NULL;
}

static void *run(void *endpoint)
{
    const char *failed;
    while (!atomic_load(&pending)) {
    }
    atomic_store(&thread_id, (int)syscall(SYS_gettid));
    failed = call_everything(endpoint);
    if (failed) {
        return (void *)(uintptr_t)failed;
    }
    at = NULL;
    pthread_testcancel();
    return (void *)"no cancellation was pending";
}

int main(int argc, char **argv)
{
    cci_endpoint_t *endpoint = NULL;
    pthread_t thread, taker;
    void *result;

    CHECK(argc == 2);
    transport = argv[1];
    start();
    CHECK(pthread_create(&taker, NULL, take, NULL) == 0);
    CHECK(pthread_create(&thread, NULL, run, &endpoint) == 0);
    CHECK(pthread_cancel(thread) == 0);
    atomic_store(&pending, 1);
    CHECK(pthread_join(thread, &result) == 0);
    atomic_store(&over, 1);
    CHECK(pthread_join(taker, NULL) == 0);
    if (at) {
        fprintf(stderr, "%s on %s: %s\n", result == PTHREAD_CANCELED ? "cancelled in" : "failed at", at, transport);
        return 1;
    }
    CHECK(result == PTHREAD_CANCELED);
    /* An endpoint that the thread left open serves others. */
    CHECK(endpoint != NULL);
    {
        struct pair pair = connect_self(endpoint, CCI_CONN_ATTR_RO);
        CHECK_OK(cci_disconnect(pair.client));
        CHECK_OK(cci_disconnect(pair.server));
    }
    CHECK_OK(cci_destroy_endpoint(endpoint));
    CHECK_OK(cci_finalize());
    return 0;
}
