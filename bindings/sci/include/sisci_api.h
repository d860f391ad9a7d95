/*
 * SISCI over CCI: segments of memory that other processes map and store into. docs/design/sci.md
 * has the picture. Any thread may call. A call writes SCI_ERR_OK or a code to error, if that is not
 * NULL. Callbacks run on a thread of the library, one at a time, and must not wait.
 */

#ifndef SISCI_API_H
#define SISCI_API_H

#include <sisci_types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Programs that are compiled with _REENTRANT use the one set of symbols, others the other one. */
#ifdef _REENTRANT
#define SISCI_NAME(name) _SISCI_PUBLIC_FUNC_MT_##name
#else
#define SISCI_NAME(name) _SISCI_PUBLIC_FUNC_ST_##name
#endif

#define SCI_NO_FLAGS 0u
#define SCI_NO_CALLBACK NULL

extern const unsigned int _SISCI_PUBLIC_CONST_SCI_FLAG_EMPTY;
extern const unsigned int _SISCI_PUBLIC_CONST_SCI_FLAG_USE_CALLBACK;
extern const unsigned int _SISCI_PUBLIC_CONST_SCI_FLAG_FIXED_INTNO;
extern const unsigned int _SISCI_PUBLIC_CONST_SCI_FLAG_SHARED_INT;
extern const unsigned int _SISCI_PUBLIC_CONST_SCI_FLAG_FIXED_MAP_ADDR;
extern const unsigned int _SISCI_PUBLIC_CONST_SCI_FLAG_READONLY_MAP;
extern const unsigned int _SISCI_PUBLIC_CONST_SCI_FLAG_LOCK_OPERATION;
extern const unsigned int _SISCI_PUBLIC_CONST_SCI_FLAG_ERROR_CHECK;
extern const unsigned int _SISCI_PUBLIC_CONST_SCI_FLAG_BLOCK_READ;
extern const unsigned int _SISCI_PUBLIC_CONST_SCI_FLAG_FLUSH_CPU_BUFFERS_ONLY;
extern const unsigned int _SISCI_PUBLIC_CONST_SCI_FLAG_FAST_BARRIER;
extern const unsigned int _SISCI_PUBLIC_CONST_SCI_FLAG_NO_FLUSH;
extern const unsigned int _SISCI_PUBLIC_CONST_SCI_FLAG_NO_STORE_BARRIER;
extern const unsigned int _SISCI_PUBLIC_CONST_SCI_FLAG_PRIVATE;
extern const unsigned int _SISCI_PUBLIC_CONST_SCI_FLAG_FORCE_DISCONNECT;
extern const unsigned int _SISCI_PUBLIC_CONST_SCI_FLAG_NOTIFY;
extern const unsigned int _SISCI_PUBLIC_CONST_SCI_FLAG_DMA_SOURCE_ONLY;
extern const unsigned int _SISCI_PUBLIC_CONST_SCI_FLAG_DMA_READ;
extern const unsigned int _SISCI_PUBLIC_CONST_SCI_FLAG_ASYNCHRONOUS_CONNECT;
extern const unsigned int _SISCI_PUBLIC_CONST_SCI_FLAG_BROADCAST;
extern const unsigned int _SISCI_PUBLIC_CONST_SCI_FLAG_AUTO_ID;
extern const unsigned int _SISCI_PUBLIC_CONST_SCI_FLAG_DMA_GLOBAL;
extern const unsigned int _SISCI_PUBLIC_CONST_SCI_FLAG_DMA_WAIT;
extern const unsigned int _SISCI_PUBLIC_CONST_SCI_FLAG_IO_MAP_IOSPACE;
extern const unsigned int _SISCI_PUBLIC_CONST_SCI_FLAG_CACHE_FLUSH;
extern const unsigned int _SISCI_PUBLIC_CONST_SCI_FLAG_CACHE_INVALIDATE;

