/*
 * What accesses of the global address space cost. `cci perf splitc` translates, compiles and runs
 * this program as two ranks, and reads what rank 0 prints:
 *
 *   pair NAME NS NS DIFFERENCE RATIO   an operation beside what it stands on, blocks in turn
 *   word OPERATION TYPE NS             repeated operations on a word of rank 1
 *   bulk OPERATION BYTES NS            repeated bulk operations
 *
 *   cci run -n 2 --bind processor ./measure MILLISECONDS
 */

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <split-c/split-c.h>

#define WORDS 512
#define STRIDE 16       /* words between two lines that no prefetcher fetches together */
#define PASSES 16
#define LARGEST (4 << 20)
#define BLOCKS 2001
#define UNDER_WAY 8     /* bulk operations before a sync() */
#define REPEATS 7

static double block_ns[2][BLOCKS], difference[BLOCKS], ratio[BLOCKS];
static int milliseconds;

static char *spread area;       /* LARGEST bytes of each rank */
static char *spread second;     /* the same again */
static long *global far;        /* of rank 1 */
static long *mapped;            /* the same, where it is mapped here */
static long *global own;        /* of this rank */
static long *plain;             /* the same */
static long local[WORDS];
static volatile long sink;

static double now()
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *of, int count)
{
    qsort(of, count, sizeof *of, by_size);
    return of[count / 2];
}

/* Blocks of both kinds in turn, each after `prepare`, by all ranks; they return nanoseconds of an
 * operation. */
static void pair(const char *name, void (*prepare)(), double (*by_language)(), double (*bare)())
{
    double begin = now();
    int count = 0, turn, is_bare, is_over = 0;
    while (!is_over && count < BLOCKS) {
        for (turn = 0; turn < 2; turn++) {
            is_bare = (count + turn) % 2;
            prepare();
            barrier();
            block_ns[is_bare][count] = is_bare ? bare() : by_language();
            barrier();
        }
        difference[count] = block_ns[0][count] - block_ns[1][count];
        ratio[count] = block_ns[0][count] / block_ns[1][count];
        count++;
        is_over = all_bcast(count >= 11 && now() - begin > 1e6 * milliseconds);
    }
    on_one {
        double language = median(block_ns[0], count), without = median(block_ns[1], count);
        printf("pair %s %.4f %.4f %.4f %.5f\n", name, language, without, median(difference, count),
               median(ratio, count));
        fflush(stdout);
    }
}

static void nothing() {}

static void count_off()
{
    all_store_sync();
}

/* Rank 1 makes a chain of its lines, and owns all of them afterwards. */
static void own_lines()
{
    long i;
    if (MYPROC == 1)
        for (i = 0; i < WORDS; i++)
            plain[i * STRIDE] = (i * 5 + 3) % WORDS;
}

/* Each rank makes a chain of its words. */
static void chain()
{
    long i;
    for (i = 0; i < WORDS; i++)
        plain[i] = (i * 5 + 3) % WORDS;
}

static double line_by_read()
{
    double begin = now();
    long at = 0, i;
    if (MYPROC != 0)
        return 0;
    for (i = 0; i < WORDS; i++)
        at = far[at * STRIDE];
    sink = at;
    return (now() - begin) / WORDS;
}

static double line_by_load()
{
    double begin = now();
    long at = 0, i;
    if (MYPROC != 0)
        return 0;
    for (i = 0; i < WORDS; i++)
        at = *(volatile long *)&mapped[at * STRIDE];
    sink = at;
    return (now() - begin) / WORDS;
}

/* Defines a block of passes over all words. */
#define BLOCK(name, statement)                      \
    static double name()                            \
    {                                               \
        double begin = now();                       \
        long pass, i, at = 0, sum = 0;              \
        if (MYPROC != 0)                            \
            return 0;                               \
        for (pass = 0; pass < PASSES; pass++)       \
            for (i = 0; i < WORDS; i++) {           \
                statement;                          \
            }                                       \
        sync();                                     \
        sink = at + sum;                            \
        return (now() - begin) / (PASSES * WORDS);  \
    }

