//! The life of a program: its start, its end, and the world in between.

use crate::ending::{INSIDE, end, guarded, say};
use crate::world::{set, take, world};
use cci_splitc::{Way, World};
use std::cell::Cell;
use std::convert::Infallible;
use std::ffi::{c_char, c_int, c_void};
use std::ptr;

/// `struct sc_world` of the header.
#[repr(C)]
pub(crate) struct CWorld {
    me: c_int,
    procs: c_int,
    procslog: c_int,
    layout: c_int,
    ways: *const Way,
}

/// The layout that this library knows, `SC_LAYOUT_`.
const LAYOUT: c_int = 2;

thread_local! {
    /// The process that runs it: a forked child has a copy of this and of the world.
    static PROCESS: Cell<u32> = const { Cell::new(0) };
}

/// Ends the world, if there is one. A panic leaves nothing to go on with: the process ends.
///
/// # Safety
///
/// No call of the program on the world is under way on this thread.
unsafe fn end_well() -> Option<Result<(), String>> {
    let ended = std::panic::catch_unwind(|| {
        // SAFETY: only calls of the program use references of `world`, and none is under way.
        let world = unsafe { take() };
        world.map(|world| world.end().map_err(|fault| fault.to_string()))
    });
    ended.unwrap_or_else(|payload| {
        // Its destructor could panic in turn.
        std::mem::forget(payload);
        Some(Err(INSIDE.to_owned()))
    })
}

// SAFETY: of the C library. `on_exit` only notes the function, which stays as long as this library,
// with which the program is linked, and an argument that the function does not use. `fflush` of no
// stream flushes all, each under its lock. `_exit` ends the process, whatever state it is in.
unsafe extern "C" {
    /// Of the GNU C library: as `atexit`, with the status.
    safe fn on_exit(act: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
    /// Of all streams: none can be named.
    safe fn fflush(stream: Option<&Infallible>) -> c_int;
    safe fn _exit(status: c_int) -> !;
}

/// A program that calls `exit(0)` in its midst has come to its end, and waits there for the others.
/// One that ends otherwise does not.
extern "C" fn at_exit(status: c_int, _: *mut c_void) {
    if status == 0
        && PROCESS.get() == std::process::id()
        // SAFETY: the program has called `exit` in code of its own. Calls of this library run none
        // of that, and end the process with another status.
        && let Some(Err(fault)) = unsafe { end_well() }
    {
        say(&fault);
        // A handler cannot call `exit`; what the program has buffered is written here.
        fflush(None);
        _exit(1)
    }
}

/// Runs `program`; see the header.
///
/// # Safety
///
/// `to` is NULL or leads to room for a [`CWorld`]. `program` is NULL or a function that may be
/// called with `argc` and `argv`. The process has one thread.
pub(crate) unsafe fn run(
    to: *mut CWorld,
    layout: c_int,
    argc: c_int,
    argv: *mut *mut c_char,
    program: Option<unsafe extern "C" fn(c_int, *mut *mut c_char) -> c_int>,
) -> c_int {
    if layout != LAYOUT {
        end(&format_args!(
            "the program was compiled with headers of layout {layout}, and this library has {LAYOUT}; compile it again"
        ));
    }
    let Some(program) = program.filter(|_| !to.is_null() && world().is_none()) else {
        end(&"splitc_run within splitc_run, or without a program; call it once");
    };
    // SAFETY: the process has one thread, by the contract.
    let world = guarded(|| unsafe { World::start_with_statics() }).unwrap_or_else(|why| end(&why));
    let (me, procs) = (world.me() as c_int, world.procs() as c_int);
    let procslog = if world.procs().is_power_of_two() { world.procs().trailing_zeros() as c_int } else { -1 };
    let world = Box::new(world);
    let ways = world.ways().as_ptr();
    // SAFETY: not NULL, as checked above, so that it leads to room for it.
    unsafe { to.write(CWorld { me, procs, procslog, layout, ways }) };
    set(world);
    PROCESS.set(std::process::id());
    on_exit(at_exit, ptr::null_mut());
    // SAFETY: the program's function, which may be called with these arguments.
    let status = unsafe { program(argc, argv) };
    if status == 0
        // SAFETY: the program has returned, and with it from all its calls.
        && let Some(Err(fault)) = unsafe { end_well() }
    {
        // The rank stands in the sentence no more.
        end(&format_args!("rank {me}: {fault}"));
    }
    status
}
