/*
 * Every call of the headers, on each rank; what is wrong ends the program.
 */

#include "../../../compat_check.h"
#include <split-c/split-c.h>

static long in_data = 5;
static int in_bss[1000];
static const char *words[] = {"zero", "one"};

/* Rank r's value of anything. */
static long value(int rank, int at)
{
    return rank * 1000003L + at * 31;
}

static int next(void)
{
    return (MYPROC + 1) % PROCS;
}

static int before(void)
{
    return (MYPROC + PROCS - 1) % PROCS;
}

/* The static of another rank lies at the same address there. */
static void statics(void)
{
    long read;
    int i, there[1000];
    CHECK(in_data == 5 && strcmp(words[1], "one") == 0);
    in_data = value(MYPROC, 1);
    for (i = 0; i < 1000; i++)
        in_bss[i] = (int)value(MYPROC, i);
    barrier();
    sc_read(&read, toglobal(next(), &in_data), sizeof read);
    CHECK(read == value(next(), 1));
    bulk_read(there, toglobal(next(), in_bss), sizeof there);
    for (i = 0; i < 1000; i++)
        CHECK(there[i] == (int)value(next(), i));
    barrier();
    read = -value(MYPROC, 2);
    sc_write(toglobal(next(), &in_data), &read, sizeof read);
    barrier();
    CHECK(in_data == -value(before(), 2));
    barrier();
}

/* Any other memory is reached by messages, which its owner serves in barriers. */
static void elsewhere(void)
{
    long on_stack = value(MYPROC, 3), got[3];
    char *far = malloc(100000), *copy = malloc(100000);
    sc_global *places = sc_malloc(2 * sizeof *places);
    sc_global all = all_spread_malloc(2 * PROCS, sizeof *places);
    int i;
    memset(far, MYPROC + 1, 100000);
    places[0] = toglobal(MYPROC, &on_stack);
    places[1] = toglobal(MYPROC, far);
    bulk_put(toglobal(before(), tolocal(all)), places, 2 * sizeof *places);
    sync();
    barrier();
    memcpy(places, tolocal(all), 2 * sizeof *places);
    CHECK(toproc(places[0]) == next() || PROCS == 1);
    sc_get(&got[0], places[0], sizeof got[0]);
    bulk_get(copy, places[1], 100000);
    sync();
    CHECK(got[0] == value(next(), 3));
    for (i = 0; i < 100000; i++)
        CHECK(copy[i] == next() + 1);
    barrier();
    CHECK(fetch_and_add_l(places[0], 7) == value(next(), 3));
    barrier();
    CHECK(on_stack == value(MYPROC, 3) + 7);
    memset(copy, 77, 50000);
    bulk_store(places[1], copy, 50000);
    store_sync(50000);
    CHECK(far[0] == 77 && far[49999] == 77 && far[50000] == MYPROC + 1);
    barrier();
    all_spread_free(all);
    sc_free(places);
    free(far);
    free(copy);
}

/* Elements of each size by each operation. */
static void operations(void)
{
    sc_global array = all_spread_malloc(64 * PROCS, 8), mine = toglobal(MYPROC, tolocal(array));
    sc_global there = toglobal(next(), tolocal(array));
    size_t size;
    char bytes[64], back[64];
    int i;
    for (size = 1; size <= 64; size++) {
        for (i = 0; i < 64; i++)
            bytes[i] = (char)value(MYPROC, i + (int)size);
        sc_put(there, bytes, size);
        sync();
        barrier();
        sc_get(back, mine, size);
        sync();
        for (i = 0; i < (int)size; i++)
            CHECK(back[i] == (char)value(before(), i + (int)size));
        barrier();
        bulk_write(sc_global_add(there, 1, 64), bytes, size);
        sc_read(back, sc_global_add(there, 1, 64), size);
        CHECK(memcmp(back, bytes, size) == 0);
        bulk_store(sc_global_add(there, 2, 64), bytes, size);
        all_store_sync();
        CHECK(((char *)tolocal(mine))[128] == (char)value(before(), (int)size));
        barrier();
    }
    reset_store_sync();
    store_sync(0);
    all_spread_free(array);
}

static void pointers(void)
{
    sc_global array = all_spread_malloc(10 * PROCS, 4), g;
    int64_t i;
    CHECK(array != 0 && toproc(array) == 0);
    for (i = -20; i < 20; i++) {
        g = sc_spread_add(sc_spread_add(array, 20, 4), i, 4);
        CHECK(toproc(g) == (20 + i) % PROCS);
        CHECK(tolocal(g) == (char *)tolocal(array) + (20 + i) / PROCS * 4);
        CHECK(sc_spread_sub(g, array, 4) == 20 + i && sc_spread_sub(array, g, 4) == -20 - i);
        CHECK(sc_global_sub(sc_global_add(g, i, 4), g, 4) == i && toproc(sc_global_add(g, i, 4)) == toproc(g));
    }
    all_spread_free(array);
}