BLOCK(all_gets, local[i] := far[i])
BLOCK(loads, ((volatile long *)local)[i] = ((volatile long *)mapped)[i])
BLOCK(all_puts, far[i] := local[i])
BLOCK(bare_stores, ((volatile long *)mapped)[i] = ((volatile long *)local)[i])
BLOCK(all_stores, far[i] :- local[i])
BLOCK(reads_here, sum += own[i])
BLOCK(loads_here, sum += ((volatile long *)plain)[i])
BLOCK(chased_here, at = own[at])
BLOCK(chased_plain, at = ((volatile long *)plain)[at])

static int bulk_bytes;

static double bulk_reads()
{
    char *to = tolocal(second + MYPROC);
    double begin = now();
    int pass;
    if (MYPROC != 0)
        return 0;
    for (pass = 0; pass < PASSES; pass++)
        bulk_read(to, (char *global)far, bulk_bytes);
    return (now() - begin) / PASSES;
}

static double copies()
{
    char *to = tolocal(second + MYPROC), *from = (char *)plain;
    double begin = now();
    int pass;
    if (MYPROC != 0)
        return 0;
    for (pass = 0; pass < PASSES; pass++)
        memcpy(to, from, bulk_bytes);
    return (now() - begin) / PASSES;
}

/*
 * EM3D, the version with stores, of two ranks; and the same of two threads in plain C.
 */
#define NODES 500
#define EDGES 20
#define REMOTE 20       /* edges in a hundred */
#define STEPS 20

/* A field of a rank: its values, the remote ones that it needs, and where the values of each edge
 * are. What the other rank needs of it is sent from `from` to `to` there. */
typedef struct {
    double *values, *ghosts, *near[NODES * EDGES], weights[NODES * EDGES];
    int ghost_count, from[NODES], to[NODES], sent_count;
} field_t;

static unsigned next_random(unsigned long *state)
{
    *state = *state * 6364136223846793005UL + 1442695040888963407UL;
    return (unsigned)(*state >> 33);
}

/* Builds the graph of both ranks; memory of `there` is not touched where it is another rank's. */
static void build(field_t fields[2][2])
{
    static int ghost_of[NODES];
    int rank, field, edge;
    for (rank = 0; rank < 2; rank++)
        for (field = 0; field < 2; field++) {
            field_t *f = &fields[rank][field], *other = &fields[rank][1 - field], *sender = &fields[1 - rank][field];
            unsigned long state = 7 + rank * 2 + field;
            memset(ghost_of, -1, sizeof ghost_of);
            for (edge = 0; edge < NODES * EDGES; edge++) {
                int node = next_random(&state) % NODES;
                f->weights[edge] = next_random(&state) % 9 / (20.0 * EDGES);
                if (next_random(&state) % 100 >= REMOTE) {
                    f->near[edge] = other->values + node;
                    continue;
                }
                if (ghost_of[node] < 0) {
                    ghost_of[node] = f->ghost_count++;
                    sender->from[sender->sent_count] = node;
                    sender->to[sender->sent_count++] = ghost_of[node];
                }
                f->near[edge] = f->ghosts + ghost_of[node];
            }
        }
}

static void fill(field_t *f, int rank, int field)
{
    int node;
    for (node = 0; node < NODES; node++)
        f->values[node] = (rank * 31 + node * 7 + field * 3) % 101 * 0.5;
}

static void update(field_t *f)
{
    int node, edge;
    for (node = 0; node < NODES; node++) {
        double sum = 0, **near = f->near + node * EDGES, *weights = f->weights + node * EDGES;
        for (edge = 0; edge < EDGES; edge++)
            sum += weights[edge] * *near[edge];
        f->values[node] -= sum;
    }
}

static field_t by_rank[2][2], by_thread[2][2];
static double *global ghosts_there[2];

