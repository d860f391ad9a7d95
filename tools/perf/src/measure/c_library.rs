//! The measuring loops' way through `libcci.so`: its functions, called through pointers as any C
//! program calls them.
#![allow(unsafe_code)]

use super::driver::{
    self, Asking, Completion, Driver, DriverError, DriverEvent, DriverOptions, PostError, Transfer, nap,
    unless_of_another,
};
use crate::reach::scope;
use cci::{Attribute, EventKind, Memory, RmaHandle, Scope, Status};
use cci_admission::Origin;
use cci_report::names::{Mode, Threads};
use cci_report::{UserError, while_doing};
use libloading::Library;
use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::fd::{BorrowedFd, RawFd};
use std::path::Path;
use std::ptr;
use std::time::Duration;

const ABI_VERSION: u32 = 2;
const SILENT: c_int = 8;
const OPT_ENDPT_URI: c_int = 4;
const OPT_CONN_KEEPALIVE_TIMEOUT: c_int = 7;

/// Keepalive timeout of a connection within one host: CCI 2.2 has no other event for the death of a
/// peer, which `sm` sees at once. A peer that lives may make no call for as long as its longest
/// block.
const SILENCE: Duration = Duration::from_secs(300);

#[repr(C)]
struct CDevice {
    name: *const c_char,
    transport: *const c_char,
}

#[repr(C)]
struct CConnection {
    max_send_size: u32,
    endpoint: *const c_void,
    attribute: u32,
    context: *const c_void,
}

/// The union of events: the meaning of the last two words depends on the type.
#[repr(C)]
struct CEvent {
    kind: u32,
    /// Status, or bytes of the payload.
    detail: u32,
    second: *const c_void,
    third: *const c_void,
}

/// The error for RMA, which this driver lacks.
pub(crate) const SENDS_ONLY: &str = "--abi c measures sends only; measure RMA with --abi rust";

/// CCI 2.2 does not know endpoints of one thread.
pub(crate) fn refuse_one_thread(threads: Threads) -> Result<(), UserError> {
    match threads {
        Threads::One => Err(UserError::new("CCI 2.2 endpoints are thread-safe: use --threads many with --abi c")),
        Threads::Many => Ok(()),
    }
}

/// A connection of the C library.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct CHandle(*const CConnection);

type Send = unsafe extern "C" fn(*const CConnection, *const c_void, u32, *const c_void, c_int) -> c_int;
type GetEvent = unsafe extern "C" fn(*const c_void, *mut *const CEvent) -> c_int;
type OneEvent = unsafe extern "C" fn(*const CEvent) -> c_int;
type Connect = unsafe extern "C" fn(
    *const c_void,
    *const c_char,
    *const c_void,
    u32,
    c_int,
    *const c_void,
    c_int,
    *const libc::timeval,
) -> c_int;

/// The functions that the loops use.
struct Functions {
    library: Library,
    send: Send,
    get_event: GetEvent,
    return_event: OneEvent,
    connect: Connect,
    accept: unsafe extern "C" fn(*const CEvent, *const c_void) -> c_int,
    destroy: unsafe extern "C" fn(*const c_void) -> c_int,
}

/// An endpoint of the C library.
pub(crate) struct CLibrary {
    functions: Functions,
    endpoint: *const c_void,
    uri: String,
    transport: String,
    handle: Option<RawFd>,
    /// The connections of a run, as far as they are there.
    heeded: Cell<Option<[Option<CHandle>; 2]>>,
}

impl Functions {
    fn load(path: &Path) -> Result<Self, libloading::Error> {
        // SAFETY: the library is libcci by the caller's word; its initializers do nothing.
        let library = unsafe { Library::new(path)? };
        // SAFETY: the types are those of `cci.h` for these names.
        unsafe {
            Ok(Self {
                send: *library.get(b"cci_send\0")?,
                get_event: *library.get(b"cci_get_event\0")?,
                return_event: *library.get(b"cci_return_event\0")?,
                connect: *library.get(b"cci_connect\0")?,
                accept: *library.get(b"cci_accept\0")?,
                destroy: *library.get(b"cci_destroy_endpoint\0")?,
                library,
            })
        }
    }

