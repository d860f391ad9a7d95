//! The library: its types, its calls, and what keeps memory that it was given.

#![allow(unsafe_code)]

use cci_mem::memory::Memory;
use cci_over::Loaded;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::null;

/// `ptl_process_id_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Process {
    pub(crate) nid: u32,
    pub(crate) pid: u32,
}

impl Process {
    const ANY: Self = Self { nid: u32::MAX, pid: u32::MAX };
}

#[repr(C)]
struct Limits([c_int; 8]);

/// `ptl_md_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Descriptor {
    start: *mut c_void,
    length: u64,
    threshold: c_int,
    max_size: u64,
    options: c_uint,
    user: *mut c_void,
    queue: u32,
}

/// `ptl_event_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct CEvent {
    kind: c_uint,
    initiator: Process,
    uid: u32,
    jid: u32,
    portal: u32,
    bits: u64,
    rlength: u64,
    mlength: u64,
    offset: u64,
    memory: u32,
    descriptor: Descriptor,
    header: u64,
    link: u32,
    failure: u32,
    sequence: u32,
}

const _: () = assert!(size_of::<usize>() != 8 || (size_of::<Descriptor>() == 56 && size_of::<CEvent>() == 144));

/// What has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    PutEnd,
    ReplyEnd,
    SendEnd,
    Ack,
    Unlink,
    /// Nothing that this transport asks for.
    Other,
}

/// An event of the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) kind: Kind,
    pub(crate) initiator: Process,
    pub(crate) bits: u64,
    pub(crate) header: u64,
    pub(crate) offset: u64,
    pub(crate) len: u64,
    /// What the memory descriptor was made with.
    pub(crate) user: u64,
    pub(crate) has_failed: bool,
}

/// A code of the library, not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) c_int);

impl Code {
    const EQ_DROPPED: c_int = 2;
    const EQ_EMPTY: c_int = 3;
    pub(crate) const MD_IN_USE: Self = Self(10);
    pub(crate) const ME_IN_USE: Self = Self(13);
    pub(crate) const NO_SPACE: Self = Self(17);
    /// The interface was open: the handle is valid.
    const IFACE_DUP: c_int = 25;
    /// Of our library: its device is one that uses another library.
    pub(crate) const IFACE_CYCLE: Self = Self(26);
}

/// Options of a memory descriptor.
pub(crate) mod options {
    pub(crate) const PUT: u32 = 1;
    pub(crate) const GET: u32 = 2;
    pub(crate) const MANAGE_REMOTE: u32 = 4;
    pub(crate) const MAX_SIZE: u32 = 0x40;
    pub(crate) const NO_START: u32 = 0x80;
}

const FOREVER: c_int = -1;
const NO_QUEUE: u32 = 0xbfff_ffff;
/// The last match entry of a list.
const AFTER: c_uint = 1;
const UNLINK: c_uint = 1;
const RETAIN: c_uint = 0;

cci_over::calls! {
    init: c"PtlInit", fn(*mut c_int);
    ni_init: c"PtlNIInit", fn(u32, u32, *mut Limits, *mut Limits, *mut u32);
    ni_fini: c"PtlNIFini", fn(u32);
    ni_status: c"PtlNIStatus", fn(u32, u32, *mut u64);
    get_id: c"PtlGetId", fn(u32, *mut Process);
    me_attach: c"PtlMEAttach", fn(u32, u32, Process, u64, u64, c_uint, c_uint, *mut u32);
    me_unlink: c"PtlMEUnlink", fn(u32);
    md_attach: c"PtlMDAttach", fn(u32, Descriptor, c_uint, *mut u32);
    md_bind: c"PtlMDBind", fn(u32, Descriptor, c_uint, *mut u32);
    md_unlink: c"PtlMDUnlink", fn(u32);
    eq_alloc: c"PtlEQAlloc", fn(u32, u64, *const c_void, *mut u32);
    eq_free: c"PtlEQFree", fn(u32);
    eq_get: c"PtlEQGet", fn(u32, *mut CEvent);
    eq_poll: c"PtlEQPoll", fn(*const u32, c_int, u32, *mut CEvent, *mut c_int);
    put_region: c"PtlPutRegion", fn(u32, u64, u64, c_uint, Process, u32, u32, u64, u64, u64);
    get: c"PtlGet", fn(u32, Process, u32, u32, u64, u64);
}

