//! Random programs, and a simple model of what they leave: per initiator and match list the same
//! events in the same order, whatever the network does.

use cci::{Device, Endpoint, Memory};
use cci_conformance::{LIMIT, device_of, sm_device};
use cci_peers::{Name, Table};
use cci_portals::EventKind::{self, GetEnd, GetPutEnd, GetPutStart, GetStart, PutEnd, PutStart, SendEnd, SendStart};
use cci_portals::{
    Descriptor, Event, Handle, Interface, Limits, Match, Place, Position, ProcessId, Target, Unlink, buffer,
    endpoint_options, options,
};
use fastrand::Rng;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Of a descriptor at the target.
const MEMORY: usize = 60_000;

/// How long a thread waits before it looks whether all is over.
const PIECE: Duration = Duration::from_millis(2);

/// An entry with its descriptor, as the model has it: a plain list in order.
struct Expected {
    wanted: Match,
    options: u32,
    threshold: i32,
    max_size: u64,
    size: u64,
    offset: u64,
    is_spent: bool,
    goes: bool,
    entry: Handle,
    handle: Handle,
    memory: Memory,
}

impl Expected {
    fn has(&self, bits: u32) -> bool {
        self.options & bits == bits
    }

    fn is_active(&self) -> bool {
        self.threshold != 0 && !self.is_spent
    }
}

/// What a request comes to: the descriptor, where and how many bytes, and whether that is the end
/// of the descriptor.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Taken {
    handle: Handle,
    offset: u64,
    length: u64,
    has_ack: bool,
}

/// Walks the list as the specification has it.
fn take(list: &mut [Expected], operation: u32, length: u64, to: &Target, from: ProcessId) -> Option<Taken> {
    let entry = list.iter_mut().find(|entry| {
        let Match { source, bits, ignore } = entry.wanted;
        let is = |own: u32, other: u32| own == cci_portals::ANY || own == other;
        let offset = if entry.has(options::MANAGE_REMOTE) { to.offset } else { entry.offset };
        is(source.nid, from.nid)
            && is(source.pid, from.pid)
            && (bits ^ to.bits) & !ignore == 0
            && entry.is_active()
            && entry.has(operation)
            && (offset + length <= entry.size || entry.has(options::TRUNCATE) && offset <= entry.size)
    })?;
    let is_remote = entry.has(options::MANAGE_REMOTE);
    let offset = if is_remote { to.offset } else { entry.offset };
    let taken = length.min(entry.size.saturating_sub(offset));
    if entry.threshold > 0 {
        entry.threshold -= 1;
    }
    if !is_remote {
        entry.offset += taken;
        entry.is_spent = entry.has(options::MAX_SIZE) && entry.size - entry.offset < entry.max_size;
    }
    let has_ack = !entry.has(options::ACK_DISABLE);
    Some(Taken { handle: entry.handle, offset, length: taken, has_ack })
}

struct Side {
    ni: Interface,
    /// For what it begins.
    own: Handle,
    /// For requests of each initiator.
    served: Vec<Handle>,
}

/// What makes the progress of each side: calls, or an engine, by bit.
fn sides(device: &Device, count: u32, engines: u64) -> Vec<Side> {
    let ends: Vec<_> = (0..count).map(|_| Endpoint::open(device, &endpoint_options()).expect("an endpoint")).collect();
    let mut table = Table::new();
    (0..).zip(&ends).for_each(|(pid, end)| table.insert(Name::Number(9 << 32 | pid), end.uri()));
    let side = |(pid, end)| {
        let place = Place::of(end, ProcessId { nid: 9, pid }, Box::new(table.clone()));
        let open = if engines >> pid & 1 == 0 { Interface::new } else { Interface::accelerated };
        let ni = open(place, 0, Limits::default()).expect("an interface");
        let queue = || ni.queue(4_096, false).expect("room");
        let (own, served) = (queue(), (0..count).map(|_| queue()).collect());
        Side { ni, own, served }
    };
    (0..).zip(ends).map(side).collect()
}

