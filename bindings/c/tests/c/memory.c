/* RMA over a connection of an endpoint to itself: data, messages, rights, bounds. */

#include "check.h"

enum { SIZE = 100000 };

static cci_endpoint_t *endpoint;
static struct pair pair;
static unsigned char *source;
static unsigned char *target;
static cci_rma_handle_t *from;
static cci_rma_handle_t *to;

static void fill(void)
{
    int at;
    for (at = 0; at < SIZE; at++) {
        source[at] = (unsigned char)(at * 31 + at / 256);
    }
    memset(target, 0, SIZE);
}

static void expect_message(const char *text)
{
    cci_event_t *event = expect(endpoint, CCI_EVENT_RECV);
    CHECK(event->recv.connection == pair.server && event->recv.len == strlen(text));
    CHECK(memcmp(event->recv.ptr, text, event->recv.len) == 0);
    CHECK_OK(cci_return_event(event));
}

/* A WRITE with a message: one event each, the data in place when the message is seen. */
static void write_with_message(void)
{
    int sent = 0;
    int received = 0;

    fill();
    CHECK_OK(cci_rma(pair.client, "done", 4, from, 1, to, 2, SIZE - 3, MARK(2), CCI_FLAG_WRITE));
    while (!sent || !received) {
        cci_event_t *event = next(endpoint);
        if (event->type == CCI_EVENT_SEND) {
            CHECK_STATUS((int)event->send.status, CCI_SUCCESS);
            CHECK(event->send.context == MARK(2) && event->send.connection == pair.client);
            sent++;
        } else {
            CHECK(event->type == CCI_EVENT_RECV && event->recv.len == 4);
            CHECK(memcmp(target + 2, source + 1, SIZE - 3) == 0);
            received++;
        }
        CHECK_OK(cci_return_event(event));
    }
    CHECK(target[0] == 0 && target[1] == 0 && target[SIZE - 1] == 0);
}

static void read_back(void)
{
    fill();
    CHECK_OK(cci_rma(pair.client, "read", 4, to, 0, from, 0, SIZE, NULL, CCI_FLAG_READ | CCI_FLAG_SILENT));
    expect_message("read");
    CHECK(memcmp(target, source, SIZE) == 0);
}

static void blocking(void)
{
    cci_event_t *event;
    fill();
    CHECK_OK(cci_rma(pair.client, NULL, 0, from, 0, to, 0, SIZE, NULL, CCI_FLAG_WRITE | CCI_FLAG_BLOCKING));
    CHECK(memcmp(target, source, SIZE) == 0);
    CHECK_STATUS(cci_get_event(endpoint, &event), CCI_EAGAIN);
}

/* Copies of a handle are the handle, even if only its first half was kept. */
static void copies(void)
{
    struct cci_rma_handle half = {{0, 0, 0, 0}};
    char anywhere[sizeof(half) + 1];

    fill();
    half.stuff[0] = to->stuff[0];
    half.stuff[1] = to->stuff[1];
    CHECK_OK(cci_rma(pair.client, NULL, 0, from, 0, &half, 0, 64, MARK(3), CCI_FLAG_WRITE));
    expect_sent(endpoint, CCI_SUCCESS, MARK(3));
    CHECK(memcmp(target, source, 64) == 0);
    memcpy(anywhere + 1, to, sizeof(half));
    memcpy(&half, anywhere + 1, sizeof(half));
    CHECK_OK(cci_rma(pair.client, NULL, 0, from, 64, &half, 64, 64, MARK(3), CCI_FLAG_WRITE | CCI_FLAG_FENCE));
    expect_sent(endpoint, CCI_SUCCESS, MARK(3));
    CHECK(memcmp(target, source, 128) == 0);
}

/* One refusal: one event, no byte changed, no message, and the connection goes on. */
static void refused(cci_rma_handle_t *local, uint64_t local_offset, cci_rma_handle_t *remote, uint64_t remote_offset,
                    uint64_t len, int flags)
{
    cci_event_t *event;
    CHECK_OK(cci_rma(pair.client, "never", 5, local, local_offset, remote, remote_offset, len, MARK(4), flags));
    expect_sent(endpoint, CCI_ERR_RMA_HANDLE, MARK(4));
    CHECK_STATUS(cci_get_event(endpoint, &event), CCI_EAGAIN);
    CHECK_OK(cci_send(pair.client, "alive", 5, NULL, CCI_FLAG_SILENT));
    expect_message("alive");
}

