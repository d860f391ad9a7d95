/*
 * LU decomposition without pivoting of n x n blocks of 8 x 8 numbers, each block on one rank. In
 * step k the block of the diagonal is decomposed, then row and column k by it, and then all blocks
 * behind them lose the product of theirs.
 *
 *   cci run -n 4 ./lu [n]
 */

#include <string.h>
#include <split-c/split-c.h>
#include "check.h"

#define B 8

/* The diagonal outweighs the rest, so that no pivot is small. */
static double element(int i, int j, int size)
{
    return i == j ? size + i % 5 : ((i * 7 + j * 11) % 19 - 9) * 0.1;
}

static void decompose(double a[B][B])
{
    int i, j, k;
    for (k = 0; k < B; k++)
        for (i = k + 1; i < B; i++) {
            a[i][k] /= a[k][k];
            for (j = k + 1; j < B; j++)
                a[i][j] -= a[i][k] * a[k][j];
        }
}

/* A block right of a diagonal block: by its lower part. */
static void solve_row(double diagonal[B][B], double a[B][B])
{
    int i, j, k;
    for (k = 0; k < B; k++)
        for (i = k + 1; i < B; i++)
            for (j = 0; j < B; j++)
                a[i][j] -= diagonal[i][k] * a[k][j];
}

/* A block below a diagonal block: by its upper part. */
static void solve_column(double diagonal[B][B], double a[B][B])
{
    int i, j, k;
    for (i = 0; i < B; i++)
        for (k = 0; k < B; k++) {
            a[i][k] /= diagonal[k][k];
            for (j = k + 1; j < B; j++)
                a[i][j] -= a[i][k] * diagonal[k][j];
        }
}

static void lose_product(double c[B][B], double a[B][B], double b[B][B])
{
    int i, j, k;
    for (i = 0; i < B; i++)
        for (k = 0; k < B; k++)
            for (j = 0; j < B; j++)
                c[i][j] -= a[i][k] * b[k][j];
}

static void lu(int n, double (*spread a)[B][B])
{
    double diagonal[B][B], left[B][B], above[B][B];
    int i, j, k;
    for (k = 0; k < n; k++) {
        if (toproc(&a[k * n + k]) == MYPROC)
            decompose(*tolocal(&a[k * n + k]));
        barrier();
        bulk_read(diagonal, a[k * n + k], sizeof diagonal);
        for_my_2d(i, j, n, n)
            if (i == k && j > k)
                solve_row(diagonal, *tolocal(&a[i * n + j]));
            else if (j == k && i > k)
                solve_column(diagonal, *tolocal(&a[i * n + j]));
        barrier();
        for_my_2d(i, j, n, n)
            if (i > k && j > k) {
                bulk_get(left, a[i * n + k], sizeof left);
                bulk_get(above, a[k * n + j], sizeof above);
                sync();
                lose_product(*tolocal(&a[i * n + j]), left, above);
            }
        barrier();
    }
}

/* Compares this rank's blocks with the decomposition by one process. */
static void check(int n, double (*spread a)[B][B])
{
    int size = n * B, i, j, k;
    double *all = malloc(size * size * sizeof *all);
    for (i = 0; i < size; i++)
        for (j = 0; j < size; j++)
            all[i * size + j] = element(i, j, size);
    for (k = 0; k < size; k++)
        for (i = k + 1; i < size; i++) {
            all[i * size + k] /= all[k * size + k];
            for (j = k + 1; j < size; j++)
                all[i * size + j] -= all[i * size + k] * all[k * size + j];
        }
    for (i = 0; i < size; i++)
        for (j = 0; j < size; j++) {
            int block = i / B * n + j / B;
            if (toproc(&a[block]) == MYPROC && !agree(a[block][i % B][j % B], all[i * size + j]))
                wrong("element", i * size + j, a[block][i % B][j % B], all[i * size + j]);
        }
    free(all);
}

int splitc_main(int argc, char **argv)
{
    int n = argument(argc, argv, 1, 5), i, j, x, y;
    double (*spread a)[B][B] = all_spread_malloc(n * n, sizeof *a), product = 1;
    for_my_2d(i, j, n, n) {
        double (*own)[B] = *tolocal(&a[i * n + j]);
        for (x = 0; x < B; x++)
            for (y = 0; y < B; y++)
                own[x][y] = element(i * B + x, j * B + y, n * B);
    }
    barrier();
    lu(n, a);
    check(n, a);
    for (i = 0; i < n * B; i++)
        product *= a[i / B * n + i / B][i % B][i % B] / (n * B);
    barrier();
    on_one {
        printf("determinant, scaled: %.9f\n", product);
        printf("lu: %d x %d is right\n", n * B, n * B);
    }
    return 0;
}
