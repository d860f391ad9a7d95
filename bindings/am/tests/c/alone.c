/*
 * A program of one dialect.
 */

int part_udp(void);

int main(void)
{
    return part_udp() == 10 ? 0 : 1;
}
