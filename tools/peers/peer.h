/*
 * One program of `cci perf --peers`: two processes on two processors that measure another library
 * on its public API.
 *
 * A program includes this file, says which LIBRARY it measures, and defines the functions declared
 * below. Everything else is here: the two processes, where they stay, what is said with `cci perf`
 * (docs/design/peers.md), the loops and the clock.
 *
 * Between blocks both processes sleep in read(): the client on its standard input, the server on
 * the control socket between the two. A library that needs a launcher (MPI) defines
 * PEER_IS_LAUNCHED and peer_rank(); of all others, this file makes the second process, before the
 * library has been touched.
 */
#ifndef CCI_PEER_H
#define CCI_PEER_H

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Version of what is said with `cci perf`. */
#define PEER_PROTOCOL 1
/*
 * A block that takes so long has lost its way, seconds: `cci perf` gives up earlier, this is for
 * when it is gone.
 */
#define PEER_PATIENCE 60
/*
 * Bytes of messages on their way in a stream, at most, where the program keeps a window; and
 * messages.
 */
#define PEER_WINDOW_BYTES (4u << 20)
#define PEER_WINDOW 64u

/* This process of the two. */
static struct {
    bool is_server;         /* answers; the client takes the time */
    int control;            /* stream socket to the other process; nothing measured travels on it */
    const char *setting;    /* which of the library's ways is asked for */
    size_t largest;         /* bytes of the largest message of the run */
    bool reads;             /* every byte of each message that is received is read */
    unsigned char *out;     /* `largest` bytes to send from, page-aligned, every page touched; in an echo the same as `in` */
    unsigned char *unchanged; /* what `out` is otherwise */
    unsigned char *in;      /* `largest` bytes to receive into */
} self;

/* What a program defines. All end the process by fail() when something fails. */

/* Begins, in both processes: connected when it returns. */
static void peer_open(void);
/* Version of the library, one line. */
static const char *peer_version(void);
/* What it runs in and how, for the report, one line. */
static const char *peer_describe(void);
/* Bytes that a message may have at most. */
static size_t peer_limit(void);
/* Sends from self.out; the buffer may be changed when it returns. */
static inline void peer_send(size_t size);
/* Waits for a message of that size, in self.in or where the library has put it. */
static inline void peer_receive(size_t size);
/* Sends `count` messages, as many in flight as suits the library. */
static void peer_stream(size_t size, uint64_t count);
/* Receives as many. */
static void peer_sink(size_t size, uint64_t count);
/* Lets the library work, where it has no threads that do. */
static inline void peer_progress(void);
/* Ends. */
static void peer_close(void);
#ifdef PEER_IS_LAUNCHED
/* Which of the two processes this is, 0 or 1, before anything is begun. */
static int peer_rank(void);
/* The name of the client's socket, from the client to the server, through the library. */
static void peer_tell_name(char *name, size_t len);
#endif

/* Ends the process for a reason, which `cci perf` shows. */
__attribute__((format(printf, 1, 2), noreturn)) static void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fflush(stdout);
    if (!self.is_server)
        printf("error ");
    vfprintf(self.is_server ? stderr : stdout, format, arguments);
    fputc('\n', self.is_server ? stderr : stdout);
    va_end(arguments);
    fflush(NULL);
    _exit(1);
}

static inline void *must_allocate(size_t size)
{
    void *memory = NULL;
    if (posix_memalign(&memory, 4096, size ? size : 1) != 0)
        fail("no memory for %zu bytes", size);
    memset(memory, 1, size);
    return memory;
}

/* All of it, over the control socket; false when the other process has ended. */
static inline bool control_read(void *bytes, size_t size)
{
    for (size_t got = 0; got < size;) {
        ssize_t now = read(self.control, (char *)bytes + got, size - got);
        if (now == 0 || (now < 0 && errno != EINTR))
            return false;
        got += now > 0 ? (size_t)now : 0;
    }
    return true;
}

static inline void control_write(const void *bytes, size_t size)
{
    for (size_t put = 0; put < size;) {
        ssize_t now = send(self.control, (const char *)bytes + put, size - put, MSG_NOSIGNAL);
        if (now < 0 && errno != EINTR)
            fail("the other process has ended");
        put += now > 0 ? (size_t)now : 0;
    }
}

/* Gives the other process `size` bytes and takes its own, as libraries need for their addresses. */
static inline void control_swap(const void *ours, void *theirs, size_t size)
{
    control_write(ours, size);
    if (!control_read(theirs, size))
        fail("the other process has ended");
}

