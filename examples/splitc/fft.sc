/*
 * Fast Fourier transform of m x m points, m a power of two, in four steps. The points are a matrix
 * whose rows go around the ranks. Transposed by gets, its rows are transformed, multiplied by roots
 * of one, transposed and transformed again: no rank needs more than its rows at a time.
 *
 *   cci run -n 4 ./fft [m]
 */

#include <math.h>
#include <string.h>
#include <split-c/split-c.h>
#include "check.h"

typedef struct { double re, im; } complex_t;

static complex_t times(complex_t a, complex_t b)
{
    complex_t c;
    c.re = a.re * b.re - a.im * b.im;
    c.im = a.re * b.im + a.im * b.re;
    return c;
}

/* The root of one with this exponent, of n. */
static complex_t root(long exponent, long n)
{
    double angle = -2 * 3.14159265358979323846 * (exponent % n) / n;
    complex_t c;
    c.re = cos(angle);
    c.im = sin(angle);
    return c;
}

static complex_t point(int i)
{
    complex_t c;
    c.re = (i * 7 + 3) % 13 / 13.0 - 0.5;
    c.im = (i * 5 + 1) % 17 / 17.0 - 0.5;
    return c;
}

/* Transforms n points in place: sorted by reversed bits, then halves joined to wholes. */
static void transform(complex_t *x, int n)
{
    int i, j, bit, half, from, k;
    for (i = 1, j = 0; i < n; i++) {
        for (bit = n >> 1; j & bit; bit >>= 1)
            j ^= bit;
        j ^= bit;
        if (i < j) {
            complex_t other = x[i];
            x[i] = x[j];
            x[j] = other;
        }
    }
    for (half = 1; half < n; half *= 2)
        for (from = 0; from < n; from += 2 * half)
            for (k = 0; k < half; k++) {
                complex_t a = x[from + k], b = times(x[from + k + half], root(k, 2 * half));
                x[from + k].re = a.re + b.re;
                x[from + k].im = a.im + b.im;
                x[from + k + half].re = a.re - b.re;
                x[from + k + half].im = a.im - b.im;
            }
}

/* Gets column i of a matrix. */
static void column(int m, complex_t from[m][m]::, int i, complex_t *to)
{
    int j;
    for (j = 0; j < m; j++)
        to[j] := from[j][i];
    sync();
}

/* The transform of the points of `a` by columns, in their order in `c`. */
static void fft(int m, complex_t a[m][m]::, complex_t b[m][m]::, complex_t c[m][m]::)
{
    complex_t *line = malloc(m * sizeof *line);
    int i, j;
    for_my_1d(i, m) {
        column(m, a, i, line);
        transform(line, m);
        for (j = 0; j < m; j++) {
            line[j] = times(line[j], root((long)i * j, (long)m * m));
            b[i][j] := line[j];
        }
        sync();
    }
    barrier();
    for_my_1d(i, m) {
        column(m, b, i, line);
        transform(line, m);
        for (j = 0; j < m; j++)
            c[j][i] := line[j];
        sync();
    }
    barrier();
    free(line);
}

int splitc_main(int argc, char **argv)
{
    int m = argument(argc, argv, 1, 16), i, n = m * m;
    complex_t a[m][m]::, b[m][m]::, c[m][m]::;
    complex_t *all = malloc(n * sizeof *all), found;
    double sum = 0;
    if (m & (m - 1)) {
        fprintf(stderr, "%s: %d is no power of two\n", argv[0], m);
        exit(2);
    }
    for_my_1d(i, n)
        a[i / m][i % m] = point(i);
    barrier();
    fft(m, a, b, c);
    for (i = 0; i < n; i++)
        all[i] = point(i);
    transform(all, n);
    for_my_1d(i, n) {
        found = c[i / m][i % m];
        if (!agree(found.re, all[i].re) || !agree(found.im, all[i].im))
            wrong("point", i, found.re, all[i].re);
    }
    for (i = 0; i < n; i++) {
        found = c[i / m][i % m];
        sum += found.re * (i % 7) + found.im * (i % 5);
    }
    barrier();
    on_one {
        printf("weighted sum %.9f\n", sum);
        printf("fft: %d points are right\n", n);
    }
    free(all);
    return 0;
}
