//! Virtual devices, nodes and queries.

use crate::answer::{Answer, ILLEGAL_QUERY, Refusal, answer, check, offer};
use crate::flags;
use crate::registry::{Device, Handle, check_adapter, registry};
use cci_mem::sync::{AtomicUsize, Ordering};
use cci_sci::{Error, Nodes};
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::Arc;

/// What `SCI_Q_API` gives.
const VERSION: &[u8] = concat!("SISCI 5 over CCI ", env!("CARGO_PKG_VERSION"), "\0").as_bytes();

pub(crate) unsafe fn initialize(given: c_uint, error: *mut c_uint) {
    let act = || {
        flags::check(given, &[], &[])?;
        registry()?.set_initialised(true);
        Ok(())
    };
    // SAFETY: by the contract of the header.
    unsafe { answer(error, (), act) }
}

pub(crate) unsafe fn terminate() {
    let act = || {
        registry()?.set_initialised(false);
        registry()?.let_go();
        Ok(())
    };
    // SAFETY: nothing is written.
    unsafe { answer(std::ptr::null_mut(), (), act) }
}

pub(crate) unsafe fn open(to: *mut Handle, given: c_uint, error: *mut c_uint) {
    let act = || {
        flags::check(given, &[], &[])?;
        check(to)?;
        let registry = registry()?;
        registry.check()?;
        let handle = registry.next();
        registry.devices.enter(handle, Device { host: registry.host()?, objects: Arc::new(AtomicUsize::new(0)) });
        // SAFETY: by the contract of the header.
        unsafe { offer(to, handle) };
        Ok(())
    };
    // SAFETY: by the contract of the header.
    unsafe { answer(error, (), act) }
}

pub(crate) unsafe fn close(handle: Handle, given: c_uint, error: *mut c_uint) {
    let act = || {
        flags::check(given, &[], &[])?;
        let registry = registry()?;
        let device = registry.devices.find(handle)?;
        // Publishes nothing.
        if device.objects.load(Ordering::Relaxed) > 0 {
            return Err(Error::Busy.into());
        }
        drop((registry.devices.remove(handle), device));
        registry.let_go();
        Ok(())
    };
    // SAFETY: by the contract of the header.
    unsafe { answer(error, (), act) }
}

fn own_node() -> Answer<u32> {
    registry()?.check()?;
    Ok(Nodes::from_environment().map_err(|why| Refusal::from(why.code()))?.own())
}

pub(crate) unsafe fn local_node(adapter: c_uint, to: *mut c_uint, given: c_uint, error: *mut c_uint) {
    let act = || {
        flags::check(given, &[], &[])?;
        check_adapter(adapter)?;
        check(to)?;
        let node = own_node()?;
        // SAFETY: by the contract of the header.
        unsafe { offer(to, node) };
        Ok(())
    };
    // SAFETY: by the contract of the header.
    unsafe { answer(error, (), act) }
}

pub(crate) unsafe fn probe(handle: Handle, adapter: c_uint, node: c_uint, given: c_uint, error: *mut c_uint) -> c_int {
    let act = || {
        flags::check(given, &[], &[])?;
        check_adapter(adapter)?;
        registry()?.devices.find(handle)?.host.probe(node)?;
        Ok(1)
    };
    // SAFETY: by the contract of the header.
    unsafe { answer(error, 0, act) }
}

/// `sci_query_string_t`.
#[repr(C)]
struct CText {
    text: *mut c_char,
    length: c_uint,
}

/// `sci_query_adapter_t`.
#[repr(C)]
struct CAdapter {
    adapter: c_uint,
    _port: c_uint,
    subcommand: c_uint,
    to: *mut c_void,
}

pub(crate) unsafe fn query(command: c_uint, to: *mut c_void, given: c_uint, error: *mut c_uint) {
    let act = || {
        flags::check(given, &[], &[])?;
        check(to)?;
        registry()?.check()?;
        match command {
            1 => {
                // SAFETY: by the contract of the header.
                let CText { text, length } = unsafe { to.cast::<CText>().read_unaligned() };
                check(text)?;
                if (length as usize) < VERSION.len() {
                    return Err(Error::OutOfRange.into());
                }
                // SAFETY: there is room for so many bytes.
                unsafe { std::ptr::copy_nonoverlapping(VERSION.as_ptr(), text.cast(), VERSION.len()) };
            }
            2 => {
                // SAFETY: by the contract of the header.
                let of = unsafe { to.cast::<CAdapter>().read_unaligned() };
                check_adapter(of.adapter)?;
                // Programs leave the port as it is: this query does not read it.
                if of.subcommand != 1 {
                    return Err(ILLEGAL_QUERY);
                }
                check(of.to)?;
                let node = own_node()?;
                // SAFETY: by the contract of the header.
                unsafe { offer(of.to.cast::<c_uint>(), node) };
            }
            _ => return Err(ILLEGAL_QUERY),
        }
        Ok(())
    };
    // SAFETY: by the contract of the header.
    unsafe { answer(error, (), act) }
}

/// A device by its handle.
pub(crate) fn device(handle: Handle) -> Answer<Arc<Device>> {
    registry()?.devices.find(handle)
}
