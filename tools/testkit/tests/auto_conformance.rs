//! The transport `auto` keeps every rule of the API, over each of its ways.

#![forbid(unsafe_code)]

use cci::Device;
use cci_testkit::device_of;

fn over(ways: &str) -> Device {
    device_of("auto", &[("ways", ways)])
}

/// What no way of `auto` can do.
const EXCEPTIONS: [(&str, &str); 2] = [
    ("broker::accepted_elsewhere", "which way a client will come by is not known when it is expected"),
    ("broker::many_workers", "as the other one"),
];

/// What the way `tcp` cannot do either.
const TCP_EXCEPTIONS: [(&str, &str); 3] = [
    EXCEPTIONS[0],
    EXCEPTIONS[1],
    ("batch::request_tells_its_peer", "a stream comes from another port than the one where its endpoint listens"),
];

cci_testkit::conformance!(over_sm, || over("sm"), except: EXCEPTIONS);
cci_testkit::conformance!(over_sock, || over("sock"), except: EXCEPTIONS);
// The first way carries everything, and the second one is there.
cci_testkit::conformance!(over_sm_beside_sock, || over("sm,sock"), except: EXCEPTIONS);
cci_testkit::conformance!(over_sock_beside_sm, || over("sock,sm"), except: EXCEPTIONS);
cci_testkit::conformance!(over_tcp, || over("tcp"), except: TCP_EXCEPTIONS);
cci_testkit::conformance!(over_tcp_beside_all, || over("tcp,sm,sock"), except: TCP_EXCEPTIONS);
