/*
 * Operands with side effects, where blocks have a size of run time: each effect happens once.
 */

#include <stdio.h>
#include <stdlib.h>
#include <split-c/split-c.h>

#define CHECK(x)                                                                                   \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            fprintf(stderr, "%s:%d: rank %d: not so: %s\n", __FILE__, __LINE__, MYPROC, #x);       \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static int calls;

static int counted(int value)
{
    calls++;
    return value;
}

static void *spread same(void *spread p)
{
    calls++;
    return p;
}

/* Block k of a fresh array holds 100 * k, 100 * k + 1, ... */
static void *spread filled(int q)
{
    int i, k;
    int (*spread blocks)[q] = all_spread_malloc(4 * PROCS, q * sizeof(int));
    for_my_1d(k, 4 * PROCS)
        for (i = 0; i < q; i++)
            blocks[k][i] = 100 * k + i;
    barrier();
    return blocks;
}

static void arithmetic(int q)
{
    int (*spread first)[q] = filled(q);
    int (*spread y)[q] = first;
    int (*spread x)[q] = first + 2;
    calls = 0;
    CHECK(y++[1][0] == 100 && y == first + 1);
    CHECK((y++)[0][1] == 101 && y == first + 2);
    CHECK((*(y++ + 1))[0] == 300 && y == first + 3);
    CHECK((*(1 + --y))[1] == 301 && y == first + 2);
    CHECK((*(y-- - 1))[0] == 100 && y == first + 1);
    CHECK(y++ < x && y == x);
    CHECK(!(y++ < x) && y == first + 3);
    CHECK(x <= y-- && y == x && --y < x && y == first + 1);
    CHECK(y++ - x == -1 && y == x);
    CHECK(x - --y == 1 && y == first + 1);
    CHECK((y += 2) == first + 3 && (y -= counted(1)) == first + 2 && calls == 1);
    CHECK((y++, y--, ++y, y) == first + 3);
    calls = 0;
    CHECK((*((int (*spread)[q])same(first) + 2))[1] == 201 && calls == 1);
    CHECK(((int (*spread)[q])same(first))[counted(3)][counted(1)] == 301 && calls == 4);
    CHECK((int (*spread)[q])same(first) - (int (*spread)[q])same(x) == -2 && calls == 6);
    CHECK((int (*spread)[q])same(first) < (int (*spread)[q])same(x) && calls == 8);
    barrier();
    all_spread_free(first);
}

static void addresses(int q)
{
    int (*spread first)[q] = filled(q);
    int (*spread y)[q] = first + MYPROC;
    int (*own)[q], *word, plain[2][q], (*p)[q] = plain;
    int (*global g)[q] = (int (*global)[q])first;
    own = tolocal(y++);
    CHECK((*own)[1] == 100 * MYPROC + 1 && y == first + MYPROC + 1);
    word = tolocal(*--y);
    CHECK(word == *own && y == first + MYPROC);
    own = (int (*)[q])y++;
    CHECK((*own)[0] == 100 * MYPROC && y == first + MYPROC + 1);
    CHECK(toproc(y--) == (MYPROC + 1) % PROCS && y == first + MYPROC);
    g = (int (*global)[q])y++;
    CHECK((*g)[1] == 100 * MYPROC + 1 && y == first + MYPROC + 1);
    g = toglobal(MYPROC, p++);
    CHECK(p == plain + 1 && g == toglobal(MYPROC, plain));
    g = (int (*global)[q])p--;
    CHECK(p == plain && tolocal(g++) == plain + 1 && g - toglobal(MYPROC, plain) == 2);
    CHECK((--g)[-1] == toglobal(MYPROC, plain[0]) && tolocal(g) == plain + 1);
    barrier();
    all_spread_free(first);
}

/* Places of the global address space that hold pointers to such blocks. */
static void pointers_elsewhere(int q)
{
    int (*spread first)[q] = filled(q);
    int (*spread table[4])[q], (*spread got)[q];
    int (*spread *global far)[q], (*spread *global start)[q];
    int i;
    for (i = 0; i < 4; i++)
        table[i] = first + i;
    start = far = (void *global)toglobal(MYPROC, table);
    CHECK((*far++)[1][0] == 100 && far == start + 1);
    CHECK(*far++ == first + 1 && far == start + 2);
    *far++ = first;
    CHECK(table[2] == first && far == start + 3);
    (*--far) += 1;
    CHECK(table[2] == first + 1 && far == start + 2);
    (*far++)++;
    CHECK(table[2] == first + 2 && far == start + 3);
    got := *far--;
    sync();
    CHECK(got == first + 3 && far == start + 2);
    *far++ := first + 1;
    sync();
    CHECK(table[2] == first + 1 && far == start + 3);
    *far-- :- first;
    all_store_sync();
    CHECK(table[3] == first && far == start + 2);
    calls = 0;
    table[counted(1)]++;
    CHECK(calls == 1 && table[1] == first + 2);
    barrier();
    all_spread_free(first);
}

/* Variables that have no address. */
static void registers(int q)
{
    register int (*spread y)[q], (*spread z)[q];
    register int *spread w;
    y = z = filled(q);
    w = (int *spread)(void *spread)z;
    CHECK(*w++ == 0 && *w == (PROCS > 1 ? 100 : 1) && (w += 1) - 2 == (int *spread)(void *spread)z);
    CHECK(y++ == z && (*y++)[0] == 100 && --y == z + 1 && (y -= 1) == z);
    barrier();
    all_spread_free(y);
}

/* An index within an index within an index: no text grows beyond bounds. */
static void nested()
{
    int n = 8, i;
    int *spread s = all_spread_malloc(n, sizeof(int));
    for_my_1d(i, n)
        s[i] = (i + 1) % 8;
    barrier();
    CHECK(s[s[s[s[s[s[s[s[s[s[s[s[0]]]]]]]]]]]] == 4);
    CHECK(*(s + *(s + *(s + *(s + *(s + *(s + *(s + *(s + 0)))))))) == 0);
    barrier();
    all_spread_free(s);
}

splitc_main()
{
    int q;
    for (q = 2; q < 5; q++) {
        arithmetic(q);
        addresses(q);
        pointers_elsewhere(q);
        registers(q);
    }
    nested();
    on_one {
        printf("%d ranks did it once\n", PROCS);
    }
    return 0;
}
