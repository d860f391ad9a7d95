//! What Active Messages promise: the sections of the reference's A.4. `suites.rs` has where.

use crate::world::{Device, Seen, World, open, segment};
use cci_am::{Handlers, Options, Reply, ReplyError, Request, RequestError, Returned, Status, TAG_ALL, TAG_NONE};
use cci_conformance::{LIMIT, pattern};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Replies with the same arguments and bytes.
const ECHO: u8 = 1;
/// Takes a reply.
const BACK: u8 = 2;
/// Takes a request and does not reply.
const TAKE: u8 = 3;
/// Replies by bulk, to the offset in the first argument.
const BULK_BACK: u8 = 4;
/// Tries replies that are refused.
const BAD_REPLY: u8 = 5;
/// Replies to a handler that there is not.
const TO_NOBODY: u8 = 6;
const NOBODY: u8 = 200;

fn note(seen: &mut Seen, request: &Request<'_>) {
    seen.requests.push((request.arguments().to_vec(), request.payload().to_vec()));
}

fn echo(seen: &mut Seen, request: Request<'_>) {
    note(seen, &request);
    let (arguments, bytes) = (request.arguments(), request.payload().to_vec());
    request.reply_medium(BACK, arguments, &bytes).expect("what came can go back");
}

fn take(seen: &mut Seen, request: Request<'_>) {
    note(seen, &request);
}

fn bulk_back(seen: &mut Seen, request: Request<'_>) {
    note(seen, &request);
    let (arguments, bytes) = (request.arguments(), request.payload().to_vec());
    if let Err(why) = request.reply_bulk(BACK, arguments, &bytes, u64::from(arguments[0])) {
        assert_eq!(why, ReplyError::NoSegment);
    }
}

fn bad_reply(seen: &mut Seen, request: Request<'_>) {
    note(seen, &request);
    let refused = match request.arguments()[0] {
        0 => request.reply(BACK, &[0; 17]),
        1 => request.reply_medium(BACK, &[], &vec![0; (64 << 10) + 1]),
        _ => request.reply_bulk(BACK, &[], b"nowhere", 0),
    };
    assert!(refused.is_err());
}

fn to_nobody(_: &mut Seen, request: Request<'_>) {
    request.reply(NOBODY, &[1, 2]).expect("two arguments");
}

fn back(seen: &mut Seen, reply: Reply<'_>) {
    seen.replies.push((reply.arguments().to_vec(), reply.payload().to_vec()));
}

fn returned(seen: &mut Seen, returned: Returned<'_>) {
    seen.returned.push((returned.status(), returned.handler(), returned.arguments().to_vec()));
}

fn handlers() -> Handlers<Seen> {
    Handlers::new()
        .request(ECHO, echo)
        .request(TAKE, take)
        .request(BULK_BACK, bulk_back)
        .request(BAD_REPLY, bad_reply)
        .request(TO_NOBODY, to_nobody)
        .reply(BACK, back)
        .returned(returned)
}

fn world(device: &Device, count: usize) -> World<Seen> {
    world_with(device, count, &Options::new())
}

fn world_with(device: &Device, count: usize, options: &Options) -> World<Seen> {
    World::new(device, options, count, handlers, Seen::default)
}

/// Every number of arguments arrives and comes back.
pub(crate) fn every_number_of_arguments(device: &Device) {
    let mut world = world(device, 2);
    let peer = world.map(0, 1, TAG_ALL);
    let all: Vec<u32> = (0..17).map(|number| number * 0x0101_0101 + 7).collect();
    for count in 0..=16 {
        world.send(0, |now| now.request(peer, ECHO, &all[..count]));
    }
    world.drain(0, peer);
    let expected: Vec<_> = (0..=16).map(|count| (all[..count].to_vec(), Vec::new())).collect();
    assert_eq!((&world.state(1).requests.clone(), &world.state(0).replies.clone()), (&expected, &expected));
    assert_eq!(world.endpoints[0].now().request(peer, ECHO, &all), Err(RequestError::TooManyArguments));
}