#define SCI_FLAG_EMPTY _SISCI_PUBLIC_CONST_SCI_FLAG_EMPTY
#define SCI_FLAG_USE_CALLBACK _SISCI_PUBLIC_CONST_SCI_FLAG_USE_CALLBACK
#define SCI_FLAG_FIXED_INTNO _SISCI_PUBLIC_CONST_SCI_FLAG_FIXED_INTNO
#define SCI_FLAG_SHARED_INT _SISCI_PUBLIC_CONST_SCI_FLAG_SHARED_INT
#define SCI_FLAG_FIXED_MAP_ADDR _SISCI_PUBLIC_CONST_SCI_FLAG_FIXED_MAP_ADDR
#define SCI_FLAG_READONLY_MAP _SISCI_PUBLIC_CONST_SCI_FLAG_READONLY_MAP
#define SCI_FLAG_LOCK_OPERATION _SISCI_PUBLIC_CONST_SCI_FLAG_LOCK_OPERATION
#define SCI_FLAG_ERROR_CHECK _SISCI_PUBLIC_CONST_SCI_FLAG_ERROR_CHECK
#define SCI_FLAG_BLOCK_READ _SISCI_PUBLIC_CONST_SCI_FLAG_BLOCK_READ
#define SCI_FLAG_FLUSH_CPU_BUFFERS_ONLY _SISCI_PUBLIC_CONST_SCI_FLAG_FLUSH_CPU_BUFFERS_ONLY
#define SCI_FLAG_FAST_BARRIER _SISCI_PUBLIC_CONST_SCI_FLAG_FAST_BARRIER
#define SCI_FLAG_NO_FLUSH _SISCI_PUBLIC_CONST_SCI_FLAG_NO_FLUSH
#define SCI_FLAG_NO_STORE_BARRIER _SISCI_PUBLIC_CONST_SCI_FLAG_NO_STORE_BARRIER
#define SCI_FLAG_PRIVATE _SISCI_PUBLIC_CONST_SCI_FLAG_PRIVATE
#define SCI_FLAG_FORCE_DISCONNECT _SISCI_PUBLIC_CONST_SCI_FLAG_FORCE_DISCONNECT
#define SCI_FLAG_NOTIFY _SISCI_PUBLIC_CONST_SCI_FLAG_NOTIFY
#define SCI_FLAG_DMA_SOURCE_ONLY _SISCI_PUBLIC_CONST_SCI_FLAG_DMA_SOURCE_ONLY
#define SCI_FLAG_DMA_READ _SISCI_PUBLIC_CONST_SCI_FLAG_DMA_READ
#define SCI_FLAG_ASYNCHRONOUS_CONNECT _SISCI_PUBLIC_CONST_SCI_FLAG_ASYNCHRONOUS_CONNECT
#define SCI_FLAG_BROADCAST _SISCI_PUBLIC_CONST_SCI_FLAG_BROADCAST
#define SCI_FLAG_AUTO_ID _SISCI_PUBLIC_CONST_SCI_FLAG_AUTO_ID
#define SCI_FLAG_DMA_GLOBAL _SISCI_PUBLIC_CONST_SCI_FLAG_DMA_GLOBAL
#define SCI_FLAG_DMA_WAIT _SISCI_PUBLIC_CONST_SCI_FLAG_DMA_WAIT
#define SCI_FLAG_IO_MAP_IOSPACE _SISCI_PUBLIC_CONST_SCI_FLAG_IO_MAP_IOSPACE
#define SCI_FLAG_CACHE_FLUSH _SISCI_PUBLIC_CONST_SCI_FLAG_CACHE_FLUSH
#define SCI_FLAG_CACHE_INVALIDATE _SISCI_PUBLIC_CONST_SCI_FLAG_CACHE_INVALIDATE

/* With SCI_FLAG_BROADCAST: the node of a connection to all segments of a broadcast group. */
#define DIS_BROADCAST_NODEID_GROUP_ALL 252u

