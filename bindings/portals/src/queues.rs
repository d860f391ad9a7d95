//! Event queues.

use crate::answer::Answer;
use crate::layout::CEvent;
use crate::registry::{Handler, registry};
use cci_mem::arguments::{Out, Variable};
use cci_mem::mutex::write;
use cci_portals::{Error, Event, Handle};
use std::ffi::c_int;
use std::time::{Duration, Instant};

/// The queues of one poll.
const MOST: usize = 4_096;
const FOREVER: u32 = u32::MAX;

pub(crate) fn allocate(ni: u32, count: u64, handler: Option<Handler>, queue: Out<'_, u32>) -> Answer {
    let network = registry()?.network(ni)?;
    let queue = queue.variable(Error::Address)?;
    let made = network.queue(count, handler.is_some())?;
    if let Some(handler) = handler.filter(|_| made != Handle::NO_QUEUE) {
        write(&registry()?.handlers).insert(made.bits(), handler);
    }
    queue.put(made.bits());
    Ok(())
}

pub(crate) fn free(queue: u32) -> Answer {
    registry()?.open(queue, Error::Queue)?.free_queue(Handle::from_bits(queue))?;
    write(&registry()?.handlers).remove(&queue);
    Ok(())
}

/// Writes an event; a loss before it is said by the code.
fn hand_over((event, is_lost): (Event, bool), to: Variable<'_, CEvent>) -> Answer {
    to.put(CEvent::from(event));
    if is_lost { Err(Error::EventsDropped.into()) } else { Ok(()) }
}

pub(crate) fn get(queue: u32, event: Out<'_, CEvent>) -> Answer {
    let network = registry()?.open(queue, Error::Queue)?;
    let event = event.variable(Error::Address)?;
    let found = network.event(Handle::from_bits(queue));
    registry()?.run_handlers(&network);
    hand_over(found?, event)
}

pub(crate) fn wait(queue: u32, event: Out<'_, CEvent>) -> Answer {
    let mut which = 0;
    // SAFETY: it leads to one handle.
    unsafe { poll(&raw const queue, 1, FOREVER, event, Out::of(&mut which)) }
}

/// Waits for an event of one of several queues.
///
/// # Safety
///
/// `queues` is NULL or leads to `count` handles.
pub(crate) unsafe fn poll(
    queues: *const u32,
    count: c_int,
    limit: u32,
    event: Out<'_, CEvent>,
    which: Out<'_, c_int>,
) -> Answer {
    let registry = registry()?;
    registry.is_cray()?;
    let count = usize::try_from(count).ok().filter(|count| (1..=MOST).contains(count)).ok_or(Error::Queue)?;
    if queues.is_null() {
        return Err(Error::Address.into());
    }
    let (event, which) = (event.variable(Error::Address)?, which.variable(Error::Address)?);
    // SAFETY: not NULL, and one of `count` handles; of any alignment.
    let handles: Vec<Handle> =
        (0..count).map(|at| Handle::from_bits(unsafe { queues.add(at).read_unaligned() })).collect();
    // Those of another interface are none of this one.
    let network = registry.open(handles[0].bits(), Error::Queue)?;
    let limit = (limit != FOREVER).then(|| Duration::from_millis(limit.into()));
    let begun = Instant::now();
    loop {
        let left = limit.map(|limit| limit.saturating_sub(begun.elapsed()));
        let found = network.poll(&handles, left);
        registry.run_handlers(&network);
        match found {
            // It has ended for the handlers alone.
            Err(Error::QueueEmpty) if left.is_none_or(|left| !left.is_zero()) => {}
            // The interface, and so its queues.
            Err(Error::Network) => return Err(Error::Queue.into()),
            Err(why) => return Err(why.into()),
            Ok((index, found, is_lost)) => {
                which.put(index as c_int);
                return hand_over((found, is_lost), event);
            }
        }
    }
}

/// Makes progress, at most for so long without any change.
pub(crate) fn progress(any: u32, limit: u32) -> Answer {
    let network = registry()?.open(any, Error::Handle)?;
    if !network.has(Handle::from_bits(any)) {
        return Err(Error::Handle.into());
    }
    let done = network.make_progress(Duration::from_millis(limit.into()));
    registry()?.run_handlers(&network);
    Ok(done?)
}
