//! Registrations and RMA.

use crate::arguments::{self, MISSING};
use crate::guard;
use crate::handles::{self, Handle, Named};
use crate::status::Refusal;
use cci::__binding::{
    self as raw, Access, AtomicU64, ConnectionCell, EndpointCell, Flags, Ordering, PerProcess, Served, Slab,
};
use cci::__binding::{In, Out};
use cci::{Atomic, Memory, OpenError, RegisterError, Rights, RmaError, RmaHandle, Status};
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::{Mutex, Once, PoisonError};

/// A handle where the program reads it: `cci_rma_handle_t`. In a slab, so that a pointer to the
/// handle of an ended registration reads as that handle still, and is refused as stale.
#[derive(Default)]
#[repr(C)]
pub(crate) struct HandleCell([AtomicU64; 4]);

impl HandleCell {
    fn set(&self, handle: &RmaHandle) {
        for (word, value) in self.0.iter().zip(handle.words()) {
            word.store(value, Ordering::Relaxed);
        }
    }
}

/// The words that a registration is known by, after the address of its endpoint.
type Key = (usize, u64, u64);

fn key(endpoint: &EndpointCell, handle: &RmaHandle) -> Key {
    (std::ptr::from_ref(endpoint).addr(), handle.words()[0], handle.words()[1])
}

/// The handles that programs hold, of all endpoints of this process.
#[derive(Default)]
struct Registry {
    cells: Slab<HandleCell>,
    /// A hash map, which allocates nothing once it has been as full as it becomes.
    live: Mutex<HashMap<Key, &'static HandleCell>>,
}

static REGISTRY: PerProcess<Registry> = PerProcess::new();

fn registry() -> Result<&'static Registry, Refusal> {
    REGISTRY.get(Registry::default).map(|(_, registry)| registry).map_err(|_| RegisterError::NoMemory.into())
}

