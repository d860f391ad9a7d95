//! The NICs of this process, by the numbers in their handles.

use crate::answer::{PARAMETER, RESOURCE};
use crate::handles::{self, Handle, Kind, NIC_BITS};
use crate::inherited::Inherited;
use crate::nic::Nic;
use cci_mem::fork::PerProcess;
use cci_mem::mutex::{read, write};
use cci_mem::sync::{AtomicU32, Ordering};
use std::ffi::c_int;
use std::sync::{Arc, RwLock, RwLockReadGuard, TryLockError};

/// The last number of a NIC. A forked child goes on from there, so that no NIC of its own has a
/// number of its parent's.
static LAST: AtomicU32 = AtomicU32::new(0);

/// The NICs of a process.
struct Nics {
    open: RwLock<Vec<Arc<Nic>>>,
    inherited: Inherited,
}

/// The NICs of this process. A child of a fork gets a table of its own, since the locks of this one
/// may be held for ever there.
#[inline]
fn nics() -> Result<&'static Nics, c_int> {
    static NICS: PerProcess<Nics> = PerProcess::new();
    let nics = NICS.inherit(|parent| Nics { open: RwLock::default(), inherited: inherited(parent) });
    nics.map(|(_, nics)| nics).map_err(|_| RESOURCE)
}

fn inherited(parent: Option<&Nics>) -> Inherited {
    Inherited::new(LAST.load(Ordering::Relaxed), parent.and_then(Nics::try_read).as_deref().map_or(&[], Vec::as_slice))
}

impl Nics {
    /// The NICs, unless a thread changes them.
    fn try_read(&self) -> Option<RwLockReadGuard<'_, Vec<Arc<Nic>>>> {
        match self.open.try_read() {
            Ok(open) => Some(open),
            Err(TryLockError::Poisoned(open)) => Some(open.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// The NIC of a handle, and the number there.
pub(crate) fn open(kind: Kind, handle: Handle) -> Result<(Arc<Nic>, u32), c_int> {
    let (number, object) = handles::parts(kind, handle).ok_or(PARAMETER)?;
    let nics = nics()?;
    let open = read(&nics.open);
    let found = open.iter().find(|other| other.number == number);
    match found {
        Some(nic) => Ok((Arc::clone(nic), object)),
        None => {
            drop(open);
            Err(nics.inherited.refuse(number))
        }
    }
}

/// The NIC of a handle.
pub(crate) fn nic(handle: Handle) -> Result<Arc<Nic>, c_int> {
    open(Kind::Nic, handle).map(|(nic, _)| nic)
}

/// Enters a NIC that is made with its number; none when all numbers are used up.
pub(crate) fn enter(make: impl FnOnce(u32) -> Result<Arc<Nic>, c_int>) -> Result<u32, c_int> {
    let nics = nics()?;
    // Publishes nothing: a number is used once, whoever gets it.
    let last =
        LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| (last + 1 < 1 << NIC_BITS).then_some(last + 1));
    let number = last.map_err(|_| RESOURCE)? + 1;
    let nic = make(number).inspect_err(|_| {
        // It is free again, unless another thread has taken the next one.
        let _ = LAST.compare_exchange(number, number - 1, Ordering::Relaxed, Ordering::Relaxed);
    })?;
    write(&nics.open).push(nic);
    Ok(number)
}

pub(crate) fn remove(nic: &Arc<Nic>) {
    if let Ok(nics) = nics() {
        write(&nics.open).retain(|other| !Arc::ptr_eq(other, nic));
    }
}
