/*
 * Every call, and each code that this library returns, but those of faults of the library and of
 * the device (MX_NIC_DEAD, MX_NO_RESOURCES).
 */

#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

#define LARGE 100000

static mx_endpoint_t a, b;
static mx_endpoint_addr_t to_a, to_b;
static char text[LARGE], room[LARGE];
static char said[256];
static mx_return_t last;

static mx_return_t note(char *words, mx_return_t code) {
    strncpy(said, words, sizeof said - 1);
    last = code;
    return code;
}

/* Tests a request of `of` until it has ended, while the other endpoint makes progress. */
static mx_status_t end_of(mx_endpoint_t of, mx_request_t request) {
    mx_status_t status;
    uint32_t result = 0;
    time_t begun = time(NULL);

    while (result == 0) {
        CHECK(time(NULL) - begun < PATIENCE);
        if (b != NULL)
            OK(mx_progress(of == a ? b : a));
        OK(mx_test(of, &request, &status, &result));
    }
    CHECK_CODE(mx_test(of, &request, &status, &result), MX_BAD_REQUEST);
    return status;
}

static mx_request_t send_to(mx_endpoint_t from, mx_endpoint_addr_t to, uint32_t length, uint64_t bits) {
    mx_segment_t of = segment(text, length);
    mx_request_t request;

    OK(mx_isend(from, &of, 1, to, bits, NULL, &request));
    return request;
}

static mx_request_t receive_at(mx_endpoint_t at, uint32_t length, uint64_t bits) {
    mx_segment_t of = segment(room, length);
    mx_request_t request;

    OK(mx_irecv(at, &of, 1, bits, MX_MATCH_MASK_NONE, text, &request));
    return request;
}

static void before_init(void) {
    mx_endpoint_t none;
    mx_request_t request = NULL;
    mx_status_t status;
    uint64_t nic;
    uint32_t word;
    void *context;

    CHECK_CODE(mx_finalize(), MX_NOT_INITIALIZED);
    CHECK_CODE(mx_open_endpoint(0, 1, KEY, NULL, 0, &none), MX_NOT_INITIALIZED);
    CHECK_CODE(mx_test(NULL, &request, &status, &word), MX_NOT_INITIALIZED);
    CHECK_CODE(mx_context(&request, &context), MX_NOT_INITIALIZED);
    CHECK_CODE(mx_close_endpoint(NULL), MX_NOT_INITIALIZED);
    CHECK_CODE(mx_board_number_to_nic_id(0, &nic), MX_NOT_INITIALIZED);
    CHECK_CODE(mx_nic_id_to_board_number(0, &word), MX_NOT_INITIALIZED);
    CHECK_CODE(mx_hostname_to_nic_id("localhost", &nic), MX_NOT_INITIALIZED);
    CHECK_CODE(mx_nic_id_to_hostname(0, said), MX_NOT_INITIALIZED);
    CHECK_CODE(mx_get_info(NULL, MX_NIC_COUNT, NULL, 0, &word, 4), MX_NOT_INITIALIZED);
    CHECK_CODE(mx_set_endpoint_addr_context(to_a, text), MX_NOT_INITIALIZED);
    CHECK_CODE(mx_get_endpoint_addr_context(to_a, &context), MX_NOT_INITIALIZED);
    CHECK_CODE(mx__init_api(0x200), MX_FAILURE);
    OK(mx__init_api(0x300));
    CHECK_CODE(mx_init(), MX_ALREADY_INITIALIZED);
    OK(mx_finalize());
    OK(mx_init());
}

