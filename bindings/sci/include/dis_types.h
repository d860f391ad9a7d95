/*
 * Types of SISCI that name neither segments nor maps.
 */

#ifndef DIS_TYPES_H
#define DIS_TYPES_H

#include <stddef.h>

/* Nodes, with 0 behind the last one. */
#define DIS_MAX_NSCIS 8
typedef unsigned int dis_nodeId_list_t[DIS_MAX_NSCIS];

/* The kind of an adapter. There is one. */
typedef enum { DIS_VIRT_ADAPTER_CCI = 0 } dis_virt_adapter_t;

/* An address of a device. */
typedef unsigned long long sci_ioaddr_t;

/* A part of a vector of transfers. */
#define DIS_DMA_MAX_VECLEN 256
typedef struct {
    size_t size;
    size_t local_offset;
    size_t remote_offset;
    unsigned int flags; /* not read */
} dis_dma_vec_t;

#endif /* DIS_TYPES_H */
