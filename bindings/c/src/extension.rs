//! What this library offers beyond CCI 2.2 (`ccix.h`).

use crate::endpoint::{self, Places};
use crate::handles::{self, Named};
use crate::layout::{self, ConnectionInfo, Peer};
use crate::status::{self, Refusal};
use crate::{connection, guard, library};
use cci::__binding::{self as raw, ConnectionCell, EndpointCell, EventCell, Threading};
use cci::{ConnectionReport, EndpointOptions, OptionError};
use std::ffi::{c_char, c_int, c_void};

#[unsafe(no_mangle)]
extern "C" fn ccix_last_error() -> *const c_char {
    status::last_error()
}

/// `cci doctor` finds the release of a library by the words before it.
static RELEASE: &str = concat!("cci release ", env!("CARGO_PKG_VERSION"), "\0");

#[unsafe(no_mangle)]
extern "C" fn ccix_release() -> *const c_char {
    RELEASE["cci release ".len()..].as_ptr().cast()
}

/// # Safety
///
/// `ptr` is NULL or writable.
#[unsafe(no_mangle)]
unsafe extern "C" fn ccix_alloc(len: usize, ptr: *mut *mut c_void) -> c_int {
    guard::call(|| {
        handles::present(ptr)?;
        if len == 0 {
            return Err(Refusal::Argument("an allocation has at least one byte"));
        }
        let segment = raw::allocate(len).map_err(|_| Refusal::NoMemory)?;
        // SAFETY: writable by the contract above.
        unsafe { handles::store(ptr, segment.base().cast()) }
    })
}

/// # Safety
///
/// `event` is NULL or was an event once.
#[unsafe(no_mangle)]
unsafe extern "C" fn ccix_event_reason(event: *const EventCell) -> *const c_char {
    // SAFETY: by the contract above.
    let slot = unsafe { handles::event(event) };
    let mut reason = None;
    guard::call(|| {
        reason = raw::reason(slot?);
        Ok(())
    });
    status::reason(reason.as_deref().unwrap_or(""))
}

/// The pointer is compared with what is allocated, never followed.
#[unsafe(no_mangle)]
extern "C" fn ccix_free(ptr: *mut c_void) -> c_int {
    guard::call(|| {
        if raw::free(ptr.cast()) {
            Ok(())
        } else {
            Err(Refusal::Argument("not memory of ccix_alloc, or freed already"))
        }
    })
}

/// # Safety
///
/// `uri` is NULL or a string; `device` is NULL or writable.
#[unsafe(no_mangle)]
unsafe extern "C" fn ccix_device_for(uri: *const c_char, device: *mut *const layout::Device) -> c_int {
    guard::call(|| {
        handles::present(device)?;
        // SAFETY: by the contract above.
        let uri = unsafe { handles::text(uri, "the URI is NULL") }?;
        let found = library::with_opened(|opened| {
            let found = opened.context.device_for(&uri)?;
            let at = opened.context.devices().iter().position(|other| std::ptr::eq(other, found));
            at.map(|at| opened.table.address(at)).ok_or(Refusal::Argument("the device is none of cci_get_devices"))
        })?;
        // SAFETY: writable by the contract above.
        unsafe { handles::store(device, found) }
    })
}

const SINGLE_THREAD: u32 = 1;
const DISCONNECT_EVENTS: u32 = 2;

/// # Safety
///
/// As of `cci_create_endpoint`; `options` is NULL or readable for as many bytes as it says, and
/// names a string or NULL.
#[unsafe(no_mangle)]
unsafe extern "C" fn ccix_create_endpoint(
    device: *const layout::Device,
    options: *const layout::EndpointOptions,
    endpoint: *mut *const EndpointCell,
    fd: *mut c_int,
) -> c_int {
    guard::call(|| {
        // SAFETY: by the contract above.
        let options = unsafe { endpoint_options(options) }?;
        // SAFETY: by the contract above.
        unsafe { endpoint::open(device, &options, Places { endpoint, handle: fd }) }
    })
}

/// # Safety
///
/// NULL, or readable for as many bytes as it says, and names a string or NULL.
pub(crate) unsafe fn endpoint_options(pointer: *const layout::EndpointOptions) -> Result<EndpointOptions, Refusal> {
    let mut options = EndpointOptions::default();
    if pointer.is_null() {
        return Ok(options);
    }
    // SAFETY: the size is there in every version.
    let size = unsafe { pointer.cast::<u32>().read_unaligned() };
    // Later versions have more behind; what this one does not know cannot be obeyed.
    if size as usize != size_of::<layout::EndpointOptions>() {
        return Err(Refusal::Argument("size is not sizeof(struct ccix_endpoint_options) of this library"));
    }
    // SAFETY: as large as it says.
    let asked = unsafe { pointer.read_unaligned() };
    if asked.flags & !(SINGLE_THREAD | DISCONNECT_EVENTS) != 0 {
        return Err(Refusal::Argument("an unknown flag in ccix_endpoint_options"));
    }
    if asked.flags & SINGLE_THREAD != 0 {
        raw::set_threading(&mut options, Threading::One);
    }
    options.disconnect_events = asked.flags & DISCONNECT_EVENTS != 0;
    if asked.recv_buffers != 0 {
        options.recv_buffers = asked.recv_buffers;
    }
    if asked.send_buffers != 0 {
        options.send_buffers = asked.send_buffers;
    }
    if !asked.service.is_null() {
        // SAFETY: by the contract above.
        options.service = Some(unsafe { handles::text(asked.service, "the service is NULL") }?);
    }
    Ok(options)
}

