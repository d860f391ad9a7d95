//! The transport `sock` keeps every rule of the API, over the loop-back interface.

use cci_conformance::device_of;

const EXCEPTIONS: &[(&str, &str)] =
    &[("connect::multicast_without_multicast", "sock has multicast: a URI of an endpoint is refused as no group's")];

cci_conformance::conformance!(sock, || device_of("sock", &[("ip", "127.0.0.1")]), except: EXCEPTIONS);
