//! What a forked child has of its parent's NICs: nothing but their error handlers.

use crate::answer::{PARAMETER, RESOURCE};
use crate::handles::{Kind, make};
use crate::layout::ErrorDescriptor;
use crate::nic::{Nic, Told, tell};
use cci_mem::mutex::lock;
use cci_via::FaultCode;
use std::ffi::c_int;
use std::sync::{Arc, Mutex};

/// The NICs of the process that forked. Their locks may be held for ever here, so that nothing of
/// them is used.
pub(crate) struct Inherited {
    /// Their last number.
    last: u32,
    /// The error handlers that were not called yet, by NIC.
    handlers: Mutex<Vec<(u32, Told)>>,
}

impl Inherited {
    /// `open`: what is open in the parent. None where a thread of it opened or closed one.
    pub(crate) fn new(last: u32, open: &[Arc<Nic>]) -> Self {
        let handlers = open.iter().filter_map(|nic| Some((nic.number, nic.try_handler()?))).collect();
        Self { last, handlers: Mutex::new(handlers) }
    }

    /// The code for a handle that leads to no NIC of this process. One of the parent's is a NIC
    /// that has failed, which its error handler is told once.
    #[cold]
    pub(crate) fn refuse(&self, number: u32) -> c_int {
        if number == 0 || number > self.last {
            return PARAMETER;
        }
        let mut handlers = lock(&self.handlers);
        let at = handlers.iter().position(|(nic, _)| *nic == number);
        let told = at.map(|at| handlers.swap_remove(at).1);
        drop(handlers);
        if let Some(told) = told {
            let mut descriptor = ErrorDescriptor {
                nic: make(Kind::Nic, number, 0),
                vi: std::ptr::null_mut(),
                queue: std::ptr::null_mut(),
                descriptor: std::ptr::null_mut(),
                op_code: 0,
                resource: 0,
                error: FaultCode::Catastrophic as c_int,
            };
            tell(told, &mut descriptor);
        }
        RESOURCE
    }
}
