//! The transport `portals` between processes.

use crate::common;
use cci::Device;
use cci_conformance::{build, device_of};
use std::path::Path;
use std::sync::LazyLock;

/// Interface ids of our library: the default one, and the accelerated one.
const INTERFACES: [&str; 2] = ["0", "257"];

/// Our own library, of the profile of this test.
static LIBRARY: LazyLock<String> = LazyLock::new(|| {
    let dir = build("cci-portals3", Path::new(env!("CARGO_TARGET_TMPDIR")));
    dir.join("libcci_portals3.so").display().to_string()
});

fn device(interface: &str) -> Device {
    device_of("portals", &[("library", &LIBRARY), ("interface", interface)])
}

/// The same for another process.
fn named(interface: &str) -> String {
    format!("portals library={} interface={interface}", *LIBRARY)
}

#[test]
fn messages_of_every_length_come_back_from_a_peer_of_either_mode() {
    for (own, peer) in [(0, 0), (0, 1), (1, 0)] {
        common::messages_come_back(&device(INTERFACES[own]), &named(INTERFACES[peer]));
    }
}

#[test]
fn messages_of_all_lengths_stay_in_order() {
    common::messages_stay_in_order(&device("0"), &named("0"));
}

#[test]
fn memory_of_another_process_is_written_and_read() {
    for interface in INTERFACES {
        common::memory_is_written_and_read(&device(interface), &named("0"));
    }
}

#[test]
fn the_end_of_a_killed_peer_ends_each_operation_once() {
    for interface in INTERFACES {
        common::a_killed_peer_ends_each_operation_once(&device(interface), &named(interface));
    }
}

#[test]
fn a_forked_child_is_refused_and_starts_afresh() {
    common::a_forked_child_starts_afresh(&named("0"), "CCI_PORTALS_DEVICE");
}

#[test]
fn nothing_is_left_of_an_endpoint_that_is_closed() {
    common::nothing_is_left(&device("0"));
}

fn say(configuration: &str, beneath: Option<&str>) -> String {
    common::say(&configuration.replace("LIBRARY", &LIBRARY), "CCI_PORTALS_DEVICE", beneath)
}

#[test]
fn the_library_beneath_takes_its_device_by_name_and_never_one_over_portals() {
    const OVER: &str = "[over]\ntransport = portals\nlibrary = LIBRARY\ndefault = 1\n";
    assert!(say(OVER, None).starts_with("portals://127.0.0.1:"), "its own section is ignored");
    assert!(say(OVER, Some("sm")).starts_with("portals://"), "{}", say(OVER, Some("sm")));
    let with_another = format!("{OVER}[mine]\ntransport = sm\n");
    assert!(say(&with_another, Some("mine")).starts_with("portals://"));
    let refused = say(OVER, Some("over"));
    assert!(
        refused.contains(
            "would use the transport portals in its turn (PTL_IFACE_CYCLE); name another device by CCI_PORTALS_DEVICE"
        ),
        "{refused}"
    );
    let by_ways = format!("{OVER}[ways]\ntransport = auto\nways = portals,sm\n");
    assert!(say(&by_ways, Some("ways")).contains("PTL_IFACE_CYCLE"), "{}", say(&by_ways, Some("ways")));
    assert!(say(OVER, Some("nothing")).contains("PTL_FAIL"), "{}", say(OVER, Some("nothing")));
}

#[test]
fn a_library_that_is_none_is_refused_with_a_sentence() {
    let missing = say("[over]\ntransport = portals\nlibrary = /nowhere/libportals3.so\ndefault = 1\n", None);
    assert!(missing.contains("no usable device"), "{missing}");
    let devices = |library: &str| common::reason(&format!("[over]\ntransport = portals\nlibrary = {library}\n"));
    assert!(devices("/nowhere/libportals3.so").starts_with("cannot load a library of Portals: "));
    let other = devices("libc.so.6");
    assert_eq!(other, "the library libc.so.6 has no PtlInit; name another one by the key library");
}