impl Registry {
    fn live(&self) -> std::sync::MutexGuard<'_, HashMap<Key, &'static HandleCell>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Frees the handles of an endpoint that is closed.
pub(crate) fn forget(endpoint: &EndpointCell) {
    let Ok(registry) = registry() else { return };
    let address = std::ptr::from_ref(endpoint).addr();
    registry.live().retain(|(endpoint, ..), cell| {
        let is_kept = *endpoint != address;
        if !is_kept {
            registry.cells.give(cell);
        }
        is_kept
    });
}

/// The handle that a program names: its own copy, or the library's cell.
pub(crate) fn handle(pointer: In<'_, RmaHandle>) -> Result<RmaHandle, Refusal> {
    pointer.get().ok_or(Refusal::Argument("the RMA handle is NULL"))
}

/// What peers may do: the bits READ and WRITE. Old programs set others too, which mean nothing
/// here.
fn rights(flags: c_int) -> Rights {
    let known = flags.cast_unsigned() & Rights::READ_WRITE.bits();
    Rights::from_bits(known).unwrap_or(Rights::NONE)
}

/// # Safety
///
/// While registered, the range stays mapped and the program knows that peers with rights use it.
#[unsafe(no_mangle)]
unsafe extern "C" fn cci_rma_register(
    endpoint: Handle<EndpointCell>,
    start: *mut c_void,
    length: u64,
    flags: c_int,
    rma_handle: Out<'_, *const HandleCell>,
) -> c_int {
    guard::on_endpoint(endpoint.get(), |cell| {
        let rights = rights(flags);
        if rights == Rights::NONE {
            note_without_rights(cell);
        }
        // SAFETY: the range stays mapped while registered, and the program knows that peers use it.
        unsafe { register(cell, (start, length), rights, raw::ALL, rma_handle) }
    })
}

/// Says in the log what a program written to an implementation without rights has to know; once,
/// since memory of this side alone needs none.
#[cold]
fn note_without_rights(cell: &'static EndpointCell) {
    static IS_SAID: Once = Once::new();
    if raw::rights_are_open(cell).is_ok_and(|are_open| !are_open) {
        IS_SAID.call_once(|| {
            tracing::warn!(
                "memory is registered without rights, so peers may neither read nor write it; pass CCI_FLAG_READ or \
                 CCI_FLAG_WRITE, or write rma_rights = open in the section of the device"
            );
        });
    }
}

/// `CCIX_MEMORY_HOST`.
const HOST: u32 = 0;

/// # Safety
///
/// As `cci_rma_register`.
#[unsafe(no_mangle)]
unsafe extern "C" fn ccix_rma_register(
    endpoint: Handle<EndpointCell>,
    connection: Handle<ConnectionCell>,
    start: *mut c_void,
    length: u64,
    flags: c_int,
    kind: u32,
    rma_handle: Out<'_, *const HandleCell>,
) -> c_int {
    guard::on_endpoint(endpoint.get(), |cell| {
        if kind != HOST {
            return Err(Refusal::Argument("no such kind of memory; this version registers CCIX_MEMORY_HOST"));
        }
        let range = (start, length);
        if connection.is_null() {
            // SAFETY: the range stays mapped while registered, and the program knows that peers use
            // it.
            return unsafe { register(cell, range, rights(flags), raw::ALL, rma_handle) };
        }
        let named = connection.get()?;
        if !std::ptr::eq(named.endpoint, cell) {
            return Err(Refusal::Argument("the connection is of another endpoint"));
        }
        // SAFETY: as without a connection: mapped while registered, and known to be used by the
        // peer.
        unsafe { register(cell, range, rights(flags), Served::One(|| named.live()), rma_handle) }
    })
}

/// Registers a range, and stores the handle where the program reads it.
///
/// # Safety
///
/// As `cci_rma_register`.
unsafe fn register<F: FnOnce() -> Option<&'static ConnectionCell>>(
    cell: &'static EndpointCell,
    (start, length): (*mut c_void, u64),
    rights: Rights,
    served: Served<F>,
    rma_handle: Out<'_, *const HandleCell>,
) -> Result<(), Refusal> {
    let rma_handle = rma_handle.variable(MISSING)?;
    if start.is_null() || length == 0 {
        return Err(RegisterError::Null.into());
    }
    let registry = registry()?;
    // SAFETY: not NULL, mapped while registered, and known to be used by peers, by the contract
    // above.
    let memory = unsafe { Memory::new(start.cast(), length) };
    let handle = raw::register(cell, memory, rights, served)?;
    let place = registry.cells.take();
    place.set(&handle);
    registry.live().insert(key(cell, &handle), place);
    rma_handle.put(place);
    Ok(())
}

#[unsafe(no_mangle)]
extern "C" fn cci_rma_deregister(endpoint: Handle<EndpointCell>, rma_handle: In<'_, RmaHandle>) -> c_int {
    guard::on_endpoint(endpoint.get(), |cell| {
        let handle = handle(rma_handle)?;
        let registry = registry()?;
        raw::deregister(cell, &handle).map_err(|refused| match (refused.why, refused.peer) {
            (why @ RegisterError::Busy, Some(peer)) => OpenError::new(Status::Busy, format!("{why}: {peer}")).into(),
            (why, _) => Refusal::from(why),
        })?;
        if let Some(place) = registry.live().remove(&key(cell, &handle)) {
            registry.cells.give(place);
        }
        Ok(())
    })
}

/// # Safety
///
/// `msg_ptr` is NULL, or `msg_len` bytes are readable there during the call.
#[unsafe(no_mangle)]
unsafe extern "C" fn cci_rma(
    connection: Handle<ConnectionCell>,
    msg_ptr: *const c_void,
    msg_len: u32,
    local_handle: In<'_, RmaHandle>,
    local_offset: u64,
    remote_handle: In<'_, RmaHandle>,
    remote_offset: u64,
    data_len: u64,
    context: *const c_void,
    bits: c_int,
) -> c_int {
    guard::on_connection(connection.get(), |named| {
        let flags = Flags::for_rma(bits.cast_unsigned()).ok_or(RmaError::BadFlags)?;
        let access = if flags.has(Flags::READ) { Access::Read } else { Access::Write };
        let ends = ((local_handle, local_offset), (remote_handle, remote_offset));
        // SAFETY: the message is NULL, or readable during the call, by the contract above.
        unsafe { start(named, (msg_ptr, msg_len), ends, (access, data_len), context, flags) }
    })
}

