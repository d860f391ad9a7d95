//! From a device to the transport of an endpoint on it.

use crate::device::Device;
use crate::endpoint::EndpointOptions;
use cci_proto::Status;
use cci_reliable::{Link, Reliable, ReliableOptions};
use cci_transport::{Core, OpenError, Transport};
use std::borrow::Cow;

/// The key, of devices of every transport, that says whether rights of registrations are enforced.
pub(crate) const RMA_RIGHTS: &str = "rma_rights";
/// Its values.
pub(crate) const RMA_RIGHTS_VALUES: [&str; 2] = ["enforced", "open"];

/// Whether peers may read and write every registration of endpoints on this device.
pub(crate) fn rights_are_open(device: &Device) -> Result<bool, OpenError> {
    match device.arguments.iter().rfind(|(key, _)| key == RMA_RIGHTS).map(|(_, value)| value.as_str()) {
        None | Some("enforced") => Ok(false),
        Some("open") => Ok(true),
        Some(value) => {
            let what = format!("the value '{value}' of the key '{RMA_RIGHTS}' is not enforced or open");
            Err(OpenError::new(Status::Inval, what))
        }
    }
}

/// The keys of a device that its transport reads.
fn own_keys(device: &Device) -> Cow<'_, [(String, String)]> {
    let common = |(key, _): &(String, String)| key == RMA_RIGHTS;
    if device.arguments.iter().any(common) {
        Cow::Owned(device.arguments.iter().filter(|pair| !common(pair)).cloned().collect())
    } else {
        Cow::Borrowed(&device.arguments)
    }
}

/// Opens the transport of an endpoint with this core.
pub(crate) fn open(core: &Core, device: &Device, options: &EndpointOptions) -> Result<Box<dyn Transport>, OpenError> {
    #[cfg(feature = "trace")]
    if let Some(stamps) = &options.stamps {
        return traced::open(core, device, options, stamps);
    }
    let (arguments, service) = (&*own_keys(device), options.service.as_deref());
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

/// Endpoints whose layers are stamped.
#[cfg(feature = "trace")]
mod traced {
    use super::{Core, Device, EndpointOptions, OpenError, Transport, own_keys, reliable};
    use cci_reliable::TracedLink;
    use cci_transport::trace::{Stamps, Traced};
    use std::sync::Arc;

    /// The transport, stamped, and its link, if it has one.
    pub(super) fn open(
        core: &Core,
        device: &Device,
        options: &EndpointOptions,
        stamps: &Arc<Stamps>,
    ) -> Result<Box<dyn Transport>, OpenError> {
        let inner = if device.transport == "sock" {
            let link = cci_sock::Sock::open(&own_keys(device), options.service.as_deref())?;
            let unchecked_on_host = link.unchecked_on_host();
            reliable(core, TracedLink::new(link, stamps.clone()), device, options, unchecked_on_host)?
        } else {
            super::open(core, device, &EndpointOptions { stamps: None, ..options.clone() })?
        };
        Ok(Box::new(Traced::new(inner, stamps.clone())))
    }
}