    fn device(&self, transport: Option<&str>) -> Result<*const CDevice, UserError> {
        type Init = unsafe extern "C" fn(u32, u32, *mut u32) -> c_int;
        type GetDevices = unsafe extern "C" fn(*mut *const *const CDevice) -> c_int;
        let missing = while_doing("the library lacks a function of CCI 2.2");
        // SAFETY: the types are those of `cci.h`.
        let (init, get_devices) = unsafe {
            let init: Init = *self.library.get(b"cci_init\0").map_err(&missing)?;
            let get_devices: GetDevices = *self.library.get(b"cci_get_devices\0").map_err(&missing)?;
            (init, get_devices)
        };
        let mut caps = 0;
        // SAFETY: `caps` is writable.
        check("cci_init", unsafe { init(ABI_VERSION, 0, &raw mut caps) })?;
        let mut devices = ptr::null();
        // SAFETY: `devices` is writable.
        check("cci_get_devices", unsafe { get_devices(&raw mut devices) })?;
        let mut at = devices;
        // SAFETY: the list ends with NULL; devices and their strings are valid until the last
        // finalize, which never comes.
        unsafe {
            while !at.is_null() && !(*at).is_null() {
                let name = CStr::from_ptr((**at).transport).to_string_lossy();
                if transport.is_none_or(|wanted| wanted == name) {
                    return Ok(*at);
                }
                at = at.add(1);
            }
        }
        Err(UserError::new("the C library has no device of that transport; `cci info` lists the devices"))
    }
}

fn check(what: &str, status: c_int) -> Result<(), UserError> {
    let status = as_status(status);
    if status == Status::Success { Ok(()) } else { Err(UserError(format!("{what} failed: {status}"))) }
}

fn as_status(status: c_int) -> Status {
    u32::try_from(status).ok().and_then(Status::from_u32).unwrap_or(Status::Error)
}

#[inline(always)]
fn outcome(status: c_int) -> Result<(), PostError> {
    match status {
        0 => Ok(()),
        libc::ENOBUFS => Err(PostError::Full),
        other => Err(PostError::Driver(DriverError::of(as_status(other)))),
    }
}

impl CEvent {
    /// Numbers of events are those of the facade.
    #[inline(always)]
    fn kind(&self) -> EventKind {
        EventKind::from_u32(self.kind).unwrap_or(EventKind::DeviceFailed)
    }
}

impl Driver for CLibrary {
    type Connection = CHandle;

    fn open(opening: &DriverOptions) -> Result<Self, UserError> {
        refuse_one_thread(opening.threads)?;
        if !opening.keys.is_empty() {
            return Err(UserError::new("with --abi c keys of a device come from its configuration: use CCI_CONFIG"));
        }
        let path = opening.library.as_deref().unwrap_or(Path::new("libcci.so.2"));
        let failed = format!("cannot load {}; name the library with --library", path.display());
        let functions = Functions::load(path).map_err(while_doing(&failed))?;
        let device = functions.device(opening.transport.as_deref())?;
        let (endpoint, handle) = open_endpoint(&functions, device, opening.mode)?;
        let uri = uri_of(&functions, endpoint)?;
        // SAFETY: a device of the library, valid until the last finalize.
        let transport = unsafe { CStr::from_ptr((*device).transport) }.to_string_lossy().into_owned();
        Ok(Self { functions, endpoint, uri, transport, handle, heeded: Cell::new(None) })
    }

    fn uri(&self) -> String {
        self.uri.clone()
    }

    fn transport(&self) -> &str {
        &self.transport
    }

    fn max_send_size(&self, connection: CHandle) -> u64 {
        // SAFETY: a connection that the library gave and that has not been disconnected.
        u64::from(unsafe { (*connection.0).max_send_size })
    }

    // A program of CCI 2.2 is told nothing of it.
    fn path(&self, _: CHandle) -> Option<cci_report::environment::Path> {
        None
    }

    fn connect(
        &self,
        uri: &str,
        payload: &[u8],
        attribute: Attribute,
        context: u64,
        timeout: Duration,
    ) -> Result<(), UserError> {
        let uri = CString::new(uri).map_err(while_doing("a URI has no zero byte"))?;
        let timeout = libc::timeval {
            // Their types have no name that every system keeps.
            tv_sec: timeout.as_secs().try_into().unwrap_or(i64::MAX),
            tv_usec: timeout.subsec_micros().into(),
        };
        let len = u32::try_from(payload.len()).map_err(while_doing("the payload is too long"))?;
        // SAFETY: every pointer is valid during the call; the context is a number that the library
        // hands back.
        check("cci_connect", unsafe {
            (self.functions.connect)(
                self.endpoint,
                uri.as_ptr(),
                payload.as_ptr().cast(),
                len,
                attribute as c_int,
                as_context(context),
                0,
                &raw const timeout,
            )
        })
    }

