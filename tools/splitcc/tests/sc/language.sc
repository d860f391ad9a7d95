/*
 * Each construct of the language that splitcc takes; what is wrong ends the program.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <split-c/split-c.h>
#include <split-c/control.h>

#define CHECK(x)                                                                                   \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            fprintf(stderr, "%s:%d: rank %d: not so: %s\n", __FILE__, __LINE__, MYPROC, #x);       \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

typedef struct node {
    int value;
    unsigned bits : 3;
    double weights[4];
    struct node *global next;
    struct node *local_next;
    struct { short a, b; } inner;
} node_t;

typedef double *spread vector;
typedef node_t *global remote;

int square[4][6]::;                /* elements */
double blocks[8]::[3][2];          /* blocks of 3 x 2 */
static long counter = 10;
int *global shared;
remote heads[3];
vector (*maker)();

static int left() { return (MYPROC + PROCS - 1) % PROCS; }
static int right() { return (MYPROC + 1) % PROCS; }

/* A parameter that is a spread array with dimensions of run time. */
static double sum_of(double matrix[n][m]::[2], int n, int m)
{
    int i, j;
    double sum = 0;
    for (i = 0; i < n; i++)
        for (j = 0; j < m; j++)
            sum += matrix[i][j][0] + matrix[i][j][1];
    return sum;
}

/* As programs of the time declared them. */
old_style(array, count)
int array[count]::;
int count;
{
    register i, last = 0;
    for (i = 0; i < count; i++)
        last = array[i];
    return last;
}

static int *global pointer_to(int rank, int *p)
{
    return toglobal(rank, p);
}

static void elements()
{
    int i, j, k, got[24], *global g;
    for_my_2d(i, j, 4, 6)
        square[i][j] = 100 * i + j;
    barrier();
    for (i = 0; i < 4; i++)
        for (j = 0; j < 6; j++) {
            CHECK(square[i][j] == 100 * i + j);
            CHECK(toproc(&square[i][j]) == (i * 6 + j) % PROCS);
        }
    for (k = 0; k < 24; k++)
        got[k] := square[k / 6][k % 6];
    sync();
    for (k = 0; k < 24; k++)
        CHECK(got[k] == 100 * (k / 6) + k % 6);
    barrier();
    if (MYPROC == 0) {
        square[1][1] += 5;
        square[1][1]++;
        ++square[1][1];
        CHECK(square[1][1]-- == 108);
        square[1][1] <<= 1;
        CHECK(square[1][1] == 214);
        square[3][5] := square[1][1] + 1;
        sync();
        g = &square[3][5];
        CHECK(*g == 215 && g == &square[3][5]);
        CHECK((*g)++ == 215 && *g == 216);
        CHECK((*g = 7, *g) == 7 && (*g = 8) == 8);
    }
    barrier();
    CHECK(square[3][5] == 8);
    barrier();
}

static void pointers()
{
    int i;
    vector v = all_spread_malloc(4 * PROCS, sizeof(double));
    vector w = v, end;
    double *global mine = (double *global)(v + MYPROC), *plain = tolocal(v);
    double total = 0;
    for (i = 0; i < 4; i++) {
        mine[i] = MYPROC * 10 + i;
        CHECK(plain[i] == MYPROC * 10 + i);
        CHECK(&mine[i] == toglobal(MYPROC, plain + i));
    }
    barrier();
    end = v + 4 * PROCS;
    CHECK(end - v == 4 * PROCS && v < end && end > w && v == w && !(v != w) && v <= w && end >= v);
    for (w = v; w < end; w++)
        total += *w;
    CHECK(total == 20 * PROCS * (PROCS - 1) + 6 * PROCS);
    w = v;
    w += 2 * PROCS + 1;
    CHECK(toproc(w) == 1 % PROCS && *w == v[2 * PROCS + 1] && *(w - 1) == v[2 * PROCS]);
    --w;
    w -= PROCS;
    CHECK(*w-- == v[PROCS] && w == v + (PROCS - 1) && w != NULL);
    CHECK(*(1 + v) == *(v + 1));
    barrier();
    all_spread_free(v);
}

