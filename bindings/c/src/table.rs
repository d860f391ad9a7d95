//! The devices as C programs read them.

use crate::layout;
use crate::status::c_string;
use cci::Context;
use std::ffi::{CString, c_char};

/// The arrays behind `cci_get_devices`. They stay where they are until dropped.
pub(crate) struct Table {
    views: Box<[layout::Device]>,
    /// The devices, and a NULL.
    pointers: Box<[*const layout::Device]>,
    /// What the views point into.
    _texts: Vec<CString>,
    _lists: Vec<Box<[*const c_char]>>,
}

// SAFETY: the pointers lead into this table's own boxes, which are not written after `new`.
unsafe impl Send for Table {}

impl Table {
    /// The devices of a context, in its order.
    pub(crate) fn new(context: &Context) -> Self {
        let mut texts = Vec::new();
        let mut lists = Vec::new();
        let mut keep = |text: &str| {
            let text = c_string(text);
            let start = text.as_ptr();
            texts.push(text);
            start
        };
        let views: Box<[layout::Device]> = context
            .devices()
            .iter()
            .map(|device| {
                let pairs = device.arguments.iter().map(|(key, value)| keep(&format!("{key}={value}")));
                let list: Box<[*const c_char]> = pairs.chain([std::ptr::null()]).collect();
                let conf_argv = list.as_ptr();
                lists.push(list);
                layout::Device {
                    name: keep(&device.name),
                    transport: keep(&device.transport),
                    up: device.up.into(),
                    info: keep(&device.reason),
                    conf_argv,
                    max_send_size: device.max_send_size,
                    rate: device.rate,
                    pci: pci(device.pci),
                }
            })
            .collect();
        let pointers = views.iter().map(std::ptr::from_ref).chain([std::ptr::null()]).collect();
        Self { views, pointers, _texts: texts, _lists: lists }
    }

    /// The position of the device that a program names. The pointer is compared, never followed.
    pub(crate) fn position(&self, device: *const layout::Device) -> Option<usize> {
        self.views.iter().position(|view| std::ptr::eq(view, device))
    }

    /// The array of the devices' addresses, which ends with NULL.
    pub(crate) fn array(&self) -> *const *const layout::Device {
        self.pointers.as_ptr()
    }

    /// The address of a device.
    pub(crate) fn address(&self, at: usize) -> *const layout::Device {
        self.pointers[at]
    }
}

fn pci(place: Option<cci::Pci>) -> layout::Pci {
    place.map_or(layout::Pci { domain: u32::MAX, bus: u32::MAX, dev: u32::MAX, func: u32::MAX }, |place| layout::Pci {
        domain: place.domain,
        bus: place.bus,
        dev: place.dev,
        func: place.func,
    })
}