static void atomics(void)
{
    sc_global words = all_spread_malloc(2 * PROCS, 8), shared = sc_global_add(words, 1, 8);
    int i, mine = 0;
    for (i = 0; i < 200; i++) {
        CHECK(fetch_and_add(words, 1) >= mine);
        mine++;
        while (test_and_set(shared) != 0)
            ;
        CHECK(exchange(shared, 0) == 1);
    }
    barrier();
    /* The owner of a lock that another one holds finds it free once that one has released it. */
    if (PROCS > 1) {
        if (MYPROC == 1)
            CHECK(test_and_set(shared) == 0);
        barrier();
        if (MYPROC == 0) {
            while (test_and_set(shared) != 0)
                ;
            CHECK(exchange(shared, 0) == 1);
        }
        if (MYPROC == 1)
            CHECK(exchange(shared, 0) == 1);
        barrier();
    }
    CHECK(cmp_swap(words, -1, 9) == 200 * PROCS && fetch_and_add(words, 0) == 200 * PROCS);
    barrier();
    on_one
    {
        CHECK(cmp_swap(words, 200 * PROCS, -3) == 200 * PROCS && exchange(words, 4) == -3);
        CHECK(exchange_l(shared, -5) == 0 && cmp_swap_l(shared, -5, 1L << 40) == -5);
        CHECK(fetch_and_add_l(shared, -1) == 1L << 40);
    }
    barrier();
    all_spread_free(words);
}

static void together(void)
{
    int i, j, sum = 0, count = 0;
    long buffer[40];
    for (i = 0; i < PROCS; i++)
        sum += i + 1;
    CHECK(all_reduce_to_all_add(MYPROC + 1) == sum && all_reduce_to_all_max(MYPROC) == PROCS - 1);
    CHECK(all_reduce_to_all_min(-MYPROC) == 1 - PROCS && all_reduce_to_all_mul(2) == 1 << PROCS);
    CHECK(all_reduce_to_all_ladd(1L << 40) == (long)PROCS << 40 && all_reduce_to_all_lmax(-1L) == -1);
    CHECK(all_reduce_to_all_dadd(0.5) == 0.5 * PROCS && all_reduce_to_all_dmin(MYPROC + 0.25) == 0.25);
    CHECK(all_reduce_to_all_fmax(MYPROC * 0.5f) == (PROCS - 1) * 0.5f && all_reduce_to_one_add(1) == PROCS);
    CHECK(all_scan_add(1) == MYPROC + 1 && all_scan_dadd(0.5) == 0.5 * (MYPROC + 1) && all_scan_max(-MYPROC) == 0);
    CHECK(all_bcast(MYPROC + 7) == 7 && all_bcast_d(MYPROC + 0.5) == 0.5 && all_bcast_l(MYPROC - 1L) == -1);
    for (i = 0; i < 40; i++)
        buffer[i] = value(MYPROC, i);
    all_bcast_buffer(buffer, sizeof buffer);
    for (i = 0; i < 40; i++)
        CHECK(buffer[i] == value(0, i));
    for_my_1d(i, 3 * PROCS + 1)
    {
        CHECK(i % PROCS == MYPROC);
        count++;
    }
    CHECK(all_reduce_to_all_add(count) == 3 * PROCS + 1);
    count = 0;
    for_my_2d(i, j, 3, 5)
    {
        CHECK((i * 5 + j) % PROCS == MYPROC && j < 5);
        count++;
    }
    CHECK(all_reduce_to_all_add(count) == 15);
    on_proc(PROCS - 1) CHECK(MYPROC == PROCS - 1);
    CHECK(PROCSLOG == (PROCS == 1 ? 0 : PROCS == 2 ? 1 : PROCS == 4 ? 2 : -1));
    CHECK(get_seconds() > 0);
    splitc_poll();
}

static void memory(void)
{
    char *some = sc_malloc(1000), *zero = sc_calloc(10, 10), *huge = sc_malloc(100 << 20), copy[1000];
    int i;
    CHECK(some && zero && huge);
    memset(some, MYPROC + 1, 1000);
    CHECK(zero[0] == 0 && zero[99] == 0);
    some = sc_realloc(some, 2000);
    CHECK(some[999] == MYPROC + 1 && sc_realloc(NULL, 10) != NULL && sc_calloc((size_t)-1, 2) == NULL);
    barrier();
    /* The ranks have done the same, so that it lies at the same address. */
    bulk_read(copy, toglobal(next(), some), sizeof copy);
    for (i = 0; i < 1000; i++)
        CHECK(copy[i] == next() + 1);
    barrier();
    sc_free(some);
    sc_free(zero);
    sc_free(huge);
    sc_free(NULL);
}

int splitc_main(int argc, char **argv)
{
    CHECK(argc == 2 && strcmp(argv[1], "argument") == 0);
    statics();
    elsewhere();
    operations();
    pointers();
    atomics();
    together();
    memory();
    printf("rank %d of %d walks\n", MYPROC, PROCS);
    return 0;
}
