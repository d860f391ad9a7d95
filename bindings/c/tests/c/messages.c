/* Messages over a connection of an endpoint to itself, and the events about them. */

#include "check.h"

static cci_endpoint_t *endpoint;
static struct pair pair;

/* The message of a RECV event, as the program sees it. */
static void check_message(cci_event_t *event, const void *bytes, uint32_t len)
{
    CHECK(event->type == CCI_EVENT_RECV);
    CHECK(event->recv.connection == pair.server);
    CHECK(event->recv.len == len);
    if (len > 0) {
        CHECK((uintptr_t)event->recv.ptr % 8 == 0);
        CHECK(memcmp(event->recv.ptr, bytes, len) == 0);
        CHECK(((const char *)event->recv.ptr)[len] == 0);
    }
}

/* One message of every length that is near a bound, with its SEND event. */
static void lengths(void)
{
    uint32_t most = pair.client->max_send_size;
    uint32_t all[] = {0, 1, 7, 8, 55, 56, 57, 64, 255, 256, 0, 0};
    char *bytes = malloc((size_t)most + 1);
    size_t at;

    CHECK(bytes != NULL);
    for (at = 0; at <= most; at++) {
        bytes[at] = (char)(at * 7 + 1);
    }
    all[10] = most - 1;
    all[11] = most;
    for (at = 0; at < sizeof(all) / sizeof(all[0]); at++) {
        int sent = 0;
        int received = 0;
        CHECK_OK(cci_send(pair.client, bytes, all[at], MARK(at), 0));
        while (!sent || !received) {
            cci_event_t *event = next(endpoint);
            if (event->type == CCI_EVENT_SEND) {
                CHECK_STATUS((int)event->send.status, CCI_SUCCESS);
                CHECK(event->send.context == MARK(at) && event->send.connection == pair.client);
                sent++;
            } else {
                check_message(event, bytes, all[at]);
                received++;
            }
            CHECK_OK(cci_return_event(event));
        }
        CHECK(sent == 1 && received == 1);
    }
    CHECK_STATUS(cci_send(pair.client, bytes, most + 1, NULL, 0), CCI_EMSGSIZE);
    free(bytes);
}

static void parts(void)
{
    char one[] = "gathered ";
    char two[] = "from parts";
    struct iovec list[4];
    cci_event_t *event;

    list[0].iov_base = one;
    list[0].iov_len = strlen(one);
    list[1].iov_base = NULL;
    list[1].iov_len = 0;
    list[2].iov_base = two;
    list[2].iov_len = strlen(two);
    list[3].iov_base = two;
    list[3].iov_len = 0;
    CHECK_OK(cci_sendv(pair.client, list, 4, NULL, CCI_FLAG_SILENT));
    event = next(endpoint);
    check_message(event, "gathered from parts", 19);
    CHECK_OK(cci_return_event(event));
    list[1] = list[2];
    CHECK_OK(cci_sendv(pair.client, list, 2, NULL, CCI_FLAG_SILENT | CCI_FLAG_NO_COPY));
    event = next(endpoint);
    check_message(event, "gathered from parts", 19);
    CHECK_OK(cci_return_event(event));
    CHECK_OK(cci_sendv(pair.client, NULL, 0, NULL, CCI_FLAG_SILENT));
    event = next(endpoint);
    check_message(event, "", 0);
    CHECK_OK(cci_return_event(event));
    list[0].iov_len = pair.client->max_send_size;
    CHECK_STATUS(cci_sendv(pair.client, list, 2, NULL, 0), CCI_EMSGSIZE);
}

/* BLOCKING and SILENT raise no SEND event, and NO_COPY changes nothing. */
static void flags(void)
{
    int modes[] = {CCI_FLAG_BLOCKING, CCI_FLAG_SILENT, CCI_FLAG_BLOCKING | CCI_FLAG_NO_COPY,
                   CCI_FLAG_SILENT | CCI_FLAG_NO_COPY};
    cci_event_t *event;
    size_t at;

    for (at = 0; at < sizeof(modes) / sizeof(modes[0]); at++) {
        CHECK_OK(cci_send(pair.client, "quiet", 5, NULL, modes[at]));
        event = next(endpoint);
        check_message(event, "quiet", 5);
        CHECK_OK(cci_return_event(event));
        CHECK_STATUS(cci_get_event(endpoint, &event), CCI_EAGAIN);
    }
    CHECK_OK(cci_send(pair.client, "loud", 4, MARK(9), CCI_FLAG_NO_COPY));
    for (at = 0; at < 2; at++) {
        event = next(endpoint);
        CHECK(event->type == CCI_EVENT_SEND || event->type == CCI_EVENT_RECV);
        CHECK_OK(cci_return_event(event));
    }
}

