//! Which failures space in the peer's memory can have that its sender manages: three hypotheses of
//! ours about the paper's second version, which says only that it was unstable. Each is a sender
//! between two VIs over a virtual network, beside one that uses [`Space`], with the same messages.

use crate::space::Space;
use cci_conformance::{LIMIT, device_of};
use cci_via::{Access, Address, Connected, Nic, Region, Remote, Vi, ViAttributes, Work};
use std::collections::VecDeque;
use std::time::Instant;

/// Bytes of the ring, and of the longest message.
const SIZE: u32 = 256;
const LONGEST: u32 = 96;
const MESSAGES: u32 = 400;

/// How a sender manages the space.
trait Sender {
    fn take(&mut self, len: u32) -> Option<u32>;
    /// A message of that length has been read; those that came before it may not have been.
    fn freed(&mut self, len: u32);
}

/// The bounded ring: it is told of messages in the order in which they came.
struct Bounded(Space);

impl Sender for Bounded {
    fn take(&mut self, len: u32) -> Option<u32> {
        self.0.take(len)
    }

    fn freed(&mut self, _: u32) {
        assert!(self.0.free(1));
    }
}

/// Counts bytes, and begins anew where a message does not fit before the end.
#[derive(Default)]
struct Counted {
    head: u32,
    used: u32,
    /// Whether what is left out before the end counts as used.
    counts_rest: bool,
    /// What it has left out, for each message, if that comes back with it.
    rests: Option<VecDeque<u32>>,
}

impl Sender for Counted {
    fn take(&mut self, len: u32) -> Option<u32> {
        let len = len.next_multiple_of(8);
        let (offset, rest) = if self.head + len <= SIZE { (self.head, 0) } else { (0, SIZE - self.head) };
        let rest = if self.counts_rest { rest } else { 0 };
        if self.used + rest + len > SIZE {
            return None;
        }
        self.used += rest + len;
        self.head = (offset + len) % SIZE;
        if let Some(rests) = &mut self.rests {
            rests.push_back(rest);
        }
        Some(offset)
    }

    fn freed(&mut self, len: u32) {
        let rest = self.rests.as_mut().and_then(VecDeque::pop_front).unwrap_or(0);
        self.used -= len.next_multiple_of(8) + rest;
    }
}

/// Two VIs over a virtual network, the ring at one of them.
struct Scene {
    here: Vi<Connected>,
    there: Vi<Connected>,
    ring: Region,
    source: Option<Work>,
    tag: cci_via::Tag,
    nic: Nic,
}

impl Scene {
    fn new(name: &str) -> Self {
        let device = device_of("sim", &[("network", name), ("delay", "2000"), ("bandwidth", "1250000000")]);
        let open = || {
            let nic = Nic::open(&device).expect("a NIC");
            let tag = nic.protection().expect("a tag");
            let access = Access { write: true, read: false };
            let vi = Vi::new(&nic, &ViAttributes { tag, access, ..ViAttributes::default() }, None, None);
            (nic, tag, vi.expect("a VI"))
        };
        let ((one, one_tag, left), (other, tag, right)) = (open(), open());
        let names = ["a", "b"].map(|end| format!("{name}{end}{}", std::process::id()));
        let at = Address::new(one.host(), names[0].as_bytes());
        let from = Address::new(other.host(), names[1].as_bytes());
        let mut left = left.peer(&at, &from, LIMIT).expect("idle");
        let mut right = right.peer(&from, &at, LIMIT).expect("idle");
        while !left.poll().expect("a peer") | !right.poll().expect("a peer") {}
        let (here, there) = (left.wait().expect("connected"), right.wait().expect("connected"));
        let ring = other.register(vec![0; SIZE as usize], tag, Access { write: true, read: false }).expect("memory");
        let source = one.register(vec![0; LONGEST as usize], one_tag, Access::default()).expect("memory");
        Self { here, there, ring, source: Some(Work::of(source)), tag, nic: other }
    }