static void refusals(void)
{
    cci_rma_handle_t *none;
    cci_rma_handle_t *readable;
    cci_rma_handle_t *writable;
    struct cci_rma_handle wrong;

    fill();
    CHECK_OK(cci_rma_register(endpoint, target, SIZE, 0, &none));
    CHECK_OK(cci_rma_register(endpoint, target, SIZE, CCI_FLAG_READ, &readable));
    CHECK_OK(cci_rma_register(endpoint, target, SIZE, CCI_FLAG_WRITE, &writable));
    refused(from, 0, none, 0, 1, CCI_FLAG_WRITE);
    refused(from, 0, none, 0, 1, CCI_FLAG_READ);
    refused(from, 0, readable, 0, 1, CCI_FLAG_WRITE);
    refused(from, 0, writable, 0, 1, CCI_FLAG_READ);
    refused(from, 0, to, SIZE, 1, CCI_FLAG_WRITE);
    refused(from, 0, to, SIZE - 1, 2, CCI_FLAG_WRITE);
    refused(from, 0, to, UINT64_MAX, 2, CCI_FLAG_WRITE);
    memcpy(&wrong, to, sizeof(wrong));
    wrong.stuff[1] ^= 1;
    refused(from, 0, &wrong, 0, 1, CCI_FLAG_WRITE);
    memcpy(&wrong, to, sizeof(wrong));
    wrong.stuff[0] ^= 1;
    refused(from, 0, &wrong, 0, 1, CCI_FLAG_WRITE);
    CHECK(target[0] == 0 && target[SIZE - 1] == 0);
    CHECK_STATUS(cci_rma(pair.client, NULL, 0, from, 0, none, 0, 1, NULL, CCI_FLAG_WRITE | CCI_FLAG_BLOCKING),
                 CCI_ERR_RMA_HANDLE);
    CHECK_OK(cci_rma_deregister(endpoint, none));
    CHECK_OK(cci_rma_deregister(endpoint, readable));
    CHECK_OK(cci_rma_deregister(endpoint, writable));
}

static void limits(void)
{
    struct pair uu = connect_self(endpoint, CCI_CONN_ATTR_UU);
    cci_event_t *event;

    CHECK_STATUS(cci_rma(uu.client, NULL, 0, from, 0, to, 0, 1, NULL, CCI_FLAG_WRITE), CCI_EINVAL);
    CHECK(pair.client->max_send_size < SIZE);
    CHECK_STATUS(cci_rma(pair.client, source, pair.client->max_send_size + 1, from, 0, to, 0, 1, NULL, CCI_FLAG_WRITE),
                 CCI_EMSGSIZE);
    CHECK_OK(cci_disconnect(uu.client));
    CHECK_OK(cci_disconnect(uu.server));
    CHECK_STATUS(cci_get_event(endpoint, &event), CCI_EAGAIN);
}

/* Programs keep thousands outstanding and treat ENOBUFS as fatal. */
static void outstanding(void)
{
    int posted;
    int ended;

    fill();
    for (posted = 0; posted < 8192; posted++) {
        CHECK_OK(cci_rma(pair.client, NULL, 0, from, (uint64_t)posted * 8, to, (uint64_t)posted * 8, 8, MARK(5),
                         CCI_FLAG_WRITE));
    }
    for (ended = 0; ended < posted; ended++) {
        expect_sent(endpoint, CCI_SUCCESS, MARK(5));
    }
    CHECK(memcmp(target, source, 8192 * 8) == 0);
}

/* Registrations keep what ccix_alloc() gave after it was freed. */
static void freed(void)
{
    void *allocated = NULL;
    cci_rma_handle_t *kept;

    CHECK_OK(ccix_alloc(SIZE, &allocated));
    CHECK_OK(cci_rma_register(endpoint, allocated, SIZE, CCI_FLAG_READ | CCI_FLAG_WRITE, &kept));
    CHECK_OK(ccix_free(allocated));
    fill();
    CHECK_OK(cci_rma(pair.client, NULL, 0, from, 0, kept, 0, SIZE, NULL, CCI_FLAG_WRITE | CCI_FLAG_BLOCKING));
    CHECK_OK(cci_rma(pair.client, NULL, 0, to, 0, kept, 0, SIZE, NULL, CCI_FLAG_READ | CCI_FLAG_BLOCKING));
    CHECK(memcmp(target, source, SIZE) == 0);
    CHECK_OK(cci_rma_deregister(endpoint, kept));
}

static void all(void)
{
    CHECK_OK(cci_rma_register(endpoint, source, SIZE, CCI_FLAG_READ | CCI_FLAG_WRITE, &from));
    CHECK_OK(cci_rma_register(endpoint, target, SIZE, CCI_FLAG_READ | CCI_FLAG_WRITE, &to));
    CHECK(memcmp(from, to, 16) != 0);
    write_with_message();
    read_back();
    blocking();
    copies();
    refusals();
    limits();
    freed();
    outstanding();
    CHECK_OK(cci_rma_deregister(endpoint, from));
    CHECK_OK(cci_rma_deregister(endpoint, to));
}

