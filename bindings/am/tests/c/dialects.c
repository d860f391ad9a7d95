/*
 * The three dialects in one program, a source file each.
 */

#include <stdio.h>

int part_udp(void);
int part_mpi(void);
int part_now(void);

int main(void)
{
    if (part_udp() != 10 || part_mpi() != 10 || part_now() != 10) {
        return 1;
    }
    puts("three dialects");
    return 0;
}
