/*
 * Clients that ask a server and hang up: their accepts end at once, and keep no descriptor.
 */

#include <dirent.h>

#include "sides.h"

#define HANG_UPS 50

typedef struct {
    SIDE *side;
    ADDRESS local, remote;
    volatile int is_over;
} CLIENT;

/* Asks until it is over, and never for long. */
static void *ask(void *argument) {
    CLIENT *client = argument;
    VIP_VI_ATTRIBUTES attributes;
    while (!client->is_over) {
        VIP_RETURN code = VipConnectRequest(client->side->vi, &client->local.address, &client->remote.address, 20,
                                            &attributes);
        CHECK(code == VIP_TIMEOUT || code == VIP_NO_MATCH);
    }
    return NULL;
}

static int descriptors(void) {
    DIR *directory = opendir("/proc/self/fd");
    int count = 0;
    CHECK(directory != NULL);
    while (readdir(directory) != NULL) {
        count++;
    }
    closedir(directory);
    return count;
}

/* The client is gone when the server accepts it. */
static void hang_up(SIDE *server, CLIENT *client) {
    VIP_VI_ATTRIBUTES attributes;
    VIP_CONN_HANDLE connection;
    ADDRESS remote;
    pthread_t thread;
    client->is_over = 0;
    CHECK(pthread_create(&thread, NULL, ask, client) == 0);
    CHECK_OK(VipConnectWait(server->nic, &client->remote.address, LIMIT, &remote.address, &attributes, &connection));
    client->is_over = 1;
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_CODE(VipConnectAccept(connection, server->vi), VIP_TIMEOUT);
    CHECK_CODE(VipConnectReject(connection), VIP_INVALID_PARAMETER);
}

int main(void) {
    SIDE server, side;
    CLIENT client;
    char name[32];
    int index, before;
    open_side(&server);
    open_side(&side);
    server.vi = new_vi(&server, VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    side.vi = new_vi(&side, VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    snprintf(name, sizeof(name), "h%d", (int)getpid());
    client.side = &side;
    client.local = address_of(&side, "client", 6);
    client.remote = address_of(&server, name, strlen(name));
    hang_up(&server, &client);
    before = descriptors();
    for (index = 0; index < HANG_UPS; index++) {
        hang_up(&server, &client);
    }
    CHECK(descriptors() == before);
    /* It serves the next one. */
    connect_sides(&server, &side);
    close_sides(&server, &side);
    puts("hung up");
    return 0;
}
