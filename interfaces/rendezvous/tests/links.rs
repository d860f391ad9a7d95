//! Offers and reads over `sm`: every state in which a link or a read may end, and that no
//! registration is left behind.

#![forbid(unsafe_code)]

use cci::{Attribute, Connection, Endpoint, EventKind, Failure, HeapBytes, Memory, RegisterError, RmaHandle};
use cci_conformance::{World, open, sm_device};
use cci_rendezvous::{Ended, Link, NoRoom, Offers, Reads, Remote, Unread};
use std::sync::Arc;

const LINK: Link = Link { peer: 0, life: 1 };
const LATER: Link = Link { peer: 0, life: 2 };

/// Memory, and how many besides this name it.
struct Bytes(Arc<HeapBytes>);

impl Bytes {
    fn new(bytes: Vec<u8>) -> Self {
        Self(Arc::new(HeapBytes::new(bytes)))
    }

    fn memory(&self) -> Memory {
        Memory::of_bytes(&self.0)
    }

    fn copy(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.memory().len() as usize];
        assert!(self.memory().copy_out(0, &mut bytes));
        bytes
    }

    fn is_free(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

/// Two endpoints; the first one offers, the second one reads.
struct Scene<'e> {
    world: World<'e>,
    from: Connection,
    to: Connection,
    offers: Offers<u32>,
    reads: Reads<u32>,
}

fn with_scene(act: impl FnOnce(&mut Scene<'_>)) {
    let device = sm_device();
    let endpoints = [open(&device), open(&device)];
    let (world, from, to) = World::joined([&endpoints[0], &endpoints[1]], Attribute::ReliableOrdered);
    let mut scene = Scene { world, from, to, offers: Offers::default(), reads: Reads::default() };
    act(&mut scene);
    assert_eq!((scene.offers.open(), scene.reads.open()), (0, 0), "what is open in the end");
}

impl<'e> Scene<'e> {
    fn reader(&self) -> &'e Endpoint {
        self.world.endpoint(1)
    }

    fn offer(&mut self, request: u32, parts: &[&Bytes]) -> Result<u32, RegisterError> {
        let fill = |memory: &mut Vec<Memory>| memory.extend(parts.iter().map(|part| part.memory()));
        self.offers.offer(self.world.endpoint(0), (self.from, LINK), request, fill)
    }

    /// The parts of an offer, as a message has them.
    fn parts(&self, offer: u32) -> Vec<Remote> {
        self.offers.parts(offer).map(|(len, handle)| Remote { len, handle: *handle }).collect()
    }

    fn insert(&mut self, (request, link): (u32, Link), (wanted, remote): (u64, Vec<Remote>), into: &[&Bytes]) -> u32 {
        let fill = |memory: &mut Vec<Memory>| memory.extend(into.iter().map(|part| part.memory()));
        self.reads.insert((request, link), (wanted, remote), fill).0
    }

    fn begin(&mut self, number: u32, link: Link) -> Result<Option<Ended<u32>>, NoRoom> {
        self.reads.begin(self.reader(), (self.to, link), (number, number.into()))
    }

    /// Takes the end of a read.
    fn complete(&mut self, number: u32) -> Option<Ended<u32>> {
        let event = self.world.next(1, EventKind::Send);
        assert_eq!(event.context(), u64::from(number));
        self.reads.completed(number, event.outcome())
    }

    fn end(&mut self, number: u32) -> Result<u64, Unread> {
        loop {
            if let Some(ended) = self.complete(number) {
                return self.let_go(ended);
            }
        }
    }

    /// Takes the end of any read: whose it was the last one, and how they have ended.
    fn next_end(&mut self) -> Option<(u32, Result<u64, Unread>)> {
        let event = self.world.next(1, EventKind::Send);
        let ended = self.reads.completed(event.context() as u32, event.outcome())?;
        Some((ended.request, self.let_go(ended)))
    }

    fn next_ended(&mut self) -> (u32, Result<u64, Unread>) {
        self.next_end().expect("of one read")
    }

    fn let_go(&mut self, ended: Ended<u32>) -> Result<u64, Unread> {
        let result = ended.result;
        self.reads.let_go(ended);
        result
    }
}

fn bytes(len: usize, first: u8) -> Vec<u8> {
    (0..len).map(|at| first.wrapping_add(at as u8)).collect()
}