static void structures()
{
    node_t *own = malloc(2 * sizeof *own), copy;
    remote there;
    double local[4];
    int i;
    memset(own, 0, 2 * sizeof *own);
    own->value = MYPROC;
    own->inner.b = MYPROC + 7;
    own->local_next = own + 1;
    for (i = 0; i < 4; i++)
        own->weights[i] = MYPROC + i * 0.5;
    heads[0] = (remote)own;
    barrier();
    own->next = (remote)toglobal(right(), own);
    barrier();
    /* A pointer in another rank's static leads to that rank's structure. */
    there = *toglobal(right(), &heads[0]);
    CHECK(toproc(there) == right() && there->value == right());
    CHECK(there->inner.b == right() + 7 && there->weights[3] == right() + 1.5);
    CHECK(own->next->next->value == (MYPROC + 2) % PROCS);
    CHECK(own->next->next->weights[1] == (MYPROC + 2) % PROCS + 0.5);
    copy = *there;
    CHECK(copy.value == right() && copy.weights[2] == right() + 1.0 && copy.local_next != NULL);
    bulk_read(local, there->weights, sizeof local);
    CHECK(local[3] == right() + 1.5);
    barrier();
    there->value += 1000;
    there->weights[2] := 99.5;
    sync();
    barrier();
    CHECK(own->value == MYPROC + 1000 && own->weights[2] == 99.5);
    barrier();
    copy.value = -1;
    *own->next = copy;
    all_store_sync();
    barrier();
    CHECK(own->value == -1 && own->inner.b == MYPROC + 7);
    CHECK(there == NULL || there);
    CHECK(sizeof(*there) == sizeof(node_t) && sizeof there == 8);
    barrier();
    free(own);
}

static void stores_and_blocks()
{
    int i, j, k, n = 3, m = 2;
    double value;
    double matrix[n][m]::[2];
    double (*spread rows)[3][2] = blocks;
    for_my_1d(k, 8)
        for (i = 0; i < 3; i++)
            for (j = 0; j < 2; j++)
                blocks[k][i][j] = 100 * k + 10 * i + j;
    barrier();
    for (k = 0; k < 8; k++)
        CHECK(blocks[k][2][1] == 100 * k + 21 && rows[k][1][0] == 100 * k + 10 && (*(rows + k))[0][1] == 100 * k + 1);
    barrier();
    if (MYPROC == 0)
        for (i = 0; i < n; i++)
            for (j = 0; j < m; j++) {
                matrix[i][j][0] :- i;
                matrix[i][j][1] :- 10 * j;
            }
    all_store_sync();
    CHECK(sum_of(matrix, n, m) == 2 * 3 + 30);
    barrier();
    value = MYPROC;
    blocks[left()][0][0] :- value + 0.5;
    if (PROCS <= 8) {
        store_sync(sizeof value);
        CHECK(*tolocal(&blocks[MYPROC]) && blocks[MYPROC][0][0] == right() + 0.5);
    }
    all_store_sync();
    CHECK(old_style(square, 1) == 0);
}

static void conversions()
{
    int i = 3, *global g = toglobal(MYPROC, &i), *p;
    char *spread bytes = all_spread_malloc(PROCS, 1);
    void *global any = (void *global)g;
    int *global none = NULL, *global same = i ? g : 0;
    unsigned long bits = (unsigned long)g;
    CHECK(*g == 3 && *same == 3 && !none && none == NULL);
    p = tolocal(g);
    CHECK(p == &i && (int *)any == &i && *(int *global)any == 3);
    CHECK(toproc(g) == MYPROC && bits >> 48 == MYPROC);
    CHECK(*pointer_to(MYPROC, &i) == 3);
    CHECK(g + 2 - g == 2 && &g[2] - 2 == g);
    CHECK(({ int *global h = g; *h + 1; }) == 4);
    *g *= 2;
    CHECK(i == 6 && (i > 5 ? *g : -1) == 6 && (i < 5 ? *g :-1) == -1);
    bytes[MYPROC] = ' ' + MYPROC;
    barrier();
    for (i = 0; i < PROCS; i++)
        CHECK(bytes[i] == ' ' + i);
    counter += MYPROC;
    barrier();
    CHECK(*toglobal(right(), &counter) == 10 + right());
    barrier();
    all_spread_free(bytes);
}

