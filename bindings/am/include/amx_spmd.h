/*
 * Parallel programs: what amudp_spmd.h and ammpi_spmd.h have in common. Programs include one of
 * those.
 *
 * After the start each worker has an endpoint with a tag of its own, in a bundle of its own. The
 * endpoints of all workers are mapped, at the index that is their rank.
 */

#ifndef CCI_AMX_SPMD_H
#define CCI_AMX_SPMD_H

#ifndef AMX_DIALECT
#error "include amudp_spmd.h or ammpi_spmd.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Called with the status before this worker ends, whoever has ended the program. */
typedef void (*amx_exit_callback_t)(int status);

/*
 * Ends the program with this status, of which the system has the lower 8 bits, and does not
 * return. Other workers learn of it when they poll: at once, or where the status is 0 when they
 * have not ended by themselves within a second. Those that do not poll are killed soon after. Under
 * launchers other than `cci run` and the program's own master, this worker alone ends.
 */
#define AMX_SPMDExit AMX_NAME(SPMDExit)
int AMX_NAME(SPMDExit)(int status);

/* Whether this process is a worker, also before the start. */
#define AMX_SPMDIsWorker AMX_NAME(SPMDIsWorker)
int AMX_NAME(SPMDIsWorker)(char **argv);

/* How many workers there are, and which one this is: 0 and -1 before the start. */
#define AMX_SPMDNumProcs AMX_NAME(SPMDNumProcs)
#define AMX_SPMDMyProc AMX_NAME(SPMDMyProc)
int AMX_NAME(SPMDNumProcs)(void);
int AMX_NAME(SPMDMyProc)(void);

/*
 * Returns when all workers have called it. Polls meanwhile. AM_ERR_NOT_SENT: a worker is gone, or
 * has not polled for the send timeout (AMX_SetSendTimeout); this is so for each later call too.
 * No cancellation point, as pthread_barrier_wait is none: a thread that is cancelled meanwhile ends
 * after the call. The same holds for the next two.
 */
#define AMX_SPMDBarrier AMX_NAME(SPMDBarrier)
int AMX_NAME(SPMDBarrier)(void);

/*
 * Gives each worker the `length` bytes at `source` of all, in the order of ranks: `target` has room
 * for `length` times the number of workers. All call it, with one length. Polls meanwhile.
 */
#define AMX_SPMDAllGather AMX_NAME(SPMDAllGather)
int AMX_NAME(SPMDAllGather)(const void *source, void *target, size_t length);

/* Gives each worker the bytes at `buffer` of the worker `root`. All call it. Polls meanwhile. */
#define AMX_SPMDBroadcast AMX_NAME(SPMDBroadcast)
int AMX_NAME(SPMDBroadcast)(void *buffer, size_t length, int root);

/*
 * The value of a variable in the environment of the master, which is that of worker 0; NULL if it
 * has none. It is valid until the process ends.
 */
#define AMX_SPMDgetenvMaster AMX_NAME(SPMDgetenvMaster)
const char *AMX_NAME(SPMDgetenvMaster)(const char *name);

#define AMX_SPMDSetExitCallback AMX_NAME(SPMDSetExitCallback)
int AMX_NAME(SPMDSetExitCallback)(amx_exit_callback_t callback);

/* What ends this process at last: a program may set another function. exit() at first. */
#define AMX_SPMDkillmyprocess AMX_NAME(SPMDkillmyprocess)
extern void (*AMX_NAME(SPMDkillmyprocess))(int status);

#ifdef __cplusplus
}
#endif

#endif /* CCI_AMX_SPMD_H */
