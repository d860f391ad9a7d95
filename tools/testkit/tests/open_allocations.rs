//! What opening an endpoint takes from the allocator, whose failure ends the process: little,
//! because a trial of the address space before it proves no more than that there was room then.

#![forbid(unsafe_code)]

use cci_conformance::{device_of, open, sm_device};
use cci_instruments::{CountingAllocator, peak_of};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// One test only, since the allocator counts for the whole process.
#[test]
fn opening_an_endpoint_takes_little_from_the_allocator() {
    const LIMIT: usize = 512 << 10;
    let of_network = |transport| device_of(transport, &[("ip", "127.0.0.1")]);
    for device in [sm_device(), of_network("sock"), of_network("tcp"), device_of("sim", &[])] {
        // What is made once a process, then what each endpoint takes.
        for nth in ["the first", "a further"] {
            let mut endpoint = None;
            let bytes = peak_of(|| endpoint = Some(open(&device)));
            assert!(bytes > 0 && bytes <= LIMIT, "{nth} endpoint over {}: {bytes} bytes", device.transport);
        }
    }
}
