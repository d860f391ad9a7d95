/*
 * Scali's interface (USR), over SISCI: chunks of memory that are offered by node, module and chunk,
 * and connected to. docs/design/sci.md has what each call is. One thread calls at a time. A call
 * writes ICMS_OK or a code of SISCI to status, which must not be NULL.
 */

#ifndef SCASCI_H
#define SCASCI_H

#include <rtl.h>
#include <sisci_api.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SCI_USR_VERSION 2u

typedef sci_error_t ICM_STATUS;
#define ICMS_OK SCI_ERR_OK

/* How a map is made: they are all alike here. */
enum { LMAP_CONSISTENT = 0, RMAP_GATHERING = 0 };
enum { MP_READONLY = 1, MP_READWRITE = 3 };

/* Memory of this process. `name` is found by others, and has the number of the segment. */
struct scasci_chunk {
    sci_local_segment_t segment, name;
    sci_map_t map, name_map;
    size_t size;
    void *address;
    unsigned int id;
    int is_offered;
};
typedef struct scasci_chunk *PSHARABLE;

/* A connection to memory of another process. */
struct scasci_connector {
    sci_remote_segment_t segment;
    sci_map_t map;
    sci_sequence_t sequence;
    volatile void *address;
    struct scasci_connector *next;
};
typedef struct scasci_connector *PCONNECTOR;

/* Of the process: one definition, whatever number of sources include this. */
__attribute__((weak)) sci_desc_t scasci_desc;
__attribute__((weak)) PCONNECTOR scasci_mapped;
__attribute__((weak)) unsigned int scasci_last;

/* The segment by which (module, chunk) is found; 0: the numbers are too large. */
static inline unsigned int scasci_name(unsigned32 module, unsigned32 chunk) {
    return module > 0x7fffu || chunk > 0xffffu ? 0 : 0x80000000u | module << 16 | chunk;
}

static inline const char *SciErrorString(ICM_STATUS status) {
    return SCIGetErrorString(status);
}

static inline void SciInitialize(unsigned32 version, BOOL *is_well) {
    sci_error_t error;

    *is_well = FALSE;
    if (version != SCI_USR_VERSION)
        return;
    SCIInitialize(0, &error);
    if (error == SCI_ERR_OK)
        SCIOpen(&scasci_desc, 0, &error);
    *is_well = error == SCI_ERR_OK;
}

static inline void SciClose(void) {
    sci_error_t error;

    if (scasci_desc)
        SCIClose(scasci_desc, 0, &error);
    scasci_desc = NULL;
    SCITerminate();
}

/* 0: there is none. */
static inline unsigned16 SciGetNodeId(unsigned int adapter) {
    unsigned int node = 0;
    sci_error_t error;

    SCIGetLocalNodeId(adapter, &node, 0, &error);
    return (unsigned16)(error == SCI_ERR_OK ? node : 0);
}

static inline unsigned int SciGetNumberOfAdapters(void) {
    return SciGetNodeId(0) != 0;
}

/* What was stored into all maps of remote chunks has left this processor. */
static inline void SciFlush(unsigned int adapter) {
    PCONNECTOR at;

    (void)adapter;
    for (at = scasci_mapped; at; at = at->next)
        SCIFlush(at->sequence, 0);
}

static inline void SciWithdraw(PSHARABLE of, unsigned int adapter, unsigned32 module, unsigned32 chunk,
                               ICM_STATUS *status) {
    (void)module;
    (void)chunk;
    if (!of || !of->is_offered) {
        *status = SCI_ERR_ILLEGAL_OPERATION;
        return;
    }
    SCISetSegmentUnavailable(of->segment, adapter, 0, status);
    if (*status != ICMS_OK)
        return;
    SCISetSegmentUnavailable(of->name, adapter, SCI_FLAG_FORCE_DISCONNECT, status);
    SCIUnmapSegment(of->name_map, 0, status);
    SCIRemoveSegment(of->name, 0, status);
    of->is_offered = *status != ICMS_OK;
}

