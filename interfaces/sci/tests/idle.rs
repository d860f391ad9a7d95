//! What open, quiet segments cost: no processor time, but for probes over a network.

#![forbid(unsafe_code)]

use cci_conformance::process::{context_switches, processor_time};
use cci_conformance::{LIMIT, device_of, sm_device};
use cci_sci::{Access, Host, Nodes, Options};
use std::io::Write;
use std::time::Duration;

#[test]
fn quiet_segments_use_no_processor_time() {
    let seconds = if std::env::var_os("CCI_TEST_LONG").is_some() { 10 } else { 2 };
    for device in [sm_device(), device_of("auto", &[]), device_of("sock", &[("ip", "127.0.0.1")])] {
        let open = || Host::open(&Options::new().nodes(Nodes::new()).device(device.clone())).expect("a host");
        let (owner, other) = (open(), open());
        let id = std::process::id();
        let segment = owner.create(id, 4096).expect("memory");
        segment.prepare().and_then(|()| segment.publish()).expect("room");
        let far = other.connect(owner.node(), id, Some(LIMIT)).expect("published");
        let window = far.map(0..4096, Access::ReadWrite).expect("mapped");
        let member = other.create_broadcast(id + 1, 4096).expect("memory");
        member.prepare().and_then(|()| member.publish()).expect("room");
        let sender = owner.connect_broadcast(id + 1, Some(LIMIT)).expect("published");
        let to_all = sender.map(0..4096, Access::ReadWrite).expect("mapped");
        let bell = owner.interrupt(None).expect("a number");
        let ring = other.connect_interrupt(owner.node(), bell.number(), Some(LIMIT)).expect("there");
        ring.trigger().expect("connected");
        bell.wait(Some(LIMIT)).expect("triggered");
        // Polling ends soon after the last message. A mirror is quiet 18 s after its last change:
        // from then on it is read every 20 s.
        let is_mirror = device.transport == "sock";
        std::thread::sleep(Duration::from_millis(if is_mirror { 18_500 } else { 500 }));
        let (time, switches) = (processor_time(), context_switches());
        std::thread::sleep(Duration::from_secs(seconds));
        let (time, switches) = (processor_time() - time, context_switches() - switches);
        let name = &device.transport;
        assert!(time < Duration::from_millis(10), "{name}: {time:?} of processor time");
        // Over a network both hosts probe each other every 3 s.
        let most = if is_mirror { 14 + (seconds / 3 + 1) * 16 } else { 14 };
        assert!(switches <= most, "{name}: {switches} context switches");
        let _ = writeln!(std::io::stderr(), "{name}: {time:?} in {seconds} s, {switches} context switches");
        window.store(0, 1_u8).expect("mapped");
        to_all.store(0, 1_u8).expect("mapped");
    }
}