/// Mediums of every size class arrive whole, cut or not, and come back.
pub(crate) fn mediums_of_every_size(device: &Device) {
    let mut world = world(device, 2);
    let peer = world.map(0, 1, TAG_ALL);
    let most = world.endpoints[0].longest_medium();
    let mut expected = Vec::new();
    for (number, len) in [1, 40, 49, 120, 121, 1000, 1500, 4096, 16_300, 16_384, 40_000, most].into_iter().enumerate() {
        let (number, bytes) = (u32::try_from(number).expect("small"), pattern(number as u64, len));
        world.send(0, |now| now.request_medium(peer, ECHO, &[number, 5], &bytes));
        expected.push((vec![number, 5], bytes));
    }
    world.drain(0, peer);
    assert!(world.state(1).requests == expected && world.state(0).replies == expected);
    let too_long = vec![0; most + 1];
    assert_eq!(world.endpoints[0].now().request_medium(peer, ECHO, &[], &too_long), Err(RequestError::TooLong));
}

/// A program that polls rarely: one poll takes what is there, up to 64 messages.
pub(crate) fn rare_polls(device: &Device) {
    let mut world = world(device, 2);
    let peer = world.map(0, 1, TAG_ALL);
    world.send(0, |now| now.request(peer, TAKE, &[0]));
    world.drain(0, peer);
    for len in [0, 64_000] {
        let bytes = pattern(len as u64, len);
        let before = world.state(1).requests.len();
        let mut sent = 0;
        // Until no credit is left, or no room.
        while sent < 200 {
            let now = world.endpoints[0].now();
            match if len > 0 { now.request_medium(peer, TAKE, &[1], &bytes) } else { now.request(peer, TAKE, &[1]) } {
                Ok(()) => sent += 1,
                Err(RequestError::WouldBlock) => break,
                Err(why) => panic!("{why}"),
            }
        }
        assert!(sent > 0, "none of {len} bytes was sent");
        let mut polls = 0;
        while world.state(1).requests.len() < before + sent {
            let seen = world.state(1).requests.len();
            // The sender's next parts.
            world.endpoints[0].poll().expect("usable");
            world.endpoints[1].poll().expect("usable");
            polls += usize::from(world.state(1).requests.len() > seen);
        }
        // Of long ones no more are there than the ring has room for.
        let a_poll = if len > 0 { 4 } else { 16 };
        assert!(polls <= 2 + sent / a_poll, "{polls} polls that found something, for {sent} of {len} bytes");
        world.drain(0, peer);
    }
}

/// A draft is sent as it was written; one that is dropped is not.
pub(crate) fn drafts(device: &Device) {
    let mut world = world(device, 2);
    let peer = world.map(0, 1, TAG_ALL);
    world.send(0, |now| now.request(peer, ECHO, &[]));
    world.drain(0, peer);
    let most = world.endpoints[0].longest_in_place(peer).expect("open");
    assert!(world.endpoints[0].prepare(peer, ECHO, &[1], most + 1).is_err());
    drop(world.endpoints[0].prepare(peer, ECHO, &[9], 100).expect("a credit is there"));
    let bytes = pattern(1, most);
    let mut draft = world.endpoints[0].prepare(peer, ECHO, &[1], most).expect("a credit is there");
    assert!(draft.write_at(100, &bytes[100..]) && draft.write_at(0, &bytes[..100]) && !draft.write_at(most, b"x"));
    draft.commit().expect("room");
    world.drain(0, peer);
    assert_eq!(world.state(0).replies[1], (vec![1], bytes));
}

