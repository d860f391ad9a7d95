//! Requests and replies.

use crate::endpoint::{Bundle, Endpoint, Of, State, Token};
use crate::handlers::give_back;
use crate::refusal::{Answer, Refusal};
use crate::registry;
use crate::spmd::leave_if_asked;
use crate::status::Status;
use crate::token::Message;
use cci_am::{Peer, RequestError, Sort};
use std::cell::RefMut;
use std::ffi::{c_int, c_void};
use std::time::{Duration, Instant};

/// The most bytes of a message.
pub(crate) const LONGEST: usize = 65_000;
const MOST_ARGUMENTS: usize = 16;
/// Polls in vain after which a request sleeps.
const SPINS: u32 = 64;
/// The longest sleep, after which bundles that only this thread can poll are polled again.
const NAP: Duration = Duration::from_millis(1);
/// The longest sleep otherwise: when room comes, nobody is woken.
const ROOM: Duration = Duration::from_millis(5);

/// What a message carries beside its arguments.
#[derive(Clone, Copy)]
pub(crate) enum Body {
    Short,
    Medium {
        source: *const c_void,
        bytes: usize,
    },
    Bulk {
        source: *const c_void,
        bytes: usize,
        offset: usize,
    },
    /// Bytes of the target's segment, from the first offset, to the own one, at the second.
    Get {
        bytes: usize,
        from: usize,
        offset: usize,
    },
}

impl Body {
    fn sort(self) -> Sort {
        match self {
            Self::Short => Sort::Short,
            Self::Medium { .. } => Sort::Medium,
            Self::Bulk { .. } | Self::Get { .. } => Sort::Bulk,
        }
    }

    fn bytes(self) -> usize {
        match self {
            Self::Short => 0,
            Self::Medium { bytes, .. } | Self::Bulk { bytes, .. } | Self::Get { bytes, .. } => bytes,
        }
    }

    /// Whether the limits allow it. A get has none but those of the segments.
    fn is_right(self) -> bool {
        match self {
            Self::Short | Self::Get { .. } => true,
            Self::Medium { source, bytes } | Self::Bulk { source, bytes, .. } => {
                bytes <= LONGEST && (bytes == 0 || !source.is_null())
            }
        }
    }

    /// The program's bytes.
    ///
    /// # Safety
    ///
    /// The body has no bytes, or they are readable at `source`, which is not NULL. Nobody writes
    /// them while the result is used.
    unsafe fn payload<'a>(self) -> &'a [u8] {
        match self {
            Self::Medium { source, bytes } | Self::Bulk { source, bytes, .. } if bytes > 0 => {
                // SAFETY: `bytes` is not 0, so `source` is not NULL, and the bytes there are
                // readable and do not change while the result is used, by the contract above.
                unsafe { std::slice::from_raw_parts(source.cast(), bytes) }
            }
            _ => &[],
        }
    }
}

const BAD: Refusal = Refusal::BadArg("more than 16 arguments, more bytes than the limit, or a NULL for bytes");

/// The program's arguments; none where there are too many.
///
/// # Safety
///
/// `start` is NULL, or `count` words are readable there and nobody writes them while the result is
/// used.
unsafe fn arguments<'a>(count: c_int, start: *const u32) -> Option<&'a [u32]> {
    let count = usize::try_from(count).ok().filter(|count| *count <= MOST_ARGUMENTS)?;
    match count {
        0 => Some(&[]),
        _ if start.is_null() => None,
        // SAFETY: not NULL, so `count` words are readable, and do not change while the result is
        // used, by the contract above.
        _ => Some(unsafe { std::slice::from_raw_parts(start, count) }),
    }
}