/* Memory for one connection serves no other, and ends with it. */
static void for_one_connection(void)
{
    struct pair other = connect_self(endpoint, CCI_CONN_ATTR_RO);
    struct pair unreliable = connect_self(endpoint, CCI_CONN_ATTR_UU);
    cci_endpoint_t *second = open_endpoint(NULL);
    cci_rma_handle_t *refused;

    CHECK_STATUS(ccix_rma_register(endpoint, other.server, target, SIZE, CCI_FLAG_WRITE, 1, &refused), CCI_EINVAL);
    CHECK_STATUS(ccix_rma_register(endpoint, unreliable.server, target, SIZE, 0, CCIX_MEMORY_HOST, &refused), CCI_EINVAL);
    CHECK_STATUS(ccix_rma_register(second, other.server, target, SIZE, 0, CCIX_MEMORY_HOST, &refused), CCI_EINVAL);
    CHECK_OK(cci_destroy_endpoint(second));
    CHECK_OK(ccix_rma_register(endpoint, NULL, source, SIZE, 0, CCIX_MEMORY_HOST, &from));
    CHECK_OK(ccix_rma_register(endpoint, other.server, target, SIZE, CCI_FLAG_WRITE, CCIX_MEMORY_HOST, &to));
    fill();
    CHECK_OK(cci_rma(pair.client, NULL, 0, from, 0, to, 0, 64, MARK(4), CCI_FLAG_WRITE));
    expect_sent(endpoint, CCI_ERR_RMA_HANDLE, MARK(4));
    CHECK(target[0] == 0 && target[63] == 0);
    CHECK_OK(cci_rma(other.client, NULL, 0, from, 0, to, 0, 64, MARK(5), CCI_FLAG_WRITE));
    expect_sent(endpoint, CCI_SUCCESS, MARK(5));
    CHECK(memcmp(target, source, 64) == 0);
    CHECK_OK(cci_disconnect(other.server));
    CHECK_STATUS(ccix_rma_register(endpoint, other.server, target, SIZE, 0, CCIX_MEMORY_HOST, &refused),
                 CCI_ERR_DISCONNECTED);
    CHECK_OK(cci_rma(pair.client, NULL, 0, from, 0, to, 0, 64, MARK(6), CCI_FLAG_WRITE));
    expect_sent(endpoint, CCI_ERR_RMA_HANDLE, MARK(6));
    CHECK_OK(cci_rma_deregister(endpoint, to));
    CHECK_OK(cci_rma_deregister(endpoint, from));
    CHECK_OK(cci_disconnect(other.client));
    CHECK_OK(cci_disconnect(unreliable.client));
    CHECK_OK(cci_disconnect(unreliable.server));
}

static uint32_t word(void)
{
    uint32_t value;
    memcpy(&value, target + 4, sizeof(value));
    return value;
}

/* A word of the peer's, added to and swapped; its old value comes. */
static void atomics(void)
{
    ccix_atomic_t atomic = {CCIX_FETCH_ADD, 4, UINT64_MAX, 0};
    struct pair unreliable = connect_self(endpoint, CCI_CONN_ATTR_UU);
    uint32_t old = 0;
    cci_rma_handle_t *here;

    CHECK_OK(cci_rma_register(endpoint, &old, sizeof(old), 0, &here));
    CHECK_OK(cci_rma_register(endpoint, target, SIZE, CCI_FLAG_READ | CCI_FLAG_WRITE, &to));
    memset(target, 0, 16);
    target[4] = 1;
    CHECK_OK(ccix_rma_atomic(pair.client, "took", 4, here, 0, to, 4, &atomic, MARK(7), CCI_FLAG_SILENT));
    expect_message("took");
    CHECK(old == 1 && word() == 0 && target[3] == 0 && target[8] == 0);
    atomic.operation = CCIX_COMPARE_SWAP;
    atomic.operand = 5;
    CHECK_OK(ccix_rma_atomic(pair.client, NULL, 0, here, 0, to, 4, &atomic, NULL, CCI_FLAG_BLOCKING | CCI_FLAG_FENCE));
    CHECK(old == 0 && word() == 5);
    CHECK_OK(ccix_rma_atomic(pair.client, NULL, 0, here, 0, to, 4, &atomic, MARK(8), 0));
    expect_sent(endpoint, CCI_SUCCESS, MARK(8));
    CHECK(old == 5 && word() == 5);
    CHECK_OK(ccix_rma_atomic(pair.client, NULL, 0, here, 0, to, 6, &atomic, MARK(9), 0));
    expect_sent(endpoint, CCI_ERR_RMA_HANDLE, MARK(9));
    CHECK_STATUS(ccix_rma_atomic(pair.client, NULL, 0, here, 0, to, 0, NULL, NULL, 0), CCI_EINVAL);
    CHECK_STATUS(ccix_rma_atomic(pair.client, NULL, 0, NULL, 0, to, 0, &atomic, NULL, 0), CCI_EINVAL);
    CHECK_STATUS(ccix_rma_atomic(pair.client, NULL, 0, here, 0, to, 0, &atomic, NULL, CCI_FLAG_READ), CCI_EINVAL);
    CHECK_STATUS(ccix_rma_atomic(unreliable.client, NULL, 0, here, 0, to, 0, &atomic, NULL, 0), CCI_EINVAL);
    atomic.width = 2;
    CHECK_STATUS(ccix_rma_atomic(pair.client, NULL, 0, here, 0, to, 0, &atomic, NULL, 0), CCI_EINVAL);
    atomic.width = 8;
    atomic.operation = 3;
    CHECK_STATUS(ccix_rma_atomic(pair.client, NULL, 0, here, 0, to, 0, &atomic, NULL, 0), CCI_EINVAL);
    CHECK(word() == 5);
    CHECK_OK(cci_rma_deregister(endpoint, here));
    CHECK_OK(cci_rma_deregister(endpoint, to));
    CHECK_OK(cci_disconnect(unreliable.client));
    CHECK_OK(cci_disconnect(unreliable.server));
}

