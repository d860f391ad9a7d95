//! The other process of a test: `cci-peer ROLE ARGUMENT...`, started by `cci_conformance::Peer`. It
//! says what it does in lines on its standard output, is told what to do in lines on its standard
//! input, and dies with the thread that started it.

#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "ending without destructors is what some roles are about")]

mod child;
mod hostile;
mod limits;
mod many_peers;
mod names;
mod traffic;

use cci::Device;
use cci_conformance::{device_of, sm_device};
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use std::io::{BufRead, Write};

/// No test needs a peer for longer, seconds.
const LIFETIME: u32 = 120;

/// Writes a line to the test.
fn say(line: &str) {
    let mut output = std::io::stdout().lock();
    // A test that is gone does not listen any more; this process is about to die with it.
    let _ = writeln!(output, "{line}").and_then(|()| output.flush());
}

/// Reads a line from the test.
fn hear() -> String {
    let mut line = String::new();
    let count = std::io::stdin().lock().read_line(&mut line).expect("standard input is a pipe");
    if count == 0 {
        std::process::exit(3);
    }
    line.trim_end().to_owned()
}

/// Makes this process die with the one that started it.
fn die_with_parent() {
    set_parent_process_death_signal(Some(Signal::KILL)).expect("a valid signal");
    let parent = std::env::var("CCI_TEST_PARENT").ok().and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw);
    if parent.is_some() && getppid() != parent {
        std::process::exit(3);
    }
}

/// The device of the transport, on this host; keys and values may stand behind its name.
fn device(transport: &str) -> Device {
    let mut words = transport.split(' ');
    let (name, keys) = (words.next().unwrap_or(""), words.filter_map(|word| word.split_once('=')));
    let keys: Vec<_> = keys.collect();
    match name {
        _ if !keys.is_empty() => device_of(name, &keys),
        "sm" => sm_device(),
        "tcp-streams" => limits::device_of_streams(),
        // Its ways stay on this host by themselves.
        "auto" => device_of(transport, &[]),
        _ => device_of(transport, &[("ip", "127.0.0.1")]),
    }
}

fn main() {
    die_with_parent();
    cci_conformance::sys::alarm(LIFETIME);
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    match *arguments.as_slice() {
        ["echo"] => traffic::echo(&sm_device()),
        ["echo-over", transport] => traffic::echo(&device(transport)),
        ["echo-over-sock", interface] => traffic::echo(&device_of("sock", &[("interface", interface)])),
        ["echo-over-ways", ways] => traffic::echo(&device_of("auto", &[("ways", ways)])),
        ["meet-over-ways", ways, uri] => traffic::meet(&device_of("auto", &[("ways", ways)]), uri),
        ["devices"] => traffic::devices(),
        ["echo-with-descriptors", spare] => {
            limits::spare_descriptors(spare.parse().expect("a number"));
            traffic::echo(&sm_device())
        }
        ["flood", uri, len] => traffic::flood(uri, len.parse().expect("a length")),
        ["flood-large", uri, len] => traffic::flood_large(uri, len.parse().expect("a length")),
        ["stall", uri] => traffic::stall(uri),
        ["target", uri, origin] => traffic::target(&sm_device(), uri, origin),
        ["target-over", transport, uri] => traffic::target(&device(transport), uri, "program"),
        ["open-default"] => traffic::open_default(),
        ["target-of-streams", uri] => traffic::target(&limits::device_of_streams(), uri, "program"),
        ["few-streams"] => limits::few_streams(),
        ["writer", uri] => traffic::writer(uri),
        ["send-and-exit", uri, count, len] => {
            traffic::send_and_exit(uri, count.parse().expect("a count"), len.parse().expect("a length"));
        }
        ["execute", uri] => child::execute(uri),
        ["wait"] => child::wait(),
        ["execute-over-target", uri] => child::execute_over_target(uri, false),
        ["execute-over-target-with-descriptors", uri] => child::execute_over_target(uri, true),
        ["lose-first-thread", uri] => child::lose_first_thread(uri),
        ["look"] => child::look(),
        ["execute-under-copy"] => child::execute_under_copy(),
        ["look-twice"] => child::look_twice(),
        ["leave-child", transport, uri] => child::leave_child(&device(transport), uri),
        ["fork"] => child::fork(&sm_device()),
        ["fork-over", transport] => child::fork(&device(transport)),
        ["fork-silently"] => child::fork_silently(),
        ["scribble", uri, seed] => hostile::scribble(uri, seed.parse().expect("a seed")),
        ["forge", uri, seed] => hostile::forge(uri, seed.parse().expect("a seed")),
        ["idle", transport, uri, seconds] => limits::idle(&device(transport), uri, seconds.parse().expect("seconds")),
        ["few-descriptors", transport] => limits::few_descriptors(&device(transport)),
        ["no-descriptors-later", transport] => limits::no_descriptors_later(&device(transport)),
        ["little-memory", transport] => limits::little_memory(&device(transport)),
        ["backlog", id] => limits::backlog(id.parse().expect("a number")),
        ["nobody", uri] => limits::nobody(uri),
        ["serve-as-nobody"] => limits::serve_as_nobody(),
        ["connect-as-nobody", uri] => limits::connect_as_nobody(uri),
        ["fork-and-open-again", transport] => child::fork_and_open_again(transport),
        ["handles"] => limits::handles(),
        ["connect-many", transport, uri, endpoints, each] => {
            let count = |text: &str| text.parse().expect("a count");
            many_peers::connect_many(&device(transport), uri, count(endpoints), count(each));
        }
        ["flood-by-many", transport, uri, endpoints] => {
            many_peers::flood_by_many(&device(transport), uri, endpoints.parse().expect("a count"))
        }
        ["strangers", uri] => many_peers::strangers(uri),
        ["silent-name-server"] => names::silent_server(),
        ref other => panic!("no such role: {other:?}"),
    }
}
