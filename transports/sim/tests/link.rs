//! Endpoints' ends of a shared virtual network.

use cci_proto::{Address, ConnectError, Time};
use cci_reliable::{Groups, Incoming, Link, Outgoing, Wait};
use cci_sim::{Clock, SimLink};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// A link on a network of the test's own; `keys`: "key=value".
fn open(network: &str, keys: &[&str]) -> SimLink {
    try_open(network, keys, None).expect("a link")
}

fn try_open(network: &str, keys: &[&str], service: Option<&str>) -> Result<SimLink, String> {
    let mut arguments = vec![("network".to_owned(), network.to_owned())];
    arguments.extend(keys.iter().filter_map(|key| key.split_once('=')).map(|(key, value)| (key.into(), value.into())));
    SimLink::open(&arguments, service).map_err(|error| error.to_string())
}

fn send(link: &mut SimLink, to: Address, bytes: &[u8]) {
    assert_eq!(link.send_burst(&[Outgoing { to, head: bytes, piece: None, probe: false }]), 1);
}

/// What an incoming was: its kind, its sender or refuser, its bytes.
type Taken = (&'static str, Address, Vec<u8>);

fn take(link: &mut SimLink) -> Vec<Taken> {
    let mut taken = Vec::new();
    link.recv_burst(16, &mut |incoming| {
        taken.push(match incoming {
            Incoming::Frame { from, bytes, .. } => ("frame", from, bytes.to_vec()),
            Incoming::Unasked { from, bytes, .. } => ("unasked", from, bytes.to_vec()),
            Incoming::Multicast { group: 7, from, bytes } => ("seven", from, bytes.to_vec()),
            Incoming::Multicast { from, bytes, .. } => ("group", from, bytes.to_vec()),
            Incoming::Refused { to, quoted, .. } => ("refused", to, quoted.to_vec()),
            Incoming::TooBig { to, quoted, .. } => ("too big", to, quoted.to_vec()),
            Incoming::Down { .. } => ("down", Address::default(), Vec::new()),
            Incoming::Faulted { .. } => ("faulted", Address::default(), Vec::new()),
        });
    });
    taken
}

/// Polls both in turn until `link` takes something.
fn wait(link: &mut SimLink, other: &mut SimLink) -> Vec<Taken> {
    for _ in 0..10_000 {
        let taken = take(link);
        if !taken.is_empty() {
            return taken;
        }
        assert!(take(other).is_empty());
    }
    panic!("nothing came");
}

fn is_readable(link: &SimLink) -> bool {
    let handle = link.handle();
    let mut fds = [PollFd::new(&handle, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).expect("poll") == 1
}

#[test]
fn a_frame_takes_the_delay_of_its_sender() {
    let mut a = open("delay", &["delay=30000", "bandwidth=1000000000"]);
    let mut b = open("delay", &["delay=70000"]);
    assert_eq!((a.uri(), b.uri()), ("sim://delay/0:1", "sim://delay/1:1"));
    let (to_b, to_a) = (a.resolve(b.uri()).expect("there"), b.resolve("sim://delay/0:1").expect("there"));
    let begun = a.now();
    send(&mut a, to_b, &[5; 1000]);
    assert_eq!(wait(&mut b, &mut a), [("frame", to_a, vec![5; 1000])]);
    let there = b.now();
    assert!((31_000..32_500).contains(&there.since(begun)), "{there:?}");
    send(&mut b, to_a, b"back");
    assert_eq!(wait(&mut a, &mut b), [("frame", to_b, b"back".to_vec())]);
    assert!((70_000..71_500).contains(&a.now().since(there)));
}

#[test]
fn a_frame_to_nobody_is_refused_with_its_first_bytes() {
    let mut a = open("nobody", &[]);
    let b = open("nobody", &[]);
    let to_b = a.resolve(b.uri()).expect("there");
    drop(b);
    let frame: Vec<u8> = (0..200).collect();
    send(&mut a, to_b, &frame);
    let mut taken = Vec::new();
    for _ in 0..1000 {
        taken.extend(take(&mut a));
    }
    assert_eq!(taken, [("refused", to_b, frame[..64].to_vec())]);
}

#[test]
fn groups_reach_their_members_until_they_leave() {
    let mut links: Vec<_> = (0..4).map(|_| open("groups", &[])).collect();
    let uri = "sim://groups/group/all";
    links[0].join(uri, 7).expect("a group");
    links[1].join(uri, 7).expect("a group");
    links[2].join("sim://groups/group/others", 8).expect("a group");
    let to = links[3].address(uri).expect("a group");
    let senders = [0, 3];
    for sender in senders {
        send(&mut links[sender], to, &[u8::try_from(sender).expect("small")]);
    }
    let collect = |links: &mut Vec<SimLink>| {
        let mut seen = vec![Vec::new(); 4];
        for _ in 0..1000 {
            for (at, link) in links.iter_mut().enumerate() {
                seen[at].extend(take(link).into_iter().map(|(what, _, bytes)| (what, bytes[0])));
            }
        }
        seen.iter_mut().for_each(|seen| seen.sort_unstable());
        seen
    };
    let both = vec![("seven", 0), ("seven", 3)];
    assert_eq!(collect(&mut links), [both.clone(), both, vec![], vec![]], "its own frame comes back to a sender");
    links[1].leave(7);
    send(&mut links[3], to, &[9]);
    assert_eq!(collect(&mut links), [vec![("seven", 9)], vec![], vec![], vec![]]);
}

#[test]
fn a_handle_is_readable_while_anything_is_pending() {
    let mut a = open("handle", &["delay=1000000"]);
    let mut b = open("handle", &[]);
    let to_b = a.resolve(b.uri()).expect("there");
    assert!(a.arm(None, false) && b.arm(None, false));
    assert!(!is_readable(&a) && !is_readable(&b), "nothing is pending, and nobody has a deadline");
    a.disarm();
    send(&mut a, to_b, b"wake");
    assert!(is_readable(&b), "a frame is on its way: whoever waits is to move time");
    b.disarm();
    assert!(b.arm(None, false) && is_readable(&b));
    b.disarm();
    wait(&mut b, &mut a);
    send(&mut a, to_b, b"second");
    while take(&mut a).is_empty() && a.now() < Time(3_000_000) {}
    assert!(!b.arm(None, false), "a frame waits already");
    rustix::io::write(b.waker(), &1_u64.to_ne_bytes()).expect("an eventfd");
    assert!(is_readable(&b));
}

#[test]
fn time_leaps_to_the_nearest_deadline_when_everybody_waits() {
    let mut a = open("deadline", &[]);
    let mut b = open("deadline", &[]);
    let far = Time(5_000_000_000);
    assert!(b.arm(None, false) && a.arm(Some(far), false));
    assert!(is_readable(&a), "somebody has to move time");
    assert!(take(&mut a).is_empty());
    assert_eq!(a.now(), far);
    assert!(take(&mut a).is_empty() && a.now() > far, "a deadline that has passed holds nobody");
}

#[test]
fn time_creeps_while_another_may_be_computing() {
    let mut a = open("creep", &[]);
    let b = open("creep", &[]);
    for _ in 0..100 {
        assert!(take(&mut a).is_empty());
    }
    assert_eq!(a.now(), Time(100_000), "1 us for each poll");
    drop(b);
    for _ in 0..100 {
        assert!(take(&mut a).is_empty());
    }
    assert_eq!(a.now(), Time(5_100_000), "50 us: nobody else is there");
}

#[test]
fn loss_is_the_senders() {
    let mut a = open("loss", &["loss=100"]);
    let mut b = open("loss", &[]);
    let (to_b, to_a) = (a.resolve(b.uri()).expect("there"), b.resolve(a.uri()).expect("there"));
    send(&mut a, to_b, b"lost");
    send(&mut b, to_a, b"kept");
    assert_eq!(wait(&mut a, &mut b).len(), 1);
    for _ in 0..1000 {
        assert!(take(&mut b).is_empty());
    }
}

#[test]
fn a_receiver_that_never_polls_loses_what_exceeds_its_buffer() {
    let mut a = open("buffer", &["mtu=65000"]);
    let mut b = open("buffer", &["mtu=65000"]);
    let to_b = a.resolve(b.uri()).expect("there");
    for _ in 0..100 {
        send(&mut a, to_b, &[0; 60_000]);
    }
    while a.now() < Time(1_000_000) {
        assert!(take(&mut a).is_empty());
    }
    let mut count = 0;
    loop {
        match take(&mut b).len() {
            0 => break,
            taken => count += taken,
        }
    }
    assert_eq!(count, b.recv_buffer() as usize / 60_064);
}

#[test]
fn what_cannot_be_opened_says_why() {
    let first = open("taken", &["node=3", "port=5", "seed=8"]);
    assert_eq!(first.uri(), "sim://taken/3:5");
    let error = try_open("taken", &[], Some("3:5")).unwrap_err();
    assert!(error.contains("port 5 of node 3"), "{error}");
    let error = try_open("taken", &["seed=9"], None).unwrap_err();
    assert!(error.contains("seed 8"), "{error}");
    assert_eq!(open("taken", &["node=3"]).uri(), "sim://taken/3:1");
    drop(first);
    assert_eq!(open("taken", &["seed=9"]).uri(), "sim://taken/0:1", "a network ends with its last endpoint");
}

#[test]
fn wrong_uris_are_refused() {
    let mut a = open("uris", &[]);
    for uri in ["", "sim://uris/1:1", "sim://other/0:1", "sim://uris/0", "sock://1.2.3.4:5", "sim://uris/group/x"] {
        assert_eq!(a.resolve(uri), Err(ConnectError::BadUri), "{uri}");
    }
    for uri in ["sim://uris/0:1", "sim://uris/group/", "sim://other/group/x"] {
        assert_eq!(a.join(uri, 1), Err(ConnectError::BadUri), "{uri}");
        assert_eq!(a.address(uri), Err(ConnectError::BadUri), "{uri}");
    }
    // An address of another transport leads nowhere.
    send(&mut a, Address([9; 24]), b"lost");
    assert!(take(&mut a).is_empty());
}

#[test]
fn time_stops_where_a_busy_processor_goes_on_and_overheads_are_charged() {
    let keys = ["delay=5000", "send_overhead=300", "recv_overhead=400", "gap=900"];
    let mut a = open("clock", &keys);
    let mut b = open("clock", &keys);
    let (here, there) = (Clock::of(a.uri()).expect("a clock"), Clock::of(b.uri()).expect("a clock"));
    assert!(Clock::of("sim://clock/9:1").is_none() && Clock::of("sim://elsewhere/0:1").is_none());
    let to = a.resolve(b.uri()).expect("an address");
    send(&mut a, to, b"one");
    send(&mut a, to, b"two");
    assert_eq!((here.now(), here.busy_until()), (Time(0), Time(600)));
    // Whoever polls, time goes no further than to the moment at which the sender can go on.
    assert!(take(&mut b).is_empty());
    assert_eq!((here.now(), here.busy_until(), here.waiting()), (Time(600), Time(600), 0));
    here.charge(100);
    assert!(take(&mut b).is_empty());
    assert_eq!(here.now(), Time(700));
    // o_s + L + o_r, then a gap later.
    for at in [5700, 6600] {
        while there.waiting() == 0 {
            assert!(take(&mut a).is_empty());
        }
        assert_eq!(there.now(), Time(at));
        assert_eq!(take(&mut b).len(), 1);
    }
}

#[test]
fn time_that_is_held_moves_only_when_it_is_advanced() {
    let mut a = open("held", &["delay=120000", "recv_overhead=5"]);
    let mut b = open("held", &[]);
    let clock = Clock::of(a.uri()).expect("a clock");
    clock.hold();
    let to = b.resolve(a.uri()).expect("an address");
    send(&mut b, to, b"one");
    let to = a.resolve(b.uri()).expect("an address");
    send(&mut a, to, b"two");
    for _ in 0..10 {
        assert!(take(&mut a).is_empty() && take(&mut b).is_empty());
    }
    assert_eq!(clock.now(), Time(0));
    // B's frame takes a microsecond, and A's processor five nanoseconds to take it.
    clock.advance();
    assert_eq!((clock.now(), clock.waiting()), (Time(1005), 1));
    assert_eq!(take(&mut a).len(), 1);
    clock.advance();
    assert_eq!(clock.now(), Time(51_005), "no further than the engine's timers");
    clock.charge(10);
    clock.advance();
    assert_eq!(clock.now(), Time(51_015));
}

/// An engine's timers may fire a little after the deadline that it states. Time does not wait for
/// it to act at a moment at which it has polled in vain.
#[test]
fn time_moves_on_from_a_deadline_that_an_endpoint_cannot_meet() {
    let mut link = open("deadline", &[]);
    let begin = link.now();
    for _ in 0..4 {
        assert!(link.arm(Some(begin), false) && is_readable(&link));
        link.disarm();
        assert!(take(&mut link).is_empty());
    }
    assert!(link.now() > begin);
}
