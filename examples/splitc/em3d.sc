/*
 * EM3D: electric and magnetic fields on a bipartite graph. In each step the value of every node
 * loses the weighted sum of its neighbours' values, which are nodes of the other field. A part of
 * the neighbours lies on other ranks. The versions differ in how their values travel:
 *
 *   read    each neighbour is read where it lies, for each edge
 *   ghost   each remote neighbour is read once a step, into a ghost node of this rank
 *   get     the same by gets, which are under way together
 *   put     its owner puts the value into the ghost nodes of others
 *   store   the same by stores, whose target waits for their bytes
 *   bulk    one bulk store for all ghost nodes that a rank has of another one
 *
 *   cci run -n 4 ./em3d [nodes of a rank] [edges of a node] [steps]
 */

#include <string.h>
#include <split-c/split-c.h>
#include "check.h"

enum { READ, GHOST, GET, PUT, STORE, BULK, VERSIONS };
static const char *names[] = {"read", "ghost", "get", "put", "store", "bulk"};

/* A node by its rank and its number there. */
typedef struct { int rank, number; } place_t;

/* The remote neighbours that a rank has in a field, those of one owner side by side. */
typedef struct { place_t *of; int count; } ghosts_t;

static int nodes, edges, steps;
static double *spread values[2], *spread ghost_values[2];
static ghosts_t ghosts[2][256]; /* of all ranks: the graph is a function that all can ask */
static double **near[2];        /* where this rank finds the value of each neighbour */

static place_t neighbour(int field, int rank, int node, int edge)
{
    unsigned long state = ((field * 1009UL + rank) * 100003UL + node) * 97UL + edge;
    place_t place;
    random_next(&state);
    place.rank = random_next(&state) % 10 < 4 ? random_next(&state) % PROCS : rank;
    place.number = random_next(&state) % nodes;
    return place;
}

static double weight(int node, int edge) { return (node * 3 + edge * 5) % 9 / (20.0 * edges); }
static double first_value(int field, int rank, int node) { return (rank * 31 + node * 7 + field * 3) % 101 * 0.5; }
static double *global value_of(int field, place_t p) { return (double *global)(values[field] + p.rank) + p.number; }

static int by_place(const void *a, const void *b)
{
    const place_t *x = a, *y = b;
    return x->rank != y->rank ? x->rank - y->rank : x->number - y->number;
}

/* The remote neighbours, in the other field, of a rank's nodes of a field. */
static ghosts_t ghosts_of(int field, int rank)
{
    ghosts_t g;
    int node, edge, i, count = 0;
    g.of = malloc(nodes * edges * sizeof *g.of);
    for (node = 0; node < nodes; node++)
        for (edge = 0; edge < edges; edge++) {
            g.of[count] = neighbour(field, rank, node, edge);
            if (g.of[count].rank != rank)
                count++;
        }
    qsort(g.of, count, sizeof *g.of, by_place);
    for (i = 0, g.count = 0; i < count; i++)
        if (i == 0 || by_place(&g.of[i], &g.of[i - 1]) != 0)
            g.of[g.count++] = g.of[i];
    return g;
}

static void build()
{
    int field, rank, node, edge, at;
    for (field = 0; field < 2; field++) {
        double *own = tolocal(values[1 - field] + MYPROC), *ghost = tolocal(ghost_values[field] + MYPROC);
        for (rank = 0; rank < PROCS; rank++)
            ghosts[field][rank] = ghosts_of(field, rank);
        near[field] = malloc(nodes * edges * sizeof(double *));
        for (node = 0; node < nodes; node++)
            for (edge = 0; edge < edges; edge++) {
                place_t p = neighbour(field, MYPROC, node, edge), *found;
                found = bsearch(&p, ghosts[field][MYPROC].of, ghosts[field][MYPROC].count, sizeof p, by_place);
                at = node * edges + edge;
                near[field][at] = p.rank == MYPROC ? own + p.number : ghost + (found - ghosts[field][MYPROC].of);
            }
    }
}

static void start()
{
    int field, node;
    for (field = 0; field < 2; field++)
        for (node = 0; node < nodes; node++)
            ((double *)tolocal(values[field] + MYPROC))[node] = first_value(field, MYPROC, node);
    barrier();
}

