/*
 * One kind of call, so many times, between two endpoints of this process over sm, through the C
 * library: what `ci/instructions --c` counts the instructions of. Only what runs within `measured`
 * counts; callgrind is told so by its name. Arguments: silent, reaped, receive, the same with a
 * message in a payload slot (slot-silent, slot-reaped, slot-receive), such a message in two parts
 * (slot-gathered), empty, write (an RMA of 64 B into memory of the library), a way to take bursts
 * (one, several, handler, handler1), or nothing (what the measuring itself takes); how many calls.
 * With the prefix os- the endpoint that is called has an OS handle; with turn- a third endpoint has
 * a connection too, and the calls are for its lane and the first one in turn.
 */
#include <cci.h>
#include <ccix.h>
#include <stdlib.h>
#include <string.h>

static cci_endpoint_t *endpoints[3];
/* Of endpoint 0 to 1, and of 1 to 0; then of 0 to 2, and of 2 to 0. */
static cci_connection_t *connections[4];
static cci_rma_handle_t *handles[2];

/* A message that rides in its entry of the ring, and one that needs a payload slot. */
enum { SMALL = 8, SLOT = 64 };
static uint32_t length = SMALL;
static const char message[SLOT] = "a message";

static void must(int code, const char *what)
{
    if (code != CCI_SUCCESS) {
        fprintf(stderr, "instructions: %s: %s\n", what, cci_strerror(NULL, (enum cci_status)code));
        exit(1);
    }
}

/* Takes an event of this type and gives it back; the connection that it names. */
static cci_connection_t *take(cci_endpoint_t *endpoint, cci_event_type_t type)
{
    cci_event_t *event;
    cci_connection_t *connection = NULL;
    int found = 0;
    while (!found) {
        if (cci_get_event(endpoint, &event) != CCI_SUCCESS)
            continue;
        found = event->type == type;
        if (event->type == CCI_EVENT_CONNECT || event->type == CCI_EVENT_ACCEPT) {
            must(event->connect.status, "the connection");
            connection = event->connect.connection;
        }
        must(cci_return_event(event), "return_event");
    }
    return connection;
}

/* Opens so many endpoints, this one with an OS handle; -1: none. */
static void open_endpoints(int count, int with_handle)
{
    cci_device_t *const *devices;
    int i;
    must(cci_get_devices(&devices), "get_devices");
    while (*devices && (strcmp((*devices)->transport, "sm") || !(*devices)->up))
        devices++;
    for (i = 0; i < count; i++) {
        cci_os_handle_t handle;
        must(cci_create_endpoint(*devices, 0, &endpoints[i], i == with_handle ? &handle : NULL), "create_endpoint");
    }
}

/* Connects endpoint 0 to this one. */
static void connect_to(int peer)
{
    cci_event_t *event;
    char *uri;
    must(cci_get_opt(endpoints[peer], CCI_OPT_ENDPT_URI, &uri), "get_opt");
    must(cci_connect(endpoints[0], uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), "connect");
    free(uri);
    do {
        /* The client's side of the handshake is made by its calls. */
        if (cci_get_event(endpoints[0], &event) == CCI_SUCCESS)
            exit(1);
    } while (cci_get_event(endpoints[peer], &event) != CCI_SUCCESS);
    must(cci_accept(event, NULL), "accept");
    must(cci_return_event(event), "return_event");
    connections[2 * peer - 2] = take(endpoints[0], CCI_EVENT_CONNECT);
    connections[2 * peer - 1] = take(endpoints[peer], CCI_EVENT_ACCEPT);
}

/* Registers memory of the library at both ends, and has the sender hear of it. */
static void register_memory(void)
{
    enum { BYTES = 4096, CALLS = 4096 };
    cci_event_t *event;
    void *memory;
    int i;
    for (i = 0; i < 2; i++) {
        must(ccix_alloc(BYTES, &memory), "alloc");
        must(cci_rma_register(endpoints[i], memory, BYTES, CCI_FLAG_READ | CCI_FLAG_WRITE, &handles[i]), "register");
    }
    for (i = 0; i < 2 * CALLS; i++)
        if (cci_get_event(endpoints[i % 2], &event) != CCI_EAGAIN)
            exit(1);
}

static void send_silent(void)
{
    must(cci_send(connections[0], message, length, NULL, CCI_FLAG_SILENT), "send");
}

/* A header and what follows it. */
static void send_gathered(void)
{
    char *bytes = (char *)message;
    struct iovec parts[2] = {{bytes, SMALL}, {bytes + SMALL, length - SMALL}};
    must(cci_sendv(connections[0], parts, 2, NULL, CCI_FLAG_SILENT), "sendv");
}

static void send_reaped(void)
{
    cci_event_t *event;
    must(cci_send(connections[0], message, length, NULL, 0), "send");
    must(cci_get_event(endpoints[0], &event), "get_event");
    must(cci_return_event(event), "return_event");
}

static void receive(void)
{
    cci_event_t *event;
    must(cci_get_event(endpoints[1], &event), "get_event");
    must(cci_return_event(event), "return_event");
}

static void write_silent(void)
{
    must(cci_rma(connections[0], NULL, 0, handles[0], 0, handles[1], 0, SLOT, NULL, CCI_FLAG_WRITE | CCI_FLAG_SILENT),
         "rma");
}

static void take_message(void)
{
    take(endpoints[1], CCI_EVENT_RECV);
}

/* Whose turn it is: endpoint 1 or 2. */
static int peer = 1;

