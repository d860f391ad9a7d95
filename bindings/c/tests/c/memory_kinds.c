/*
 * RMA between two processes on memory of one kind, which the argument names: huge (pages of 2 MiB
 * that the system has set aside), transparent (pages that it may join), high (at 2^52, where the
 * processor has such addresses), small (ordinary pages, and nothing may be locked). Prints
 * "skipped" where the system has no such memory.
 */

#define _GNU_SOURCE
#include "check.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE ((size_t)2 << 20)
#define SIZE (2 * PAGE)
/* Not aligned, and across the pages' border. */
#define AT 13
#define LENGTH (SIZE - 2 * AT)

static unsigned char *mapped(void *hint, int flags)
{
    void *memory = mmap(hint, SIZE + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static unsigned char *memory_of(const char *kind)
{
    unsigned char *memory;

    if (strcmp(kind, "huge") == 0) {
        return mapped(NULL, MAP_HUGETLB);
    }
    memory = mapped(strcmp(kind, "high") == 0 ? (void *)((uintptr_t)1 << 52) : NULL, 0);
    if (memory && strcmp(kind, "transparent") == 0) {
        memory += (PAGE - (uintptr_t)memory % PAGE) % PAGE;
        return madvise(memory, SIZE, MADV_HUGEPAGE) == 0 ? memory : NULL;
    }
    /* Below its hint the system has no such addresses. */
    if (strcmp(kind, "high") == 0 && (uintptr_t)memory < (uintptr_t)1 << 47) {
        return NULL;
    }
    return memory;
}

static void fill(unsigned char *memory, int seed)
{
    size_t at;
    for (at = 0; at < SIZE; at++) {
        memory[at] = (unsigned char)(at * 31 + at / 256 + (size_t)seed);
    }
}

static int is_filled(const unsigned char *memory, int seed)
{
    size_t at;
    for (at = AT; at < AT + LENGTH; at++) {
        if (memory[at] != (unsigned char)(at * 31 + at / 256 + (size_t)seed)) {
            return 0;
        }
    }
    return 1;
}

static void expect_message(cci_endpoint_t *endpoint, const char *text)
{
    cci_event_t *event = expect(endpoint, CCI_EVENT_RECV);
    CHECK(event->recv.len == strlen(text) && memcmp(event->recv.ptr, text, event->recv.len) == 0);
    CHECK_OK(cci_return_event(event));
}

static void serve(unsigned char *memory, int uri_to)
{
    cci_endpoint_t *endpoint;
    cci_connection_t *connection;
    cci_rma_handle_t *handle;
    cci_event_t *event;
    char *uri;

    start();
    endpoint = open_endpoint(NULL);
    uri = uri_of(endpoint);
    CHECK(write(uri_to, uri, strlen(uri)) == (ssize_t)strlen(uri));
    CHECK(close(uri_to) == 0);
    free(uri);
    fill(memory, 1);
    CHECK_OK(cci_rma_register(endpoint, memory, SIZE, CCI_FLAG_READ | CCI_FLAG_WRITE, &handle));
    event = expect(endpoint, CCI_EVENT_CONNECT_REQUEST);
    CHECK_OK(cci_accept(event, NULL));
    CHECK_OK(cci_return_event(event));
    event = expect(endpoint, CCI_EVENT_ACCEPT);
    CHECK_STATUS((int)event->accept.status, CCI_SUCCESS);
    connection = event->accept.connection;
    CHECK_OK(cci_return_event(event));
    CHECK_OK(cci_send(connection, handle, sizeof(*handle), NULL, CCI_FLAG_SILENT));
    expect_message(endpoint, "written");
    CHECK(is_filled(memory, 2));
    CHECK_OK(cci_rma_deregister(endpoint, handle));
    CHECK_OK(cci_send(connection, "end", 3, MARK(1), 0));
    expect_sent(endpoint, CCI_SUCCESS, MARK(1));
    CHECK_OK(cci_destroy_endpoint(endpoint));
    CHECK_OK(cci_finalize());
}

static void ask(unsigned char *memory, const char *uri)
{
    cci_endpoint_t *endpoint;
    cci_connection_t *connection;
    cci_rma_handle_t *here;
    struct cci_rma_handle there;
    cci_event_t *event;

    start();
    endpoint = open_endpoint(NULL);
    CHECK_OK(cci_connect(endpoint, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL));
    event = expect(endpoint, CCI_EVENT_CONNECT);
    CHECK_STATUS((int)event->connect.status, CCI_SUCCESS);
    connection = event->connect.connection;
    CHECK_OK(cci_return_event(event));
    event = expect(endpoint, CCI_EVENT_RECV);
    CHECK(event->recv.len == sizeof(there));
    memcpy(&there, event->recv.ptr, sizeof(there));
    CHECK_OK(cci_return_event(event));
    CHECK_OK(cci_rma_register(endpoint, memory, SIZE, 0, &here));
    CHECK_OK(cci_rma(connection, NULL, 0, here, AT, &there, AT, LENGTH, MARK(2), CCI_FLAG_READ));
    expect_sent(endpoint, CCI_SUCCESS, MARK(2));
    CHECK(is_filled(memory, 1));
    fill(memory, 2);
    CHECK_OK(cci_rma(connection, "written", 7, here, AT, &there, AT, LENGTH, MARK(3), CCI_FLAG_WRITE));
    expect_sent(endpoint, CCI_SUCCESS, MARK(3));
    expect_message(endpoint, "end");
    CHECK_OK(cci_rma_deregister(endpoint, here));
    CHECK_OK(cci_destroy_endpoint(endpoint));
    CHECK_OK(cci_finalize());
}

int main(int argc, char **argv)
{
    const struct rlimit none = {0, 0};
    unsigned char *memory;
    char uri[512];
    size_t length = 0;
    ssize_t got;
    int ends[2];
    int status;
    pid_t child;

    CHECK(argc == 2);
    CHECK(strcmp(argv[1], "small") != 0 || setrlimit(RLIMIT_MEMLOCK, &none) == 0);
    CHECK(pipe(ends) == 0);
    child = fork();
    CHECK(child >= 0);
    memory = memory_of(argv[1]);
    if (!memory) {
        if (child > 0)
            kill(child, SIGKILL);
        return child == 0 ? 0 : (waitpid(child, &status, 0), puts("skipped") < 0);
    }
    if (child == 0) {
        CHECK(close(ends[0]) == 0);
        serve(memory, ends[1]);
        return 0;
    }
    CHECK(close(ends[1]) == 0);
    while ((got = read(ends[0], uri + length, sizeof(uri) - 1 - length)) > 0) {
        length += (size_t)got;
    }
    if (length == 0) {
        /* The other process got what there was of such memory. */
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        return puts("skipped") < 0;
    }
    uri[length] = '\0';
    ask(memory, uri);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    return 0;
}
