//! Messages of the sizes that the key `mss` allows, in parts.

use crate::fixture::{End, NUMBER, OPTIONS, Script};
use crate::frame::{Fields, Hello, Kind};
use cci_proto::{Attribute, EventKind};
use cci_transport::Transport;

#[test]
fn a_long_message_may_come_in_parts_of_any_length() {
    let mut end = End::with(&[("mss", "65536")], OPTIONS);
    let mut script = Script::dial(&end);
    script.write(&mut end, &Hello { max_send_size: 65_536, ..Script::own_hello() }.emit());
    script.ask(&mut end, Attribute::ReliableOrdered, b"");
    end.accept();
    assert_eq!(script.hello(&mut end).max_send_size, 65_536);
    let (header, body) = script.find(&mut end, Kind::Accept);
    assert_eq!(header.connection, NUMBER);
    let connection = Fields(&body).u32();
    for (step, len) in [(1, 100), (1000, 65_536), (65_000, 65_536), (65_552, 65_536)] {
        let frame = script.emit(Kind::Message, 0, connection, &[&vec![7; len]]);
        for part in frame.chunks(step) {
            assert!(end.call().is_none());
            script.write(&mut end, part);
        }
        let slot = end.next(EventKind::Recv);
        assert_eq!(slot.detail() as usize, len, "in parts of {step} bytes");
        assert!(slot.give_back());
    }
    assert_eq!(end.tcp.shared.malformed, 0);
    let too_long = script.emit(Kind::Message, 0, connection, &[&vec![7; 65_537]]);
    script.write(&mut end, &too_long[..16]);
    end.until_violated();
    assert!(end.tcp.uri().starts_with("tcp://127.0.0.1:"));
}