static void send_in_turn(void)
{
    must(cci_send(connections[2 * peer - 2], message, length, NULL, CCI_FLAG_SILENT), "send");
}

static void reap_in_turn(void)
{
    cci_event_t *event;
    must(cci_send(connections[2 * peer - 2], message, length, NULL, 0), "send");
    must(cci_get_event(endpoints[0], &event), "get_event");
    must(cci_return_event(event), "return_event");
}

static void take_in_turn(void)
{
    take(endpoints[peer], CCI_EVENT_RECV);
    peer = 3 - peer;
}

static void answer_in_turn(void)
{
    must(cci_send(connections[2 * peer - 1], message, length, NULL, CCI_FLAG_SILENT), "send");
    peer = 3 - peer;
}

static void receive_in_turn(void)
{
    cci_event_t *event;
    must(cci_get_event(endpoints[0], &event), "get_event");
    must(cci_return_event(event), "return_event");
}

static void find_nothing(void)
{
    cci_event_t *event;
    if (cci_get_event(endpoints[1], &event) != CCI_EAGAIN)
        exit(1);
}

/* Messages of a burst, and events that one call takes. */
enum { BURST = 32, SEVERAL = 16 };

static void send_burst(void)
{
    int i;
    for (i = 0; i < BURST; i++)
        send_silent();
}

static void burst_one(void)
{
    int left;
    send_burst();
    for (left = BURST; left > 0; left--)
        receive();
}

static void burst_several(void)
{
    cci_event_t *events[SEVERAL];
    uint32_t count, i;
    int left;
    send_burst();
    for (left = BURST; left > 0; left -= (int)count) {
        must(ccix_get_events(endpoints[1], events, SEVERAL, &count), "get_events");
        for (i = 0; i < count; i++)
            must(cci_return_event(events[i]), "return_event");
    }
}

/* Says that it is done with the event. */
static int done(void *arg, cci_event_t *event)
{
    (void)arg;
    (void)event;
    return 0;
}

static void take_by_handler(uint32_t most)
{
    uint32_t count;
    int left;
    send_burst();
    for (left = BURST; left > 0; left -= (int)count)
        must(ccix_poll(endpoints[1], most, done, NULL, &count), "poll");
}

static void burst_handler(void)
{
    take_by_handler(SEVERAL);
}

static void burst_handler1(void)
{
    take_by_handler(1);
}

static void do_nothing(void)
{
}

/* Callgrind counts what runs in here. */
__attribute__((noinline)) void measured(void (*call)(void));

void measured(void (*call)(void))
{
    call();
    __asm__ volatile("");
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*call)(void);
        /* What sends the message that the call receives, and takes the one that it sends. */
        void (*before)(void);
        void (*after)(void);
        uint32_t length;
    } kinds[] = {
        {"silent", send_silent, do_nothing, take_message, SMALL},
        {"reaped", send_reaped, do_nothing, take_message, SMALL},
        {"receive", receive, send_silent, do_nothing, SMALL},
        {"slot-silent", send_silent, do_nothing, take_message, SLOT},
        {"slot-gathered", send_gathered, do_nothing, take_message, SLOT},
        {"slot-reaped", send_reaped, do_nothing, take_message, SLOT},
        {"slot-receive", receive, send_silent, do_nothing, SLOT},
        {"empty", find_nothing, do_nothing, do_nothing, SMALL},
        {"write", write_silent, do_nothing, do_nothing, SMALL},
        {"os-silent", send_silent, do_nothing, take_message, SMALL},
        {"os-reaped", send_reaped, do_nothing, take_message, SMALL},
        {"os-receive", receive, send_silent, do_nothing, SMALL},
        {"os-empty", find_nothing, do_nothing, do_nothing, SMALL},
        {"turn-silent", send_in_turn, do_nothing, take_in_turn, SMALL},
        {"turn-reaped", reap_in_turn, do_nothing, take_in_turn, SMALL},
        {"turn-receive", receive_in_turn, answer_in_turn, do_nothing, SMALL},
        {"turn-slot-silent", send_in_turn, do_nothing, take_in_turn, SLOT},
        {"one", burst_one, do_nothing, do_nothing, SMALL},
        {"several", burst_several, do_nothing, do_nothing, SMALL},
        {"handler", burst_handler, do_nothing, do_nothing, SMALL},
        {"handler1", burst_handler1, do_nothing, do_nothing, SMALL},
        {"nothing", do_nothing, do_nothing, do_nothing, SMALL},
    };
    uint32_t caps;
    long count;
    size_t kind;
    int in_turn, with_handle;
    const size_t kind_count = sizeof kinds / sizeof *kinds;
    if (argc != 3)
        return 1;
    for (kind = 0; kind < kind_count && strcmp(argv[1], kinds[kind].name); kind++)
        ;
    if (kind == kind_count)
        return 1;
    must(cci_init(CCI_ABI_VERSION, 0, &caps), "init");
    in_turn = strncmp(argv[1], "turn-", 5) == 0;
    with_handle = kinds[kind].call == receive || kinds[kind].call == find_nothing;
    open_endpoints(in_turn ? 3 : 2, strncmp(argv[1], "os-", 3) ? -1 : with_handle);
    connect_to(1);
    if (in_turn)
        connect_to(2);
    register_memory();
    length = kinds[kind].length;
    for (count = atol(argv[2]); count > 0; count--) {
        kinds[kind].before();
        measured(kinds[kind].call);
        kinds[kind].after();
    }
    return cci_finalize();
}
