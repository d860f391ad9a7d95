/*
 * Messages of all lengths to and fro, each checked.
 */

#include "pair.h"

#define LONGEST (1 << 20)

static unsigned char out[LONGEST], in[LONGEST];

int main(int argc, char **argv) {
    static const uint32_t sizes[] = {0, 1, 8, 40, 41, 128, 4096, 16384, 16385, 65536, LONGEST};
    unsigned at, round, byte;

    CHECK(argc == 5);
    begin(argv, NULL, 0);
    for (at = 0; at < sizeof sizes / sizeof *sizes; at++)
        for (round = 0; round < 20; round++) {
            uint32_t size = sizes[at];
            uint64_t bits = at * 100 + round;
            mx_request_t receive = start_receive(in, size, bits);
            mx_status_t status;

            for (byte = 0; byte < size; byte++)
                out[byte] = (unsigned char)(byte * 7 + round + (unsigned)rank);
            if (rank == 1) {
                finish(receive);
                finish(start_send(out, size, bits));
                continue;
            }
            finish(start_send(out, size, bits));
            status = finish(receive);
            CHECK(status.msg_length == size && status.xfer_length == size && status.match_info == bits);
            CHECK(status.source.stuff[0] == peer.stuff[0] && status.source.stuff[1] == peer.stuff[1]);
            for (byte = 0; byte < size; byte++)
                CHECK(in[byte] == (unsigned char)(byte * 7 + round + 1));
        }
    finish_together("ping and pong");
    return 0;
}
