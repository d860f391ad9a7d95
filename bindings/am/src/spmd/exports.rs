//! The symbols of parallel programs.

use super::ending::{self, OnExit};
use super::program::{JOINED, Joined, WORLD};
use super::{collective, environment, master, start};
use crate::answer::{answer, guarded};
use crate::dialect::{Dialect, Mpi, Udp};
use crate::endpoint::{Eb, Ep};
use crate::refusal::Refusal;
use cci_job::Job;
use cci_mem::arguments::{Out, Text};
use cci_mem::boundary::uncancelled;
use std::ffi::{c_char, c_int, c_void};

/// # Safety
///
/// What the header states of the pointers.
#[unsafe(export_name = "AMUDP_SPMDStartup")]
unsafe extern "C" fn udp_start(
    count: *mut c_int,
    words: *mut *mut *mut c_char,
    ranks: c_int,
    _depth: c_int,
    spawn: Option<master::Spawn>,
    number: Out<'_, u64>,
    bundle: Out<'_, Eb>,
    endpoint: Out<'_, Ep>,
) -> c_int {
    let start = || {
        if !Job::is_named() {
            // SAFETY: each is NULL, or what `main` has got: `*count` strings at `*words`.
            return unsafe { master::run((count, words), ranks, spawn) };
        }
        start::start::<Udp>(number, bundle, endpoint)
    };
    answer::<Udp>("AMUDP_SPMDStartup", || uncancelled(start))
}

#[unsafe(export_name = "AMMPI_SPMDStartup")]
extern "C" fn mpi_start(
    _count: *mut c_int,
    _words: *mut *mut *mut c_char,
    _depth: c_int,
    number: Out<'_, u64>,
    bundle: Out<'_, Eb>,
    endpoint: Out<'_, Ep>,
) -> c_int {
    answer::<Mpi>("AMMPI_SPMDStartup", || uncancelled(|| start::start::<Mpi>(number, bundle, endpoint)))
}

fn joined() -> Option<&'static Joined> {
    JOINED.get().filter(|_| WORLD.get().is_some())
}

/// What the calls without a code give in place of a rank, or of a failure.
const NONE: c_int = -1;

/// Exports what both dialects have: the symbols, the signature, what a panic becomes, the call. No
/// thread is cancelled in them. Those of all workers wait without a limit, but are no cancellation
/// points, as `pthread_barrier_wait` is none: what a worker has sent cannot be taken back, and the
/// others would count one that has left.
macro_rules! both {
    ($(($udp:literal, $mpi:literal) $arguments:tt -> $answer:ty, $otherwise:expr, { $body:expr })*) => {
        $(
            both! { @one Udp $udp $arguments $answer, $otherwise, $body }
            both! { @one Mpi $mpi $arguments $answer, $otherwise, $body }
        )*
    };
    (@one $dialect:ident $symbol:literal ($($argument:ident: $type:ty),*) $answer:ty, $otherwise:expr, $body:expr) => {
        const _: () = {
            #[allow(dead_code)]
            type D = $dialect;
            #[allow(dead_code)]
            const NAME: &str = $symbol;
            /// # Safety
            ///
            /// What the header states of the pointers.
            #[unsafe(export_name = $symbol)]
            unsafe extern "C" fn export($($argument: $type),*) -> $answer {
                guarded($otherwise, || $body)
            }
        };
    };
}

both! {
    ("AMUDP_SPMDExit", "AMMPI_SPMDExit") (status: c_int) -> c_int, NONE, { ending::exit(status) }
    ("AMUDP_SPMDNumProcs", "AMMPI_SPMDNumProcs") () -> c_int, 0, {
        joined().map_or(0, |joined| joined.size as c_int)
    }
    ("AMUDP_SPMDMyProc", "AMMPI_SPMDMyProc") () -> c_int, NONE, {
        joined().map_or(NONE, |joined| joined.rank as c_int)
    }
    ("AMUDP_SPMDBarrier", "AMMPI_SPMDBarrier") () -> c_int, NONE, { answer::<D>(NAME, || collective::barrier::<D>(NAME)) }
    ("AMUDP_SPMDAllGather", "AMMPI_SPMDAllGather") (source: *const c_void, target: *mut c_void, len: usize) -> c_int, NONE, {
        answer::<D>(NAME, || {
            // SAFETY: `source` is NULL, or `len` bytes that nobody writes until the call returns;
            // `target` is NULL, or has room for `len` bytes of each worker, which nobody else uses
            // until then.
            unsafe { collective::gather::<D>(NAME, source, target, len) }
        })
    }
    ("AMUDP_SPMDBroadcast", "AMMPI_SPMDBroadcast") (buffer: *mut c_void, len: usize, root: c_int) -> c_int, NONE, {
        answer::<D>(NAME, || {
            // SAFETY: `buffer` is NULL, or `len` bytes that nobody else uses until the call
            // returns.
            unsafe { collective::broadcast::<D>(NAME, buffer, len, root) }
        })
    }
    ("AMUDP_SPMDgetenvMaster", "AMMPI_SPMDgetenvMaster") (name: Text<'_>) -> *const c_char, std::ptr::null(), {
        // SAFETY: no other thread changes the environment meanwhile, as for `getenv`.
        unsafe { environment::get(name) }
    }
    ("AMUDP_SPMDSetExitCallback", "AMMPI_SPMDSetExitCallback") (callback: Option<OnExit>) -> c_int, NONE, {
        answer::<D>(NAME, || {
            ending::set_callback(callback)
        })
    }
}

#[unsafe(export_name = "AMUDP_SPMDIsWorker")]
extern "C" fn udp_is_worker(_: *mut *mut c_char) -> c_int {
    guarded(0, || c_int::from(Job::is_named()))
}

#[unsafe(export_name = "AMMPI_SPMDIsWorker")]
extern "C" fn mpi_is_worker(_: *mut *mut c_char) -> c_int {
    1
}

#[unsafe(export_name = "AMUDP_SPMDHandleControlTraffic")]
extern "C" fn udp_handle_control_traffic(count: Out<'_, c_int>) -> c_int {
    answer::<Udp>("AMUDP_SPMDHandleControlTraffic", || {
        ending::leave_if_asked();
        count.offer(0);
        Ok(())
    })
}

#[unsafe(export_name = "AMUDP_SPMDSetProc")]
extern "C" fn udp_set_proc(rank: c_int) {
    answer::<Udp>("AMUDP_SPMDSetProc", || {
        let is_other = joined().is_some_and(|joined| joined.rank as c_int != rank);
        if is_other { Err(Refusal::Resource("ranks are those that the launcher has given")) } else { Ok(()) }
    });
}

/// # Safety
///
/// No other thread changes the environment.
#[unsafe(export_name = "AMUDP_check_env_prefix")]
unsafe extern "C" fn udp_check_env_prefix(prefix: Text<'_>) -> *const c_char {
    // SAFETY: no other thread changes the environment meanwhile, by the contract above.
    guarded(std::ptr::null(), || unsafe { environment::begins(prefix) })
}

#[unsafe(export_name = "AMMPI_SPMDSetThreadMode")]
extern "C" fn mpi_set_thread_mode(
    _is_safe: c_int,
    provided: Out<'_, *const c_char>,
    _count: *mut c_int,
    _words: *mut *mut *mut c_char,
) -> c_int {
    provided.offer(c"AM_SEQ: a bundle is used by one thread at a time".as_ptr());
    1
}

const _: () = assert!(Udp::PLACE == 0 && Mpi::PLACE == 1);