#define SCIInitialize SISCI_NAME(SCIInitialize)
#define SCITerminate SISCI_NAME(SCITerminate)
#define SCIOpen SISCI_NAME(SCIOpen)
#define SCIClose SISCI_NAME(SCIClose)
#define SCIGetErrorString SISCI_NAME(SCIGetErrorString)
#define SCIGetLocalNodeId SISCI_NAME(SCIGetLocalNodeId)
#define SCIProbeNode SISCI_NAME(SCIProbeNode)
#define SCIGetNodeIdByAdapterName SISCI_NAME(SCIGetNodeIdByAdapterName)
#define SCIQuery SISCI_NAME(SCIQuery)
#define SCICreateSegment SISCI_NAME(SCICreateSegment)
#define SCIPrepareSegment SISCI_NAME(SCIPrepareSegment)
#define SCISetSegmentAvailable SISCI_NAME(SCISetSegmentAvailable)
#define SCISetSegmentUnavailable SISCI_NAME(SCISetSegmentUnavailable)
#define SCIRegisterSegmentMemory SISCI_NAME(SCIRegisterSegmentMemory)
#define SCIAttachPhysicalMemory SISCI_NAME(SCIAttachPhysicalMemory)
#define SCIRemoveSegment SISCI_NAME(SCIRemoveSegment)
#define SCIGetLocalSegmentId SISCI_NAME(SCIGetLocalSegmentId)
#define SCIGetLocalSegmentSize SISCI_NAME(SCIGetLocalSegmentSize)
#define SCIWaitForLocalSegmentEvent SISCI_NAME(SCIWaitForLocalSegmentEvent)
#define SCIConnectSegment SISCI_NAME(SCIConnectSegment)
#define SCIDisconnectSegment SISCI_NAME(SCIDisconnectSegment)
#define SCIGetRemoteSegmentSize SISCI_NAME(SCIGetRemoteSegmentSize)
#define SCIGetRemoteSegmentId SISCI_NAME(SCIGetRemoteSegmentId)
#define SCIWaitForRemoteSegmentEvent SISCI_NAME(SCIWaitForRemoteSegmentEvent)
#define SCIMapLocalSegment SISCI_NAME(SCIMapLocalSegment)
#define SCIMapRemoteSegment SISCI_NAME(SCIMapRemoteSegment)
#define SCIUnmapSegment SISCI_NAME(SCIUnmapSegment)
#define SCICreateMapSequence SISCI_NAME(SCICreateMapSequence)
#define SCIRemoveSequence SISCI_NAME(SCIRemoveSequence)
#define SCIStartSequence SISCI_NAME(SCIStartSequence)
#define SCICheckSequence SISCI_NAME(SCICheckSequence)
#define SCIStoreBarrier SISCI_NAME(SCIStoreBarrier)
#define SCIFlush SISCI_NAME(SCIFlush)
#define SCIFlushReadBuffers SISCI_NAME(SCIFlushReadBuffers)
#define SCIMemCpy SISCI_NAME(SCIMemCpy)
#define SCIMemCopy SISCI_NAME(SCIMemCopy)
#define SCITransferBlock SISCI_NAME(SCITransferBlock)
#define SCICacheSync SISCI_NAME(SCICacheSync)
#define SCICreateDMAQueue SISCI_NAME(SCICreateDMAQueue)
#define SCIRemoveDMAQueue SISCI_NAME(SCIRemoveDMAQueue)
#define SCIEnqueueDMATransfer SISCI_NAME(SCIEnqueueDMATransfer)
#define SCIPostDMAQueue SISCI_NAME(SCIPostDMAQueue)
#define SCIStartDmaTransfer SISCI_NAME(SCIStartDmaTransfer)
#define SCIStartDmaTransferVec SISCI_NAME(SCIStartDmaTransferVec)
#define SCIAbortDMAQueue SISCI_NAME(SCIAbortDMAQueue)
#define SCIResetDMAQueue SISCI_NAME(SCIResetDMAQueue)
#define SCIDMAQueueState SISCI_NAME(SCIDMAQueueState)
#define SCIWaitForDMAQueue SISCI_NAME(SCIWaitForDMAQueue)
#define SCICreateInterrupt SISCI_NAME(SCICreateInterrupt)
#define SCIRemoveInterrupt SISCI_NAME(SCIRemoveInterrupt)
#define SCIWaitForInterrupt SISCI_NAME(SCIWaitForInterrupt)
#define SCIConnectInterrupt SISCI_NAME(SCIConnectInterrupt)
#define SCIDisconnectInterrupt SISCI_NAME(SCIDisconnectInterrupt)
#define SCITriggerInterrupt SISCI_NAME(SCITriggerInterrupt)
#define SCICreateDataInterrupt SISCI_NAME(SCICreateDataInterrupt)
#define SCIRemoveDataInterrupt SISCI_NAME(SCIRemoveDataInterrupt)
#define SCIWaitForDataInterrupt SISCI_NAME(SCIWaitForDataInterrupt)
#define SCIConnectDataInterrupt SISCI_NAME(SCIConnectDataInterrupt)
#define SCIDisconnectDataInterrupt SISCI_NAME(SCIDisconnectDataInterrupt)
#define SCITriggerDataInterrupt SISCI_NAME(SCITriggerDataInterrupt)

/* Calls that begin and end. */
void SCIInitialize(unsigned int flags, sci_error_t *error);
void SCITerminate(void);
void SCIOpen(sci_desc_t *sd, unsigned int flags, sci_error_t *error);
void SCIClose(sci_desc_t sd, unsigned int flags, sci_error_t *error);
const char *SCIGetErrorString(sci_error_t code);

/* Nodes. The only adapter is 0. */
void SCIGetLocalNodeId(unsigned int adapterNo, unsigned int *nodeId, unsigned int flags, sci_error_t *error);
int SCIProbeNode(sci_desc_t sd, unsigned int adapterNo, unsigned int nodeId, unsigned int flags, sci_error_t *error);
/* Up to 7 nodes whose line of the node table names this host, then 0. */
void SCIGetNodeIdByAdapterName(const char *name, dis_nodeId_list_t *nodes, dis_virt_adapter_t *type, unsigned int flags,
                               sci_error_t *error);
