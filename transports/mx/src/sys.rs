//! The library: its types, its calls, and what keeps memory that it was given.

#![allow(unsafe_code)]

use crate::inbound::Inbound;
use crate::wire::{Address, Place, is_data};
use cci_mem::memory::Memory;
use cci_over::{Class, Loaded};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::{null, null_mut};
use std::sync::Arc;

/// `mx_segment_t`.
#[repr(C)]
struct Segment {
    start: *mut c_void,
    length: u32,
}

/// `mx_status_t`.
#[repr(C)]
struct Status {
    code: c_uint,
    source: Address,
    bits: u64,
    length: u32,
    copied: u32,
    context: *mut c_void,
}

impl Status {
    const EMPTY: Self = Self { code: 0, source: Address([0; 2]), bits: 0, length: 0, copied: 0, context: null_mut() };

    fn end(&self) -> RequestEnd {
        match self.code {
            0 => RequestEnd::Done,
            4 => RequestEnd::Late,
            5 | 14 => RequestEnd::Partial,
            _ => RequestEnd::Gone,
        }
    }

    /// Out of line: where nothing has ended, a load ahead of that answer would wait for the stores
    /// that have just cleared the status.
    #[inline(never)]
    fn finished(&self) -> Finished {
        let token = self.context.addr() as u32;
        Finished { token, end: self.end(), source: self.source, copied: self.copied }
    }
}

/// The value of an `mx_param_t`.
#[repr(C)]
union Value {
    handler: *const c_void,
    number: u32,
}

/// `mx_param_t`.
#[repr(C)]
struct Parameter {
    key: c_uint,
    value: Value,
}

const _: () = assert!(size_of::<usize>() != 8 || (size_of::<Segment>() == 16 && size_of::<Status>() == 48));

/// An endpoint or a request, as the library names it.
type Handle = *mut c_void;
type UnexpectedHandler = unsafe extern "C" fn(*mut c_void, Address, u64, u32, *mut c_void) -> c_uint;

/// A code that a call returns, not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code(c_int);

impl Code {
    const ALREADY_INITIALIZED: Self = Self(3);
    pub(crate) const BUSY: Self = Self(20);
    const BAD_PARAMETER: Self = Self(25);
    /// Of our library: its device is one that uses another library.
    pub(crate) const DEVICE_CYCLE: Self = Self(64);
}

const API: c_int = 0x301;
const ANY: u32 = u32::MAX;
/// A parameter of our library: the endpoint is not that of a rank, whose program joins its job
/// itself.
const OUTSIDE_JOB: c_uint = 64;
/// A parameter of our library: how long a connect is tried that is refused each time, ms.
const ABSENT_LIMIT: c_uint = 65;
/// Long enough for a refusal that is no more than that of one of two connects at once.
const ABSENT_MS: u32 = 1_000;
/// What others name when they connect.
const KEY: u32 = 0x4343_4921;
const RECV_FINISHED: c_uint = 1;
const FOREVER: u32 = 0;

cci_over::calls! {
    init: c"mx__init_api", fn(c_int);
    finalize: c"mx_finalize", fn();
    set_error_handler: c"mx_set_error_handler", fn(*const c_void);
    open: c"mx_open_endpoint", fn(u32, u32, u32, *const Parameter, u32, *mut Handle);
    close: c"mx_close_endpoint", fn(Handle);
    wakeup: c"mx_wakeup", fn(Handle);
    isend: c"mx_isend", fn(Handle, *const Segment, u32, Address, u64, *mut c_void, *mut Handle);
    issend: c"mx_issend", fn(Handle, *const Segment, u32, Address, u64, *mut c_void, *mut Handle);
    irecv: c"mx_irecv", fn(Handle, *const Segment, u32, u64, u64, *mut c_void, *mut Handle);
    test: c"mx_test", fn(Handle, *const Handle, *mut Status, *mut u32);
    cancel: c"mx_cancel", fn(Handle, *const Handle, *mut u32);
    test_any: c"mx_test_any", fn(Handle, u64, u64, *mut Status, *mut u32);
    progress: c"mx_progress", fn(Handle);
    peek: c"mx_peek", fn(Handle, u32, *mut Handle, *mut u32);
    iconnect: c"mx_iconnect", fn(Handle, u64, u32, u32, u64, *mut c_void, *mut Handle);
    get_address: c"mx_get_endpoint_addr", fn(Handle, *mut Address);
    split: c"mx_decompose_endpoint_addr2", fn(Address, *mut u64, *mut u32, *mut u32);
    on_unexpected: c"mx_register_unexp_handler", fn(Handle, UnexpectedHandler, *mut c_void);
}

