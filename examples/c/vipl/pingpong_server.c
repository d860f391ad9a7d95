/*
 * Sends each message of a client back. Its completions come through a completion queue, and it
 * sleeps while it waits.
 *
 *     cc pingpong_server.c $(pkg-config --cflags --libs vipl) -o pingpong_server
 *     ./pingpong_server 1000 name
 */

#include "via_example.h"

static void serve(struct end *end, int count, const char *service)
{
    union address local, remote;
    VIP_VI_ATTRIBUTES attributes;
    VIP_CONN_HANDLE connection;
    int number;

    own_address(end, &local);
    name(&local, service);
    check(VipConnectWait(end->nic, &local.net, LIMIT, &remote.net, &attributes, &connection), "VipConnectWait");
    check(VipConnectAccept(connection, end->vi), "VipConnectAccept");
    for (number = 0; number < count; number++) {
        send_text(end, receive(end));
    }
    /* The client's last word: its side has all. */
    (void)receive(end);
    printf("served %d\n", count);
}

int main(int argc, char **argv)
{
    struct end end;
    int count = argc > 2 ? atoi(argv[1]) : 0;

    if (count < 1) {
        fprintf(stderr, "usage: %s COUNT NAME\n", argv[0]);
        return 2;
    }
    open_end(&end, RECEIVE_QUEUE);
    serve(&end, count, argv[2]);
    close_end(&end);
    return 0;
}
