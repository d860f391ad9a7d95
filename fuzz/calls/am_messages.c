/* libam: requests, polls and waits. */

#include "am_calls.h"

/* The number of the last one. */
static int32_t probe;

void request(void) {
    endpoint_t endpoint = an_endpoint();
    int target = an_index();
    uint32_t length = one_in(300) ? 65001 + below(9) : length_to(4000);

    if (length > BYTES)
        length = BYTES;
    switch (below(5)) {
    case 0:
        AM(RequestI, endpoint, target, a_handler(MEDIUM_REQUEST), one_in(300) ? NULL : payload, length, some_count(), arguments);
        break;
    case 1:
        AM(RequestXfer, endpoint, target, one_in(50) ? draw() : length_to(1000), a_handler(LONG_REQUEST), payload, length,
           (int)below(2), some_count(), arguments);
        break;
    case 2:
        AM(GetXfer, endpoint, target, one_in(50) ? draw() : length_to(1000), a_handler(LONG_REPLY), length_to(1000), length,
           (int)below(2), some_count(), arguments);
        break;
    default:
        AM(Request, endpoint, target, a_handler(SHORT_REQUEST), some_count(), arguments);
    }
}

void poll_bundles(void) {
    unsigned at;

    for (at = 0; at < BUNDLES; at++)
        AM(Poll, bundles[at]);
    AM(Poll, a_bundle());
}

static void set_mask(eb_t bundle) {
    int mask = 0;

#if NOW
    CALL_GOOD(GetEventMask, result_ == AM_NOTEMPTY, NAME(GetEventMask)(bundle));
#else
    AM(GetEventMask, bundle, &mask);
#endif
    AM(SetEventMask, bundle, one_in(20) ? (int)draw() : AM_NOTEMPTY);
    sum += (unsigned)mask;
}

static int wait_at(eb_t bundle) {
#if NOW
    return AM(Wait, bundle);
#else
    return AM(WaitSema, bundle);
#endif
}

/* Sends a request that only a probe's handler takes. */
static int send_probe(unsigned from) {
    const int32_t words[4] = {++probe, 0, 0, 0};

    return AM(Request, endpoints[from], TABLE - 1, PROBE, 4, words) == AM_OK;
}

/* Maps an endpoint of another bundle, and sends it a probe that arrives: both are connected. */
static int connect_bundles(unsigned from, unsigned to) {
    unsigned tries;
    en_t name;

    memcpy(&name, board->entries[process][to], sizeof name);
    AM(UnMap, endpoints[from], TABLE - 1);
#if NOW
    if (AM(Map, endpoints[from], TABLE - 1, &name, AM_ALL - 1) != AM_OK)
#else
    if (AM(Map, endpoints[from], TABLE - 1, name, AM_ALL - 1) != AM_OK)
#endif
        return 0;
    if (!send_probe(from))
        return 0;
    for (tries = 0; tries < 500 && arrived != probe; tries++)
        poll_bundles();
    return arrived == probe;
}

/* A request from another bundle is under way, so that the wait ends. */
void wait_for_event(void) {
    unsigned from = below(PLACES), to = below(PLACES), before;
    eb_t bundle = bundles[bundle_of[to]];

    set_mask(bundle);
    if (one_in(4)) {
        AM(SetEventMask, bundle, AM_NOEVENTS);
        wait_at(bundle);
        return;
    }
    if (bundle_of[from] == bundle_of[to] || !is_patient[from] || !is_patient[to])
        return;
    if (AM(SetEventMask, bundle, AM_NOTEMPTY) != AM_OK || !connect_bundles(from, to))
        return;
    /* The next one goes the same way, unless it comes back or arrives within the call. */
    before = returned;
    if (send_probe(from) && arrived != probe && returned == before)
        wait_at(bundle);
}
