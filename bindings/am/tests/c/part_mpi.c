#include <ammpi.h>

#include "part.h"

PART(part_mpi, mpi, ep_t, en_t)
