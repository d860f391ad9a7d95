/*
 * Two equals, each with this program: each writes letters into the other's memory by RDMA with
 * immediate data, and sleeps on one completion queue until it has got one.
 *
 *     cc mailbox.c $(pkg-config --cflags --libs vipl) -o mailbox
 *     ./mailbox 100 left right [HOST of right] & ./mailbox 100 right left [HOST of left]
 */

#include "via_example.h"

/* Where letters for an end are written: one place for odd numbers, one for even ones. */
struct box {
    char *places;
    VIP_MEM_HANDLE handle;
};

static void meet(struct end *end, const char *own, const char *other, char *host)
{
    union address local, remote = {{0, 0, {0}}};
    VIP_VI_ATTRIBUTES attributes;

    own_address(end, &local);
    name(&local, own);
    check(VipNSGetHostByName(end->nic, host, &remote.net, 0), host);
    name(&remote, other);
    check(VipConnectPeerRequest(end->vi, &local.net, &remote.net, LIMIT), "VipConnectPeerRequest");
    check(VipConnectPeerWait(end->vi, &attributes), "VipConnectPeerWait");
}

/* Tells the other end of this one's box, and returns the other's. */
static struct box exchange_boxes(struct end *end)
{
    struct box box = {end->memory->box[0], end->handle};
    long index;

    memcpy(end->memory->out, &box, sizeof(box));
    start_send(end, 0, NULL, 0);
    (void)take(end, 0);
    index = take(end, 1);
    memcpy(&box, end->memory->in[index], sizeof(box));
    post_receive(end, &end->memory->receive[index]);
    return box;
}

static void correspond(struct end *end, struct box other, int count)
{
    char expected[BYTES];
    int number;

    for (number = 1; number <= count; number++) {
        snprintf(end->memory->out, BYTES, "letter %d", number);
        start_send(end, number, other.places + (number & 1) * BYTES, other.handle);
        (void)take(end, 0);
        /* The bytes are in place; the receive brings the number alone. */
        post_receive(end, &end->memory->receive[take(end, 1)]);
        snprintf(expected, BYTES, "letter %d", number);
        if (strcmp(end->memory->box[number & 1], expected) != 0) {
            fprintf(stderr, "\"%s\" lies where \"%s\" should\n", end->memory->box[number & 1], expected);
            exit(1);
        }
    }
    printf("exchanged %d\n", count);
}

int main(int argc, char **argv)
{
    struct end end;
    int count = argc > 3 ? atoi(argv[1]) : 0;

    if (count < 1) {
        fprintf(stderr, "usage: %s COUNT OWN_NAME OTHER_NAME [HOST]\n", argv[0]);
        return 2;
    }
    open_end(&end, BOTH_QUEUES);
    meet(&end, argv[2], argv[3], argc > 4 ? argv[4] : "localhost");
    correspond(&end, exchange_boxes(&end), count);
    close_end(&end);
    return 0;
}