#[test]
fn an_offer_is_read_wherever_its_parts_and_those_of_the_receive_end() {
    with_scene(|scene| {
        let own: Vec<_> = [(5, 0), (1, 5), (30, 6), (64, 36)].map(|(len, first)| Bytes::new(bytes(len, first))).into();
        for wanted in [100, 99, 36, 5, 1, 0] {
            let offer = scene.offer(7, &own.iter().collect::<Vec<_>>()).expect("room");
            assert!(own.iter().all(|part| !part.is_free()));
            let parts = scene.parts(offer);
            assert_eq!(parts.iter().map(|part| part.len).collect::<Vec<_>>(), [5, 1, 30, 64]);
            let (front, back) = (Bytes::new(vec![0; 17]), Bytes::new(vec![0; 83]));
            let number = scene.insert((9, LINK), (wanted, parts), &[&front, &back]);
            assert!(!front.is_free());
            let result = match scene.begin(number, LINK).expect("room") {
                Some(ended) => scene.let_go(ended),
                None => scene.end(number),
            };
            assert_eq!(result, Ok(wanted));
            let whole = [front.copy(), back.copy()].concat();
            assert_eq!(whole[..wanted as usize], bytes(100, 0)[..wanted as usize]);
            assert!(whole[wanted as usize..].iter().all(|byte| *byte == 0), "beyond {wanted}");
            assert!(front.is_free() && back.is_free(), "{wanted}");
            assert_eq!(scene.offers.done(offer, LINK), Some(7));
            assert!(own.iter().all(Bytes::is_free));
        }
    });
}

#[test]
fn what_is_over_still_has_its_registrations_until_its_caller_lets_go() {
    with_scene(|scene| {
        let (own, into) = (Bytes::new(vec![1; 8]), Bytes::new(vec![0; 8]));
        let offer = scene.offer(1, &[&own]).expect("room");
        let parts = scene.parts(offer);
        let number = scene.insert((2, LINK), (8, parts), &[&into]);
        assert!(scene.begin(number, LINK).expect("room").is_none());
        let ended = scene.complete(number).expect("its one read");
        assert_eq!((ended.request, ended.link, ended.result), (2, LINK, Ok(8)));
        assert!(!into.is_free() && scene.reads.open() == 1);
        // Nothing ends it twice.
        assert!(scene.reads.completed(number, Ok(())).is_none());
        assert!(scene.reads.end_link(LINK, Failure::Disconnected).is_empty());
        assert!(scene.begin(number, LINK).expect("room").is_none());
        assert_eq!(scene.let_go(ended), Ok(8));
        assert!(into.is_free());
        assert_eq!(scene.offers.withdraw(offer), Some(1));
    });
}

#[test]
fn a_link_that_ends_in_any_state_of_a_read_ends_it_once() {
    let why = Failure::TimedOut;
    let over = Err(Unread::Failed(why));
    with_scene(|scene| {
        let (own, into) = (Bytes::new(vec![1; 8]), [(); 3].map(|()| Bytes::new(vec![0; 8])));
        let offer = scene.offer(1, &[&own]).expect("room");
        let parts = scene.parts(offer);
        // It waits for its turn; it is under way; it is of another link.
        let numbers: Vec<u32> = (0..3)
            .zip([LINK, LINK, LATER])
            .map(|(request, link)| scene.insert((request, link), (8, parts.clone()), &[&into[request as usize]]))
            .collect();
        assert!(scene.begin(numbers[1], LINK).expect("room").is_none());
        let mut ended = scene.reads.end_link(LINK, why);
        assert_eq!(ended.iter().map(|ended| (ended.request, ended.result)).collect::<Vec<_>>(), [(0, over)]);
        let first = ended.pop().expect("just seen");
        assert_eq!(scene.let_go(first), over);
        assert!(into[0].is_free() && !into[1].is_free(), "CCI may still write it");
        // Its read was good, but nobody can tell its partner.
        let second = scene.complete(numbers[1]).expect("its one read");
        assert_eq!(scene.let_go(second), over);
        assert!(into[1].is_free());
        let third = scene.reads.end_link(LATER, why).pop().expect("it waits for its turn");
        assert_eq!((third.request, third.link), (2, LATER));
        assert_eq!(scene.let_go(third), over);
        assert_eq!(scene.offers.end_link(LINK), [1]);
        assert!(own.is_free() && into.iter().all(Bytes::is_free));
    });
}

