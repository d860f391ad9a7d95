//! Structures as C has them.

use cci::Memory;
use cci_portals::{Described, Descriptor, Error, Event, Handle, Limits, ProcessId, options};
use std::ffi::{c_int, c_uint, c_void};

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct CProcess {
    nid: u32,
    pid: u32,
}

impl From<CProcess> for ProcessId {
    fn from(of: CProcess) -> Self {
        Self { nid: of.nid, pid: of.pid }
    }
}

impl From<ProcessId> for CProcess {
    fn from(of: ProcessId) -> Self {
        Self { nid: of.nid, pid: of.pid }
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct CLimits([c_int; 8]);

impl From<CLimits> for Limits {
    fn from(CLimits(of): CLimits) -> Self {
        let [mes, mds, eqs, ac, pt, iovecs, list, swap] = of.map(|number| u32::try_from(number).unwrap_or(0));
        Self {
            max_mes: mes,
            max_mds: mds,
            max_eqs: eqs,
            max_ac_index: ac,
            max_pt_index: pt,
            max_md_iovecs: iovecs,
            max_me_list: list,
            max_getput_md: swap,
        }
    }
}

impl From<Limits> for CLimits {
    fn from(of: Limits) -> Self {
        let all = [
            of.max_mes,
            of.max_mds,
            of.max_eqs,
            of.max_ac_index,
            of.max_pt_index,
            of.max_md_iovecs,
            of.max_me_list,
            of.max_getput_md,
        ];
        Self(all.map(|number| c_int::try_from(number).unwrap_or(c_int::MAX)))
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
struct CPart {
    base: *mut c_void,
    len: u64,
}

/// `ptl_md_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct CDescriptor {
    start: *mut c_void,
    length: u64,
    threshold: c_int,
    max_size: u64,
    options: c_uint,
    user: *mut c_void,
    queue: u32,
}

/// The bits that the specification has.
const KNOWN: c_uint = 0x1ff;
/// Bits of the Cray dialect, which ask for UNLINK events.
const AUTO_UNLINK: c_uint = 0x1_0000;
const MANUAL_UNLINK: c_uint = 0x2_0000;
/// Parts are read up to this number; the engine refuses more than its own limit.
const MOST_PARTS: u64 = 1_024;

impl CDescriptor {
    /// The memory that the program states, checked as far as can be. `is_cray`: UNLINK events come
    /// only where they are asked for.
    ///
    /// # Safety
    ///
    /// The memory is the program's, and stays mapped as long as the memory descriptor lives; with
    /// `PTL_MD_IOVEC`, `start` leads to as many parts.
    pub(crate) unsafe fn descriptor(&self, is_cray: bool) -> Result<Descriptor, Error> {
        if self.options & !(KNOWN | AUTO_UNLINK | MANUAL_UNLINK) != 0 {
            return Err(Error::IllegalMemory);
        }
        let memory = if self.options & options::IOVEC == 0 {
            // SAFETY: the memory is the program's, and stays mapped as long as the memory
            // descriptor.
            unsafe { memory_of(self.start, self.length) }?.into_iter().collect()
        } else {
            if self.length > MOST_PARTS || (self.length > 0 && self.start.is_null()) {
                return Err(Error::IllegalMemory);
            }
            let parts = self.start.cast::<CPart>();
            let mut memory = Vec::with_capacity(self.length as usize);
            for index in 0..self.length as usize {
                // SAFETY: not NULL, as checked above, and one of as many parts; of any alignment.
                let part = unsafe { parts.add(index).read_unaligned() };
                // SAFETY: the memory of each part stays mapped as long as the memory descriptor.
                memory.push(unsafe { memory_of(part.base, part.len) }?.unwrap_or_else(Memory::none));
            }
            memory
        };
        // Where both ends are disabled, the reference leaves no event at all.
        let no_ends = options::EVENT_START_DISABLE | options::EVENT_END_DISABLE;
        let is_quiet = if is_cray { self.options & AUTO_UNLINK == 0 } else { self.options & no_ends == no_ends };
        let described = Described {
            start: self.start.expose_provenance() as u64,
            length: self.length,
            threshold: self.threshold,
            max_size: self.max_size,
            options: self.options | if is_quiet { options::EVENT_UNLINK_DISABLE } else { 0 },
            user: self.user.expose_provenance() as u64,
            queue: Handle::from_bits(self.queue),
        };
        Ok(Descriptor::of(memory, described))
    }
}

/// Memory of a program; none where the length is 0.
///
/// # Safety
///
/// As [`CDescriptor::descriptor`].
unsafe fn memory_of(start: *mut c_void, len: u64) -> Result<Option<Memory>, Error> {
    if len == 0 {
        return Ok(None);
    }
    let is_range = usize::try_from(len).is_ok_and(|len| start.addr().checked_add(len).is_some());
    if start.is_null() || !is_range {
        return Err(Error::IllegalMemory);
    }
    // SAFETY: not NULL, and the memory stays mapped as long as the memory descriptor lives.
    Ok(Some(unsafe { Memory::new(start.cast(), len) }))
}

impl From<Described> for CDescriptor {
    fn from(of: Described) -> Self {
        Self {
            start: std::ptr::with_exposed_provenance_mut(of.start as usize),
            length: of.length,
            threshold: of.threshold,
            max_size: of.max_size,
            options: of.options & !options::EVENT_UNLINK_DISABLE,
            user: std::ptr::with_exposed_provenance_mut(of.user as usize),
            queue: of.queue.bits(),
        }
    }
}

/// `ptl_event_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct CEvent {
    kind: c_uint,
    initiator: CProcess,
    uid: u32,
    jid: u32,
    portal: u32,
    bits: u64,
    rlength: u64,
    mlength: u64,
    offset: u64,
    memory: u32,
    described: CDescriptor,
    header: u64,
    link: u32,
    failure: u32,
    sequence: u32,
}

impl From<Event> for CEvent {
    fn from(of: Event) -> Self {
        Self {
            kind: of.kind as c_uint,
            initiator: of.initiator.into(),
            uid: of.uid,
            jid: of.jid,
            portal: of.portal,
            bits: of.bits,
            rlength: of.rlength,
            mlength: of.mlength,
            offset: of.offset,
            memory: of.memory.bits(),
            described: of.described.into(),
            header: of.header,
            link: of.link,
            failure: of.failure,
            sequence: of.sequence,
        }
    }
}

const _: () = assert!(size_of::<CProcess>() == 8 && size_of::<CLimits>() == 32);
const _: () = assert!(size_of::<usize>() != 8 || (size_of::<CDescriptor>() == 56 && size_of::<CEvent>() == 144));