/// A library of Portals, loaded for the life of the process.
pub(crate) struct Library {
    calls: Calls,
    /// Names of codes, if it has them.
    name_of: Option<unsafe extern "C" fn(c_int) -> *const c_char>,
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Library")
    }
}

/// An open interface of a library.
#[derive(Debug)]
pub(crate) struct Interface {
    library: Library,
    handle: u32,
    /// Which process this is.
    pub(crate) own: Process,
}

fn checked(code: c_int) -> Result<(), Code> {
    if code == 0 { Ok(()) } else { Err(Code(code)) }
}

impl Library {
    /// Loads a library.
    ///
    /// # Errors
    ///
    /// A sentence: there is no such library, or it lacks a call.
    pub(crate) fn load(name: &str) -> Result<Self, String> {
        let library = Loaded::open(name, "Portals")?;
        // SAFETY: whoever names the library vouches for what it is, with the types of the
        // specification.
        let calls = unsafe { Calls::of(&library)? };
        // SAFETY: as above. An extension, which a library may lack.
        let name_of = unsafe { library.function(c"PtlErrorStr") }.ok();
        Ok(Self { calls, name_of })
    }

    /// The name of a code.
    pub(crate) fn name_of(&self, code: Code) -> String {
        let Some(name_of) = self.name_of else { return format!("code {}", code.0) };
        // SAFETY: any number.
        let name = unsafe { name_of(code.0) };
        // SAFETY: NULL, or a string that stays.
        let name = unsafe { name.as_ref().map(|name| CStr::from_ptr(name)) };
        name.map_or_else(|| format!("code {}", code.0), |name| name.to_string_lossy().into_owned())
    }

    /// Opens an interface.
    ///
    /// # Errors
    ///
    /// The library's code, and its name.
    pub(crate) fn open(self, interface: u32, pid: Option<u32>) -> Result<Interface, (Code, String)> {
        match self.begin(interface, pid) {
            Ok((handle, own)) => Ok(Interface { library: self, handle, own }),
            Err(code) => Err((code, self.name_of(code))),
        }
    }

    fn begin(&self, interface: u32, pid: Option<u32>) -> Result<(u32, Process), Code> {
        let mut most = 0;
        // SAFETY: a place for a number.
        checked(unsafe { (self.calls.init)(&raw mut most) })?;
        // Entries, descriptors, queues; the rest as the library has it.
        let mut desired = Limits([32_768, 65_536, 1_024, 63, 255, 16, 32_768, 64]);
        let (mut handle, pid) = (0, pid.unwrap_or(u32::MAX));
        // SAFETY: limits, and a place for a handle.
        let code =
            unsafe { (self.calls.ni_init)(interface, pid, &raw mut desired, std::ptr::null_mut(), &raw mut handle) };
        if code != Code::IFACE_DUP {
            checked(code)?;
        }
        let mut own = Process::default();
        // SAFETY: a place for an identifier.
        checked(unsafe { (self.calls.get_id)(handle, &raw mut own) })?;
        Ok((handle, own))
    }
}

/// A memory descriptor: bound, or with its match entry. It keeps the memory until the library
/// touches it no more: where [`Interface::release`] has not taken it, for ever.
#[derive(Debug)]
pub(crate) struct Bound {
    entry: Option<u32>,
    handle: u32,
    memory: ManuallyDrop<Memory>,
}

