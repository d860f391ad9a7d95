//! The transport `auto` keeps every rule of the API, over each of its ways.

#![forbid(unsafe_code)]

use cci::Device;
use cci_testkit::device_of;

fn over(ways: &str) -> Device {
    device_of("auto", &[("ways", ways)])
}

/// Which way a client comes by is not known when it is expected.
const NO_BROKER: &str = "no client is expected";

cci_testkit::conformance!(over_sm, || over("sm"), except: [
    ("broker::accepted_elsewhere", NO_BROKER),
    ("broker::many_workers", NO_BROKER),
]);

cci_testkit::conformance!(over_sock, || over("sock"), except: [
    ("broker::accepted_elsewhere", NO_BROKER),
    ("broker::many_workers", NO_BROKER),
]);

cci_testkit::conformance!(over_both, || over("sm,sock"), except: [
    ("broker::accepted_elsewhere", NO_BROKER),
    ("broker::many_workers", NO_BROKER),
]);
