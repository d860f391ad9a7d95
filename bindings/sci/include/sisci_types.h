/*
 * Types of SISCI over CCI. Handles are compared and passed on, never followed.
 */

#ifndef SISCI_TYPES_H
#define SISCI_TYPES_H

#include <stddef.h>

#include <dis_types.h>
#include <sisci_error.h>

/* What an argument is for: programs mark their own with these. */
#ifndef IN
#define IN
#endif
#ifndef OUT
#define OUT
#endif
#ifndef IN_OUT
#define IN_OUT
#endif

typedef struct sci_desc *sci_desc_t;
typedef struct sci_local_segment *sci_local_segment_t;
typedef struct sci_remote_segment *sci_remote_segment_t;
typedef struct sci_map *sci_map_t;
typedef struct sci_sequence *sci_sequence_t;
typedef struct sci_dma_queue *sci_dma_queue_t;
typedef struct sci_local_interrupt *sci_local_interrupt_t;
typedef struct sci_remote_interrupt *sci_remote_interrupt_t;
typedef struct sci_local_data_interrupt *sci_local_data_interrupt_t;
typedef struct sci_remote_data_interrupt *sci_remote_data_interrupt_t;

/* A time-out, ms. */
#define SCI_INFINITE_TIMEOUT 0xffffffffu

typedef enum {
    SCI_CB_CONNECT = 1,
    SCI_CB_DISCONNECT = 2,
    SCI_CB_NOT_OPERATIONAL = 3,
    SCI_CB_OPERATIONAL = 4,
    SCI_CB_LOST = 5
} sci_segment_cb_reason_t;

typedef enum {
    SCI_DMAQUEUE_IDLE = 0,
    SCI_DMAQUEUE_GATHER = 1,
    SCI_DMAQUEUE_POSTED = 2,
    SCI_DMAQUEUE_DONE = 3,
    SCI_DMAQUEUE_ABORTED = 4,
    SCI_DMAQUEUE_ERROR = 5
} sci_dma_queue_state_t;

typedef enum {
    SCI_SEQ_OK = 0,
    SCI_SEQ_RETRIABLE = 1,
    SCI_SEQ_NOT_RETRIABLE = 2,
    SCI_SEQ_PENDING = 3
} sci_sequence_status_t;

/* What a callback returns: whether it is called again. */
typedef enum { SCI_CALLBACK_CANCEL = 1, SCI_CALLBACK_CONTINUE = 2 } sci_callback_action_t;

typedef sci_callback_action_t (*sci_cb_local_segment_t)(void *arg, sci_local_segment_t segment,
                                                        sci_segment_cb_reason_t reason, unsigned int nodeId,
                                                        unsigned int localAdapterNo, sci_error_t error);
typedef sci_callback_action_t (*sci_cb_remote_segment_t)(void *arg, sci_remote_segment_t segment,
                                                         sci_segment_cb_reason_t reason, sci_error_t status);
typedef sci_callback_action_t (*sci_cb_dma_t)(void *arg, sci_dma_queue_t queue, sci_error_t status);
typedef sci_callback_action_t (*sci_cb_interrupt_t)(void *arg, sci_local_interrupt_t interrupt, sci_error_t status);
typedef sci_callback_action_t (*sci_cb_data_interrupt_t)(void *arg, sci_local_data_interrupt_t interrupt, void *data,
                                                         unsigned int length, sci_error_t status);

/* SCIQuery, with numbers of our own. */
#define SCI_Q_API 1
#define SCI_Q_ADAPTER 2
#define SCI_Q_ADAPTER_NODEID 1
#define SCI_Q_ADAPTER_LINK_OPERATIONAL 2

typedef struct {
    char *str;           /* room for the text */
    unsigned int length; /* of the room */
} sci_query_string_t;

typedef struct {
    unsigned int localAdapterNo;
    unsigned int portNo; /* not read */
    unsigned int subcommand;
    void *data; /* unsigned int *; of LINK_OPERATIONAL 1 is put there */
} sci_query_adapter_t;

#endif /* SISCI_TYPES_H */
