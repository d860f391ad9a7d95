/*
 * Ranks without standard descriptors, or that close them while they run.
 */

#include "../../../compat_check.h"
#include "../../../descriptors.h"
#include <split-c/split-c.h>

static long word;

int splitc_main(int argc, char **argv)
{
    long read = 0;
    (void)argc, (void)argv;
    word = MYPROC + 7;
    barrier();
    close_standard("started");
    sc_read(&read, toglobal((MYPROC + 1) % PROCS, &word), sizeof read);
    CHECK(read == (MYPROC + 1) % PROCS + 7);
    barrier();
    CHECK(all_reduce_to_all_add(1) == PROCS);
    restore_standard("exchanged");
    printf("rank %d of %d\n", MYPROC, PROCS);
    return 0;
}
