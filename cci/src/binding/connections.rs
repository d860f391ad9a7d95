//! Connections: made, reported about, closed.

use cci_proto::{CONN_REQ_LEN, ConnectError, OptionError};
use cci_transport::{Connect, Connection, ConnectionReport, Endpoint};

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
