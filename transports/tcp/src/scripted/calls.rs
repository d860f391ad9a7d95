//! System calls of messages and RMA.

use super::rma::{FIRST, result};
use crate::fixture::{End, LIMIT, Script, bytes_of, heap};
use crate::frame::{Kind, Target};
use crate::lane::shared::SCRATCH;
use crate::sys::counted;
use cci_proto::{Access, EventKind, Rights, RmaHandle, Status};
use cci_transport::{Connection, Posted, Rma, Slot, Transport};
use std::time::Instant;

/// Two endpoints, of which the first has connected to the second.
struct Two {
    ends: [End; 2],
    cells: [&'static Connection; 2],
}

impl Two {
    fn new() -> Self {
        let mut ends = [End::new(), End::new()];
        let uri = ends[1].tcp.uri().to_owned();
        ends[0].connect(&uri, LIMIT);
        let [client, server] = &mut ends;
        let request = next(client, server, EventKind::ConnectRequest);
        server.tcp.accept(&mut server.core, request, 1).expect("an accept");
        assert!(request.give_back());
        let [accepted, connected] = [next(client, server, EventKind::Accept), next(server, client, EventKind::Connect)]
            .map(|slot| {
                let cell = slot.connection.get().expect("a connection");
                assert!(slot.give_back());
                cell
            });
        Self { ends, cells: [connected, accepted] }
    }
}

/// The next event of the second of these, which is of this kind; the first makes calls meanwhile,
/// in which nothing comes.
fn next(other: &mut End, end: &mut End, kind: EventKind) -> &'static Slot {
    let begun = Instant::now();
    loop {
        other.tcp.progress(&mut other.core);
        if let Some(slot) = end.call() {
            assert_eq!(slot.kind(), kind as u32);
            return slot;
        }
        assert!(begun.elapsed() < LIMIT, "waited in vain for an event");
    }
}

#[test]
fn the_bytes_of_a_read_and_its_result_leave_by_one_call() {
    let (mut end, mut script, _) = Script::connected();
    let memory = heap(1, 1000);
    let handle = end.register(&memory, Rights::READ);
    let [index, secret, ..] = handle.words();
    let target = Target { operation: FIRST, handle: [index, secret], offset: 0, total: 1000 };
    end.calls(10);
    counted::take();
    script.put(&mut end, Kind::Read, 0, script.connection, &[&target.emit()]);
    assert_eq!(script.find(&mut end, Kind::Answer).1.len(), 1004);
    assert_eq!(result(&script.find(&mut end, Kind::Result)), (FIRST, Ok(())));
    let [sends, ..] = counted::take();
    assert_eq!(sends, 1);
}

/// But for those that arrive before the receiver knows of them, and heads.
#[test]
fn the_bytes_of_long_operations_need_no_copy() {
    const LEN: usize = 1 << 20;
    const COUNT: usize = 32;
    let Two { ends: [mut client, mut server], cells: [to_server, _] } = Two::new();
    let (here, there) = (heap(0, LEN), heap(3, LEN));
    let local = client.register(&here, Rights::NONE);
    let remote = RmaHandle::from_words(server.register(&there, Rights::READ_WRITE).words());
    for access in [Access::Read, Access::Write] {
        counted::take();
        let (mut begun, mut ended) = (0, 0);
        while ended < COUNT {
            // As many as a program has open at a time.
            if begun < COUNT && begun < ended + 4 {
                let rma = Rma {
                    local: &local,
                    local_offset: 0,
                    remote: &remote,
                    remote_offset: 0,
                    len: LEN as u64,
                    access,
                    fence: false,
                    message: None,
                };
                client.tcp.rma(&mut client.core, to_server, &rma, Posted::Event(9)).expect("an RMA");
                begun += 1;
            }
            server.calls(1);
            if let Some(slot) = client.call() {
                assert_eq!((slot.kind(), slot.detail()), (EventKind::Send as u32, Status::Success as u32));
                assert!(slot.give_back());
                ended += 1;
            }
        }
        let [.., buffered] = counted::take();
        assert!(buffered < 2 * SCRATCH, "{buffered} bytes of {COUNT} MiB went by the buffer, {access:?}");
    }
    assert!(bytes_of(&here, LEN).iter().all(|byte| *byte == 3), "what was read");
}

/// Grants leave with the answers, also where a lane has few at a time because there are many lanes.
#[test]
fn grants_leave_with_answers() {
    const COUNT: usize = 256;
    let Two { ends: [mut client, mut server], cells: [to_server, to_client] } = Two::new();
    let _others: Vec<_> = (0..100).map(|_| [Script::connect(&mut client), Script::connect(&mut server)]).collect();
    let mut rounds = |count| {
        for _ in 0..count {
            send(&mut client, to_server);
            assert!(next(&mut client, &mut server, EventKind::Recv).give_back());
            send(&mut server, to_client);
            assert!(next(&mut server, &mut client, EventKind::Recv).give_back());
        }
    };
    // The grants that were given before there were others.
    rounds(COUNT);
    counted::take();
    rounds(COUNT);
    let [sends, receives, _] = counted::take();
    assert_eq!([sends, receives], [2 * COUNT; 2], "calls that send, and that receive");
}

fn send(end: &mut End, cell: &'static Connection) {
    let sent = end.tcp.send(&mut end.core, cell, b"a message"[..].into(), Posted::Silent(1));
    sent.expect("a send");
}

/// One call that sends and one that finds something, each way: as many as a bare stream needs. But
/// for grants, which leave once for 128 messages or more when a lane has as many as it may have.
#[test]
fn a_message_there_and_back_needs_four_calls() {
    const WARM_UP: usize = 1000;
    const COUNT: usize = 256;
    let Two { ends: [mut client, mut server], cells: [to_server, to_client] } = Two::new();
    for round in 0..WARM_UP + COUNT {
        if round == WARM_UP {
            counted::take();
        }
        send(&mut client, to_server);
        assert!(next(&mut client, &mut server, EventKind::Recv).give_back());
        send(&mut server, to_client);
        assert!(next(&mut server, &mut client, EventKind::Recv).give_back());
    }
    let [sends, receives, _] = counted::take();
    assert!((2 * COUNT..=2 * COUNT + 4).contains(&sends), "{sends} calls that send in {COUNT} rounds");
    assert!((2 * COUNT..=2 * COUNT + 4).contains(&receives), "{receives} calls that receive in {COUNT} rounds");
}
