/*
 * What the parts of the programs of libam share.
 */

#ifndef AM_CALLS_H
#define AM_CALLS_H

#include "calls.h"

#if defined(DIALECT_AMUDP)
#include <amudp_spmd.h>
#elif defined(DIALECT_AMMPI)
#include <ammpi_spmd.h>
#else
#include <am.h>
#endif

#ifdef DIALECT_AM
#define NOW 1
#define NAME(name) AMNOW_##name
typedef ea_t endpoint_t;
#else
#define NOW 0
#define NAME(name) AMX_NAME(name)
typedef ep_t endpoint_t;
#endif

/* Makes the call of this dialect. */
#define AM(name, ...) CALL_GOOD(name, result_ == AM_OK, NAME(name)(__VA_ARGS__))

#define BUNDLES 2
#define PLACES 4
#define TABLE 8
#define BYTES 65536u

extern eb_t bundles[BUNDLES];
extern endpoint_t endpoints[PLACES];
extern unsigned bundle_of[PLACES];
extern unsigned char segments[PLACES][BYTES], payload[BYTES];
extern unsigned long sum;
/* The last probe that has arrived, and messages that have come back. */
extern int32_t arrived;
extern unsigned returned;
/*
 * The send timeout, which an endpoint has from its allocation. A short one breaks connections of
 * this thread while it does not poll, so that a message which was sent need not arrive.
 */
#define PATIENT 30000u
extern uint32_t timeout;
extern int is_patient[PLACES];

/* One of them, sometimes NULL or none. */
eb_t a_bundle(void);
endpoint_t an_endpoint(void);
int an_index(void);

/* Handlers 1 to 6 are of the three kinds. Handler 7 is of probes only. */
enum { SHORT_REQUEST = 1, MEDIUM_REQUEST, LONG_REQUEST, SHORT_REPLY, MEDIUM_REPLY, LONG_REPLY, PROBE, HANDLERS };
/* Of messages. */
extern const int32_t arguments[32];

/* Handlers, and what an endpoint has beside them. */
handler_t a_handler(handler_t good);
int some_count(void);
void set_handlers(endpoint_t endpoint);
void others(void);

/* Requests, polls and waits. */
void request(void);
void poll_bundles(void);
void wait_for_event(void);

/* Translation tables. */
void publish(unsigned at, const en_t *name);
void map(endpoint_t endpoint, int at);
void change_map(void);
void ask_map(void);

#if !NOW
/* The parallel program of one worker. */
void start_job(void);
void job(void);
#endif

#endif /* AM_CALLS_H */
