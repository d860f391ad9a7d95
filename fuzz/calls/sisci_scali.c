/* libsisci: Scali's interface. */

#include "sisci_calls.h"

#ifndef _REENTRANT
static PSHARABLE chunks[OTHERS];
static PCONNECTOR connectors[OTHERS];

/* Scali's calls are made of those of SISCI, which count. */
void scali(void) {
    unsigned at = below(OTHERS);
    ICM_STATUS status;
    void *address;

    /* Set anew where the devices were closed. */
    scasci_desc = devices[0];
    (void)enter(AT_SCICreateSegment);
    switch (below(9)) {
    case 0:
        if (chunks[at])
            SciCloseLocalChunk(&chunks[at], &status);
        if (!chunks[at])
            SciAllocateLocalChunk(&chunks[at], 1 + length_to(BYTES - 1), LMAP_CONSISTENT, &status);
        break;
    case 1:
        SciMapLocalChunk(chunks[at], length_to(4000), 0, MP_READWRITE, &status, &address);
        break;
    case 2:
        SciOffer(chunks[at], 0, first_id & 0x7fff, at, LMAP_CONSISTENT, &status);
        break;
    case 3:
        SciWithdraw(chunks[at], 0, first_id & 0x7fff, at, &status);
        break;
    case 4:
        if (connectors[at])
            SciDisconnectFromRemoteChunk(&connectors[at], &status);
        break;
    case 5:
        if (!connectors[at])
            SciConnectToRemoteChunk(&connectors[at], 0, node, first_id & 0x7fff, below(OTHERS), &status);
        break;
    case 6:
        if (connectors[at])
            SciMapRemoteChunk(connectors[at], length_to(4000), 0, RMAP_GATHERING, LMAP_CONSISTENT, MP_READWRITE, &status, &address);
        break;
    case 7:
        SciFlush(0);
        break;
    default:
        sum += SciGetNodeId(0) + SciGetNumberOfAdapters() + SciGetSizeOfRemoteChunk(connectors[at]);
    }
}
#endif
