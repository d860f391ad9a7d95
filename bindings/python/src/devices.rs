//! The devices of this host, and the addresses that programs open endpoints at.

use crate::arguments::{self, Seconds};
use crate::errors::{OrRaise, error};
use cci::__binding::PerProcess;
use cci::{Context, EndpointOptions, Status};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// One way out of this host: what `devices` lists, and `listen` opens.
#[pyclass(frozen, get_all, module = "cci")]
pub(crate) struct Device {
    /// Its name: the section of the configuration file, or one made from the transport.
    name: String,
    /// The name of its transport.
    transport: String,
    /// Whether endpoints can be opened on it.
    up: bool,
    /// Why it is, or is not, usable, as a sentence.
    reason: String,
    /// The largest message without a copy protocol, bytes.
    max_send_size: u32,
    /// Whether it is the default device.
    is_default: bool,
}

#[pymethods]
impl Device {
    fn __repr__(&self) -> String {
        format!("<cci.Device {}: {}>", self.name, self.reason)
    }
}

/// The devices of this process, once the configuration was read. A forked child reads it anew, and
/// has no names of its parent's job.
static CONTEXT: PerProcess<Mutex<Option<Arc<Context>>>> = PerProcess::new();

/// The devices, and the names of ranks that a job has set for them.
pub(crate) fn context(py: Python<'_>) -> PyResult<Arc<Context>> {
    let mut known =
        CONTEXT.get(Mutex::default).map_err(std::io::Error::from)?.1.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(context) = &*known {
        return Ok(Arc::clone(context));
    }
    let context = Arc::new(Context::new().or_raise(py)?);
    *known = Some(Arc::clone(&context));
    Ok(context)
}

/// Lists the devices of this host: the usable ones first, the default one before the others.
///
/// The configuration (the file of CCI_CONFIG) is read by the first call that needs it.
#[pyfunction]
pub(crate) fn devices(py: Python<'_>) -> PyResult<Vec<Device>> {
    let one = |device: &cci::Device| Device {
        name: device.name.clone(),
        transport: device.transport.clone(),
        up: device.up,
        reason: device.reason.clone(),
        max_send_size: device.max_send_size,
        is_default: device.is_default,
    };
    Ok(context(py)?.devices().iter().map(one).collect())
}

/// What an endpoint is opened with.
#[derive(Clone, Default)]
pub(crate) struct Options {
    pub(crate) recv_buffers: Option<u32>,
    pub(crate) send_buffers: Option<u32>,
    pub(crate) max_message: u64,
    pub(crate) keepalive: Option<Duration>,
    pub(crate) send_timeout: Option<Duration>,
    pub(crate) disconnect_events: bool,
}

impl Options {
    /// Checks the arguments of a call.
    pub(crate) fn new(
        recv_buffers: Option<i64>,
        send_buffers: Option<i64>,
        max_message: i64,
        keepalive: Seconds<'_, '_>,
        send_timeout: Seconds<'_, '_>,
    ) -> PyResult<Self> {
        Ok(Self {
            recv_buffers: arguments::count("recv_buffers", recv_buffers, 1)?,
            send_buffers: arguments::count("send_buffers", send_buffers, 1)?,
            max_message: arguments::bytes("max_message", max_message)?,
            keepalive: arguments::seconds("keepalive", keepalive)?,
            send_timeout: arguments::seconds("send_timeout", send_timeout)?,
            disconnect_events: true,
        })
    }

    pub(crate) fn for_library(&self, service: Option<&str>) -> EndpointOptions {
        let mut options = EndpointOptions::new().disconnect_events(self.disconnect_events);
        if let Some(service) = service {
            options = options.service(service);
        }
        if let Some(count) = self.recv_buffers {
            options = options.recv_buffers(count);
        }
        if let Some(count) = self.send_buffers {
            options = options.send_buffers(count);
        }
        options
    }

    /// What is set once the endpoint is open.
    pub(crate) fn apply(&self, py: Python<'_>, endpoint: &cci::Endpoint) -> PyResult<()> {
        endpoint.set_large_limit(self.max_message).or_raise(py)?;
        endpoint.set_keepalive(self.keepalive).or_raise(py)?;
        endpoint.set_send_timeout(self.send_timeout).or_raise(py)
    }
}

/// An address: `TRANSPORT://SERVICE`, `TRANSPORT`, `:SERVICE`, `HOST:SERVICE`; nothing is the
/// default device.
struct Address<'a> {
    transport: Option<&'a str>,
    service: Option<&'a str>,
}

impl<'a> Address<'a> {
    fn parse(text: &'a str) -> Self {
        let (transport, service) = match text.split_once("://") {
            Some((transport, service)) => (transport, service),
            None if text.contains(':') => ("", text),
            None => (text, ""),
        };
        let given = |part: &'a str| Some(part).filter(|part| !part.is_empty());
        Self { transport: given(transport), service: given(service.strip_prefix(':').unwrap_or(service)) }
    }
}

/// Opens an endpoint at an address.
pub(crate) fn open_at(py: Python<'_>, address: Option<&str>, options: &Options) -> PyResult<cci::Endpoint> {
    let context = context(py)?;
    let address = Address::parse(address.unwrap_or_default());
    let device = match address.transport {
        None => context.default_device().or_raise(py)?,
        Some(name) => {
            let of_this = || context.devices().iter().filter(|device| device.transport == name || device.name == name);
            of_this().find(|device| device.up).or_else(|| of_this().next()).ok_or_else(|| {
                let known: Vec<&str> = context.devices().iter().map(|device| &*device.name).collect();
                let known = known.join(", ");
                let what = format!("no device or transport is named {name}; give one of {known}, or a port as :5000");
                error(py, Status::NoDev, &what)
            })?
        }
    };
    open_on(py, device, address.service, options)
}

/// Opens an endpoint that leads to a URI or a name.
pub(crate) fn open_for(py: Python<'_>, uri: &str, options: &Options) -> PyResult<cci::Endpoint> {
    let context = context(py)?;
    open_on(py, context.device_for(uri).or_raise(py)?, None, options)
}

fn open_on(py: Python<'_>, device: &cci::Device, service: Option<&str>, options: &Options) -> PyResult<cci::Endpoint> {
    let for_library = options.for_library(service);
    let endpoint = py.detach(|| cci::Endpoint::open(device, &for_library)).or_raise(py)?;
    options.apply(py, &endpoint)?;
    Ok(endpoint)
}
