/*
 * Extensions of Myrinet Express: connects and disconnects, the unexpected handler, time-outs.
 */

#ifndef MX_EXTENSIONS_H
#define MX_EXTENSIONS_H

#include "myriexpress.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum mx_unexp_handler_action {
    MX_RECV_CONTINUE = 0, /* it goes to a receive, as if there were no handler */
    MX_RECV_FINISHED = 1  /* it is gone: the handler has used it */
} mx_unexp_handler_action_t;

/*
 * Called, in a call that makes progress and without a lock, for a message that no receive has
 * matched. `data_if_available` leads to its bytes if they have come, until the handler returns. It
 * may post sends and receives; nothing that it calls makes progress, and it may not close.
 */
typedef mx_unexp_handler_action_t (*mx_unexp_handler_t)(void *context, mx_endpoint_addr_t source, uint64_t match_info,
                                                        uint32_t length, void *data_if_available);

/* NULL: none. */
mx_return_t mx_register_unexp_handler(mx_endpoint_t endpoint, mx_unexp_handler_t handler, void *context);

/* Ends as any request; `source` of its status is the address. */
mx_return_t mx_iconnect(mx_endpoint_t endpoint, uint64_t nic_id, uint32_t id, uint32_t key, uint64_t match_info,
                        void *context, mx_request_t *request);
/*
 * What is under way ends with MX_STATUS_ENDPOINT_CLOSED. A later send or connect opens the link
 * again.
 */
mx_return_t mx_disconnect(mx_endpoint_t endpoint, mx_endpoint_addr_t addr);
/* The request ends with MX_STATUS_TIMEOUT. A request of NULL: of all later sends and connects. */
mx_return_t mx_set_request_timeout(mx_endpoint_t endpoint, mx_request_t request, uint32_t timeout);
/* Nobody will ask for the request. */
mx_return_t mx_forget(mx_endpoint_t endpoint, mx_request_t *request);
mx_return_t mx_progress(mx_endpoint_t endpoint);

/* The program's own for an address, in this process. */
mx_return_t mx_set_endpoint_addr_context(mx_endpoint_addr_t addr, void *context);
mx_return_t mx_get_endpoint_addr_context(mx_endpoint_addr_t addr, void **context);
mx_return_t mx_decompose_endpoint_addr2(mx_endpoint_addr_t addr, uint64_t *nic_id, uint32_t *id, uint32_t *session);

#ifdef __cplusplus
}
#endif

#endif /* MX_EXTENSIONS_H */
