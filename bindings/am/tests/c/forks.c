/*
 * A process forks while a thread of it makes and frees bundles. Calls of the children return,
 * though locks of the parent may be held for ever there.
 */

#include <amudp.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { CHILDREN = 200 };

static int is_over;

static void *make_and_free(void *unused)
{
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
        eb_t bundle;
        CHECK_OK(AM_AllocateBundle(AM_SEQ, &bundle));
        CHECK_OK(AM_FreeBundle(bundle));
    }
    return unused;
}

static void child(void)
{
    eb_t bundle;
    /* A call that waits for ever ends by a signal. */
    alarm(PATIENCE);
    if (AM_AllocateBundle(AM_SEQ, &bundle) == AM_ERR_NOT_INIT) {
        /* The thread was in the midst of a change. */
        CHECK_OK(AM_Init());
        CHECK_OK(AM_AllocateBundle(AM_SEQ, &bundle));
    }
    CHECK_OK(AM_FreeBundle(bundle));
    /* The bundle of the thread may be in use for ever here. */
    (void)AM_Terminate();
    _exit(0);
}

int main(void)
{
    pthread_t thread;
    int number;
    CHECK_OK(AM_Init());
    CHECK(pthread_create(&thread, NULL, make_and_free, NULL) == 0);
    for (number = 0; number < CHILDREN; number++) {
        int status;
        pid_t forked = fork();
        CHECK(forked >= 0);
        if (forked == 0) {
            child();
        }
        CHECK(waitpid(forked, &status, 0) == forked && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_OK(AM_Terminate());
    puts("its children go on");
    return 0;
}
