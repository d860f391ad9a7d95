//! What breaks a channel, and nothing else: memory that is gone, peers of another kind, peers that
//! break the format.

use crate::world::{Device, Seen, World, open, segment};
use cci_am::{Handlers, Options, Reply, Request, Returned, Status, TAG_ALL};
use cci_am_via::Variant;
use cci_conformance::{LIMIT, sm_device};
use cci_via::{Access, Address, Connected, Error, Nic, Remote, Vi, ViAttributes, Work};
use std::time::{Duration, Instant};

const ECHO: u8 = 1;
const BACK: u8 = 2;

fn echo(seen: &mut Seen, request: Request<'_>) {
    seen.requests.push((request.arguments().to_vec(), request.payload().to_vec()));
    let arguments = request.arguments();
    request.reply(BACK, arguments).expect("what came can go back");
}

fn back(seen: &mut Seen, reply: Reply<'_>) {
    seen.replies.push((reply.arguments().to_vec(), reply.payload().to_vec()));
}

fn returned(seen: &mut Seen, returned: Returned<'_>) {
    seen.returned.push((returned.status(), returned.handler(), returned.arguments().to_vec()));
}

fn handlers() -> Handlers<Seen> {
    Handlers::new().request(ECHO, echo).reply(BACK, back).returned(returned)
}

fn device(variant: Variant) -> Device {
    Device::new(sm_device(), variant)
}

#[test]
fn bulk_data_for_memory_that_is_gone_breaks_its_channel_alone() {
    for variant in Variant::ALL {
        let mut world = World::new(&device(variant), &Options::new(), 3, handlers, Seen::default);
        let old = segment(4096);
        world.endpoints[0].set_segment(Some(old.clone())).expect("a registration");
        let (one, other) = (world.map(1, 0, TAG_ALL), world.map(2, 0, TAG_ALL));
        for (from, peer) in [(1, one), (2, other)] {
            world.send(from, |now| now.request_bulk(peer, ECHO, &[1], b"bulk", 0));
            world.drain(from, peer);
        }
        world.endpoints[0].set_segment(Some(segment(4096))).expect("a registration");
        // The notice is on its way, and has not been taken.
        let sent = world.endpoints[1].now().request_bulk(one, ECHO, &[2], b"late", 0);
        sent.unwrap_or_else(|why| panic!("{variant:?}: {why:?}"));
        world.drain(1, one);
        assert_eq!(world.state(1).returned, [(Status::Unreachable, ECHO, vec![2])], "{variant:?}");
        let mut found = [0; 4];
        assert!(old.copy_out(0, &mut found) && found == *b"bulk", "the old memory is not touched");
        // The other channel has the notice by now, and goes on.
        world.send(2, |now| now.request(other, ECHO, &[3]));
        world.drain(2, other);
        world.send(2, |now| now.request_bulk(other, ECHO, &[4], b"bulk", 0));
        world.drain(2, other);
        assert_eq!(world.state(2).replies.len(), 3, "{variant:?}");
    }
}

#[test]
fn peers_of_another_kind_do_not_connect() {
    let kinds = [
        device(Variant::V4),
        device(Variant::V1),
        Device { options: cci_am_via::Options::new(Variant::V3).credits(9), ..device(Variant::V3) },
        Device { options: cci_am_via::Options::new(Variant::V3).update_every(3), ..device(Variant::V3) },
    ];
    for kind in kinds {
        let options = Options::new().send_timeout(Duration::from_secs(20));
        let mut world = World::new(&device(Variant::V3), &options, 2, handlers, Seen::default);
        world.endpoints.push(open(&kind, &options, handlers(), Seen::default()));
        let stranger = world.map(2, 0, TAG_ALL);
        let begun = Instant::now();
        while world.endpoints[2].now().request(stranger, ECHO, &[1]).is_err() {
            world.step();
        }
        assert!(begun.elapsed() < Duration::from_secs(15), "it is turned away before the time is over");
        assert_eq!(world.state(2).returned, [(Status::Unreachable, ECHO, vec![1])]);
        // Those of the same kind do.
        let peer = world.map(1, 0, TAG_ALL);
        world.send(1, |now| now.request(peer, ECHO, &[1]));
        world.drain(1, peer);
        assert_eq!((world.state(1).replies.len(), world.state(0).requests.len()), (1, 1));
    }
}