    /// Writes a message into the ring, and waits until it has come.
    fn send(&mut self, offset: u32, bytes: &[u8]) {
        let receive = self.nic.register(vec![0; 8], self.tag, Access::default()).expect("memory");
        self.there.post_receive(Work::of(receive)).expect("room");
        let region = self.source.take().expect("it has come back").into_regions().remove(0);
        assert!(region.write(0, bytes));
        let remote = Remote { address: offset.into(), handle: self.ring.handle() };
        self.here.post_write(Work::part(region, 0..bytes.len()), remote, Some(offset)).expect("room");
        let (begun, mut came) = (Instant::now(), false);
        while self.source.is_none() || !came {
            assert!(begun.elapsed() < LIMIT, "waited in vain for a message");
            if let Some(done) = self.here.sent().expect("a VI") {
                assert!(!done.status.is_error(), "{done:?}");
                self.source = Some(done.work);
            }
            if let Some(done) = self.there.received().expect("a VI") {
                assert_eq!(done.immediate, Some(offset));
                came = true;
            }
        }
    }
}

/// What became of the messages of a sender.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    read: u32,
    overwritten: u32,
    /// No message is unread, and the next one finds no space.
    is_stuck: bool,
}

/// Sends messages, which are read later: in order, or in whatever order their handlers end.
/// `tells_in_order`: the sender is told of a message only once those before it have been read.
fn run(name: &str, sender: &mut dyn Sender, reads_in_order: bool, tells_in_order: bool) -> Outcome {
    let mut scene = Scene::new(name);
    let mut random = fastrand::Rng::with_seed(11);
    let mut outcome = Outcome::default();
    // Messages that have come: place, bytes, and whether they have been read.
    let mut open: VecDeque<(u32, Vec<u8>, bool)> = VecDeque::new();
    while outcome.read < MESSAGES {
        let len = random.u32(1..=LONGEST);
        if open.len() < 8
            && let Some(offset) = sender.take(len)
        {
            let bytes: Vec<u8> = (0..len).map(|_| random.u8(..)).collect();
            scene.send(offset, &bytes);
            open.push_back((offset, bytes, false));
            continue;
        }
        let unread: Vec<usize> = (0..open.len()).filter(|at| !open[*at].2).collect();
        if unread.is_empty() {
            outcome.is_stuck = true;
            return outcome;
        }
        let at = unread[if reads_in_order { 0 } else { random.usize(0..unread.len()) }];
        let (offset, bytes, is_read) = &mut open[at];
        *is_read = true;
        outcome.read += 1;
        outcome.overwritten += u32::from(scene.ring.to_vec(*offset as usize, bytes.len()).as_ref() != Some(bytes));
        let len = bytes.len() as u32;
        if tells_in_order {
            while open.front().is_some_and(|(_, _, is_read)| *is_read) {
                let front = open.pop_front().map_or(0, |(_, bytes, _)| bytes.len() as u32);
                sender.freed(front);
            }
        } else {
            open.remove(at);
            sender.freed(len);
        }
    }
    outcome
}

const ALL_READ: Outcome = Outcome { read: MESSAGES, overwritten: 0, is_stuck: false };

#[test]
fn a_ring_that_ignores_what_it_leaves_out_overwrites_messages() {
    let naive = run("wrap", &mut Counted::default(), true, true);
    assert!(naive.overwritten > 0 && !naive.is_stuck, "{naive:?}");
    assert_eq!(run("wrapours", &mut Bounded(Space::new(SIZE)), true, true), ALL_READ);
}

#[test]
fn space_that_is_freed_out_of_order_is_overwritten() {
    let sender = || Counted { counts_rest: true, rests: Some(VecDeque::new()), ..Counted::default() };
    // What is left out comes back with its message here: in order, this sender is right.
    assert_eq!(run("inorder", &mut sender(), true, true), ALL_READ);
    let naive = run("outoforder", &mut sender(), false, false);
    assert!(naive.overwritten > 0, "{naive:?}");
    // Handlers end in any order; the sender is told of messages in theirs.
    assert_eq!(run("outoforderours", &mut Bounded(Space::new(SIZE)), false, true), ALL_READ);
}

#[test]
fn space_that_is_left_out_and_not_given_back_stops_the_sender() {
    let naive = run("lost", &mut Counted { counts_rest: true, ..Counted::default() }, true, true);
    assert!(naive.is_stuck && naive.overwritten == 0 && naive.read < MESSAGES, "{naive:?}");
    assert_eq!(run("lostours", &mut Bounded(Space::new(SIZE)), true, true), ALL_READ);
}