/// What a memory descriptor is made with.
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) options: u32,
    /// `None`: any number of operations.
    pub(crate) threshold: Option<u32>,
    pub(crate) max_size: u64,
    pub(crate) user: u64,
    /// Where its events go, if anywhere.
    pub(crate) queue: Option<u32>,
}

impl Bound {
    /// Frees the memory after the end of its interface, which touches nothing any more.
    pub(crate) fn free(self) {
        drop(ManuallyDrop::into_inner(self.memory));
    }
}

impl Interface {
    /// The name of a code.
    pub(crate) fn name_of(&self, code: Code) -> String {
        self.library.name_of(code)
    }

    fn descriptor(memory: &Memory, wanted: &Wanted) -> Descriptor {
        let Wanted { options, threshold, max_size, user, queue } = *wanted;
        Descriptor {
            start: std::ptr::with_exposed_provenance_mut(memory.start()),
            length: memory.len(),
            threshold: threshold.and_then(|count| c_int::try_from(count).ok()).unwrap_or(FOREVER),
            max_size,
            options,
            user: std::ptr::without_provenance_mut(user as usize),
            queue: queue.unwrap_or(NO_QUEUE),
        }
    }

    /// Binds memory that operations of this process use.
    pub(crate) fn bind(&self, memory: Memory, wanted: &Wanted) -> Result<Bound, Code> {
        let mut handle = 0;
        let descriptor = Self::descriptor(&memory, wanted);
        // SAFETY: the memory stays valid as long as the result, which `release` keeps until the
        // library has unlinked it.
        checked(unsafe { (self.library.calls.md_bind)(self.handle, descriptor, RETAIN, &raw mut handle) })?;
        Ok(Bound { entry: None, handle, memory: ManuallyDrop::new(memory) })
    }

    /// Attaches memory at the end of the list of a portal index. `spends`: it is unlinked by
    /// itself.
    pub(crate) fn attach(
        &self,
        (portal, bits, ignore): (u32, u64, u64),
        memory: Memory,
        wanted: &Wanted,
        spends: bool,
    ) -> Result<Bound, Code> {
        let unlink = if spends { UNLINK } else { RETAIN };
        let mut entry = 0;
        // SAFETY: a place for a handle.
        checked(unsafe {
            (self.library.calls.me_attach)(
                self.handle,
                portal,
                Process::ANY,
                bits,
                ignore,
                unlink,
                AFTER,
                &raw mut entry,
            )
        })?;
        let mut handle = 0;
        let descriptor = Self::descriptor(&memory, wanted);
        // An entry takes along a descriptor that would unlink itself. SAFETY: as in `bind`.
        let attached = checked(unsafe { (self.library.calls.md_attach)(entry, descriptor, UNLINK, &raw mut handle) });
        if let Err(code) = attached {
            // SAFETY: any handle.
            let _ = unsafe { (self.library.calls.me_unlink)(entry) };
            return Err(code);
        }
        Ok(Bound { entry: Some(entry), handle, memory: ManuallyDrop::new(memory) })
    }

    /// Unlinks memory, and frees it. It comes back while an operation uses it.
    pub(crate) fn release(&self, bound: Bound) -> Result<(), Bound> {
        // SAFETY: any handle.
        let code = unsafe {
            match bound.entry {
                Some(entry) => (self.library.calls.me_unlink)(entry),
                None => (self.library.calls.md_unlink)(bound.handle),
            }
        };
        // It has unlinked itself, or the interface is gone, where there is another code.
        if [Code::MD_IN_USE, Code::ME_IN_USE].contains(&Code(code)) {
            return Err(bound);
        }
        drop(ManuallyDrop::into_inner(bound.memory));
        Ok(())
    }

    /// Makes a queue.
    pub(crate) fn queue(&self, count: u64) -> Result<u32, Code> {
        let mut handle = 0;
        // SAFETY: no handler, and a place for a handle.
        checked(unsafe { (self.library.calls.eq_alloc)(self.handle, count, null(), &raw mut handle) })?;
        Ok(handle)
    }