/// `ccix_atomic_t`.
#[derive(Clone, Copy)]
#[repr(C)]
struct AtomicOperation {
    operation: u32,
    width: u32,
    operand: u64,
    expected: u64,
}

/// Its operations: `CCIX_FETCH_ADD` and `CCIX_COMPARE_SWAP`.
const FETCH_ADD: u32 = 1;
const COMPARE_SWAP: u32 = 2;

/// # Safety
///
/// As `cci_rma`.
#[unsafe(no_mangle)]
unsafe extern "C" fn ccix_rma_atomic(
    connection: Handle<ConnectionCell>,
    msg_ptr: *const c_void,
    msg_len: u32,
    local_handle: In<'_, RmaHandle>,
    local_offset: u64,
    remote_handle: In<'_, RmaHandle>,
    remote_offset: u64,
    atomic: In<'_, AtomicOperation>,
    context: *const c_void,
    bits: c_int,
) -> c_int {
    guard::on_connection(connection.get(), |named| {
        let Some(flags) = Flags::for_atomic(bits.cast_unsigned()) else {
            return Err(Refusal::Argument(
                "an atomic operation takes BLOCKING, NO_COPY, SILENT and FENCE, and no other flag",
            ));
        };
        let asked = atomic.get().ok_or(Refusal::Argument("the atomic operation is NULL"))?;
        let atomic = match asked.operation {
            FETCH_ADD => Atomic::FetchAdd(asked.operand),
            COMPARE_SWAP => Atomic::CompareSwap { expected: asked.expected, desired: asked.operand },
            _ => return Err(Refusal::Argument("the operation is neither CCIX_FETCH_ADD nor CCIX_COMPARE_SWAP")),
        };
        let ends = ((local_handle, local_offset), (remote_handle, remote_offset));
        let access = (Access::Atomic(atomic), asked.width.into());
        // SAFETY: the message is NULL, or readable during the call, by the contract above.
        unsafe { start(named, (msg_ptr, msg_len), ends, access, context, flags) }
    })
}

/// A handle, and an offset in what it names.
type Variable<'call> = (In<'call, RmaHandle>, u64);

/// Starts an RMA of so many bytes, and waits for its end if the flags say so.
///
/// # Safety
///
/// As `cci_rma`.
unsafe fn start(
    named: Named,
    (msg_ptr, msg_len): (*const c_void, u32),
    ((local, local_offset), (remote, remote_offset)): (Variable<'_>, Variable<'_>),
    (access, len): (Access, u64),
    context: *const c_void,
    flags: Flags,
) -> Result<(), Refusal> {
    let (local, remote) = (handle(local)?, handle(remote)?);
    // SAFETY: NULL, which `bytes` refuses, or readable during the call, by the contract above.
    let message = unsafe { arguments::bytes(msg_ptr, msg_len) }?;
    let rma = raw::Rma {
        local: &local,
        local_offset,
        remote: &remote,
        remote_offset,
        len,
        access,
        fence: flags.has(Flags::FENCE),
        message: (!message.is_empty()).then_some(message),
    };
    if flags.has(Flags::BLOCKING) {
        return Ok(raw::rma_blocking(named.endpoint, || named.live(), &rma)?);
    }
    Ok(raw::rma(named.endpoint, || named.live(), &rma, handles::context(context), flags)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_bits_give_no_rights() {
        assert_eq!(rights(-1), Rights::READ_WRITE);
        assert_eq!(rights(!48), Rights::NONE);
        assert_eq!(rights(16 | 4), Rights::READ);
        assert_eq!(rights(32 | 64), Rights::WRITE);
    }

    #[test]
    fn a_null_handle_is_refused() {
        // SAFETY: NULL.
        let refused = handle(unsafe { In::new(std::ptr::null()) });
        assert!(matches!(refused, Err(Refusal::Argument(_))));
    }
}