static double em3d_by_ranks()
{
    int step, field, i;
    double begin;
    for (field = 0; field < 2; field++)
        fill(&by_rank[MYPROC][field], MYPROC, field);
    barrier();
    begin = now();
    for (step = 0; step < STEPS; step++)
        for (field = 0; field < 2; field++) {
            field_t *f = &by_rank[MYPROC][field];
            double *values = by_rank[MYPROC][1 - field].values;
            for (i = 0; i < f->sent_count; i++)
                ghosts_there[field][f->to[i]] :- values[f->from[i]];
            store_sync(f->ghost_count * sizeof(double));
            update(f);
            barrier();
        }
    return (now() - begin) / STEPS;
}

/* Where a thread announces how far it is, a line each. */
static struct { volatile long at; long rest[STRIDE - 1]; } progress[2];

static void meet(int me, long at)
{
    __atomic_store_n(&progress[me].at, at, __ATOMIC_RELEASE);
    while (__atomic_load_n(&progress[1 - me].at, __ATOMIC_ACQUIRE) < at)
        ;
}

static double steps_of_thread(int me)
{
    int step, field, i;
    long at = 0;
    double begin;
    for (field = 0; field < 2; field++)
        fill(&by_thread[me][field], me, field);
    meet(me, ++at);
    begin = now();
    for (step = 0; step < STEPS; step++)
        for (field = 0; field < 2; field++) {
            field_t *f = &by_thread[me][field];
            double *values = by_thread[me][1 - field].values, *ghosts = by_thread[1 - me][field].ghosts;
            for (i = 0; i < f->sent_count; i++)
                ghosts[f->to[i]] = values[f->from[i]];
            meet(me, ++at);
            update(f);
            meet(me, ++at);
        }
    return (now() - begin) / STEPS;
}

static int processor_of_other;

static void *second_thread(void *unused)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor_of_other, &set);
    /* Where it is refused, the thread goes where the kernel puts it. */
    sched_setaffinity(0, sizeof set, &set);
    steps_of_thread(1);
    return unused;
}

static double em3d_by_threads()
{
    pthread_t thread;
    double took;
    if (MYPROC != 0)
        return 0;
    progress[0].at = progress[1].at = 0;
    if (pthread_create(&thread, NULL, second_thread, NULL) != 0) {
        fprintf(stderr, "a second thread cannot be started; raise ulimit -u\n");
        exit(1);
    }
    took = steps_of_thread(0);
    pthread_join(thread, NULL);
    return took;
}

static void em3d()
{
    int rank, field, i;
    double *spread values[2], *spread ghosts[2];
    for (field = 0; field < 2; field++) {
        values[field] = all_spread_malloc(NODES * PROCS, sizeof(double));
        ghosts[field] = all_spread_malloc(NODES * PROCS, sizeof(double));
        ghosts_there[field] = (double *global)(ghosts[field] + (1 - MYPROC));
        for (rank = 0; rank < 2; rank++) {
            by_rank[rank][field].values = tolocal(values[field] + rank);
            by_rank[rank][field].ghosts = tolocal(ghosts[field] + rank);
            by_thread[rank][field].values = malloc(NODES * sizeof(double));
            by_thread[rank][field].ghosts = malloc(NODES * sizeof(double));
        }
    }
    build(by_rank);
    build(by_thread);
    processor_of_other = all_reduce_to_all_add(MYPROC == 1 ? sched_getcpu() : 0);
    pair("em3d", count_off, em3d_by_ranks, em3d_by_threads);
    on_one for (field = 0; field < 2; field++)
        for (i = 0; i < NODES; i++)
            if (by_rank[0][field].values[i] != by_thread[0][field].values[i]) {
                fprintf(stderr, "EM3D: node %d differs between ranks and threads\n", i);
                exit(1);
            }
}