/// # Safety
///
/// `conn_req` is NULL or was an event once, `endpoint` NULL or an endpoint.
#[unsafe(no_mangle)]
unsafe extern "C" fn ccix_accept_on(
    conn_req: *const EventCell,
    endpoint: *const EndpointCell,
    context: *const c_void,
) -> c_int {
    // SAFETY: by the contract above.
    let (slot, worker) = unsafe { (handles::event(conn_req), handles::endpoint(endpoint)) };
    match worker {
        Ok(worker) => connection::answer(slot, |slot| raw::accept_on(slot, worker, handles::context(context))),
        Err(refusal) => status::refused(refusal),
    }
}

/// # Safety
///
/// `conn_req` is NULL or was an event once; `peer` is NULL, or writable for as many bytes as it
/// says.
#[unsafe(no_mangle)]
unsafe extern "C" fn ccix_request_peer(conn_req: *const EventCell, peer: *mut Peer) -> c_int {
    // SAFETY: by the contract above.
    let slot = unsafe { handles::event(conn_req) };
    guard::at_length(slot.ok().and_then(|slot| slot.owner.get()), || {
        // SAFETY: by the contract above.
        let size = unsafe { size_of_place(peer, "set size to sizeof(struct ccix_peer)") }?;
        let found = raw::peer(slot?)?.ok_or(Refusal::Option(OptionError::Disconnected))?;
        let known = u32::from(found.user.is_some())
            | u32::from(found.process.is_some()) << 1
            | u32::from(found.key.is_some()) << 2;
        let filled = Peer {
            size: u32::try_from(size).unwrap_or(0),
            known,
            user: found.user.unwrap_or(0),
            process: found.process.unwrap_or(0),
            address: text(&found.address),
            key: found.key.unwrap_or_default(),
        };
        // SAFETY: `size` bytes are writable by the contract above, and `filled` has them.
        unsafe { std::ptr::copy_nonoverlapping(std::ptr::from_ref(&filled).cast::<u8>(), peer.cast::<u8>(), size) };
        Ok(())
    })
}

/// How many bytes of a structure the program has room for, which begins with its size.
///
/// # Safety
///
/// `place` is NULL, or readable for a number.
pub(crate) unsafe fn size_of_place<T>(place: *mut T, too_small: &'static str) -> Result<usize, Refusal> {
    handles::present(place)?;
    // SAFETY: the size is there in every version.
    let size = unsafe { place.cast::<u32>().read_unaligned() } as usize;
    if size <= size_of::<u32>() { Err(Refusal::Argument(too_small)) } else { Ok(size.min(size_of::<T>())) }
}

/// # Safety
///
/// `connection` is NULL or was a connection once; `info` is NULL, or writable for as many bytes as
/// it says.
#[unsafe(no_mangle)]
unsafe extern "C" fn ccix_connection_info(connection: *const ConnectionCell, info: *mut ConnectionInfo) -> c_int {
    // SAFETY: by the contract above.
    guard::on_connection_at_length(unsafe { handles::connection(connection) }, |named| {
        // SAFETY: by the contract above.
        let size = unsafe { size_of_place(info, "set size to sizeof(struct ccix_connection_report)") }?;
        let filled = connection_info(&report(named)?, size);
        // SAFETY: `size` bytes are writable by the contract above, and `filled` has them.
        unsafe { std::ptr::copy_nonoverlapping(std::ptr::from_ref(&filled).cast::<u8>(), info.cast::<u8>(), size) };
        Ok(())
    })
}

fn report(named: Named) -> Result<ConnectionReport, Refusal> {
    Ok(raw::report(named.endpoint, || named.live())?)
}

fn connection_info(report: &ConnectionReport, size: usize) -> ConnectionInfo {
    ConnectionInfo {
        size: u32::try_from(size).unwrap_or(0),
        mtu: report.mtu,
        window: report.window,
        open: report.open,
        rtt_ns: report.rtt.map_or(0, |rtt| u64::try_from(rtt.as_nanos()).unwrap_or(u64::MAX)),
        sent: report.sent,
        received: report.received,
        rma_bytes: report.rma_bytes,
        rnr: report.rnr,
        dropped: report.dropped,
        transport: text(report.transport),
        path: text(&report.path),
        rma_path: text(&report.rma_path),
        why: text(&report.why),
        strays: report.strays,
        path_text: text(&report.path),
        rma_path_text: text(&report.rma_path),
        why_text: text(&report.why),
    }
}

/// A text of fixed room, cut at a character if it must be, with a NUL after it.
pub(crate) fn text<const ROOM: usize>(text: &str) -> [u8; ROOM] {
    let mut end = text.len().min(ROOM - 1);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut room = [0; ROOM];
    room[..end].copy_from_slice(&text.as_bytes()[..end]);
    room
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_at_a_character() {
        assert_eq!(text::<4>("ab"), *b"ab\0\0");
        assert_eq!(text::<4>("abcd"), *b"abc\0");
        assert_eq!(text::<4>("abé"), *b"ab\0\0");
    }

    #[test]
    fn options_of_another_size_are_refused() {
        let options = |size, flags| layout::EndpointOptions {
            size,
            flags,
            recv_buffers: 7,
            send_buffers: 0,
            service: std::ptr::null(),
        };
        // SAFETY: whole structures, or NULL.
        let read = |options: &layout::EndpointOptions| unsafe { endpoint_options(options) };
        assert!(read(&options(8, 0)).is_err());
        assert!(read(&options(24, 4)).is_err());
        let one = read(&options(24, SINGLE_THREAD)).expect("good options");
        assert_eq!((raw::threading(&one), one.recv_buffers, one.disconnect_events), (Threading::One, 7, false));
        assert_eq!(one.send_buffers, EndpointOptions::default().send_buffers);
    }
}
