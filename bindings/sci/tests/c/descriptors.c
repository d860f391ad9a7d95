/*
 * Two programs without standard descriptors, or that close them while they have each other's
 * segments.
 */

#include "pair.h"

#include "../../../descriptors.h"

int main(int argc, char **argv) {
    begin(argc, argv);
    close_standard("connected");
    there[SIZE - 1] = (unsigned char)(7 + rank);
    confirm();
    until(0, (unsigned char)(8 - rank));
    restore_standard("stored");
    finish_together("exchanged");
    return 0;
}
