/* Bare sockets: Unix and TCP streams, UDP; both ends poll. */
#define LIBRARY "sockets"
#include "peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/un.h>
#include <sys/utsname.h>

/* Bytes of a datagram: an IPv4 packet less its headers. */
#define LARGEST_DATAGRAM 65507
/* Bytes of buffers that are asked for; the system's limit may cut it. */
#define BUFFER (4 << 20)
/* What a datagram takes up of a receive buffer beside its bytes, at most. */
#define DATAGRAM_OVERHEAD 2048

static int channel = -1;
static bool is_udp, is_unix;
/* Datagrams on their way at most, so that none is lost. */
static unsigned room;

static void check(int outcome, const char *what)
{
    if (outcome < 0)
        fail("%s: %s", what, strerror(errno));
}

static const char *peer_version(void)
{
    static struct utsname name;
    uname(&name);
    return name.release;
}

static const char *peer_describe(void)
{
    if (is_udp)
        return "UDP, connected sockets on 127.0.0.1, polling, no reliability; streams: acknowledged, none lost";
    return is_unix ? "Unix stream socket, polling" : "TCP, TCP_NODELAY, on 127.0.0.1, polling";
}

static size_t peer_limit(void)
{
    return is_udp ? LARGEST_DATAGRAM : SIZE_MAX;
}

static void enlarge_buffers(void)
{
    int bytes = BUFFER;
    /* The first of each needs a privilege. */
    if (setsockopt(channel, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) != 0)
        setsockopt(channel, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    if (setsockopt(channel, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes) != 0)
        setsockopt(channel, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

static void open_udp(void)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}, there;
    socklen_t len = sizeof here;
    channel = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    check(channel, "no socket");
    enlarge_buffers();
    check(bind(channel, (struct sockaddr *)&here, len), "cannot bind");
    check(getsockname(channel, (struct sockaddr *)&here, &len), "no address");
    control_swap(&here, &there, sizeof here);
    check(connect(channel, (struct sockaddr *)&there, sizeof there), "cannot connect");
    int bytes = 0;
    len = sizeof bytes;
    check(getsockopt(channel, SOL_SOCKET, SO_RCVBUF, &bytes, &len), "no size of the buffer");
    room = (unsigned)bytes / 2;
}

/* Whether a connection is that of the other process: by its port, or the number of the process. */
static bool is_of_peer(int accepted, const struct sockaddr_in *from, in_port_t port)
{
    struct ucred who = {0};
    socklen_t len = sizeof who;
    if (!is_unix)
        return from->sin_port == port && from->sin_addr.s_addr == htonl(INADDR_LOOPBACK);
    return getsockopt(accepted, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 && who.pid == getppid();
}

/* Accepts the other process, and closes strangers. Both have as long as a block may take. */
static int accept_peer(int listener, in_port_t port)
{
    for (;;) {
        struct sockaddr_in from = {0};
        socklen_t len = sizeof from;
        int accepted = accept4(listener, is_unix ? NULL : (struct sockaddr *)&from, is_unix ? NULL : &len, SOCK_CLOEXEC);
        check(accepted, "cannot accept");
        if (is_of_peer(accepted, &from, port))
            return accepted;
        close(accepted);
    }
}

static void open_stream(void)
{
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t own_len = sizeof own;
    struct sockaddr_in tcp = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    struct sockaddr *address = is_unix ? (struct sockaddr *)&local : (struct sockaddr *)&tcp;
    /* The kernel finds the name, or the port. */
    socklen_t len = is_unix ? sizeof local.sun_family : sizeof tcp;
    int listener = socket(is_unix ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check(listener, "no socket");
    if (self.is_server) {
        check(bind(listener, address, len), "cannot bind");
        check(listen(listener, 1), "cannot listen");
        len = is_unix ? sizeof local : sizeof tcp;
        check(getsockname(listener, address, &len), "no address");
        control_write(&len, sizeof len);
        control_write(address, len);
        if (!control_read(&own.sin_port, sizeof own.sin_port))
            fail("the other process has ended");
        channel = accept_peer(listener, own.sin_port);
        close(listener);
    } else {
        if (!control_read(&len, sizeof len) || len > sizeof local || !control_read(address, len))
            fail("the other process has ended");
        channel = listener;
        if (!is_unix) {
            check(bind(channel, (struct sockaddr *)&own, own_len), "cannot bind");
            check(getsockname(channel, (struct sockaddr *)&own, &own_len), "no address");
        }
        control_write(&own.sin_port, sizeof own.sin_port);
        check(connect(channel, address, len), "cannot connect");
    }
    int yes = 1;
    if (!is_unix)
        check(setsockopt(channel, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes), "no TCP_NODELAY");
}

static void peer_open(void)
{
    is_udp = strcmp(self.setting, "udp") == 0;
    is_unix = strcmp(self.setting, "unix") == 0;
    if (is_udp)
        open_udp();
    else if (is_unix || strcmp(self.setting, "tcp") == 0)
        open_stream();
    else
        fail("no such setting: %s", self.setting);
}

/* A stream has no messages of no bytes: one byte stands for them. */
static size_t on_wire(size_t size)
{
    return size == 0 && !is_udp ? 1 : size;
}

static inline void peer_send(size_t size)
{
    size_t all = on_wire(size);
    for (size_t put = 0;;) {
        ssize_t now = send(channel, self.out + put, all - put, MSG_NOSIGNAL);
        if (now < 0 && errno != EAGAIN && errno != EINTR)
            fail("cannot send: %s", strerror(errno));
        put += now > 0 ? (size_t)now : 0;
        if (now >= 0 && put == all)
            return;
    }
}

static inline void peer_receive(size_t size)
{
    size_t all = on_wire(size);
    for (size_t got = 0;;) {
        ssize_t now = recv(channel, self.in + got, all - got, MSG_DONTWAIT);
        if (now < 0 && errno != EAGAIN && errno != EINTR)
            fail("cannot receive: %s", strerror(errno));
        if (now == 0 && all > 0)
            fail("the other process has ended");
        got += now > 0 ? (size_t)now : 0;
        if (now >= 0 && got == all)
            return;
    }
}

/* Half of what fits: each half is acknowledged by an empty datagram. */
static unsigned half_window(size_t size)
{
    size_t fit = room / (size + DATAGRAM_OVERHEAD) / 2;
    return fit < 1 ? 1 : fit > 128 ? 128 : (unsigned)fit;
}

static void peer_stream(size_t size, uint64_t count)
{
    unsigned half = is_udp ? half_window(size) : 0;
    for (uint64_t i = 0; i < count; i++) {
        if (is_udp && i >= 2 * half && i % half == 0)
            peer_receive(0);
        peer_send(size);
    }
    /*
     * The acknowledgements that have not been waited for; the last word is the server's in any
     * case.
     */
    if (is_udp)
        for (uint64_t begun = count / half, heard = count > 2 * half ? (count - 1) / half - 1 : 0; heard < begun; heard++)
            peer_receive(0);
}

static void peer_sink(size_t size, uint64_t count)
{
    unsigned half = is_udp ? half_window(size) : 0;
    for (uint64_t i = 1; i <= count; i++) {
        receive(size);
        if (is_udp && i % half == 0)
            peer_send(0);
    }
}

/* The kernel works by itself. */
static inline void peer_progress(void)
{
}

static void peer_close(void)
{
    close(channel);
}
