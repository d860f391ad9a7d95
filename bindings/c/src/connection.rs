//! Connections: made, answered, closed.

use crate::arguments::{self, copied};
use crate::handles::Handle;
use crate::status::Refusal;
use crate::{guard, handles, library};
use cci::__binding::{self as raw, Connect, ConnectionCell, EndpointCell, EventCell};
use cci::__binding::{In, Text};
use cci::{Attribute, CONN_REQ_LEN, ConnectError};
use std::borrow::Cow;
use std::ffi::{c_int, c_uint, c_void};
use std::time::Duration;

/// # Safety
///
/// `data_ptr` is NULL, or `data_len` bytes are readable there during the call.
#[unsafe(no_mangle)]
unsafe extern "C" fn cci_connect(
    endpoint: Handle<EndpointCell>,
    server_uri: Text<'_>,
    data_ptr: *const c_void,
    data_len: u32,
    attribute: c_uint,
    context: *const c_void,
    _flags: c_int,
    timeout: In<'_, libc::timeval>,
) -> c_int {
    guard::on_endpoint(endpoint.get(), |cell| {
        if data_len as usize > CONN_REQ_LEN {
            return Err(ConnectError::PayloadTooLong.into());
        }
        let uri = copied(server_uri, "the URI is NULL")?;
        // SAFETY: NULL, or readable during the call, in which it is copied; by the contract above.
        let payload = unsafe { arguments::bytes(data_ptr, data_len) }?.to_vec();
        let uri = resolved(&uri)?;
        let connect = Connect {
            uri: &uri,
            payload: &payload,
            attribute: Attribute::from_u32(attribute).ok_or(Refusal::Argument("no such connection attribute"))?,
            context: handles::context(context),
            timeout: timeout.get().map(|time| duration(&time)).transpose()?,
        };
        Ok(raw::connect(cell, &connect)?)
    })
}

/// The URI that a name such as `job:3` stands for; a URI stands for itself.
fn resolved(uri: &str) -> Result<Cow<'_, str>, Refusal> {
    if uri.contains("://") {
        return Ok(Cow::Borrowed(uri));
    }
    library::with_opened(|opened| Ok(opened.context.resolve(uri)?))
}

pub(crate) fn duration(time: &libc::timeval) -> Result<Duration, Refusal> {
    let negative = |_| Refusal::Argument("the timeout is negative");
    let seconds = u64::try_from(time.tv_sec).map_err(negative)?;
    let micros = u64::try_from(time.tv_usec).map_err(negative)?;
    Ok(Duration::from_secs(seconds).saturating_add(Duration::from_micros(micros)))
}

#[unsafe(no_mangle)]
extern "C" fn cci_accept(conn_req: Handle<EventCell>, context: *const c_void) -> c_int {
    answer(conn_req.get(), |slot| raw::accept(slot, handles::context(context)))
}

#[unsafe(no_mangle)]
extern "C" fn cci_reject(conn_req: Handle<EventCell>) -> c_int {
    answer(conn_req.get(), raw::reject)
}

/// Answers a request; a panic fails the endpoint that received it.
pub(crate) fn answer(
    slot: Result<&'static EventCell, Refusal>,
    act: impl FnOnce(&'static EventCell) -> Result<(), cci::RequestError>,
) -> c_int {
    guard::at_length(slot.ok().and_then(|slot| slot.owner.get()), || Ok(act(slot?)?))
}

#[unsafe(no_mangle)]
extern "C" fn cci_disconnect(connection: Handle<ConnectionCell>) -> c_int {
    guard::on_connection_at_length(connection.get(), |named| Ok(raw::disconnect(named.endpoint, || named.live())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_taken_as_they_are_meant() {
        let time = |tv_sec, tv_usec| duration(&libc::timeval { tv_sec, tv_usec }).ok();
        assert_eq!(time(1, 500_000), Some(Duration::from_millis(1500)));
        assert_eq!(time(0, 2_000_000), Some(Duration::from_secs(2)));
        assert_eq!(time(0, 0), Some(Duration::ZERO));
        assert_eq!(time(-1, 0), None);
        assert_eq!(time(0, -1), None);
        assert!(time(i64::MAX, i64::MAX).is_some());
    }
}
