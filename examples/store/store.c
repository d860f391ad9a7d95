/*
 * A key-value store: the server keeps a table in memory that clients read by RMA, so that a get
 * takes none of its time; a put is a message.
 *
 *   cc store.c $(pkg-config --cflags --libs cci) -o store
 *   store                       serves; prints its URI
 *   store URI put KEY VALUE     sets a value
 *   store URI get KEY           prints a value
 */

#include "../c/example.h"

#define SLOTS 4096

/* Texts with zeroes behind them. */
struct slot {
    char key[24];
    char value[40];
};

/* Where the slot of a key lies in the table. Another key of the same place takes it over. */
static uint64_t place(const char *key)
{
    uint32_t hash = 2166136261u;

    while (*key) {
        hash = (hash ^ (unsigned char)*key++) * 16777619u;
    }
    return hash % SLOTS * sizeof(struct slot);
}

/* A client may have gone since it asked: then the answer fails, and the others are served on. */
static void answer(cci_connection_t *client, const void *bytes, uint32_t length)
{
    int status = cci_send(client, bytes, length, NULL, CCI_FLAG_SILENT);

    if (status != CCI_SUCCESS) {
        fprintf(stderr, "a client got no answer: %s\n", cci_strerror(NULL, (enum cci_status)status));
    }
}

/* A client has sent a slot to put. What it sent is not to be trusted: both texts end. */
static void put(char *table, cci_event_t *event)
{
    struct slot slot;

    if (event->recv.len != sizeof(slot)) {
        return;
    }
    memcpy(&slot, event->recv.ptr, sizeof(slot));
    slot.key[sizeof(slot.key) - 1] = slot.value[sizeof(slot.value) - 1] = '\0';
    memcpy(table + place(slot.key), &slot, sizeof(slot));
    answer(event->recv.connection, NULL, 0);
}

static void serve(char *table)
{
    struct ccix_endpoint_options options = {sizeof(options), CCIX_ENDPOINT_DISCONNECT_EVENTS, 0, 0, NULL};
    cci_endpoint_t *endpoint;
    cci_rma_handle_t *handle;
    cci_event_t *event;

    check(ccix_create_endpoint(NULL, &options, &endpoint, NULL), "ccix_create_endpoint");

    check(cci_rma_register(endpoint, table, SLOTS * sizeof(struct slot), CCI_FLAG_READ, &handle), "cci_rma_register");
    print_uri(endpoint);
    while (ccix_wait(&endpoint, 1, NULL, &event, NULL) == CCI_SUCCESS) {
        if (event->type == CCI_EVENT_CONNECT_REQUEST) {
            check(cci_accept(event, NULL), "cci_accept");
        } else if (event->type == CCI_EVENT_ACCEPT && event->accept.status == CCI_SUCCESS) {
            answer(event->accept.connection, handle, sizeof(*handle));
        } else if (event->type == CCI_EVENT_RECV) {
            put(table, event);
        } else if (event->type == CCIX_EVENT_DISCONNECT) {
            check(cci_disconnect(event->keepalive.connection), "cci_disconnect");
        }
        check(cci_return_event(event), "cci_return_event");
    }
}

/* Puts if there is a value, else gets and prints. */
static int ask(cci_endpoint_t *endpoint, const char *uri, const char *key, const char *value)
{
    struct timeval limit = {10, 0};
    struct slot slot = {{0}, {0}};
    struct cci_rma_handle remote;
    cci_rma_handle_t *local;
    cci_connection_t *connection;
    cci_event_t *event;

    check(cci_connect(endpoint, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, &limit), "cci_connect");
    event = wait_for(endpoint, CCI_EVENT_CONNECT);
    check((int)event->connect.status, "connecting");
    connection = event->connect.connection;
    check(cci_return_event(event), "cci_return_event");
    event = wait_for(endpoint, CCI_EVENT_RECV);
    memcpy(&remote, event->recv.ptr, event->recv.len < sizeof(remote) ? event->recv.len : sizeof(remote));
    check(cci_return_event(event), "cci_return_event");
    if (value) {
        strncpy(slot.key, key, sizeof(slot.key) - 1);
        strncpy(slot.value, value, sizeof(slot.value) - 1);
        check(cci_send(connection, &slot, sizeof(slot), NULL, 0), "cci_send");
        /* The answer: the table has it. */
        return cci_return_event(wait_for(endpoint, CCI_EVENT_RECV));
    }
    check(cci_rma_register(endpoint, &slot, sizeof(slot), 0, &local), "cci_rma_register");
    check(cci_rma(connection, NULL, 0, local, 0, &remote, place(key), sizeof(slot), NULL,
                  CCI_FLAG_READ | CCI_FLAG_BLOCKING),
          "cci_rma");
    if (strncmp(slot.key, key, sizeof(slot.key))) {
        fprintf(stderr, "no such key\n");
        return 1;
    }
    printf("%s\n", slot.value);
    return 0;
}

int main(int argc, char **argv)
{
    cci_device_t *device;
    cci_endpoint_t *endpoint;
    uint32_t caps;
    int is_put = argc == 5 && !strcmp(argv[2], "put");

    if (argc != 1 && !is_put && !(argc == 4 && !strcmp(argv[2], "get"))) {
        fprintf(stderr, "usage: %s [URI put KEY VALUE | URI get KEY]\n", argv[0]);
        return 2;
    }
    check(cci_init(CCI_ABI_VERSION, 0, &caps), "cci_init");
    if (argc == 1) {
        serve(calloc(SLOTS, sizeof(struct slot)));
        return 1;
    }
    check(ccix_device_for(argv[1], &device), "ccix_device_for");
    check(cci_create_endpoint(device, 0, &endpoint, NULL), "cci_create_endpoint");
    return ask(endpoint, argv[1], argv[3], is_put ? argv[4] : NULL);
}