/* The peer's memory as one's own, until its registration ends. */
static void imported(void)
{
    void *mapped;
    uint64_t length;
    uint64_t import;
    int flags;
    cci_event_t *event;
    char own[8] = "private";
    cci_rma_handle_t *mine;

    CHECK_OK(cci_rma_register(endpoint, target, SIZE, CCI_FLAG_READ | CCI_FLAG_WRITE, &to));
    CHECK_OK(cci_rma_register(endpoint, own, sizeof(own), CCI_FLAG_READ, &mine));
    CHECK_STATUS(ccix_import(NULL, to, &mapped, &length, &flags, &import), CCI_EINVAL);
    CHECK_STATUS(ccix_import(pair.client, NULL, &mapped, &length, &flags, &import), CCI_EINVAL);
    CHECK_STATUS(ccix_import(pair.client, to, NULL, &length, &flags, &import), CCI_EINVAL);
    CHECK_STATUS(ccix_import(pair.client, mine, &mapped, &length, &flags, &import), CCI_ERR_NOT_IMPLEMENTED);
    CHECK_OK(ccix_import(pair.client, to, &mapped, &length, &flags, &import));
    CHECK(mapped != target && length == SIZE && flags == (CCI_FLAG_READ | CCI_FLAG_WRITE));
    target[SIZE - 1] = 7;
    CHECK(((volatile unsigned char *)mapped)[SIZE - 1] == 7);
    ((volatile unsigned char *)mapped)[0] = 9;
    CHECK(target[0] == 9);
    /* The owner handles what came before this message: the import too. */
    CHECK_OK(cci_send(pair.client, "seen", 4, NULL, CCI_FLAG_SILENT));
    expect_message("seen");
    CHECK_OK(ccix_check_import(import));
    CHECK_OK(cci_rma_deregister(endpoint, to));
    event = expect(endpoint, (cci_event_type_t)CCIX_EVENT_IMPORT_ENDED);
    CHECK(event->keepalive.connection == pair.client);
    CHECK_OK(cci_return_event(event));
    CHECK_STATUS(ccix_check_import(import), CCI_ERR_RMA_HANDLE);
    CHECK_OK(ccix_release_import(import));
    CHECK_STATUS(ccix_release_import(import), CCI_EINVAL);
    CHECK_STATUS(ccix_check_import(import), CCI_EINVAL);
    CHECK_OK(cci_rma_deregister(endpoint, mine));
}

int main(void)
{
    void *allocated[2] = {NULL, NULL};

    start();
    endpoint = open_endpoint(NULL);
    pair = connect_self(endpoint, CCI_CONN_ATTR_RO);
    source = malloc(SIZE);
    target = malloc(SIZE);
    CHECK(source && target);
    all();
    for_one_connection();
    atomics();
    free(source);
    free(target);
    CHECK_OK(ccix_alloc(SIZE, &allocated[0]));
    CHECK_OK(ccix_alloc(SIZE, &allocated[1]));
    source = allocated[0];
    target = allocated[1];
    CHECK((uintptr_t)source % 4096 == 0 && target[0] == 0 && target[SIZE - 1] == 0);
    all();
    atomics();
    imported();
    CHECK_OK(ccix_free(source));
    CHECK_STATUS(ccix_free(source), CCI_EINVAL);
    CHECK_OK(ccix_free(target));
    CHECK_OK(cci_destroy_endpoint(endpoint));
    CHECK_OK(cci_finalize());
    return 0;
}
