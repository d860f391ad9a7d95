/*
 * What the example programs share: arguments, numbers that are random and equal everywhere, and the
 * end of a program whose result is wrong.
 */

#ifndef EXAMPLE_CHECK_H
#define EXAMPLE_CHECK_H

#include <stdio.h>
#include <stdlib.h>

/* The argument at this place, or a default. */
static int argument(int argc, char **argv, int at, int otherwise)
{
    int value = argc > at ? atoi(argv[at]) : otherwise;
    if (value < 1) {
        fprintf(stderr, "%s: argument %d is not above 0\n", argv[0], at);
        exit(2);
    }
    return value;
}

/* The next of a row of numbers below 2^31 (a linear congruential generator). */
static unsigned random_next(unsigned long *state)
{
    *state = *state * 6364136223846793005UL + 1442695040888963407UL;
    return (unsigned)(*state >> 33);
}

static void wrong(const char *what, long at, double found, double wanted)
{
    fprintf(stderr, "%s %ld is %.17g, and not %.17g\n", what, at, found, wanted);
    exit(1);
}

/* Whether two numbers agree to 12 digits. */
static int agree(double a, double b)
{
    double size = b < 0 ? -b : b, off = a < b ? b - a : a - b;
    return off <= 1e-12 * (size > 1 ? size : 1);
}

#endif /* EXAMPLE_CHECK_H */
