/*
 * Two programs without standard descriptors, or that close them while they are connected.
 */

#include "pair.h"

#include "../../../descriptors.h"

#define LONGEST (1 << 20)

static unsigned char out[LONGEST], in[LONGEST];

int main(int argc, char **argv) {
    static const uint32_t sizes[] = {0, 8, 5000, LONGEST};
    unsigned at, byte;

    CHECK(argc == 5);
    begin(argv, NULL, 0);
    close_standard("connected");
    for (at = 0; at < sizeof sizes / sizeof *sizes; at++) {
        mx_request_t receive = start_receive(in, sizes[at], at);

        for (byte = 0; byte < sizes[at]; byte++)
            out[byte] = (unsigned char)(byte * 7 + at);
        finish(start_send(out, sizes[at], at));
        CHECK(finish(receive).xfer_length == sizes[at] && memcmp(in, out, sizes[at]) == 0);
    }
    restore_standard("exchanged");
    finish_together("exchanged");
    return 0;
}