fn checked(code: c_int) -> Result<(), Code> {
    if code == 0 { Ok(()) } else { Err(Code(code)) }
}

/// A library of MX, loaded for the life of the process.
pub(crate) struct Library {
    calls: Calls,
    text_of: unsafe extern "C" fn(c_int) -> *const c_char,
    /// The error handler that only returns the code.
    returns: *const c_void,
}

// SAFETY: functions of a library that is never unloaded and that any thread may call.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Library")
    }
}

impl Library {
    /// Loads a library.
    ///
    /// # Errors
    ///
    /// A sentence: there is no such library, or it lacks a call.
    pub(crate) fn load(name: &str) -> Result<Self, String> {
        let library = Loaded::open(name, "MX")?;
        // SAFETY: whoever names the library vouches for what it is, with the types of the
        // interface.
        unsafe {
            Ok(Self {
                calls: Calls::of(&library)?,
                text_of: library.function(c"mx_strerror")?,
                returns: library.function(c"MX_ERRORS_RETURN")?,
            })
        }
    }

    /// The text of a code.
    pub(crate) fn text_of(&self, code: Code) -> String {
        // SAFETY: any number.
        let text = unsafe { (self.text_of)(code.0) };
        // SAFETY: NULL, or a string that stays.
        let text = unsafe { text.as_ref().map(|text| CStr::from_ptr(text)) };
        text.map_or_else(|| format!("code {}", code.0), |text| text.to_string_lossy().into_owned())
    }

    /// Initialises the library for this process. False: the program has done that, and ends it too.
    pub(crate) fn begin(&self) -> Result<bool, Code> {
        // A refusal is this transport's matter: the library's own handler would end the program.
        // SAFETY: a handler of the library.
        checked(unsafe { (self.calls.set_error_handler)(self.returns) })?;
        // SAFETY: a number.
        match checked(unsafe { (self.calls.init)(API) }) {
            Ok(()) => Ok(true),
            Err(Code::ALREADY_INITIALIZED) => Ok(false),
            Err(code) => Err(code),
        }
    }

    /// Undoes [`Library::begin`].
    pub(crate) fn finish(&self) {
        // SAFETY: it has no arguments; endpoints that are left are nobody's.
        let _ = unsafe { (self.calls.finalize)() };
    }
}

/// What the handler and the threads of an endpoint share.
struct Shared {
    library: Arc<Library>,
    /// Exposed.
    handle: usize,
    inbound: Inbound,
}

impl Shared {
    fn handle(&self) -> Handle {
        std::ptr::with_exposed_provenance_mut(self.handle)
    }

    fn wake(&self) {
        // SAFETY: any handle.
        let _ = unsafe { (self.library.calls.wakeup)(self.handle()) };
    }
}

