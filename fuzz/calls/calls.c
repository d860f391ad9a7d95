/* The frame of the programs that make random calls: see calls.h. */

#include "calls.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* Calls of which a failure shows the names. */
#define LAST 32
/* Seconds after which a call hangs. */
#define LIMIT 60
/* Percent of the calls that have to succeed. */
#define SHARE 30
/* So many calls leave no function without a success by chance. */
#define ENOUGH 50000

struct board *board;
int process, processes = 1;
const char *transport = "";

static const char *const names[] = {
#define LISTED(name) #name,
#include "listed.h"
#undef LISTED
};

/* The counts of a process, in memory of both. */
static struct counts {
    uint64_t made, succeeded;
} (*counts)[FUNCTIONS];

static uint64_t state, seed, made;
static enum function last[LAST];
static signed char how[LAST];
static int is_child;
static pid_t parent;

uint64_t draw(void) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545f4914f6cdd1dull;
}

uint32_t below(uint32_t bound) {
    return (uint32_t)((draw() >> 32) * bound >> 32);
}

int one_in(uint32_t n) {
    return below(n) == 0;
}

uint32_t length_to(uint32_t most) {
    uint32_t bound = one_in(8) ? most : most < 128 ? most : 128;

    return bound == UINT32_MAX ? (uint32_t)draw() : below(bound + 1);
}

uint64_t enter(enum function function) {
    last[made % LAST] = function;
    how[made % LAST] = -1;
    if (!is_child)
        alarm(LIMIT);
    return made++;
}

void leave(uint64_t number, enum function function, int succeeded) {
    /* The call may have made others, by a handler. */
    if (made - number <= LAST)
        how[number % LAST] = (signed char)!!succeeded;
    if (is_child)
        return;
    counts[process][function].made++;
    counts[process][function].succeeded += succeeded != 0;
}

/* Writes a line without a lock, so that it works within a signal. */
static void say(const char *format, ...) {
    char line[256];
    va_list list;
    int length;

    va_start(list, format);
    length = vsnprintf(line, sizeof line, format, list);
    va_end(list);
    if (length > 0 && write(STDERR_FILENO, line, (size_t)length) < 0)
        return;
}

static void show_last(void) {
    uint64_t at = made < LAST ? 0 : made - LAST;

    say("process %d of %d over %s, --seed %llu, call %llu; the last calls:\n", process, processes, transport,
        (unsigned long long)seed, (unsigned long long)made);
    for (; at < made; at++)
        say("  %s: %s\n", names[last[at % LAST]],
            how[at % LAST] < 0 ? "has not returned" : how[at % LAST] ? "succeeded" : "refused");
}

void broken(const char *promise) {
    say("FINDING: broken promise: %s\n", promise);
    abort();
}

static void on_signal(int number) {
    if (is_child)
        say("in a forked child\n");
    if (number == SIGALRM)
        say("FINDING: %s has not returned within %d s\n", names[last[(made - 1) % LAST]], LIMIT);
    else
        say("FINDING: signal %d\n", number);
    show_last();
    signal(SIGABRT, SIG_DFL);
    abort();
}

static void watch(void) {
    struct sigaction action;

    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    sigaction(SIGALRM, &action, NULL);
    sigaction(SIGABRT, &action, NULL);
    /* The sanitizer reports these by itself, and aborts then. */
#ifndef __SANITIZE_ADDRESS__
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
#endif
}

/*
 * Whether a child can call. Its sanitizer waits for ever for the lock of its allocator where
 * another thread of the parent held that; without threads nobody does.
 */
static int may_fork(void) {
#ifdef __SANITIZE_ADDRESS__
    struct stat of;

    return stat("/proc/self/task", &of) == 0 && of.st_nlink == 3;
#else
    return 1;
#endif
}

