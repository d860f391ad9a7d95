/*
 * What a program does wrong, by its name, on rank 1; the others wait.
 */

#include "../../../compat_check.h"
#include <pthread.h>
#include <signal.h>
#include <split-c/split-c.h>
#include <sys/wait.h>

static void *of_another_thread(void *unused)
{
    barrier();
    return unused;
}

static void do_wrong(const char *what)
{
    sc_global array = all_spread_malloc(PROCS, 8);
    pthread_t thread;
    long word = 1;
    if (strcmp(what, "size") == 0)
        all_spread_malloc((size_t)1 << 50, 8);
    if (strcmp(what, "overflow") == 0)
        all_spread_malloc((size_t)-1, (size_t)-1);
    if (MYPROC == 1) {
        if (strcmp(what, "rank") == 0)
            sc_read(&word, toglobal(99, &word), sizeof word);
        else if (strcmp(what, "null") == 0)
            sc_write(toglobal(0, NULL), &word, sizeof word);
        else if (strcmp(what, "beyond") == 0)
            sc_get(&word, sc_global_add(array, 1 << 30, 8), sizeof word), sync();
        else if (strcmp(what, "constant") == 0)
            sc_put(toglobal(0, "constant"), &word, 4), sync();
        else if (strcmp(what, "store") == 0)
            sc_store(toglobal(0, NULL), &word, sizeof word), sync();
        else if (strcmp(what, "misaligned") == 0)
            fetch_and_add(array + 2, 1);
        else if (strcmp(what, "atomic") == 0)
            fetch_and_add(toglobal(0, (void *)64), 1);
        else if (strcmp(what, "freed") == 0)
            fprintf(stderr, "%s", ""), sc_spread_free(array + 64);
        else if (strcmp(what, "thread") == 0)
            pthread_create(&thread, NULL, of_another_thread, NULL), pthread_join(thread, NULL);
        else if (strcmp(what, "exits") == 0)
            exit(0);
        else if (strcmp(what, "forks") == 0) {
            int status, child = fork();
            if (child == 0)
                exit(0);
            CHECK(waitpid(child, &status, 0) == child && status == 0);
        } else if (strcmp(what, "returns") == 0)
            return;
        else if (strcmp(what, "dies") == 0)
            raise(SIGKILL);
        else if (strcmp(what, "aborts") == 0)
            exit(5);
    }
    if (strcmp(what, "freed") == 0)
        sc_spread_free(array + 64);
    barrier();
    barrier();
    barrier();
}

int splitc_main(int argc, char **argv)
{
    CHECK(argc == 2);
    do_wrong(argv[1]);
    return 0;
}
