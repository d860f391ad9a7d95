//! Frames there and back, whole.

use crate::ends::{self, Got, frame, open, take};
use cci_mem::arena::SharedMemory;
use cci_proto::Address;
use cci_reliable::{Link, Outgoing, Wait};
use cci_sock::Sock;

#[test]
fn a_frame_goes_there_and_back() {
    for ip in ends::homes() {
        let (mut a, mut b) = (open(ip, &[]), open(ip, &[]));
        let to = a.resolve(b.uri()).expect("its own URI");
        assert_eq!(a.send_burst(&[frame(to, b"there")]), 1);
        let got = take(&mut b, 1);
        let Got::Frame { from, bytes, congested } = &got[0] else { panic!("{got:?}") };
        assert_eq!((bytes.as_slice(), *congested), (&b"there"[..], false));
        assert_eq!(*from, b.resolve(a.uri()).expect("its own URI"));
        assert_eq!(b.send_burst(&[frame(*from, b"back")]), 1);
        assert!(matches!(&take(&mut a, 1)[0], Got::Frame { from, bytes, .. } if bytes == b"back" && *from == to));
    }
}

/// A frame whose bytes tell which it is.
fn numbered(number: usize, len: usize) -> Vec<u8> {
    ends::with_length((0..len).map(|at| u8::try_from((number * 31 + at) % 251).expect("small")).collect(), 0)
}