void in_fork(void (*in_child)(void)) {
    int status = 0;
    pid_t child = may_fork() ? fork() : -1, ended;

    if (child < 0)
        return;
    alarm(LIMIT);
    if (child == 0) {
        is_child = 1;
        /* Before the parent, so that the child is named. */
        alarm(LIMIT / 2);
        in_child();
        _exit(0);
    }
    do
        ended = waitpid(child, &status, 0);
    while (ended < 0 && errno == EINTR);
    PROMISE(ended == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void run_one(uint64_t weights) {
    uint64_t at = draw() % weights;
    const struct operation *operation = operations;

    while (at >= operation->weight)
        at -= operation++->weight;
    operation->run();
}

/* Whether the other process has made its calls, or is gone. */
static int other_has_ended(pid_t child) {
    siginfo_t of;

    if (processes == 1 || __atomic_load_n(&board->ended[!process], __ATOMIC_ACQUIRE))
        return 1;
    if (child == 0)
        return getppid() != parent;
    of.si_pid = 0;
    return waitid(P_PID, (id_t)child, &of, WEXITED | WNOHANG | WNOWAIT) == 0 && of.si_pid == child;
}

/* Runs until this process and the other one have made so many calls. */
static void run(uint64_t calls, pid_t child) {
    const struct operation *operation;
    uint64_t weights = 0;

    for (operation = operations; operation->run; operation++)
        weights += operation->weight;
    while (made < calls || !other_has_ended(child)) {
        run_one(weights);
        if (made >= calls)
            __atomic_store_n(&board->ended[process], 1, __ATOMIC_RELEASE);
    }
}

/* Why it need not succeed over this transport; NULL: it must. */
static const char *why_left_out(enum function function) {
    const struct left_out *at;

    for (at = left_out; at->reason; at++)
        if (at->function == function)
            return (at->transports == NULL || strstr(at->transports, transport)) &&
                           (at->processes == 0 || at->processes == processes)
                       ? NULL
                       : at->reason;
    return NULL;
}

/* Prints the counts of both processes. Whether they suffice. */
static int count(int all) {
    uint64_t total = 0, succeeded = 0;
    int function, never = 0;
    const char *why;

    for (function = 0; function < FUNCTIONS; function++) {
        uint64_t of = counts[0][function].made + counts[1][function].made;
        uint64_t good = counts[0][function].succeeded + counts[1][function].succeeded;

        total += of;
        succeeded += good;
        if (all)
            printf("  %-28s %9llu made %9llu succeeded\n", names[function], (unsigned long long)of,
                   (unsigned long long)good);
        if (good > 0)
            continue;
        why = why_left_out((enum function)function);
        if (why) {
            printf("  left out: %s, %s\n", names[function], why);
        } else {
            printf("  never succeeded: %s (%llu calls)\n", names[function], (unsigned long long)of);
            never++;
        }
    }
    printf("%d processes over %s, --seed %llu: %llu calls, %llu %% succeeded, %d functions never\n", processes, transport,
           (unsigned long long)seed, (unsigned long long)total, (unsigned long long)(total ? succeeded * 100 / total : 0),
           never);
    return (never == 0 || total < ENOUGH) && succeeded * 100 >= total * SHARE;
}

/* Waits for the other process, which is to end well. */
static int is_well(pid_t child) {
    int status = 0;
    pid_t ended;

    do
        ended = waitpid(child, &status, 0);
    while (ended < 0 && errno == EINTR);
    return ended == child && status == 0;
}

/* Memory that both processes see. */
static void *share(size_t size) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED) {
        perror("mmap");
        exit(2);
    }
    return memory;
}

/* Ends the child; in the parent, judges both. */
static int judge(pid_t child, int all) {
    if (processes == 2) {
        if (child == 0)
            return 0;
        if (!is_well(child))
            return 1;
    }
    if (count(all))
        return 0;
    printf("FINDING: too few calls succeeded\n");
    return 1;
}

/* The program; one with a main of its own calls it. */
int calls_main(int argc, char **argv);

int calls_main(int argc, char **argv) {
    uint64_t calls = 1000;
    int option, all = 0;
    pid_t child = 0;

    seed = 1;
    while ((option = getopt(argc, argv, "c:s:p:t:v")) != -1) {
        switch (option) {
        case 'c':
            calls = strtoull(optarg, NULL, 0);
            break;
        case 's':
            seed = strtoull(optarg, NULL, 0);
            break;
        case 'p':
            processes = atoi(optarg) == 2 ? 2 : 1;
            break;
        case 't':
            transport = optarg;
            break;
        case 'v':
            all = 1;
            break;
        default:
            fprintf(stderr, "usage: %s [-c CALLS] [-s SEED] [-p PROCESSES] [-t TRANSPORT] [-v]\n", argv[0]);
            return 2;
        }
    }
    board = share(sizeof *board);
    counts = share(2 * sizeof *counts);
    if (processes == 2) {
        parent = getpid();
        child = fork();
        if (child < 0) {
            perror("fork");
            return 2;
        }
        process = child == 0;
    }
    state = (seed * 2 + (uint64_t)process + 1) * 0x9e3779b97f4a7c15ull;
    watch();
    set_up();
    run(calls, child);
    tear_down();
    alarm(0);
    return judge(child, all);
}

#ifndef OWN_MAIN
int main(int argc, char **argv) {
    return calls_main(argc, argv);
}
#endif
