/*
 * Ping-pong by stores: single stores of 1 to 8 bytes, then copies, aligned and not. Who waits polls
 * the last byte in its own memory.
 */

#include "pair.h"

static void store(volatile unsigned char *to, unsigned int size, uint64_t value) {
    switch (size) {
    case 1: *to = (unsigned char)value; break;
    case 2: *(volatile uint16_t *)to = (uint16_t)value; break;
    case 4: *(volatile uint32_t *)to = (uint32_t)value; break;
    default: *(volatile uint64_t *)to = value; break;
    }
}

/* Sends `size` bytes of a value that end at `end`, the last one of them last. */
static void send_bytes(unsigned int size, unsigned int end, unsigned char value) {
    static unsigned char bytes[SIZE];

    if (size <= 8) {
        store(there + end - size, size, value * UINT64_C(0x0101010101010101));
    } else {
        time_t begun = time(NULL);

        memset(bytes, value, size);
        do {
            SCIMemCpy(sequence, bytes, far_map, end - size, size - 1, SCI_FLAG_ERROR_CHECK, &error);
            CHECK(time(NULL) - begun < PATIENCE);
        } while (error == SCI_ERR_TRANSFER_FAILED);
        OK((void)0);
        SCIStoreBarrier(sequence, SCI_NO_FLAGS);
        there[end - 1] = value;
    }
    SCIFlush(sequence, SCI_NO_FLAGS);
    confirm();
}

static void receive_bytes(unsigned int size, unsigned int end, unsigned char value) {
    unsigned int at;

    until(SIZE - end, value);
    for (at = end - size; at < end; at++)
        CHECK(here[at] == value);
}

int main(int argc, char **argv) {
    static const unsigned int sizes[] = {1, 2, 4, 8, 9, 63, 64, 65, 2048, 16383, 65000};
    unsigned int at, shift, round;

    begin(argc, argv);
    for (at = 0; at < sizeof sizes / sizeof *sizes; at++)
        for (shift = 0; shift < 2; shift++)
            for (round = 1; round <= 100; round++) {
                unsigned int size = sizes[at], end = SIZE - 64 - (size > 8 ? shift : 0);

                if (rank == 0)
                    send_bytes(size, end, (unsigned char)round);
                receive_bytes(size, end, (unsigned char)round);
                if (rank == 1)
                    send_bytes(size, end, (unsigned char)round);
            }
    finish_together("ping and pong");
    return 0;
}
