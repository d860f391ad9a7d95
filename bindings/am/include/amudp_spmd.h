/*
 * Parallel programs that start their own workers: `PROGRAM 4 L arguments`. The process that is
 * started by hand becomes the master: it launches the workers, stays their console, and ends with
 * the status of the program. Nothing of the program is left when it has ended, however it ends.
 *
 * A process that belongs to a job already, as under `cci run -n 4 PROGRAM arguments`, is a worker
 * of that.
 */

#ifndef CCI_AMUDP_SPMD_H
#define CCI_AMUDP_SPMD_H

#include "amudp.h"

#include "amx_spmd.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Starts so many workers, which run this program with these arguments; waits for their end; and
 * returns the status of the program. Below 0: they cannot be started. A function of the program's
 * own starts them with a launcher that makes them ranks of a job.
 */
typedef int (*amudp_spawnfn_t)(int workers, int argc, char **argv);

typedef struct {
    char abbrev;
    const char *desc;
    amudp_spawnfn_t fnptr;
} amudp_spawnfn_desc_t;

/*
 * The library's functions, ended by one with abbrev 0. L: this host. S: the hosts that
 * AMUDP_SSH_SERVERS names between spaces, each as HOST or HOST:SLOTS, by ssh or AMUDP_SSH_CMD; the
 * command cci is found there by PATH. C: by the command AMUDP_CSPAWN_CMD, in which %N is the number
 * of workers and %C what each runs, such as "mpirun -n %N %C".
 */
extern const amudp_spawnfn_desc_t AMUDP_Spawnfn_Desc[4];

/*
 * Starts the program. In the master it does not return, unless the workers cannot be started. In a
 * worker argc and argv are those behind the number and the letter, and the others are set. Both
 * write why they fail to standard error.
 *
 * workers: their number; 0: the first argument is it.
 * depth: taken for programs that pass it; credits adapt by themselves.
 * spawn: how workers are started; NULL: by the letter that follows the number, or that
 *   AMUDP_SPAWNFN names, or L.
 * number: a number that the job's workers have in common, or NULL.
 *
 * A start waits for all workers for CCI_AM_START_LIMIT seconds, 60 unless set, and names those that
 * have not come.
 */
int AMUDP_SPMDStartup(int *argc, char ***argv, int workers, int depth, amudp_spawnfn_t spawn, uint64_t *number,
                      eb_t *bundle, ep_t *endpoint);
#define AMX_SPMDStartup(argc, argv, depth, number, bundle, endpoint)                                                   \
    AMUDP_SPMDStartup(argc, argv, 0, depth, NULL, number, bundle, endpoint)

/*
 * Asks for a rank. Ranks are the launcher's to give: the worker keeps its own, and after the start
 * AMUDP_VerboseErrors has another one told.
 */
void AMUDP_SPMDSetProc(int rank);

/*
 * Any NAME=VALUE of the master's environment whose name begins so, or NULL. It lives as long as the
 * process, or until this worker changes its own environment.
 */
const char *AMUDP_check_env_prefix(const char *prefix);

/* Ends this worker if the program ends, as each poll does. The count, if not NULL, is set to 0. */
int AMUDP_SPMDHandleControlTraffic(int *count);

#ifdef __cplusplus
}
#endif

#endif /* CCI_AMUDP_SPMD_H */