static void atomics()
{
    shared = (int *global)(int *spread)all_spread_malloc(1, sizeof(int));
    CHECK(fetch_and_add(shared, 1) < PROCS);
    barrier();
    CHECK(*shared == PROCS);
    barrier();
    CHECK(all_reduce_to_all_add(MYPROC) == PROCS * (PROCS - 1) / 2);
}

static int twice(int *global, int *spread);
static int (*through)(int *global, int *spread) = twice;
node_t graph[6]::;

static int twice(g, s)
int *global g;
int *spread s;
{
    return *g + s[1];
}

static node_t made(int value)
{
    node_t node = {0};
    node.value = value;
    return node;
}

/* Pointers to pointers, to arrays, in arrays, and every place where a value may stand. */
static void odds()
{
    int i, count = 0, plain[4] = {5, 6, 7, 8};
    int *spread s = all_spread_malloc(8 * PROCS, sizeof(int)), *spread t = s, *spread *local = &t;
    int *global several[3] = {0}, *global g = (int *global)s;
    int (*global rows)[4] = (int (*global)[4])g;
    int *global *global far, *spread *global far_spread;
    char *global text = (char *global)g;
    remote node;
    if (MYPROC == 0) {
        for (i = 0; i < 8; i++)
            g[i] = 10 + i;
        CHECK((*rows)[2] == 12 && rows[1][3] == 17 && *rows[1] == 14 && sizeof(*rows) == 16);
        several[1] = &g[3];
        CHECK(*several[1] == 13 && several[1][1] == 14 && *(several[1] + 2) == 15);
        several[2] = several[1]++;
        CHECK(*several[2] == 13 && *several[1] == 14 && several[1] > several[2]);
        int pair[] = {*g, g[1]};
        CHECK(pair[0] + pair[1] == 21 && plain[*g - 8] == 7 && -*g == -10 && !*g == 0 && ~*g == -11);
        switch (*g) {
        case 10: count++;
        default: count++;
        }
        while (*g < 13 && *g)
            ++*g;
        CHECK(count == 2 && *g == 13 && (int)*g == 13 && (*g ? g[1] : *g) == 11 && (double)*g / 2 == 6.5);
        for (several[0] = g; several[0] != NULL && several[0] < g + 8; several[0] += 2)
            count += *several[0] & 1;
        CHECK(count == 3 && (count, *g, g[7]) == 17);
        text[29] = 'x';
        CHECK(text[29] == 'x' && &text[29] - text == 29 && *(short *global)(text + 28) != 17);
        g[2] = g[3] = 9;
        CHECK(g[2] == 9 && g[3] == 9);
    }
    barrier();
    if (MYPROC == PROCS - 1) {
        CHECK(**local == 13 && *(*local + PROCS) == 11);
        (*local)++;
        CHECK(t == s + 1 && t - s == 1);
        s[1] = 40;
        CHECK(twice(g, s) == 13 + 40 && through(g, s) == 53);
        far = (int *global *global)(void *global)(g + 4);
        *far = g;
        CHECK(**far == 13 && *far == g);
        (*far)++;
        CHECK(*far == g + 1 && (*far)[-1] == 13);
        far_spread = (int *spread *global)(void *global)(g + 6);
        *far_spread = s;
        (*far_spread) += 3;
        CHECK(*far_spread == s + 3 && (*far_spread)-- == s + 3 && --(*far_spread) == s + 1 && **far_spread == 40);
        graph[5] = made(77);
        graph[5].inner.a = 3;
        graph[4].next = &graph[5];
        CHECK(graph[4].next->value == 77 && graph[4].next->inner.a == 3 && graph[5].weights[3] == 0);
        for (node = &graph[4], count = 0; node; node = node->next)
            count++;
        CHECK(count == 2);
        graph[3].weights[1] := 2.5;
        graph[3].value :- 8;
        sync();
        CHECK(graph[3].weights[1] * 2 == 5 && graph[3].value == 8);
    }
    all_store_sync();
    all_spread_free(s);
}

splitc_main(argc, argv)
int argc;
char **argv;
{
    int global = 1, spread = 2; /* the words are no others elsewhere */
    CHECK(argc >= 1 && argv[0] && global + spread == 3);
    elements();
    pointers();
    structures();
    stores_and_blocks();
    conversions();
    atomics();
    odds();
    on_one
    {
        printf("%d ranks speak it\n", PROCS);
    }
    return 0;
}
