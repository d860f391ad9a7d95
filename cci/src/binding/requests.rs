//! The answers to connection requests, and why a connect failed.

use cci_mem::sync::Ordering;
use cci_proto::{EventKind, Failure, RequestError, Status};
use cci_transport::{Endpoint, Peer, Slot, Transport};
use std::time::Duration;

/// `Slot::mark` of a request that was answered.
pub const ANSWERED: u32 = 1;

/// Accepts a request on its own endpoint.
///
/// # Errors
///
/// Not an unanswered request.
pub fn accept(slot: &'static Slot, context: u64) -> Result<(), RequestError> {
    answer(slot, |core, transport| transport.accept(core, slot, context))
}

/// Who sent a request; none when its client is gone.
///
/// # Errors
///
/// Not an unanswered request.
pub fn peer(slot: &'static Slot) -> Result<Option<Peer>, RequestError> {
    let owner = slot.owner.get().ok_or(RequestError::NotARequest)?;
    owner.with(|_, transport| {
        check_request(slot)?;
        Ok(transport.peer(slot))
    })?
}

/// Rejects a request.
///
/// # Errors
///
/// Not an unanswered request.
pub fn reject(slot: &'static Slot) -> Result<(), RequestError> {
    answer(slot, |core, transport| transport.reject(core, slot))
}

/// How long a client may take to come to the endpoint that it was sent to.
const REDIRECT_LIMIT: Duration = Duration::from_secs(10);

/// Accepts a request on another endpoint of the same device: the client is sent there, and the
/// ACCEPT event comes there.
///
/// # Errors
///
/// Not an unanswered request, or an endpoint of another device.
pub fn accept_on(slot: &'static Slot, worker: &Endpoint, context: u64) -> Result<(), RequestError> {
    let owner = slot.owner.get().ok_or(RequestError::NotARequest)?;
    if std::ptr::eq(owner, worker) {
        return accept(slot, context);
    }
    let [token] = cci_transport::random().map_err(|_| RequestError::NoMemory)?;
    // 0 stands for a client that was not sent on.
    let token = token | 1;
    let scheme = |uri: &str| uri.split_once("://").map(|(scheme, _)| scheme.to_owned());
    // One lock at a time: the worker expects the client before the client hears of the worker.
    let here = owner.with(|_, transport| scheme(transport.uri()))?;
    let uri = worker.with(|_, transport| transport.uri().to_owned())?;
    if here != scheme(&uri) {
        return Err(RequestError::OtherDevice);
    }
    check_request(slot)?;
    worker.with(|core, transport| transport.expect(core, token, context, REDIRECT_LIMIT))??;
    let answered = answer(slot, |core, transport| transport.redirect(core, slot, &uri, token));
    if answered.is_err() {
        // Another thread was faster, or the client cannot be sent there: nobody will come. A worker
        // that is closed meanwhile has forgotten already.
        let _ = worker.with(|core, transport| transport.forget_expected(core, token));
    }
    answered
}

/// Why the connect failed, or the peer is lost, that this event tells of, as a sentence; none for
/// other events. Of a connect it is that of its status where no more is known.
#[must_use]
pub fn reason(slot: &'static Slot) -> Option<String> {
    if slot.state() != cci_mem::slot::State::Borrowed {
        return None;
    }
    let (kind, owner) = (slot.kind(), slot.owner.get()?);
    if kind == EventKind::Connect as u32 && slot.detail() != Status::Success as u32 {
        let known = owner.with(|core, _| core.reason(slot).map(str::to_owned)).ok()?;
        let failure = || Failure::from_status(Status::from_u32(slot.detail())?);
        return known.or_else(|| failure().map(|failure| failure.to_string()));
    }
    if kind != EventKind::Disconnect as u32 && kind != EventKind::KeepaliveTimedOut as u32 {
        return None;
    }
    let connection = slot.connection.get()?;
    let life = slot.mark.load(Ordering::Relaxed);
    let why = owner.with(|core, transport| {
        let broke = |core: &cci_transport::Core| core.why_broken(connection).map(str::to_owned);
        (connection.generation() == life)
            .then(|| transport.report(core, connection).moved.or_else(|| broke(core)))
            .flatten()
    });
    why.ok()?
}

fn check_request(slot: &'static Slot) -> Result<(), RequestError> {
    if slot.kind() != EventKind::ConnectRequest as u32 || slot.state() != cci_mem::slot::State::Borrowed {
        Err(RequestError::NotARequest)
    } else if slot.mark.load(Ordering::Relaxed) == ANSWERED {
        Err(RequestError::AlreadyAnswered)
    } else {
        Ok(())
    }
}

fn answer(
    slot: &'static Slot,
    act: impl FnOnce(&mut cci_transport::Core, &mut dyn Transport) -> Result<(), RequestError>,
) -> Result<(), RequestError> {
    let owner = slot.owner.get().ok_or(RequestError::NotARequest)?;
    owner.with(|core, transport| {
        check_request(slot)?;
        act(core, transport)?;
        slot.mark.store(ANSWERED, Ordering::Relaxed);
        Ok(())
    })?
}