/* Messages of that size in flight. */
static inline unsigned window_of(size_t size)
{
    size_t fit = PEER_WINDOW_BYTES / (size ? size : 1);
    return fit < 4 ? 4 : fit > PEER_WINDOW ? PEER_WINDOW : (unsigned)fit;
}

/* Reads a received message, if that is asked for. */
static inline void read_bytes(const unsigned char *bytes, size_t size)
{
    uint64_t sum = 0;
    if (!self.reads)
        return;
    for (; size >= sizeof sum; size -= sizeof sum, bytes += sizeof sum) {
        uint64_t word;
        memcpy(&word, bytes, sizeof word);
        sum += word;
    }
    while (size-- > 0)
        sum += *bytes++;
    /* The compiler must believe that someone wants it. */
    __asm__ volatile("" : : "r"(sum));
}

static inline void receive(size_t size)
{
    peer_receive(size);
    read_bytes(self.in, size);
}

/* For libraries that keep their own window: one message after the other. */
static inline void stream_by_sends(size_t size, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        peer_send(size);
}

static inline void sink_by_receives(size_t size, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        receive(size);
}

static inline uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/*
 * In a ping-pong a process sends from memory that does not change, in an echo what it has received.
 * A stream has as many messages in flight as suits the library. One way sends one after the other.
 */
enum what { PINGPONG, ECHO, STREAM, ONEWAY };

struct block {
    uint64_t what, size, count, reads;
};

static inline bool is_exchange(const struct block *block)
{
    return block->what == PINGPONG || block->what == ECHO;
}

/* Gets this process ready for a block. */
static void prepare(const struct block *block)
{
    alarm(PEER_PATIENCE);
    self.reads = block->reads;
    self.out = block->what == ECHO ? self.in : self.unchanged;
}

/*
 * After a block: works for the library until the server has nothing left to do and sleeps. An idle
 * process must not take a processor from those that are measured.
 */
static void await_rest(void)
{
    char rest;
    ssize_t got;
    while ((got = recv(self.control, &rest, 1, MSG_DONTWAIT)) != 1) {
        if (got == 0 || (errno != EAGAIN && errno != EINTR))
            fail("the other process has ended");
        peer_progress();
    }
}

/*
 * The client's part of a block; nanoseconds. An exchange goes before, untimed: it finds the other
 * process awake, and warms the library as the talk between blocks, which goes through the library,
 * does for CCI.
 */
static uint64_t run_block(const struct block *block)
{
    prepare(block);
    control_write(block, sizeof *block);
    peer_send(block->size);
    receive(block->size);
    uint64_t begin = now_ns();
    if (is_exchange(block)) {
        for (uint64_t i = 0; i < block->count; i++) {
            peer_send(block->size);
            receive(block->size);
        }
    } else {
        if (block->what == STREAM)
            peer_stream(block->size, block->count);
        else
            stream_by_sends(block->size, block->count);
        peer_receive(0); /* everything has arrived */
    }
    uint64_t took = now_ns() - begin;
    await_rest();
    alarm(0);
    return took;
}

/* The server's. */
static void serve_block(const struct block *block)
{
    prepare(block);
    receive(block->size);
    peer_send(block->size);
    if (is_exchange(block)) {
        for (uint64_t i = 0; i < block->count; i++) {
            receive(block->size);
            peer_send(block->size);
        }
    } else {
        if (block->what == STREAM)
            peer_sink(block->size, block->count);
        else
            sink_by_receives(block->size, block->count);
        peer_send(0);
    }
    control_write("", 1);
    alarm(0);
}

/* What a line asks for: "block pingpong SIZE COUNT" or "... COUNT read"; or another word. */
static bool parse_block(const char *line, struct block *block)
{
    static const char *const names[] = {"pingpong", "echo", "stream", "oneway"};
    char what[16], reads[16] = "";
    if (sscanf(line, "block %15s %" SCNu64 " %" SCNu64 " %15s", what, &block->size, &block->count, reads) < 3)
        return false;
    block->reads = strcmp(reads, "read") == 0;
    for (block->what = PINGPONG; block->what <= ONEWAY; block->what++)
        if (strcmp(what, names[block->what]) == 0)
            return block->reads || reads[0] == '\0';
    return false;
}

