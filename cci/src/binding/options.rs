//! Options of endpoints and connections, as numbers.

use crate::option_names::{ConnectionOption, EndpointOption};
use cci_mem::sync::{AtomicU32, Ordering};
use cci_proto::{Alignment, OptionError, Unusable};
use cci_transport::{Connection, Endpoint, Timeout};

/// What an option of an endpoint contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionValue {
    /// Microseconds, or a number of buffers.
    Number(u32),
    /// The URI.
    Uri(String),
    /// The alignment that RMA needs.
    Alignment(Alignment),
}

/// Sets an option of an endpoint. `value` is called with the lock held, and only for an option that
/// can be set.
///
/// # Errors
///
/// The option can only be read, the number is out of range, or the endpoint cannot be used here.
pub fn set_endpoint_option(
    endpoint: &Endpoint,
    option: EndpointOption,
    value: impl FnOnce() -> u32,
) -> Result<(), OptionError> {
    endpoint.with(|core, _| {
        match option {
            EndpointOption::SendTimeout => core.set_send_timeout(Timeout::from_micros(value())),
            EndpointOption::KeepaliveTimeout => core.set_keepalive(Timeout::from_micros(value())),
            EndpointOption::RecvBufCount => core.set_recv_count(value())?,
            EndpointOption::SendBufCount => core.set_send_count(value())?,
            EndpointOption::Uri | EndpointOption::RmaAlign => return Err(OptionError::ReadOnly),
        }
        Ok(())
    })?
}

/// Returns an option of an endpoint.
///
/// # Errors
///
/// The endpoint cannot be used here.
pub fn endpoint_option(endpoint: &Endpoint, option: EndpointOption) -> Result<OptionValue, Unusable> {
    let count = |count: usize| OptionValue::Number(u32::try_from(count).unwrap_or(u32::MAX));
    endpoint.with(|core, transport| match option {
        EndpointOption::SendTimeout => OptionValue::Number(core.send_timeout().micros()),
        EndpointOption::KeepaliveTimeout => OptionValue::Number(core.keepalive().micros()),
        EndpointOption::RecvBufCount => count(core.recv_limit()),
        EndpointOption::SendBufCount => count(core.send_count().0),
        EndpointOption::Uri => OptionValue::Uri(transport.uri().to_owned()),
        EndpointOption::RmaAlign => OptionValue::Alignment(transport.alignment()),
    })
}

/// Sets an option of a connection.
///
/// # Errors
///
/// The connection is closed, or the endpoint cannot be used here.
pub fn set_connection_option(
    endpoint: &Endpoint,
    live: impl FnOnce() -> Option<&'static Connection>,
    option: ConnectionOption,
    timeout: Timeout,
) -> Result<(), OptionError> {
    endpoint.with(|core, transport| {
        let connection = live().ok_or(OptionError::Disconnected)?;
        field(connection, option).store(timeout.micros(), Ordering::Relaxed);
        transport.options_changed(core, connection);
        Ok(())
    })?
}

/// Returns an option of a connection.
///
/// # Errors
///
/// The connection is closed, or the endpoint cannot be used here.
pub fn connection_option(
    endpoint: &Endpoint,
    live: impl FnOnce() -> Option<&'static Connection>,
    option: ConnectionOption,
) -> Result<Timeout, OptionError> {
    endpoint.with(|_, _| {
        let connection = live().ok_or(OptionError::Disconnected)?;
        Ok(Timeout::from_micros(field(connection, option).load(Ordering::Relaxed)))
    })?
}

fn field(connection: &Connection, option: ConnectionOption) -> &AtomicU32 {
    match option {
        ConnectionOption::SendTimeout => &connection.send_timeout,
        ConnectionOption::KeepaliveTimeout => &connection.keepalive,
    }
}