/// Entries in random places of the list for one initiator, with random descriptors.
fn build(rng: &mut Rng, target: &Side, from: u32, list: &mut Vec<Expected>) {
    for _ in 0..rng.usize(1..6) {
        let any = |rng: &mut Rng, number| if rng.bool() { cci_portals::ANY } else { number };
        let source = ProcessId { nid: any(rng, 9), pid: any(rng, from) };
        let wanted = Match { source, bits: rng.u64(0..4), ignore: [0, 0, 1, 3, !0][rng.usize(0..5)] };
        let rights = [options::OP_PUT, options::OP_GET, options::OP_PUT | options::OP_GET][rng.usize(0..3)];
        let optional = [options::TRUNCATE, options::ACK_DISABLE, options::MAX_SIZE, options::MANAGE_REMOTE];
        let chosen = optional.iter().filter(|_| rng.u32(0..3) == 0).fold(rights, |bits, bit| bits | bit);
        let size = if rng.bool() { rng.usize(0..64) } else { MEMORY };
        let threshold = [-1, -1, 0, 1, 2, 5][rng.usize(0..6)];
        let (max_size, goes) = (rng.u64(0..100), rng.bool());
        let memory = buffer(vec![0; size]);
        let unlink = if goes { Unlink::Unlink } else { Unlink::Retain };
        let at = rng.usize(0..=list.len());
        // At either end, or beside another entry.
        let entry = match list.get(at) {
            None => target.ni.attach(from, wanted, unlink, Position::After),
            Some(_) if at == 0 => target.ni.attach(from, wanted, unlink, Position::Before),
            Some(next) if rng.bool() => target.ni.insert(next.entry, wanted, unlink, Position::Before),
            Some(_) => target.ni.insert(list[at - 1].entry, wanted, unlink, Position::After),
        };
        let entry = entry.expect("room");
        let mut descriptor = Descriptor::new(&memory).options(chosen).threshold(threshold);
        descriptor.described.max_size = max_size;
        let descriptor = descriptor.events(target.served[from as usize]);
        let handle = target.ni.attach_memory(entry, descriptor, unlink).expect("room");
        let (offset, size, options, is_spent) = (0, size as u64, chosen, false);
        list.insert(
            at,
            Expected { wanted, options, threshold, max_size, size, offset, is_spent, goes, entry, handle, memory },
        );
    }
}

/// What an initiator has begun, with what it must come to.
struct Begun {
    kind: EventKind,
    to: Target,
    length: u64,
    wants_ack: bool,
    memory: Handle,
    bytes: Vec<u8>,
    taken: Option<Taken>,
}

fn begin(rng: &mut Rng, side: &Side, to: u32, from: u32, list: &mut [Expected]) -> Begun {
    let length = [rng.usize(0..64), rng.usize(0..64), rng.usize(0..2_000), 20_000][rng.usize(0..4)];
    let kind = [PutStart, PutStart, GetStart, GetPutStart][rng.usize(0..4)];
    let length = if kind == GetPutStart { length % 64 } else { length };
    let bytes: Vec<u8> = (0..length).map(|_| rng.u8(1..)).collect();
    let target = Target {
        bits: rng.u64(0..4),
        offset: rng.u64(0..80),
        header: rng.u64(..),
        ..Target::at(ProcessId { nid: 9, pid: to }, from)
    };
    let bind = |memory: &Memory| side.ni.bind(Descriptor::new(memory).events(side.own), Unlink::Retain).expect("room");
    let memory = bind(&buffer(bytes.clone()));
    let wants_ack = rng.bool();
    let (begun, operation) = match kind {
        PutStart => (side.ni.put(memory, None, wants_ack, &target), options::OP_PUT),
        GetStart => (side.ni.get(memory, None, &target), options::OP_GET),
        _ => {
            let source = bind(&buffer(bytes.clone()));
            (side.ni.get_put(memory, source, &target), options::OP_PUT | options::OP_GET)
        }
    };
    begun.expect("room");
    let length = length as u64;
    let taken = take(list, operation, length, &target, ProcessId { nid: 9, pid: from });
    Begun { kind, to: target, length, wants_ack, memory, bytes, taken }
}

fn drain(side: &Side, queue: Handle, into: &mut Vec<Event>) {
    while let Ok((event, is_lost)) = side.ni.event(queue) {
        assert!(!is_lost && event.failure <= 1);
        into.push(event);
    }
}

