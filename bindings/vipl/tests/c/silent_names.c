/*
 * Names and addresses are looked up while the name servers are silent: each call ends at its limit,
 * at most 32 lookups are under way, and a forked child looks up by itself.
 */

#include <sys/wait.h>
#include <vipl.h>

#include "check.h"

#include "../../../silent_names.h"

#define CALLS (MOST_LOOKUPS + 2)

static VIP_NIC_HANDLE nic;

typedef struct {
    VIP_NET_ADDRESS address;
    VIP_UINT8 room[20];
} PLACE;

int getnameinfo(const struct sockaddr *address, socklen_t size, char *name, socklen_t room, char *service,
                socklen_t of_service, int flags) {
    (void)address, (void)size, (void)name, (void)room, (void)service, (void)of_service, (void)flags;
    begin_lookup(1);
    return EAI_AGAIN;
}

static void *look_up(void *reverse) {
    PLACE place;
    char name[100];
    VIP_ULONG length = sizeof(name);
    memset(&place, 0, sizeof(place));
    if (reverse == NULL) {
        CHECK_CODE(VipNSGetHostByName(nic, "silent.example", &place.address, 0), VIP_ERROR_NAMESERVICE);
    } else {
        place.address.HostAddressLen = 4;
        place.address.HostAddress[0] = 192;
        CHECK_CODE(VipNSGetHostByAddr(nic, &place.address, name, &length), VIP_ERROR_NAMESERVICE);
    }
    return NULL;
}

static void find_one(void) {
    PLACE place;
    memset(&place, 0, sizeof(place));
    CHECK_OK(VipNSGetHostByName(nic, "answers.example", &place.address, 0));
    CHECK(place.address.HostAddressLen == 4 && place.address.HostAddress[0] == 192);
    CHECK_CODE(VipNSGetHostByName(nic, "answers.example", &place.address, 1), VIP_ERROR_NAMESERVICE);
}

int main(void) {
    pthread_t threads[CALLS];
    pid_t child;
    int of, ended;
    /* A call without a limit ends the program. */
    alarm(PATIENCE);
    CHECK_OK(VipOpenNic("", &nic));
    CHECK_OK(VipNSInit(nic, NULL));
    find_one();
    lookups = 0;
    for (of = 0; of < CALLS; of++)
        CHECK(pthread_create(&threads[of], NULL, look_up, of % 2 ? &nic : NULL) == 0);
    for (of = 0; of < CALLS; of++)
        CHECK(pthread_join(threads[of], NULL) == 0);
    CHECK(lookups == MOST_LOOKUPS);
    /* Its parent's lookups are not under way there. */
    child = fork();
    if (child == 0) {
        CHECK_OK(VipOpenNic("", &nic));
        CHECK_OK(VipNSInit(nic, NULL));
        find_one();
        _exit(0);
    }
    CHECK(waitpid(child, &ended, 0) == child && ended == 0);
    /* None of them is waited for. */
    CHECK_OK(VipCloseNic(nic));
    puts("within the limit");
    return 0;
}
