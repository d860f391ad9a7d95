//! What this library offers beyond CCI 2.2 (`ccix.h`).

use crate::arguments::{MISSING, Options, Report, copied, copied_if_any};
use crate::endpoint::{self, Places};
use crate::handles::{self, Handle, Named};
use crate::layout::{self, ConnectionInfo, Peer};
use crate::status::{self, Refusal};
use crate::{connection, guard, library};
use cci::__binding::{self as raw, ConnectionCell, EndpointCell, EventCell, Threading};
use cci::__binding::{Out, Text};
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

#[unsafe(no_mangle)]
extern "C" fn ccix_alloc(len: usize, ptr: Out<'_, *mut c_void>) -> c_int {
    guard::call(|| {
        let ptr = ptr.variable(MISSING)?;
        if len == 0 {
            return Err(Refusal::Argument("an allocation has at least one byte"));
        }
        let segment = raw::allocate(len).map_err(|_| Refusal::NoMemory)?;
        ptr.put(segment.base().cast());
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn ccix_event_reason(event: Handle<EventCell>) -> *const c_char {
    let slot = event.get();
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

#[unsafe(no_mangle)]
extern "C" fn ccix_device_for(uri: Text<'_>, device: Out<'_, *const layout::Device>) -> c_int {
    guard::call(|| {
        let device = device.variable(MISSING)?;
        let uri = copied(uri, "the URI is NULL")?;
        let found = library::with_opened(|opened| {
            let found = opened.context.device_for(&uri)?;
            let at = opened.context.devices().iter().position(|other| std::ptr::eq(other, found));
            at.map(|at| opened.table.address(at)).ok_or(Refusal::Argument("the device is none of cci_get_devices"))
        })?;
        device.put(found);
        Ok(())
    })
}

const SINGLE_THREAD: u32 = 1;
const DISCONNECT_EVENTS: u32 = 2;

#[unsafe(no_mangle)]
extern "C" fn ccix_create_endpoint(
    device: *const layout::Device,
    options: Options<'_, layout::EndpointOptions<'_>>,
    endpoint: Out<'_, *const EndpointCell>,
    fd: Out<'_, c_int>,
) -> c_int {
    guard::call(|| endpoint::open(device, &endpoint_options(&options)?, &Places::new(endpoint, fd)?))
}

pub(crate) fn endpoint_options(asked: &Options<'_, layout::EndpointOptions<'_>>) -> Result<EndpointOptions, Refusal> {
    let mut options = EndpointOptions::default();
    let asked = asked.load("size is not sizeof(struct ccix_endpoint_options) of this library")?;
    let Some(asked) = asked else { return Ok(options) };
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
    options.service = copied_if_any(asked.service)?;
    Ok(options)
}

#[unsafe(no_mangle)]
extern "C" fn ccix_accept_on(
    conn_req: Handle<EventCell>,
    endpoint: Handle<EndpointCell>,
    context: *const c_void,
) -> c_int {
    match endpoint.get() {
        Ok(worker) => {
            connection::answer(conn_req.get(), |slot| raw::accept_on(slot, worker, handles::context(context)))
        }
        Err(refusal) => status::refused(refusal),
    }
}

#[unsafe(no_mangle)]
extern "C" fn ccix_request_peer(conn_req: Handle<EventCell>, peer: Report<'_, Peer>) -> c_int {
    let slot = conn_req.get();
    guard::at_length(slot.ok().and_then(|slot| slot.owner.get()), || {
        let place = peer.place("set size to sizeof(struct ccix_peer)")?;
        let found = raw::peer(slot?)?.ok_or(Refusal::Option(OptionError::Disconnected))?;
        let known = u32::from(found.user.is_some())
            | u32::from(found.process.is_some()) << 1
            | u32::from(found.key.is_some()) << 2;
        place.fill(&Peer {
            size: place.size(),
            known,
            user: found.user.unwrap_or(0),
            process: found.process.unwrap_or(0),
            address: text(&found.address),
            key: found.key.unwrap_or_default(),
        });
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn ccix_connection_info(connection: Handle<ConnectionCell>, info: Report<'_, ConnectionInfo>) -> c_int {
    guard::on_connection_at_length(connection.get(), |named| {
        let place = info.place("set size to sizeof(struct ccix_connection_report)")?;
        place.fill(&connection_info(&report(named)?, place.size()));
        Ok(())
    })
}

fn report(named: Named) -> Result<ConnectionReport, Refusal> {
    Ok(raw::report(named.endpoint, || named.live())?)
}

fn connection_info(report: &ConnectionReport, size: u32) -> ConnectionInfo {
    ConnectionInfo {
        size,
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
            service: Text::NULL,
        };
        // SAFETY: whole structures.
        let read = |options: &layout::EndpointOptions<'_>| endpoint_options(&unsafe { Options::new(options) });
        assert!(read(&options(8, 0)).is_err());
        assert!(read(&options(24, 4)).is_err());
        let one = read(&options(24, SINGLE_THREAD)).expect("good options");
        assert_eq!((raw::threading(&one), one.recv_buffers, one.disconnect_events), (Threading::One, 7, false));
        assert_eq!(one.send_buffers, EndpointOptions::default().send_buffers);
    }
}
