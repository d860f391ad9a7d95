//! `libpmix.so.2`, loaded at run time, with the layouts that the PMIx standard gives its types.
//!
//! Each call can be given up. Where a call may wait for others, one with a callback is made. What
//! such a call was given lives until its callback, whether anybody still waits or not. Other calls
//! wait for the server alone, which may be stopped. They run in threads that nobody waits for
//! longer than the limit.

#![allow(unsafe_code)]

use crate::error::JobError;
use crate::source::cannot;
use cci_mem::mutex::lock;
use cci_mem::quiet_thread;
use std::ffi::{CStr, CString, NulError, c_char, c_int, c_void};
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

const NAME: &CStr = c"libpmix.so.2";

/// Bytes of the name of a space, and of a key, with their ends.
const SPACE: usize = 256;
const KEY: usize = 512;

/// All ranks of a space, for what belongs to the job.
const WILDCARD: u32 = u32::MAX - 1;

const SUCCESS: c_int = 0;
/// Done at once: there is no callback.
const SUCCEEDED: c_int = -157;

/// Types of values.
const BOOL: u16 = 1;
const STRING: u16 = 3;
const UINT32: u16 = 14;

/// A value is for all ranks.
const GLOBAL: u8 = 3;

#[repr(C)]
#[derive(Clone, Copy)]
struct Process {
    space: [c_char; SPACE],
    rank: u32,
}

#[repr(C)]
union Data {
    flag: bool,
    number: u32,
    string: *const c_char,
    /// As large as the largest of the standard's.
    _all: [u64; 3],
}

#[repr(C)]
struct Value {
    kind: u16,
    data: Data,
}

#[repr(C)]
struct Info {
    key: [c_char; KEY],
    flags: u32,
    value: Value,
}

type Done = unsafe extern "C" fn(c_int, *mut c_void);
type Found = unsafe extern "C" fn(c_int, *const Value, *mut c_void);

/// The calls that are made.
struct Calls {
    init: unsafe extern "C" fn(*mut Process, *const Info, usize) -> c_int,
    put: unsafe extern "C" fn(u8, *const c_char, *const Value) -> c_int,
    commit: unsafe extern "C" fn() -> c_int,
    fence: unsafe extern "C" fn(*const Process, usize, *const Info, usize, Done, *mut c_void) -> c_int,
    get: unsafe extern "C" fn(*const Process, *const c_char, *const Info, usize, Found, *mut c_void) -> c_int,
    finalize: unsafe extern "C" fn(*const Info, usize) -> c_int,
    error: unsafe extern "C" fn(c_int) -> *const c_char,
}

/// The library's client, which a process has once.
pub(super) struct Library {
    calls: Calls,
    own: Process,
}

/// A value that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Got {
    Text(Vec<u8>),
    Number(u32),
    /// Of a type that nobody of this job puts.
    Other,
}

/// Why a call has failed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Failed {
    /// The limit is over.
    Late,
    /// In the library's words.
    Refused(String),
}

/// A call that waits for its callback, and what it was given.
struct Pending {
    process: Process,
    key: CString,
    info: Info,
    end: Mutex<Option<(c_int, Got)>>,
    has_ended: Condvar,
}

// SAFETY: the pointers in `info` are never read here, and point to nothing.
unsafe impl Send for Pending {}
// SAFETY: as above; `end` has a lock of its own.
unsafe impl Sync for Pending {}

fn zero(_: NulError) -> Failed {
    Failed::Refused("a text with a zero".into())
}

impl Pending {
    fn new(process: Process, key: &str) -> Result<Arc<Self>, Failed> {
        let key = CString::new(key).map_err(zero)?;
        let value = Value { kind: BOOL, data: Data { flag: true } };
        let info = Info { key: text(c"pmix.collect"), flags: 0, value };
        Ok(Arc::new(Self { process, key, info, end: Mutex::new(None), has_ended: Condvar::new() }))
    }

    fn end(&self, status: c_int, got: Got) {
        *lock(&self.end) = Some((status, got));
        self.has_ended.notify_all();
    }

