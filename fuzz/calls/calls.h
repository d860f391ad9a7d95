/*
 * The frame of the programs that make random calls of a library.
 *
 * A program has operations, each of which makes one call or a few with random arguments, by weight.
 * The functions of the library are those of its exported.list, which the driver ci/calls writes to
 * listed.h. The frame counts the calls of each and how many succeeded. It fails where a function
 * never succeeds, where too few calls succeed, and where a call does not return.
 *
 * With two processes both run the program, with seeds of their own. They share a board, on which
 * each writes names that the other one uses.
 */

#ifndef CALLS_H
#define CALLS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* AT_name: the number of each function. */
enum function {
#define LISTED(name) AT_##name,
#include "listed.h"
#undef LISTED
    FUNCTIONS
};

/* An operation, and how often it is taken beside the others. */
struct operation {
    void (*run)(void);
    unsigned weight;
};

/*
 * A function that need not succeed everywhere: the transports over which it must (NULL: all), the
 * number of processes with which it must (0: any), and why not elsewhere.
 */
struct left_out {
    enum function function;
    const char *transports;
    int processes;
    const char *reason;
};

/* What a library's program defines. The ends of the lists are a NULL. */
extern const struct operation operations[];
extern const struct left_out left_out[];
/* Before the first and after the last operation. */
void set_up(void);
void tear_down(void);

/* Bytes that both processes see: a row of entries for each. */
#define ENTRIES 16
#define ENTRY_BYTES 256
struct board {
    unsigned char entries[2][ENTRIES][ENTRY_BYTES];
    int ended[2];
};
extern struct board *board;
/* Which of the processes this is, and how many there are. */
extern int process, processes;
/* The transport that the driver has configured. */
extern const char *transport;

/* Notes a call, so that a failure can name it, and gives its number. */
uint64_t enter(enum function function);
/* Counts the call of that number. */
void leave(uint64_t number, enum function function, int succeeded);
/* Runs `in_child` in a forked process, which must end well. Its calls are not counted. */
void in_fork(void (*in_child)(void));

/* Makes a call whose result 0 is a success, and gives the result. */
#define CALL(function, ...) CALL_GOOD(function, result_ == 0, function(__VA_ARGS__))
/* Makes a call by an expression, which succeeded where `good` is true of `result_`; gives that. */
#define CALL_GOOD(function, good, expression)                                                                          \
    __extension__({                                                                                                    \
        uint64_t number_ = enter(AT_##function);                                                                       \
        __typeof__(expression) result_ = expression;                                                                   \
        leave(number_, AT_##function, good);                                                                           \
        result_;                                                                                                       \
    })
/* Makes a call without a result. */
#define CALL_VOID(function, ...)                                                                                       \
    do {                                                                                                               \
        uint64_t number_ = enter(AT_##function);                                                                       \
        function(__VA_ARGS__);                                                                                         \
        leave(number_, AT_##function, 1);                                                                              \
    } while (0)

/* Reports a broken promise of the library, and ends the program. */
void broken(const char *promise);
#define PROMISE(holds) ((holds) ? (void)0 : broken(#holds))

/* A random number; one below a bound, which is not 0; whether one of n cases is taken. */
uint64_t draw(void);
uint32_t below(uint32_t bound);
int one_in(uint32_t n);
/* A length: mostly short, sometimes long, at most `most`. */
uint32_t length_to(uint32_t most);

#endif /* CALLS_H */
