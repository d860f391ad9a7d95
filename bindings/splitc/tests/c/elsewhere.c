/*
 * A second file of a program, and one with a main of its own.
 */

#define SPLITC_OWN_MAIN
#include "../../../compat_check.h"
#include <split-c/split-c.h>

static int program(int argc, char **argv)
{
    CHECK(argc == 1 && argv[0]);
    CHECK(all_reduce_to_all_add(1) == PROCS);
    return MYPROC == 0 ? 0 : 0;
}

int main(int argc, char **argv)
{
    int status = splitc_run(argc, argv, program);
    printf("ended %d\n", status);
    return status;
}
