//! What a program waits for by handlers, and the thread that calls them.

use crate::handles::Handle;
use std::collections::VecDeque;
use std::ffi::{c_int, c_void};
use std::sync::{Condvar, Mutex};
use std::thread::JoinHandle;

pub(crate) type DescriptorHandler = unsafe extern "C" fn(*mut c_void, Handle, Handle, *mut c_void);
pub(crate) type QueueHandler = unsafe extern "C" fn(*mut c_void, Handle, Handle, c_int);

/// What is waited for, and who is called.
#[derive(Clone, Copy)]
pub(crate) enum Wanted {
    Descriptor { vi: u32, is_receive: bool, handler: DescriptorHandler },
    Entry { queue: u32, handler: QueueHandler },
}

#[derive(Default)]
pub(crate) struct Orders {
    pub(crate) wanted: VecDeque<(Wanted, usize)>,
    pub(crate) thread: Option<JoinHandle<()>>,
    pub(crate) is_over: bool,
}

pub(crate) struct Notifier {
    pub(crate) orders: Mutex<Orders>,
    pub(crate) ordered: Condvar,
}

impl Notifier {
    pub(crate) fn new() -> Self {
        Self { orders: Mutex::new(Orders::default()), ordered: Condvar::new() }
    }
}
