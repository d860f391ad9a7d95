/* libcci: memory: registrations, RMA, imports. */

#include "cci_calls.h"

static struct cci_rma_handle registrations[REGISTRATIONS];
static cci_endpoint_t *registered_at[REGISTRATIONS];
static void *allocated[OTHERS];
static uint64_t imports[OTHERS];
/* What peers and this program write. */
static unsigned char memory[BYTES] __attribute__((aligned(64)));

/* Names a registration for others. */
static void publish(unsigned at) {
    memcpy(board->entries[process][ENDPOINTS + at], &registrations[at], sizeof registrations[at]);
}

void register_memory(void) {
    unsigned at = below(REGISTRATIONS);
    cci_rma_handle_t *handle = NULL;
    cci_endpoint_t *endpoint = an_endpoint();
    uint64_t length = one_in(300) ? draw() : one_in(300) ? 0 : 1 + length_to(BYTES - 1);
    int flags = one_in(200) ? (int)draw() : (int)below(4) << 4 | CCI_FLAG_READ;
    void *start = memory, *own = allocated[below(OTHERS)];
    int status;

    /* A length beyond the memory is never used: no range outside is named. */
    if (length <= BYTES && one_in(2))
        start = memory + (BYTES - length);
    if (own && one_in(2)) {
        start = own;
        length = 4096;
    } else if (length > BYTES) {
        length = UINT64_MAX - below(4096);
    }
    if (registered_at[at])
        CALL(cci_rma_deregister, registered_at[at], &registrations[at]);
    registered_at[at] = NULL;
    if (one_in(2))
        status = CALL(cci_rma_register, endpoint, start, length, flags, one_in(500) ? NULL : &handle);
    else
        status = CALL(ccix_rma_register, endpoint, one_in(3) ? a_connection() : NULL, start, length, flags,
                      one_in(50) ? below(5) : CCIX_MEMORY_HOST, &handle);
    if (status == CCI_SUCCESS && handle) {
        registered_at[at] = endpoint;
        memcpy((void *)(uintptr_t)&registrations[at], handle, sizeof registrations[at]);
        publish(at);
    }
}

void deregister(void) {
    unsigned at = below(REGISTRATIONS);
    static const struct cci_rma_handle nothing = {{1, 2, 3, 4}};

    CALL(cci_rma_deregister, registered_at[at], one_in(100) ? NULL : one_in(50) ? &nothing : &registrations[at]);
    registered_at[at] = NULL;
}

/* One of this program: as a rule of the endpoint of the connection. */
static cci_rma_handle_t *a_local(const cci_connection_t *connection) {
    unsigned at = below(REGISTRATIONS), tries;

    for (tries = 0; tries < 8 && connection && registered_at[at] != connection->endpoint; tries++)
        at = below(REGISTRATIONS);
    return (cci_rma_handle_t *)&registrations[at];
}

/* A registration of a peer: that of the other process, or of this one; sometimes a forged one. */
static void a_remote(struct cci_rma_handle *into) {
    int of = processes == 2 && one_in(2) ? !process : process;

    memcpy((void *)(uintptr_t)into, board->entries[of][ENDPOINTS + below(REGISTRATIONS)], sizeof *into);
    if (one_in(100))
        ((unsigned char *)(uintptr_t)into)[below(sizeof *into)] ^= (unsigned char)draw();
}

static int rma_flags(void) {
    int flags = one_in(2) ? CCI_FLAG_READ : CCI_FLAG_WRITE;

    if (one_in(5))
        flags |= CCI_FLAG_FENCE;
    return one_in(100) ? flags ^ (CCI_FLAG_READ | CCI_FLAG_WRITE) : flags | send_flags();
}

void rma(void) {
    struct cci_rma_handle remote;
    cci_connection_t *connection = a_connection();
    uint64_t length = length_to(one_in(10) ? BYTES : 4000);
    uint32_t message = one_in(2) ? 0 : length_to(500);

    a_remote(&remote);
    CALL(cci_rma, connection, message ? bytes_of(message) : NULL, message,
         one_in(300) ? NULL : a_local(connection), length_to(100),
         one_in(300) ? NULL : (cci_rma_handle_t *)&remote, one_in(200) ? draw() : length_to(100),
         one_in(200) ? draw() : length, a_context(), rma_flags());
}

void atomic(void) {
    struct cci_rma_handle remote;
    cci_connection_t *connection = a_connection();
    struct ccix_atomic of = {1 + below(2), one_in(2) ? 4 : 8, draw(), draw() & 1};

    a_remote(&remote);
    if (one_in(50))
        of.operation = (uint32_t)draw();
    if (one_in(50))
        of.width = below(17);
    CALL(ccix_rma_atomic, connection, NULL, 0, a_local(connection), 8 * below(4), (cci_rma_handle_t *)&remote,
         one_in(50) ? draw() : 8 * (uint64_t)below(4),
         one_in(300) ? NULL : &of, a_context(), send_flags() | (one_in(5) ? CCI_FLAG_FENCE : 0));
}

void import(void) {
    struct cci_rma_handle remote;
    unsigned at = below(OTHERS);
    uint64_t length = 0;
    void *start = NULL;
    int flags = 0;

    if (imports[at])
        CALL(ccix_release_import, imports[at]);
    imports[at] = 0;
    a_remote(&remote);
    if (CALL(ccix_import, a_connection(), (cci_rma_handle_t *)&remote, &start, &length, &flags, &imports[at]) !=
        CCI_SUCCESS)
        return;
    look_at(start, (uint32_t)length);
    CALL(ccix_check_import, imports[at]);
}

void check_import(void) {
    unsigned at = below(OTHERS);

    if (!imports[at] && !one_in(20))
        return;
    CALL(ccix_check_import, imports[at]);
    if (one_in(4)) {
        CALL(ccix_release_import, imports[at]);
        if (!one_in(20))
            imports[at] = 0;
    }
}

void allocate(void) {
    unsigned at = below(OTHERS);
    void *stale = allocated[at];

    if (stale) {
        CALL(ccix_free, stale);
        if (one_in(20))
            CALL(ccix_free, stale);
        allocated[at] = NULL;
    }
    if (CALL(ccix_alloc, one_in(100) ? 0 : one_in(100) ? SIZE_MAX - below(8192) : 4096 + length_to(70000),
             one_in(300) ? NULL : &allocated[at]) == CCI_SUCCESS)
        look_at(allocated[at], 4096);
    else
        allocated[at] = NULL;
}
