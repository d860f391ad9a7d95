/*
 * What the parts of the programs of libsisci share.
 */

#ifndef SISCI_CALLS_H
#define SISCI_CALLS_H

#include "calls.h"

#include <sisci_api.h>
#ifndef _REENTRANT
#include <scasci.h>
#endif

#define DEVICES 2
#define SEGMENTS 6
#define MAPS 8
#define OTHERS 4
#define BYTES 65536u

extern sci_desc_t devices[DEVICES];
extern sci_local_segment_t segments[SEGMENTS];
extern sci_remote_segment_t remotes[SEGMENTS];
extern unsigned char memory[BYTES];
/* The first number of a segment or an interrupt of this program, and the node of this host. */
extern unsigned int first_id, node;
extern unsigned long sum;
/* What the last call of a part has given. */
__attribute__((unused)) static sci_error_t error;

/* Makes a call whose last argument is &error. */
#define DO(function, ...)                                                                                              \
    __extension__({                                                                                                    \
        uint64_t number_ = enter(AT_##function);                                                                       \
        error = SCI_ERR_SYSTEM;                                                                                        \
        function(__VA_ARGS__);                                                                                         \
        leave(number_, AT_##function, error == SCI_ERR_OK);                                                            \
        error == SCI_ERR_OK;                                                                                           \
    })
/* One that has a result or nothing but no error. */
#define ASK(function, ...)                                                                                             \
    do {                                                                                                               \
        uint64_t number_ = enter(AT_##function);                                                                       \
        function(__VA_ARGS__);                                                                                         \
        leave(number_, AT_##function, 1);                                                                              \
    } while (0)
/* One of a pool; sometimes NULL, or no handle of the library. */
#define ONE_OF(pool)                                                                                                   \
    (one_in(200) ? (__typeof__(*(pool)))(uintptr_t)draw() : one_in(200) ? NULL : (pool)[below(sizeof(pool) / sizeof *(pool))])

unsigned int flags(unsigned int maybe);
unsigned int an_id(void);
unsigned int a_node(void);

/* Segments, maps, sequences and copies. */
void create_segment(void);
void change_segment(void);
void connect_segment(void);
void wait_for_segment(void);
void map(void);
void touch(void);
/* Those of a library that has ended. */
void forget_maps(void);
void sequence(void);
void copy(void);

/* DMA queues. */
void abort_dma(void);
void dma(void);

/* Interrupts, without bytes and with. */
void interrupt(void);
void data_interrupt(void);

#ifndef _REENTRANT
/* Scali's interface. */
void scali(void);
#endif

#endif /* SISCI_CALLS_H */