    fn wait(&self, limit: Duration) -> Option<(c_int, Got)> {
        let deadline = Instant::now() + limit;
        let mut end = lock(&self.end);
        while end.is_none() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            end = self.has_ended.wait_timeout(end, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        end.take()
    }

    /// Begins a call, which is given this as its last argument, and waits for its callback.
    fn call(
        self: &Arc<Self>,
        begin: impl FnOnce(*mut c_void) -> c_int,
        limit: Duration,
    ) -> Result<(c_int, Got), Failed> {
        let given = Arc::into_raw(Arc::clone(self)).cast_mut().cast();
        let status = begin(given);
        if status != SUCCESS {
            // SAFETY: as it was given; a call that does not succeed has no callback.
            drop(unsafe { Arc::<Self>::from_raw(given.cast()) });
            return Ok((if status == SUCCEEDED { SUCCESS } else { status }, Got::Other));
        }
        self.wait(limit).ok_or(Failed::Late)
    }
}

/// The end of a call without a value.
unsafe extern "C" fn done(status: c_int, given: *mut c_void) {
    // SAFETY: what `Pending::call` gave, once.
    let pending = unsafe { Arc::<Pending>::from_raw(given.cast()) };
    pending.end(if status == SUCCEEDED { SUCCESS } else { status }, Got::Other);
}

/// The end of a call with a value, which is the library's.
unsafe extern "C" fn found(status: c_int, value: *const Value, given: *mut c_void) {
    // SAFETY: what `Pending::call` gave, once.
    let pending = unsafe { Arc::<Pending>::from_raw(given.cast()) };
    // SAFETY: NULL, or a value for the time of this call.
    let got = unsafe { value.as_ref() }.map_or(Got::Other, |value| match value.kind {
        // SAFETY: the type says which it is.
        UINT32 => Got::Number(unsafe { value.data.number }),
        // SAFETY: as above.
        STRING if !unsafe { value.data.string }.is_null() => {
            // SAFETY: a string that is not NULL.
            Got::Text(unsafe { CStr::from_ptr(value.data.string) }.to_bytes().to_vec())
        }
        _ => Got::Other,
    });
    pending.end(status, got);
}

/// Runs a call that may block in a thread of its own, which is left alone once the limit is over:
/// the call has all that it was given.
fn within<T: Send + 'static>(limit: Duration, call: impl FnOnce() -> T + Send + 'static) -> Result<T, Failed> {
    let (end, ended) = channel();
    let run = move || {
        // Whoever waited may have gone.
        let _ = end.send(call());
    };
    let thread = quiet_thread::spawn("cci-job-pmix", quiet_thread::STACK, run);
    thread.map_err(|error| Failed::Refused(format!("no thread for its library: {error}; allow more processes")))?;
    ended.recv_timeout(limit).map_err(|_| Failed::Late)
}

/// A text in a place of its own, the rest zeroes.
fn text<const N: usize>(text: &CStr) -> [c_char; N] {
    let mut place = [0; N];
    for (to, from) in place.iter_mut().zip(text.to_bytes().iter().take(N - 1)) {
        *to = *from as c_char;
    }
    place
}

/// The words of the loader about its last failure.
fn loader() -> String {
    // SAFETY: the string is this thread's until its next call of the loader.
    let words = unsafe { libc::dlerror().as_ref().map(|words| CStr::from_ptr(words)) };
    words.map_or_else(|| "the loader does not say why".into(), |words| words.to_string_lossy().into_owned())
}

/// A function of the library.
///
/// # Safety
///
/// `F` is its type.
unsafe fn function<F>(library: *mut c_void, name: &CStr) -> Result<F, JobError> {
    // SAFETY: a library that is open, for ever.
    let found = unsafe { libc::dlsym(library, name.as_ptr()) };
    if found.is_null() {
        return Err(cannot(format!("libpmix.so.2 has no {}: {}", name.to_string_lossy(), loader())));
    }
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: the pointer of a function of that type, by the contract above.
    Ok(unsafe { std::mem::transmute_copy(&found) })
}

