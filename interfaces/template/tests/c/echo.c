/*
 * PROGRAM server NUMBER: serves until its input ends. PROGRAM client NUMBER: sends requests to it,
 * from the next numbers.
 */

#include <echo.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../../bindings/compat_check.h"

#define OK(call) CHECK_CODE(call, 0)

enum { IS_NULL = 1, CLOSED = 2, NOT_OPENED = 3, NAME = 4, TOO_LONG = 5, TIMEOUT = 6, NO_REQUEST = 7 };

/* As long as anything takes here. */
#define LONG (PATIENCE * 1000)

static void *close_after_input(void *echo) {
    while (getchar() != EOF)
        continue;
    OK(echo_close(*(uint64_t *)echo));
    return NULL;
}

static void serve(uint32_t number) {
    uint64_t echo, name;
    pthread_t thread;

    OK(echo_open(number, &echo, &name));
    CHECK((uint32_t)name == number);
    CHECK(pthread_create(&thread, NULL, close_after_input, &echo) == 0);
    CHECK_CODE(echo_serve(echo, LONG), CLOSED);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_CODE(echo_serve(echo, 0), CLOSED);
    puts("served");
}

/* One request and its answer, of which the room takes a part. */
static void request(uint64_t echo, uint64_t to, size_t length) {
    unsigned char out[1024], in[1024];
    uint64_t number;
    size_t at;

    for (at = 0; at < length; at++)
        out[at] = (unsigned char)(at * 7 + length);
    memset(in, 0, sizeof in);
    OK(echo_request(echo, to, out, length, LONG, &number));
    OK(echo_wait(echo, number, in, length / 2, LONG));
    CHECK(memcmp(in, out, length / 2) == 0 && (length < 2 || in[length / 2] == 0));
    CHECK_CODE(echo_wait(echo, number, in, sizeof in, LONG), NO_REQUEST);
}

/* Calls of the child on the parent's echo are refused; one of its own works, before and after. */
static void fork_one(uint64_t parents, uint32_t number, uint64_t server) {
    pid_t child = fork();
    int ended;

    if (child == 0) {
        uint64_t echo, name, request_number;

        CHECK_CODE(echo_request(parents, server, "x", 1, LONG, &request_number), CLOSED);
        OK(echo_open(number, &echo, &name));
        CHECK_CODE(echo_serve(parents, 0), CLOSED);
        CHECK_CODE(echo_close(parents), CLOSED);
        request(echo, server, 100);
        OK(echo_close(echo));
        exit(0);
    }
    CHECK(waitpid(child, &ended, 0) == child && ended == 0);
}

/* What is refused, and credit that runs out at a peer that does not come. */
static void refuse(uint64_t echo, uint64_t own, uint64_t nobody) {
    unsigned char bytes[1025];
    uint64_t number, other;
    int at;

    memset(bytes, 0, sizeof bytes);
    CHECK_CODE(echo_open((uint32_t)own, NULL, &number), IS_NULL);
    CHECK_CODE(echo_open((uint32_t)own, &other, &number), NOT_OPENED);
    CHECK_CODE(echo_open(2048, &other, &number), NOT_OPENED);
    CHECK_CODE(echo_request(echo, nobody, NULL, 0, 0, &number), IS_NULL);
    CHECK_CODE(echo_request(echo, nobody, bytes, 1, 0, NULL), IS_NULL);
    CHECK_CODE(echo_request(echo, own, bytes, 1, 0, &number), NAME);
    CHECK_CODE(echo_request(echo, nobody, bytes, sizeof bytes, 0, &number), TOO_LONG);
    CHECK_CODE(echo_request(echo, nobody, bytes, SIZE_MAX, 0, &number), TOO_LONG);
    CHECK_CODE(echo_request(echo + 1, nobody, bytes, 1, 0, &number), CLOSED);
    for (at = 0; at < 8; at++)
        OK(echo_request(echo, nobody, bytes, 1, 0, &number));
    CHECK_CODE(echo_request(echo, nobody, bytes, 1, 10, &other), TIMEOUT);
    CHECK_CODE(echo_wait(echo, number, bytes, 1, 10), TIMEOUT);
    CHECK_CODE(echo_wait(echo, number, NULL, 1, 0), IS_NULL);
    CHECK(strstr(echo_text(TIMEOUT), "credit") != NULL && strstr(echo_text(0), "success") != NULL);
}

int main(int argc, char **argv) {
    uint64_t echo, own, server;
    uint32_t number;
    size_t length;

    CHECK(argc == 3);
    number = (uint32_t)atoi(argv[2]);
    if (strcmp(argv[1], "server") == 0) {
        serve(number);
        return 0;
    }
    OK(echo_open(number + 1, &echo, &own));
    server = own - 1;
    for (length = 0; length <= 1024; length += 8)
        request(echo, server, length);
    fork_one(echo, number + 2, server);
    request(echo, server, 10);
    refuse(echo, own, own + 2);
    OK(echo_close(echo));
    puts("echoed");
    return 0;
}