/// Bulk lies in the segment before the handler runs, copied or from the own segment, and a reply
/// may overlap its source.
pub(crate) fn bulk_requests_and_replies(device: &Device) {
    let mut world = world(device, 2);
    let (here, there) = (segment(300_000), segment(300_000));
    world.endpoints[0].set_segment(Some(here.clone())).expect("a registration");
    world.endpoints[1].set_segment(Some(there.clone())).expect("a registration");
    let peer = world.map(0, 1, TAG_ALL);
    let bytes = pattern(3, 50_000);
    world.send(0, |now| now.request_bulk(peer, BULK_BACK, &[100, 2], &bytes, 200_000));
    world.drain(0, peer);
    let mut found = vec![0; bytes.len()];
    assert!(there.copy_out(200_000, &mut found) && found == bytes && world.state(1).requests[0].1 == bytes);
    assert!(here.copy_out(100, &mut found) && found == bytes && world.state(0).replies[0].1 == bytes);
    world.send(0, |now| now.request_bulk_from(peer, TAKE, &[3], 100..50_100, 7));
    world.drain(0, peer);
    assert!(there.copy_out(7, &mut found) && found == bytes && world.state(1).requests[1] == (vec![3], bytes.clone()));
    world.send(0, |now| now.request_bulk(peer, TAKE, &[4], b"", 300_000));
    world.send(0, |now| now.get_bulk(peer, BACK, &[5, 6], 200_000, 150_000..200_000));
    world.drain(0, peer);
    assert!(here.copy_out(150_000, &mut found) && found == bytes);
    assert_eq!(world.state(0).replies[1], (vec![5, 6], bytes));
    assert_eq!(world.state(1).requests.len(), 3, "a get runs no handler at its target");
    assert_eq!(world.endpoints[0].now().get_bulk(peer, BACK, &[], 0, 5..5), Err(RequestError::BadRange));
    assert_eq!(world.endpoints[0].now().request_bulk_from(peer, TAKE, &[], 0..300_001, 0), Err(RequestError::BadRange));
}

/// Each reason to refuse a request, in the order in which they are looked for; and the credits of
/// refused requests come back.
pub(crate) fn every_status(device: &Device) {
    let mut world = world(device, 2);
    world.endpoints[0].set_segment(Some(segment(64))).expect("a registration");
    let peer = world.map(0, 1, 7);
    let many = 600;
    for _ in 0..many {
        world.send(0, |now| now.request(peer, NOBODY, &[1]));
    }
    world.drain(0, peer);
    assert_eq!(world.state(0).returned, vec![(Status::BadHandler, NOBODY, vec![1]); many]);
    world.state(0).returned.clear();
    world.send(0, |now| now.request_bulk(peer, NOBODY, &[2], b"bytes", 0));
    world.send(0, |now| now.request_bulk(peer, TAKE, &[3], b"bytes", 0));
    world.drain(0, peer);
    world.endpoints[1].set_segment(Some(segment(64))).expect("a registration");
    // The notice of the segment comes before this.
    world.send(0, |now| now.request(peer, TO_NOBODY, &[4]));
    world.drain(0, peer);
    world.send(0, |now| now.request_bulk(peer, TAKE, &[5], b"bytes", 60));
    world.send(0, |now| now.get_bulk(peer, BACK, &[6], 60, 0..5));
    world.drain(0, peer);
    world.endpoints[1].set_tag(8).expect("a registration");
    world.send(0, |now| now.request_bulk(peer, NOBODY, &[7], b"bytes", 0));
    world.send(0, |now| now.request_medium(peer, TAKE, &[8], &[1; 40_000]));
    world.drain(0, peer);
    world.endpoints[1].set_tag(TAG_NONE).expect("a registration");
    world.send(0, |now| now.request(peer, TAKE, &[9]));
    world.drain(0, peer);
    world.endpoints[1].set_tag(7).expect("a registration");
    world.send(0, |now| now.request(peer, TAKE, &[10]));
    world.drain(0, peer);
    let expected = [
        (Status::BadHandler, NOBODY, vec![2]),
        (Status::BadOffset, TAKE, vec![3]),
        (Status::ReplyRejected, NOBODY, vec![1, 2]),
        (Status::BadLength, TAKE, vec![5]),
        (Status::BadLength, BACK, vec![6]),
        (Status::BadTag, NOBODY, vec![7]),
        (Status::BadTag, TAKE, vec![8]),
        (Status::BadTag, TAKE, vec![9]),
    ];
    let mut returned = world.state(0).returned.clone();
    returned.sort_by_key(|(_, _, arguments)| if arguments.len() == 2 { 4 } else { arguments[0] });
    assert_eq!(returned, expected);
    assert_eq!(world.state(1).requests, [(vec![10], Vec::new())]);
}

