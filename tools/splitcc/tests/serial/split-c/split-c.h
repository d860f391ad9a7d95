/*
 * What is left of Split-C's headers where one process is all there is and the words of the language
 * have been dropped: the C compiler's own meaning of the program.
 */

#ifndef SERIAL_SPLIT_C_H
#define SERIAL_SPLIT_C_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MYPROC 0
#define PROCS 1
#define PROCSLOG 0
#define barrier() ((void)0)
#define sync() ((void)0)
#define store_sync(n) ((void)(n))
#define all_store_sync() ((void)0)
#define on_one
#define for_my_1d(i, n) for ((i) = 0; (i) < (n); (i)++)
#define for_my_2d(i, j, l, m) for ((i) = 0; (i) < (l); (i)++) for ((j) = 0; (j) < (m); (j)++)
#define tolocal(p) (p)
#define toglobal(rank, p) (p)
#define toproc(p) 0
#define all_spread_malloc(count, size) calloc(count, size)
#define all_spread_free(p) free(p)
#define bulk_read(to, from, n) memmove(to, from, n)
#define bulk_get(to, from, n) memmove(to, from, n)
#define bulk_write(to, from, n) memmove(to, from, n)
#define bulk_put(to, from, n) memmove(to, from, n)
#define bulk_store(to, from, n) memmove(to, from, n)
#define all_reduce_to_all_add(v) (v)
#define all_reduce_to_all_dadd(v) (v)
#define all_scan_add(v) (v)

static int fetch_and_add(int *word, int v)
{
    int old = *word;
    *word += v;
    return old;
}

static int cmp_swap(int *word, int expected, int desired)
{
    int old = *word;
    if (old == expected)
        *word = desired;
    return old;
}

int splitc_main(int argc, char **argv);

int main(int argc, char **argv)
{
    (void)fetch_and_add;
    (void)cmp_swap;
    return splitc_main(argc, argv);
}

#endif /* SERIAL_SPLIT_C_H */
