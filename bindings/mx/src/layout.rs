//! Structures of the header.

use crate::answer::{ErrorHandler, Refusal};
use cci::__binding::Source;
use cci::{Memory, View};
use cci_mx::{Address, Buffer, Error, MAX_SEGMENTS, Segments, Status};
use std::ffi::{c_uint, c_void};

/// `mx_endpoint_addr_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct CAddress {
    stuff: [u64; 2],
}

impl From<Address> for CAddress {
    fn from(of: Address) -> Self {
        Self { stuff: [of.name(), of.session().into()] }
    }
}

impl From<CAddress> for Address {
    fn from(of: CAddress) -> Self {
        Self::new(of.stuff[0] >> 32, of.stuff[0] as u32, of.stuff[1] as u32)
    }
}

/// `mx_status_t`.
#[repr(C)]
pub(crate) struct CStatus {
    code: c_uint,
    source: CAddress,
    bits: u64,
    length: u32,
    copied: u32,
    context: *mut c_void,
}

/// Of `mx_segment_t`, which has padding behind.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct CSegment {
    start: *mut u8,
    length: u32,
}

const _: () = assert!(size_of::<CAddress>() == 16 && size_of::<CStatus>() == 48 && size_of::<CSegment>() == 16);

impl From<Status> for CStatus {
    fn from(of: Status) -> Self {
        Self {
            code: of.code.code(),
            source: of.source.into(),
            bits: of.bits,
            length: of.length,
            copied: of.copied,
            context: std::ptr::with_exposed_provenance_mut(of.context as usize),
        }
    }
}

// SAFETY: by the contract of the header the memory is the library's until the request has ended,
// whichever thread that is on.
unsafe impl Send for CSegment {}

impl CSegment {
    fn has(&self, offset: usize, len: usize) -> bool {
        offset.checked_add(len).is_some_and(|end| end <= self.length as usize)
    }
}

impl Buffer for CSegment {
    #[inline]
    fn len(&self) -> usize {
        self.length as usize
    }

    #[inline]
    fn copy_out(&self, offset: usize, target: &mut [u8]) -> bool {
        let is_inside = self.has(offset, target.len());
        if is_inside && !target.is_empty() {
            // SAFETY: inside of memory that the program gave for this; not that of `target`, which
            // is the library's own.
            unsafe { std::ptr::copy_nonoverlapping(self.start.add(offset), target.as_mut_ptr(), target.len()) };
        }
        is_inside
    }

    #[inline]
    fn copy_in(&self, offset: usize, bytes: &[u8]) -> bool {
        let is_inside = self.has(offset, bytes.len());
        if is_inside && !bytes.is_empty() {
            // SAFETY: inside of memory that the program gave for this; not that of `bytes`, which
            // is the library's own.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.add(offset), bytes.len()) };
        }
        is_inside
    }

    fn copy_view(&self, offset: usize, view: &View<'_>, from: usize, len: usize) -> bool {
        if !self.has(offset, len) {
            return false;
        }
        if len == 0 {
            return true;
        }
        // SAFETY: inside of memory that the program gave for this, and touches by nobody else
        // until the request has ended.
        let target = unsafe { std::slice::from_raw_parts_mut(self.start.add(offset), len) };
        view.copy_to(from, target) == len
    }

    fn source(&self) -> Option<Source<'_>> {
        // SAFETY: memory that the program gave for this until the request has ended.
        Some(unsafe { Source::new(self.start, self.length as usize) })
    }

    fn memory(&self) -> Memory {
        if self.length == 0 {
            return Memory::none();
        }
        // SAFETY: by the contract of the header it stays mapped until the request has ended.
        unsafe { Memory::new(self.start, self.length.into()) }
    }
}

/// The segments of a call.
///
/// # Safety
///
/// `list` is NULL or leads to as many segments, which lead to memory that stays the library's until
/// the request has ended.
#[inline]
pub(crate) unsafe fn segments(list: *const CSegment, count: u32) -> Result<Segments<CSegment>, Refusal> {
    if count == 0 {
        return Ok(Segments::None);
    }
    if list.is_null() {
        return Err(Error::BadSegmentList.into());
    }
    if count as usize > MAX_SEGMENTS {
        return Err(Error::SegmentCount.into());
    }
    let read = |at: usize| {
        // SAFETY: not NULL, as checked above, and one of `count` segments; of any alignment.
        let segment = unsafe { list.add(at).read_unaligned() };
        let is_range = segment.start.addr().checked_add(segment.length as usize).is_some();
        let is_right = segment.length == 0 || (!segment.start.is_null() && is_range);
        if is_right { Ok(segment) } else { Err(Refusal::from(Error::BadSegment)) }
    };
    if count == 1 {
        return read(0).map(Segments::One);
    }
    (0..count as usize).map(read).collect::<Result<Vec<_>, _>>().map(Segments::Many)
}

/// The context id of a parameter.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct CContextId {
    pub(crate) bits: u8,
    pub(crate) shift: u8,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) union CValue {
    pub(crate) handler: Option<ErrorHandler>,
    pub(crate) unexpected_max: u32,
    pub(crate) context_id: CContextId,
    pub(crate) absent_limit: u32,
}

/// `mx_param_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct CParameter {
    pub(crate) key: c_uint,
    pub(crate) value: CValue,
}

const _: () = assert!(size_of::<CParameter>() == 16);