/// Events that the target leaves for one initiator: STARTs in the order of the calls, an END for
/// each, and UNLINK once for each descriptor that has come to its end.
fn check_target(all: &[Begun], events: &[Event], list: &[Expected], what: &str) {
    let wanted: Vec<&Begun> = all.iter().filter(|begun| begun.taken.is_some()).collect();
    let starts: Vec<&Event> =
        events.iter().filter(|event| [PutStart, GetStart, GetPutStart].contains(&event.kind)).collect();
    assert_eq!(starts.len(), wanted.len(), "{what}: {starts:?}");
    let mut links = BTreeMap::new();
    for (event, begun) in starts.iter().zip(&wanted) {
        let taken = begun.taken.expect("one that was taken");
        let found = (event.kind, event.memory, event.offset, event.mlength, event.rlength, event.bits);
        let expected = (begun.kind, taken.handle, taken.offset, taken.length, begun.length, begun.to.bits);
        assert_eq!(found, expected, "{what}");
        let header = if begun.kind == GetStart { 0 } else { begun.to.header };
        assert_eq!((event.header, event.portal), (header, begun.to.portal), "{what}");
        assert!(links.insert(event.link, (event.kind, event.mlength)).is_none());
    }
    for event in events.iter().filter(|event| [PutEnd, GetEnd, GetPutEnd].contains(&event.kind)) {
        let (start, mlength) = links.remove(&event.link).expect("an END for each START, behind it");
        assert_eq!((event.kind as u32, event.mlength, event.failure), (start as u32 + 1, mlength, 0), "{what}");
    }
    assert!(links.is_empty(), "{what}: without END: {links:?}");
    // UNLINK tells what the END before it does.
    for (end, unlink) in events.iter().zip(&events[1.min(events.len())..]) {
        if unlink.kind == EventKind::Unlink {
            let expected = Event { kind: EventKind::Unlink, link: end.sequence, sequence: unlink.sequence, ..*end };
            assert_eq!(*unlink, expected, "{what}");
        }
    }
    for entry in list {
        let ends = |event: &&Event| event.kind == EventKind::Unlink && event.memory == entry.handle;
        let was_used = wanted.iter().any(|begun| begun.taken.is_some_and(|taken| taken.handle == entry.handle));
        let is_gone = entry.goes && !entry.is_active() && was_used;
        assert_eq!(events.iter().filter(ends).count(), usize::from(is_gone), "{what}");
    }
}

/// Events of the initiator, by what each operation came to.
fn check_initiator(all: &[Begun], events: &[Event], what: &str) {
    for begun in all {
        let own: Vec<&Event> = events.iter().filter(|event| event.memory == begun.memory).collect();
        let kinds: Vec<_> = own.iter().map(|event| (event.kind, event.failure)).collect();
        let taken = begun.taken;
        if begun.kind == PutStart {
            let mut expected = vec![(SendStart, 0), (SendEnd, 0)];
            if begun.wants_ack && taken.is_some_and(|taken| taken.has_ack) {
                expected.push((EventKind::Ack, 0));
                assert_eq!(own.last().map(|ack| ack.mlength), taken.map(|taken| taken.length), "{what}");
            }
            assert_eq!(kinds, expected, "{what}");
        } else {
            let failure = u32::from(taken.is_none());
            assert_eq!(kinds, [(EventKind::ReplyStart, 0), (EventKind::ReplyEnd, failure)], "{what}");
            assert_eq!(own[1].mlength, taken.map_or(0, |taken| taken.length), "{what}");
        }
    }
}

/// The bytes of puts are where they belong, in descriptors that only one put has written at each
/// place: those with an offset of their own.
fn check_bytes(all: &[Begun], list: &[Expected], what: &str) {
    for entry in list.iter().filter(|entry| !entry.has(options::MANAGE_REMOTE)) {
        for begun in all.iter().filter(|begun| begun.kind != GetStart) {
            let Some(taken) = begun.taken.filter(|taken| taken.handle == entry.handle) else { continue };
            let mut bytes = vec![0; taken.length as usize];
            assert!(bytes.is_empty() || entry.memory.copy_out(taken.offset, &mut bytes));
            assert!(bytes == begun.bytes[..bytes.len()], "{what}: {taken:?}");
        }
    }
}

/// Requests that a side has served or dropped.
fn seen(side: &Side) -> u64 {
    [0, 2].map(|register| side.ni.status(register).expect("a register")).iter().sum()
}

/// Makes progress until each side has seen so many requests, and no operation is open: a put is
/// over once CCI has delivered it, and the engine of its target may look later. Each side waits in
/// a thread of its own: the time of a virtual network leaps while all of them sleep.
fn settle(sides: &[Side], wanted: &[u64], what: &str) {
    let started = Instant::now();
    let is_open = |side: &Side| side.ni.counts().0 > 0;
    let is_over = || sides.iter().zip(wanted).all(|(side, wanted)| seen(side) >= *wanted) && !sides.iter().any(is_open);
    std::thread::scope(|scope| {
        for side in sides {
            scope.spawn(|| {
                while !is_over() && started.elapsed() < LIMIT {
                    assert!(side.ni.make_progress(PIECE).is_ok());
                }
            });
        }
    });
    assert!(is_over(), "{what}: it does not end");
}

