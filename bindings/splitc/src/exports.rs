//! The symbols.

use crate::ending::{end, guarded, with};
use crate::memory::{self, Allocated};
use crate::program::{self, CWorld};
use cci_splitc::{Change, Completion, Fault, Op, World};
use std::ffi::{c_char, c_double, c_float, c_int, c_long, c_void};

/// Exports calls: the symbol, its signature and what it does.
macro_rules! export {
    ($($symbol:ident ($($argument:ident: $type:ty),*) $(-> $result:ty)? => $body:expr;)*) => {
        $(
            /// # Safety
            ///
            /// What the header states of the pointers.
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $symbol($($argument: $type),*) $(-> $result)? {
                $body
            }
        )*
    };
}

type Program = Option<unsafe extern "C" fn(c_int, *mut *mut c_char) -> c_int>;

fn completion(now: c_int) -> Completion {
    if now == 0 { Completion::BySync } else { Completion::Now }
}

fn operation(number: c_int) -> Op {
    match number {
        0 => Op::Add,
        1 => Op::Mul,
        2 => Op::Max,
        3 => Op::Min,
        _ => end(&format_args!("{number} is no operation of a reduction; give one of 0 to 3")),
    }
}

fn change_of(operation: c_int, first: u64, second: u64) -> Change {
    match operation {
        0 => Change::Add(first),
        1 => Change::Swap(first),
        2 => Change::CompareSwap { expected: first, desired: second },
        _ => end(&format_args!("{operation} is no atomic operation; give one of 0 to 2")),
    }
}

/// The address of spread memory for so many elements over all ranks.
fn spread(world: &World, count: usize, size: usize) -> Result<u64, Fault> {
    let rows = (count as u64).div_ceil(u64::from(world.procs()));
    world.allocate_spread(rows.saturating_mul(size as u64))
}

/// Broadcasts bytes of the program.
///
/// # Safety
///
/// `bytes` leads to `len` bytes, which nobody else reads or writes during the call; with a length
/// of 0 it may lead anywhere.
unsafe fn broadcast_bytes(world: &World, bytes: *mut c_void, len: usize, from: c_int) -> Result<(), Fault> {
    let from = u32::try_from(from).unwrap_or(u32::MAX);
    if len == 0 {
        return world.broadcast_bulk::<u8>(from, &mut []);
    }
    // SAFETY: so many bytes are there, and nobody else uses them during the call.
    world.broadcast_bulk(from, unsafe { std::slice::from_raw_parts_mut(bytes.cast::<u8>(), len) })
}

fn seconds() -> c_double {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes the variable, and keeps nothing of it.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as c_double + now.tv_nsec as c_double * 1e-9
}

export! {
    sc_run(world: *mut CWorld, layout: c_int, argc: c_int, argv: *mut *mut c_char, program: Program) -> c_int => {
        // SAFETY: `world` is NULL or leads to room for the structure, `program` is NULL or the
        // program's function for these arguments, and the process has one thread.
        unsafe { program::run(world, layout, argc, argv, program) }
    };
    sc_copy_out(to: *mut c_void, from: u64, n: usize, now: c_int) => {
        // SAFETY: `to` leads to `n` bytes, which stay the library's until the next `sync` unless
        // `now`; `from` names memory that the program may read.
        with(|world| unsafe { world.copy_out_raw(from, to.cast(), n, completion(now)) })
    };
    sc_copy_in(to: u64, from: *const c_void, n: usize, now: c_int) => {
        // SAFETY: `from` leads to `n` bytes, which nobody writes during the call; `to` names memory
        // that the program may write.
        with(|world| unsafe { world.copy_in_raw(to, from.cast(), n, completion(now)) })
    };
    sc_store_bytes(to: u64, from: *const c_void, n: usize) => {
        // SAFETY: as for `sc_copy_in`.
        with(|world| unsafe { world.store_raw(to, from.cast(), n) })
    };
    sc_change(at: u64, size: c_int, operation: c_int, first: u64, second: u64) -> u64 => {
        let change = change_of(operation, first, second);
        // SAFETY: `at` names a word that the program may change.
        with(|world| unsafe { world.change_raw(at, u32::try_from(size).unwrap_or(0), change) })
    };
    sc_wake(rank: c_int) => with(|world| world.wake_raw(u32::try_from(rank).unwrap_or(u32::MAX)));
    sc_barrier() => with(World::barrier);
    sc_poll() => with(World::poll);
    sc_sync() => with(World::sync);
    sc_store_sync(n: usize) => with(|world| world.store_sync(n as u64));
    sc_all_store_sync() => with(World::all_store_sync);
    sc_reset_store_sync() => with(|world| { world.reset_store_sync(); Ok(()) });
    sc_seconds() -> c_double => guarded(seconds);
    sc_reduce_i(operator: c_int, value: c_int) -> c_int => with(|world| world.reduce(operation(operator), value));
    sc_reduce_l(operator: c_int, value: c_long) -> c_long => with(|world| world.reduce(operation(operator), value));
    sc_reduce_f(operator: c_int, value: c_float) -> c_float => with(|world| world.reduce(operation(operator), value));
    sc_reduce_d(operator: c_int, value: c_double) -> c_double => with(|world| world.reduce(operation(operator), value));
    sc_scan_i(operator: c_int, value: c_int) -> c_int => with(|world| world.scan(operation(operator), value));
    sc_scan_l(operator: c_int, value: c_long) -> c_long => with(|world| world.scan(operation(operator), value));
    sc_scan_f(operator: c_int, value: c_float) -> c_float => with(|world| world.scan(operation(operator), value));
    sc_scan_d(operator: c_int, value: c_double) -> c_double => with(|world| world.scan(operation(operator), value));
    sc_broadcast_i(value: c_int) -> c_int => with(|world| world.broadcast(0, value));
    sc_broadcast_l(value: c_long) -> c_long => with(|world| world.broadcast(0, value));
    sc_broadcast_f(value: c_float) -> c_float => with(|world| world.broadcast(0, value));
    sc_broadcast_d(value: c_double) -> c_double => with(|world| world.broadcast(0, value));
    sc_broadcast_bytes(bytes: *mut c_void, n: usize, from: c_int) => {
        // SAFETY: `bytes` leads to `n` bytes, which the program lends to the call.
        with(|world| unsafe { broadcast_bytes(world, bytes, n, from) })
    };
    sc_spread_malloc(count: usize, size: usize) -> u64 => with(|world| spread(world, count, size));
    sc_spread_free(memory: u64) => with(|world| world.free_spread(memory));
    sc_malloc(n: usize) -> *mut c_void => guarded(|| memory::allocate(n));
    sc_calloc(count: usize, n: usize) -> *mut c_void => guarded(|| memory::allocate_zeroes(count, n));
    sc_realloc(old: Allocated, n: usize) -> *mut c_void => guarded(|| memory::resize(old, n));
    sc_free(old: Allocated) => guarded(|| memory::free(old));
}
