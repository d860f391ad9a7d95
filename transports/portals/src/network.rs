//! The interface that the endpoints of this process share, and their numbers.

use crate::sys::{Bound, Code, Interface, Library, Wanted, options};
use crate::wire::{Address, Class, MESSAGES, NOBODY, TOKEN};
use cci_mem::fork::PerProcess;
use cci_mem::memory::Memory;
use cci_over::MOST_ENDPOINTS;
use cci_proto::Status;
use cci_transport::{OpenError, lock};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// An interface with the endpoints that use it.
struct Shared {
    library: String,
    interface_id: u32,
    interface: Arc<Interface>,
    /// The entry for puts that ask whether those before them have arrived. It has no memory.
    _sentinel: Bound,
    numbers: BTreeSet<u32>,
    last: u32,
    /// Memory that the library still uses though its endpoint is closed.
    left: Vec<Bound>,
}

/// The open interfaces of this process, one of each library. A forked child has none.
static NETWORKS: PerProcess<Mutex<Vec<Shared>>> = PerProcess::new();

/// The part of an endpoint in an interface: its number. The last one to go ends the interface.
pub(crate) struct Lease {
    pub(crate) interface: Arc<Interface>,
    pub(crate) number: u32,
    left: Vec<Bound>,
}

/// How an interface is opened.
#[derive(Clone, Copy)]
pub(crate) struct Choice<'a> {
    pub(crate) library: &'a str,
    pub(crate) interface_id: u32,
    pub(crate) pid: Option<u32>,
}

fn refused(status: Status, what: String) -> OpenError {
    OpenError::new(status, what)
}

impl Shared {
    fn open(choice: &Choice<'_>) -> Result<Self, OpenError> {
        let library = Library::load(choice.library).map_err(|why| refused(Status::NoDev, why))?;
        let interface = library.open(choice.interface_id, choice.pid).map_err(|(code, name)| {
            let what = if code == Code::IFACE_CYCLE {
                format!(
                    "the library {} would use the transport portals in its turn ({name}); \
                     name another device by CCI_PORTALS_DEVICE, such as sm",
                    choice.library
                )
            } else {
                format!(
                    "PtlNIInit of {} gives {name}; check the keys interface and pid, and the device of the library",
                    choice.library
                )
            };
            refused(Status::NoDev, what)
        })?;
        let wanted =
            Wanted { options: options::PUT | options::NO_START, threshold: None, max_size: 0, user: 0, queue: None };
        let bits = Address::bits(NOBODY, Class::Sentinel, 0);
        let sentinel = interface.attach((MESSAGES, bits, TOKEN), Memory::none(), &wanted, false).map_err(|code| {
            let what =
                format!("no room in the library {}: {}; raise its limits", choice.library, interface.name_of(code));
            interface.close();
            refused(Status::NoMem, what)
        })?;
        Ok(Self {
            library: choice.library.to_owned(),
            interface_id: choice.interface_id,
            interface: Arc::new(interface),
            _sentinel: sentinel,
            numbers: BTreeSet::new(),
            last: 0,
            left: Vec::new(),
        })
    }

    /// Gives an endpoint its number.
    fn enter(&mut self, wanted: Option<u32>) -> Result<u32, OpenError> {
        let number = wanted.unwrap_or_else(|| {
            // The next one that is free: messages for one that is gone must find nobody.
            let later = (self.last + 1..=MOST_ENDPOINTS).chain(1..=self.last);
            self.last = later.into_iter().find(|number| !self.numbers.contains(number)).unwrap_or_default();
            self.last
        });
        if !self.numbers.insert(number) {
            let what = format!("another endpoint of this process has the number {number}; give another service");
            return Err(refused(Status::AddrNotAvail, what));
        }
        Ok(number)
    }
}

impl Lease {
    /// Takes part in the interface of a library, which is opened unless it is there.
    pub(crate) fn take(choice: &Choice<'_>, wanted: Option<u32>) -> Result<Self, OpenError> {
        let system = |source| OpenError::system("no memory for an endpoint over Portals", source);
        let (_, networks) = NETWORKS.get(Mutex::default).map_err(system)?;
        let mut networks = lock(networks);
        let found = networks.iter().position(|shared| shared.library == choice.library);
        let at = match found {
            Some(at) => at,
            None => {
                networks.push(Shared::open(choice)?);
                networks.len() - 1
            }
        };
        let shared = &mut networks[at];
        let own = shared.interface.own.pid;
        if shared.interface_id != choice.interface_id || choice.pid.is_some_and(|pid| pid != own) {
            let what = format!(
                "this process has the interface {} of {} open, as process {own}; give the same keys interface and pid",
                shared.interface_id, choice.library
            );
            return Err(refused(Status::Inval, what));
        }
        match shared.enter(wanted) {
            Ok(number) => Ok(Self { interface: Arc::clone(&shared.interface), number, left: Vec::new() }),
            Err(why) => {
                end_unused(&mut networks);
                Err(why)
            }
        }
    }
}

/// Ends interfaces that no endpoint uses.
fn end_unused(networks: &mut Vec<Shared>) {
    networks.retain_mut(|shared| {
        let is_used = !shared.numbers.is_empty();
        if !is_used {
            shared.interface.close();
            // Handles of a closed interface may name objects of the next one.
            shared.left.drain(..).for_each(Bound::free);
        }
        is_used
    });
}

impl Lease {
    /// Leaves the interface. `left`: memory that the library still uses.
    fn leave(&self, left: Vec<Bound>) {
        // A forked child finds a list of its own, and leaves all as it is.
        let Ok((_, networks)) = NETWORKS.get(Mutex::default) else { return };
        let mut networks = lock(networks);
        if let Some(shared) = networks.iter_mut().find(|shared| Arc::ptr_eq(&shared.interface, &self.interface)) {
            shared.numbers.remove(&self.number);
            let interface = &shared.interface;
            let all = std::mem::take(&mut shared.left).into_iter().chain(left);
            shared.left = all.filter_map(|bound| interface.release(bound).err()).collect();
        }
        end_unused(&mut networks);
    }

    /// As a drop, with memory that the library still uses.
    pub(crate) fn end(mut self, left: Vec<Bound>) {
        self.left = left;
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let left = std::mem::take(&mut self.left);
        self.leave(left);
    }
}