/// Sends all, taking at the other ends in between; what arrives at each.
fn exchange(from: &mut Sock, frames: &[Outgoing<'_>], ends: &mut [(Address, Sock)]) -> Vec<Vec<Vec<u8>>> {
    let mut arrived = vec![Vec::new(); ends.len()];
    let mut sent = 0;
    while sent < frames.len() {
        // Few at a time, so that no receive buffer overflows.
        let until = (sent + 48).min(frames.len());
        let taken = from.send_burst(&frames[sent..until]);
        for (at, (to, end)) in ends.iter_mut().enumerate() {
            let mine = frames[sent..sent + taken].iter().filter(|frame| frame.to == *to).count();
            arrived[at].extend(take(end, mine).into_iter().map(Got::bytes));
        }
        sent += taken;
    }
    arrived
}

#[test]
fn bursts_of_mixed_sizes_and_destinations_arrive_whole() {
    for ip in ends::homes() {
        let mut a = open(ip, &[]);
        let mut ends: Vec<_> = (0..3)
            .map(|_| {
                let end = open(ip, &[]);
                (a.resolve(end.uri()).expect("its own URI"), end)
            })
            .collect();
        let lengths = [32, 32, 32, 1000, 1000, 999, 65_000, 33, 20_000, 20_000, 20_000, 20_000, 1];
        let bytes: Vec<_> = (0..600).map(|number| numbered(number, lengths[number % lengths.len()])).collect();
        let target = |number: usize| number / 7 % 3;
        let frames: Vec<_> =
            bytes.iter().enumerate().map(|(number, bytes)| frame(ends[target(number)].0, bytes)).collect();
        let arrived = exchange(&mut a, &frames, &mut ends);
        for (at, arrived) in arrived.iter().enumerate() {
            let expected: Vec<_> =
                (0..600).filter(|number| target(*number) == at).map(|number| &bytes[number]).collect();
            assert_eq!(arrived.iter().collect::<Vec<_>>(), expected, "in order too, on the loop-back");
        }
        let counters = a.counters();
        assert_eq!((counters.tx_frames, counters.tx_lost), (600, 0));
        assert!(counters.tx_segmented > 0 && counters.tx_calls <= 30, "{counters:?}");
    }
}

#[test]
fn a_full_batch_is_one_call_and_one_datagram() {
    for ip in ends::homes() {
        let (mut a, mut b) = (open(ip, &[]), open(ip, &[]));
        let to = a.resolve(b.uri()).expect("its own URI");
        let bytes: Vec<_> = (0..64).map(|number| numbered(number, if number == 63 { 40 } else { 1000 })).collect();
        let frames: Vec<_> = bytes.iter().map(|bytes| frame(to, bytes)).collect();
        assert_eq!(a.send_burst(&frames), 64);
        let got: Vec<_> = take(&mut b, 64).into_iter().map(Got::bytes).collect();
        assert_eq!(got, bytes);
        assert_eq!((a.counters().tx_calls, a.counters().tx_segmented), (1, 64));
        assert_eq!((b.counters().rx_datagrams, b.counters().rx_coalesced), (1, 64));
    }
}

#[test]
fn registered_memory_is_sent_from_where_it_lies() {
    let (mut a, mut b) = (open("127.0.0.1", &[]), open("127.0.0.1", &[]));
    let to = a.resolve(b.uri()).expect("its own URI");
    let memory = SharedMemory::new(8000).expect("memory").memory();
    let bytes = numbered(5, 8000);
    assert!(memory.copy_in(0, &bytes));
    let head = ends::with_length(b"the head is thirty-three long....".to_vec(), 1000);
    let pieces: Vec<_> = (0..8).map(|at| memory.piece(at * 1000, 1000)).collect();
    let frames: Vec<_> = pieces.iter().map(|piece| Outgoing { piece: piece.as_ref(), ..frame(to, &head) }).collect();
    assert_eq!(a.send_burst(&frames), 8);
    for (at, got) in take(&mut b, 8).into_iter().map(Got::bytes).enumerate() {
        assert_eq!(got.split_at(33), (frames[at].head, &bytes[at * 1000..(at + 1) * 1000]));
    }
    assert_eq!(a.counters().tx_segmented, 8);
}

#[test]
fn the_largest_frame_arrives_and_one_that_no_datagram_holds_is_lost_alone() {
    for ip in ends::homes() {
        let (mut a, mut b) = (open(ip, &[]), open(ip, &[]));
        let to = a.resolve(b.uri()).expect("its own URI");
        assert_eq!((a.mtu(), a.base_mtu()), (65_000, 65_000));
        let (huge, largest) = (numbered(1, 66_000), numbered(2, 65_000));
        assert_eq!(a.send_burst(&[frame(to, &huge), frame(to, &largest)]), 2);
        assert_eq!(take(&mut b, 1).remove(0).bytes(), largest);
        assert_eq!(a.counters().tx_lost, 1);
    }
}

#[test]
fn frames_beyond_the_budget_are_kept() {
    let (mut a, mut b) = (open("127.0.0.1", &[]), open("127.0.0.1", &[]));
    let to = a.resolve(b.uri()).expect("its own URI");
    let bytes: Vec<_> = (0..10).map(|number| numbered(number, 100)).collect();
    assert_eq!(a.send_burst(&bytes.iter().map(|bytes| frame(to, bytes)).collect::<Vec<_>>()), 10);
    assert!(ends::wait(&b, 10));
    let mut got = Vec::new();
    for expected in [3, 6, 9, 10] {
        b.recv_burst(3, &mut |incoming| got.push(Got::from(incoming).bytes()));
        assert_eq!(got.len(), expected);
        assert_eq!(b.arm(None, false), expected == 10, "not to sleep over frames that have arrived");
        b.disarm();
    }
    assert_eq!(got, bytes);
}

#[test]
fn an_empty_datagram_is_dropped_and_counted() {
    let mut b = open("127.0.0.1", &[]);
    let plain = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let name = b.uri().strip_prefix("sock://").expect("a URI").to_owned();
    plain.send_to(&[], &name).expect("a datagram");
    plain.send_to(b"full", &name).expect("a datagram");
    assert_eq!(take(&mut b, 1).remove(0).bytes(), b"full");
    assert_eq!((b.counters().rx_dropped, b.counters().rx_frames), (1, 1));
}

#[test]
fn our_frames_may_be_marked() {
    let (mut a, plain) = (open("127.0.0.1", &[]), std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket"));
    let to = a.resolve(&format!("sock://{}", plain.local_addr().expect("a name"))).expect("a URI");
    assert_eq!(a.send_burst(&[frame(to, b"x")]), 1);
    assert_eq!(crate::sys::receive_class(&plain), Some(2), "ECT(0)");
}

#[test]
fn the_path_says_why() {
    let mut a = open("127.0.0.1", &[]);
    let uri = a.uri().to_owned();
    let to = a.resolve(&uri).expect("its own URI");
    let (path, why) = a.path(&to);
    assert!(path.contains("segmentation offload on") && path.contains("receive coalescing on"), "{path}");
    assert!(path.contains(uri.trim_start_matches("sock://")) && why.contains("passed"), "{path}; {why}");
}
