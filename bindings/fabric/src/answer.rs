//! An answer of `fi_getinfo`, and its form in C: all of it is libc's memory, since the program
//! frees it by its own library.

use crate::record::{LEN, Record};
use cci_fabric_sys::{fi_domain_attr, fi_ep_attr, fi_fabric_attr, fi_info, fi_rx_attr, fi_tx_attr};
use std::ffi::{CStr, c_char, c_void};
use std::ptr::null_mut;

/// Structures whose pointers are filled in by [`Answer::into_libc`].
pub(crate) struct Answer {
    pub(crate) info: fi_info,
    pub(crate) tx: fi_tx_attr,
    pub(crate) rx: fi_rx_attr,
    pub(crate) ep: fi_ep_attr,
    pub(crate) domain: fi_domain_attr,
    pub(crate) fabric: fi_fabric_attr,
    pub(crate) source: Option<Record>,
    pub(crate) destination: Option<Record>,
}

/// The name of the domain and of the fabric.
pub(crate) const NAME: &CStr = c"cci";

/// Copies a value to memory of its own; NULL if there is none.
fn allocated<T: Copy>(value: &T) -> *mut T {
    // SAFETY: any size may be asked for.
    let at: *mut T = unsafe { libc::calloc(1, size_of::<T>()) }.cast();
    if !at.is_null() {
        // SAFETY: as long as a value, and aligned for all of libfabric's.
        unsafe { at.write(*value) };
    }
    at
}

fn name() -> *mut c_char {
    // SAFETY: a text with its end.
    unsafe { libc::strdup(NAME.as_ptr()) }
}

fn address(record: Option<&Record>) -> (*mut c_void, usize) {
    record.map_or((null_mut(), 0), |record| (allocated(record).cast(), LEN))
}

impl Answer {
    /// The answer as `fi_freeinfo` frees it; `None`: there is no memory. Structures have their
    /// newest sizes, of which a program reads what it has.
    pub(crate) fn into_libc(self) -> Option<*mut fi_info> {
        let (src_addr, src_addrlen) = address(self.source.as_ref());
        let (dest_addr, dest_addrlen) = address(self.destination.as_ref());
        let (domain_name, fabric_name) = (name(), name());
        let info = fi_info {
            src_addr,
            src_addrlen,
            dest_addr,
            dest_addrlen,
            tx_attr: allocated(&self.tx),
            rx_attr: allocated(&self.rx),
            ep_attr: allocated(&self.ep),
            domain_attr: allocated(&fi_domain_attr { name: domain_name, ..self.domain }),
            fabric_attr: allocated(&fi_fabric_attr { name: fabric_name, ..self.fabric }),
            ..self.info
        };
        let mut parts = vec![domain_name.cast(), fabric_name.cast(), info.tx_attr.cast(), info.rx_attr.cast()];
        parts.extend([info.ep_attr.cast(), info.domain_attr.cast(), info.fabric_attr.cast::<c_void>()]);
        self.source.is_some().then(|| parts.push(src_addr));
        self.destination.is_some().then(|| parts.push(dest_addr));
        let whole = allocated(&info);
        if whole.is_null() || parts.iter().any(|part| part.is_null()) {
            parts.push(whole.cast());
            // SAFETY: each is NULL or memory of libc that nobody else has.
            parts.into_iter().for_each(|part| unsafe { libc::free(part) });
            return None;
        }
        Some(whole)
    }
}