impl Library {
    /// Loads the library; for the life of the process, whose threads it may own.
    pub(super) fn load() -> Result<Self, JobError> {
        // SAFETY: the constructors of that library are its own matter.
        let library = unsafe { libc::dlopen(NAME.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if library.is_null() {
            return Err(cannot(format!(
                "PMIx started this process, and its library cannot be loaded: {}; install it (libpmix2), or set \
                 CCI_STORE",
                loader()
            )));
        }
        // SAFETY: the types of the standard.
        let calls = unsafe {
            Calls {
                init: function(library, c"PMIx_Init")?,
                put: function(library, c"PMIx_Put")?,
                commit: function(library, c"PMIx_Commit")?,
                fence: function(library, c"PMIx_Fence_nb")?,
                get: function(library, c"PMIx_Get_nb")?,
                finalize: function(library, c"PMIx_Finalize")?,
                error: function(library, c"PMIx_Error_string")?,
            }
        };
        Ok(Self { calls, own: Process { space: [0; SPACE], rank: 0 } })
    }

    /// Connects to the server that the environment names: this rank.
    pub(super) fn begin(&mut self, limit: Duration) -> Result<u32, Failed> {
        let init = self.calls.init;
        let (status, own) = within(limit, move || {
            let mut own = Process { space: [0; SPACE], rank: 0 };
            // SAFETY: a place for a process, and no directives.
            let status = unsafe { init(&raw mut own, std::ptr::null(), 0) };
            (status, own)
        })?;
        self.succeeded(status)?;
        self.own = own;
        Ok(self.own.rank)
    }

    /// Leaves the server, at most for `limit`; only after [`Library::begin`].
    pub(super) fn end(&self, limit: Duration) {
        let finalize = self.calls.finalize;
        // Nothing follows it. SAFETY: no directives.
        let _ = within(limit, move || unsafe { finalize(std::ptr::null(), 0) });
    }

    fn succeeded(&self, status: c_int) -> Result<(), Failed> {
        if status == SUCCESS {
            return Ok(());
        }
        // SAFETY: any number.
        let words = unsafe { (self.calls.error)(status) };
        // SAFETY: NULL, or a string that stays.
        let words = unsafe { words.as_ref().map(|words| CStr::from_ptr(words)) };
        Err(Failed::Refused(words.map_or_else(|| status.to_string(), |words| words.to_string_lossy().into_owned())))
    }

    /// Gives a value of this rank to all; visible once a rank asks for it.
    pub(super) fn put(&self, key: &str, value: &str, limit: Duration) -> Result<(), Failed> {
        let (key, text) = (CString::new(key).map_err(zero)?, CString::new(value).map_err(zero)?);
        let (put, commit) = (self.calls.put, self.calls.commit);
        let status = within(limit, move || {
            let value = Value { kind: STRING, data: Data { string: text.as_ptr() } };
            // SAFETY: the library copies both.
            let status = unsafe { put(GLOBAL, key.as_ptr(), &raw const value) };
            // SAFETY: after `begin`.
            if status == SUCCESS { unsafe { commit() } } else { status }
        })?;
        self.succeeded(status)
    }

    /// Waits for all ranks, and takes what they have put so far.
    pub(super) fn fence(&self, limit: Duration) -> Result<(), Failed> {
        let pending = Pending::new(self.own, "")?;
        let begin = |given| {
            // SAFETY: no processes are all; the directive lives until the callback.
            unsafe { (self.calls.fence)(std::ptr::null(), 0, &raw const pending.info, 1, done, given) }
        };
        let (status, _) = pending.call(begin, limit)?;
        self.succeeded(status)
    }

    /// A value of a rank, or of the job: as soon as it is there.
    pub(super) fn get(&self, rank: Option<u32>, key: &str, limit: Duration) -> Result<Got, Failed> {
        let process = Process { rank: rank.unwrap_or(WILDCARD), ..self.own };
        let pending = Pending::new(process, key)?;
        let begin = |given| {
            // SAFETY: process and key live until the callback.
            unsafe {
                (self.calls.get)(&raw const pending.process, pending.key.as_ptr(), std::ptr::null(), 0, found, given)
            }
        };
        let (status, got) = pending.call(begin, limit)?;
        self.succeeded(status)?;
        Ok(got)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    /// As a C compiler lays the types of `pmix_common.h` out on 64 bits.
    #[test]
    fn layouts_are_those_of_the_standard() {
        assert_eq!((size_of::<Process>(), offset_of!(Process, rank)), (260, 256));
        assert_eq!((size_of::<Value>(), offset_of!(Value, data)), (32, 8));
        assert_eq!((size_of::<Info>(), offset_of!(Info, flags), offset_of!(Info, value)), (552, 512, 520));
    }
}
