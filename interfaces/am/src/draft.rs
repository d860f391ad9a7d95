//! Requests that are written in place.

use crate::cci_mapping::CciMapping;
use crate::engine::{Attempt, Context, Patience, Turn};
use crate::errors::{RequestError, Status};
use crate::mapping::{Mapping, Refused, Room};
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
        let reserved = turn.when_ready(peer, Patience::Polls, true, |turn, channel, most| {
            let fits = len <= turn.core.longest_in_place(most);
            fits.then(|| turn.mapping.reserve(channel, HEAD + len)).transpose()
        })?;
        let place = match reserved {
            Attempt::Sent(Some(room)) => Place::Room(room),
            Attempt::Local if len <= turn.core.options.longest_medium => Place::Bytes(vec![0; len]),
            Attempt::Closed(status) => Place::Nowhere(status),
            Attempt::Sent(None) | Attempt::Local => return Err(RequestError::TooLong),
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
    room: impl Room,
) -> Result<(), RequestError> {
    let context = Context::Target(peer).pack();
    let mut room = Some(room);
    let sent = turn.when_ready(peer, Patience::Polls, true, |turn, _, _| {
        let (id, _) = turn.core.records.next().ok_or(Refused::NoRoom)?;
        let mut message = room.take().ok_or(Refused::Gone)?;
        head.set_id(id);
        let is_written = message.write_at(0, head.bytes());
        debug_assert!(is_written, "a room begins with its head");
        message.send(context).map_err(|(why, unsent)| {
            room = Some(unsent);
            why
        })?;
        turn.begun(peer.index(), Of::Request, &head);
        Ok(())
    })?;
    match sent {
        Attempt::Sent(()) => {}
        Attempt::Local => turn.give_back(peer, &head, Status::Unreachable),
        Attempt::Closed(status) => turn.give_back(peer, &head, status),
    }
    Ok(())
}

impl<S, M: Mapping> fmt::Debug for Draft<'_, S, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Draft({} bytes)", self.len)
    }
}
