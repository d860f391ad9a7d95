//! Domains, and the memory that peers may access.

use crate::bits::{READ, RECV, REMOTE_READ, REMOTE_WRITE, SEND, WRITE};
use crate::code::Code;
use crate::driver::Driver;
use crate::record::Record;
use crate::who;
use cci::{Device, Memory, Rights};
use cci_mem::mutex::lock;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

/// What endpoints, queues and registrations belong to. Any thread may use it; clones are the same
/// domain.
///
/// # Example
///
/// ```
/// let domain = cci_fabric::Domain::open()?;
/// assert!(!domain.is_busy());
/// # Ok::<(), cci_fabric::Code>(())
/// ```
#[derive(Clone)]
pub struct Domain(Arc<Shared>);

struct Shared {
    device: Device,
    /// Each thing that is open has a clone.
    open: Arc<()>,
    regions: Mutex<Regions>,
    is_crowded: bool,
    driver: OnceLock<Arc<Driver>>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(driver) = self.driver.get() {
            driver.end();
        }
    }
}

#[derive(Default)]
struct Regions {
    by_key: HashMap<u64, Arc<Registered>>,
    /// Counts registrations.
    lives: u32,
}

/// Who has registered memory of a domain for its peers.
pub(crate) trait Keeper: Send + Sync {
    /// The memory of a key, in this life of it, is the program's again.
    fn forget_region(&self, key: u64, life: u32);
}

