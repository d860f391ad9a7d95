//! Options of endpoints and connections.

use crate::binding;
use crate::connection::Connection;
use crate::endpoint::EndpointFor;
use crate::option_names::ConnectionOption;
use cci_proto::{Alignment, OptionError};
use cci_transport::Timeout;
use std::time::Duration;

impl<T> EndpointFor<T> {
    /// Sets the send timeout of connections made from now on; `None`: none. Fractions of a
    /// microsecond count as one.
    ///
    /// # Errors
    ///
    /// Zero, or more than 71 minutes; or the endpoint cannot be used here.
    pub fn set_send_timeout(&self, timeout: impl Into<Option<Duration>>) -> Result<(), OptionError> {
        let timeout = Timeout::new(timeout.into())?;
        self.cell.with(|core, _| core.set_send_timeout(timeout))?;
        Ok(())
    }

    /// Returns what [`EndpointFor::set_send_timeout`] has set.
    ///
    /// # Errors
    ///
    /// The endpoint cannot be used here.
    pub fn send_timeout(&self) -> Result<Option<Duration>, OptionError> {
        Ok(self.cell.with(|core, _| core.send_timeout())?.duration())
    }

    /// Sets the keepalive timeout of connections made from now on: the silence of the peer that an
    /// event reports; `None`: none. Fractions of a microsecond count as one.
    ///
    /// # Errors
    ///
    /// As [`EndpointFor::set_send_timeout`].
    pub fn set_keepalive(&self, timeout: impl Into<Option<Duration>>) -> Result<(), OptionError> {
        let timeout = Timeout::new(timeout.into())?;
        self.cell.with(|core, _| core.set_keepalive(timeout))?;
        Ok(())
    }

    /// Returns what [`EndpointFor::set_keepalive`] has set.
    ///
    /// # Errors
    ///
    /// The endpoint cannot be used here.
    pub fn keepalive(&self) -> Result<Option<Duration>, OptionError> {
        Ok(self.cell.with(|core, _| core.keepalive())?.duration())
    }

    /// Sets the number of receive buffers in use by this endpoint, at most the number that it was
    /// opened with.
    ///
    /// # Errors
    ///
    /// 0, or more than the endpoint was opened with.
    pub fn set_recv_buffers(&self, count: u32) -> Result<(), OptionError> {
        self.cell.with(|core, _| core.set_recv_count(count))?
    }

    /// Returns the number of receive buffers.
    ///
    /// # Errors
    ///
    /// The endpoint cannot be used here.
    pub fn recv_buffers(&self) -> Result<u32, OptionError> {
        Ok(self.cell.with(|core, _| as_u32(core.recv_limit()))?)
    }

    /// Sets the number of send buffers in use by this endpoint, at most the number that it was
    /// opened with.
    ///
    /// # Errors
    ///
    /// Not more than are set aside for answers, or more than the endpoint was opened with.
    pub fn set_send_buffers(&self, count: u32) -> Result<(), OptionError> {
        self.cell.with(|core, _| core.set_send_count(count))?
    }

    /// Returns the number of send buffers.
    ///
    /// # Errors
    ///
    /// The endpoint cannot be used here.
    pub fn send_buffers(&self) -> Result<u32, OptionError> {
        Ok(self.cell.with(|core, _| as_u32(core.send_count().0))?)
    }

    /// Sets so many of the send buffers aside for answers: only [`EndpointFor::answer`] takes them.
    /// At first there are none.
    ///
    /// # Errors
    ///
    /// So many leave none for other sends, or the endpoint cannot be used here.
    pub fn set_answer_buffers(&self, count: u32) -> Result<(), OptionError> {
        binding::set_answer_buffers(self.cell, count)
    }

    /// Allows peers to send messages that are longer than the connection's maximum
    /// ([`EndpointFor::send_large`]), of `limit` bytes for all of them together that are on their
    /// way here or with the program; a longer one is refused, and one for which there is no room
    /// now waits. At first none are allowed. A lower limit takes no memory from those that have it.
    ///
    /// The memory is allocated for each, and freed, or kept for the next, when its event has come
    /// back. A peer that is stopped in the midst of one keeps its room until its connection ends. A
    /// limit of twice the longest message leaves room for others then: a connection gets room for a
    /// second message only within half of the limit.
    ///
    /// # Errors
    ///
    /// The endpoint cannot be used here.
    ///
    /// # Example
    ///
    /// ```
    /// # use cci::{Context, Endpoint, EndpointOptions};
    /// let endpoint = Endpoint::open(Context::new()?.default_device()?, &EndpointOptions::new())?;
    /// endpoint.set_large_limit(256 << 20)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_large_limit(&self, limit: u64) -> Result<(), OptionError> {
        Ok(binding::set_large_limit(self.cell, limit)?)
    }

    /// Returns the alignment that RMA needs.
    ///
    /// # Errors
    ///
    /// The endpoint cannot be used here.
    pub fn alignment(&self) -> Result<Alignment, OptionError> {
        Ok(self.cell.with(|_, transport| transport.alignment())?)
    }

    /// Returns the number of registrations whose owner has dropped them while a peer copied, and
    /// whose memory the library keeps for that reason. Ends those whose copies are over.
    ///
    /// # Errors
    ///
    /// The endpoint cannot be used here.
    pub fn kept_registrations(&self) -> Result<usize, OptionError> {
        Ok(binding::retire_dropped(self.cell)?)
    }

    /// Sets a timeout of a connection; `None`: none. Fractions of a microsecond count as one.
    ///
    /// # Errors
    ///
    /// Zero, or more than 71 minutes; the connection is closed, or the endpoint cannot be used
    /// here.
    pub fn set_option(
        &self,
        connection: Connection,
        option: ConnectionOption,
        timeout: impl Into<Option<Duration>>,
    ) -> Result<(), OptionError> {
        let timeout = Timeout::new(timeout.into())?;
        binding::set_connection_option(self.cell, || connection.live(self.cell), option, timeout)
    }

    /// Returns a timeout of a connection.
    ///
    /// # Errors
    ///
    /// The connection is closed, or the endpoint cannot be used here.
    pub fn option(&self, connection: Connection, option: ConnectionOption) -> Result<Option<Duration>, OptionError> {
        binding::connection_option(self.cell, || connection.live(self.cell), option).map(Timeout::duration)
    }
}

fn as_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