void SCIQuery(unsigned int command, void *data, unsigned int flags, sci_error_t *error);

/* Segments of this process. */
void SCICreateSegment(sci_desc_t sd, sci_local_segment_t *segment, unsigned int segmentId, size_t size,
                      sci_cb_local_segment_t callback, void *callbackArg, unsigned int flags, sci_error_t *error);
void SCIPrepareSegment(sci_local_segment_t segment, unsigned int localAdapterNo, unsigned int flags, sci_error_t
                       *error);
void SCISetSegmentAvailable(sci_local_segment_t segment, unsigned int localAdapterNo, unsigned int flags, sci_error_t
                            *error);
void SCISetSegmentUnavailable(sci_local_segment_t segment, unsigned int localAdapterNo, unsigned int flags, sci_error_t
                              *error);
/* These two are refused with SCI_ERR_NOT_IMPLEMENTED: each segment has memory of the library. */
void SCIRegisterSegmentMemory(void *address, size_t size, sci_local_segment_t segment, unsigned int flags, sci_error_t
                              *error);
void SCIAttachPhysicalMemory(sci_ioaddr_t ioaddress, void *address, unsigned int busNo, size_t size, sci_local_segment_t
                             segment, unsigned int flags, sci_error_t *error);
void SCIRemoveSegment(sci_local_segment_t segment, unsigned int flags, sci_error_t *error);
unsigned int SCIGetLocalSegmentId(sci_local_segment_t segment);
size_t SCIGetLocalSegmentSize(sci_local_segment_t segment);
sci_segment_cb_reason_t SCIWaitForLocalSegmentEvent(sci_local_segment_t segment, unsigned int *sourceNodeId, unsigned
                                                    int *localAdapterNo, unsigned int timeout, unsigned int flags,
                                                    sci_error_t *error);

/* Segments of other processes. */
void SCIConnectSegment(sci_desc_t sd, sci_remote_segment_t *segment, unsigned int nodeId, unsigned int segmentId,
                       unsigned int localAdapterNo, sci_cb_remote_segment_t callback, void *callbackArg, unsigned int
                       timeout, unsigned int flags, sci_error_t *error);
void SCIDisconnectSegment(sci_remote_segment_t segment, unsigned int flags, sci_error_t *error);
size_t SCIGetRemoteSegmentSize(sci_remote_segment_t segment);
unsigned int SCIGetRemoteSegmentId(sci_remote_segment_t segment);
sci_segment_cb_reason_t SCIWaitForRemoteSegmentEvent(sci_remote_segment_t segment, sci_error_t *status, unsigned int
                                                     timeout, unsigned int flags, sci_error_t *error);

/* Maps. The address of one is valid until it is unmapped, whatever becomes of its segment. */
void *SCIMapLocalSegment(sci_local_segment_t segment, sci_map_t *map, size_t offset, size_t size, void *addr, unsigned
                         int flags, sci_error_t *error);
volatile void *SCIMapRemoteSegment(sci_remote_segment_t segment, sci_map_t *map, size_t offset, size_t size, void *addr,
                                   unsigned int flags, sci_error_t *error);
void SCIUnmapSegment(sci_map_t map, unsigned int flags, sci_error_t *error);

/* Sequences: whether stores have arrived. */
void SCICreateMapSequence(sci_map_t map, sci_sequence_t *sequence, unsigned int flags, sci_error_t *error);
void SCIRemoveSequence(sci_sequence_t sequence, unsigned int flags, sci_error_t *error);
sci_sequence_status_t SCIStartSequence(sci_sequence_t sequence, unsigned int flags, sci_error_t *error);
sci_sequence_status_t SCICheckSequence(sci_sequence_t sequence, unsigned int flags, sci_error_t *error);
void SCIStoreBarrier(sci_sequence_t sequence, unsigned int flags);
void SCIFlush(sci_sequence_t sequence, unsigned int flags);
void SCIFlushReadBuffers(sci_sequence_t sequence);

/* Copies. */
void SCIMemCpy(sci_sequence_t sequence, void *memAddr, sci_map_t remoteMap, size_t remoteOffset, size_t size, unsigned
               int flags, sci_error_t *error);
void SCIMemCopy(void *memAddr, sci_map_t remoteMap, size_t remoteOffset, size_t size, unsigned int flags, sci_error_t
                *error);
void SCITransferBlock(sci_map_t sourceMap, size_t sourceOffset, sci_map_t destinationMap, size_t destinationOffset,
                      size_t size, unsigned int flags, sci_error_t *error);
