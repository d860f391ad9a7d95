//! Requests that are written in place.

use crate::engine::{Context, Patience, Ready, Turn, Waited};
use crate::errors::{RequestError, Status};
use crate::mapping::{CciMapping, Mapping, Refused, Room};
use crate::peers::Peer;
use crate::records::Of;
use crate::wire::{HEAD, Head, Kind, MAX_ARGUMENTS};
use std::fmt;

/// A request whose payload is being written: [`crate::Endpoint::prepare`] makes it,
/// [`Draft::commit`] sends it, and a drop gives it up.
///
/// # Example
///
/// ```
/// use cci_am::{Endpoint, Peer, RequestError};
///
/// fn send_squares<S>(endpoint: &mut Endpoint<S>, to: Peer) -> Result<(), RequestError> {
///     let mut draft = endpoint.prepare(to, 1, &[], 4 * 100)?;
///     for number in 0..100u32 {
///         assert!(draft.write_at(4 * number as usize, &(number * number).to_le_bytes()));
///     }
///     draft.commit()
/// }
/// ```
#[must_use = "dropping it gives it up"]
pub struct Draft<'e, S, M: Mapping = CciMapping> {
    turn: Turn<'e, S, M>,
    peer: Peer,
    head: Head,
    len: usize,
    place: Place<M::Room<'e>>,
}

/// Where the payload is written.
enum Place<R> {
    Room(R),
    /// For this endpoint itself.
    Bytes(Vec<u8>),
    /// Nowhere: the request comes back.
    Nowhere(Status),
}

impl<'e, S, M: Mapping> Draft<'e, S, M> {
    pub(crate) fn new(
        mut turn: Turn<'e, S, M>,
        peer: Peer,
        (at, arguments): (u8, &[u32]),
        len: usize,
    ) -> Result<Self, RequestError> {
        if arguments.len() > MAX_ARGUMENTS {
            return Err(RequestError::TooManyArguments);
        }
        let longest = turn.core.options.longest_medium;
        let mut waited = Waited::default();
        let place = loop {
            match turn.ready(peer, Patience::Polls, &mut waited, true)? {
                Ready::Open(_, most) if len > longest.min(most.saturating_sub(HEAD)) => {
                    return Err(RequestError::TooLong);
                }
                Ready::Open(channel, _) => match turn.mapping.reserve(channel, HEAD + len) {
                    Ok(room) => break Place::Room(room),
                    Err(Refused::NoRoom) => turn.pause(Patience::Polls, &mut waited)?,
                    Err(Refused::Gone) => turn.break_target(peer.index),
                },
                Ready::Local if len > longest => return Err(RequestError::TooLong),
                Ready::Local => break Place::Bytes(vec![0; len]),
                Ready::Closed(status) => break Place::Nowhere(status),
            }
        };
        Ok(Self { turn, peer, head: Head::new(Kind::RequestMedium, at, 0, arguments), len, place })
    }

    /// Writes bytes of the payload. False, and nothing is written, when they do not fit as a whole.
    /// Bytes that were never written are those of an earlier message of this endpoint.
    #[must_use]
    pub fn write_at(&mut self, offset: usize, bytes: &[u8]) -> bool {
        let Some(end) = offset.checked_add(bytes.len()).filter(|end| *end <= self.len) else { return false };
        match &mut self.place {
            Place::Room(room) => room.write_at(self.head.bytes().len() + offset, bytes),
            Place::Bytes(payload) => {
                payload[offset..end].copy_from_slice(bytes);
                true
            }
            Place::Nowhere(_) => true,
        }
    }

    /// Sends the request, with a payload up to the last byte that was written. Polls while there is
    /// no room.
    ///
    /// # Errors
    ///
    /// As [`crate::Endpoint::request`].
    pub fn commit(self) -> Result<(), RequestError> {
        let Self { mut turn, peer, head, place, .. } = self;
        match place {
            Place::Room(room) => send(&mut turn, peer, head, room),
            Place::Bytes(bytes) => {
                let (mut arguments, at) = ([0; MAX_ARGUMENTS], head.handler());
                let count = head.arguments(&mut arguments);
                turn.run_local(peer, (at, &arguments[..count]), Some(&bytes));
                Ok(())
            }
            Place::Nowhere(status) => {
                turn.give_back(peer, &head, status);
                Ok(())
            }
        }
    }
}

fn send<S, M: Mapping>(
    turn: &mut Turn<'_, S, M>,
    peer: Peer,
    mut head: Head,
    mut room: impl Room,
) -> Result<(), RequestError> {
    let mut waited = Waited::default();
    let context = Context::Target(peer.index, peer.generation).pack();
    loop {
        match turn.ready(peer, Patience::Polls, &mut waited, true)? {
            Ready::Open(..) => {}
            Ready::Local | Ready::Closed(_) => {
                turn.give_back(peer, &head, Status::Unreachable);
                return Ok(());
            }
        }
        if let Some((id, _)) = turn.core.records.next() {
            head.set_id(id);
            let is_written = room.write_at(0, head.bytes());
            debug_assert!(is_written, "a room begins with its head");
            match room.send(context) {
                Ok(()) => {
                    turn.begun(peer.index, Of::Request, &head);
                    return Ok(());
                }
                Err((why, unsent)) => {
                    room = unsent;
                    if why == Refused::Gone {
                        turn.break_target(peer.index);
                    }
                }
            }
        }
        turn.pause(Patience::Polls, &mut waited)?;
    }
}

impl<S, M: Mapping> fmt::Debug for Draft<'_, S, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Draft({} bytes)", self.len)
    }
}