/// Sends a request.
///
/// # Safety
///
/// `start` is NULL, or `count` words are readable there. The source of the body is NULL, or its
/// bytes are readable there. Nobody writes them until the call returns.
pub(crate) unsafe fn request(
    endpoint: &'static Endpoint,
    (target, handler): (c_int, u8),
    body: Body,
    is_async: bool,
    (count, start): (c_int, *const u32),
) -> Answer {
    let engine = endpoint.bundle()?.0.enter()?;
    if handler == 0 {
        return Err(Refusal::BadArg("handler 0 takes what comes back; name another one"));
    }
    let target = usize::try_from(target).unwrap_or(usize::MAX);
    let entry = endpoint.translations.borrow().get(target)?.map(|record| record.peer);
    // SAFETY: NULL, or readable and unchanged until this call returns, by the contract above.
    let arguments = unsafe { arguments(count, start) };
    let message =
        |peer| Message { of: Of::Returned, handler, sort: body.sort(), arguments: arguments.unwrap_or_default(), peer };
    let Some(peer) = entry else {
        give_back(endpoint, Status::BadEntry, false, &message(None));
        return Err(Refusal::BadArg("the entry of the translation table is free; map it first"));
    };
    let Some(words) = arguments.filter(|_| body.is_right()) else {
        give_back(endpoint, Status::BadArgs, false, &message(peer));
        return Err(BAD);
    };
    let Some(peer) = peer else {
        give_back(endpoint, Status::BadEndpoint, false, &message(None));
        return Ok(());
    };
    drop(engine);
    // SAFETY: the bytes are readable and unchanged until this call returns, by the contract above;
    // `is_right` has refused NULL.
    let sent = unsafe { transmit(endpoint, peer, (handler, words), body, is_async) }?;
    if !sent {
        give_back(endpoint, Status::Congestion, false, &message(Some(peer)));
        return Ok(());
    }
    let sort = body.sort() as usize;
    endpoint.statistics.count(|stats| {
        stats.requests_sent[sort] += 1;
        stats.request_bytes[sort] += body.bytes() as u64;
    });
    Ok(())
}

/// Sends a request, and polls while there is no credit or no room. False: there was none for long.
///
/// # Safety
///
/// The body has no bytes, or they are readable at an address other than NULL. Nobody writes them
/// until the call returns.
#[inline]
pub(crate) unsafe fn transmit(
    endpoint: &'static Endpoint,
    peer: Peer,
    (handler, words): (u8, &[u32]),
    body: Body,
    is_async: bool,
) -> Result<bool, Refusal> {
    let (bundle, member) = endpoint.bundle()?;
    let mut engine = bundle.enter()?;
    // SAFETY: readable, not NULL and unchanged until this call returns, by the contract above.
    let payload = unsafe { body.payload() };
    let mut waited = Waited::new(bundle, ROOM);
    loop {
        let now = engine.get(member).ok_or(Refusal::BadArg("the endpoint is gone"))?.now();
        let sent = match body {
            Body::Short => now.request(peer, handler, words),
            Body::Medium { .. } => now.request_medium(peer, handler, words, payload),
            Body::Bulk { offset, .. } => now.request_bulk(peer, handler, words, payload, offset as u64),
            Body::Get { bytes, from, offset } => {
                let end = (offset as u64).saturating_add(bytes as u64);
                now.get_bulk(peer, handler, words, from as u64, offset as u64..end)
            }
        };
        match sent {
            Ok(()) => return Ok(true),
            Err(RequestError::WouldBlock) if is_async => {
                // So that a program which only tries again gets on.
                engine.poll().map_err(|_| FORKED)?;
                return Err(Refusal::NotSent("there is no credit or no room now; poll and try again"));
            }
            Err(RequestError::WouldBlock) => {
                let is_open = engine.get(member).is_some_and(|engine| engine.longest_in_place(peer).is_some());
                if waited.is_over(is_open) {
                    return Ok(false);
                }
                waited.pause(&mut engine)?;
            }
            Err(RequestError::BadRange) => return Err(Refusal::BadArg("the bytes do not lie within the own segment")),
            Err(RequestError::Unusable) => return Err(FORKED),
            Err(_) => return Err(BAD),
        }
    }
}

