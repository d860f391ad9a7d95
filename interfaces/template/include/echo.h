/*
 * An echo in C. Calls return 0 or a code, and wait for `ms` milliseconds at most. No pointer may be
 * NULL. Any thread may call. A forked child opens echoes of its own.
 */
#ifndef ECHO_H
#define ECHO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* At a number of this host, up to 2,047. Its name: the IPv4 address in the upper half, and the
   number. */
int echo_open(uint32_t number, uint64_t *echo, uint64_t *name);
/* Sends a request of up to 1,024 bytes, once fewer than 8 are open at that peer. */
int echo_request(uint64_t echo, uint64_t to, const void *bytes, size_t length, uint32_t ms, uint64_t *request);
/* Takes the answer to a request, which has the same bytes: as many of them as there is room for. */
int echo_wait(uint64_t echo, uint64_t request, void *bytes, size_t room, uint32_t ms);
/* Answers requests until the time is over or the echo has ended, and returns the code of that. */
int echo_serve(uint64_t echo, uint32_t ms);
/* Closes it, and ends the waits of other threads. */
int echo_close(uint64_t echo);
/* The text of a code. */
const char *echo_text(int code);

#ifdef __cplusplus
}
#endif
#endif
