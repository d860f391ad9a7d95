// Each call of the header for C++, on any number of ranks.

#include <split-c/split-c.hpp>

#include <cstdio>
#include <cstdlib>
#include <utility>

using splitc::global_ptr;
using splitc::spread_ptr;

#define CHECK(what)                                                                             \
    do {                                                                                        \
        if (!(what)) {                                                                          \
            std::fprintf(stderr, "rank %d: line %d: %s\n", splitc::me(), __LINE__, #what);      \
            std::exit(1);                                                                       \
        }                                                                                       \
    } while (0)

struct node {
    char tag;
    double value;
    global_ptr<node> next;
};

static long counter;

static void words(int me, int procs, int next)
{
    spread_ptr<int> cells = splitc::allocate<int>(2 * procs);
    cells[next] = me;
    splitc::barrier();
    int before = (me + procs - 1) % procs;
    CHECK(cells[me] == before);
    cells[me] += 5;
    cells[me + procs] = cells[me];
    CHECK(*cells.local() == 0 || cells.rank() == 0);
    splitc::barrier();
    CHECK(cells[next] == me + 5 && cells[next + procs] == me + 5);
    CHECK((cells + next).rank() == next && (cells + (next + procs)) - cells == next + procs);
    CHECK((&cells[next])[1] == me + 5);
    spread_ptr<int> walking = cells;
    ++walking;
    --walking;
    walking += 3;
    walking -= 3;
    CHECK(walking == cells && !(walking != cells) && walking && !spread_ptr<int>(nullptr));
    splitc::barrier();
    splitc::free(cells);
}

static void phases(int me, int procs, int next)
{
    spread_ptr<long> cells = splitc::allocate<long>(8 * procs);
    global_ptr<long> there = (cells + next).global(), mine = (cells + me).global();
    splitc::put(there, 40L + me);
    splitc::put(there + 1, 50L + me);
    splitc::sync();
    splitc::barrier();
    long a = 0, b = 0;
    splitc::get(a, there);
    splitc::get(b, there + 1);
    splitc::sync();
    CHECK(a == 40 + me && b == 50 + me);
    const long values[2] = {7, 8};
    splitc::store(there + 2, 6L);
    splitc::bulk_store(there + 3, values, 2);
    splitc::store_sync(3 * sizeof(long));
    CHECK(mine[2] == 6 && mine[3] == 7 && mine[4] == 8);
    splitc::bulk_write(there + 5, values, 2);
    splitc::bulk_put(there + 6, values, 2);
    splitc::sync();
    long back[3];
    splitc::bulk_read(back, there + 5, 3);
    CHECK(back[0] == 7 && back[1] == 7 && back[2] == 8);
    splitc::bulk_get(back, there + 6, 2);
    splitc::sync();
    CHECK(back[0] == 7 && back[1] == 8);
    CHECK((there + 6) - there == 6 && there.rank() == next && there.local() == mine.local());
    splitc::all_store_sync();
    splitc::free(cells);
}

static void structures(int me, int procs, int next)
{
    spread_ptr<node> nodes = splitc::allocate<node>(procs);
    global_ptr<node> there = (nodes + next).global();
    there->*&node::value = me + 0.5;
    there->*&node::tag = 'x';
    there->*&node::next = (nodes + me).global();
    splitc::barrier();
    node whole = nodes[me];
    CHECK(whole.tag == 'x' && whole.value == (me + procs - 1) % procs + 0.5);
    CHECK((whole.next->*&node::tag) == 'x');
    // All have read.
    splitc::barrier();
    *there = node();
    splitc::barrier();
    CHECK((nodes.global() + 0) && node(nodes[me]).value == 0);
    splitc::barrier();
    splitc::free(nodes);
}

static void together(int me, int procs)
{
    global_ptr<long> last(procs - 1, &counter);
    splitc::fetch_add(last, 2L);
    splitc::barrier();
    CHECK(*last == 2L * procs);
    splitc::barrier();
    if (me == 0) {
        CHECK(splitc::exchange(last, 5L) == 2L * procs);
        CHECK(splitc::compare_swap(last, 4L, 6L) == 5 && splitc::compare_swap(last, 5L, 6L) == 5 && *last == 6);
    }
    splitc::barrier();
    CHECK(splitc::sum(me) == procs * (procs - 1) / 2 && splitc::maximum(double(me)) == procs - 1);
    CHECK(splitc::minimum(1L + me) == 1 && splitc::product(2.0f) == float(1 << procs));
    CHECK(splitc::scan_sum(1) == me + 1);
    std::pair<int, double> from_last = {me, me * 0.5};
    struct { int a; double b; } value = {from_last.first, from_last.second};
    value = splitc::broadcast(value, procs - 1);
    CHECK(value.a == procs - 1 && value.b == (procs - 1) * 0.5);
}

static int program(int, char **)
{
    int me = splitc::me(), procs = splitc::procs(), next = (me + 1) % procs;
    words(me, procs, next);
    phases(me, procs, next);
    structures(me, procs, next);
    together(me, procs);
    splitc::poll();
    std::printf("rank %d of %d walks\n", me, procs);
    return 0;
}

int main(int argc, char **argv)
{
    return splitc::run(argc, argv, program);
}
