/*
 * What the parts of the program of libvipl share.
 */

#ifndef VIPL_CALLS_H
#define VIPL_CALLS_H

#include "calls.h"

#include <vipl.h>

#define NICS 2
#define VIS 8
#define QUEUES 3
#define SLOTS 64
#define SLOT 128
#define BYTES 65536u

extern VIP_NIC_HANDLE nics[NICS];
extern VIP_VI_HANDLE vis[VIS];
extern unsigned nic_of[VIS];
extern VIP_CQ_HANDLE queues[QUEUES];
/* The memory that each NIC has registered: the slots of descriptors, and the data behind them. */
extern VIP_MEM_HANDLE handles[NICS];
extern unsigned char descriptors[SLOTS * SLOT + BYTES];
extern unsigned char *const data;

typedef union {
    VIP_NET_ADDRESS address;
    unsigned char room[4 + 16 + 64];
} ADDRESS;

VIP_VI_HANDLE a_vi(void);
VIP_CQ_HANDLE a_queue(void);

/* Descriptors: posted and taken. */
void note_done(VIP_DESCRIPTOR *descriptor);
int is_done(VIP_RETURN code);
void post(void);
void take(void);
void take_from_queue(void);

/* Connections. */
ADDRESS address_at(unsigned nic, const char *name);
void connect_peers(void);
void connect_some(void);

#endif /* VIPL_CALLS_H */
