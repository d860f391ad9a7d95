//! C programs, each of which checks one subject and ends with 0.

use crate::prefix::{command, here, program, run, scratch, succeeds};
use std::io::Write;

fn check(name: &str) {
    let dir = scratch();
    run(&program(format!("{name}.c"), dir.path()));
}

/// Runs it with devices of one transport at a time.
fn check_over_each(name: &str) {
    let dir = scratch();
    let program = program(format!("{name}.c"), dir.path());
    for transport in ["sm", "sock", "tcp"] {
        succeeds(command(&program).env("CCI_CTP", transport), &format!("{name} on {transport}"));
    }
}

#[test]
fn initialization_is_counted_and_repeatable() {
    check("lifecycle");
}

#[test]
fn wrong_arguments_are_refused() {
    check("arguments");
}

#[test]
fn requests_are_answered_once() {
    check("requests");
}

#[test]
fn messages_arrive_and_events_are_returned() {
    check("messages");
}

#[test]
fn events_come_by_the_batch() {
    check("batch");
}

#[test]
fn copies_of_a_stopped_peer_are_told_of() {
    check("busy");
}

#[test]
fn flags_that_do_not_apply_are_ignored() {
    check("flags");
}

/// Of old programs that name no right, and rely on none being enforced.
#[test]
fn a_device_can_waive_the_rights_of_rma() {
    let dir = scratch();
    let program = program("flags.c", dir.path());
    for transport in ["sm", "sock", "sim", "tcp"] {
        for rights in ["open", "enforced"] {
            let file = dir.path().join("cci.ini");
            let text = format!("[it]\ntransport = {transport}\nrma_rights = {rights}\n");
            std::fs::write(&file, text).expect("a configuration file");
            let mut command = command(&program);
            command.arg(rights).env("CCI_CONFIG", &file).env("CCI_LOG", "warn");
            let output = succeeds(&mut command, &format!("flags on {transport}, {rights}"));
            let said = String::from_utf8_lossy(&output.stderr).matches("rma_rights = open").count();
            assert_eq!(said, usize::from(rights == "enforced"), "how often the key is named");
        }
    }
}

/// A thread with a cancellation pending calls every function.
#[test]
fn no_function_is_a_cancellation_point() {
    let source = here().join("tests/c/cancelled.c");
    let text = std::fs::read_to_string(&source).expect("the program");
    let exported = std::fs::read_to_string(here().join("exported.list")).expect("the list");
    for function in exported.lines() {
        assert!(text.contains(&format!("{function}(")), "{} does not call {function}", source.display());
    }
    let dir = scratch();
    let program = program(&source, dir.path());
    for transport in ["sm", "sock", "tcp"] {
        succeeds(command(&program).arg(transport), &format!("cancelled on {transport}"));
    }
}

#[test]
fn handles_that_were_valid_once_are_refused() {
    check("stale");
}

/// Pages of 2 MiB, of the program's or the system's choice, addresses beyond 2^47, and a limit
/// under which nothing may be locked. What the system lacks is left out, with the reason.
#[test]
fn remote_memory_of_each_kind_is_read_and_written() {
    let dir = scratch();
    let program = program("memory_kinds.c", dir.path());
    for kind in ["huge", "transparent", "high", "small"] {
        for transport in ["sm", "sock", "tcp"] {
            let mut command = command(&program);
            let output = succeeds(command.arg(kind).env("CCI_CTP", transport), &format!("{kind} on {transport}"));
            if output.stdout == b"skipped\n" {
                let why = if kind == "huge" {
                    "the system has set no pages of 2 MiB aside (sysctl vm.nr_hugepages=8)"
                } else {
                    "this system has none"
                };
                // Without a standard error there is nobody to tell.
                let _ = writeln!(std::io::stderr(), "{kind} memory on {transport}: skipped: {why}");
            }
        }
    }
}

#[test]
fn remote_memory_is_read_and_written() {
    check("memory");
}

#[test]
fn options_are_set_and_read() {
    check("options");
}

#[test]
fn the_os_handle_tells_of_events() {
    check("handle");
}

#[test]
fn a_forked_child_starts_afresh() {
    check_over_each("forked");
}

#[test]
fn children_that_live_on_keep_nothing_alive() {
    check("children");
}

#[test]
fn many_threads_share_an_endpoint() {
    check("threads");
}

#[test]
fn finalize_closes_the_endpoints_of_other_threads() {
    check_over_each("single");
}

/// Of address space and of file sizes, set after `cci_init`.
#[test]
fn limits_refuse_an_endpoint_and_end_no_program() {
    let dir = scratch();
    let file = dir.path().join("cci.ini");
    let text =
        "[a]\ntransport = sm\n[b]\ntransport = sock\nip = 127.0.0.1\n[c]\ntransport = sim\n[d]\ntransport = tcp\n";
    std::fs::write(&file, text).expect("a configuration file");
    let program = program("limited.c", dir.path());
    for transport in ["sm", "sock", "sim", "tcp"] {
        let mut command = command(&program);
        succeeds(command.env("CCI_CONFIG", &file).env("CCI_CTP", transport), &format!("limited on {transport}"));
    }
}

#[test]
fn the_extensions_do_what_they_say() {
    check("extension");
}

/// The program expects the mistake; this test, that it is reported only where it was asked for.
#[test]
fn a_mistake_in_the_configuration_is_told() {
    let dir = scratch();
    let file = dir.path().join("cci.ini");
    std::fs::write(&file, "[here]\ntransport = sn\n").expect("a configuration file");
    let program = program("misconfigured.c", dir.path());
    for (debug, told) in [("", false), ("err", true)] {
        let output = succeeds(command(&program).env("CCI_CONFIG", &file).env("CCI_DEBUG", debug), "misconfigured");
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(complaint.contains("cci.ini"), told, "with CCI_DEBUG={debug:?}: {complaint}");
    }
}

/// Order, names, settings, and a device that is not usable.
#[test]
fn devices_are_those_of_the_configuration() {
    let dir = scratch();
    let file = dir.path().join("cci.ini");
    let text = "[ib]\ntransport = verbs\n[second]\ntransport = sm\nmss = 1024\n[first]\ntransport = sm\ndefault = 1\n";
    std::fs::write(&file, text).expect("a configuration file");
    let program = program("configured.c", dir.path());
    succeeds(command(&program).env("CCI_CONFIG", &file), "configured");
}

#[test]
fn without_a_device_no_endpoint_is_created() {
    let dir = scratch();
    let program = program("deviceless.c", dir.path());
    succeeds(command(&program).env("CCI_CTP", "^sm,sock,tcp"), "deviceless");
}
