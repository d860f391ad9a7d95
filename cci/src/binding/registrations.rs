//! Registered memory, of this side and imported from a peer.

use cci_mem::memory::Memory;
use cci_proto::{ImportError, RegisterError, Rights, RmaHandle, Unusable};
use cci_transport::{Connection, ConnectionState, Core, Endpoint, Imported, Transport};

/// Which connections a registration is for. Asked with the endpoint's lock held, as for a live
/// connection.
pub enum Served<F> {
    /// All, those to come too.
    All,
    /// This one. None: it is closed.
    One(F),
}

/// [`Served::All`].
pub const ALL: Served<fn() -> Option<&'static Connection>> = Served::All;

/// Whether the device's key `rma_rights` gives peers every right.
///
/// # Errors
///
/// The endpoint cannot be used.
pub fn rights_are_open(endpoint: &Endpoint) -> Result<bool, Unusable> {
    endpoint.with(|core, _| core.rights_are_open())
}

/// Registers memory for RMA, with the rights that the device's key `rma_rights` gives peers.
///
/// # Errors
///
/// Null or empty range, no room for another registration, or its connection has no RMA.
pub fn register<F: FnOnce() -> Option<&'static Connection>>(
    endpoint: &Endpoint,
    memory: Memory,
    rights: Rights,
    served: Served<F>,
) -> Result<RmaHandle, RegisterError> {
    endpoint.with(|core, transport| register_in(core, transport, memory, rights, served))?
}

fn register_in<F: FnOnce() -> Option<&'static Connection>>(
    core: &mut Core,
    transport: &mut dyn Transport,
    memory: Memory,
    rights: Rights,
    served: Served<F>,
) -> Result<RmaHandle, RegisterError> {
    let rights = if core.rights_are_open() { Rights::READ_WRITE } else { rights };
    let only = match served {
        Served::All => None,
        Served::One(live) => {
            let connection = live().filter(|connection| connection.state() == ConnectionState::Open);
            let connection = connection.ok_or(RegisterError::Disconnected)?;
            if !connection.attribute().is_reliable() {
                return Err(RegisterError::Unreliable);
            }
            Some(connection)
        }
    };
    cci_transport::log_event!(debug, bytes = memory.len(), rights = ?rights, "registering memory");
    transport.register(core, memory, rights, only)
}

/// Why a registration was not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotDeregistered {
    /// Why.
    pub why: RegisterError,
    /// With [`RegisterError::Busy`]: the peer that copies, where its name is known.
    pub peer: Option<String>,
}

impl From<Unusable> for NotDeregistered {
    fn from(why: Unusable) -> Self {
        Self { why: why.into(), peer: None }
    }
}

impl From<NotDeregistered> for RegisterError {
    fn from(refused: NotDeregistered) -> Self {
        refused.why
    }
}

/// Ends a registration. When it returns without error nobody touches the memory any more.
///
/// # Errors
///
/// No such registration, or a peer that is stopped in the midst of a copy holds it.
pub fn deregister(endpoint: &Endpoint, handle: &RmaHandle) -> Result<(), NotDeregistered> {
    endpoint.with(|core, transport| {
        let deregistered = transport.deregister(core, handle);
        deregistered.map_err(|why| NotDeregistered { why, peer: core.take_busy_peer() })
    })?
}

/// Registers memory that the endpoint keeps until the registration has ended: see [`drop_owned`].
pub(crate) fn register_owned<F: FnOnce() -> Option<&'static Connection>>(
    endpoint: &Endpoint,
    memory: Memory,
    rights: Rights,
    served: Served<F>,
) -> Result<RmaHandle, RegisterError> {
    endpoint.with(|core, transport| {
        retire_in(core, transport);
        let handle = register_in(core, transport, memory.clone(), rights, served)?;
        core.own_memory(&handle, memory);
        Ok(handle)
    })?
}

/// As [`deregister`], of [`register_owned`].
pub(crate) fn deregister_owned(endpoint: &Endpoint, handle: &RmaHandle) -> Result<(), RegisterError> {
    endpoint.with(|core, transport| {
        transport.deregister(core, handle)?;
        core.release_memory(handle);
        Ok(())
    })?
}

/// Ends a registration of [`register_owned`] without waiting. While a peer copies, the endpoint
/// keeps the memory.
pub(crate) fn drop_owned(endpoint: &Endpoint, handle: &RmaHandle) {
    // Where the endpoint cannot be entered, it keeps the memory until it closes.
    let _ = endpoint.with(|core, transport| match transport.retire(core, handle) {
        Err(RegisterError::Busy) => core.add_dropped(handle),
        _ => core.release_memory(handle),
    });
}

/// Ends the registrations that [`drop_owned`] left and whose copies are over. Returns the number of
/// those that remain.
pub(crate) fn retire_dropped(endpoint: &Endpoint) -> Result<usize, Unusable> {
    endpoint.with(retire_in)
}

fn retire_in(core: &mut Core, transport: &mut dyn Transport) -> usize {
    let dropped = core.dropped_registrations();
    let is_busy = |handle: &&RmaHandle| {
        let is_busy = transport.retire(core, handle) == Err(RegisterError::Busy);
        if !is_busy {
            core.release_memory(handle);
        }
        is_busy
    };
    dropped.iter().filter(is_busy).count()
}

/// Maps memory that a peer has registered.
///
/// # Errors
///
/// The transport does not, or cannot; handle or rights do not allow it; or the connection is not
/// open.
pub fn import(
    endpoint: &Endpoint,
    live: impl FnOnce() -> Option<&'static Connection>,
    handle: &RmaHandle,
) -> Result<Imported, ImportError> {
    endpoint.with(|core, transport| {
        let connection = live().filter(|connection| connection.state() == ConnectionState::Open);
        transport.import(core, connection.ok_or(ImportError::Disconnected)?, handle)
    })?
}