    fn watch(&self, connection: CHandle) -> Result<(), UserError> {
        type SetOpt = unsafe extern "C" fn(*const c_void, c_int, *const c_void) -> c_int;
        let missing = while_doing("the library lacks a function of CCI 2.2");
        // SAFETY: the type is that of `cci.h`.
        let set_opt: SetOpt = unsafe { *self.functions.library.get(b"cci_set_opt\0").map_err(missing)? };
        let silence = if scope(&self.transport) == Some(Scope::Network) { driver::SILENCE } else { SILENCE };
        let micros = u32::try_from(silence.as_micros()).unwrap_or(u32::MAX);
        // SAFETY: a connection of this library; the option reads a `uint32_t`.
        check("cci_set_opt", unsafe {
            set_opt(connection.0.cast(), OPT_CONN_KEEPALIVE_TIMEOUT, (&raw const micros).cast())
        })
    }

    #[inline(always)]
    fn send(&self, connection: CHandle, message: &[u8], silent: bool) -> Result<(), PostError> {
        #[expect(clippy::cast_possible_truncation, reason = "a message is far below 4 GiB")]
        let len = message.len() as u32;
        let flags = if silent { SILENT } else { 0 };
        // SAFETY: `len` readable bytes; a connection of this library.
        outcome(unsafe { (self.functions.send)(connection.0, message.as_ptr().cast(), len, ptr::null(), flags) })
    }

    fn rma(&self, _: CHandle, _: &Transfer<'_>, _: bool) -> Result<(), PostError> {
        Err(PostError::Driver(DriverError::Failed(Status::NotImplemented)))
    }

    fn register(&self, _: Memory) -> Result<RmaHandle, UserError> {
        Err(UserError::new(SENDS_ONLY))
    }

    #[inline(always)]
    fn poll<const TOUCH: bool>(&self) -> Result<Completion, DriverError> {
        let Some(event) = self.next()? else { return Ok(Completion::Nothing) };
        let kind = event.kind();
        if TOUCH && kind == EventKind::Recv {
            std::hint::black_box(crate::probe::sum(payload(event)));
        }
        let completion = Completion::of(kind, event.detail);
        let completion = unless_of_another(completion, Completion::Other, || self.is_of_another(event));
        self.give_back(event);
        completion
    }

    fn poll_event(
        &self,
        bytes: &mut Vec<u8>,
        mut context_of: impl FnMut(&Asking<'_>) -> u64,
    ) -> Result<DriverEvent<CHandle>, DriverError> {
        let Some(event) = self.next()? else { return Ok(DriverEvent::Nothing) };
        let outcome = match event.kind() {
            EventKind::Send => Completion::of(EventKind::Send, event.detail).map(|_| DriverEvent::Sent),
            EventKind::Recv => {
                bytes.clear();
                bytes.extend_from_slice(payload(event));
                Ok(DriverEvent::Received(CHandle(event.third.cast())))
            }
            EventKind::Connect | EventKind::Accept if event.detail == 0 => {
                Ok(DriverEvent::Open(CHandle(event.third.cast()), event.second.addr() as u64))
            }
            EventKind::Connect | EventKind::Accept => {
                Ok(DriverEvent::NotOpen(as_status(event.detail.cast_signed()).into(), event.second.addr() as u64))
            }
            EventKind::ConnectRequest => {
                bytes.clear();
                bytes.extend_from_slice(payload(event));
                // CCI 2.2 does not tell.
                let context = context_of(&Asking { payload: bytes, origin: &|| Origin::Here });
                // SAFETY: an unanswered request, just received.
                let status = unsafe { (self.functions.accept)(event, as_context(context)) };
                Ok(if status == 0 {
                    DriverEvent::Asked
                } else {
                    DriverEvent::NotOpen(as_status(status).into(), context)
                })
            }
            _ => Err(DriverError::PeerLost),
        };
        let outcome = unless_of_another(outcome, DriverEvent::Other, || self.is_of_another(event));
        self.give_back(event);
        outcome
    }

    fn heed(&self, connections: [Option<CHandle>; 2]) {
        self.heeded.set(Some(connections));
    }

    fn wait(&self) {
        if let Some(handle) = self.handle() {
            nap(handle);
        }
    }

    fn handle(&self) -> Option<BorrowedFd<'_>> {
        // SAFETY: the endpoint's descriptor, open as long as the endpoint.
        self.handle.map(|handle| unsafe { BorrowedFd::borrow_raw(handle) })
    }
}

