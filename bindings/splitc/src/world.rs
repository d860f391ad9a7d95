//! The world of the thread that runs the program.

use cci_splitc::World;
use std::cell::Cell;
use std::ptr;

thread_local! {
    /// Of the thread that runs the program; null elsewhere.
    static WORLD: Cell<*mut World> = const { Cell::new(ptr::null_mut()) };
}

/// The world, on the thread that runs the program.
pub(crate) fn world() -> Option<&'static World> {
    // SAFETY: made by `set` from a box, and taken back by `take`, which leaves null; calls of one
    // thread do not overlap, since none of them calls the program.
    unsafe { WORLD.get().as_ref() }
}

pub(crate) fn rank() -> Option<u32> {
    world().map(World::me)
}

/// Has this thread run the program.
pub(crate) fn set(world: Box<World>) {
    WORLD.set(Box::into_raw(world));
}

/// Takes the world out, so that later calls are refused.
pub(crate) fn take() -> Option<World> {
    let world = WORLD.replace(ptr::null_mut());
    // SAFETY: of `Box::into_raw`, and nobody else has it any more.
    (!world.is_null()).then(|| *unsafe { Box::from_raw(world) })
}