static inline void SciCloseLocalChunk(PSHARABLE *of, ICM_STATUS *status) {
    PSHARABLE chunk = *of;

    if (!chunk) {
        *status = SCI_ERR_ILLEGAL_PARAMETER;
        return;
    }
    if (chunk->is_offered)
        SciWithdraw(chunk, 0, 0, 0, status);
    if (chunk->address)
        SCIUnmapSegment(chunk->map, 0, status);
    chunk->address = NULL;
    SCIRemoveSegment(chunk->segment, 0, status);
    /* Others may be connected: they keep the memory. */
    if (*status != ICMS_OK)
        return;
    free(chunk);
    *of = NULL;
}

/* Memory of `size` bytes, whose segment has a number that is free. */
static inline void SciAllocateLocalChunk(PSHARABLE *to, unsigned32 size, unsigned32 consistency, ICM_STATUS *status) {
    PSHARABLE chunk = (PSHARABLE)calloc(1, sizeof *chunk);
    unsigned int tries;

    (void)consistency;
    *to = NULL;
    *status = SCI_ERR_NOSPC;
    if (!chunk)
        return;
    chunk->size = size;
    for (tries = 0; tries < 256; tries++) {
        chunk->id = 0x40000000u | ((((unsigned int)getpid() << 8) + scasci_last++) & 0x3fffffffu);
        SCICreateSegment(scasci_desc, &chunk->segment, chunk->id, size, SCI_NO_CALLBACK, NULL, 0, status);
        if (*status != SCI_ERR_SEGMENTID_USED)
            break;
    }
    if (*status == ICMS_OK) {
        SCIPrepareSegment(chunk->segment, 0, 0, status);
        *to = chunk;
        if (*status != ICMS_OK) {
            ICM_STATUS ended;

            SciCloseLocalChunk(to, &ended);
        }
    } else {
        free(chunk);
    }
}

/* Once for each chunk; its end is that of the chunk. No size: what is behind the offset. */
static inline void SciMapLocalChunk(PSHARABLE of, unsigned32 offset, unsigned32 size, unsigned32 protection,
                                    ICM_STATUS *status, void **address) {
    (void)protection;
    *address = NULL;
    *status = SCI_ERR_OUT_OF_RANGE;
    if (!of || offset >= of->size || size > of->size - offset)
        return;
    *status = ICMS_OK;
    if (!of->address)
        of->address = SCIMapLocalSegment(of->segment, &of->map, 0, of->size, NULL, 0, status);
    if (*status == ICMS_OK)
        *address = (char *)of->address + offset;
}

/* Others find the chunk by these numbers. */
static inline void SciOffer(PSHARABLE of, unsigned int adapter, unsigned32 module, unsigned32 chunk,
                            unsigned32 consistency, ICM_STATUS *status) {
    unsigned int name = scasci_name(module, chunk);
    unsigned32 *word;

    (void)consistency;
    *status = name == 0 ? SCI_ERR_ILLEGAL_PARAMETER : SCI_ERR_ILLEGAL_OPERATION;
    if (!of || name == 0 || of->is_offered)
        return;
    SCICreateSegment(scasci_desc, &of->name, name, sizeof *word, SCI_NO_CALLBACK, NULL, 0, status);
    if (*status != ICMS_OK)
        return;
    SCIPrepareSegment(of->name, adapter, 0, status);
    if (*status == ICMS_OK) {
        word = (unsigned32 *)SCIMapLocalSegment(of->name, &of->name_map, 0, sizeof *word, NULL, 0, status);
        if (*status == ICMS_OK) {
            *word = of->id;
            SCISetSegmentAvailable(of->segment, adapter, 0, status);
            if (*status == ICMS_OK)
                SCISetSegmentAvailable(of->name, adapter, 0, status);
            of->is_offered = *status == ICMS_OK;
            if (!of->is_offered) {
                ICM_STATUS ended;

                SCIUnmapSegment(of->name_map, 0, &ended);
            }
        }
    }
    if (!of->is_offered) {
        ICM_STATUS ended;

        SCIRemoveSegment(of->name, 0, &ended);
    }
}

