/*
 * What the parts of the program of libcci share.
 */

#ifndef CCI_CALLS_H
#define CCI_CALLS_H

#include "calls.h"

#include <ccix.h>

#define ENDPOINTS 3
#define CONNECTIONS 16
#define HELD 24
#define REGISTRATIONS 8
#define OTHERS 6
#define BYTES (1u << 20)

struct place {
    cci_endpoint_t *endpoint;
    cci_os_handle_t fd;
};
extern struct place endpoints[ENDPOINTS];
/* Some are stale. */
extern cci_connection_t *connections[CONNECTIONS];
extern cci_event_t *held[HELD];
/* What is sent, and never changes. */
extern unsigned char payload[BYTES];
extern unsigned long sum;
/* How often the job was joined. */
extern int joins;

/* One of them, sometimes NULL or a stale one. */
cci_endpoint_t *an_endpoint(void);
cci_connection_t *a_connection(void);
const void *a_context(void);
/* A length of a message, and a place in the payload with so many bytes behind it. */
uint32_t a_length(void);
const void *bytes_of(uint64_t length);
int send_flags(void);

/* Events: taken, handled, returned. */
void look_at(const void *bytes, uint32_t length);
void handle(cci_event_t *event);
void get_event(void);
void get_events(void);
void poll_events(void);
void wait_event(void);
void return_event(void);
void wake(void);
void arm(void);
void watch_fd(void);
void answer_held(void);

/* Messages. */
void send_message(void);
void send_parts(void);
void answer(void);
void send_large(void);
void reserve(void);
void in_place(void);
void set_large_limit(void);
void set_answer_buffers(void);

/* Memory: registrations, RMA, imports. */
void register_memory(void);
void deregister(void);
void rma(void);
void atomic(void);
void import(void);
void check_import(void);
void allocate(void);

/* Endpoints, connections, and their options. */
void connect_to(void);
void disconnect(void);
void connection_info(void);
void get_opt(void);
void set_opt(void);
void begin_endpoint(unsigned at);
void create_endpoint(void);

/* The job of this process. */
void job(void);
void begin_job(void);

#endif /* CCI_CALLS_H */
