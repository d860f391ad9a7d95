/*
 * Sends messages to a server, one after the other comes back. Sleeps while it waits.
 *
 *     cc pingpong_client.c $(pkg-config --cflags --libs vipl) -o pingpong_client
 *     ./pingpong_client 1000 name [HOST]
 */

#include "via_example.h"

static void ask(struct end *end, int count, const char *service, char *host)
{
    union address local, remote = {{0, 0, {0}}};
    struct timespec pause = {0, 10000000};
    VIP_VI_ATTRIBUTES attributes;
    VIP_RETURN code;
    time_t limit = time(NULL) + LIMIT / 1000;
    int number;

    own_address(end, &local);
    name(&local, "client");
    check(VipNSGetHostByName(end->nic, host, &remote.net, 0), host);
    name(&remote, service);
    /* Nobody waits there yet: asked again. */
    while ((code = VipConnectRequest(end->vi, &local.net, &remote.net, LIMIT, &attributes)) == VIP_NO_MATCH) {
        if (time(NULL) > limit) {
            break;
        }
        nanosleep(&pause, NULL);
    }
    check(code, "VipConnectRequest");
    for (number = 0; number < count; number++) {
        send_text(end, number);
        if (receive(end) != number) {
            fprintf(stderr, "another number came back than %d\n", number);
            exit(1);
        }
    }
    send_text(end, count);
    printf("asked %d\n", count);
}

int main(int argc, char **argv)
{
    struct end end;
    int count = argc > 2 ? atoi(argv[1]) : 0;

    if (count < 1) {
        fprintf(stderr, "usage: %s COUNT NAME [HOST]\n", argv[0]);
        return 2;
    }
    open_end(&end, NO_QUEUE);
    ask(&end, count, argv[2], argc > 3 ? argv[3] : "localhost");
    close_end(&end);
    return 0;
}
