/*
 * Connected components of a graph. Each vertex has a parent of no higher number, itself at first.
 * For each edge between trees the higher root goes below the lower one, by an atomic operation, and
 * then vertices point at their roots. When no edge joins two trees any more, a vertex's root is the
 * lowest vertex of its component.
 *
 *   cci run -n 4 ./components [vertices of a rank] [edges of a rank]
 */

#include <string.h>
#include <split-c/split-c.h>
#include "check.h"

typedef struct { int from, to; } edge_t;

static int *spread parents;

/* Edges of a rank: many are short, so that components are of all sizes. */
static edge_t *edges_of(int rank, int edges, int vertices)
{
    edge_t *of = malloc(edges * sizeof *of);
    unsigned long state = rank + 11;
    int i;
    for (i = 0; i < edges; i++) {
        of[i].from = random_next(&state) % vertices;
        of[i].to = random_next(&state) % 10 ? of[i].from + random_next(&state) % 8 : random_next(&state);
        of[i].to = (unsigned)of[i].to % vertices;
    }
    return of;
}

static int root_of(int vertex)
{
    int parent;
    while ((parent = parents[vertex]) != vertex)
        vertex = parent;
    return vertex;
}

/* Joins the trees of an edge, if they are two: whether this call did. */
static int join(edge_t edge)
{
    int a = root_of(edge.from), b = root_of(edge.to), high, low;
    while (a != b) {
        high = a > b ? a : b;
        low = a > b ? b : a;
        if (cmp_swap((int *global)(parents + high), high, low) == high)
            return 1;
        /* Another rank was first. */
        a = root_of(high);
        b = root_of(low);
    }
    return 0;
}

/* Points this rank's vertices at their roots: their parents' parents by gets, until nothing
 * changes. */
static void shorten(int vertices)
{
    int *own = tolocal(parents + MYPROC), count = (vertices + PROCS - 1 - MYPROC) / PROCS, changed = 1, i;
    int *above = malloc(count * sizeof *above + 1);
    while (all_reduce_to_all_add(changed)) {
        for (i = 0; i < count; i++)
            above[i] := parents[own[i]];
        sync();
        barrier();
        for (changed = 0, i = 0; i < count; i++) {
            changed |= own[i] != above[i];
            own[i] = above[i];
        }
        barrier();
    }
    free(above);
}

/* Compares this rank's labels with those of one process that has all edges. */
static int check(int vertices, int edges)
{
    int *label = malloc(vertices * sizeof *label), rank, i, components = 0;
    for (i = 0; i < vertices; i++)
        label[i] = i;
    for (rank = 0; rank < PROCS; rank++) {
        edge_t *of = edges_of(rank, edges, vertices);
        for (i = 0; i < edges; i++) {
            int a = of[i].from, b = of[i].to;
            while (label[a] != a)
                a = label[a];
            while (label[b] != b)
                b = label[b];
            label[a > b ? a : b] = a > b ? b : a;
        }
        free(of);
    }
    /* A parent's number is lower, and has its root already. */
    for (i = 0; i < vertices; i++) {
        components += label[i] == i;
        label[i] = label[label[i]];
    }
    for_my_1d(i, vertices)
        if (parents[i] != label[i])
            wrong("vertex", i, parents[i], label[i]);
    free(label);
    return components;
}

int splitc_main(int argc, char **argv)
{
    int own = argument(argc, argv, 1, 1000), edges = argument(argc, argv, 2, 900), vertices = own * PROCS, i, joined;
    edge_t *of = edges_of(MYPROC, edges, vertices);
    parents = all_spread_malloc(vertices, sizeof(int));
    for_my_1d(i, vertices)
        parents[i] = i;
    barrier();
    for (joined = 0, i = 0; i < edges; i++)
        joined += join(of[i]);
    barrier();
    shorten(vertices);
    i = check(vertices, edges);
    joined = all_reduce_to_all_add(joined);
    if (i != vertices - joined)
        wrong("the number of components on rank", MYPROC, vertices - joined, i);
    barrier();
    on_one {
        printf("%d components\n", i);
        printf("components: %d vertices are right\n", vertices);
    }
    free(of);
    return 0;
}
