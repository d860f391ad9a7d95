//! Events: taken and given back.

use super::ANSWERED;
use cci_mem::sync::Ordering;
use cci_proto::{EventKind, PollError, RequestError, Unusable};
use cci_transport::{Endpoint, Slot};
use std::ptr::NonNull;

/// The next event, or none now, as the pointer that a program holds until it returns the event.
///
/// # Errors
///
/// Nothing to report and every receive buffer is held by the program, or the endpoint cannot be
/// used here.
#[inline]
pub fn get_event(endpoint: &Endpoint) -> Result<Option<NonNull<Slot>>, PollError> {
    Ok(endpoint.next_event()?.map(NonNull::from))
}

/// Gives an event back.
///
/// # Errors
///
/// Not borrowed, an unanswered request, or a forked child.
///
/// # Safety
///
/// Nothing reads the payload in place any more.
#[inline]
#[expect(unsafe_code, reason = "the memory of the payload may be used again after this call")]
pub unsafe fn return_event(slot: &'static Slot) -> Result<(), RequestError> {
    // SAFETY: by the contract above.
    if unsafe { give_back(slot) }? {
        refill(slot);
    }
    Ok(())
}

/// As [`return_event`], without its last step: true where [`refill`] is to be called. Cannot panic.
///
/// # Errors
///
/// As [`return_event`].
///
/// # Safety
///
/// As [`return_event`].
#[inline(always)]
#[expect(unsafe_code, reason = "the memory of the payload may be used again after this call")]
pub unsafe fn give_back(slot: &Slot) -> Result<bool, RequestError> {
    let owner = slot.owner.get().ok_or(RequestError::NotBorrowed)?;
    if !owner.is_here() {
        return Err(Unusable::Forked.into());
    }
    if slot.kind() == EventKind::ConnectRequest as u32
        && slot.mark.load(Ordering::Relaxed) != ANSWERED
        && slot.state() == cci_mem::slot::State::Borrowed
    {
        return Err(RequestError::NotAnswered);
    }
    if !slot.give_back() {
        return Err(RequestError::NotBorrowed);
    }
    // With the heavy fence of the library's last look for a slot: it sees this one, or we see that
    // it starves.
    owner.pairing.light();
    Ok(owner.starving.load(Ordering::Relaxed))
}

/// As [`return_event`], of an event that is done with, whatever it is: an unanswered request is
/// rejected first, because its client would wait for ever. Only one whose peer or endpoint is gone
/// cannot be rejected, and nobody waits for that.
///
/// # Safety
///
/// As [`return_event`].
#[inline]
#[expect(unsafe_code, reason = "as of `return_event`")]
pub unsafe fn put_back(slot: &'static Slot) {
    // SAFETY: by the contract above.
    if unsafe { return_event(slot) } == Err(RequestError::NotAnswered) {
        // SAFETY: as above.
        unsafe { reject_and_return(slot) };
    }
}

/// Apart from [`put_back`], which needs it seldom.
///
/// # Safety
///
/// As [`return_event`].
#[cold]
#[expect(unsafe_code, reason = "as of `return_event`")]
unsafe fn reject_and_return(slot: &'static Slot) {
    let _ = super::reject(slot);
    // SAFETY: by the contract above.
    let _ = unsafe { return_event(slot) };
}

/// Lets the peers go on that found no slot.
#[cold]
pub fn refill(slot: &Slot) {
    let Some(owner) = slot.owner.get() else { return };
    if owner.with(|core, transport| transport.refill(core)) == Err(Unusable::WrongThread) {
        // Its thread may be asleep on the handle.
        owner.ring();
    }
}