/// A segment that changes while its peer writes: each request runs with its bytes, or comes back.
pub(crate) fn a_segment_that_changes(device: &Device) {
    let mut world = world(device, 2);
    world.endpoints[1].set_segment(Some(segment(4096))).expect("a registration");
    let peer = world.map(0, 1, TAG_ALL);
    let (count, mut changes) = (200, 0);
    for number in 0..count {
        world.send(0, |now| now.request_bulk(peer, TAKE, &[number], &number.to_le_bytes(), 8));
        if number % 10 == 5 {
            // Busy while a peer copies: the old one stays then.
            changes += u32::from(world.endpoints[1].set_segment(Some(segment(4096))).is_ok());
        }
    }
    world.drain(0, peer);
    assert!(changes > 0);
    let (ran, back) = (std::mem::take(&mut world.state(1).requests), std::mem::take(&mut world.state(0).returned));
    assert_eq!(ran.len() + back.len(), count as usize, "each ended once");
    assert!(back.iter().all(|(status, handler, _)| (*status, *handler) == (Status::BadOffset, TAKE)));
    let mut all: Vec<u32> =
        ran.iter().map(|(arguments, _)| arguments[0]).chain(back.iter().map(|it| it.2[0])).collect();
    all.sort_unstable();
    assert_eq!(all, (0..count).collect::<Vec<_>>());
}

/// A reply that is refused ends its request without one.
pub(crate) fn refused_replies(device: &Device) {
    let mut world = world(device, 2);
    let peer = world.map(0, 1, TAG_ALL);
    for number in 0..3 {
        world.send(0, |now| now.request(peer, BAD_REPLY, &[number]));
    }
    world.drain(0, peer);
    assert_eq!((world.state(1).requests.len(), world.state(0).replies.len()), (3, 0));
}

/// A request to the endpoint itself has run when the call returns, of each kind.
pub(crate) fn requests_to_oneself(device: &Device) {
    let mut world = world(device, 1);
    let peer = world.map(0, 0, TAG_ALL);
    let endpoint = &mut world.endpoints[0];
    let memory = segment(1000);
    endpoint.request_bulk(peer, BULK_BACK, &[1], b"none yet", 0).expect("a request");
    assert_eq!(endpoint.state().returned.pop(), Some((Status::BadOffset, BULK_BACK, vec![1])));
    endpoint.set_segment(Some(memory)).expect("a registration");
    endpoint.request(peer, ECHO, &[1, 2]).expect("a request");
    endpoint.request_medium(peer, ECHO, &[3], b"medium").expect("a request");
    endpoint.request_bulk(peer, BULK_BACK, &[500], b"bulk", 10).expect("a request");
    endpoint.request_bulk_from(peer, BULK_BACK, &[12], 10..14, 20).expect("a request");
    endpoint.get_bulk(peer, BACK, &[9], 12, 600..604).expect("a request");
    let mut draft = endpoint.prepare(peer, ECHO, &[4], 5).expect("a request");
    assert!(draft.write_at(0, b"draft"));
    draft.commit().expect("a request");
    let expected: Vec<(Vec<u32>, Vec<u8>)> = vec![
        (vec![1, 2], vec![]),
        (vec![3], b"medium".to_vec()),
        (vec![500], b"bulk".to_vec()),
        (vec![12], b"bulk".to_vec()),
        (vec![9], b"bulk".to_vec()),
        (vec![4], b"draft".to_vec()),
    ];
    assert_eq!(endpoint.state().replies, expected);
    endpoint.request(peer, NOBODY, &[]).expect("a request");
    endpoint.request_bulk(peer, TAKE, &[], b"beyond", 999).expect("a request");
    endpoint.set_tag(3).expect("a registration");
    endpoint.request(peer, TAKE, &[]).expect("a request");
    let statuses: Vec<_> = endpoint.state().returned.iter().map(|back| back.0).collect();
    assert_eq!(statuses, [Status::BadHandler, Status::BadLength, Status::BadTag]);
}

