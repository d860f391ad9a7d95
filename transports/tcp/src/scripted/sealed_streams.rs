//! Sealed lanes of several streams.

use crate::endpoint::Tcp;
use crate::fixture::{End, Script, bytes_of, heap};
use crate::frame::Hello;
use crate::lane::further::Stream;
use cci_proto::{Access, EventKind, Rights, RmaHandle, Status};
use cci_transport::{Connection, Posted, Rma, Transport};
use std::time::Duration;

const LONG: usize = 4 << 20;

struct Pair {
    client: End,
    server: End,
    cells: [&'static Connection; 2],
}

impl Pair {
    /// An open connection, whose lane has four streams.
    fn new() -> Self {
        let [mut client, mut server] = [(); 2].map(|()| End::sealed_with(1, "4"));
        client.connect(&format!("tcp://{}", server.address()), Duration::from_secs(20));
        let (mut own, mut peers) = (None, None);
        client.until("a connection", |client| {
            server.tcp.progress(&mut server.core);
            if let Some(slot) = server.core.pop() {
                match slot.kind() == EventKind::ConnectRequest as u32 {
                    true => server.tcp.accept(&mut server.core, slot, 1).expect("an accept"),
                    false => peers = slot.connection.get(),
                }
                assert!(slot.give_back());
            }
            if let Some(slot) = client.core.pop() {
                own = slot.connection.get();
                assert!(slot.give_back());
            }
            own.is_some() && peers.is_some()
        });
        let mut pair = Self { client, server, cells: [own.expect("open"), peers.expect("open")] };
        pair.until("all streams", |pair| pair.streams(0).len() == 3 && pair.streams(1).len() == 3);
        pair
    }

    /// Calls of both endpoints until `done`.
    fn until(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        let begun = std::time::Instant::now();
        while !done(self) {
            assert!(begun.elapsed() < crate::fixture::LIMIT, "waited in vain for {what}");
            self.client.tcp.progress(&mut self.client.core);
            self.server.tcp.progress(&mut self.server.core);
        }
    }

    /// The open further streams at the client (0) or the server (1).
    fn streams(&mut self, of: usize) -> Vec<&mut Stream> {
        let tcp: &mut Tcp = if of == 0 { &mut self.client.tcp } else { &mut self.server.tcp };
        let Some((lane, _)) = tcp.lane_of(self.cells[of]) else { return vec![] };
        let streams = lane.further.iter_mut().flat_map(|further| &mut further.streams);
        streams.flatten().map(|stream| &mut **stream).filter(|stream| stream.is_open()).collect()
    }

    fn rma(&mut self, [local, remote]: [&RmaHandle; 2], access: Access) {
        let (len, fence, message) = (LONG as u64, false, None);
        let rma = Rma { local, local_offset: 0, remote, remote_offset: 0, len, access, fence, message };
        self.client.tcp.rma(&mut self.client.core, self.cells[0], &rma, Posted::Event(9)).expect("an RMA");
    }

    /// Bytes at the client and at the server, and their registrations.
    fn memory(&mut self) -> ([std::sync::Arc<cci_mem::memory::HeapBytes>; 2], [RmaHandle; 2]) {
        let bytes = [heap(3, LONG), heap(4, LONG)];
        let local = self.client.register(&bytes[0], Rights::NONE);
        let remote = self.server.register(&bytes[1], Rights::READ_WRITE);
        (bytes, [local, remote])
    }
}

#[test]
fn long_rma_goes_over_all_streams_by_records() {
    let mut pair = Pair::new();
    assert!((0..2).all(|of| pair.streams(of).iter().all(|stream| stream.seal.is_some())));
    let ([_, target], [local, remote]) = pair.memory();
    let back = heap(5, LONG);
    let back_to = pair.client.register(&back, Rights::NONE);
    for (local, access) in [(&local, Access::Write), (&back_to, Access::Read)] {
        pair.rma([local, &remote], access);
        let mut event = None;
        pair.until("its end", |pair| {
            event = pair.client.core.pop();
            event.is_some()
        });
        let slot = event.expect("just seen");
        assert_eq!((slot.kind(), slot.detail()), (EventKind::Send as u32, Status::Success as u32));
        assert!(slot.give_back());
    }
    assert!([&target, &back].iter().all(|bytes| bytes_of(bytes, LONG).iter().all(|byte| *byte == 3)));
    let numbers = |stream: &mut Stream| stream.seal.as_ref().expect("sealed").numbers();
    let numbers: Vec<_> = pair.streams(0).into_iter().map(numbers).collect();
    assert!(numbers.iter().any(|(sent, _)| *sent > 0) && numbers.iter().any(|(_, received)| *received > 0));
}

/// A record with another number than the next one, as after one that was left out.
#[test]
fn a_forged_record_on_a_further_stream_ends_the_lane() {
    let mut pair = Pair::new();
    let ([_, target], [local, remote]) = pair.memory();
    for stream in pair.streams(0) {
        let seal = stream.seal.as_mut().expect("sealed");
        let (sent, received) = seal.numbers();
        seal.skip_to(sent + 1, received);
    }
    pair.rma([&local, &remote], Access::Write);
    pair.until("its end", |pair| pair.server.tcp.lanes.iter().flatten().count() == 0);
    assert_eq!(pair.server.tcp.shared.sealing.as_ref().map(|sealing| sealing.forged), Some(1));
    let why = pair.server.core.why_broken(pair.cells[1]).expect("a reason");
    assert!(why.contains("was not sealed by a peer with the secret"), "{why}");
    // Only the first stream had records that were right.
    assert!(bytes_of(&target, LONG).contains(&4));
}

/// Whoever has seen the offer on the way joins nothing without the secret.
#[test]
fn a_stream_without_the_secret_does_not_join_a_sealed_lane() {
    let mut pair = Pair::new();
    let (lane, _) = pair.server.tcp.lane_of(pair.cells[1]).expect("a lane");
    let further = lane.further.as_mut().expect("streams");
    let offer = further.offer;
    // Its number is free.
    further.streams[2] = None;
    for (sealed, forged) in [(false, 0), (true, 1)] {
        let mut script = Script::dial(&pair.server);
        let hello = Hello { sealed, offer, stream: 3, ..Script::own_hello() };
        script.write(&mut pair.server, &[&hello.emit()[..], &[7; 48]].concat());
        script.until_closed(&mut pair.server);
        assert_eq!(pair.server.tcp.shared.sealing.as_ref().map(|sealing| sealing.forged), Some(forged));
        let (lane, _) = pair.server.tcp.lane_of(pair.cells[1]).expect("a lane");
        assert!(lane.further.as_ref().is_some_and(|further| further.streams[2].is_none()));
    }
}