/*
 * The program writes into the message in place, answers from there, and returns events in any
 * order, once.
 */
static void events(void)
{
    cci_event_t *held[4];
    int at;

    for (at = 0; at < 4; at++) {
        char byte = (char)('a' + at);
        CHECK_OK(cci_send(pair.client, &byte, 1, NULL, CCI_FLAG_SILENT));
        held[at] = expect(endpoint, CCI_EVENT_RECV);
    }
    for (at = 0; at < 4; at++) {
        char *byte = (char *)held[at]->recv.ptr;
        CHECK(*byte == 'a' + at);
        *byte = (char)('A' + at);
        CHECK_OK(cci_send(held[at]->recv.connection, byte, 1, NULL, CCI_FLAG_SILENT));
    }
    CHECK_OK(cci_return_event(held[2]));
    CHECK_OK(cci_return_event(held[0]));
    CHECK_STATUS(cci_return_event(held[2]), CCI_EINVAL);
    CHECK_OK(cci_return_event(held[3]));
    CHECK_OK(cci_return_event(held[1]));
    for (at = 0; at < 4; at++) {
        cci_event_t *event = expect(endpoint, CCI_EVENT_RECV);
        CHECK(event->recv.connection == pair.client && *(const char *)event->recv.ptr == 'A' + at);
        CHECK_OK(cci_return_event(event));
    }
}

/* A ping-pong of many messages, each in its turn. */
static void ping_pong(void)
{
    uint64_t count = 0;

    CHECK_OK(cci_send(pair.client, &count, sizeof(count), NULL, CCI_FLAG_SILENT));
    while (count < 20000) {
        cci_event_t *event = expect(endpoint, CCI_EVENT_RECV);
        uint64_t seen;
        cci_connection_t *from = event->recv.connection;
        memcpy(&seen, event->recv.ptr, sizeof(seen));
        CHECK(seen == count && from == (count % 2 ? pair.client : pair.server));
        CHECK_OK(cci_return_event(event));
        count++;
        CHECK_OK(cci_send(from, &count, sizeof(count), NULL, CCI_FLAG_SILENT));
    }
    CHECK_OK(cci_return_event(expect(endpoint, CCI_EVENT_RECV)));
}

/* Sends until ENOBUFS and drains, as programs do; everything arrives in order. */
static void flood(void)
{
    uint32_t sent = 0;
    uint32_t completed = 0;
    uint32_t received = 0;
    time_t deadline = time(NULL) + PATIENCE;

    while (received < 30000 || completed < sent) {
        cci_event_t *event;
        int status;
        while (sent < 30000) {
            status = cci_send(pair.client, &sent, sizeof(sent), MARK(10), 0);
            if (status != CCI_SUCCESS) {
                CHECK_STATUS(status, CCI_ENOBUFS);
                break;
            }
            sent++;
        }
        while ((status = cci_get_event(endpoint, &event)) == CCI_SUCCESS) {
            if (event->type == CCI_EVENT_RECV) {
                CHECK(memcmp(event->recv.ptr, &received, sizeof(received)) == 0);
                received++;
            } else {
                CHECK(event->type == CCI_EVENT_SEND && event->send.status == CCI_SUCCESS);
                completed++;
            }
            CHECK_OK(cci_return_event(event));
        }
        CHECK_STATUS(status, CCI_EAGAIN);
        CHECK(time(NULL) < deadline);
    }
}

