//! What a rank does for others with its own memory, whatever their requests come by.

use crate::frame::{Ask, Header};
use crate::layout::count_of;
use crate::sys::{self, Change, Target, Windows};
use cci_mem::sync::Ordering;
use std::rc::Rc;

/// The longest payload of a message, bytes.
pub(crate) const LONGEST: usize = 8192;

/// The memory of this rank, as others reach it.
pub(crate) struct Server {
    me: u32,
    procs: u32,
    windows: Rc<Windows>,
}

impl Server {
    pub(crate) fn new(me: u32, procs: u32, windows: Rc<Windows>) -> Self {
        Self { me, procs, windows }
    }

    pub(crate) fn procs(&self) -> u32 {
        self.procs
    }

    /// Does what a rank asks. Returns the header of the answer; its bytes, if it has some, are in
    /// `bytes`.
    pub(crate) fn serve(&self, rank: u32, header: Header, payload: &[u8], bytes: &mut Vec<u8>) -> Header {
        bytes.clear();
        let value = match header.ask {
            Ask::Read(len) => {
                bytes.resize(usize::try_from(len).unwrap_or(0).min(LONGEST), 0);
                self.copy_here(header.address, bytes).then_some(0)
            }
            Ask::Write => self.write_here(header.address, payload).then_some(0),
            Ask::Store => self.write_here(header.address, payload).then(|| {
                let count = self.windows.own_word(count_of(rank, header.address));
                count.store(count.load(Ordering::Relaxed).wrapping_add(payload.len() as u64), Ordering::Release);
                0
            }),
            Ask::Change(size, change) => self.change_here(header.address, size.into(), change),
            Ask::Wake | Ask::Answer(..) | Ask::Lost(_) => None,
        };
        if value.is_none() {
            bytes.clear();
        }
        Header { ask: Ask::Answer(value.is_some(), value.unwrap_or(0)), ..header }
    }

    /// Copies out of this rank's memory, at an address that a peer has named.
    fn copy_here(&self, address: u64, bytes: &mut [u8]) -> bool {
        self.windows.read(self.me, address, Target::of(bytes)) || sys::copy_from(address, bytes)
    }

    /// Copies into this rank's memory, at an address that a peer has named.
    fn write_here(&self, address: u64, bytes: &[u8]) -> bool {
        self.windows.write(self.me, address, bytes) || sys::copy_to(address, bytes)
    }

    /// Changes a word of this rank's memory that a peer has named.
    fn change_here(&self, address: u64, size: usize, change: Change) -> Option<u64> {
        if !matches!(size, 4 | 8) || !address.is_multiple_of(size as u64) {
            return None;
        }
        let mapped = self.windows.change(self.me, address, size, change);
        mapped.or_else(|| sys::change_checked(address, size, change))
    }
}