static void open_both(uint32_t id) {
    mx_param_t param;
    const char *config = getenv("TEST_CONFIG");

    memset(&param, 0, sizeof param);
    CHECK_CODE(mx_open_endpoint(0, id, KEY, NULL, 0, NULL), MX_BAD_BAD_BAD);
    CHECK_CODE(mx_open_endpoint(1, id, KEY, NULL, 0, &a), MX_BOARD_UNKNOWN);
    CHECK_CODE(mx_open_endpoint(0, 2048, KEY, NULL, 0, &a), MX_BAD_ENDPOINT_ID);
    CHECK_CODE(mx_open_endpoint(0, id, KEY, NULL, 1, &a), MX_BAD_PARAM_LIST);
    param.key = (mx_param_key_t)77;
    CHECK_CODE(mx_open_endpoint(0, id, KEY, &param, 1, &a), MX_BAD_PARAM_NAME);
    param.key = MX_PARAM_CONTEXT_ID;
    CHECK_CODE(mx_open_endpoint(0, id, KEY, &param, 1, &a), MX_BAD_PARAM_VAL);
    setenv("CCI_CONFIG", "/no/such/file", 1);
    CHECK_CODE(mx_open_endpoint(0, id, KEY, NULL, 0, &a), MX_NO_DEV);
    unsetenv("CCI_CONFIG");
    if (config != NULL)
        setenv("CCI_CONFIG", config, 1);
    OK(mx_open_endpoint(0, id, KEY, NULL, 0, &a));
    CHECK_CODE(mx_open_endpoint(0, id, KEY, NULL, 0, &b), MX_BUSY);
    param.val.context_id.bits = 4;
    param.val.context_id.shift = 60;
    OK(mx_open_endpoint(MX_ANY_NIC, MX_ANY_ENDPOINT, KEY + 1, &param, 1, &b));
}