    /// Frees a queue: who waits for it goes on.
    pub(crate) fn free_queue(&self, queue: u32) {
        // SAFETY: any handle.
        let _ = unsafe { (self.library.calls.eq_free)(queue) };
    }

    /// Makes progress, and takes the oldest event.
    #[inline]
    pub(crate) fn event(&self, queue: u32) -> Result<Option<Event>, Code> {
        let mut event = NO_EVENT;
        // SAFETY: a place for an event.
        let code = unsafe { (self.library.calls.eq_get)(queue, &raw mut event) };
        if code == Code::EQ_EMPTY { Ok(None) } else { taken(code, &event).map(Some) }
    }

    /// Waits for an event. Blocks.
    pub(crate) fn wait(&self, queue: u32) -> Result<Event, Code> {
        let (mut event, mut which) = (NO_EVENT, 0);
        // SAFETY: one queue, and places for the results.
        let code =
            unsafe { (self.library.calls.eq_poll)(&raw const queue, 1, u32::MAX, &raw mut event, &raw mut which) };
        taken(code, &event)
    }

    /// Makes progress without an event.
    pub(crate) fn progress(&self) {
        let mut count = 0;
        // SAFETY: a place for a number.
        let _ = unsafe { (self.library.calls.ni_status)(self.handle, 0, &raw mut count) };
    }

    /// Puts a part of bound memory.
    #[inline]
    pub(crate) fn put(&self, from: &Bound, (offset, len): (u64, u64), ack: bool, to: &To) -> Result<(), Code> {
        let To { process, portal, bits, offset: remote, header } = *to;
        // SAFETY: handles, numbers.
        checked(unsafe {
            (self.library.calls.put_region)(
                from.handle,
                offset,
                len,
                c_uint::from(!ack),
                process,
                portal,
                0,
                bits,
                remote,
                header,
            )
        })
    }

    /// Gets into all of bound memory.
    pub(crate) fn get(&self, to: &Bound, from: &To) -> Result<(), Code> {
        // SAFETY: handles, numbers.
        checked(unsafe { (self.library.calls.get)(to.handle, from.process, from.portal, 0, from.bits, from.offset) })
    }

    /// Ends the interface: from here on the library touches no memory.
    pub(crate) fn close(&self) {
        // SAFETY: any handle.
        let _ = unsafe { (self.library.calls.ni_fini)(self.handle) };
    }
}

/// Where an operation goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct To {
    pub(crate) process: Process,
    pub(crate) portal: u32,
    pub(crate) bits: u64,
    pub(crate) offset: u64,
    pub(crate) header: u64,
}

const NO_EVENT: CEvent = CEvent {
    kind: 0,
    initiator: Process { nid: 0, pid: 0 },
    uid: 0,
    jid: 0,
    portal: 0,
    bits: 0,
    rlength: 0,
    mlength: 0,
    offset: 0,
    memory: 0,
    descriptor: Descriptor {
        start: std::ptr::null_mut(),
        length: 0,
        threshold: 0,
        max_size: 0,
        options: 0,
        user: std::ptr::null_mut(),
        queue: 0,
    },
    header: 0,
    link: 0,
    failure: 0,
    sequence: 0,
};

#[inline]
fn taken(code: c_int, event: &CEvent) -> Result<Event, Code> {
    // Before this one others were lost: the bounds of the blocks are wrong, or a peer breaks them.
    if code != Code::EQ_DROPPED {
        checked(code)?;
    }
    let kind = match event.kind {
        3 => Kind::PutEnd,
        7 => Kind::ReplyEnd,
        9 => Kind::SendEnd,
        10 => Kind::Ack,
        11 => Kind::Unlink,
        _ => Kind::Other,
    };
    Ok(Event {
        kind,
        initiator: event.initiator,
        bits: event.bits,
        header: event.header,
        offset: event.offset,
        len: event.mlength,
        user: event.descriptor.user.addr() as u64,
        has_failed: event.failure != 0,
    })
}