/// Counts as open until it is dropped.
pub(crate) struct Open(#[expect(dead_code, reason = "its drop is all that it is for")] Arc<()>);

/// Memory that peers may access, by the program's key.
pub(crate) struct Registered {
    pub(crate) key: u64,
    /// Tells this registration of the key from another one.
    pub(crate) life: u32,
    pub(crate) memory: Memory,
    pub(crate) rights: Rights,
    /// Endpoints that have told it to peers.
    used: Mutex<Vec<Weak<dyn Keeper>>>,
}

impl Registered {
    /// An endpoint tells it to a peer.
    pub(crate) fn use_by(&self, core: &Weak<dyn Keeper>) {
        let mut used = lock(&self.used);
        used.retain(|other| other.strong_count() > 0);
        if !used.iter().any(|other| other.ptr_eq(core)) {
            used.push(Weak::clone(core));
        }
    }
}

/// Memory that is registered until this is dropped.
///
/// # Example
///
/// ```
/// use cci_fabric::{Code, Domain, bits};
///
/// let domain = Domain::open()?;
/// let memory = || cci::Memory::of_bytes(&std::sync::Arc::new(cci::HeapBytes::new(vec![0; 64])));
/// let region = domain.register(memory(), 17, bits::REMOTE_READ)?;
/// assert_eq!(domain.register(memory(), 17, bits::REMOTE_READ).err(), Some(Code::NoKey));
/// drop(region);
/// assert!(domain.register(memory(), 17, bits::REMOTE_READ).is_ok());
/// # Ok::<(), Code>(())
/// ```
pub struct Region {
    domain: Domain,
    registered: Arc<Registered>,
    _open: Open,
}

impl fmt::Debug for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Domain({} open)", Arc::strong_count(&self.0.open) - 1)
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Region({:#x}, {} bytes)", self.registered.key, self.registered.memory.len())
    }
}

/// Whether what runs beside this process has no processor of its own.
fn is_crowded() -> bool {
    std::thread::available_parallelism().is_ok_and(|processors| processors.get() == 1)
}

impl Domain {
    /// Opens a domain on the default device.
    ///
    /// # Errors
    ///
    /// [`Code::NoDevice`], [`Code::Invalid`]: the configuration has none, or is wrong.
    pub fn open() -> Result<Self, Code> {
        let context = cci::Context::new().map_err(|why| Code::of_open(&why))?;
        let device = context.default_device().map_err(|why| Code::of_open(&why))?.clone();
        Ok(Self::on(device))
    }

    /// Opens a domain on a device.
    #[must_use]
    pub fn on(device: Device) -> Self {
        Self::beside(device, is_crowded())
    }

    /// Opens a domain on a device, where what runs beside this process has processors of its own,
    /// or is crowded: then a thread that reads in vain lets others run.
    #[must_use]
    pub fn beside(device: Device, is_crowded: bool) -> Self {
        let (open, regions) = (Arc::new(()), Mutex::new(Regions::default()));
        Self(Arc::new(Shared { device, open, regions, is_crowded, driver: OnceLock::new() }))
    }

    /// Starts a thread that goes on with the endpoints that are enabled from here on, whether or
    /// not the program makes calls (`FI_PROGRESS_AUTO`). It sleeps while nothing comes, leaves the
    /// endpoints to a program that calls at least once a millisecond, and ends with the domain.
    ///
    /// # Errors
    ///
    /// [`Code::TooManyFiles`], [`Code::NoMemory`]: there is no descriptor, or no thread.
    pub fn drive(&self) -> Result<(), Code> {
        if self.0.driver.get().is_none() {
            let driver = Driver::start()?;
            if let Err(second) = self.0.driver.set(driver) {
                second.end();
            }
        }
        Ok(())
    }

    pub(crate) fn driver(&self) -> Option<&Arc<Driver>> {
        self.0.driver.get()
    }

    /// Returns the record of the endpoint that listens at a port of a host now: a name or an
    /// address. Its program has to make progress meanwhile, and neither side may have a secret.
    ///
    /// # Errors
    ///
    /// A sentence: nobody has answered within `limit`, and why; or nothing can be opened here.
    pub fn ask(&self, host: &str, port: u16, limit: Duration) -> Result<Record, String> {
        let uri = if host.contains(':') { format!("cci://[{host}]:{port}") } else { format!("cci://{host}:{port}") };
        who::ask(&self.0.device, &uri, limit)
    }

    /// Whether anything of it is open.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        Arc::strong_count(&self.0.open) > 1
    }

    /// Registers memory for peers by a key of the program's. `access`: what peers may do
    /// ([`REMOTE_READ`], [`REMOTE_WRITE`]), and what else it is for.
    ///
    /// # Errors
    ///
    /// [`Code::NoKey`]: other memory has the key. [`Code::Invalid`]: no such access, or memory at
    /// address 0. [`Code::NoMemory`].
    pub fn register(&self, memory: Memory, key: u64, access: u64) -> Result<Region, Code> {
        const ALL: u64 = SEND | RECV | READ | WRITE | REMOTE_READ | REMOTE_WRITE;
        if access & !ALL != 0 || memory.start() == 0 && !memory.is_empty() {
            return Err(Code::Invalid);
        }
        let rights = match (access & REMOTE_READ != 0, access & REMOTE_WRITE != 0) {
            (false, false) => Rights::NONE,
            (true, false) => Rights::READ,
            (false, true) => Rights::WRITE,
            (true, true) => Rights::READ_WRITE,
        };
        let mut regions = lock(&self.0.regions);
        if regions.by_key.contains_key(&key) {
            return Err(Code::NoKey);
        }
        regions.by_key.try_reserve(1).map_err(|_| Code::NoMemory)?;
        regions.lives = regions.lives.wrapping_add(1);
        let registered = Registered { key, life: regions.lives, memory, rights, used: Mutex::default() };
        let registered = Arc::new(registered);
        regions.by_key.insert(key, Arc::clone(&registered));
        drop(regions);
        Ok(Region { domain: self.clone(), registered, _open: self.count() })
    }

    pub(crate) fn find(&self, key: u64) -> Option<Arc<Registered>> {
        lock(&self.0.regions).by_key.get(&key).cloned()
    }

    pub(crate) fn device(&self) -> &Device {
        &self.0.device
    }

    pub(crate) fn is_crowded(&self) -> bool {
        self.0.is_crowded
    }

    /// Counts something as open.
    pub(crate) fn count(&self) -> Open {
        Open(Arc::clone(&self.0.open))
    }
}

impl Region {
    /// The key.
    #[must_use]
    pub fn key(&self) -> u64 {
        self.registered.key
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // Nobody finds it from here on; then those let go who have it.
        lock(&self.domain.0.regions).by_key.remove(&self.registered.key);
        let used = std::mem::take(&mut *lock(&self.registered.used));
        for core in used.iter().filter_map(Weak::upgrade) {
            core.forget_region(self.registered.key, self.registered.life);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AddressVector, Counter, Queue, QueueOptions};

    #[test]
    fn a_domain_is_busy_while_anything_is_open() -> Result<(), Code> {
        let domain = Domain::open()?;
        let memory = Memory::of_bytes(&Arc::new(cci::HeapBytes::new(vec![0; 8])));
        let opened: [Box<dyn std::any::Any>; 4] = [
            Box::new(AddressVector::open(&domain)),
            Box::new(Queue::open(&domain, QueueOptions::default())?),
            Box::new(Counter::open(&domain)),
            Box::new(domain.register(memory.clone(), 1, REMOTE_WRITE)?),
        ];
        for one in opened {
            assert!(domain.is_busy());
            drop(one);
        }
        assert!(!domain.is_busy());
        assert_eq!(domain.register(memory, 1, 1 << 40).err(), Some(Code::Invalid));
        Ok(())
    }
}