/* Does not wait for an offer: SCI_ERR_NO_SUCH_SEGMENT, and the program tries again. */
static inline void SciConnectToRemoteChunk(PCONNECTOR *to, unsigned int adapter, unsigned int node, unsigned32 module,
                                           unsigned32 chunk, ICM_STATUS *status) {
    unsigned int name = scasci_name(module, chunk);
    sci_remote_segment_t found;
    PCONNECTOR connector;
    ICM_STATUS ended;
    volatile unsigned32 *word;
    sci_map_t map;
    unsigned int id = 0;

    *to = NULL;
    *status = SCI_ERR_ILLEGAL_PARAMETER;
    if (name == 0)
        return;
    SCIConnectSegment(scasci_desc, &found, node, name, adapter, SCI_NO_CALLBACK, NULL, SCI_INFINITE_TIMEOUT, 0, status);
    if (*status != ICMS_OK)
        return;
    word = (volatile unsigned32 *)SCIMapRemoteSegment(found, &map, 0, sizeof *word, NULL, 0, status);
    if (*status == ICMS_OK) {
        id = *word;
        SCIUnmapSegment(map, 0, &ended);
    }
    SCIDisconnectSegment(found, 0, &ended);
    if (*status != ICMS_OK)
        return;
    connector = (PCONNECTOR)calloc(1, sizeof *connector);
    *status = SCI_ERR_NOSPC;
    if (!connector)
        return;
    SCIConnectSegment(scasci_desc, &connector->segment, node, id, adapter, SCI_NO_CALLBACK, NULL, SCI_INFINITE_TIMEOUT, 0,
                      status);
    if (*status == ICMS_OK)
        *to = connector;
    else
        free(connector);
}

static inline unsigned32 SciGetSizeOfRemoteChunk(PCONNECTOR of) {
    return of ? (unsigned32)SCIGetRemoteSegmentSize(of->segment) : 0;
}

/* Once for each connection, and ends with it. No size: what is behind the offset. */
static inline void SciMapRemoteChunk(PCONNECTOR of, unsigned32 offset, unsigned32 size, unsigned32 gathering,
                                     unsigned32 consistency, unsigned32 protection, ICM_STATUS *status,
                                     void **address) {
    unsigned32 whole = SciGetSizeOfRemoteChunk(of);
    ICM_STATUS ended;

    (void)gathering;
    (void)consistency;
    (void)protection;
    *address = NULL;
    *status = SCI_ERR_OUT_OF_RANGE;
    if (offset >= whole || size > whole - offset)
        return;
    *status = ICMS_OK;
    if (!of->address) {
        of->address = SCIMapRemoteSegment(of->segment, &of->map, 0, whole, NULL, 0, status);
        if (*status != ICMS_OK)
            return;
        SCICreateMapSequence(of->map, &of->sequence, 0, status);
        if (*status != ICMS_OK) {
            SCIUnmapSegment(of->map, 0, &ended);
            of->address = NULL;
            return;
        }
        of->next = scasci_mapped;
        scasci_mapped = of;
    }
    *address = (char *)(uintptr_t)of->address + offset;
}

static inline void SciDisconnectFromRemoteChunk(PCONNECTOR *of, ICM_STATUS *status) {
    PCONNECTOR connector = *of, *at;

    *status = SCI_ERR_ILLEGAL_PARAMETER;
    if (!connector)
        return;
    if (connector->address) {
        SCIRemoveSequence(connector->sequence, 0, status);
        SCIUnmapSegment(connector->map, 0, status);
        for (at = &scasci_mapped; *at && *at != connector; at = &(*at)->next)
            ;
        if (*at)
            *at = connector->next;
    }
    SCIDisconnectSegment(connector->segment, 0, status);
    free(connector);
    *of = NULL;
}

#ifdef __cplusplus
}
#endif

#endif /* SCASCI_H */
