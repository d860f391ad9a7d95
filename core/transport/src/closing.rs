//! What an endpoint sends before it closes.

use crate::{Arming, Core, HandleCheck, Readiness};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// How long an endpoint that closes sleeps between two checks, nanoseconds.
const NAP: i64 = 1_000_000;

/// What a step of [`send_rest`] has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsent {
    /// Nothing is left to send.
    Nothing,
    /// Something is left, and the step has moved something.
    Moving,
    /// Something is left, and peers must act first.
    Waiting,
}

/// Sends what an endpoint that closes has left to send: calls `step` until nothing is left or
/// `limit` has passed, by the transport's clock. It drops the events that result, because no
/// program takes them, and sleeps on the OS handle, which `handle` gives, while peers must act.
///
/// ```
/// use cci_transport::{Arming, Core, Transport, Unsent, send_rest};
/// use std::time::Duration;
/// /// The beginning of `Transport::close`. `count`: how many messages are left to send.
/// fn close<T: Arming + Transport>(transport: &mut T, core: &mut Core, limit: Duration, count: fn(&T) -> usize) {
///     send_rest(transport, core, limit, T::handle, |transport, core| {
///         let before = count(transport);
///         transport.progress(core);
///         match count(transport) {
///             0 => Unsent::Nothing,
///             left if left < before => Unsent::Moving,
///             _ => Unsent::Waiting,
///         }
///     });
/// }
/// ```
pub fn send_rest<T: Arming>(
    transport: &mut T,
    core: &mut Core,
    limit: Duration,
    handle: fn(&T) -> BorrowedFd<'_>,
    mut step: impl FnMut(&mut T, &mut Core) -> Unsent,
) {
    let end = transport.now() + limit;
    while transport.now() < end {
        let unsent = step(transport, core);
        core.drop_events();
        match unsent {
            Unsent::Nothing => return,
            Unsent::Moving => {}
            Unsent::Waiting => {
                if Readiness::arm(transport, core, HandleCheck::Anew) {
                    let nap = Timespec { tv_sec: 0, tv_nsec: NAP };
                    let _ = poll(&mut [PollFd::new(&handle(transport), PollFlags::IN)], Some(&nap));
                } else {
                    std::thread::yield_now();
                }
            }
        }
    }
}