/// A number waits in an outbox, its reads fail meanwhile, and their place is that of another link.
#[test]
fn reads_are_begun_by_their_own_link_alone() {
    with_scene(|scene| {
        let (own, into) = (Bytes::new(vec![1; 8]), Bytes::new(vec![0; 8]));
        let offer = scene.offer(1, &[&own]).expect("room");
        let parts = scene.parts(offer);
        let number = scene.insert((2, LATER), (8, parts), &[&into]);
        for other in [LINK, Link { peer: 1, ..LATER }] {
            assert!(scene.begin(number, other).expect("room").is_none());
        }
        assert!(scene.begin(number + 1, LATER).expect("room").is_none(), "there is none");
        scene.world.step();
        assert_eq!((scene.world.waiting(1, EventKind::Send), into.copy()), (0, vec![0; 8]));
        assert!(scene.begin(number, LATER).expect("room").is_none());
        assert_eq!((scene.end(number), into.copy()), (Ok(8), vec![1; 8]));
        assert_eq!(scene.offers.done(offer, LINK), Some(1));
    });
}

#[test]
fn reads_of_what_is_not_there_fail_and_let_go() {
    with_scene(|scene| {
        let (own, into) = (Bytes::new(vec![1; 8]), Bytes::new(vec![0; 32]));
        let offer = scene.offer(1, &[&own]).expect("room");
        let right = scene.parts(offer)[0];
        let unknown = Remote { len: 8, handle: RmaHandle::from_bytes(&[6; 32]).expect("a handle") };
        let longer = Remote { len: 1 << 40, ..right };
        // One that ends well beside one that does not; parts that are shorter than stated; and
        // more than this side has room for, by 64 bits.
        let failed = Err(Unread::Failed(Failure::RemoteHandle));
        for (wanted, parts, result) in [
            (16, vec![right, unknown], failed),
            (16, vec![unknown, right], failed),
            (16, vec![longer], failed),
            (16, vec![right], Err(Unread::Short)),
            (16, vec![], Err(Unread::Short)),
            (1 << 40, vec![right, right, right, right, right], Err(Unread::Short)),
        ] {
            let number = scene.insert((2, LINK), (wanted, parts), &[&into]);
            let ended = scene.begin(number, LINK).expect("room");
            let got = ended.map(|ended| scene.let_go(ended));
            assert_eq!(got.unwrap_or_else(|| scene.end(number)), result);
            assert!(into.is_free() && scene.reads.open() == 0);
        }
        // Memory that cannot be registered.
        let number = scene.insert((2, LINK), (8, vec![right]), &[&into, &Bytes::new(Vec::new())]);
        let ended = scene.begin(number, LINK).expect("room").expect("nothing is under way");
        assert!(matches!(scene.let_go(ended), Err(Unread::Memory(_))) && into.is_free());
        assert_eq!(scene.offers.withdraw(offer), Some(1));
    });
}

#[test]
fn reads_for_which_there_is_no_room_go_on_as_it_comes() {
    for is_broken in [false, true] {
        with_scene(|scene| no_room(scene, is_broken));
    }
}

fn no_room(scene: &mut Scene<'_>, is_broken: bool) {
    let (own, into, quarters) = (Bytes::new(bytes(8, 3)), Bytes::new(vec![0; 8]), Bytes::new(vec![0; 8]));
    let offer = scene.offer(1, &[&own]).expect("room");
    let part = scene.parts(offer)[0];
    // Of one read each, until there is no room for the last one.
    let mut open = 0;
    let last = loop {
        let number = scene.insert((1, LINK), (8, vec![part]), &[&into]);
        open += 1;
        match scene.begin(number, LINK) {
            Ok(None) => assert!(open < 100_000, "no end of room"),
            Ok(Some(ended)) => panic!("{ended:?}"),
            Err(NoRoom) => break number,
        }
    };
    // Of four reads, two of which have room.
    let four = scene.insert((4, LINK), (8, vec![Remote { len: 2, ..part }; 4]), &[&quarters]);
    let mut results = vec![scene.next_ended(), scene.next_ended()];
    assert!(matches!(scene.begin(four, LINK), Err(NoRoom)), "two of four");
    // The link may end meanwhile: of what was not under way at once.
    if is_broken {
        let mut over = scene.reads.end_link(LINK, Failure::Disconnected);
        assert_eq!(over.len(), 1, "the last of one read");
        results.extend(over.pop().map(|ended| (ended.request, scene.let_go(ended))));
    }
    while results.len() <= open {
        results.extend(scene.next_end());
        for number in [last, four] {
            assert!(!matches!(scene.begin(number, LINK), Ok(Some(_))), "their reads are good");
        }
    }
    let result = if is_broken { Err(Unread::Failed(Failure::Disconnected)) } else { Ok(8) };
    let (early, late) = results.split_at(2);
    assert!(early.iter().all(|ended| *ended == (1, Ok(8))) && late.iter().all(|(_, of)| *of == result));
    assert_eq!(late.iter().filter(|(request, _)| *request == 4).count(), 1);
    if !is_broken {
        assert_eq!((into.copy(), quarters.copy()), (bytes(8, 3), bytes(2, 3).repeat(4)));
    }
    assert!(into.is_free() && quarters.is_free());
    assert_eq!(scene.offers.done(offer, LINK), Some(1));
}

