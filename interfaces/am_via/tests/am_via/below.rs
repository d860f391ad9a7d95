//! Endpoints over a mapping of the VI Architecture.

use cci_am::{Handlers, Options};
use cci_am_via::{Buffers, Variant, ViaMapping};

pub(crate) type Mapping = ViaMapping;
pub(crate) type Endpoint<S> = cci_am::Endpoint<S, ViaMapping>;

/// A device of CCI, and how mappings are opened on it.
pub(crate) struct Device {
    pub(crate) device: cci::Device,
    pub(crate) options: cci_am_via::Options,
}

impl Device {
    pub(crate) fn new(device: cci::Device, variant: Variant) -> Self {
        Self { device, options: cci_am_via::Options::new(variant) }
    }

    /// So many credits, and buffers of that kind.
    pub(crate) fn with(mut self, credits: u16, buffers: Buffers) -> Self {
        self.options = self.options.credits(credits).buffers(buffers);
        self
    }

    /// A ring of so many bytes, and credits that go back after so many messages.
    pub(crate) fn with_ring(mut self, bytes: u32, every: u16) -> Self {
        self.options = self.options.ring(bytes).update_every(every);
        self
    }
}

pub(crate) fn open<S>(device: &Device, options: &Options, handlers: Handlers<S>, state: S) -> Endpoint<S> {
    let mapping = ViaMapping::open(&device.device, &device.options).expect("a mapping");
    Endpoint::over(mapping, options, handlers, state).expect("an endpoint")
}