void SCICacheSync(sci_map_t map, void *addr, size_t length, unsigned int flags, sci_error_t *error);

/* DMA queues. A queue that has ended is reset before it is used again. */
void SCICreateDMAQueue(sci_desc_t sd, sci_dma_queue_t *queue, unsigned int localAdapterNo, unsigned int maxEntries,
                       unsigned int flags, sci_error_t *error);
void SCIRemoveDMAQueue(sci_dma_queue_t queue, unsigned int flags, sci_error_t *error);
void SCIEnqueueDMATransfer(sci_dma_queue_t queue, sci_local_segment_t localSegment, sci_remote_segment_t remoteSegment,
                           size_t localOffset, size_t remoteOffset, size_t size, unsigned int flags, sci_error_t
                           *error);
void SCIPostDMAQueue(sci_dma_queue_t queue, sci_cb_dma_t callback, void *callbackArg, unsigned int flags, sci_error_t
                     *error);
void SCIStartDmaTransfer(sci_dma_queue_t queue, sci_local_segment_t localSegment, sci_remote_segment_t remoteSegment,
                         size_t localOffset, size_t size, size_t remoteOffset, sci_cb_dma_t callback, void *callbackArg,
                         unsigned int flags, sci_error_t *error);
void SCIStartDmaTransferVec(sci_dma_queue_t queue, sci_local_segment_t localSegment, sci_remote_segment_t remoteSegment,
                            size_t count, dis_dma_vec_t *vector, sci_cb_dma_t callback, void *callbackArg, unsigned int
                            flags, sci_error_t *error);
void SCIAbortDMAQueue(sci_dma_queue_t queue, unsigned int flags, sci_error_t *error);
void SCIResetDMAQueue(sci_dma_queue_t queue, unsigned int flags, sci_error_t *error);
sci_dma_queue_state_t SCIDMAQueueState(sci_dma_queue_t queue);
sci_dma_queue_state_t SCIWaitForDMAQueue(sci_dma_queue_t queue, unsigned int timeout, unsigned int flags, sci_error_t
                                         *error);

/* Interrupts. They are not counted: several become one until it is taken. */
void SCICreateInterrupt(sci_desc_t sd, sci_local_interrupt_t *interrupt, unsigned int localAdapterNo, unsigned int
                        *interruptNo, sci_cb_interrupt_t callback, void *callbackArg, unsigned int flags, sci_error_t
                        *error);
void SCIRemoveInterrupt(sci_local_interrupt_t interrupt, unsigned int flags, sci_error_t *error);
void SCIWaitForInterrupt(sci_local_interrupt_t interrupt, unsigned int timeout, unsigned int flags, sci_error_t *error);
void SCIConnectInterrupt(sci_desc_t sd, sci_remote_interrupt_t *interrupt, unsigned int nodeId, unsigned int
                         localAdapterNo, unsigned int interruptNo, unsigned int timeout, unsigned int flags, sci_error_t
                         *error);
void SCIDisconnectInterrupt(sci_remote_interrupt_t interrupt, unsigned int flags, sci_error_t *error);
void SCITriggerInterrupt(sci_remote_interrupt_t interrupt, unsigned int flags, sci_error_t *error);

/* Interrupts with bytes. They are counted, and wait in order. */
void SCICreateDataInterrupt(sci_desc_t sd, sci_local_data_interrupt_t *interrupt, unsigned int localAdapterNo, unsigned
                            int *interruptNo, sci_cb_data_interrupt_t callback, void *callbackArg, unsigned int flags,
                            sci_error_t *error);
void SCIRemoveDataInterrupt(sci_local_data_interrupt_t interrupt, unsigned int flags, sci_error_t *error);
void SCIWaitForDataInterrupt(sci_local_data_interrupt_t interrupt, void *data, unsigned int *length, unsigned int
                             timeout, unsigned int flags, sci_error_t *error);
void SCIConnectDataInterrupt(sci_desc_t sd, sci_remote_data_interrupt_t *interrupt, unsigned int nodeId, unsigned int
                             localAdapterNo, unsigned int interruptNo, unsigned int timeout, unsigned int flags,
                             sci_error_t *error);
void SCIDisconnectDataInterrupt(sci_remote_data_interrupt_t interrupt, unsigned int flags, sci_error_t *error);
void SCITriggerDataInterrupt(sci_remote_data_interrupt_t interrupt, void *data, unsigned int length, unsigned int flags,
                             sci_error_t *error);

#ifdef __cplusplus
}
#endif

#endif /* SISCI_API_H */
