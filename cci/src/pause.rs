//! Pausing a connection: its peer's messages wait at the peer.

use crate::binding;
use crate::connection::Connection;
use crate::endpoint::EndpointFor;
use cci_proto::PauseError;

impl<T> EndpointFor<T> {
    /// Stops the delivery of a connection's messages until [`EndpointFor::resume`]: its peer keeps
    /// them, and waits as for a receiver without buffers. Other peers go on. For a program that
    /// falls behind one peer and does not want that peer's messages to take the receive buffers of
    /// the others. Never blocks. A second call changes nothing.
    ///
    /// - Nothing is lost, and the order stays. Messages that have reached this endpoint are still
    ///   delivered: those that wait as events, and a bounded number behind them.
    /// - This side's sends and RMA go on. What the peer begins behind a message that waits, its RMA
    ///   too, may wait with it.
    /// - Other connections of the same two endpoints wait as well where they share a lane: on `tcp`
    ///   their messages from that peer, on `sm` everything from that peer. There, answers that this
    ///   side awaits (RMA that the peer relays, large messages, connects) are among it. Elsewhere
    ///   only this connection waits.
    /// - The death of the peer, and the close of its endpoint, end the connection as ever. On `sm`
    ///   a peer that disconnects, and goes on with its endpoint, is reported after the resume.
    /// - The peer's send timeout and keepalive run on. Its late sends fail with
    ///   [`crate::Failure::NotReady`] or [`crate::Failure::TimedOut`].
    /// - The pause ends with the connection.
    ///
    /// Any thread that may use the endpoint may pause and resume.
    ///
    /// # Errors
    ///
    /// The connection is not open or not reliable, the transport does not offer it, or the endpoint
    /// cannot be used here. Nothing has changed.
    ///
    /// # Example
    ///
    /// ```
    /// use cci::{Connection, Endpoint, PauseError};
    ///
    /// const MOST: usize = 1000;
    ///
    /// /// Lets a peer wait while a thousand of its messages are unread.
    /// fn balance(endpoint: &Endpoint, peer: Connection, unread: usize) -> Result<(), PauseError> {
    ///     if unread >= MOST { endpoint.pause(peer) } else { endpoint.resume(peer) }
    /// }
    /// ```
    pub fn pause(&self, connection: Connection) -> Result<(), PauseError> {
        binding::pause(self.cell, || connection.live(self.cell))
    }

    /// Delivers the messages of a paused connection again, in order: those that are here with the
    /// next call that gets events, and the peer sends the others. Never blocks. Changes nothing for
    /// a connection that is not paused.
    ///
    /// # Errors
    ///
    /// As [`EndpointFor::pause`].
    ///
    /// # Example
    ///
    /// ```
    /// use cci::{Connection, Endpoint, PauseError};
    ///
    /// fn go_on(endpoint: &Endpoint, peers: &[Connection]) -> Result<(), PauseError> {
    ///     peers.iter().try_for_each(|peer| endpoint.resume(*peer))
    /// }
    /// ```
    pub fn resume(&self, connection: Connection) -> Result<(), PauseError> {
        binding::resume(self.cell, || connection.live(self.cell))
    }
}