static void of_names(void) {
    uint64_t nic, other, ids[3], values[7];
    uint32_t board, id, session, own_id, count;
    char name[MX_MAX_HOSTNAME_LEN], labels[7][32], product[8], host[] = "nobody.invalid";
    void *context;

    OK(mx_get_endpoint_addr(a, &to_a));
    CHECK_CODE(mx_get_endpoint_addr(a, NULL), MX_BAD_BAD_BAD);
    OK(mx_decompose_endpoint_addr(to_a, &nic, &own_id));
    OK(mx_decompose_endpoint_addr2(to_a, &nic, &id, &session));
    CHECK(id == own_id && id < 2048);
    CHECK_CODE(mx_decompose_endpoint_addr(to_a, NULL, &id), MX_BAD_BAD_BAD);
    OK(mx_board_number_to_nic_id(0, &other));
    CHECK(other == nic);
    CHECK_CODE(mx_board_number_to_nic_id(1, &other), MX_BOARD_UNKNOWN);
    CHECK_CODE(mx_board_number_to_nic_id(0, NULL), MX_BAD_BAD_BAD);
    OK(mx_nic_id_to_board_number(nic, &board));
    CHECK(board == 0);
    CHECK_CODE(mx_nic_id_to_board_number(nic + 1, &board), MX_NIC_NOT_FOUND);
    OK(mx_nic_id_to_hostname(nic, name));
    OK(mx_hostname_to_nic_id(name, &other));
    CHECK(other == nic);
    OK(mx_hostname_to_nic_id("localhost:0", &other));
    CHECK(other == nic);
    OK(mx_hostname_to_nic_id("192.0.2.7", &other));
    CHECK(other == 0xc0000207);
    OK(mx_nic_id_to_hostname(other, name));
    CHECK(strcmp(name, "192.0.2.7") == 0);
    CHECK_CODE(mx_hostname_to_nic_id("", &other), MX_BAD_HOSTNAME_ARGS);
    CHECK_CODE(mx_hostname_to_nic_id("localhost:x", &other), MX_BAD_HOSTNAME_ARGS);
    CHECK_CODE(mx_hostname_to_nic_id("localhost:1", &other), MX_NIC_NOT_FOUND);
    CHECK_CODE(mx_hostname_to_nic_id(host, &other), MX_HOST_NOT_FOUND);
    CHECK_CODE(mx_hostname_to_nic_id(NULL, &other), MX_BAD_BAD_BAD);
    /* The name leads nowhere, and is not read. */
    CHECK_CODE(mx_hostname_to_nic_id((char *)8, NULL), MX_BAD_BAD_BAD);
    CHECK_CODE(mx_nic_id_to_hostname((uint64_t)1 << 40, name), MX_NIC_NOT_FOUND);
    CHECK_CODE(mx_nic_id_to_hostname(nic, NULL), MX_BAD_BAD_BAD);

    OK(mx_get_info(NULL, MX_NIC_COUNT, NULL, 0, &count, 4));
    CHECK(count == 1);
    OK(mx_get_info(NULL, MX_NIC_IDS, NULL, 0, ids, sizeof ids));
    CHECK(ids[0] == nic && ids[1] == 0);
    OK(mx_get_info(a, MX_NIC_IDS, NULL, 0, ids, 8));
    OK(mx_get_info(a, MX_MAX_NATIVE_ENDPOINTS, NULL, 0, &count, 4));
    CHECK(count == 2048);
    OK(mx_get_info(a, MX_NATIVE_REQUESTS, NULL, 0, &count, 4));
    OK(mx_get_info(a, MX_COUNTERS_COUNT, NULL, 0, &count, 4));
    CHECK(count == 7);
    board = 0;
    OK(mx_get_info(a, MX_COUNTERS_LABELS, &board, sizeof board, labels, sizeof labels));
    OK(mx_get_info(a, MX_COUNTERS_VALUES, &board, sizeof board, values, sizeof values));
    CHECK(strcmp(labels[0], "eager messages sent") == 0 && values[6] == 0);
    OK(mx_get_info(a, MX_PRODUCT_CODE, NULL, 0, product, sizeof product));
    CHECK(strcmp(product, "CCI") == 0);
    OK(mx_get_info(a, MX_LINE_SPEED, NULL, 0, ids, 8));
    CHECK_CODE(mx_get_info(a, (mx_get_info_key_t)99, NULL, 0, ids, 8), MX_BAD_INFO_KEY);
    CHECK_CODE(mx_get_info(a, MX_NIC_COUNT, NULL, 0, ids, 8), MX_BAD_INFO_LENGTH);
    CHECK_CODE(mx_get_info(a, MX_NIC_COUNT, NULL, 0, NULL, 4), MX_BAD_BAD_BAD);
    CHECK_CODE(mx_get_info(a, MX_NIC_COUNT, &board, 3, &count, 4), MX_BAD_INFO_VAL);
    board = 1;
    CHECK_CODE(mx_get_info(a, MX_NIC_COUNT, &board, 4, &count, 4), MX_BOARD_UNKNOWN);
    CHECK_CODE(mx_get_info(NULL, MX_COUNTERS_VALUES, NULL, 0, values, sizeof values), MX_BAD_ENDPOINT);

    OK(mx_set_endpoint_addr_context(to_a, room));
    OK(mx_get_endpoint_addr_context(to_a, &context));
    CHECK(context == room);
    OK(mx_set_endpoint_addr_context(to_a, NULL));
    OK(mx_get_endpoint_addr_context(to_a, &context));
    CHECK(context == NULL);
    CHECK_CODE(mx_get_endpoint_addr_context(to_a, NULL), MX_BAD_BAD_BAD);
}

static void of_connects(void) {
    mx_request_t request;
    mx_status_t status;
    uint64_t nic;
    uint32_t id;

    OK(mx_get_endpoint_addr(b, &to_b));
    OK(mx_decompose_endpoint_addr(to_b, &nic, &id));
    OK(mx_iconnect(a, nic, id, KEY, 5, room, &request));
    status = end_of(a, request);
    CHECK(status.code == MX_STATUS_BAD_KEY && status.match_info == 5 && status.context == room);
    OK(mx_iconnect(a, nic, id, KEY + 1, 5, room, &request));
    status = end_of(a, request);
    CHECK(status.code == MX_STATUS_SUCCESS && memcmp(&status.source, &to_b, sizeof to_b) == 0);
    CHECK_CODE(mx_connect(a, nic, 2048, KEY, 1, &to_b), MX_BAD_ENDPOINT_ID);
    CHECK_CODE(mx_connect(a, (uint64_t)1 << 33, id, KEY, 1, &to_b), MX_NIC_NOT_FOUND);
    CHECK_CODE(mx_connect(a, nic, id, KEY, 1, NULL), MX_BAD_BAD_BAD);
    CHECK_CODE(mx_iconnect(a, nic, id, KEY, 5, room, NULL), MX_BAD_BAD_BAD);
    /* Nobody answers meanwhile; of oneself the answer is there. */
    CHECK_CODE(mx_connect(a, nic, (id + 1) % 2048 == 7 ? 8 : 7, KEY, 30, &to_a), MX_TIMEOUT);
    OK(mx_decompose_endpoint_addr(to_a, &nic, &id));
    CHECK_CODE(mx_connect(a, nic, id, KEY + 1, 1, &to_a), MX_BAD_CONNECTION_KEY);
    OK(mx_connect(a, nic, id, KEY, 1, &to_a));
}

