//! Connections: made, reported about, closed.

use cci_proto::{CONN_REQ_LEN, ConnectError, OptionError, PauseError};
use cci_transport::{Connect, Connection, ConnectionReport, ConnectionState, Endpoint};

/// Asks for a connection.
///
/// # Errors
///
/// Refused at once: no event comes.
pub fn connect(endpoint: &Endpoint, connect: &Connect<'_>) -> Result<(), ConnectError> {
    cci_transport::log_event!(debug, uri = connect.uri, "connecting");
    if connect.payload.len() > CONN_REQ_LEN {
        return Err(ConnectError::PayloadTooLong);
    }
    let connected = endpoint.with(|core, transport| transport.connect(core, connect))?;
    connected.inspect_err(|_error| {
        cci_transport::log_event!(debug, reason = %_error, "connect refused");
    })
}

/// Closes a connection: local and immediate.
///
/// # Errors
///
/// Closed already, or the endpoint cannot be used here.
pub fn disconnect(endpoint: &Endpoint, live: impl Fn() -> Option<&'static Connection>) -> Result<(), OptionError> {
    endpoint.with(|core, transport| {
        let connection = live().ok_or(OptionError::Disconnected)?;
        transport.disconnect(core, connection);
        Ok(())
    })?
}

/// Returns path, window and counters of a connection.
///
/// # Errors
///
/// The connection is closed, or the endpoint cannot be used here.
pub fn report(
    endpoint: &Endpoint,
    live: impl FnOnce() -> Option<&'static Connection>,
) -> Result<ConnectionReport, OptionError> {
    endpoint.with(|core, transport| {
        let connection = live().ok_or(OptionError::Disconnected)?;
        Ok(transport.report(core, connection))
    })?
}

/// Stops the delivery of a connection's messages.
///
/// # Errors
///
/// Not open, not reliable, not offered, or the endpoint cannot be used here.
pub fn pause(endpoint: &Endpoint, live: impl Fn() -> Option<&'static Connection>) -> Result<(), PauseError> {
    endpoint.with(|core, transport| {
        let connection = pausable(live())?;
        transport.pause(core, connection)
    })?
}

/// Delivers the messages of a paused connection again.
///
/// # Errors
///
/// As [`pause`].
pub fn resume(endpoint: &Endpoint, live: impl Fn() -> Option<&'static Connection>) -> Result<(), PauseError> {
    endpoint.with(|core, transport| {
        let connection = pausable(live())?;
        transport.resume(core, connection)
    })?
}

fn pausable(live: Option<&'static Connection>) -> Result<&'static Connection, PauseError> {
    let connection = live.filter(|connection| connection.state() == ConnectionState::Open);
    let connection = connection.ok_or(PauseError::Disconnected)?;
    if connection.attribute().is_reliable() { Ok(connection) } else { Err(PauseError::Unreliable) }
}
