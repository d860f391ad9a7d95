//! What a process has: whether it is initialised, its interfaces, handlers, ranks.

use cci_job::Job;
use cci_mem::boundary::uncancelled;
use cci_mem::fork::PerProcess;
use cci_mem::mutex::{read, write};
use cci_portals::{Error, Handle, Interface};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, RwLock};

use crate::layout::CEvent;

/// What the program calls for each event of a queue.
pub(crate) type Handler = unsafe extern "C" fn(*mut CEvent);

/// Nodes and numbers of processes, by ranks.
#[derive(Clone, Default)]
pub(crate) struct Maps {
    pub(crate) nids: Vec<u32>,
    pub(crate) pids: Vec<u32>,
}

/// Ranks and maps, as the run time has them.
#[derive(Clone, Default)]
pub(crate) struct Ranks {
    pub(crate) rank: Option<u32>,
    pub(crate) size: u32,
    /// By the numbers of interfaces.
    pub(crate) maps: [Maps; 2],
    /// The interface that was opened first: who names none asks for its maps.
    pub(crate) first: usize,
    pub(crate) jid: Option<u32>,
}

#[derive(Default)]
pub(crate) struct Registry {
    /// Whether `PtlInit` was called, and by the Cray dialect.
    pub(crate) initialised: RwLock<Option<bool>>,
    /// The generic interface and the accelerated one, by the number in their handles.
    pub(crate) networks: RwLock<[Option<Arc<Interface>>; 2]>,
    /// One at a time opens and closes.
    pub(crate) opening: Mutex<()>,
    pub(crate) handlers: RwLock<HashMap<u32, Handler>>,
    pub(crate) ranks: Mutex<Ranks>,
    /// Joined once in the life of a process.
    pub(crate) job: Mutex<Option<Arc<Job>>>,
}

/// The registry of this process. It is never freed: calls of other threads may be in it. A child of
/// a fork gets one of its own, since the locks of this one may be held for ever there.
#[inline]
pub(crate) fn registry() -> Result<&'static Registry, Error> {
    static REGISTRY: PerProcess<Registry> = PerProcess::new();
    REGISTRY.get(Registry::default).map(|(_, registry)| registry).map_err(|_| Error::NoSpace)
}

impl Registry {
    /// Whether the program speaks the Cray dialect.
    pub(crate) fn is_cray(&self) -> Result<bool, Error> {
        let initialised = *read(&self.initialised);
        initialised.ok_or(Error::NotInitialised)
    }

    /// The open interface of an object with this handle; `missing` says that there is none.
    pub(crate) fn open(&self, handle: u32, missing: Error) -> Result<Arc<Interface>, Error> {
        self.is_cray()?;
        let networks = read(&self.networks);
        networks.get(Handle::from_bits(handle).interface() as usize).cloned().flatten().ok_or(missing)
    }

    /// The interface of its own handle.
    pub(crate) fn network(&self, handle: u32) -> Result<Arc<Interface>, Error> {
        let network = self.open(handle, Error::Network)?;
        if network.handle() == Handle::from_bits(handle) { Ok(network) } else { Err(Error::Network) }
    }

    /// Ends an interface, and with it waits of other threads, which hold it too. False: there is
    /// none.
    pub(crate) fn end(&self, number: usize) -> bool {
        let mut networks = write(&self.networks);
        let network = networks.get_mut(number).and_then(Option::take);
        drop(networks);
        let mut handlers = write(&self.handlers);
        handlers.retain(|queue, _| Handle::from_bits(*queue).interface() as usize != number);
        drop(handlers);
        network.is_some_and(|network| network.close().is_ok())
    }

    /// Calls the handlers of events that have come.
    pub(crate) fn run_handlers(&self, network: &Interface) {
        let has_none = read(&self.handlers).is_empty();
        if has_none {
            return;
        }
        while let Some((queue, event)) = network.handled() {
            let handlers = read(&self.handlers);
            let handler = handlers.get(&queue.bits()).copied();
            drop(handlers);
            if let Some(handler) = handler {
                let mut event = CEvent::from(event);
                // A thread that is cancelled there would unwind through the library.
                uncancelled(|| {
                    // SAFETY: the program's function, called without any lock.
                    unsafe { handler(&raw mut event) };
                });
            }
        }
    }
}
