//! Endpoints.

use crate::arguments::{MISSING, copied};
use crate::handles::Handle;
use crate::library::Opened;
use crate::status::Refusal;
use crate::{guard, layout, library, rma};
use cci::__binding::{self as raw, EndpointCell, Ordering};
use cci::__binding::{Out, Text, Variable};
use cci::{CloseError, Endpoint, EndpointOptions};
use std::ffi::c_int;

/// Where the results of opening go.
pub(crate) struct Places<'call> {
    /// The endpoint.
    endpoint: Variable<'call, *const EndpointCell>,
    /// Its OS handle; none when the program polls.
    handle: Option<Variable<'call, c_int>>,
}

impl<'call> Places<'call> {
    pub(crate) fn new(endpoint: Out<'call, *const EndpointCell>, handle: Out<'call, c_int>) -> Result<Self, Refusal> {
        Ok(Self { endpoint: endpoint.variable(MISSING)?, handle: handle.asked() })
    }
}

/// Opens an endpoint on the device that the program names, or on the default one.
pub(crate) fn open(
    device: *const layout::Device,
    options: &EndpointOptions,
    places: &Places<'_>,
) -> Result<(), Refusal> {
    library::with_opened(|opened| {
        let at = if device.is_null() {
            let default = opened.context.default_device()?;
            opened.context.devices().iter().position(|other| std::ptr::eq(other, default))
        } else {
            opened.table.position(device)
        };
        let at = at.ok_or(Refusal::Argument("the device is none of cci_get_devices"))?;
        let endpoint = Endpoint::open(&opened.context.devices()[at], options)?;
        let cell = keep(opened, at, endpoint);
        hand_out(cell, places)
    })
}

/// Keeps an endpoint for the program, on the device at this position; from here on the list closes
/// it, if the program does not.
pub(crate) fn keep(opened: &mut Opened, at: usize, endpoint: Endpoint) -> &'static EndpointCell {
    // SAFETY: whoever closes an endpoint of a C program, or returns its events, is that program.
    let cell = unsafe { raw::into_cell(endpoint) };
    opened.endpoints.push((cell, cell.generation()));
    cell.device.store(opened.table.address(at).cast_mut().cast(), Ordering::Relaxed);
    cell
}

/// Writes an endpoint to where the program wants it.
pub(crate) fn hand_out(cell: &'static EndpointCell, places: &Places<'_>) -> Result<(), Refusal> {
    if let Some(place) = &places.handle {
        place.put(raw::handle(cell)?);
    }
    places.endpoint.put(cell);
    Ok(())
}

/// Closes an endpoint that the program has left open, if it still is the one of that generation.
pub(crate) fn close_left_open(cell: &'static EndpointCell, generation: u32) {
    if cell.generation() == generation {
        guard::on(Some(cell), || {
            // A copy that is left is asked for by the caller.
            // SAFETY: the program has ended its use of the library, and with it of all events.
            if let Err(CloseError::Unusable(why)) = unsafe { raw::close_for_owner(cell, generation) } {
                return Err(why.into());
            }
            rma::forget(cell);
            Ok(())
        });
    }
}

/// An endpoint that is busy is closed all the same.
pub(crate) fn close(cell: &'static EndpointCell, generation: u32) -> Result<(), CloseError> {
    // SAFETY: the events of a C program are pointers, which it does not follow after the close.
    let closed = unsafe { raw::close(cell) };
    if !matches!(closed, Err(CloseError::Unusable(_))) {
        rma::forget(cell);
        library::forget(cell, generation);
    }
    closed
}

#[unsafe(no_mangle)]
extern "C" fn cci_create_endpoint(
    device: *const layout::Device,
    _flags: c_int,
    endpoint: Out<'_, *const EndpointCell>,
    fd: Out<'_, c_int>,
) -> c_int {
    guard::call(|| open(device, &EndpointOptions::default(), &Places::new(endpoint, fd)?))
}

/// Whether a service is a text without a port or place: programs pass the name of their host.
fn is_hint(service: &str) -> bool {
    let is_place = service.contains([':', '/']) || service.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    !is_place
}

#[unsafe(no_mangle)]
extern "C" fn cci_create_endpoint_at(
    device: *const layout::Device,
    service: Text<'_>,
    _flags: c_int,
    endpoint: Out<'_, *const EndpointCell>,
    fd: Out<'_, c_int>,
) -> c_int {
    guard::call(|| {
        if device.is_null() {
            return Err(Refusal::Argument("an endpoint at a service needs a device"));
        }
        let service = copied(service, "the service is NULL")?;
        let options = if is_hint(&service) {
            tracing::info!(%service, "a service that names no port is no place: any port is taken");
            EndpointOptions::new()
        } else {
            EndpointOptions::new().service(service)
        };
        open(device, &options, &Places::new(endpoint, fd)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cci_destroy_endpoint(endpoint: Handle<EndpointCell>) -> c_int {
    guard::on_endpoint(endpoint.get(), |cell| {
        let generation = cell.generation();
        Ok(close(cell, generation)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cci_arm_os_handle(endpoint: Handle<EndpointCell>, _flags: c_int) -> c_int {
    guard::on_endpoint(endpoint.get(), |cell| Ok(raw::arm(cell)?))
}
