//! What a program asks for: its structures, as far as its version has them.

use cci_fabric_sys::{Layout, fi_domain_attr, fi_ep_attr, fi_fabric_attr, fi_info, fi_rx_attr, fi_tx_attr, size_at};
use std::ffi::{CStr, CString, c_char, c_void};
use std::mem::MaybeUninit;

/// A copy of the hints. What the program does not ask for, and what its version does not have, is
/// 0. Pointers in it are the program's, and are not followed again.
pub(crate) struct Hints {
    pub(crate) info: fi_info,
    pub(crate) tx: fi_tx_attr,
    pub(crate) rx: fi_rx_attr,
    pub(crate) ep: fi_ep_attr,
    pub(crate) domain: fi_domain_attr,
    /// Names of a domain and of a fabric.
    pub(crate) domain_name: Option<CString>,
    pub(crate) fabric_name: Option<CString>,
    pub(crate) source: Option<Vec<u8>>,
    pub(crate) destination: Option<Vec<u8>>,
}

/// Copies a structure of a program as far as its version has it; the rest is 0.
///
/// # Safety
///
/// `from` is NULL or leads to a structure as this version has it, for the time of the call.
pub(crate) unsafe fn read<T: Layout + Copy>(from: *const T, version: u32) -> T {
    let mut whole = MaybeUninit::<T>::zeroed();
    if !from.is_null() {
        // SAFETY: the program has this much, and no version has more than the newest one.
        unsafe { from.cast::<u8>().copy_to_nonoverlapping(whole.as_mut_ptr().cast(), size_at::<T>(version)) };
    }
    // SAFETY: layouts of libfabric are numbers, pointers and optional functions, which 0 is.
    unsafe { whole.assume_init() }
}

impl Hints {
    /// The hints of a program; `None`: it has none.
    ///
    /// # Safety
    ///
    /// As `read`, also for the structures that the hints lead to.
    pub(crate) unsafe fn read(hints: *const fi_info, version: u32) -> Option<Self> {
        if hints.is_null() {
            return None;
        }
        // SAFETY: the caller's promise, as for all below.
        let info = unsafe { read(hints, version) };
        // SAFETY: likewise.
        let (tx, rx, ep) =
            unsafe { (read(info.tx_attr, version), read(info.rx_attr, version), read(info.ep_attr, version)) };
        // SAFETY: likewise.
        let (domain, fabric): (_, fi_fabric_attr) =
            unsafe { (read::<fi_domain_attr>(info.domain_attr, version), read(info.fabric_attr, version)) };
        // SAFETY: likewise, names have an end, and addresses their lengths.
        Some(unsafe {
            Self {
                domain_name: text(domain.name),
                fabric_name: text(fabric.name),
                source: bytes(info.src_addr, info.src_addrlen),
                destination: bytes(info.dest_addr, info.dest_addrlen),
                info,
                tx,
                rx,
                ep,
                domain,
            }
        })
    }
}

/// Hints that ask for nothing.
impl Default for Hints {
    fn default() -> Self {
        Self {
            info: zero(),
            tx: zero(),
            rx: zero(),
            ep: zero(),
            domain: zero(),
            domain_name: None,
            fabric_name: None,
            source: None,
            destination: None,
        }
    }
}

/// A structure of which all is 0.
pub(crate) fn zero<T: Layout + Copy>() -> T {
    // SAFETY: nothing is read.
    unsafe { read(std::ptr::null(), 0) }
}

/// # Safety
///
/// `at` is NULL or leads to a text with its end.
unsafe fn text(at: *const c_char) -> Option<CString> {
    // SAFETY: the caller's promise.
    (!at.is_null()).then(|| unsafe { CStr::from_ptr(at) }.to_owned())
}

/// # Safety
///
/// `at` is NULL or leads to so many bytes.
unsafe fn bytes(at: *const c_void, len: usize) -> Option<Vec<u8>> {
    // SAFETY: the caller's promise.
    (!at.is_null()).then(|| unsafe { std::slice::from_raw_parts(at.cast(), len) }.to_vec())
}