/* This rank fetches its ghost nodes. */
static void fetch(int version, int field)
{
    double *ghost = tolocal(ghost_values[field] + MYPROC);
    ghosts_t *g = &ghosts[field][MYPROC];
    int i;
    for (i = 0; i < g->count; i++)
        if (version == GET)
            ghost[i] := *value_of(1 - field, g->of[i]);
        else
            ghost[i] = *value_of(1 - field, g->of[i]);
    sync();
}

/* This rank sends its values to the ghost nodes of others. */
static void send(int version, int field)
{
    double *own = tolocal(values[1 - field] + MYPROC), *buffer = malloc(nodes * sizeof *buffer);
    int rank, i, from;
    for (rank = 0; rank < PROCS; rank++) {
        ghosts_t *g = &ghosts[field][rank];
        double *global there = (double *global)(ghost_values[field] + rank);
        for (i = 0; i < g->count && g->of[i].rank != MYPROC; i++)
            ;
        for (from = i; i < g->count && g->of[i].rank == MYPROC; i++)
            if (version == PUT)
                there[i] := own[g->of[i].number];
            else if (version == STORE)
                there[i] :- own[g->of[i].number];
            else
                buffer[i - from] = own[g->of[i].number];
        if (version == BULK && i > from)
            bulk_store(there + from, buffer, (i - from) * sizeof *buffer);
    }
    free(buffer);
    if (version == PUT) {
        sync();
        barrier();
    } else {
        store_sync(ghosts[field][MYPROC].count * sizeof(double));
    }
}

static void update(int version, int field)
{
    double *own = tolocal(values[field] + MYPROC), sum;
    int node, edge;
    for (node = 0; node < nodes; node++) {
        for (sum = 0, edge = 0; edge < edges; edge++)
            if (version == READ)
                sum += weight(node, edge) * *value_of(1 - field, neighbour(field, MYPROC, node, edge));
            else
                sum += weight(node, edge) * *near[field][node * edges + edge];
        own[node] -= sum;
    }
}

static void run(int version)
{
    int step, field;
    start();
    for (step = 0; step < steps; step++)
        for (field = 0; field < 2; field++) {
            if (version == GHOST || version == GET)
                fetch(version, field);
            else if (version != READ)
                send(version, field);
            update(version, field);
            barrier();
        }
}

/* Compares this rank's nodes with those of one process that has the whole graph. */
static void check(const char *version)
{
    double *all[2], sum;
    int step, field, rank, node, edge;
    for (field = 0; field < 2; field++) {
        all[field] = malloc(nodes * PROCS * sizeof(double));
        for (node = 0; node < nodes * PROCS; node++)
            all[field][node] = first_value(field, node / nodes, node % nodes);
    }
    for (step = 0; step < steps; step++)
        for (field = 0; field < 2; field++)
            for (rank = 0; rank < PROCS; rank++)
                for (node = 0; node < nodes; node++) {
                    for (sum = 0, edge = 0; edge < edges; edge++) {
                        place_t p = neighbour(field, rank, node, edge);
                        sum += weight(node, edge) * all[1 - field][p.rank * nodes + p.number];
                    }
                    all[field][rank * nodes + node] -= sum;
                }
    for (field = 0; field < 2; field++) {
        for (node = 0; node < nodes; node++) {
            double found = ((double *)tolocal(values[field] + MYPROC))[node], wanted = all[field][MYPROC * nodes + node];
            if (!agree(found, wanted))
                wrong(version, node, found, wanted);
        }
        free(all[field]);
    }
}

int splitc_main(int argc, char **argv)
{
    int field, version;
    nodes = argument(argc, argv, 1, 60);
    edges = argument(argc, argv, 2, 6);
    steps = argument(argc, argv, 3, 5);
    for (field = 0; field < 2; field++) {
        values[field] = all_spread_malloc(nodes * PROCS, sizeof(double));
        ghost_values[field] = all_spread_malloc(nodes * edges * PROCS, sizeof(double));
    }
    build();
    for (version = 0; version < VERSIONS; version++) {
        run(version);
        check(names[version]);
        barrier();
        on_one {
            printf("em3d %s: %d nodes are right\n", names[version], 2 * nodes * PROCS);
        }
    }
    return 0;
}