pub(crate) const FORKED: Refusal = Refusal::Resource("the endpoint belongs to the process that allocated it");

/// How long a request has waited for a credit, and whom it polls meanwhile.
pub(crate) struct Waited {
    bundle: &'static Bundle,
    others: Option<Vec<&'static Bundle>>,
    /// The longest sleep.
    limit: Duration,
    empty: u32,
    since: Option<Instant>,
}

impl Waited {
    pub(crate) fn new(bundle: &'static Bundle, limit: Duration) -> Self {
        Self { bundle, others: None, limit, empty: 0, since: None }
    }

    /// Whether nothing came for so long that the last pause was a sleep.
    pub(crate) fn has_slept(&self) -> bool {
        self.empty >= SPINS
    }

    /// Whether no credit has come for half of the send timeout. A target that does not answer a
    /// connect, or open requests, ends by the engine's own timers.
    fn is_over(&self, is_open: bool) -> bool {
        is_open && self.since.is_some_and(|since| since.elapsed() >= registry::timeout() / 2)
    }

    /// Polls once, and sleeps when that has been in vain for long.
    pub(crate) fn pause(&mut self, engine: &mut RefMut<'_, cci_am::Bundle<State>>) -> Answer {
        let mut found = engine.poll().map_err(|_| FORKED)?;
        self.since.get_or_insert_with(Instant::now);
        let others = self.others.get_or_insert_with(|| {
            let own = std::thread::current().id();
            let is_other = |other: &&'static Bundle| {
                !std::ptr::eq(*other, self.bundle) && other.is_live() && other.owner.get() == Some(own)
            };
            registry::bundles().into_iter().filter(is_other).collect()
        });
        for other in others.iter().filter(|other| other.is_live()) {
            if let Ok(mut other) = other.enter() {
                found += other.poll().map_err(|_| FORKED)?;
            }
        }
        self.empty = if found == 0 { self.empty + 1 } else { 0 };
        if self.empty >= SPINS {
            let limit = if others.is_empty() { self.limit } else { NAP };
            engine.wait(Some(limit)).map_err(|_| FORKED)?;
            leave_if_asked();
        }
        Ok(())
    }
}

/// Sends a reply.
///
/// # Safety
///
/// `start` is NULL, or `count` words are readable there. The source of the body is NULL, or its
/// bytes are readable there. Nobody writes them until the call returns.
pub(crate) unsafe fn reply(token: &Token, handler: u8, body: Body, (count, start): (c_int, *const u32)) -> Answer {
    if token.of() != Of::Request {
        return Err(Refusal::Resource("only a handler of requests may reply"));
    }
    if handler == 0 {
        return Err(Refusal::BadArg("handler 0 takes what comes back; name another one"));
    }
    // SAFETY: NULL, or readable and unchanged until this call returns, by the contract above.
    let words = unsafe { arguments(count, start) }.filter(|_| body.is_right()).ok_or(BAD)?;
    // SAFETY: the bytes are readable and unchanged until this call returns, by the contract above;
    // `is_right` has refused NULL.
    let payload = unsafe { body.payload() };
    let request = token.request.take().ok_or(Refusal::Resource("the request has been replied to already"))?;
    let sent = match body {
        Body::Short => request.reply(handler, words),
        Body::Medium { .. } => request.reply_medium(handler, words, payload),
        Body::Bulk { offset, .. } => request.reply_bulk(handler, words, payload, offset as u64),
        Body::Get { .. } => return Err(BAD),
    };
    sent.map_err(|_| Refusal::NotSent("the requester has no segment there; the request ends without a reply"))?;
    if let Some(endpoint) = token.endpoint.get() {
        let sort = body.sort() as usize;
        endpoint.statistics.count(|stats| {
            stats.replies_sent[sort] += 1;
            stats.reply_bytes[sort] += body.bytes() as u64;
        });
    }
    Ok(())
}
