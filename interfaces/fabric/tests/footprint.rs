//! What endpoints take without peers. A program of its own: descriptors are those of the process.

use cci_fabric::{AddressVector, Domain, Endpoint, EndpointOptions, Queue, QueueOptions, bits};

/// GASNet opens three endpoints. Those of `auto` listen at one address here.
#[test]
fn three_endpoints_take_60_descriptors_and_16_mebibytes() {
    let descriptors = || std::fs::read_dir("/proc/self/fd").expect("descriptors").count();
    let resident = || {
        let status = std::fs::read_to_string("/proc/self/status").expect("a process");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
        line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number")
    };
    let domain = Domain::on(cci_conformance::device_of("auto", &[]));
    let (descriptors_before, resident_before) = (descriptors(), resident());
    let opened = [(); 3].map(|()| {
        let (vector, queue) = (AddressVector::open(&domain), Queue::open(&domain, QueueOptions::default()));
        let (endpoint, queue) = (Endpoint::new(&domain, EndpointOptions::default()), queue.expect("a queue"));
        endpoint.bind_vector(&vector).expect("a vector");
        endpoint.bind_queue(&queue, bits::TRANSMIT | bits::RECV).expect("a queue");
        endpoint.enable().expect("an endpoint");
        endpoint
    });
    let (taken, kibibytes) = (descriptors() - descriptors_before, resident() - resident_before);
    assert!(taken <= 60, "{taken} descriptors");
    assert!(kibibytes <= 16 << 10, "{kibibytes} KiB");
    drop(opened);
}