static void answer_lines(void)
{
    char line[128];
    printf("peer %d\t%s\t%s\t%s\n", PEER_PROTOCOL, LIBRARY, peer_version(), peer_describe());
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) && strcmp(line, "end\n") != 0) {
        struct block block;
        if (!parse_block(line, &block))
            fail("no such request: %s", line);
        if (block.size > peer_limit() || block.size > self.largest)
            printf("cannot carry a message of %" PRIu64 " bytes: at most %zu\n", block.size,
                   self.largest < peer_limit() ? self.largest : peer_limit());
        else
            printf("ns %" PRIu64 "\n", run_block(&block));
        fflush(stdout);
    }
#ifndef PEER_IS_LAUNCHED
    /* From here on the server's end is as it should be. */
    signal(SIGCHLD, SIG_DFL);
#endif
    static const struct block last;
    control_write(&last, sizeof last);
}

static void serve_blocks(void)
{
    struct block block;
    while (control_read(&block, sizeof block) && block.count > 0)
        serve_block(&block);
}

static void say_and_exit(const char *text)
{
    /* Only what is safe in a signal handler. */
    ssize_t ignored = write(self.is_server ? 2 : 1, text, strlen(text));
    (void)ignored;
    _exit(1);
}

static void on_alarm(int signal)
{
    (void)signal;
    say_and_exit("error a block did not end: a message was lost, or the other process hangs\n");
}

#ifndef PEER_IS_LAUNCHED
static void on_child(int signal)
{
    (void)signal;
    say_and_exit("error the other process has died\n");
}
#endif

static void handle(int signal, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART | SA_NOCLDSTOP};
    sigaction(signal, &action, NULL);
}

static void stay_on(const char *processor)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(strtoul(processor, NULL, 10), &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        fail("cannot stay on processor %s: %s", processor, strerror(errno));
}

/*
 * The control socket, between processes that a launcher started: the library is up and carries the
 * name.
 */
#ifdef PEER_IS_LAUNCHED
static void meet(void)
{
    struct sockaddr address = {.sa_family = AF_UNIX};
    char name[64] = {0};
    socklen_t len = sizeof address.sa_family;
    struct { sa_family_t family; char name[64]; } full = {.family = AF_UNIX};
    int socket_here = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (!self.is_server) {
        /* An address of the family alone: the kernel finds a name that no file has. */
        len = sizeof full;
        if (bind(socket_here, &address, sizeof address.sa_family) != 0 || listen(socket_here, 1) != 0 ||
            getsockname(socket_here, (struct sockaddr *)&full, &len) != 0)
            fail("no control socket: %s", strerror(errno));
        name[0] = (char)(len - sizeof full.family);
        memcpy(name + 1, full.name, (size_t)name[0]);
    }
    peer_tell_name(name, sizeof name);
    if (self.is_server) {
        memcpy(full.name, name + 1, (size_t)name[0]);
        len = (socklen_t)(sizeof full.family + (size_t)name[0]);
        if (connect(socket_here, (struct sockaddr *)&full, len) != 0)
            fail("no control socket: %s", strerror(errno));
        self.control = socket_here;
    } else {
        self.control = accept(socket_here, NULL, NULL);
        close(socket_here);
    }
}
#endif

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: %s SETTING CLIENT-PROCESSOR SERVER-PROCESSOR LARGEST; `cci perf --peers` starts this\n", argv[0]);
        return 2;
    }
    self.setting = argv[1];
    self.largest = strtoul(argv[4], NULL, 10);
    self.control = -1;
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#ifdef PEER_IS_LAUNCHED
    self.is_server = peer_rank() == 1;
#else
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
        fail("no control socket: %s", strerror(errno));
    handle(SIGCHLD, on_child);
    pid_t parent = getpid();
    pid_t child = fork();
    if (child < 0)
        fail("no second process: %s", strerror(errno));
    self.is_server = child == 0;
    self.control = sockets[self.is_server];
    close(sockets[!self.is_server]);
    if (self.is_server) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            return 1;
    }
#endif
    handle(SIGALRM, on_alarm);
    stay_on(argv[self.is_server ? 3 : 2]);
    self.out = self.unchanged = must_allocate(self.largest);
    self.in = must_allocate(self.largest);
    alarm(PEER_PATIENCE);
    peer_open();
#ifdef PEER_IS_LAUNCHED
    meet();
#endif
    alarm(0);
    if (self.is_server)
        serve_blocks();
    else
        answer_lines();
    alarm(PEER_PATIENCE);
    peer_close();
#ifndef PEER_IS_LAUNCHED
    if (!self.is_server)
        waitpid(child, NULL, 0);
#endif
    return 0;
}

#endif
