//! The transport `sock` keeps every rule of the API, over the loop-back interface.

use cci_conformance::device_of;

const EXCEPTIONS: &[(&str, &str)] =
    &[("connect::multicast_without_multicast", "sock has multicast: a URI of an endpoint is refused as no group's")];

/// Any secret will do.
const SECRET: &str = "5f5e5d5c5b5a595857565554535251504f4e4d4c4b4a49484746454443424140";

cci_conformance::conformance!(sock_sealed, || device_of("sock", &[("ip", "127.0.0.1"), ("secret", SECRET)]));
cci_conformance::conformance!(sock, || device_of("sock", &[("ip", "127.0.0.1")]), except: EXCEPTIONS);
