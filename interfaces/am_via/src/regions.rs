//! Registered memory, named by handles of the VI Architecture in the shape of CCI's.

use crate::Core;
use cci::{Memory, RegisterError, Rights, RmaHandle};
use cci_via::{Access, Error, Tag};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Memory by its handle, for v1, whose peers name it in messages.
#[derive(Clone, Default)]
pub(crate) struct Regions(Arc<Mutex<HashMap<u32, (Memory, Rights)>>>);

impl Regions {
    fn with<R>(&self, act: impl FnOnce(&mut HashMap<u32, (Memory, Rights)>) -> R) -> R {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Memory that is registered with these rights.
    pub(crate) fn get(&self, handle: u32, rights: Rights) -> Option<Memory> {
        self.with(|known| known.get(&handle).filter(|(_, has)| has.has(rights)).map(|(memory, _)| memory.clone()))
    }
}

/// Registered memory of a mapping; dropping it ends the registration.
///
/// # Example
///
/// ```
/// use cci_am::Mapping;
/// use cci_am_via::{ViaMapping, ViaRegion};
///
/// fn name(region: &ViaRegion) -> [u8; 32] {
///     <ViaMapping>::handle(region).to_bytes()
/// }
/// ```
pub struct ViaRegion {
    core: Arc<Core>,
    regions: Regions,
    number: u32,
    pub(crate) handle: RmaHandle,
}

/// A number in the shape of CCI's handles.
fn shaped(number: u32) -> RmaHandle {
    let mut bytes = [0; 32];
    bytes[..4].copy_from_slice(&number.to_le_bytes());
    bytes[4..7].copy_from_slice(b"VIA");
    RmaHandle::from_bytes(&bytes).unwrap_or(RmaHandle::from_words([0; 4]))
}

/// The number in a handle. One that is none leads to no memory.
pub(crate) fn number(handle: &RmaHandle) -> u32 {
    handle.to_bytes().first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

fn refused(why: Error) -> RegisterError {
    match why {
        Error::Resource(_) => RegisterError::NoMemory,
        _ => RegisterError::UnknownHandle,
    }
}

impl ViaRegion {
    pub(crate) fn new(
        core: &Arc<Core>,
        regions: &Regions,
        memory: &Memory,
        tag: Tag,
        rights: Rights,
    ) -> Result<Self, RegisterError> {
        let access = Access { write: rights.has(Rights::WRITE), read: rights.has(Rights::READ) };
        let number = core.register(memory.clone(), 0, tag, access).map_err(refused)?;
        regions.with(|known| known.insert(number, (memory.clone(), rights)));
        Ok(Self { core: Arc::clone(core), regions: regions.clone(), number, handle: shaped(number) })
    }

    pub(crate) fn deregister(mut self) -> Result<(), (Self, RegisterError)> {
        self.regions.with(|known| known.remove(&self.number));
        if self.core.deregister(self.number, 0).is_err() {
            // A peer is in the midst of a copy.
            return Err((self, RegisterError::Busy));
        }
        self.number = 0;
        Ok(())
    }
}

impl Drop for ViaRegion {
    fn drop(&mut self) {
        if self.number != 0 {
            self.regions.with(|known| known.remove(&self.number));
            // What a peer copies at this moment stays with the NIC until it closes.
            let _ = self.core.deregister(self.number, 0);
        }
    }
}

impl fmt::Debug for ViaRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ViaRegion({:#x})", self.number)
    }
}