static void pairs()
{
    pair("read", own_lines, line_by_read, line_by_load);
    pair("get", nothing, all_gets, loads);
    pair("put", nothing, all_puts, bare_stores);
    pair("store", count_off, all_stores, bare_stores);
    pair("local-throughput", nothing, reads_here, loads_here);
    pair("local-latency", chain, chased_here, chased_plain);
    bulk_bytes = 64 << 10;
    pair("bulk-read-64KiB", nothing, bulk_reads, copies);
    bulk_bytes = 1 << 20;
    pair("bulk-read-1MiB", nothing, bulk_reads, copies);
    em3d();
}

/* Repeats a statement with `n`, as often as fills a hundredth of the time; the median of a few such
 * blocks. What is stored is counted off afterwards. */
#define REPEAT(first, statement)                                                            \
    on_one {                                                                                \
        long count = first, n;                                                              \
        int block = 0;                                                                      \
        while (block < REPEATS) {                                                           \
            double begin = now(), took;                                                     \
            for (n = 0; n < count; n++) {                                                   \
                statement;                                                                  \
            }                                                                               \
            sync();                                                                         \
            took = now() - begin;                                                           \
            if (block == 0 && took < 1e4 * milliseconds)                                    \
                count *= 2;                                                                 \
            else                                                                            \
                block_ns[0][block++] = took / count;                                        \
        }                                                                                   \
    }                                                                                       \
    all_store_sync();

/* On word n of rank 1. */
#define WORD(operation, name, type, statement)                                              \
    {                                                                                       \
        type *global to = (type *global)far, *here = (type *)local, value = 1;              \
        REPEAT(WORDS, statement)                                                            \
        sink = (long)value;                                                                 \
        on_one printf("word %s %s %.3f\n", operation, name, median(block_ns[0], REPEATS));  \
    }

#define AT (n % WORDS)
#define TYPE(name, type)                                        \
    WORD("read", name, type, value = to[AT])                    \
    WORD("write", name, type, to[AT] = value)                   \
    WORD("get", name, type, here[AT] := to[AT])                 \
    WORD("put", name, type, to[AT] := here[AT])                 \
    WORD("store", name, type, to[AT] :- here[AT])

static void words()
{
    TYPE("char", char)
    TYPE("short", short)
    TYPE("int", int)
    TYPE("long", long)
    TYPE("float", float)
    TYPE("double", double)
}

/* A bulk operation of each size. */
#define SIZES(operation, statement)                                                         \
    for (bytes = 4; bytes <= LARGEST; bytes *= 2) {                                         \
        REPEAT(UNDER_WAY, statement; if (n % UNDER_WAY == UNDER_WAY - 1) sync())            \
        on_one printf("bulk %s %ld %.3f\n", operation, bytes, median(block_ns[0], REPEATS)); \
    }

static void bulk()
{
    char *global there = (char *global)far, *here = tolocal(second + MYPROC);
    long bytes;
    SIZES("read", bulk_read(here, there, bytes))
    SIZES("get", bulk_get(here, there, bytes))
    SIZES("put", bulk_put(there, here, bytes))
    SIZES("store", bulk_store(there, here, bytes))
    SIZES("memcpy", memcpy(here, plain, bytes))
}

int splitc_main(int argc, char **argv)
{
    milliseconds = argc > 1 ? atoi(argv[1]) : 100;
    if (PROCS != 2 || milliseconds < 1) {
        fprintf(stderr, "%s: two ranks, and a time above 0; start it by cci perf splitc\n", argv[0]);
        return 2;
    }
    area = all_spread_malloc(LARGEST * PROCS, 1);
    second = all_spread_malloc(LARGEST * PROCS, 1);
    plain = (long *)tolocal(area + MYPROC);
    memset(plain, 1, LARGEST);
    memset(tolocal(second + MYPROC), 1, LARGEST);
    far = (long *global)(area + 1);
    own = (long *global)(area + MYPROC);
    barrier();
    on_one mapped = sc_at((sc_global)far, LARGEST);
    if (all_bcast(mapped != NULL))
        pairs();
    words();
    bulk();
    return 0;
}
