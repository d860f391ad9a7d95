/* nng: one pair of sockets. */
#define LIBRARY "nng"
#include "peer.h"

#include <nng/nng.h>
#include <nng/protocol/pair0/pair.h>

static nng_socket channel;

static void check(int outcome, const char *what)
{
    if (outcome != 0)
        fail("%s: %s", what, nng_strerror(outcome));
}

static const char *peer_version(void)
{
    return nng_version();
}

static bool is_ipc(void)
{
    return strcmp(self.setting, "ipc") == 0;
}

static const char *peer_describe(void)
{
    return is_ipc() ? "pair0 over an abstract Unix socket, its threads on the same processor, blocking calls"
                    : "pair0 over tcp on 127.0.0.1, its threads on the same processor, blocking calls";
}

static size_t peer_limit(void)
{
    return SIZE_MAX;
}

static void listen_and_tell(char *address, size_t len)
{
    nng_listener listener;
    /* The process number makes a name that no file has; the system finds a port. */
    snprintf(address, len, "abstract://cci-peer-%ld", (long)getpid());
    check(nng_listen(channel, is_ipc() ? address : "tcp://127.0.0.1:0", &listener, 0), "cannot listen");
    if (!is_ipc()) {
        int port = 0;
        check(nng_listener_get_int(listener, NNG_OPT_TCP_BOUND_PORT, &port), "no port");
        snprintf(address, len, "tcp://127.0.0.1:%d", port);
    }
    control_write(address, len);
}

static void peer_open(void)
{
    char address[64] = {0};
    if (!is_ipc() && strcmp(self.setting, "tcp") != 0)
        fail("no such setting: %s", self.setting);
    check(nng_pair0_open(&channel), "no socket");
    check(nng_socket_set_size(channel, NNG_OPT_RECVMAXSZ, 0), "no messages of every size");
    if (self.is_server) {
        listen_and_tell(address, sizeof address);
    } else {
        if (!control_read(address, sizeof address))
            fail("the other process has ended");
        check(nng_dial(channel, address, NULL, 0), "cannot connect");
    }
}

static inline void peer_send(size_t size)
{
    check(nng_send(channel, self.out, size, 0), "cannot send");
}

static inline void peer_receive(size_t size)
{
    size_t got = self.largest;
    /*
     * Its threads share the processor. By trial: a round trip of 51 us, of 58 with polling and
     * yielding, of 54 with the threads free to take the other end's processor.
     */
    check(nng_recv(channel, self.in, &got, 0), "cannot receive");
    if (got != size)
        fail("%zu bytes came instead of %zu", got, size);
}

static void peer_stream(size_t size, uint64_t count)
{
    stream_by_sends(size, count);
}

static void peer_sink(size_t size, uint64_t count)
{
    sink_by_receives(size, count);
}

/* Its threads work by themselves. */
static inline void peer_progress(void)
{
}

static void peer_close(void)
{
    nng_close(channel);
}