#[test]
fn an_offer_ends_by_its_own_link_alone_and_once() {
    with_scene(|scene| {
        let own = [(); 3].map(|()| Bytes::new(vec![1; 8]));
        let offers: Vec<u32> = (0..2).map(|at| scene.offer(at as u32, &[&own[at]]).expect("room")).collect();
        for (number, link) in [(offers[0], LATER), (offers[0], Link { peer: 1, ..LINK }), (9, LINK), (u32::MAX, LINK)] {
            assert_eq!(scene.offers.done(number, link), None);
        }
        assert_eq!((scene.offers.end_link(LATER), scene.offers.open()), (vec![], 2));
        assert_eq!(scene.offers.done(offers[0], LINK), Some(0));
        assert!(own[0].is_free() && !own[1].is_free());
        assert_eq!([scene.offers.done(offers[0], LINK), scene.offers.withdraw(offers[0])], [None; 2]);
        assert_eq!(scene.offers.parts(offers[0]).len(), 0);
        // The place is used again, and all of the link end with it.
        assert_eq!(scene.offer(2, &[&own[2]]), Ok(offers[0]));
        assert_eq!(scene.offers.end_link(LINK), [2, 1]);
        assert!(own.iter().all(Bytes::is_free));
    });
}

#[test]
fn an_offer_that_cannot_be_registered_as_a_whole_is_none() {
    with_scene(|scene| {
        let (own, none) = (Bytes::new(vec![1; 8]), Bytes::new(Vec::new()));
        assert!(scene.offer(1, &[&own, &none]).is_err());
        assert!(own.is_free() && scene.offers.open() == 0);
        let offer = scene.offer(1, &[&own]).expect("room");
        assert_eq!(scene.offers.parts(offer).len(), 1);
        assert_eq!(scene.offers.withdraw(offer), Some(1));
    });
}

/// Offers and reads that end in random ways: as many registrations are there as are open.
#[test]
fn no_registration_is_left_behind() {
    with_scene(|scene| {
        let mut random = fastrand::Rng::with_seed(7);
        let (own, into) = (Bytes::new(vec![1; 64]), Bytes::new(vec![0; 64]));
        for round in 0..2_000 {
            let offer = scene.offer(round, &[&own]).expect("room");
            let parts = scene.parts(offer);
            // One that ends before it is read has its reader fail.
            let is_early = random.bool();
            if is_early {
                assert_eq!(scene.offers.done(offer, LINK), Some(round));
            }
            let number = scene.insert((round, LINK), (64, parts), &[&into]);
            let is_begun = random.bool();
            let mut ended = if is_begun { scene.begin(number, LINK).expect("room") } else { None };
            let is_broken = !is_begun || random.bool();
            if is_broken && ended.is_none() {
                ended = scene.reads.end_link(LINK, Failure::Disconnected).pop();
            }
            let ended = ended.or_else(|| scene.complete(number)).expect("over");
            let result = scene.let_go(ended);
            assert_eq!(result.is_ok(), !is_early && !is_broken, "round {round}: {result:?}");
            if !is_early {
                assert_eq!(scene.offers.end_link(LINK), [round]);
            }
            assert!(own.is_free() && into.is_free(), "round {round}");
        }
    });
}