/// Requests run in the order in which they were sent, many more of them than there are credits,
/// and in both directions at once.
pub(crate) fn floods_in_both_directions(device: &Device) {
    let mut world = world_with(device, 2, &Options::new().credits(8));
    let peers = [world.map(0, 1, TAG_ALL), world.map(1, 0, TAG_ALL)];
    let count = 500;
    for number in 0..count {
        for (from, peer) in peers.into_iter().enumerate() {
            let at = if number % 3 == 0 { ECHO } else { TAKE };
            world.send(from, |now| now.request(peer, at, &[number]));
        }
    }
    for (from, peer) in peers.into_iter().enumerate() {
        world.drain(from, peer);
        let came: Vec<u32> = world.state(1 - from).requests.iter().map(|request| request.0[0]).collect();
        assert_eq!(came, (0..count).collect::<Vec<_>>());
        assert_eq!(world.state(from).replies.len(), (0..count).filter(|number| number % 3 == 0).count());
    }
}

/// Sixty-four peers share thirty-two credits, and each gets its turn.
pub(crate) fn many_peers_on_few_credits(device: &Device) {
    const PEERS: usize = 64;
    let mut world = world_with(device, PEERS + 1, &Options::new().credits(32));
    let to_server: Vec<_> = (1..=PEERS).map(|from| world.map(from, 0, TAG_ALL)).collect();
    for round in 0..4 {
        // All of them ask before any has its answer; those that stay idle give theirs back.
        let idle = |from: usize| round % 2 == 1 && from.is_multiple_of(2);
        let mut left: Vec<usize> = (0..PEERS).filter(|from| !idle(*from)).flat_map(|from| [from; 5]).collect();
        world.until("every request to leave", |world| {
            left.retain(|from| {
                let bytes = [1; 2000];
                world.endpoints[from + 1].now().request_medium(to_server[*from], ECHO, &[round], &bytes).is_err()
            });
            left.is_empty()
        });
    }
    for (from, peer) in to_server.into_iter().enumerate() {
        world.drain(from + 1, peer);
        let rounds = if from % 2 == 0 { 2 } else { 4 };
        assert_eq!(world.state(from + 1).replies.len(), 5 * rounds);
    }
    assert_eq!(world.state(0).requests.len(), 5 * (PEERS / 2) * 6);
}

/// The one credit that others wait for, too, is asked back as soon as it is lent. Who takes both
/// messages by one poll can still use it once.
pub(crate) fn one_credit_goes_round(device: &Device) {
    const PEERS: usize = 8;
    const EACH: usize = 5;
    const STEPS: usize = 200 * PEERS * EACH;
    let mut world = world_with(device, PEERS + 1, &Options::new().credits(1));
    let to_server: Vec<_> = (1..=PEERS).map(|from| world.map(from, 0, TAG_ALL)).collect();
    for (from, peer) in to_server.iter().enumerate() {
        // The way is open.
        world.send(from + 1, |now| now.request(*peer, ECHO, &[]));
        world.drain(from + 1, *peer);
    }
    let mut left = [EACH; PEERS];
    for _ in 0..STEPS {
        for (from, peer) in to_server.iter().enumerate().filter(|(from, _)| left[*from] > 0).collect::<Vec<_>>() {
            left[from] -= usize::from(world.endpoints[from + 1].now().request(*peer, ECHO, &[]).is_ok());
        }
        world.step();
    }
    assert_eq!(left, [0; PEERS], "requests that got no credit in {STEPS} steps");
}