/* The program that holds every receive buffer is told so, with a NULL event. */
static void starved(void)
{
    enum { FEW = 4 };
    cci_endpoint_t *hungry;
    struct ccix_endpoint_options asked = {sizeof(asked), 0, FEW, 0, NULL};
    cci_event_t *held[FEW];
    cci_event_t *event = NULL;
    time_t deadline = time(NULL) + PATIENCE;
    struct pair own;
    int count;
    int status;

    CHECK_OK(ccix_create_endpoint(NULL, &asked, &hungry, NULL));
    own = connect_self(hungry, CCI_CONN_ATTR_RO);
    for (count = 0; count < 2 * FEW; count++) {
        CHECK_OK(cci_send(own.client, "x", 1, NULL, CCI_FLAG_SILENT));
    }
    for (count = 0; count < FEW; count++) {
        held[count] = expect(hungry, CCI_EVENT_RECV);
    }
    do {
        status = cci_get_event(hungry, &event);
        CHECK(event == NULL);
        CHECK(time(NULL) < deadline);
    } while (status == CCI_EAGAIN);
    CHECK_STATUS(status, CCI_ENOBUFS);
    for (count = 0; count < FEW; count++) {
        CHECK_OK(cci_return_event(held[count]));
    }
    for (count = 0; count < FEW; count++) {
        CHECK_OK(cci_return_event(expect(hungry, CCI_EVENT_RECV)));
    }
    CHECK_OK(cci_destroy_endpoint(hungry));
}

static void unreliable(void)
{
    struct pair uu = connect_self(endpoint, CCI_CONN_ATTR_UU);
    cci_event_t *event;

    CHECK_STATUS(cci_send(uu.client, "x", 1, NULL, CCI_FLAG_SILENT | CCI_FLAG_NO_COPY), CCI_EINVAL);
    CHECK_OK(cci_send(uu.client, "x", 1, NULL, CCI_FLAG_SILENT));
    event = expect(endpoint, CCI_EVENT_RECV);
    CHECK(event->recv.connection == uu.server && event->recv.len == 1);
    CHECK_OK(cci_return_event(event));
    CHECK_OK(cci_disconnect(uu.client));
    CHECK_OK(cci_disconnect(uu.server));
}

/*
 * Messages written in place: any length, fewer bytes than there is room for, and what is given
 * back.
 */
static void written_in_place(void)
{
    struct pair other = connect_self(endpoint, CCI_CONN_ATTR_RO);
    uint32_t most = pair.client->max_send_size;
    uint32_t lengths[] = {0, 8, 56, 57, 2000, 0};
    cci_event_t *event;
    uint64_t again;
    uint64_t room;
    size_t at;
    void *ptr;

    lengths[5] = most;
    for (at = 0; at < sizeof(lengths) / sizeof(lengths[0]); at++) {
        CHECK_OK(ccix_reserve(pair.client, lengths[at], &ptr, &room));
        memset(ptr, (int)at + 1, lengths[at]);
        CHECK_STATUS(ccix_commit(pair.client, room, lengths[at] + 1, NULL, 0), CCI_EMSGSIZE);
        CHECK_OK(ccix_commit(pair.client, room, lengths[at] / 2, NULL, CCI_FLAG_SILENT));
        event = expect(endpoint, CCI_EVENT_RECV);
        CHECK(event->recv.len == lengths[at] / 2 && event->recv.connection == pair.server);
        CHECK(event->recv.len == 0 || *(const unsigned char *)event->recv.ptr == at + 1);
        CHECK(((const char *)event->recv.ptr)[event->recv.len] == '\0');
        CHECK_OK(cci_return_event(event));
        CHECK_STATUS(ccix_commit(pair.client, room, 0, NULL, 0), CCI_EINVAL);
        CHECK_STATUS(ccix_cancel(endpoint, room), CCI_EINVAL);
    }
    CHECK_OK(ccix_reserve(pair.client, 100, &ptr, &room));
    memcpy(ptr, "told", 4);
    CHECK_OK(ccix_commit(pair.client, room, 4, MARK(3), CCI_FLAG_BLOCKING));
    event = expect(endpoint, CCI_EVENT_RECV);
    CHECK(event->recv.len == 4 && memcmp(event->recv.ptr, "told", 4) == 0);
    CHECK_OK(cci_return_event(event));
    CHECK_STATUS(ccix_reserve(pair.client, most + 1, &ptr, &room), CCI_EMSGSIZE);
    CHECK_STATUS(ccix_reserve(NULL, 1, &ptr, &room), CCI_EINVAL);
    CHECK_STATUS(ccix_reserve(pair.client, 1, NULL, &room), CCI_EINVAL);
    CHECK_STATUS(ccix_reserve(pair.client, 1, &ptr, NULL), CCI_EINVAL);
    CHECK_OK(ccix_reserve(pair.client, 100, &ptr, &room));
    CHECK_OK(ccix_reserve(other.client, 100, &ptr, &again));
    CHECK_STATUS(ccix_commit(other.client, room, 1, NULL, 0), CCI_EINVAL);
    CHECK_OK(ccix_cancel(endpoint, room));
    CHECK_STATUS(ccix_cancel(endpoint, room), CCI_EINVAL);
    CHECK_STATUS(ccix_cancel(NULL, again), CCI_EINVAL);
    CHECK_OK(cci_disconnect(other.client));
    CHECK_STATUS(ccix_commit(other.client, again, 1, NULL, 0), CCI_ERR_DISCONNECTED);
    CHECK_OK(ccix_cancel(endpoint, again));
    CHECK_OK(cci_disconnect(other.server));
    CHECK_STATUS(cci_get_event(endpoint, &event), CCI_EAGAIN);
}