/// Takes every message that no receive has matched.
///
/// # Safety
///
/// `context` is a [`Shared`], and `data` is NULL or leads to as many bytes.
unsafe extern "C" fn on_unexpected(
    context: *mut c_void,
    source: Address,
    bits: u64,
    length: u32,
    data: *mut c_void,
) -> c_uint {
    // SAFETY: `End::free` frees it once the endpoint is closed.
    let shared = unsafe { &*context.cast::<Shared>() };
    // Data without a receive are of a transfer that was given up.
    if is_data(bits) {
        return RECV_FINISHED;
    }
    let data = match (length, data.is_null()) {
        (0, _) => Some(&[][..]),
        (_, true) => None,
        // SAFETY: by the contract, until this returns.
        (_, false) => Some(unsafe { std::slice::from_raw_parts(data.cast_const().cast::<u8>(), length as usize) }),
    };
    let is_lossy = crate::wire::header(bits).1 == Class::Unreliable;
    if shared.inbound.push(source, bits, data, is_lossy) {
        shared.wake();
    }
    RECV_FINISHED
}

/// A request that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finished {
    /// What it was begun with.
    pub(crate) token: u32,
    pub(crate) end: RequestEnd,
    /// The peer.
    pub(crate) source: Address,
    /// Bytes of the message that were transferred.
    pub(crate) copied: u32,
}

/// How a request has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestEnd {
    Done,
    /// The time is over.
    Late,
    /// The bytes could not be moved whole.
    Partial,
    /// The peer is gone, or nobody has that name.
    Gone,
}

/// A request under way. It keeps the memory until [`Lent::free`]: where nobody calls that, for
/// ever. That of messages the endpoint keeps.
#[derive(Debug)]
pub(crate) struct Lent {
    /// Exposed.
    request: usize,
    memory: ManuallyDrop<Memory>,
}

impl Lent {
    fn new(request: Handle, memory: Memory) -> Self {
        Self { request: request.expose_provenance(), memory: ManuallyDrop::new(memory) }
    }

    /// Frees the memory of a request that has ended or was cancelled.
    pub(crate) fn free(self) {
        drop(ManuallyDrop::into_inner(self.memory));
    }
}

/// The request of a message, whose memory the endpoint keeps.
pub(crate) struct Sending(Handle);

impl From<Sending> for Lent {
    fn from(sending: Sending) -> Self {
        Self::new(sending.0, Memory::none())
    }
}

/// An open endpoint.
pub(crate) struct End {
    shared: Arc<Shared>,
    /// The handler's own count of `shared`.
    context: usize,
    /// The memory of messages, which is there until the endpoint has been closed.
    messages: ManuallyDrop<Memory>,
}

impl fmt::Debug for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("End")
    }
}

/// The waits of an endpoint, for the thread that watches.
pub(crate) struct Waits(Arc<Shared>);

impl cci_over::Wait for Waits {
    type Found = ();

    /// Until a request has ended, the handler has taken a message, or a wake-up.
    fn wait(&self) -> Option<()> {
        let (mut request, mut result) = (null_mut(), 0);
        // SAFETY: any handle, and places for the results.
        let code = unsafe { (self.0.library.calls.peek)(self.0.handle(), FOREVER, &raw mut request, &raw mut result) };
        (code == 0).then_some(())
    }
}

impl End {
    /// Opens an endpoint; without an id at any. `messages` is the memory that messages are sent
    /// from.
    pub(crate) fn open(
        library: &Arc<Library>,
        id: Option<u32>,
        inbound: Inbound,
        messages: Memory,
    ) -> Result<Self, Code> {
        let parameters = [
            Parameter { key: 0, value: Value { handler: library.returns } },
            Parameter { key: OUTSIDE_JOB, value: Value { handler: null() } },
            Parameter { key: ABSENT_LIMIT, value: Value { number: ABSENT_MS } },
        ];
        let mut handle = null_mut();
        let mut open = |count| {
            let parameters = (&raw const parameters).cast();
            // SAFETY: so many parameters at most, and a place for the handle.
            checked(unsafe { (library.calls.open)(ANY, id.unwrap_or(ANY), KEY, parameters, count, &raw mut handle) })
        };
        match open(3) {
            // Another library than ours has neither.
            Err(Code::BAD_PARAMETER) => open(1)?,
            opened => opened?,
        }
        let shared = Arc::new(Shared { library: Arc::clone(library), handle: handle.expose_provenance(), inbound });
        let context = Arc::into_raw(Arc::clone(&shared));
        // SAFETY: the context stays until `free`.
        let code = unsafe { (library.calls.on_unexpected)(handle, on_unexpected, context.cast_mut().cast()) };
        let messages = ManuallyDrop::new(messages);
        let mut end = Self { shared, context: context.expose_provenance(), messages };
        if let Err(code) = checked(code) {
            end.close();
            end.free();
            return Err(code);
        }
        Ok(end)
    }

