//! From a device to the transport of an endpoint on it.

use crate::device::Device;
use crate::endpoint::EndpointOptions;
use cci_proto::Status;
use cci_transport::{Core, Link, OpenError, Reliable, ReliableOptions, Transport};

/// Opens the transport of an endpoint with this core.
pub(crate) fn open(core: &Core, device: &Device, options: &EndpointOptions) -> Result<Box<dyn Transport>, OpenError> {
    let (arguments, service) = (&device.arguments, options.service.as_deref());
    match device.transport.as_str() {
        "sm" => Ok(Box::new(cci_sm::Sm::open(core, arguments, service)?)),
        "sock" => {
            let link = cci_sock::Sock::open(arguments, service)?;
            let unchecked_on_host = link.unchecked_on_host();
            reliable(core, link, device, options, unchecked_on_host)
        }
        "sim" => reliable(core, cci_sim::SimLink::open(arguments, service)?, device, options, false),
        other => Err(OpenError::new(Status::NoDev, format!("the transport {other} is not in this build"))),
    }
}

/// Makes a link a transport.
fn reliable(
    core: &Core,
    link: impl Link,
    device: &Device,
    options: &EndpointOptions,
    unchecked_on_host: bool,
) -> Result<Box<dyn Transport>, OpenError> {
    let options = ReliableOptions {
        max_send_size: device.max_send_size,
        threading: options.threading,
        unchecked_on_host,
        first_seq: None,
    };
    Ok(Box::new(Reliable::open(core, link, &options)?))
}
