#include <amudp.h>

#include "part.h"

PART(part_udp, udp, ep_t, en_t)
