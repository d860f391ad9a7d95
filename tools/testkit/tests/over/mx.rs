//! The transport `mx` between processes.

use crate::common;
use cci::Device;
use cci_conformance::{build, device_of};
use std::path::Path;
use std::sync::LazyLock;

/// Our own library, of the profile of this test.
static LIBRARY: LazyLock<String> = LazyLock::new(|| {
    let dir = build("cci-myriexpress", Path::new(env!("CARGO_TARGET_TMPDIR")));
    dir.join("libcci_myriexpress.so").display().to_string()
});

fn device() -> Device {
    device_of("mx", &[("library", &LIBRARY)])
}

/// The same for another process.
fn named() -> String {
    format!("mx library={}", *LIBRARY)
}

#[test]
fn messages_of_every_length_come_back_from_a_peer() {
    common::messages_come_back(&device(), &named());
}

#[test]
fn messages_of_all_lengths_stay_in_order() {
    common::messages_stay_in_order(&device(), &named());
}

#[test]
fn memory_of_another_process_is_written_and_read() {
    common::memory_is_written_and_read(&device(), &named());
}

#[test]
fn the_end_of_a_killed_peer_ends_each_operation_once() {
    common::a_killed_peer_ends_each_operation_once(&device(), &named());
}

#[test]
fn a_forked_child_is_refused_and_starts_afresh() {
    common::a_forked_child_starts_afresh(&named(), "CCI_MX_DEVICE");
}

#[test]
fn nothing_is_left_of_an_endpoint_that_is_closed() {
    common::nothing_is_left(&device());
}

fn say(configuration: &str, beneath: Option<&str>) -> String {
    common::say(&configuration.replace("LIBRARY", &LIBRARY), "CCI_MX_DEVICE", beneath)
}

#[test]
fn the_library_beneath_takes_its_device_by_name_and_never_one_over_a_library() {
    const OVER: &str = "[over]\ntransport = mx\nlibrary = LIBRARY\ndefault = 1\n";
    let by_default = say(OVER, None);
    assert!(by_default.starts_with("mx://127.0.0.1/"), "its own section is ignored: {by_default}");
    assert!(say(OVER, Some("sm")).starts_with("mx://"), "{}", say(OVER, Some("sm")));
    let with_another = format!("{OVER}[mine]\ntransport = sm\n");
    assert!(say(&with_another, Some("mine")).starts_with("mx://"));
    let others = format!("{OVER}[ways]\ntransport = auto\nways = mx,sm\n[next]\ntransport = portals\n");
    for name in ["over", "ways", "next"] {
        let refused = say(&others, Some(name));
        assert!(refused.contains("would use another library in its turn"), "{refused}");
        assert!(refused.contains("name another device by CCI_MX_DEVICE, such as sm"), "{refused}");
    }
    assert!(say(OVER, Some("nothing")).contains("there is no device for an endpoint"));
}

#[test]
fn a_library_that_is_none_is_refused_with_a_sentence() {
    let reason = |library: &str| common::reason(&format!("[over]\ntransport = mx\nlibrary = {library}\n"));
    assert!(reason("/nowhere/libmyriexpress.so").starts_with("cannot load a library of MX: "));
    let other = reason("libc.so.6");
    assert_eq!(other, "the library libc.so.6 has no mx__init_api; name another one by the key library");
}
