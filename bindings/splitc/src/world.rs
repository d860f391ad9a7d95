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
    // SAFETY: null, or of a box in `set`. It stays there until `take`, whose caller promises that
    // this reference is used no more.
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
///
/// # Safety
///
/// No reference of [`world`] is used on this thread from here on.
pub(crate) unsafe fn take() -> Option<World> {
    let world = WORLD.replace(ptr::null_mut());
    // SAFETY: of `Box::into_raw` in `set`. The pointer is gone from its only place, and by the
    // contract no reference is left.
    (!world.is_null()).then(|| *unsafe { Box::from_raw(world) })
}