impl CLibrary {
    #[inline(always)]
    fn next(&self) -> Result<Option<&CEvent>, DriverError> {
        let mut event: *const CEvent = ptr::null();
        // SAFETY: `event` is writable; the endpoint is open.
        match unsafe { (self.functions.get_event)(self.endpoint, &raw mut event) } {
            // SAFETY: on success the library gives an event that stays valid until it is returned.
            0 => Ok(unsafe { event.as_ref() }),
            libc::EAGAIN | libc::ENOBUFS => Ok(None),
            other => Err(DriverError::Failed(as_status(other))),
        }
    }

    /// Whether an event of kind SEND or KEEPALIVE_TIMEDOUT is of a connection that is none of the
    /// run's.
    #[cold]
    fn is_of_another(&self, event: &CEvent) -> bool {
        let is_of_one = matches!(event.kind(), EventKind::Send | EventKind::KeepaliveTimedOut);
        let connection = Some(CHandle(event.second.cast()));
        is_of_one && self.heeded.get().is_some_and(|heeded| !heeded.contains(&connection))
    }

    #[inline(always)]
    fn give_back(&self, event: &CEvent) {
        // SAFETY: borrowed from this library, and returned once.
        unsafe { (self.functions.return_event)(event) };
    }
}

impl Drop for CLibrary {
    fn drop(&mut self) {
        // SAFETY: this endpoint, which nobody uses any more. The library itself stays loaded with
        // this value.
        unsafe { (self.functions.destroy)(self.endpoint) };
    }
}

/// Payload of a RECV event or of a request.
fn payload(event: &CEvent) -> &[u8] {
    if event.detail == 0 || event.second.is_null() {
        return &[];
    }
    // SAFETY: the library gives `detail` readable bytes until the event is returned, which the
    // caller does later; the sender is the other end of this measurement and does not write to what
    // it has sent.
    unsafe { std::slice::from_raw_parts(event.second.cast(), event.detail as usize) }
}

/// A number as a context: handed back, never followed.
#[expect(clippy::cast_possible_truncation, reason = "a small number")]
fn as_context(number: u64) -> *const c_void {
    ptr::without_provenance(number as usize)
}

fn open_endpoint(
    functions: &Functions,
    device: *const CDevice,
    mode: Mode,
) -> Result<(*const c_void, Option<RawFd>), UserError> {
    type Create = unsafe extern "C" fn(*const CDevice, c_int, *mut *const c_void, *mut c_int) -> c_int;
    let missing = while_doing("the library lacks a function of CCI 2.2");
    // SAFETY: the type is that of `cci.h`.
    let create: Create = unsafe { *functions.library.get(b"cci_create_endpoint\0").map_err(missing)? };
    let mut endpoint = ptr::null();
    let mut fd = -1;
    let wanted = if mode == Mode::Blocking { &raw mut fd } else { ptr::null_mut() };
    // SAFETY: a device of this library and writable results; without the descriptor the endpoint
    // only polls.
    check("cci_create_endpoint", unsafe { create(device, 0, &raw mut endpoint, wanted) })?;
    Ok((endpoint, (mode == Mode::Blocking).then_some(fd)))
}

fn uri_of(functions: &Functions, endpoint: *const c_void) -> Result<String, UserError> {
    type GetOpt = unsafe extern "C" fn(*const c_void, c_int, *mut c_void) -> c_int;
    let missing = while_doing("the library lacks a function of CCI 2.2");
    // SAFETY: the type is that of `cci.h`.
    let get_opt: GetOpt = unsafe { *functions.library.get(b"cci_get_opt\0").map_err(missing)? };
    let mut text: *mut c_char = ptr::null_mut();
    // SAFETY: this option fills in a string that the caller frees.
    check("cci_get_opt", unsafe { get_opt(endpoint, OPT_ENDPT_URI, (&raw mut text).cast()) })?;
    // SAFETY: a string of the library, allocated by malloc, ended by a zero byte.
    let uri = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
    // SAFETY: ours to free, once.
    unsafe { libc::free(text.cast()) };
    Ok(uri)
}