    fn library(&self) -> &Library {
        &self.shared.library
    }

    pub(crate) fn inbound(&self) -> &Inbound {
        &self.shared.inbound
    }

    pub(crate) fn waits(&self) -> Waits {
        Waits(Arc::clone(&self.shared))
    }

    /// The text of a code.
    pub(crate) fn text_of(&self, code: Code) -> String {
        self.library().text_of(code)
    }

    /// Its own address.
    pub(crate) fn address(&self) -> Result<Address, Code> {
        let mut address = Address([0; 2]);
        // SAFETY: any handle, and a place for an address.
        checked(unsafe { (self.library().calls.get_address)(self.shared.handle(), &raw mut address) })?;
        Ok(address)
    }

    /// The endpoint of an address.
    pub(crate) fn place(&self, address: Address) -> Place {
        let (mut nic, mut id, mut session) = (0, 0, 0);
        // SAFETY: any address, and places for the results.
        let _ = unsafe { (self.library().calls.split)(address, &raw mut nic, &raw mut id, &raw mut session) };
        Place { nic, id, session: Some(session), address: Some(address) }
    }

    /// Sends a part of memory. `is_sync`: it ends once it was matched.
    pub(crate) fn send(&self, memory: Memory, to: (Address, u64), token: u32, is_sync: bool) -> Result<Lent, Code> {
        // SAFETY: one segment, of memory that the result keeps.
        let request = unsafe { self.begin_send(segment(&memory), to, token, is_sync) }?;
        Ok(Lent::new(request, memory))
    }

    /// Sends a message: so many bytes from an offset on of the memory of messages.
    #[inline]
    pub(crate) fn send_message(
        &self,
        (offset, len): (u64, usize),
        to: (Address, u64),
        token: u32,
        is_sync: bool,
    ) -> Result<Sending, Code> {
        let span = self.messages.span(offset, len).ok_or(Code::BAD_PARAMETER)?;
        // SAFETY: one segment, of memory that this endpoint keeps until it has been closed.
        let request = unsafe { self.begin_send(segment_at(span.start(), len), to, token, is_sync) }?;
        Ok(Sending(request))
    }

    /// # Safety
    ///
    /// The segment stays readable until the request has ended, or the endpoint has been closed.
    #[inline]
    unsafe fn begin_send(
        &self,
        (segment, count): (Segment, u32),
        (to, bits): (Address, u64),
        token: u32,
        is_sync: bool,
    ) -> Result<Handle, Code> {
        let calls = &self.library().calls;
        let send = if is_sync { calls.issend } else { calls.isend };
        let mut request = null_mut();
        // SAFETY: by the contract.
        checked(unsafe {
            send(self.shared.handle(), &raw const segment, count, to, bits, word(token), &raw mut request)
        })?;
        Ok(request)
    }

    /// How a request has ended, which is gone then; `None`: it has not.
    #[inline]
    pub(crate) fn test(&self, sending: &Sending) -> Option<RequestEnd> {
        let (mut status, mut result) = (Status::EMPTY, 0);
        // SAFETY: any handles, and places for the results.
        let code = unsafe {
            (self.library().calls.test)(self.shared.handle(), &raw const sending.0, &raw mut status, &raw mut result)
        };
        (code == 0 && result != 0).then(|| status.end())
    }

