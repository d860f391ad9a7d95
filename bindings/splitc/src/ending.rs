//! How a program ends that cannot go on.

use crate::world::{rank, world};
use cci_splitc::{Fault, World};
use std::fmt;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The status of a program that cannot go on.
const STATUS: i32 = 1;

/// The library is wrong.
pub(crate) const INSIDE: &str = "the library failed inside; report what stands above";

/// Writes a line to standard error, with the rank where it is known.
pub(crate) fn say(why: &dyn fmt::Display) {
    let rank = rank().map_or(String::new(), |rank| format!("rank {rank}: "));
    // Nobody is left to report to where standard error is closed.
    let _ = std::io::stderr().write_all(format!("splitc: {rank}{why}\n").as_bytes());
}

/// Ends the program with a sentence.
pub(crate) fn end(why: &dyn fmt::Display) -> ! {
    say(why);
    // SAFETY: it runs the program's handlers, which may use what this library has.
    unsafe { libc::exit(STATUS) }
}

/// Runs what cannot fail but by a fault of the library, which ends the program.
pub(crate) fn guarded<T>(act: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|payload| {
        // Its destructor could panic in turn.
        std::mem::forget(payload);
        end(&INSIDE)
    })
}

/// Calls `act` with the world of this thread; a fault ends the program.
pub(crate) fn with<T>(act: impl FnOnce(&World) -> Result<T, Fault>) -> T {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let world =
            world().ok_or("a call outside of splitc_main, or from another thread; call from the thread that runs it");
        match world.map(act) {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(fault)) => Err(fault.to_string()),
            Err(why) => Err(why.to_owned()),
        }
    }));
    match outcome {
        Ok(Ok(value)) => value,
        Ok(Err(why)) => end(&why),
        Err(payload) => {
            std::mem::forget(payload);
            end(&INSIDE)
        }
    }
}
