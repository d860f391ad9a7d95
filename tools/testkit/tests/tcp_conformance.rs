//! The transport `tcp` keeps every rule of the API, over the loop-back interface.

#![forbid(unsafe_code)]

use cci_testkit::device_of;

cci_testkit::conformance!(tcp, || device_of("tcp", &[]), except: [
    ("batch::request_tells_its_peer", "a stream comes from another port than the one where its endpoint listens"),
]);
