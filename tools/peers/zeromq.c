/* ZeroMQ: one pair of sockets. */
#define LIBRARY "zeromq"
#include "peer.h"

#include <zmq.h>

static void *context, *channel;

static void check(int outcome, const char *what)
{
    if (outcome < 0)
        fail("%s: %s", what, zmq_strerror(zmq_errno()));
}

static const char *peer_version(void)
{
    static char version[32];
    int major, minor, patch;
    zmq_version(&major, &minor, &patch);
    snprintf(version, sizeof version, "%d.%d.%d", major, minor, patch);
    return version;
}

static bool is_ipc(void)
{
    return strcmp(self.setting, "ipc") == 0;
}

static const char *peer_describe(void)
{
    return is_ipc() ? "PAIR over ipc (Unix socket), one I/O thread on the same processor, polling and yielding to it"
                    : "PAIR over tcp on 127.0.0.1, one I/O thread on the same processor, polling and yielding to it";
}

static size_t peer_limit(void)
{
    return SIZE_MAX;
}

static void peer_open(void)
{
    char address[256] = {0};
    size_t len = sizeof address;
    if (!is_ipc() && strcmp(self.setting, "tcp") != 0)
        fail("no such setting: %s", self.setting);
    context = zmq_ctx_new();
    channel = context ? zmq_socket(context, ZMQ_PAIR) : NULL;
    if (!channel)
        fail("no socket: %s", zmq_strerror(zmq_errno()));
    if (self.is_server) {
        /* The system finds a port, or the process number a name that no file has. */
        snprintf(address, sizeof address, "ipc://@cci-peer-%ld", (long)getpid());
        check(zmq_bind(channel, is_ipc() ? address : "tcp://127.0.0.1:*"), "cannot bind");
        check(zmq_getsockopt(channel, ZMQ_LAST_ENDPOINT, address, &len), "no address");
        control_write(address, sizeof address);
    } else {
        if (!control_read(address, sizeof address))
            fail("the other process has ended");
        check(zmq_connect(channel, address), "cannot connect");
    }
}

static inline void peer_send(size_t size)
{
    check(zmq_send(channel, self.out, size, 0), "cannot send");
}

static inline void peer_receive(size_t size)
{
    int got;
    /*
     * Its thread shares the processor. By trial: a round trip of 30 us, of 38 in a call that
     * blocks, of 37 with the thread free to take the other end's processor.
     */
    while ((got = zmq_recv(channel, self.in, self.largest, ZMQ_DONTWAIT)) < 0 && zmq_errno() == EAGAIN)
        sched_yield();
    check(got, "cannot receive");
    if ((size_t)got != size)
        fail("%d bytes came instead of %zu", got, size);
}

static void peer_stream(size_t size, uint64_t count)
{
    stream_by_sends(size, count);
}

static void peer_sink(size_t size, uint64_t count)
{
    sink_by_receives(size, count);
}

/* Its thread works by itself. */
static inline void peer_progress(void)
{
}

static void peer_close(void)
{
    zmq_close(channel);
    zmq_ctx_term(context);
}
