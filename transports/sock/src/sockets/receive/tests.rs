//! Datagrams that do not fit, and batches that grow.

use super::{LARGE, Receiver, STREAK, Stream, WANT, WANT_LARGE};
use cci_reliable::Incoming;
use rustix::io::Errno;
use std::net::UdpSocket;
use std::os::fd::AsFd;

fn pair() -> (UdpSocket, UdpSocket) {
    let make = || UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let (a, b) = (make(), make());
    a.connect(b.local_addr().expect("a name")).expect("a peer");
    (a, b)
}

fn bytes_of(incoming: Incoming<'_>) -> Vec<u8> {
    match incoming {
        Incoming::Frame { bytes, .. } | Incoming::Multicast { bytes, .. } => bytes.to_vec(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_datagram_above_the_stride_is_counted_and_dropped() {
    let (a, b) = pair();
    let (mut receiver, mut stream) = (Receiver::new(100).expect("memory"), Stream::default());
    for len in [101, 100, 5000, 99] {
        a.send(&vec![7; len]).expect("a datagram");
    }
    let mut lengths = Vec::new();
    while lengths.len() < 2 {
        receiver.fill(b.as_fd(), &mut stream, None).expect("they are there");
        receiver.show(10, &mut |incoming| lengths.push(bytes_of(incoming).len()));
    }
    assert_eq!(lengths, [100, 99]);
    assert_eq!((receiver.received.dropped, receiver.received.frames), (2, 2));
    assert_eq!(receiver.fill(b.as_fd(), &mut stream, None), Err(Errno::AGAIN));
}

#[test]
fn a_stream_is_taken_in_growing_batches_and_a_pause_ends_that() {
    let (a, b) = pair();
    let (mut receiver, mut stream) = (Receiver::new(100).expect("memory"), Stream::default());
    for round in 0..2 {
        for number in 0..60_u8 {
            a.send(&[number]).expect("a datagram");
        }
        let (mut taken, mut next) = (Vec::new(), 0);
        while next < 60 {
            receiver.fill(b.as_fd(), &mut stream, None).expect("they are there");
            let shown = receiver.show(100, &mut |incoming| {
                assert_eq!(bytes_of(incoming), [next]);
                next += 1;
            });
            taken.push(shown);
        }
        let growing = [[WANT[0]; STREAK], [WANT[1]; STREAK], [WANT[2]; STREAK]].concat();
        // The last call found less than it asked for.
        assert_eq!(taken[..taken.len() - 1], growing[..taken.len() - 1], "round {round}");
        assert!(taken.len() > 2 * STREAK, "round {round}: {taken:?}");
        assert_eq!(receiver.fill(b.as_fd(), &mut stream, None), Err(Errno::AGAIN));
        assert!(!receiver.has_rest());
    }
}

#[test]
fn of_large_datagrams_fewer_are_taken_at_a_time() {
    let (a, b) = pair();
    let (mut receiver, mut stream) = (Receiver::new(LARGE).expect("memory"), Stream::default());
    for (len, most) in [(LARGE, WANT_LARGE), (100, WANT[2])] {
        for _ in 0..3 * STREAK {
            let want = stream.want();
            for _ in 0..want {
                a.send(&vec![7; len]).expect("a datagram");
            }
            receiver.fill(b.as_fd(), &mut stream, None).expect("they are there");
            assert_eq!(receiver.show(100, &mut |incoming| assert_eq!(bytes_of(incoming).len(), len)), want);
        }
        assert_eq!(stream.want(), most, "after datagrams of {len} bytes");
    }
}

#[test]
fn frames_of_a_group_bear_its_number() {
    let (a, b) = pair();
    let mut receiver = Receiver::new(100).expect("memory");
    a.send(b"x").expect("a datagram");
    receiver.fill(b.as_fd(), &mut Stream::default(), Some(9)).expect("it is there");
    let shown = receiver.show(1, &mut |incoming| assert!(matches!(incoming, Incoming::Multicast { group: 9, .. })));
    assert_eq!(shown, 1);
}
