//! The transport `auto` keeps every rule of the API, over each of its ways.

use cci::Device;
use cci_conformance::device_of;

fn over(ways: &str) -> Device {
    device_of("auto", &[("ways", ways)])
}

/// What the way `tcp` cannot do.
const TCP_EXCEPTIONS: [(&str, &str); 2] = [
    ("batch::request_tells_its_peer", "a stream comes from another port than the one where its endpoint listens"),
    ("?rma::changing_word_is_whole", "the system copies the program's memory, in pieces of its own"),
];

cci_conformance::conformance!(over_sm, || over("sm"));
cci_conformance::conformance!(over_sock, || over("sock"));
// The first way carries everything, and the second one is there.
cci_conformance::conformance!(over_sm_beside_sock, || over("sm,sock"));
cci_conformance::conformance!(over_sock_beside_sm, || over("sock,sm"));
cci_conformance::conformance!(over_tcp, || over("tcp"), except: TCP_EXCEPTIONS);
cci_conformance::conformance!(over_tcp_beside_all, || over("tcp,sm,sock"), except: TCP_EXCEPTIONS);
