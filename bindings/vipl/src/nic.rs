//! NICs.

use crate::answer::{RESOURCE, code};
use crate::descriptor::Descriptor;
use crate::handles::{Handle, Kind, make};
use crate::layout::{ErrorDescriptor, host_bytes};
use crate::orders::Notifier;
use cci::Context;
use cci_mem::boundary::uncancelled;
use cci_mem::mutex::lock;
use cci_via::engine::Core;
use cci_via::{Asking, Error, FaultCode};
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex};

/// What the program calls when something goes wrong outside of its calls.
pub(crate) type ErrorHandler = unsafe extern "C" fn(*mut c_void, *mut ErrorDescriptor);

/// An error handler, and its context.
pub(crate) type Told = (ErrorHandler, usize);

/// A NIC of a C program.
pub(crate) struct Nic {
    pub(crate) core: Core<Descriptor>,
    pub(crate) number: u32,
    pub(crate) name: String,
    /// Of the host, 4 or 16 bytes.
    pub(crate) address: Vec<u8>,
    /// Clients that have asked, by number; and the last number.
    pub(crate) asking: Mutex<(u32, HashMap<u32, Asking>)>,
    pub(crate) handler: Mutex<Option<Told>>,
    pub(crate) notifier: Notifier,
    pub(crate) has_names: Mutex<bool>,
}

/// Calls an error handler. It prints, as a rule, and a thread that is cancelled there would unwind
/// through the library.
#[cold]
pub(crate) fn tell((handler, context): Told, descriptor: &mut ErrorDescriptor) {
    uncancelled(|| {
        // SAFETY: the program's function, called without any lock.
        unsafe { handler(std::ptr::with_exposed_provenance_mut(context), std::ptr::from_mut(descriptor)) };
    });
}

impl Nic {
    pub(crate) fn open(name: &str, number: u32) -> Result<Arc<Self>, c_int> {
        let context = Context::new().map_err(|_| RESOURCE)?;
        let device = match context.devices().iter().find(|device| device.name == name) {
            Some(device) => device,
            None => context.default_device().map_err(|_| RESOURCE)?,
        };
        let core = Core::open(device).map_err(|_| RESOURCE)?;
        let address = host_bytes(core.host());
        Ok(Arc::new(Self {
            core,
            number,
            name: device.name.clone(),
            address,
            asking: Mutex::new((0, HashMap::new())),
            handler: Mutex::new(None),
            notifier: Notifier::new(),
            has_names: Mutex::new(false),
        }))
    }

    pub(crate) fn handle(&self) -> Handle {
        make(Kind::Nic, self.number, 0)
    }

    /// The code of a refusal, after the program has been told of faults.
    #[cold]
    pub(crate) fn refused(&self, why: Error) -> c_int {
        self.tell_faults();
        code(why)
    }

    /// Calls the error handler for each fault that it has not been called for.
    #[cold]
    pub(crate) fn tell_faults(&self) {
        let Some(told) = *lock(&self.handler) else { return };
        while let Some(fault) = self.core.fault() {
            let object = |kind, number: Option<u32>| {
                number.map_or(std::ptr::null_mut(), |number| make(kind, self.number, number))
            };
            let resource = match fault.code {
                FaultCode::Catastrophic => 0,
                FaultCode::Overrun => 2,
                FaultCode::PostDescriptor | FaultCode::CompletionProtection => 3,
                _ => 1,
            };
            let mut descriptor = ErrorDescriptor {
                nic: self.handle(),
                vi: object(Kind::Vi, fault.vi),
                queue: object(Kind::Queue, fault.queue),
                descriptor: std::ptr::null_mut(),
                op_code: 0,
                resource,
                error: fault.code as c_int,
            };
            tell(told, &mut descriptor);
        }
    }

    /// The error handler, unless a thread has its lock.
    pub(crate) fn try_handler(&self) -> Option<Told> {
        *self.handler.try_lock().ok()?
    }
}
