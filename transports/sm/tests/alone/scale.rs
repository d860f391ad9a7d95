//! What an endpoint of `sm` takes for each of many peers, and what it does for those that do
//! nothing.

use cci::Attribute;
use cci_conformance::process::{describe_descriptors, descriptors};
use cci_conformance::{World, alone, open, sm_device};

const RO: Attribute = Attribute::ReliableOrdered;

/// Each side of a lane has one socket, and one pidfd for all lanes to the same process.
#[test]
fn scale_a_peer_takes_one_descriptor_and_its_process_another() {
    const PEERS: usize = 20;
    let _alone = alone();
    let device = sm_device();
    let server = open(&device);
    let clients: Vec<_> = (0..PEERS).map(|_| open(&device)).collect();
    let before = descriptors();
    for client in &clients {
        World::new([&server, client]).connect(1, 0, RO);
    }
    let added = descriptors() - before;
    // Of each client its socket and its pidfd, of the server its sockets and one pidfd.
    assert_eq!(added, 3 * PEERS + 1, "{:?}", describe_descriptors());
    drop(clients);
    let world = World::new([&server]);
    world.until("the lanes are closed", || descriptors() < before);
}
