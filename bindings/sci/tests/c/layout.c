/*
 * Sizes and numbers of the interface, on 64-bit systems.
 */

#include "pair.h"

#define IS(name, value) CHECK((name) == (value))

int main(void) {
    unsigned int all = 0, at;
    const unsigned int flags[] = {
        SCI_FLAG_EMPTY,          SCI_FLAG_USE_CALLBACK,   SCI_FLAG_FIXED_INTNO,
        SCI_FLAG_SHARED_INT,     SCI_FLAG_FIXED_MAP_ADDR, SCI_FLAG_READONLY_MAP,
        SCI_FLAG_LOCK_OPERATION, SCI_FLAG_ERROR_CHECK,    SCI_FLAG_BLOCK_READ,
        SCI_FLAG_FLUSH_CPU_BUFFERS_ONLY,
        SCI_FLAG_FAST_BARRIER,   SCI_FLAG_NO_FLUSH,       SCI_FLAG_NO_STORE_BARRIER,
        SCI_FLAG_PRIVATE,        SCI_FLAG_FORCE_DISCONNECT,
        SCI_FLAG_NOTIFY,         SCI_FLAG_DMA_SOURCE_ONLY, SCI_FLAG_DMA_READ,
        SCI_FLAG_ASYNCHRONOUS_CONNECT,
        SCI_FLAG_BROADCAST,      SCI_FLAG_AUTO_ID,        SCI_FLAG_DMA_GLOBAL,
        SCI_FLAG_DMA_WAIT,       SCI_FLAG_IO_MAP_IOSPACE,
    };

    /* Each flag is a bit of its own. */
    for (at = 0; at < sizeof flags / sizeof *flags; at++) {
        CHECK(flags[at] != 0 && (flags[at] & (flags[at] - 1)) == 0 && (all & flags[at]) == 0);
        all |= flags[at];
    }
    CHECK(sizeof(sci_error_t) == 4 && sizeof(sci_desc_t) == 8);
    IS(SCI_ERR_BUSY, 0x40000900);
    IS(SCI_ERR_ACCESS, 0x40000921);
    IS(SCI_ERR_NO_SUCH_NODEID, 0x40000a00);
    IS(SCI_ERR_NODE_NOT_RESPONDING, 0x40000a02);
    IS(SCI_ERR_TRANSFER_FAILED, 0x40000a06);
    IS(SCI_CB_LOST, 5);
    IS(SCI_SEQ_PENDING, 3);
    IS(SCI_DMAQUEUE_ERROR, 5);
    IS(SCI_CALLBACK_CONTINUE, 2);
    IS(SCI_INFINITE_TIMEOUT, (unsigned int)-1);
    puts("laid out");
    return 0;
}