static void of_requests(void) {
    mx_segment_t many[257], wrong = segment(NULL, 1), of = segment(text, 8), none = segment(NULL, 0);
    mx_request_t request, other, large = NULL;
    mx_status_t status;
    uint32_t result;
    void *context;
    int at;

    for (at = 0; at < 257; at++)
        many[at] = none;
    CHECK_CODE(mx_isend(a, NULL, 1, to_b, 0, NULL, &request), MX_BAD_SEG_LIST);
    CHECK_CODE(mx_isend(a, &wrong, 1, to_b, 0, NULL, &request), MX_BAD_SEG_MEM);
    CHECK_CODE(mx_issend(a, many, 257, to_b, 0, NULL, &request), MX_BAD_SEG_CNT);
    CHECK_CODE(mx_isend(a, &of, 1, to_b, 0, NULL, NULL), MX_BAD_BAD_BAD);
    CHECK_CODE(mx_irecv(a, NULL, 1, 0, 0, NULL, &request), MX_BAD_SEG_LIST);
    CHECK_CODE(mx_irecv(a, &of, 1, 2, 1, NULL, &request), MX_BAD_MATCH_MASK);
    CHECK_CODE(mx_irecv(b, &of, 1, 0, 0, NULL, &request), MX_BAD_MATCHING_FOR_CONTEXT_ID_MASK);
    CHECK_CODE(mx_irecv(a, &of, 1, 0, 0, NULL, NULL), MX_BAD_BAD_BAD);
    CHECK_CODE(mx_test_any(a, 2, 1, &status, &result), MX_BAD_MATCH_MASK);
    CHECK_CODE(mx_wait_any(b, 1, 0, 0, &status, &result), MX_BAD_MATCHING_FOR_CONTEXT_ID_MASK);
    CHECK_CODE(mx_iprobe(b, 0, 0, &status, &result), MX_BAD_MATCHING_FOR_CONTEXT_ID_MASK);
    CHECK_CODE(mx_probe(a, 1, 2, 1, &status, &result), MX_BAD_MATCH_MASK);
    CHECK_CODE(mx_ipeek(a, NULL, &result), MX_BAD_BAD_BAD);
    CHECK_CODE(mx_test(a, NULL, &status, &result), MX_BAD_BAD_BAD);
    CHECK_CODE(mx_context(NULL, &context), MX_BAD_BAD_BAD);

    /* 256 segments without a byte. */
    request = receive_at(b, 8, 0);
    CHECK_CODE(mx_test(a, &request, &status, &result), MX_BAD_REQUEST);
    CHECK_CODE(mx_buffered(b, &request, 1, &result), MX_BAD_REQUEST);
    OK(mx_context(&request, &context));
    CHECK(context == text);
    OK(mx_isend(a, many, 256, to_b, 0, NULL, &other));
    CHECK(end_of(b, request).msg_length == 0);
    CHECK(end_of(a, other).code == MX_STATUS_SUCCESS);
    CHECK_CODE(mx_context(&other, &context), MX_BAD_REQUEST);
    CHECK_CODE(mx_cancel(a, &other, &result), MX_BAD_REQUEST);
    CHECK_CODE(mx_forget(a, &other), MX_BAD_REQUEST);
    CHECK_CODE(mx_set_request_timeout(a, other, 1), MX_BAD_REQUEST);
    CHECK_CODE(mx_ibuffered(a, &other, &result), MX_BAD_REQUEST);
    CHECK_CODE(mx_wait(a, &large, 1, &status, &result), MX_BAD_REQUEST);

    /* A receive that is too short; a cancel before and after. */
    request = receive_at(b, 3, 1);
    OK(mx_cancel(b, &request, &result));
    CHECK(result == 1);
    request = receive_at(b, 3, 1);
    other = send_to(a, to_b, 8, 1);
    status = end_of(b, request);
    CHECK(status.code == MX_STATUS_TRUNCATED && status.msg_length == 8 && status.xfer_length == 3);
    end_of(a, other);
    request = receive_at(b, 3, 1);
    CHECK_CODE(mx_cancel(b, &request, NULL), MX_BAD_BAD_BAD);
    other = send_to(a, to_b, 3, 1);
    OK(mx_wait(b, &request, 0, NULL, NULL));
    end_of(a, other);

    /* A synchronous send is buffered before it ends; a large one is not. */
    OK(mx_issend(a, &of, 1, to_b, 2, NULL, &request));
    OK(mx_buffered(a, &request, MX_INFINITE, &result));
    CHECK(result == 1);
    OK(mx_test(a, &request, &status, &result));
    CHECK(result == 0);
    CHECK_CODE(mx_cancel(a, &request, &result), MX_CANCEL_NOT_SUPPORTED);
    large = send_to(a, to_b, LARGE, 3);
    OK(mx_ibuffered(a, &large, &result));
    CHECK(result == 0);
    OK(mx_forget(a, &large));
    other = receive_at(b, 8, 2);
    end_of(b, other);
    end_of(a, request);
    other = receive_at(b, LARGE, 3);
    end_of(b, other);

    /* Time-outs: of one request, of all later ones. What was offered is no more. */
    request = send_to(a, to_b, LARGE, 4);
    OK(mx_probe(b, MX_INFINITE, 4, MX_MATCH_MASK_NONE, &status, &result));
    OK(mx_set_request_timeout(a, request, 1));
    CHECK(end_of(a, request).code == MX_STATUS_TIMEOUT);
    CHECK(end_of(b, receive_at(b, LARGE, 4)).code == MX_STATUS_ABORTED);
    OK(mx_set_request_timeout(a, NULL, 1));
    OK(mx_issend(a, &of, 1, to_b, 5, NULL, &request));
    CHECK(end_of(a, request).code == MX_STATUS_TIMEOUT);
    OK(mx_set_request_timeout(a, NULL, MX_INFINITE));
    request = receive_at(b, 8, 77);
    OK(mx_set_request_timeout(b, request, 1));
    CHECK(end_of(b, request).code == MX_STATUS_TIMEOUT);

    OK(mx_wait_any(a, 1, 0, 0, &status, &result));
    CHECK(result == 0);
    OK(mx_test_any(a, 0, 0, &status, &result));
    CHECK(result == 0);
    OK(mx_peek(a, 1, &request, &result));
    CHECK(result == 0);
    OK(mx_wakeup(a));
    OK(mx_disable_progression(a));
    OK(mx_reenable_progression(a));
}

