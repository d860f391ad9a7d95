//! The forms of a request, which poll or return.

use crate::cci_mapping::CciMapping;
use crate::endpoint::Endpoint;
use crate::engine::{Bulk, Patience, Turn};
use crate::errors::RequestError;
use crate::mapping::Mapping;
use crate::peers::Peer;
use std::fmt;
use std::ops::Range;

/// Declares the forms of a request for a type: a sentence about what they wait for, the receiver,
/// the turn that this has, and whether it polls.
macro_rules! requests {
    ($(#[$waits:meta])+ $type:ty, ($($receiver:tt)+) $turn:expr, $patience:expr) => {
        impl<S, M: Mapping> $type {
            /// Sends a request with arguments, at most 16.
            $(#[$waits])+
            ///
            /// # Errors
            ///
            /// Refused: nothing was sent. From a request that was not refused follows one end: a
            /// reply, a return, or nothing more than that [`Endpoint::outstanding`] counts it no
            /// longer.
            #[inline]
            pub fn request($($receiver)+, to: Peer, at: u8, arguments: &[u32]) -> Result<(), RequestError> {
                $turn.send_request(to, (at, arguments), None, $patience)
            }

            /// Sends a request with arguments and bytes, which are the caller's again on return. Of
            /// a payload that is cut, parts may leave by later polls.
            $(#[$waits])+
            ///
            /// # Errors
            ///
            /// As [`Endpoint::request`], or longer than [`Endpoint::longest_medium`].
            #[inline]
            pub fn request_medium(
                $($receiver)+,
                to: Peer,
                at: u8,
                arguments: &[u32],
                bytes: &[u8],
            ) -> Result<(), RequestError> {
                $turn.send_request(to, (at, arguments), Some(bytes), $patience)
            }

            /// Sends a request with bytes that lie in the target's segment, at `offset`, before its
            /// handler runs. They are copied, and the caller's again on return.
            $(#[$waits])+
            ///
            /// # Errors
            ///
            /// As [`Endpoint::request`], or longer than [`Endpoint::longest_bulk`].
            pub fn request_bulk(
                $($receiver)+,
                to: Peer,
                at: u8,
                arguments: &[u32],
                bytes: &[u8],
                offset: u64,
            ) -> Result<(), RequestError> {
                $turn.send_bulk_request(to, (at, arguments), &Bulk::Bytes(bytes), offset, $patience)
            }

            /// As [`Endpoint::request_bulk`], with bytes of this endpoint's segment, of any length.
            /// They are not copied here: what the program changes before the request has ended, the
            /// target may see.
            $(#[$waits])+
            ///
            /// # Errors
            ///
            /// As [`Endpoint::request`], or the range is empty or not within the segment.
            pub fn request_bulk_from(
                $($receiver)+,
                to: Peer,
                at: u8,
                arguments: &[u32],
                from: Range<u64>,
                offset: u64,
            ) -> Result<(), RequestError> {
                $turn.send_bulk_request(to, (at, arguments), &Bulk::Own(from), offset, $patience)
            }

            /// Reads from the target's segment, at `from`, into this endpoint's own. When the bytes
            /// are there the reply handler `at` runs here. No handler runs at the target.
            $(#[$waits])+
            ///
            /// # Errors
            ///
            /// As [`Endpoint::request_bulk_from`].
            pub fn get_bulk(
                $($receiver)+,
                to: Peer,
                at: u8,
                arguments: &[u32],
                from: u64,
                into: Range<u64>,
            ) -> Result<(), RequestError> {
                $turn.send_get(to, (at, arguments), from, &into, $patience)
            }
        }
    };
}

requests! {
    /// Polls while there is no credit or no room.
    Endpoint<S, M>, (&mut self) self.turn(), Patience::Polls
}

impl<S, M: Mapping> Endpoint<S, M> {
    /// The same requests, which return [`RequestError::WouldBlock`] in place of polling. Then
    /// nothing was sent; poll before the next attempt.
    pub fn now(&mut self) -> Immediate<'_, S, M> {
        Immediate { turn: self.turn() }
    }
}

/// Requests that return instead of polling: [`Endpoint::now`] makes it.
///
/// # Example
///
/// ```
/// use cci_am::{Endpoint, Peer, RequestError};
///
/// /// Sends, or does other work and sends later.
/// fn try_to_send<S>(endpoint: &mut Endpoint<S>, to: Peer) -> Result<bool, RequestError> {
///     match endpoint.now().request(to, 1, &[]) {
///         Err(RequestError::WouldBlock) => Ok(false),
///         sent => sent.map(|()| true),
///     }
/// }
/// ```
pub struct Immediate<'e, S, M: Mapping = CciMapping> {
    turn: Turn<'e, S, M>,
}

requests! {
    /// [`RequestError::WouldBlock`] while there is no credit or no room: nothing was sent.
    Immediate<'_, S, M>, (mut self) self.turn, Patience::Immediate
}

impl<S, M: Mapping> fmt::Debug for Immediate<'_, S, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Immediate({})", self.turn.mapping.name())
    }
}