/// What is open to a peer that goes comes back, as does what is sent later.
pub(crate) fn a_peer_that_goes(device: &Device) {
    let options = Options::new().send_timeout(Duration::from_secs(2));
    let mut world = world_with(device, 2, &options);
    let peer = world.map(0, 1, TAG_ALL);
    world.send(0, |now| now.request(peer, ECHO, &[0]));
    world.drain(0, peer);
    for number in 1..=3 {
        world.endpoints[0].now().request(peer, ECHO, &[number]).expect("credits are there");
    }
    drop(world.endpoints.pop());
    world.drain(0, peer);
    world.endpoints[0].request(peer, ECHO, &[4]).expect("it comes back at once");
    let expected: Vec<_> = (1..=4).map(|number| (Status::Unreachable, ECHO, vec![number])).collect();
    assert_eq!(world.state(0).returned, expected);
    world.endpoints[0].unmap(peer);
    assert_eq!(world.endpoints[0].request(peer, ECHO, &[]), Err(RequestError::NotMapped));
}

/// A peer that does not poll: requests come back after the send timeout, and later ones at once.
pub(crate) fn a_peer_that_stops(device: &Device) {
    let options = Options::new().send_timeout(Duration::from_millis(400));
    let mut world = world_with(device, 2, &options);
    let peer = world.map(0, 1, TAG_ALL);
    world.send(0, |now| now.request(peer, ECHO, &[0]));
    world.drain(0, peer);
    let endpoint = &mut world.endpoints[0];
    endpoint.request(peer, ECHO, &[1]).expect("a credit is there");
    while endpoint.outstanding(peer) > 0 {
        endpoint.wait(Some(Duration::from_secs(1))).expect("usable");
    }
    endpoint.request_medium(peer, ECHO, &[2], &[7; 9000]).expect("it comes back at once");
    let expected = [(Status::Unreachable, ECHO, vec![1]), (Status::Unreachable, ECHO, vec![2])];
    assert_eq!(endpoint.state().returned, expected);
}

/// A mapping to nobody: the request comes back when the connect has failed.
pub(crate) fn a_peer_that_was_never_there(device: &Device) {
    let options = Options::new().send_timeout(Duration::from_millis(400));
    let gone = open(device, &options, handlers(), Seen::default());
    let name = gone.name().to_owned();
    // Opened before the other goes, whose name it could get otherwise.
    let mut world = world_with(device, 1, &options);
    drop(gone);
    let Ok(peer) = world.endpoints[0].map(&name, TAG_ALL) else { return };
    world.endpoints[0].request(peer, ECHO, &[1]).expect("it comes back");
    assert_eq!(world.state(0).returned, [(Status::Unreachable, ECHO, vec![1])]);
}

/// Two threads, blocking requests and waits: the way of programs.
pub(crate) fn blocking_in_two_threads(device: &Device) {
    let open = || open(device, &Options::new().credits(4), handlers(), Seen::default());
    let (mut server, mut client) = (open(), open());
    let name = server.name().to_owned();
    const COUNT: u32 = 300;
    let (is_over, begin) = (AtomicBool::new(false), Instant::now());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                server.wait(Some(LIMIT)).expect("usable");
                assert!(begin.elapsed() < 2 * LIMIT, "the client does not end");
            }
        });
        let peer = client.map(&name, TAG_ALL).expect("a URI");
        for number in 0..COUNT {
            client.request_medium(peer, ECHO, &[number], &pattern(1, 30_000)).expect("a credit comes");
        }
        while client.outstanding(peer) > 0 {
            client.wait(Some(Duration::from_secs(1))).expect("usable");
        }
        // The server sleeps until something comes.
        is_over.store(true, Ordering::Relaxed);
        client.request(peer, TAKE, &[]).expect("a credit comes");
    });
    assert_eq!(client.state().replies.len(), COUNT as usize);
}