    /// Receives a message with these match bits.
    pub(crate) fn receive(&self, memory: Memory, bits: u64, token: u32) -> Result<Lent, Code> {
        let (segment, count) = segment(&memory);
        let mut request = null_mut();
        // SAFETY: as in `send`.
        checked(unsafe {
            (self.library().calls.irecv)(
                self.shared.handle(),
                &raw const segment,
                count,
                bits,
                u64::MAX,
                word(token),
                &raw mut request,
            )
        })?;
        Ok(Lent::new(request, memory))
    }

    /// Takes a receive back. It comes back if it has matched.
    pub(crate) fn cancel(&self, lent: Lent) -> Result<(), Lent> {
        let (request, mut result): (Handle, _) = (std::ptr::with_exposed_provenance_mut(lent.request), 0);
        // SAFETY: any handles.
        let code = unsafe { (self.library().calls.cancel)(self.shared.handle(), &raw const request, &raw mut result) };
        if code != 0 || result == 0 {
            return Err(lent);
        }
        lent.free();
        Ok(())
    }

    /// Asks for the address of an endpoint.
    pub(crate) fn connect(&self, nic: u64, id: u32, token: u32) -> Result<Lent, Code> {
        let mut request = null_mut();
        // SAFETY: numbers, and a place for the request.
        checked(unsafe {
            (self.library().calls.iconnect)(self.shared.handle(), nic, id, KEY, 0, word(token), &raw mut request)
        })?;
        Ok(Lent::new(request, Memory::none()))
    }

    /// Makes progress, until nothing has come or the handler has taken a message.
    #[inline]
    pub(crate) fn progress(&self) {
        // SAFETY: any handle.
        let _ = unsafe { (self.library().calls.progress)(self.shared.handle()) };
    }

    /// Makes progress, and takes the oldest request that has ended.
    #[inline]
    pub(crate) fn test_any(&self) -> Option<Finished> {
        let (mut status, mut result) = (Status::EMPTY, 0);
        // SAFETY: any handle, and places for the results.
        let code =
            unsafe { (self.library().calls.test_any)(self.shared.handle(), 0, 0, &raw mut status, &raw mut result) };
        (code == 0 && result != 0).then(|| status.finished())
    }

    /// Ends the waits of the moment.
    pub(crate) fn wake(&self) {
        self.shared.wake();
    }

    /// Closes the endpoint, and ends its waits: from here on the library touches no memory of
    /// requests.
    pub(crate) fn close(&self) {
        // SAFETY: any handle.
        let _ = unsafe { (self.library().calls.close)(self.shared.handle()) };
    }

    /// Frees what the handler had, after a close, and after the thread that watched has ended.
    pub(crate) fn free(&mut self) {
        let context = std::mem::take(&mut self.context);
        if context != 0 {
            // SAFETY: from `into_raw` in `open`, once; the endpoint is closed, and no handler runs.
            drop(unsafe { Arc::from_raw(std::ptr::with_exposed_provenance::<Shared>(context)) });
            drop(ManuallyDrop::into_inner(std::mem::replace(&mut self.messages, ManuallyDrop::new(Memory::none()))));
        }
    }
}

/// One segment, or none for no bytes.
fn segment(memory: &Memory) -> (Segment, u32) {
    if memory.is_empty() {
        return (Segment { start: null_mut(), length: 0 }, 0);
    }
    let len = usize::try_from(memory.len()).unwrap_or(usize::MAX);
    segment_at(memory.start(), len)
}

#[inline]
fn segment_at(start: usize, len: usize) -> (Segment, u32) {
    let length = u32::try_from(len).unwrap_or(u32::MAX);
    (Segment { start: std::ptr::with_exposed_provenance_mut(start), length }, u32::from(len > 0))
}

fn word(token: u32) -> *mut c_void {
    std::ptr::without_provenance_mut(token as usize)
}
