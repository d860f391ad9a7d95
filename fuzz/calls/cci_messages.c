/* libcci: messages. */

#include "cci_calls.h"

static struct {
    cci_connection_t *connection;
    uint64_t room;
    uint32_t length;
} rooms[OTHERS];

void send_message(void) {
    uint32_t length = a_length();

    CALL(cci_send, a_connection(), one_in(300) ? NULL : bytes_of(length), length, a_context(), send_flags());
}

void send_parts(void) {
    struct iovec parts[5];
    uint32_t count = below(6), at;

    for (at = 0; at < count && at < 5; at++) {
        uint32_t length = length_to(4000);

        parts[at].iov_base = one_in(300) ? NULL : (void *)(uintptr_t)bytes_of(length);
        parts[at].iov_len = one_in(300) ? SIZE_MAX - below(9) : length;
    }
    CALL(cci_sendv, a_connection(), one_in(300) ? NULL : parts, count, a_context(), send_flags() & ~CCI_FLAG_NO_COPY);
}

void answer(void) {
    uint32_t length = length_to(9000);

    CALL(ccix_answer, a_connection(), bytes_of(length), length, a_context(), send_flags());
}

void send_large(void) {
    uint64_t length = one_in(4) ? below(BYTES + 1) : length_to(70000);

    if (one_in(300))
        length = one_in(2) ? UINT64_MAX - below(9) : UINT32_MAX - (uint64_t)below(4);
    CALL(ccix_send_large, a_connection(), one_in(300) ? NULL : bytes_of(length), length, a_context(), send_flags());
}

void reserve(void) {
    unsigned at = below(OTHERS);
    uint32_t length = a_length();
    void *place = NULL;

    if (rooms[at].connection && !one_in(30))
        CALL(ccix_cancel, rooms[at].connection->endpoint, rooms[at].room);
    rooms[at].connection = NULL;
    if (CALL(ccix_reserve, a_connection(), length, one_in(500) ? NULL : &place, &rooms[at].room) == CCI_SUCCESS)
        memcpy(place, bytes_of(length), length);
}

/* A room is reserved, written and committed; or cancelled, or both, or neither for a while. */
void in_place(void) {
    cci_connection_t *connection = a_connection();
    unsigned at = below(OTHERS);
    uint32_t length = length_to(5000);
    uint64_t room = 0;
    void *place = NULL;

    if (!connection || CALL(ccix_reserve, connection, length, &place, &room) != CCI_SUCCESS)
        return;
    memcpy(place, bytes_of(length), length);
    if (one_in(500))
        room = draw();
    if (one_in(3))
        CALL(ccix_cancel, connection->endpoint, room);
    if (CALL(ccix_commit, one_in(200) ? a_connection() : connection, room, one_in(9) ? a_length() : length, a_context(),
             send_flags() & ~CCI_FLAG_NO_COPY) != CCI_SUCCESS &&
        !one_in(50))
        CALL(ccix_cancel, connection->endpoint, room);
    rooms[at].room = room;
}

void set_large_limit(void) {
    CALL(ccix_set_large_limit, an_endpoint(), one_in(50) ? draw() : (uint64_t)below(4 * BYTES));
}

void set_answer_buffers(void) {
    CALL(ccix_set_answer_buffers, an_endpoint(), one_in(50) ? (uint32_t)draw() : below(5));
}
