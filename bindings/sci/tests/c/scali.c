/*
 * Scali's interface: PROGRAM RANK OWN_ID PEER_ID. Each offers a chunk, connects to the other one's,
 * and answers what comes.
 */

#include <scasci.h>

#include "../../../compat_check.h"

#define SIZE 8192

static ICM_STATUS status;

#define OK(call)                                                                                                       \
    do {                                                                                                               \
        call;                                                                                                          \
        if (status != ICMS_OK)                                                                                         \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, SciErrorString(status));                                \
        CHECK(status == ICMS_OK);                                                                                      \
    } while (0)

#define FAILS(call, code)                                                                                              \
    do {                                                                                                               \
        call;                                                                                                          \
        CHECK_CODE((int)status, (int)(code));                                                                          \
    } while (0)

static void wait_for(volatile unsigned32 *word, unsigned32 value) {
    time_t begun = time(NULL);

    while (*word != value) {
        struct timespec pause = {0, 1000};

        nanosleep(&pause, NULL);
        CHECK(time(NULL) - begun < PATIENCE);
    }
}

/* What the other side sends next comes once this side has answered. */
static void receive(volatile unsigned32 *here, unsigned32 round) {
    unsigned int at;

    wait_for(&here[SIZE / 8], round);
    for (at = 0; at < SIZE / 8; at++)
        CHECK(here[at] == round);
}

static void misuse(PSHARABLE chunk, unsigned32 module, unsigned32 number) {
    void *address;
    PCONNECTOR none;
    PSHARABLE no_chunk = NULL;

    FAILS(SciOffer(chunk, 0, module, number, LMAP_CONSISTENT, &status), SCI_ERR_ILLEGAL_OPERATION);
    FAILS(SciOffer(NULL, 0, 0x8000, number, LMAP_CONSISTENT, &status), SCI_ERR_ILLEGAL_PARAMETER);
    FAILS(SciMapLocalChunk(chunk, SIZE, 0, MP_READWRITE, &status, &address), SCI_ERR_OUT_OF_RANGE);
    FAILS(SciMapLocalChunk(chunk, 8, SIZE, MP_READWRITE, &status, &address), SCI_ERR_OUT_OF_RANGE);
    FAILS(SciMapRemoteChunk(NULL, 0, 0, RMAP_GATHERING, LMAP_CONSISTENT, MP_READWRITE, &status, &address),
          SCI_ERR_OUT_OF_RANGE);
    FAILS(SciConnectToRemoteChunk(&none, 0, 4, module, 0x10000, &status), SCI_ERR_ILLEGAL_PARAMETER);
    FAILS(SciConnectToRemoteChunk(&none, 0, 12, module, number, &status), SCI_ERR_NO_SUCH_NODEID);
    FAILS(SciDisconnectFromRemoteChunk(&none, &status), SCI_ERR_ILLEGAL_PARAMETER);
    FAILS(SciCloseLocalChunk(&no_chunk, &status), SCI_ERR_ILLEGAL_PARAMETER);
    CHECK(RtlMemAlign(3, 8) == NULL && RtlMemAlign(64, (size_t)-8) == NULL);
}

int main(int argc, char **argv) {
    unsigned int rank, peer_node, round;
    unsigned32 own, peer, *bytes;
    volatile unsigned32 *here, *there;
    PSHARABLE chunk;
    PCONNECTOR far;
    void *address;
    time_t begun = time(NULL);
    BOOL is_well;

    CHECK(argc == 4);
    rank = (unsigned int)atoi(argv[1]);
    own = (unsigned32)atoi(argv[2]) & 0x7fffffff;
    peer = (unsigned32)atoi(argv[3]) & 0x7fffffff;
    peer_node = rank == 0 ? 8 : 4;
    SciInitialize(SCI_USR_VERSION + 1, &is_well);
    CHECK(!is_well);
    SciInitialize(SCI_USR_VERSION, &is_well);
    CHECK(is_well);
    CHECK(SciGetNumberOfAdapters() == 1 && SciGetNodeId(0) == 4 + 4 * rank && SciGetNodeId(1) == 0);
    SciFlush(0);

    OK(SciAllocateLocalChunk(&chunk, SIZE, LMAP_CONSISTENT, &status));
    OK(SciMapLocalChunk(chunk, 0, 0, MP_READWRITE, &status, &address));
    here = (volatile unsigned32 *)address;
    OK(SciOffer(chunk, 0, own >> 16, own & 0xffff, LMAP_CONSISTENT, &status));
    misuse(chunk, own >> 16, own & 0xffff);
    do {
        SciConnectToRemoteChunk(&far, 0, peer_node, peer >> 16, peer & 0xffff, &status);
        CHECK(time(NULL) - begun < PATIENCE);
    } while (status == SCI_ERR_NO_SUCH_SEGMENT);
    OK((void)0);
    CHECK(SciGetSizeOfRemoteChunk(far) == SIZE);
    OK(SciMapRemoteChunk(far, 0, 0, RMAP_GATHERING, LMAP_CONSISTENT, MP_READWRITE, &status, &address));
    there = (volatile unsigned32 *)address;

    bytes = (unsigned32 *)RtlMemAlign(32, SIZE / 2);
    CHECK(bytes && (uintptr_t)bytes % 32 == 0);
    for (round = 1; round <= 100; round++) {
        unsigned int at;

        for (at = 0; at < SIZE / 8; at++)
            bytes[at] = round;
        if (rank == 1)
            receive(here, round);
        memcpy((void *)(uintptr_t)there, bytes, SIZE / 2);
        SciFlush(0);
        there[SIZE / 8] = round;
        SciFlush(0);
        if (rank == 0)
            receive(here, round);
    }
    RtlMemFree(bytes);
    /* Both have seen the last one. */
    there[SIZE / 8 + 1] = 1;
    SciFlush(0);
    wait_for(&here[SIZE / 8 + 1], 1);
    OK(SciWithdraw(chunk, 0, own >> 16, own & 0xffff, &status));
    FAILS(SciWithdraw(chunk, 0, own >> 16, own & 0xffff, &status), SCI_ERR_ILLEGAL_OPERATION);
    OK(SciDisconnectFromRemoteChunk(&far, &status));
    CHECK(far == NULL);
    /* The other one may still be connected. */
    OK(SciCloseLocalChunk(&chunk, &status));
    CHECK(chunk == NULL);
    SciClose();
    puts("offered and connected");
    return 0;
}