static void of_partners(void) {
    mx_endpoint_addr_t wrong = to_b;
    mx_request_t request, other;
    mx_segment_t of = segment(text, 8);
    uint64_t nic;
    uint32_t id;

    wrong.stuff[1] ^= 1;
    CHECK(end_of(a, send_to(a, wrong, 8, 1)).code == MX_STATUS_BAD_SESSION);
    wrong = to_b;
    wrong.stuff[0] = (wrong.stuff[0] & ~(uint64_t)0xffffffff) | 3000;
    CHECK(end_of(a, send_to(a, wrong, 8, 1)).code == MX_STATUS_ENDPOINT_UNKNOWN);
    OK(mx_issend(a, &of, 1, to_b, 1, NULL, &request));
    OK(mx_disconnect(a, to_b));
    CHECK(end_of(a, request).code == MX_STATUS_ENDPOINT_CLOSED);
    OK(mx_decompose_endpoint_addr(to_b, &nic, &id));
    OK(mx_iconnect(a, nic, id, KEY + 1, 0, NULL, &request));
    CHECK(end_of(a, request).code == MX_STATUS_SUCCESS);
    /* Its end, and nobody comes back. */
    OK(mx_issend(a, &of, 1, to_b, 1, NULL, &request));
    OK(mx_issend(a, &of, 1, to_b, 1, NULL, &other));
    OK(mx_progress(a));
    OK(mx_close_endpoint(b));
    CHECK_CODE(mx_close_endpoint(b), MX_BAD_ENDPOINT);
    CHECK_CODE(mx_progress(b), MX_BAD_ENDPOINT);
    b = NULL;
    CHECK(end_of(a, request).code == MX_STATUS_ENDPOINT_CLOSED);
    CHECK(end_of(a, other).code == MX_STATUS_ENDPOINT_CLOSED);
    CHECK(end_of(a, send_to(a, to_b, 8, 1)).code == MX_STATUS_ENDPOINT_UNREACHABLE);
    CHECK_CODE(mx_connect(a, nic, id, KEY + 1, MX_INFINITE, &to_b), MX_CONNECTION_FAILED);
}

