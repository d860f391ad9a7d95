/*
 * A program that does not answer, or late, has the first port of a discriminator: a client finds
 * its server at the next one.
 */

#include "sides.h"

#include <arpa/inet.h>
#include <stdint.h>
#include <sys/socket.h>

/* The first of the ports that a discriminator leads to. */
static uint16_t first_port(const char *discriminator) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *discriminator != 0; discriminator++) {
        hash = (hash ^ (unsigned char)*discriminator) * 0x100000001b3u;
    }
    hash = (hash ^ 0x5a) * 0x100000001b3u;
    return (uint16_t)(16384 + (hash >> 32) % 16384);
}

/* A listener at the first port of a new discriminator; -1: the port is taken. */
static int listen_first(const char *discriminator) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(listener >= 0);
    address.sin_port = htons(first_port(discriminator));
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    if (bind(listener, (struct sockaddr *)&address, sizeof(address)) != 0 || listen(listener, 8) != 0) {
        close(listener);
        return -1;
    }
    return listener;
}

/* Another program's server, which looks after its clients seldom: none of them is its own. */
static void *answer_late(void *argument) {
    static const unsigned char OTHER[] = {1, 0, 0};
    const int *listener = argument;
    int stream = accept(*listener, NULL, NULL);
    CHECK(stream >= 0);
    usleep(300000);
    /* The client may have found its server. */
    (void)send(stream, OTHER, sizeof(OTHER), MSG_NOSIGNAL);
    close(stream);
    return NULL;
}

int main(void) {
    int is_late;
    for (is_late = 0; is_late < 2; is_late++) {
        SIDE server, client;
        WAITING waiting;
        ADDRESS local;
        VIP_VI_ATTRIBUTES attributes;
        pthread_t thread, stranger;
        char name[64];
        int listener = -1, number;
        for (number = 0; listener < 0; number++) {
            CHECK(number < 1000);
            snprintf(name, sizeof(name), "%d.%d.silent", number, (int)getpid());
            listener = listen_first(name);
        }
        open_side(&server);
        open_side(&client);
        server.vi = new_vi(&server, VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
        client.vi = new_vi(&client, VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
        waiting.server = &server;
        waiting.address = address_of(&server, name, strlen(name));
        local = address_of(&client, "client", 6);
        /* Nobody waits: the silent port alone keeps the client. */
        CHECK_CODE(VipConnectRequest(client.vi, &local.address, &waiting.address.address, 300, &attributes),
                   VIP_TIMEOUT);
        if (is_late) {
            /* Clients so far are gone, and in front of the next one. */
            close(accept(listener, NULL, NULL));
            CHECK(pthread_create(&stranger, NULL, answer_late, &listener) == 0);
        }
        CHECK(pthread_create(&thread, NULL, accept_one, &waiting) == 0);
        /* The server may come after the client has asked all ports. */
        CHECK_OK(request_matched(client.vi, &local, &waiting.address, LIMIT));
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK(waiting.code == VIP_SUCCESS);
        if (is_late) {
            CHECK(pthread_join(stranger, NULL) == 0);
        }
        CHECK_OK(VipDisconnect(client.vi));
        CHECK_OK(VipDisconnect(server.vi));
        CHECK_OK(VipDestroyVi(client.vi));
        CHECK_OK(VipDestroyVi(server.vi));
        close_side(&client);
        close_side(&server);
        close(listener);
    }
    puts("connected");
    return 0;
}
