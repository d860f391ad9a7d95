/*
 * A system whose name servers are silent, for one program: the program's lookup takes the place of
 * the C library's. Names that begin with "silent" are never answered; any other one is 192.0.2.7.
 */

#ifndef SILENT_NAMES_H
#define SILENT_NAMES_H

#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <unistd.h>

/* Lookups that have begun, of either direction. The library makes at most so many at a time. */
#define MOST_LOOKUPS 32
static int lookups;
static pthread_mutex_t of_lookups = PTHREAD_MUTEX_INITIALIZER;

static void begin_lookup(int is_silent) {
    pthread_mutex_lock(&of_lookups);
    lookups++;
    pthread_mutex_unlock(&of_lookups);
    while (is_silent)
        pause();
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
    struct place {
        struct addrinfo info;
        struct sockaddr_in address;
    } *place;

    (void)service, (void)hints;
    begin_lookup(strncmp(name, "silent", 6) == 0);
    place = calloc(1, sizeof *place);
    if (place == NULL)
        return EAI_MEMORY;
    place->address.sin_family = AF_INET;
    place->address.sin_addr.s_addr = htonl(0xc0000207);
    place->info.ai_family = AF_INET;
    place->info.ai_socktype = SOCK_STREAM;
    place->info.ai_addr = (struct sockaddr *)&place->address;
    place->info.ai_addrlen = sizeof place->address;
    *found = &place->info;
    return 0;
}

void freeaddrinfo(struct addrinfo *found) {
    free(found);
}

#endif /* SILENT_NAMES_H */
