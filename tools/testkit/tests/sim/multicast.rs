//! Groups in bad networks, at random: endpoints that join, leave and send, in virtual time.
//! Whatever a member hears was sent to its group while it was one, byte for byte; in a good network
//! every member hears everything once.

use cci::{Attribute, Connect, Connection, Endpoint, EventKind};
use cci_conformance::{LIMIT, device_of, open, pattern};
use std::collections::BTreeMap;
use std::time::Instant;

const ENDPOINTS: usize = 4;
const GROUPS: usize = 3;
/// Things that happen in a run.
const STEPS: u64 = 400;
/// Polls of all endpoints that find nothing, after which nothing is on its way: each lets a
/// microsecond pass at least, and a frame takes 2 and waits for 20 at most.
const QUIET: u32 = 200;

/// A message: who sent it, to which group, which it is; then bytes that follow from these.
fn message(sender: usize, group: usize, number: u64, len: usize) -> Vec<u8> {
    let head = [u8::try_from(sender).expect("few"), u8::try_from(group).expect("few")];
    [&head[..], &number.to_be_bytes(), &pattern(number, len)].concat()
}

/// An endpoint, and its connections to the groups: those that receive, and those that send.
struct Member {
    end: Endpoint,
    hears: [Option<Connection>; GROUPS],
    sends: [Option<Connection>; GROUPS],
}

/// A network, what was sent in it, and who heard it how often.
struct Segment {
    name: String,
    members: Vec<Member>,
    /// By number: the message and its group.
    sent: Vec<(Vec<u8>, usize)>,
    /// By member and number.
    heard: BTreeMap<(usize, u64), u32>,
    /// The same, for those that a good network has to deliver.
    expected: Vec<(usize, u64)>,
}

impl Segment {
    fn new(name: &str, faults: &[(&str, &str)]) -> Self {
        let keys = [&[("network", name), ("delay", "2000"), ("bandwidth", "1250000000")], faults].concat();
        let member = |_| Member { end: open(&device_of("sim", &keys)), hears: [None; GROUPS], sends: [None; GROUPS] };
        let members = (0..ENDPOINTS).map(member).collect();
        Self { name: name.to_owned(), members, sent: Vec::new(), heard: BTreeMap::new(), expected: Vec::new() }
    }

    /// Takes what a member has now; the connections that opened.
    fn take(&mut self, at: usize) -> (bool, Option<Connection>) {
        let member = &self.members[at];
        let (mut any, mut opened) = (false, None);
        while let Some(event) = member.end.get_event().expect("an endpoint") {
            any = true;
            match event.kind() {
                EventKind::Connect => opened = event.connection(),
                EventKind::Send => assert_eq!(event.outcome(), Ok(())),
                EventKind::Recv => {
                    let bytes = event.received().expect("a message").to_vec();
                    let number = bytes.get(2..10).map(|word| u64::from_be_bytes(word.try_into().expect("eight")));
                    let number = number.filter(|number| *number < self.sent.len() as u64);
                    let number = number.unwrap_or_else(|| panic!("{bytes:?} was never sent"));
                    let (sent, group) = &self.sent[usize::try_from(number).expect("few")];
                    assert!(bytes == *sent, "message {number} came with other bytes");
                    assert_eq!(event.connection(), member.hears[*group], "member {at} heard group {group}");
                    assert!(member.hears[*group].is_some(), "member {at} heard group {group} after it had left");
                    *self.heard.entry((at, number)).or_default() += 1;
                }
                kind => panic!("{kind:?}"),
            }
        }
        (any, opened)
    }

    /// Polls until nothing is on its way.
    fn rest(&mut self) {
        let mut quiet = 0;
        while quiet < QUIET {
            let found = (0..ENDPOINTS).filter(|at| self.take(*at).0).count();
            quiet = if found > 0 { 0 } else { quiet + 1 };
        }
    }

    fn connect(&mut self, at: usize, group: usize, attribute: Attribute) -> Connection {
        let uri = format!("sim://{}/group/g{group}", self.name);
        self.members[at].end.connect(&Connect::to(&uri).attribute(attribute)).expect("a connect");
        let deadline = Instant::now() + LIMIT;
        loop {
            assert!(Instant::now() < deadline, "no answer to the connect to {uri}");
            if let (_, Some(connection)) = self.take(at) {
                return connection;
            }
        }
    }

    /// Joins a group or leaves it, when everything that was sent before has come or is lost.
    fn turn(&mut self, at: usize, group: usize) {
        self.rest();
        match self.members[at].hears[group].take() {
            Some(connection) => self.members[at].end.disconnect(connection).expect("a connection"),
            None => {
                let connection = self.connect(at, group, Attribute::MulticastReceive);
                self.members[at].hears[group] = Some(connection);
            }
        }
    }

    fn send(&mut self, at: usize, group: usize, len: usize) {
        let number = self.sent.len() as u64;
        let connection = match self.members[at].sends[group] {
            Some(connection) => connection,
            None => self.connect(at, group, Attribute::MulticastSend),
        };
        self.members[at].sends[group] = Some(connection);
        let message = message(at, group, number, len);
        self.sent.push((message, group));
        let (message, _) = self.sent.last().expect("just put there");
        self.members[at].end.send(connection, message, 0).expect("a send");
        let members = (0..ENDPOINTS).filter(|member| self.members[*member].hears[group].is_some());
        self.expected.extend(members.map(|member| (member, number)));
    }

    fn play(&mut self, seed: u64) {
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..STEPS {
            let (at, group) = (random.usize(..ENDPOINTS), random.usize(..GROUPS));
            match random.u32(..20) {
                0 | 1 => self.turn(at, group),
                2..5 => self.rest(),
                _ => self.send(at, group, random.usize(..1000)),
            }
        }
        self.rest();
    }
}

#[test]
fn members_hear_what_was_sent_to_their_groups_and_nothing_else() {
    let faults = [("loss", "10"), ("duplicate", "5"), ("corrupt", "5"), ("jitter", "20000")];
    let (mut heard, mut expected, mut twice) = (0, 0, 0);
    for seed in 0..4 {
        let mut segment = Segment::new(&format!("bad{seed}"), &faults);
        segment.play(seed);
        heard += segment.heard.len();
        expected += segment.expected.len();
        twice += segment.heard.values().filter(|times| **times > 1).count();
        // The network makes one copy.
        assert!(segment.heard.values().all(|times| *times <= 2), "seed {seed}");
        let told = |key: &&(usize, u64)| segment.expected.contains(key);
        assert_eq!(segment.heard.keys().filter(told).count(), segment.heard.len(), "seed {seed}");
    }
    let part = 100 * heard / expected;
    assert!((70..95).contains(&part), "{part} % of {expected} arrived: 10 % are lost and 5 % spoilt");
    assert!(twice > 0, "{twice} came twice");
}

#[test]
fn in_a_good_network_every_member_hears_everything_once() {
    for seed in 0..2 {
        let mut segment = Segment::new(&format!("good{seed}"), &[]);
        segment.play(seed);
        let expected: BTreeMap<_, _> = segment.expected.iter().map(|key| (*key, 1)).collect();
        assert_eq!(segment.heard, expected, "seed {seed}");
        assert!(expected.len() > 100);
    }
}
