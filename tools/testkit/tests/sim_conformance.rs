//! The transport `sim` keeps every rule of the API, over a network without faults and over a bad one.

#![forbid(unsafe_code)]

use cci::Device;
use cci_testkit::device_of;
use std::sync::atomic::{AtomicU32, Ordering};

const EXCEPTIONS: &[(&str, &str)] = &[(
    "connect::multicast_without_multicast",
    "sim has multicast: a URI of an endpoint is refused as no group's",
)];

/// A device of a network of its own: virtual time moves only when all of its endpoints let it.
fn device(keys: &[(&str, &str)]) -> Device {
    static LAST: AtomicU32 = AtomicU32::new(0);
    let network = format!("net{}", LAST.fetch_add(1, Ordering::Relaxed));
    device_of("sim", &[&[("network", network.as_str())], keys].concat())
}

cci_testkit::conformance!(sim, || device(&[("delay", "2000"), ("bandwidth", "1250000000")]), except: EXCEPTIONS);
