//! What the types promise: work comes back, whatever happens.

use crate::world::{attributes, bytes, device, pair};
use cci_conformance::LIMIT;
use cci_via::{Access, Error, MAX_DESCRIPTORS, Reliability, Status, Vi, ViAttributes, Work};

#[test]
fn work_comes_back_from_each_end() {
    let (mut server, mut client) = pair(&device("sm"), &attributes(Reliability::Delivery));
    // Refused: a queue that is full.
    for _ in 0..MAX_DESCRIPTORS {
        server.vi.post_receive(Work::empty()).expect("room");
    }
    let region = server.region(vec![5; 8]);
    let (work, why) = server.vi.post_receive(Work::of(region).user(3)).expect_err("full");
    assert!(matches!(why, Error::Resource(_)));
    assert_eq!((work.user_word(), work.regions()[0].to_vec(0, 8)), (3, Some(vec![5; 8])));

    // Flushed by the peer's end.
    let region = client.region(vec![1; 8]);
    client.vi.post_receive(Work::of(region).user(4)).expect("room");
    let idle = server.vi.disconnect();
    let done = client.vi.wait_received(Some(LIMIT)).expect("flushed");
    assert_eq!(done.status, Status::DONE | Status::FLUSHED | Status::OP_RECEIVE);
    assert_eq!(done.work.user_word(), 4);
    assert!(!client.vi.is_connected());
    // A broken VI flushes what is posted, and is idle after a disconnect.
    client.vi.post_send(Work::empty()).expect("room");
    assert!(client.vi.wait_sent(Some(LIMIT)).expect("flushed").status.has(Status::FLUSHED));

    // Connected again, with what was posted in between.
    let mut idle = {
        let mut idle = idle;
        while idle.received().expect("a VI").is_some() {}
        idle
    };
    let region = server.nic.register(vec![0; 8], server.tag, Access::default()).expect("memory");
    idle.post_receive(Work::of(region)).expect("room");
    let (vi, other) = crate::connecting::connect(&server.nic, idle, &client.nic, client.vi.disconnect());
    (server.vi, client.vi) = (vi, other);
    client.send(b"8 bytes!");
    assert_eq!(bytes(&server.received(&client)), b"8 bytes!");
}

#[test]
fn attributes_that_are_not_offered_are_named() {
    let nic = cci_via::Nic::open(&device("sm")).expect("a NIC");
    let good = ViAttributes { tag: nic.protection().expect("a tag"), ..attributes(Reliability::Delivery) };
    let refused = |attributes: ViAttributes| Vi::new(&nic, &attributes, None, None).err();
    assert_eq!(refused(good), None);
    assert_eq!(refused(ViAttributes { tag: cci_via::Tag::default(), ..good }), Some(Error::Tag));
    assert_eq!(refused(ViAttributes { max_transfer: 0, ..good }), Some(Error::TransferSize));
    assert_eq!(refused(ViAttributes { max_transfer: (1 << 20) + 1, ..good }), Some(Error::TransferSize));
    assert_eq!(refused(ViAttributes { qos: 1, ..good }), Some(Error::Qos));
    let access = Access { write: false, read: true };
    assert_eq!(refused(ViAttributes { reliability: Reliability::Unreliable, access, ..good }), Some(Error::RdmaRead));
}

/// Two threads wait for two VIs of one NIC: one sleeps on the descriptors, the other for the first.
#[test]
fn threads_that_wait_do_not_take_each_others_messages() {
    let (one, other) = pair(&device("sm"), &attributes(Reliability::Delivery));
    let second = |side: &crate::world::Side| {
        let of = ViAttributes { tag: side.tag, ..attributes(Reliability::Delivery) };
        Vi::new(&side.nic, &of, None, None).expect("a VI")
    };
    let (first_of_one, first_of_other) = crate::connecting::connect(&one.nic, second(&one), &other.nic, second(&other));
    let ends = [(one.vi, other.vi), (first_of_one, first_of_other)];
    let (one_nic, one_tag, other_nic, other_tag) = (&one.nic, one.tag, &other.nic, other.tag);
    let begun = std::time::Instant::now();
    std::thread::scope(|scope| {
        for (mut left, mut right) in ends {
            let region = other_nic.register(vec![0; 4], other_tag, Access::default()).expect("memory");
            right.post_receive(Work::of(region)).expect("room");
            scope.spawn(move || {
                for round in 0..200_u32 {
                    let region = one_nic.register(vec![0; 4], one_tag, Access::default()).expect("memory");
                    left.post_receive(Work::of(region)).expect("room");
                    let ready = one_nic.register(vec![1], one_tag, Access::default()).expect("memory");
                    left.post_send(Work::of(ready)).expect("room");
                    let done = left.wait_received(Some(LIMIT)).expect("a message");
                    assert_eq!(bytes(&done), round.to_le_bytes());
                    assert!(!left.wait_sent(Some(LIMIT)).expect("sent").status.is_error());
                }
            });
            scope.spawn(move || {
                for round in 0..200_u32 {
                    assert!(!right.wait_received(Some(LIMIT)).expect("ready").status.is_error());
                    // Before the other side may send again.
                    let region = other_nic.register(vec![0; 4], other_tag, Access::default()).expect("memory");
                    right.post_receive(Work::of(region)).expect("room");
                    let region = other_nic.register(round.to_le_bytes().to_vec(), other_tag, Access::default());
                    right.post_send(Work::of(region.expect("memory"))).expect("room");
                    assert!(!right.wait_sent(Some(LIMIT)).expect("sent").status.is_error());
                }
            });
        }
    });
    // A thread that nobody wakes finds its message when its time is over.
    assert!(begun.elapsed() < LIMIT / 2, "somebody was not woken: {:?}", begun.elapsed());
}
