//! What `fi_info` has of a network card (fi_nic(3)).

use crate::{fi_bus_type, fi_link_state, fid};
use std::ffi::{c_char, c_void};

structures! {
    /// A network card.
    #[since(1, 7)]
    struct fid_nic {
        fid: fid,
        device_attr: *mut fi_device_attr,
        bus_attr: *mut fi_bus_attr,
        link_attr: *mut fi_link_attr,
        prov_attr: *mut c_void,
    }

    /// What it is.
    #[since(1, 7)]
    struct fi_device_attr {
        name: *mut c_char,
        device_id: *mut c_char,
        device_version: *mut c_char,
        vendor_id: *mut c_char,
        driver: *mut c_char,
        firmware: *mut c_char,
    }

    /// Where it is.
    #[since(1, 7)]
    struct fi_pci_attr {
        domain_id: u16,
        bus_id: u8,
        device_id: u8,
        function_id: u8,
    }

    /// Where it is, on which bus.
    #[since(1, 7)]
    struct fi_bus_attr {
        bus_type: fi_bus_type,
        attr: fi_pci_attr,
    }

    /// What it is connected to; units: bytes, bits per second.
    #[since(1, 7)]
    struct fi_link_attr {
        address: *mut c_char,
        mtu: usize,
        speed: usize,
        state: fi_link_state,
        network_type: *mut c_char,
    }
}
