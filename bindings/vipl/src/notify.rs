//! Handlers that run when a descriptor completes: a thread of each NIC that has any.

use crate::answer::{Answer, PARAMETER, RESOURCE};
use crate::handles::{Handle, Kind, make};
use crate::nic::Nic;
use crate::orders::{DescriptorHandler, Notifier, QueueHandler, Wanted};
use crate::table;
use cci_mem::boundary::uncancelled;
use cci_mem::mutex::lock;
use cci_mem::quiet_thread;
use cci_via::engine::Taken;
use std::ffi::c_void;
use std::sync::{Arc, PoisonError};

impl Notifier {
    fn order(&self, nic: &Arc<Nic>, wanted: Wanted, context: *mut c_void) -> Answer {
        let mut orders = lock(&self.orders);
        if orders.thread.is_none() {
            let nic = Arc::clone(nic);
            let thread = quiet_thread::spawn("vipl-notify", quiet_thread::STACK, move || run(&nic));
            orders.thread = Some(thread.map_err(|_| RESOURCE)?);
        }
        orders.wanted.push_back((wanted, context.expose_provenance()));
        drop(orders);
        self.ordered.notify_one();
        nic.core.nudge();
        Ok(())
    }

    /// Ends the thread, unless it is the one that calls.
    pub(crate) fn stop(&self, nic: &Nic) {
        let mut orders = lock(&self.orders);
        orders.is_over = true;
        orders.wanted.clear();
        let thread = orders.thread.take();
        drop(orders);
        self.ordered.notify_one();
        nic.core.nudge();
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != std::thread::current().id()) {
            // It catches what its calls panic with.
            let _ = thread.join();
        }
    }
}

fn run(nic: &Arc<Nic>) {
    loop {
        // Before the orders are read: a later one ends the wait.
        let seen = nic.core.changes();
        let mut orders = lock(&nic.notifier.orders);
        while orders.wanted.is_empty() && !orders.is_over {
            orders = nic.notifier.ordered.wait(orders).unwrap_or_else(PoisonError::into_inner);
        }
        if orders.is_over {
            return;
        }
        let wanted: Vec<_> = orders.wanted.iter().copied().collect();
        drop(orders);
        // The first order of each queue gets its first completion.
        let served =
            wanted.iter().enumerate().find_map(|(at, (wanted, context))| Some((at, serve(nic, *wanted, *context)?)));
        match served {
            Some((at, call)) => {
                let mut orders = lock(&nic.notifier.orders);
                if orders.is_over {
                    return;
                }
                orders.wanted.remove(at);
                drop(orders);
                call();
                nic.tell_faults();
            }
            None => {
                nic.tell_faults();
                // An order counts as a change too.
                nic.core.wait_change(seen);
            }
        }
    }
}

/// What to call, if its time has come: nothing, for what is gone.
fn serve(nic: &Arc<Nic>, wanted: Wanted, context: usize) -> Option<Box<dyn FnOnce()>> {
    let (own, number) = (nic.handle(), nic.number);
    let context: *mut c_void = std::ptr::with_exposed_provenance_mut(context);
    match wanted {
        Wanted::Descriptor { vi, is_receive, handler } => match nic.core.take(vi, is_receive) {
            Ok(Taken::Done(_, token)) => Some(Box::new(move || {
                let descriptor = std::ptr::with_exposed_provenance_mut(token.0);
                uncancelled(|| {
                    // SAFETY: the program's function, called without any lock.
                    unsafe { handler(context, own, make(Kind::Vi, number, vi), descriptor) }
                });
            })),
            Ok(_) => None,
            Err(_) => Some(Box::new(|| {})),
        },
        Wanted::Entry { queue, handler } => match nic.core.take_entry(queue) {
            Ok(Some((vi, is_receive))) => Some(Box::new(move || {
                uncancelled(|| {
                    // SAFETY: the program's function, called without any lock.
                    unsafe { handler(context, own, make(Kind::Vi, number, vi), is_receive.into()) }
                });
            })),
            Ok(None) => None,
            Err(_) => Some(Box::new(|| {})),
        },
    }
}

pub(crate) fn descriptor(
    handle: Handle,
    context: *mut c_void,
    handler: Option<DescriptorHandler>,
    is_receive: bool,
) -> Answer {
    let (nic, vi) = table::open(Kind::Vi, handle)?;
    let handler = handler.ok_or(PARAMETER)?;
    nic.core.query_vi(vi).map_err(crate::answer::code)?;
    nic.notifier.order(&nic, Wanted::Descriptor { vi, is_receive, handler }, context)
}

pub(crate) fn entry(handle: Handle, context: *mut c_void, handler: Option<QueueHandler>) -> Answer {
    let (nic, queue) = table::open(Kind::Queue, handle)?;
    let handler = handler.ok_or(PARAMETER)?;
    if !nic.core.has_queue(queue) {
        return Err(PARAMETER);
    }
    nic.notifier.order(&nic, Wanted::Entry { queue, handler }, context)
}
