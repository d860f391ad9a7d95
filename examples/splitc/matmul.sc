/*
 * Matrix multiply: C = A B, of n x n blocks of 8 x 8 numbers, each block on one rank. A rank gets
 * the blocks of the next product while it works on those of this one.
 *
 *   cci run -n 4 ./matmul [n]
 */

#include <string.h>
#include <split-c/split-c.h>
#include "check.h"

#define B 8

/* The numbers that the matrices begin with. */
static double of_a(int i, int j) { return (i * 7 + j * 3) % 11 - 5; }
static double of_b(int i, int j) { return (i * 5 + j * 13) % 17 * 0.25; }

static void multiply_add(double c[B][B], double a[B][B], double b[B][B])
{
    int i, j, k;
    for (i = 0; i < B; i++)
        for (k = 0; k < B; k++)
            for (j = 0; j < B; j++)
                c[i][j] += a[i][k] * b[k][j];
}

static void fill(double (*spread a)[B][B], double (*spread b)[B][B], int n)
{
    int i, j, x, y;
    for_my_2d(i, j, n, n) {
        double (*own_a)[B] = *tolocal(&a[i * n + j]), (*own_b)[B] = *tolocal(&b[i * n + j]);
        for (x = 0; x < B; x++)
            for (y = 0; y < B; y++) {
                own_a[x][y] = of_a(i * B + x, j * B + y);
                own_b[x][y] = of_b(i * B + x, j * B + y);
            }
    }
}

/* Compares this rank's blocks with the product as one process computes it. */
static void check(double (*spread c)[B][B], int n)
{
    int i, j, k, x, y;
    for_my_2d(i, j, n, n)
        for (x = 0; x < B; x++)
            for (y = 0; y < B; y++) {
                double sum = 0;
                for (k = 0; k < n * B; k++)
                    sum += of_a(i * B + x, k) * of_b(k, j * B + y);
                if (!agree(c[i * n + j][x][y], sum))
                    wrong("element", (i * B + x) * n * B + j * B + y, c[i * n + j][x][y], sum);
            }
}

int splitc_main(int argc, char **argv)
{
    int n = argument(argc, argv, 1, 5), i, j, k, now;
    double a[n][n]::[B][B], b[n][n]::[B][B], c[n][n]::[B][B];
    double left[2][B][B], right[2][B][B], sum[B][B];
    fill(a, b, n);
    barrier();
    for_my_2d(i, j, n, n) {
        memset(sum, 0, sizeof sum);
        bulk_get(left[0], a[i][0], sizeof sum);
        bulk_get(right[0], b[0][j], sizeof sum);
        for (k = 0; k < n; k++) {
            now = k % 2;
            sync();
            if (k + 1 < n) {
                bulk_get(left[1 - now], a[i][k + 1], sizeof sum);
                bulk_get(right[1 - now], b[k + 1][j], sizeof sum);
            }
            multiply_add(sum, left[now], right[now]);
        }
        bulk_put(c[i][j], sum, sizeof sum);
    }
    sync();
    barrier();
    check(c, n);
    barrier();
    on_one {
        printf("matmul: %d x %d is right\n", n * B, n * B);
    }
    return 0;
}
