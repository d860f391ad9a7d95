//! Bundles: endpoints polled and waited for as one.

use crate::world::Seen;
use cci::Unusable;
use cci_am::{Bundle, Endpoint, Handlers, Member, Options, Request, RequestError, Sort, TAG_ALL};
use cci_conformance::{LIMIT, sm_device};
use std::time::{Duration, Instant};

const COUNT: u8 = 1;

fn count(seen: &mut Seen, request: Request<'_>) {
    assert_eq!(request.payload().sort() == Sort::Medium, request.arguments() == [2]);
    seen.requests.push((request.arguments().to_vec(), request.payload().to_vec()));
}

fn handlers() -> Handlers<Seen> {
    Handlers::new().request(COUNT, count)
}

fn endpoints(count: usize) -> Vec<Endpoint<Seen>> {
    let open = |_| Endpoint::open(&sm_device(), &Options::new(), handlers(), Seen::default()).expect("an endpoint");
    (0..count).map(open).collect()
}

fn requests(bundle: &mut Bundle<Seen>, member: Member) -> usize {
    bundle.get(member).expect("in the bundle").state().requests.len()
}

/// One thread has both ends: a poll and a wait of the bundle serve the connect, the credit and the
/// request of either. A medium request without bytes is told from a short one.
#[test]
fn a_bundle_is_polled_and_waited_for_as_one() {
    let mut all = endpoints(3);
    let name = all[2].name().to_owned();
    let peers = [0, 1].map(|at| all[at].map(&name, TAG_ALL).expect("a URI"));
    let mut bundle = Bundle::new();
    let members: Vec<Member> = all.into_iter().map(|endpoint| bundle.add(endpoint)).collect();
    assert_eq!(bundle.members().collect::<Vec<_>>(), members);
    let begin = Instant::now();
    for (at, peer) in peers.into_iter().enumerate() {
        loop {
            let client = bundle.get(members[at]).expect("in the bundle").now();
            let sent =
                if at == 0 { client.request(peer, COUNT, &[1]) } else { client.request_medium(peer, COUNT, &[2], b"") };
            match sent {
                Ok(()) => break,
                Err(why) => assert_eq!(why, RequestError::WouldBlock),
            }
            bundle.wait(Some(LIMIT)).expect("usable");
            assert!(begin.elapsed() < LIMIT, "no credit comes");
        }
    }
    while requests(&mut bundle, members[2]) < 2 {
        bundle.wait(Some(LIMIT)).expect("usable");
        assert!(begin.elapsed() < LIMIT, "requests do not come");
    }
}

/// It goes on in the next bundle where it was.
#[test]
fn an_endpoint_is_moved_with_what_it_has_open() {
    let (mut from, mut to) = (Bundle::new(), Bundle::new());
    let mut all = endpoints(2);
    let name = all[1].name().to_owned();
    let peer = all[0].map(&name, TAG_ALL).expect("a URI");
    let members: Vec<Member> = all.into_iter().map(|endpoint| from.add(endpoint)).collect();
    let moved = from.remove(members[0]).expect("in the bundle");
    assert!(from.get(members[0]).is_none() && from.remove(members[0]).is_none(), "it has left");
    let client = to.add(moved);
    let begin = Instant::now();
    while to.get(client).expect("in the bundle").now().request(peer, COUNT, &[1]).is_err() {
        from.poll().expect("usable");
        to.poll().expect("usable");
        assert!(begin.elapsed() < LIMIT, "no credit comes");
    }
    while requests(&mut from, members[1]) == 0 {
        from.poll().expect("usable");
        assert!(begin.elapsed() < LIMIT, "the request does not come");
    }
    let again = from.add(to.remove(client).expect("in the bundle"));
    assert_ne!(again, members[0], "a place has another name each time");
}

/// A wait sleeps until the other thread wakes it, and not beyond its limit.
#[test]
fn a_wait_ends_by_the_waker_of_an_endpoint_or_by_its_limit() {
    let all = endpoints(2);
    let waker = all[1].waker().expect("a descriptor");
    let mut bundle = Bundle::new();
    let _members: Vec<Member> = all.into_iter().map(|endpoint| bundle.add(endpoint)).collect();
    let other = std::thread::spawn(move || waker.wake());
    assert_eq!(bundle.wait(None), Ok(0));
    assert_eq!(other.join().expect("no panic"), Ok(()));
    let (begin, limit) = (Instant::now(), Duration::from_millis(20));
    assert_eq!(bundle.wait(Some(limit)), Ok(0));
    assert!(begin.elapsed() >= limit);
    assert_eq!(Bundle::<Seen>::new().wait(None), Ok(0), "there is nothing to wait for");
}

/// The wake-up comes at any time of a tick, also just when a sleep ends by itself.
#[test]
fn no_wake_up_is_lost_at_the_end_of_a_tick() {
    let options = Options::new().send_timeout(Duration::from_millis(8));
    let endpoint = Endpoint::open(&sm_device(), &options, handlers(), Seen::default()).expect("an endpoint");
    let waker = endpoint.waker().expect("a descriptor");
    let mut bundle = Bundle::new();
    bundle.add(endpoint);
    for round in 0..200 {
        let begin = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_micros(round * 20));
                waker.wake()
            });
            assert_eq!(bundle.wait(Some(LIMIT)), Ok(0));
        });
        assert!(begin.elapsed() < LIMIT, "wake-up {round} is lost");
    }
}

/// It ends a wait for an endpoint alone too, and the next one if none waits.
#[test]
fn a_wait_ends_by_the_waker_of_its_endpoint() {
    let mut endpoint = endpoints(1).remove(0);
    let waker = endpoint.waker().expect("a descriptor");
    let begin = Instant::now();
    waker.wake().expect("open");
    assert_eq!(endpoint.wait(Some(LIMIT)), Ok(0));
    assert!(begin.elapsed() < LIMIT);
    drop(endpoint);
    assert_eq!(waker.wake(), Err(Unusable::Closed));
}
