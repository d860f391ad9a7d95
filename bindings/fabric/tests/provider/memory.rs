//! Structures of a program of any version, behind each of which no memory is mapped.

use cci_fabric_sys::*;
use std::ptr::{NonNull, null_mut};

/// Memory that ends where a page ends that is followed by one that nobody may touch.
pub(crate) struct Ending {
    pages: NonNull<libc::c_void>,
    page: usize,
    at: *mut u8,
}

impl Ending {
    fn new(len: usize) -> Self {
        let page = rustix::param::page_size();
        assert!(len <= page);
        let all = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: new memory.
        let pages = unsafe { libc::mmap(null_mut(), 2 * page, all, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0) };
        assert_ne!(pages, libc::MAP_FAILED);
        // SAFETY: the second page of it.
        let done = unsafe { libc::mprotect(pages.byte_add(page), page, libc::PROT_NONE) };
        assert_eq!(done, 0);
        // SAFETY: within the first page.
        let at = unsafe { pages.cast::<u8>().add(page - len) };
        Self { pages: NonNull::new(pages).expect("no memory lies at 0"), page, at }
    }

    /// So much of a structure as a version has.
    fn of<T: Layout>(version: u32) -> (Self, *mut T) {
        let memory = Self::new(size_at::<T>(version));
        let at = memory.at.cast();
        (memory, at)
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        // SAFETY: memory of `new`.
        unsafe { libc::munmap(self.pages.as_ptr(), 2 * self.page) };
    }
}

/// Hints of a program that was built for a version: all is 0 at first.
pub(crate) struct Hints {
    pub(crate) version: u32,
    pub(crate) info: *mut fi_info,
    _memory: [Ending; 6],
}

impl Hints {
    pub(crate) fn new(version: u32) -> Self {
        let (whole, info) = Ending::of::<fi_info>(version);
        let ((a, tx_attr), (b, rx_attr)) = (Ending::of(version), Ending::of(version));
        let ((c, ep_attr), (d, domain_attr), (e, fabric_attr)) =
            (Ending::of(version), Ending::of(version), Ending::of(version));
        // SAFETY: fields that each version has, of memory that is 0.
        unsafe {
            (&raw mut (*info).tx_attr).write(tx_attr);
            (&raw mut (*info).rx_attr).write(rx_attr);
            (&raw mut (*info).ep_attr).write(ep_attr);
            (&raw mut (*info).domain_attr).write(domain_attr);
            (&raw mut (*info).fabric_attr).write(fabric_attr);
        }
        Self { version, info, _memory: [whole, a, b, c, d, e] }
    }
}
