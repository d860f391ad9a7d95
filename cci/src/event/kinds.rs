//! Events without a payload, one type each.

use super::held::{Held, failure};
use crate::connection::Connection;
use cci_proto::Failure;
use std::fmt;

/// Declares events that are about an open connection.
macro_rules! about_a_connection {
    ($($(#[$meta:meta])* $name:ident)+) => {
        $(
            $(#[$meta])*
            #[derive(Debug)]
            pub struct $name<'e>(pub(super) Held<'e>);

            impl $name<'_> {
                /// Returns the connection.
                #[inline]
                #[must_use]
                pub fn connection(&self) -> Option<Connection> {
                    self.0.connection()
                }
            }
        )+
    };
}

about_a_connection! {
    /// A send or an RMA that has ended: see [`crate::Event::Completed`].
    ///
    /// # Example
    ///
    /// ```
    /// fn ended(operation: &cci::Completed<'_>) {
    ///     match operation.outcome() {
    ///         Ok(()) => println!("{} is done", operation.context()),
    ///         Err(why) => println!("{} failed: {why}", operation.context()),
    ///     }
    /// }
    /// ```
    Completed
    /// A connect that has succeeded: see [`crate::Event::Connected`].
    ///
    /// # Example
    ///
    /// ```
    /// fn greet(endpoint: &cci::Endpoint, connected: &cci::Connected<'_>) -> Result<(), cci::SendError> {
    ///     connected.connection().map_or(Ok(()), |connection| endpoint.send(connection, b"hello", 0))
    /// }
    /// ```
    Connected
    /// An accepted connection that is open: see [`crate::Event::Accepted`].
    ///
    /// # Example
    ///
    /// ```
    /// fn client_of(accepted: &cci::Accepted<'_>) -> (u64, Option<cci::Connection>) {
    ///     (accepted.context(), accepted.connection())
    /// }
    /// ```
    Accepted
    /// A peer that was silent for the keepalive time: see [`crate::Event::Keepalive`]. The
    /// connection stays as it is.
    ///
    /// # Example
    ///
    /// ```
    /// fn give_up(endpoint: &cci::Endpoint, silent: &cci::Keepalive<'_>) -> Result<(), cci::OptionError> {
    ///     silent.connection().map_or(Ok(()), |connection| endpoint.disconnect(connection))
    /// }
    /// ```
    Keepalive
    /// A peer that has disconnected or died: see [`crate::Event::Disconnected`]. The program
    /// disconnects its side, too.
    ///
    /// # Example
    ///
    /// ```
    /// fn clean_up(endpoint: &cci::Endpoint, gone: &cci::Disconnected<'_>) -> Result<(), cci::OptionError> {
    ///     gone.connection().map_or(Ok(()), |connection| endpoint.disconnect(connection))
    /// }
    /// ```
    Disconnected
    /// Memory of the peer that was imported by this connection, whose registration has ended: see
    /// [`crate::Event::ImportEnded`]. [`crate::Import::is_current`] tells which import it is.
    ///
    /// # Example
    ///
    /// ```
    /// fn let_go(imports: &mut Vec<cci::Import>, _: &cci::ImportEnded<'_>) {
    ///     imports.retain(cci::Import::is_current);
    /// }
    /// ```
    ImportEnded
}

impl Completed<'_> {
    /// Returns the context that the operation was started with.
    #[inline]
    #[must_use]
    pub fn context(&self) -> u64 {
        self.0.slot.words()[1]
    }

    /// Returns how the operation ended.
    ///
    /// # Errors
    ///
    /// It failed: a message may have been delivered all the same, and part of an RMA may have been
    /// copied.
    #[inline]
    pub fn outcome(&self) -> Result<(), Failure> {
        self.0.outcome()
    }
}

/// A connect that has failed: see [`crate::Event::ConnectFailed`]. Its text is the reason, or the
/// failure where no more is known.
///
/// # Example
///
/// ```
/// fn error(connect: &cci::ConnectFailed<'_>) -> Box<dyn std::error::Error> {
///     format!("connect {} failed: {connect}", connect.context()).into()
/// }
/// ```
#[derive(Debug)]
pub struct ConnectFailed<'e>(pub(super) Held<'e>);

impl ConnectFailed<'_> {
    /// Returns why the connect failed, as a sentence: that of the failure where no more is known.
    /// `None`: the endpoint is closed.
    #[must_use]
    pub fn reason(&self) -> Option<String> {
        crate::binding::reason(self.0.slot)
    }
}

impl fmt::Display for ConnectFailed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason() {
            Some(reason) => f.write_str(&reason),
            None => self.failure().fmt(f),
        }
    }
}

/// An accepted connection that did not open: see [`crate::Event::AcceptFailed`].
///
/// # Example
///
/// ```
/// fn sentence(accept: &cci::AcceptFailed<'_>) -> String {
///     format!("client {} has not come: {}", accept.context(), accept.failure())
/// }
/// ```
#[derive(Debug)]
pub struct AcceptFailed<'e>(pub(super) Held<'e>);

/// Gives events at the end of a handshake the context of the program's call.
macro_rules! ends_a_handshake {
    ($($(#[$doc:meta])+ $name:ident)+) => {
        $(
            impl $name<'_> {
                $(#[$doc])+
                #[must_use]
                pub fn context(&self) -> u64 {
                    self.0.slot.words()[0]
                }
            }
        )+
    };
}

ends_a_handshake! {
    /// Returns the context that the connect was started with.
    Connected
    /// Returns the context that the connect was started with.
    ConnectFailed
    /// Returns the context that the request was accepted with.
    Accepted
    /// Returns the context that the request was accepted with.
    AcceptFailed
}

/// Gives events of a handshake that has failed the failure.
macro_rules! is_a_failure {
    ($($(#[$doc:meta])+ $name:ident)+) => {
        $(
            impl $name<'_> {
                $(#[$doc])+
                #[must_use]
                pub fn failure(&self) -> Failure {
                    failure(self.0.slot.detail())
                }
            }
        )+
    };
}

is_a_failure! {
    /// Returns why the connect failed.
    ConnectFailed
    /// Returns why the connection did not open.
    AcceptFailed
}

/// The failure of an endpoint's device: see [`crate::Event::EndpointFailed`].
///
/// # Example
///
/// ```
/// use cci::Event;
///
/// fn is_fatal(event: &Event<'_>) -> bool {
///     matches!(event, Event::EndpointFailed(_))
/// }
/// ```
#[derive(Debug)]
pub struct EndpointFailed<'e>(pub(super) Held<'e>);