/* A child has nothing of its parent's, and may begin anew. */
static void of_fork(void) {
    int status;
    pid_t child = fork();

    CHECK(child >= 0);
    if (child == 0) {
        OK(mx_set_error_handler(MX_ERRORS_RETURN));
        CHECK_CODE(mx_progress(a), MX_NOT_INITIALIZED);
        OK(mx_init());
        CHECK_CODE(mx_progress(a), MX_BAD_ENDPOINT);
        OK(mx_open_endpoint(0, MX_ANY_ENDPOINT, KEY, NULL, 0, &b));
        OK(mx_progress(b));
        OK(mx_finalize());
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    OK(mx_progress(a));
}

/* The default handler prints, and ends the program. */
static void of_handlers(void) {
    char line[256] = "";
    int status, ends[2];
    pid_t child;
    mx_param_t param;

    OK(mx_set_error_handler(note));
    CHECK_CODE(mx_progress(NULL), MX_BAD_ENDPOINT);
    CHECK(last == MX_BAD_ENDPOINT && strstr(said, "mx_progress: no such endpoint") == said);
    memset(&param, 0, sizeof param);
    param.key = MX_PARAM_ERROR_HANDLER;
    param.val.error_handler = MX_ERRORS_RETURN;
    OK(mx_open_endpoint(0, MX_ANY_ENDPOINT, KEY, &param, 1, &b));
    last = MX_SUCCESS;
    CHECK_CODE(mx_ipeek(b, NULL, NULL), MX_BAD_BAD_BAD);
    CHECK(last == MX_SUCCESS);
    OK(mx_close_endpoint(b));
    b = NULL;
    CHECK(pipe(ends) == 0);
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        dup2(ends[1], 2);
        /* It has the handler of its parent. */
        mx_set_error_handler(NULL);
        mx_progress(a);
        _exit(0);
    }
    close(ends[1]);
    CHECK(read(ends[0], line, sizeof line - 1) > 0);
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 1);
    CHECK(strstr(line, "mx_progress: the library is not initialised") == line);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    OK(mx_set_error_handler(MX_ERRORS_RETURN));
    before_init();
    open_both((uint32_t)atoi(argv[1]));
    of_names();
    of_connects();
    of_requests();
    of_partners();
    FORKS(of_fork);
    of_handlers();
    CHECK(strcmp(mx_strerror(MX_SUCCESS), "success") == 0 && strcmp(mx_strerror(77), "no code of MX") == 0);
    CHECK(strcmp(mx_strstatus(MX_STATUS_TRUNCATED), "message truncated") == 0);
    CHECK(strcmp(mx_strstatus(77), "no status of MX") == 0);
    CHECK(MX_ERRORS_RETURN(NULL, MX_BUSY) == MX_BUSY);
    OK(mx_close_endpoint(a));
    OK(mx_finalize());
    puts("codes");
    return 0;
}
