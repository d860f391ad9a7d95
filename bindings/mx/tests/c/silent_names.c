/*
 * Hosts are looked up while the name servers are silent: each call ends at its limit, at most 32
 * lookups are under way, and a forked child looks up by itself.
 */

#include <sys/wait.h>

#include "pair.h"

#include "../../../silent_names.h"

#define CALLS (MOST_LOOKUPS + 2)

static void *look_up(void *unused) {
    uint64_t nic;

    (void)unused;
    CHECK_CODE(mx_hostname_to_nic_id("silent.example", &nic), MX_HOST_NOT_FOUND);
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[CALLS];
    uint64_t nic;
    pid_t child;
    int of, ended;

    (void)argc, (void)argv;
    /* A call without a limit ends the program. */
    alarm(PATIENCE);
    OK(mx_init());
    mx_set_error_handler(MX_ERRORS_RETURN);
    OK(mx_hostname_to_nic_id("answers.example", &nic));
    CHECK(nic == 0xc0000207);
    lookups = 0;
    for (of = 0; of < CALLS; of++)
        CHECK(pthread_create(&threads[of], NULL, look_up, NULL) == 0);
    for (of = 0; of < CALLS; of++)
        CHECK(pthread_join(threads[of], NULL) == 0);
    CHECK(lookups == MOST_LOOKUPS);
    /* Its parent's lookups are not under way there. */
    child = fork();
    if (child == 0) {
        OK(mx_init());
        mx_set_error_handler(MX_ERRORS_RETURN);
        OK(mx_hostname_to_nic_id("answers.example", &nic));
        CHECK(nic == 0xc0000207);
        _exit(0);
    }
    CHECK(waitpid(child, &ended, 0) == child && ended == 0);
    /* None of them is waited for. */
    OK(mx_finalize());
    puts("within the limit");
    return 0;
}
