/* Open MPI and MPICH: the same program, compiled once with each. */
#include <mpi.h>

#ifdef OPEN_MPI
#define LIBRARY "openmpi"
#else
#define LIBRARY "mpich"
#endif
#define PEER_IS_LAUNCHED
#include "peer.h"

#define TEXT_(number) #number
#define TEXT(number) TEXT_(number)

/*
 * MPICH declares its constant for "no statuses" as an array, which is shorter than the compiler
 * wants it.
 */
#pragma GCC diagnostic ignored "-Wstringop-overflow"

static unsigned char *slots; /* of a window of receives, each its own */

static void check(int outcome, const char *what)
{
    if (outcome != MPI_SUCCESS)
        fail("%s failed (%d)", what, outcome);
}

static int peer_rank(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    if (!rank)
        rank = getenv("PMI_RANK");
    if (!rank)
        fail("start this by mpirun -n 2");
    return atoi(rank);
}

static const char *peer_version(void)
{
#ifdef OPEN_MPI
    return TEXT(OMPI_MAJOR_VERSION) "." TEXT(OMPI_MINOR_VERSION) "." TEXT(OMPI_RELEASE_VERSION);
#else
    return MPICH_VERSION;
#endif
}

static bool is_shm(void)
{
    return strcmp(self.setting, "shm") == 0;
}

static const char *peer_describe(void)
{
#ifdef OPEN_MPI
    return is_shm() ? "pml ob1, btl self,vader (shared memory, CMA for large messages), polling"
                    : "pml ob1, btl self,tcp on lo, polling";
#else
    return is_shm() ? "ch4, shared memory (posix), polling" : "ch4:ucx with UCX_TLS=self,tcp on lo, MPIR_CVAR_NOLOCAL=1, polling";
#endif
}

/* MPI_Init reads what stands here. */
static void choose(void)
{
    if (!is_shm() && strcmp(self.setting, "tcp") != 0)
        fail("no such setting: %s", self.setting);
#ifdef OPEN_MPI
    /*
     * By trial: in shared memory 0.37 us, where pml ucx takes 0.43. Over TCP pml ucx is faster with
     * 8 bytes (4.6 us, not 5.5), and slower with 64 KiB (45 us, not 37); this is Open MPI's own.
     */
    setenv("OMPI_MCA_pml", "ob1", 1);
    setenv("OMPI_MCA_btl", is_shm() ? "self,vader" : "self,tcp", 1);
    setenv("OMPI_MCA_btl_tcp_if_include", "lo", 1);
    /* Both processes have a processor of their own, and need not yield. */
    setenv("OMPI_MCA_mpi_yield_when_idle", "0", 1);
#else
    if (!is_shm()) {
        setenv("MPIR_CVAR_NOLOCAL", "1", 1);
        setenv("UCX_TLS", "self,tcp", 1);
        setenv("UCX_NET_DEVICES", "lo", 1);
    }
#endif
}

static void peer_open(void)
{
    int processes = 0;
    choose();
    check(MPI_Init(NULL, NULL), "MPI_Init");
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    if (processes != 2)
        fail("two processes are needed, not %d", processes);
    size_t window = window_of(self.largest) * self.largest;
    slots = must_allocate(window > PEER_WINDOW_BYTES ? window : PEER_WINDOW_BYTES);
}

static void peer_tell_name(char *name, size_t len)
{
    check(MPI_Bcast(name, (int)len, MPI_CHAR, 0, MPI_COMM_WORLD), "MPI_Bcast");
}

static size_t peer_limit(void)
{
    return INT32_MAX;
}

static inline void peer_send(size_t size)
{
    MPI_Send(self.out, (int)size, MPI_BYTE, !self.is_server, 0, MPI_COMM_WORLD);
}

static inline void peer_receive(size_t size)
{
    MPI_Recv(self.in, (int)size, MPI_BYTE, !self.is_server, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static unsigned at_once(size_t size, uint64_t left)
{
    unsigned window = window_of(size);
    return left < window ? (unsigned)left : window;
}

static void peer_stream(size_t size, uint64_t count)
{
    MPI_Request requests[PEER_WINDOW];
    while (count > 0) {
        unsigned now = at_once(size, count);
        for (unsigned i = 0; i < now; i++)
            MPI_Isend(self.out, (int)size, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &requests[i]);
        MPI_Waitall((int)now, requests, MPI_STATUSES_IGNORE);
        count -= now;
    }
}

static void peer_sink(size_t size, uint64_t count)
{
    MPI_Request requests[PEER_WINDOW];
    while (count > 0) {
        unsigned now = at_once(size, count);
        for (unsigned i = 0; i < now; i++)
            MPI_Irecv(slots + i * size, (int)size, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &requests[i]);
        MPI_Waitall((int)now, requests, MPI_STATUSES_IGNORE);
        for (unsigned i = 0; i < now; i++)
            read_bytes(slots + i * size, size);
        count -= now;
    }
}

static inline void peer_progress(void)
{
    int seen;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &seen, MPI_STATUS_IGNORE);
}

static void peer_close(void)
{
    MPI_Finalize();
}
