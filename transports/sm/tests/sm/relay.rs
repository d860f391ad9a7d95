//! The transport `sm` where the kernel forbids process_vm: RMA goes through slots with the target's
//! help, by the same rules.

use cci::{Attribute, Device};
use cci_conformance::{World, open, sm_device};

/// A device that does as if the kernel forbade process_vm.
fn relaying() -> Device {
    let mut device = sm_device();
    device.arguments.push(("rma".into(), "segment".into()));
    device
}

cci_conformance::conformance!(sm_relay, relaying, except: EXCEPTIONS);

/// What needs another way than the relay.
const EXCEPTIONS: [(&str, &str); 0] = [];

/// The report says which way RMA goes, and why.
#[test]
fn the_way_is_visible() {
    let (a, b) = (open(&relaying()), open(&sm_device()));
    let (_world, connection, at_b) = World::joined([&a, &b], Attribute::ReliableOrdered);
    let report = a.report(connection).expect("open");
    assert!(report.rma_path.contains("slots"), "{}", report.rma_path);
    assert!(report.why.contains("rma=segment"), "{}", report.why);
    let report = b.report(at_b).expect("open");
    assert!(report.rma_path.contains("process_vm"), "each side finds out for itself: {}", report.rma_path);
}
