//! How often a wait looks, and how long it sleeps then.

use std::time::Duration;

/// How often a wait looks before it sleeps.
pub(crate) const LOOKS: u32 = 4000;
/// How often a rank polls for an answer before it sleeps.
pub(crate) const POLLS: u32 = 2000;
/// Either, where ranks share a processor.
pub(crate) const LOOKS_SHARED: u32 = 20;
/// Looks that are left, at least, to who has just served somebody: the next request comes soon, or
/// not.
pub(crate) const SERVED: u32 = 400;
/// Looks between two polls.
pub(crate) const LOOKS_A_POLL: u32 = 200;

/// The longest sleep of a wait that its peers end by a message.
pub(crate) const LONG: Duration = Duration::from_millis(200);
/// The first and the longest sleep of one that may not be ended by a message: for bytes that are
/// stored, where the kernel has no fence for a sleeper alone.
pub(crate) const SHORT: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(2));
