/*
 * The last store of a program that ends reaches its owner: behind it comes SCITerminate, or the end
 * of the process alone. Nothing is removed.
 */

#include <unistd.h>

#include "pair.h"

int main(int argc, char **argv) {
    begin(argc, argv);
    there[SIZE - 2] = 1;
    until(1, 1);
    confirm();
    there[SIZE - 3] = 1;
    until(2, 1);
    if (rank == 1) {
        until(0, 77);
        puts("the last one");
        fflush(stdout);
        /* The other one is gone: nobody is to be told of this end. */
        _exit(0);
    }
    confirm();
    puts("the last one");
    fflush(stdout);
    there[0] = 7;
    there[SIZE - 1] = 77;
    if (getenv("BY_EXIT") != NULL)
        exit(0);
    SCITerminate();
    _exit(0);
}