/// One random program: every side is target and initiator at once.
fn run(device: &Device, seed: u64, count: u32, engines: u64) {
    let mut rng = Rng::with_seed(seed);
    let sides = sides(device, count, engines);
    let what = format!("seed {seed} over {}, engines {engines:b}", device.transport);
    for round in 0..3 {
        let pairs: Vec<_> = (0..count).flat_map(|to| (0..count).map(move |from| (to, from))).collect();
        let mut lists: BTreeMap<_, Vec<Expected>> = BTreeMap::new();
        let mut begun: BTreeMap<_, Vec<Begun>> = BTreeMap::new();
        for (to, from) in &pairs {
            let list = lists.entry((*to, *from)).or_default();
            build(&mut rng, &sides[*to as usize], *from, list);
        }
        let before: Vec<_> = sides.iter().map(|side| side.ni.status(0).expect("a register")).collect();
        let mut wanted: Vec<_> = sides.iter().map(seen).collect();
        for _ in 0..rng.usize(1..60) {
            let (to, from) = pairs[rng.usize(0..pairs.len())];
            let list = lists.get_mut(&(to, from)).expect("one for each pair");
            let one = begin(&mut rng, &sides[from as usize], to, from, list);
            begun.entry((to, from)).or_default().push(one);
            wanted[to as usize] += 1;
        }
        settle(&sides, &wanted, &what);
        // Of each initiator: handles of two interfaces may be equal.
        let mut events: BTreeMap<u32, Vec<Event>> = BTreeMap::new();
        for ((to, from), list) in &lists {
            let all = begun.remove(&(*to, *from)).unwrap_or_default();
            let (target, initiator) = (&sides[*to as usize], &sides[*from as usize]);
            let mut served = Vec::new();
            drain(target, target.served[*from as usize], &mut served);
            let events = events.entry(*from).or_default();
            drain(initiator, initiator.own, events);
            let what = format!("{what}, round {round}, {from} to {to}");
            check_target(&all, &served, list, &what);
            check_initiator(&all, events, &what);
            check_bytes(&all, list, &what);
            begun.insert((*to, *from), all);
        }
        for (to, side) in (0..).zip(&sides) {
            let of = begun.iter().filter(|((target, _), _)| *target == to);
            let dropped = of.flat_map(|(_, all)| all).filter(|begun| begun.taken.is_none()).count() as u64;
            assert_eq!(side.ni.status(0), Ok(before[to as usize] + dropped), "{what}");
            // The next round begins with empty lists.
            for entry in lists.iter().filter(|((target, _), _)| *target == to).flat_map(|(_, list)| list) {
                // Those that go by themselves may have gone.
                let _ = (side.ni.unlink_memory(entry.handle), side.ni.unlink_entry(entry.entry));
            }
            assert_eq!(side.ni.counts(), (0, 0), "{what}");
        }
    }
    // All at once: the time of a virtual network stands still while its ends do not poll.
    std::thread::scope(|scope| sides.into_iter().for_each(|side| drop(scope.spawn(|| drop(side)))));
}

#[test]
fn random_programs_leave_what_the_model_says_over_shared_memory() {
    for seed in 0..40 {
        run(&sm_device(), seed, 2 + u32::try_from(seed % 2).expect("small"), 0);
    }
}

/// Interfaces with and without engines are partners of each other.
#[test]
fn random_programs_leave_what_the_model_says_with_engines() {
    for seed in 0..20 {
        run(&sm_device(), 2_000 + seed, 3, 1 + seed % 7);
    }
}

/// Frames are lost, come twice and out of order.
#[test]
fn random_programs_leave_what_the_model_says_over_a_bad_network() {
    for seed in 0..25 {
        over_a_bad_network(1_000 + seed, 2 + u32::try_from(seed % 2).expect("small"), 0);
    }
}

/// The same, where some partners have engines.
#[test]
fn random_programs_leave_what_the_model_says_over_a_bad_network_with_engines() {
    for seed in 0..10 {
        over_a_bad_network(3_000 + seed, 3, 1 + seed % 7);
    }
}

fn over_a_bad_network(seed: u64, sides: u32, engines: u64) {
    let (network, number) = (format!("random{seed}"), seed.to_string());
    let keys = [
        ("network", network.as_str()),
        ("seed", &number),
        ("delay", "20000"),
        ("jitter", "100000"),
        ("bandwidth", "1250000000"),
        ("loss", "3"),
        ("duplicate", "2"),
    ];
    run(&device_of("sim", &keys), seed, sides, engines);
}
