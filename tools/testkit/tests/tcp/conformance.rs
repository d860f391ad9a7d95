//! The transport `tcp` keeps every rule of the API, over the loop-back interface.

use cci_conformance::{device_of, sealed_device_of};

cci_conformance::conformance!(tcp, || device_of("tcp", &[]), except: [
    ("batch::request_tells_its_peer", "a stream comes from another port than the one where its endpoint listens"),
    ("?rma::changing_word_is_whole", "the system copies the program's memory, in pieces of its own"),
]);

cci_conformance::conformance!(tcp_sealed, || sealed_device_of("tcp", &[]), except: [
    ("batch::request_tells_its_peer", "a stream comes from another port than the one where its endpoint listens"),
    ("?rma::changing_word_is_whole", "the cipher reads the program's memory, in pieces of its own"),
]);

cci_conformance::conformance!(tcp_of_four_sealed_streams, || sealed_device_of("tcp", &[("streams", "4")]), except: [
    ("batch::request_tells_its_peer", "a stream comes from another port than the one where its endpoint listens"),
    ("?rma::changing_word_is_whole", "the cipher reads the program's memory, in pieces of its own"),
]);

// Long RMA goes in parts over four streams, and no rule knows of it.
cci_conformance::conformance!(tcp_of_four_streams, || device_of("tcp", &[("streams", "4")]), except: [
    ("batch::request_tells_its_peer", "a stream comes from another port than the one where its endpoint listens"),
    ("?rma::changing_word_is_whole", "the system copies the program's memory, in pieces of its own"),
]);
