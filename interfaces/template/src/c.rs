//! The calls in C: `include/echo.h`.

use crate::{Code, Echo, LONGEST};
use cci::{Context, EndpointOptions, OpenError};
use cci_mem::arguments::Out;
use cci_mem::boundary::{caught, uncancelled};
use cci_mem::fork::PerProcess;
use cci_mem::sync::{AtomicU64, Ordering};
use cci_peers::{HostNumbers, Name};
use std::collections::BTreeMap;
use std::ffi::{c_char, c_int};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The last handle. A forked child goes on from there: none has two meanings.
static LAST: AtomicU64 = AtomicU64::new(0);

/// The echoes of this process by their handles. A forked child has its own: the lock may be held
/// there for ever.
fn echoes() -> Result<MutexGuard<'static, BTreeMap<u64, Arc<Echo>>>, Code> {
    static ECHOES: PerProcess<Mutex<BTreeMap<u64, Arc<Echo>>>> = PerProcess::new();
    let (_, echoes) = ECHOES.get(Mutex::default).map_err(|_| Code::NotOpened)?;
    Ok(echoes.lock().unwrap_or_else(PoisonError::into_inner))
}

fn find(handle: u64) -> Result<Arc<Echo>, Code> {
    echoes()?.get(&handle).cloned().ok_or(Code::Closed)
}

macro_rules! export {
    ($($symbol:ident ($($argument:ident: $type:ty),*) => $body:expr;)*) => {
        $(#[unsafe(no_mangle)]
        extern "C" fn $symbol($($argument: $type),*) -> c_int {
            caught(|| uncancelled(|| { $body; Ok(()) }), || Err(Code::Failed)).map_or_else(Code::code, |()| 0)
        })*
    };
}

// The echo's own from here on.
export! {
    echo_open(number: u32, echo: Out<'_, u64>, name: Out<'_, u64>) => {
        let (handle, name) = (echo.variable(Code::Null)?, name.variable(Code::Null)?);
        let (echo, own) = open(number).map_err(|_| Code::NotOpened)?;
        // Publishes nothing.
        let last = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        echoes()?.insert(last, Arc::new(echo));
        handle.put(last);
        name.put(own);
    };
    echo_request(echo: u64, to: u64, bytes: Option<NonNull<u8>>, length: usize, ms: u32, request: Out<'_, u64>) => {
        let (bytes, request) = (bytes.ok_or(Code::Null)?, request.variable(Code::Null)?);
        (length <= LONGEST).then_some(()).ok_or(Code::TooLong)?;
        // SAFETY: not NULL, so `length` bytes that stay as they are during the call.
        let bytes = unsafe { std::slice::from_raw_parts(bytes.as_ptr(), length) };
        request.put(find(echo)?.request(&Name::Number(to), bytes, Duration::from_millis(ms.into()))?)
    };
    echo_wait(echo: u64, request: u64, bytes: Option<NonNull<u8>>, room: usize, ms: u32) => {
        let bytes = bytes.ok_or(Code::Null)?;
        let answer = find(echo)?.wait(request, Duration::from_millis(ms.into()))?;
        // SAFETY: not NULL, so `room` bytes that are the call's alone.
        unsafe { answer.as_ptr().copy_to_nonoverlapping(bytes.as_ptr(), answer.len().min(room)) }
    };
    echo_serve(echo: u64, ms: u32) => Err(find(echo)?.serve(Duration::from_millis(ms.into())))?;
    echo_close(echo: u64) => { echoes()?.remove(&echo) }.ok_or(Code::Closed)?.close();
}

/// Opens an echo at a number of this host, and returns its name too.
fn open(number: u32) -> Result<(Echo, u64), OpenError> {
    const NUMBERS: HostNumbers = HostNumbers::new(30_720, 2_048, 0x4543_484f);
    let options = EndpointOptions::new().disconnect_events(true);
    let opened = NUMBERS.open(Context::new()?.default_device()?, &options, Some(number))?;
    let name = u64::from(opened.host.to_bits()) << 32 | u64::from(number);
    Ok((Echo::open(opened.endpoint, Name::Number(name), Box::new(opened.directory))?, name))
}

#[unsafe(no_mangle)]
extern "C" fn echo_text(code: c_int) -> *const c_char {
    Code::from_code(code).map_or(c"success, or no code of an echo", Code::c_text).as_ptr()
}