/* Messages beyond the maximum: each is one event, in its place, if its receiver allows it. */
static void large(void)
{
    struct pair uu = connect_self(endpoint, CCI_CONN_ATTR_UU);
    uint64_t most = pair.client->max_send_size;
    uint64_t lengths[] = {0, 5, 0, 0, 200000, 3000001};
    char *bytes = malloc(3000001);
    cci_event_t *event;
    size_t at;

    CHECK(bytes != NULL);
    for (at = 0; at < 3000001; at++) {
        bytes[at] = (char)(at * 31 + at / 1000);
    }
    lengths[2] = most;
    lengths[3] = most + 1;
    CHECK_OK(ccix_send_large(pair.client, bytes, most + 1, MARK(1), 0));
    event = expect(endpoint, CCI_EVENT_SEND);
    CHECK_STATUS((int)event->send.status, CCI_EMSGSIZE);
    CHECK(event->send.context == MARK(1));
    CHECK_OK(cci_return_event(event));
    CHECK_OK(ccix_set_large_limit(endpoint, 4000000));
    for (at = 0; at < sizeof(lengths) / sizeof(lengths[0]); at++) {
        CHECK_OK(ccix_send_large(pair.client, bytes, lengths[at], NULL, CCI_FLAG_SILENT));
        CHECK_OK(cci_send(pair.client, "after", 5, NULL, CCI_FLAG_SILENT));
        event = expect(endpoint, CCI_EVENT_RECV);
        check_message(event, bytes, (uint32_t)lengths[at]);
        CHECK_OK(cci_return_event(event));
        event = expect(endpoint, CCI_EVENT_RECV);
        check_message(event, "after", 5);
        CHECK_OK(cci_return_event(event));
    }
    CHECK_OK(ccix_send_large(pair.client, bytes, 100000, NULL, CCI_FLAG_BLOCKING));
    event = expect(endpoint, CCI_EVENT_RECV);
    check_message(event, bytes, 100000);
    ((char *)event->recv.ptr)[99999] = 'x';
    CHECK_OK(cci_return_event(event));
    CHECK_STATUS(ccix_send_large(pair.client, bytes, 1ull << 32, NULL, 0), CCI_EMSGSIZE);
    CHECK_STATUS(ccix_send_large(uu.client, bytes, (uint64_t)uu.client->max_send_size + 1, NULL, 0), CCI_EMSGSIZE);
    CHECK_STATUS(ccix_send_large(pair.client, NULL, 1, NULL, 0), CCI_EINVAL);
    CHECK_STATUS(ccix_send_large(NULL, bytes, 1, NULL, 0), CCI_EINVAL);
    CHECK_STATUS(ccix_set_large_limit(NULL, 1), CCI_EINVAL);
    CHECK_OK(ccix_set_large_limit(endpoint, 0));
    CHECK_OK(cci_disconnect(uu.client));
    CHECK_OK(cci_disconnect(uu.server));
    CHECK_STATUS(cci_get_event(endpoint, &event), CCI_EAGAIN);
    free(bytes);
}

int main(void)
{
    start();
    endpoint = open_endpoint(NULL);
    pair = connect_self(endpoint, CCI_CONN_ATTR_RO);
    lengths();
    parts();
    flags();
    events();
    ping_pong();
    flood();
    starved();
    unreliable();
    written_in_place();
    large();
    CHECK_OK(cci_destroy_endpoint(endpoint));
    CHECK_OK(cci_finalize());
    return 0;
}
