//! Options of endpoints and connections.

use crate::connection::Connection;
use crate::endpoint::Endpoint;
use cci_mem::sync::Ordering;
use cci_proto::{Alignment, ConnectionOption, OptionError};

impl Endpoint {
    /// Default send timeout of connections made from now on, microseconds; 0 = none.
    ///
    /// # Errors
    ///
    /// The endpoint cannot be used here.
    pub fn set_send_timeout(&self, micros: u32) -> Result<(), OptionError> {
        self.cell.with(|core, _| core.send_timeout = micros)?;
        Ok(())
    }

    /// As set by [`Endpoint::set_send_timeout`].
    ///
    /// # Errors
    ///
    /// The endpoint cannot be used here.
    pub fn send_timeout(&self) -> Result<u32, OptionError> {
        Ok(self.cell.with(|core, _| core.send_timeout)?)
    }

    /// Default keepalive timeout of connections made from now on, microseconds; 0 = none.
    ///
    /// # Errors
    ///
    /// The endpoint cannot be used here.
    pub fn set_keepalive(&self, micros: u32) -> Result<(), OptionError> {
        self.cell.with(|core, _| core.keepalive = micros)?;
        Ok(())
    }

    /// As set by [`Endpoint::set_keepalive`].
    ///
    /// # Errors
    ///
    /// The endpoint cannot be used here.
    pub fn keepalive(&self) -> Result<u32, OptionError> {
        Ok(self.cell.with(|core, _| core.keepalive)?)
    }

    /// Number of receive buffers in use by this endpoint, at most the number it was opened with.
    ///
    /// # Errors
    ///
    /// 0, or more than the endpoint was opened with.
    pub fn set_recv_buffers(&self, count: u32) -> Result<(), OptionError> {
        self.cell.with(|core, _| {
            let wanted = in_range(count, core.recv_count().1)?;
            core.set_recv_count(wanted);
            Ok(())
        })?
    }

    /// Number of receive buffers.
    ///
    /// # Errors
    ///
    /// The endpoint cannot be used here.
    pub fn recv_buffers(&self) -> Result<u32, OptionError> {
        Ok(self.cell.with(|core, _| as_u32(core.recv_count().0))?)
    }

    /// Number of send buffers in use by this endpoint, at most the number it was opened with.
    ///
    /// # Errors
    ///
    /// 0, or more than the endpoint was opened with.
    pub fn set_send_buffers(&self, count: u32) -> Result<(), OptionError> {
        self.cell.with(|core, _| {
            let wanted = in_range(count, core.send_count().1)?;
            core.set_send_count(wanted);
            Ok(())
        })?
    }

    /// Number of send buffers.
    ///
    /// # Errors
    ///
    /// The endpoint cannot be used here.
    pub fn send_buffers(&self) -> Result<u32, OptionError> {
        Ok(self.cell.with(|core, _| as_u32(core.send_count().0))?)
    }

    /// Alignment that RMA needs.
    ///
    /// # Errors
    ///
    /// The endpoint cannot be used here.
    pub fn alignment(&self) -> Result<Alignment, OptionError> {
        Ok(self.cell.with(|_, transport| transport.alignment())?)
    }

    /// Sets an option of a connection, microseconds; 0 = none.
    ///
    /// # Errors
    ///
    /// The connection is closed, or the endpoint cannot be used here.
    pub fn set_option(&self, connection: Connection, option: ConnectionOption, micros: u32) -> Result<(), OptionError> {
        self.cell.with(|core, transport| {
            let cell = connection.live(self.cell).ok_or(OptionError::Disconnected)?;
            field(cell, option).store(micros, Ordering::Relaxed);
            transport.options_changed(core);
            Ok(())
        })?
    }

    /// An option of a connection, microseconds; 0 = none.
    ///
    /// # Errors
    ///
    /// The connection is closed, or the endpoint cannot be used here.
    pub fn option(&self, connection: Connection, option: ConnectionOption) -> Result<u32, OptionError> {
        self.cell.with(|_, _| {
            let cell = connection.live(self.cell).ok_or(OptionError::Disconnected)?;
            Ok(field(cell, option).load(Ordering::Relaxed))
        })?
    }
}

fn field(cell: &cci_transport::Connection, option: ConnectionOption) -> &cci_mem::sync::AtomicU32 {
    match option {
        ConnectionOption::SendTimeout => &cell.send_timeout,
        ConnectionOption::KeepaliveTimeout => &cell.keepalive,
    }
}

fn in_range(count: u32, most: usize) -> Result<usize, OptionError> {
    let count = count as usize;
    if count == 0 || count > most { Err(OptionError::Range) } else { Ok(count) }
}

fn as_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
