/*
 * Parallel programs under a launcher: `cci run -n 4 PROGRAM`, or one that serves its ranks by
 * PMI-1, such as hydra's mpiexec. A program that is started by itself is one of one worker.
 */

#ifndef CCI_AMMPI_SPMD_H
#define CCI_AMMPI_SPMD_H

#include "ammpi.h"

#include "amx_spmd.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Starts this worker; argc and argv stay as they are. depth: taken for programs that pass it;
 * credits adapt by themselves. number: a number that the job's workers have in common, or NULL.
 *
 * A start waits for all workers for CCI_AM_START_LIMIT seconds, 60 unless set, and writes to
 * standard error which have not come, or why else it fails.
 */
int AMMPI_SPMDStartup(int *argc, char ***argv, int depth, uint64_t *number, eb_t *bundle, ep_t *endpoint);
#define AMX_SPMDStartup AMMPI_SPMDStartup

/* Returns 1; `provided`, if not NULL, is set to a sentence about threads. */
int AMMPI_SPMDSetThreadMode(int is_safe, const char **provided, int *argc, char ***argv);

#ifdef __cplusplus
}
#endif

#endif /* CCI_AMMPI_SPMD_H */
