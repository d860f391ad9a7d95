//! What works: sends, receives, RDMA, completion queues.

use crate::world::{LEVELS, Side, TRANSPORTS, attributes, bytes, device, pair};
use cci_conformance::LIMIT;
use cci_via::{Error, Reliability, Remote, Status, Vi, ViAttributes, Work};
use std::time::Duration;

fn on_each(test: fn(Side, Side, Reliability)) {
    for transport in TRANSPORTS {
        for level in LEVELS {
            let (server, client) = pair(&device(transport), &attributes(level));
            test(server, client, level);
        }
    }
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251) as u8).collect()
}

#[test]
fn messages_of_each_length_come_in_order() {
    on_each(|mut server, mut client, _| {
        let lengths = [0, 1, 8, 40, 41, 1_000, 16_384, 65_536, 1 << 20];
        for length in lengths {
            server.post_receive(length.max(1));
        }
        for length in lengths {
            if length == 0 {
                client.vi.post_send(Work::empty()).expect("room");
            } else {
                client.send(&pattern(length));
            }
        }
        for length in lengths {
            let done = server.received(&client);
            assert_eq!(done.status, Status::DONE | Status::OP_RECEIVE);
            assert_eq!(bytes(&done), pattern(length));
        }
        for length in lengths {
            let done = client.sent(&server);
            assert_eq!((done.status, done.length as usize), (Status::DONE, length));
        }
    });
}

#[test]
fn segments_are_gathered_and_scattered() {
    on_each(|mut server, mut client, _| {
        let [first, second, third] =
            [server.region(vec![0; 10]), server.region(vec![0; 5]), server.region(vec![0; 40_000])];
        let work = Work::part(first, 4..10).and(second, 0..0).and(third, 10..40_000).user(9);
        server.vi.post_receive(work).expect("room");
        let message = pattern(30_000);
        let [left, right] = [client.region(message[..3].to_vec()), client.region(message.clone())];
        client.vi.post_send(Work::of(left).and(right, 3..30_000).immediate(77)).expect("room");
        let done = server.received(&client);
        assert_eq!(done.status, Status::DONE | Status::OP_RECEIVE | Status::IMMEDIATE);
        assert_eq!((done.length, done.immediate, done.work.user_word()), (30_000, Some(77), 9));
        let regions = done.work.into_regions();
        assert_eq!(regions[0].to_vec(0, 10), Some([&[0; 4], &message[..6]].concat()));
        assert_eq!(regions[1].to_vec(0, 5), Some(vec![0; 5]));
        assert_eq!(regions[2].to_vec(10, 29_994), Some(message[6..].to_vec()));
        assert!(!client.sent(&server).status.is_error());
    });
}

#[test]
fn rdma_writes_and_reads_memory_of_the_peer() {
    on_each(|mut server, mut client, level| {
        let target = server.open_region(vec![0; 200_000]);
        let to = |address| Remote { address, handle: target.handle() };
        let local = client.region(pattern(100_000));
        client.vi.post_write(Work::of(local), to(50_000), None).expect("room");
        let done = client.sent(&server);
        assert_eq!((done.status, done.length), (Status::DONE | Status::OP_WRITE, 100_000));
        assert_eq!(target.to_vec(50_000, 100_000), Some(pattern(100_000)));
        assert_eq!(target.to_vec(0, 50_000), Some(vec![0; 50_000]));

        // With immediate data it takes a receive, after the bytes.
        server.post_receive(1);
        let [first, second] = [client.region(vec![1; 10]), client.region(vec![2; 10])];
        client.vi.post_write(Work::of(first).and(second, 0..10), to(0), Some(5)).expect("room");
        let done = server.received(&client);
        assert_eq!(done.status, Status::DONE | Status::OP_REMOTE_WRITE | Status::IMMEDIATE);
        assert_eq!((done.length, done.immediate), (20, Some(5)));
        assert_eq!(target.to_vec(0, 20), Some([[1; 10], [2; 10]].concat()));
        assert!(!client.sent(&server).status.is_error());

        // A send after a write finds the bytes in place.
        server.post_receive(8);
        let last = client.region(vec![3; 100_000]);
        client.vi.post_write(Work::of(last), to(100_000), None).expect("room");
        client.send(b"in place");
        assert_eq!(bytes(&server.received(&client)), b"in place");
        assert_eq!(target.to_vec(100_000, 100_000), Some(vec![3; 100_000]));
        assert!(!client.sent(&server).status.is_error());
        assert!(!client.sent(&server).status.is_error());

        if level != Reliability::Unreliable {
            let [first, second] = [client.region(vec![0; 10]), client.region(vec![0; 10])];
            client.vi.post_read(Work::of(first).and(second, 0..10), to(0)).expect("room");
            let done = client.sent(&server);
            assert_eq!((done.status, done.length), (Status::DONE | Status::OP_READ, 20));
            assert_eq!(done.work.regions()[1].to_vec(0, 10), Some(vec![2; 10]));
        }
    });
}

#[test]
fn completion_queues_name_what_has_completed() {
    for transport in TRANSPORTS {
        let (server, mut client) = pair(&device(transport), &attributes(Reliability::Delivery));
        let queue = server.nic.queue(8).expect("a queue");
        assert_eq!(queue.done(), Ok(None));
        assert_eq!(queue.wait(Some(Duration::from_millis(10))).err(), Some(Error::Timeout));
        drop(client.vi);
        // A new pair of VIs of the same NICs, of which one reports to the queue.
        let of = |side_tag| ViAttributes { tag: side_tag, ..attributes(Reliability::Delivery) };
        let receiving = Vi::new(&server.nic, &of(server.tag), Some(&queue), Some(&queue)).expect("a VI");
        let sending = Vi::new(&client.nic, &of(client.tag), None, None).expect("a VI");
        let (mut receiving, sending) = crate::connecting::connect(&server.nic, receiving, &client.nic, sending);
        client.vi = sending;
        for _ in 0..3 {
            let region = server.nic.register(vec![0; 8], server.tag, cci_via::Access::default()).expect("memory");
            receiving.post_receive(Work::of(region)).expect("room");
        }
        for _ in 0..3 {
            client.send(b"8 bytes!");
        }
        for _ in 0..3 {
            assert_eq!(queue.wait(Some(LIMIT)), Ok((receiving.number(), true)));
            assert!(receiving.received().expect("a VI").is_some_and(|done| bytes(&done) == b"8 bytes!"));
        }
        assert_eq!(queue.done(), Ok(None));
        let refused = receiving.wait_received(Some(Duration::ZERO)).err();
        assert!(matches!(refused, Some(Error::Parameter(_))), "{refused:?}");
    }
}