/// A VI of a peer that is none of ours.
fn stranger(world: &mut World<Seen>, variant: Variant) -> (Nic, cci_via::Tag, Vi<Connected>) {
    let name = world.endpoints[0].name().to_owned();
    let (host, word) = name.strip_prefix("via://").and_then(|rest| rest.split_once('/')).expect("a name");
    let remote = Address::new(host.parse::<std::net::IpAddr>().expect("a host"), word.as_bytes());
    let nic = Nic::open(&sm_device()).expect("a NIC");
    let tag = nic.protection().expect("a tag");
    let access = Access { write: true, read: true };
    let attributes = ViAttributes { tag, access, max_transfer: cci_via::MAX_TRANSFER, ..ViAttributes::default() };
    let local = Address::new(nic.host(), &[b"stranger".as_slice(), &[0, variant as u8]].concat());
    let vi = std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            let mut vi = Vi::new(&nic, &attributes, None, None).expect("a VI");
            loop {
                match vi.request(&local, &remote, LIMIT) {
                    Ok(vi) => return vi,
                    Err((idle, Error::NoMatch)) => vi = idle,
                    Err((_, why)) => panic!("{why}"),
                }
            }
        });
        while !client.is_finished() {
            world.step();
        }
        client.join().expect("a connection")
    });
    (nic, tag, vi)
}

#[test]
fn a_peer_that_breaks_the_format_loses_its_channel() {
    let frame =
        |kind: u8, class: u8, back: u16, rest: &[u8]| [&[kind, class][..], &back.to_le_bytes(), &[0; 4], rest].concat();
    let lies = [
        vec![],
        vec![1, 2, 3],
        // No class; no kind; a message before it is accepted; more credits than there were.
        frame(3, 2, 0, &[0; 16]),
        frame(99, 0, 0, b""),
        frame(1, 0, 0, &[1, 1, 0, 0, 0, 0, 0, 0]),
        frame(2, 0, 1, b""),
        // What only clients get; bulk data of v1; a hello without a shape, and of another one.
        frame(4, 0, 0, &[0; 16]),
        frame(5, 0, 0, &[0; 32]),
        frame(3, 0, 0, b"short"),
        frame(3, 0, 0, &[255; 64]),
    ];
    for variant in Variant::ALL {
        let mut world = World::new(&device(variant), &Options::new(), 2, handlers, Seen::default);
        let peer = world.map(1, 0, TAG_ALL);
        world.send(1, |now| now.request(peer, ECHO, &[1]));
        for lie in &lies {
            let (nic, tag, mut vi) = stranger(&mut world, variant);
            let region = nic.register(lie.clone().into_iter().chain([0]).collect(), tag, Access::default());
            vi.post_send(Work::part(region.expect("memory"), 0..lie.len())).expect("room");
            let begun = Instant::now();
            while vi.is_connected() {
                assert!(begun.elapsed() < LIMIT, "{variant:?} goes on after {lie:?}");
                world.step();
            }
        }
        // Immediate data that means nothing yet, or nothing at all.
        let (_nic, _, mut vi) = stranger(&mut world, variant);
        let remote = Remote { address: 0, handle: 7 };
        vi.post_write(Work::empty(), remote, Some(0xFFFF_FFFF)).expect("room");
        let begun = Instant::now();
        while vi.is_connected() {
            assert!(begun.elapsed() < LIMIT, "{variant:?} takes immediate data of a stranger");
            world.step();
        }
        world.drain(1, peer);
        world.send(1, |now| now.request(peer, ECHO, &[2]));
        world.drain(1, peer);
        assert_eq!(world.state(1).replies.len(), 2, "{variant:?}");
    }
}
