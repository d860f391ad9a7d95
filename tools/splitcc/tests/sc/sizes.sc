/*
 * Sizes of run time: they are evaluated once, where an array is declared, and may be accesses of the
 * global address space.
 */

#include <stdio.h>
#include <stdlib.h>
#include <split-c/split-c.h>

#define CHECK(x)                                                                                   \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            fprintf(stderr, "%s:%d: rank %d: not so: %s\n", __FILE__, __LINE__, MYPROC, #x);       \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

int table[3][5]::[2];
int *global shared;
static int calls;

static int counted(int n)
{
    calls++;
    return n;
}

/* The bounds of a parameter are those at the begin of the function, whatever becomes of them. */
static double modern(double A[n][m]::[2], int n, int m)
{
    int i, j, columns = m;
    double sum = 0;
    m = 99;
    for (i = 0; i < n; i++)
        for (j = 0; j < columns; j++)
            sum += A[i][j][1];
    return sum;
}

static double old_style(A, n, m)
double A[n][m]::[2];
int n, m;
{
    int i, j, columns = m;
    double sum = 0;
    m = 1;
    for (i = 0; i < n; i++)
        for (j = 0; j < columns; j++)
            sum += A[i][j][1];
    return sum;
}

static void dimensions(int n, int m)
{
    int i, j, rows = n, columns = m;
    double first, A[n][counted(m)]::[2], *B[counted(n)][m][counted(4)]::, last;
    CHECK(calls == 3);
    m = 77;
    n = 55;
    on_one {
        for (i = 0; i < rows; i++)
            for (j = 0; j < columns; j++) {
                A[i][j][1] = 10 * i + j;
                B[i][j][3] = j == 1 ? &last : &first;
            }
        for (i = 0; i < rows; i++)
            CHECK(A[i][1][1] == 10 * i + 1 && B[i][1][3] == &last && B[i][0][3] == &first && B[i][1][2] == 0);
    }
    barrier();
    CHECK(modern(A, 3, 2) == 63 && old_style(A, 3, 2) == 63 && calls == 3);
    barrier();
}

static void operands()
{
    int length = 5, nine = 9, *global here[2], k;
    int local[3] = {1, 2, 3};
    shared = toglobal(MYPROC, &length);
    {
        int buffer[*shared];
        char small[sizeof buffer[0]];
        int (*rows)[*shared] = &buffer;
        CHECK(sizeof buffer == 20 && sizeof small == 4 && sizeof *rows == 20);
        CHECK(sizeof(char[*shared + 1]) == 6);
    }
    CHECK(sizeof table[1][2] == 8 && sizeof table[1][2][0] == 4 && sizeof *shared == 4);
    CHECK(sizeof(table[calls++][2]) == 8 && calls == 3);
    {
        __typeof__(table[0][0]) block;
        __typeof__(table[0][0][1]) element = 3;
        block[1] = element;
        CHECK(sizeof block == 8 && 1 [block] == 3);
    }
    here[1] = toglobal(MYPROC, &nine);
    k = 2;
    CHECK(*1 [here] == 9 && k[local] == 3 && *(1 [here]) == 9);
}

splitc_main()
{
    dimensions(3, 2);
    operands();
    on_one {
        printf("%d ranks have sizes\n", PROCS);
    }
    return;
}
