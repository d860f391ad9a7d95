//! Event queues, updates, unlinking, and refused calls.

use crate::world::{GET, PUT, TRANSPORTS, anything, events, id, other, put, two, two_modes, until, zeroes};
use cci_conformance::device_of;
use cci_portals::EventKind::{PutEnd, PutStart, SendEnd, SendStart};
use cci_portals::{ANY, Descriptor, Error, Handle, ProcessId, Target, Unlink, buffer, options};
use std::time::{Duration, Instant};

/// How long an interface that ends waits for what has left.
const LONGEST_END: Duration = Duration::from_secs(1);

#[test]
fn a_queue_that_overflows_keeps_the_newest_and_says_so_once() {
    let sides = two("sm");
    // Rounded up to 8.
    let queue = sides[1].ni.queue(5, false).expect("room");
    let memory = zeroes(8);
    let (_, target) = sides[1].post(anything(), &memory, PUT | options::MANAGE_REMOTE);
    let new = Descriptor::new(&memory).options(PUT | options::MANAGE_REMOTE | options::EVENT_START_DISABLE);
    sides[1].ni.update(target, Some(new.events(queue)), Handle::NO_QUEUE).expect("quiet");
    for header in 0..11 {
        put(&sides, 0, b"x", &Target { header, ..other(1) });
    }
    until(&sides, "all puts", || (sides[1].ni.status(2) == Ok(11)).then_some(()));
    let (event, is_lost) = sides[1].ni.event(queue).expect("an event");
    assert_eq!((event.header, event.kind, is_lost), (3, PutEnd, true));
    for header in 4..11 {
        assert_eq!(sides[1].ni.event(queue).map(|(event, is_lost)| (event.header, is_lost)), Ok((header, false)));
    }
    assert_eq!(sides[1].ni.event(queue), Err(Error::QueueEmpty));
}

#[test]
fn events_that_are_disabled_are_not_left() {
    let kinds = |bits| {
        let sides = two("sm");
        sides[1].post(anything(), &zeroes(8), PUT | options::MANAGE_REMOTE | bits);
        put(&sides, 0, b"x", &other(1));
        until(&sides, "the put", || (sides[1].ni.status(2) == Ok(1)).then_some(()));
        std::iter::from_fn(|| sides[1].event()).map(|event| event.kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds(0), [PutStart, PutEnd]);
    assert_eq!(kinds(options::EVENT_START_DISABLE), [PutEnd]);
    assert_eq!(kinds(options::EVENT_END_DISABLE), [PutStart]);
    assert_eq!(kinds(options::EVENT_START_DISABLE | options::EVENT_END_DISABLE), []);
    // Without both there is no ack either.
    let sides = two("sm");
    sides[1].post(anything(), &zeroes(8), PUT);
    let bits = options::EVENT_START_DISABLE | options::EVENT_END_DISABLE;
    let source = sides[0].ni.bind(Descriptor::new(&zeroes(1)).options(bits).events(sides[0].queue), Unlink::Retain);
    sides[0].ni.put(source.expect("room"), None, true, &other(1)).expect("room");
    events(&sides, 1, &[PutStart, PutEnd]);
    until(&sides, "the ack", || (sides[0].ni.counts().0 == 0).then_some(()));
    assert_eq!((sides[0].event(), sides[0].dropped()), (None, 0));
}

#[test]
fn a_descriptor_is_updated_only_when_its_queue_is_quiet() {
    let sides = two("sm");
    let (ni, queue) = (&sides[1].ni, sides[1].queue);
    let (first, second) = (zeroes(8), zeroes(16));
    let (_, target) = sides[1].post(anything(), &first, PUT);
    let new = || Descriptor::new(&second).options(PUT).user(5).events(queue);
    put(&sides, 0, b"12345678", &other(1));
    until(&sides, "the put", || (ni.status(2) == Ok(1)).then_some(()));
    assert_eq!(ni.update(target, Some(new()), queue), Err(Error::NoUpdate));
    let old = ni.update(target, None, Handle::NO_QUEUE).expect("a descriptor");
    assert_eq!((old.length, old.user, old.start), (8, 0, first.start() as u64));
    events(&sides, 1, &[PutStart, PutEnd]);
    assert_eq!(ni.update(target, Some(new()), queue).map(|old| old.length), Ok(8));
    put(&sides, 0, b"abcd", &other(1));
    let came = events(&sides, 1, &[PutStart, PutEnd]);
    assert_eq!((came[1].offset, came[1].described.user), (0, 5), "its offset is 0 again");
    assert_eq!(ni.update(target, Some(new()), target), Err(Error::Queue));
    assert_eq!(ni.update(Handle::NONE, None, Handle::NO_QUEUE), Err(Error::Memory));
    // One that was inactive is active again.
    ni.update(target, Some(new().threshold(0)), queue).expect("quiet");
    ni.update(target, Some(new().threshold(1)), queue).expect("quiet");
    put(&sides, 0, b"abcd", &other(1));
    events(&sides, 1, &[PutStart, PutEnd]);
}

/// An operation that is pending holds its descriptor, until its END event can be seen.
#[test]
fn what_is_in_use_is_not_unlinked() {
    let sides = two("sm");
    let memory = zeroes(100_000);
    let (entry, target) = sides[1].post(anything(), &memory, PUT);
    let source = sides[0].bind(&zeroes(100_000));
    sides[0].ni.put(source, None, false, &other(1)).expect("room");
    assert_eq!(sides[0].ni.unlink_memory(source), Err(Error::MemoryInUse));
    let test = sides[0].queue;
    events(&sides, 0, &[SendStart]);
    assert_eq!(sides[0].ni.update(source, Some(Descriptor::new(&zeroes(1))), test), Err(Error::NoUpdate));
    events(&sides, 1, &[PutStart]);
    if sides[1].event().is_none() {
        assert_eq!(sides[1].ni.unlink_memory(target), Err(Error::MemoryInUse));
        assert_eq!(sides[1].ni.unlink_entry(entry), Err(Error::EntryInUse));
        events(&sides, 1, &[PutEnd]);
    }
    assert_eq!(sides[1].ni.unlink_memory(target), Ok(()));
    assert_eq!(sides[1].ni.unlink_entry(entry), Ok(()));
    events(&sides, 0, &[SendEnd]);
    assert_eq!(sides[0].ni.unlink_memory(source), Ok(()));
}

#[test]
fn an_entry_takes_along_a_descriptor_that_goes_by_itself_and_leaves_another() {
    let sides = two("sm");
    let ni = &sides[0].ni;
    let (entry, memory) = sides[0].post_descriptor(anything(), Descriptor::new(&zeroes(1)), Unlink::Unlink);
    ni.unlink_entry(entry).expect("nothing is pending");
    assert_eq!(ni.unlink_memory(memory), Err(Error::Memory));
    let (entry, memory) = sides[0].post(anything(), &zeroes(1), PUT);
    let another = || Descriptor::new(&zeroes(1));
    assert_eq!(ni.attach_memory(entry, another(), Unlink::Retain), Err(Error::EntryInUse));
    ni.unlink_entry(entry).expect("nothing is pending");
    ni.unlink_memory(memory).expect("it has stayed");
    // An entry that stayed takes another descriptor.
    let (entry, memory) = sides[0].post(anything(), &zeroes(1), PUT);
    ni.unlink_memory(memory).expect("nothing is pending");
    ni.attach_memory(entry, another(), Unlink::Retain).expect("it is free");
    assert_eq!(sides[0].event(), None, "no event of what was unlinked by hand");
}

#[test]
fn a_wait_ends_with_its_queue_and_with_its_time() {
    let sides = two("sm");
    let side = &sides[0];
    let queue = side.ni.queue(4, false).expect("room");
    assert_eq!(side.ni.poll(&[queue], Some(Duration::from_millis(5))), Err(Error::QueueEmpty));
    assert_eq!(side.ni.poll(&[], None), Err(Error::Queue));
    std::thread::scope(|scope| {
        let waits = [(); 2].map(|()| scope.spawn(|| side.ni.wait(queue)));
        side.ni.free_queue(queue).expect("a queue");
        for wait in waits {
            assert_eq!(wait.join().expect("no panic"), Err(Error::Queue));
        }
    });
    std::thread::scope(|scope| {
        let wait = scope.spawn(|| side.ni.wait(side.queue));
        side.ni.close().expect("open");
        assert_eq!(wait.join().expect("no panic"), Err(Error::Network));
    });
    assert_eq!(side.ni.event(side.queue), Err(Error::Network));
    assert_eq!(side.ni.close(), Err(Error::Network));
}

#[test]
fn a_poll_says_of_which_queue_the_event_is() {
    let sides = two("sm");
    let queues = [(); 3].map(|()| sides[0].ni.queue(4, false).expect("room"));
    sides[0].post(anything(), &zeroes(8), PUT | options::MANAGE_REMOTE);
    let source = sides[0].ni.bind(Descriptor::new(&zeroes(1)).events(queues[2]), Unlink::Retain).expect("room");
    sides[0].ni.put(source, None, false, &other(0)).expect("room");
    let found = sides[0].ni.poll(&queues, None).map(|(which, event, is_lost)| (which, event.kind, is_lost));
    assert_eq!(found, Ok((2, SendStart, false)));
}

#[test]
fn a_handler_gets_each_event_of_its_queue() {
    let sides = two("sm");
    let queue = sides[0].ni.queue(4, true).expect("room");
    let source = sides[0].ni.bind(Descriptor::new(&zeroes(1)).events(queue), Unlink::Retain).expect("room");
    sides[0].post(anything(), &zeroes(8), PUT | options::MANAGE_REMOTE);
    sides[0].ni.put(source, None, false, &other(0)).expect("room");
    let handled: Vec<_> = std::iter::from_fn(|| sides[0].ni.handled()).map(|(of, event)| (of, event.kind)).collect();
    assert_eq!(handled, [(queue, SendStart), (queue, SendEnd)]);
    assert_eq!(sides[0].ni.event(queue).map(|(event, _)| event.kind), Ok(SendStart), "it is in the queue too");
}

#[test]
fn calls_that_name_nothing_are_refused() {
    let sides = two("sm");
    let ni = &sides[0].ni;
    let memory = sides[0].bind(&zeroes(8));
    let (entry, _) = sides[0].post(anything(), &zeroes(8), PUT);
    let many = (0..17).map(|_| zeroes(1)).collect();
    assert_eq!(ni.bind(Descriptor::of_parts(many), Unlink::Retain), Err(Error::IllegalMemory));
    let two_parts = Descriptor::of(vec![zeroes(1), zeroes(1)], Default::default());
    assert_eq!(ni.bind(two_parts, Unlink::Retain), Err(Error::IllegalMemory), "without IOVEC");
    let lost = Descriptor::new(&buffer(vec![1])).events(memory);
    assert_eq!(ni.bind(lost, Unlink::Retain), Err(Error::Queue));
    assert_eq!(ni.attach_memory(memory, Descriptor::new(&zeroes(1)), Unlink::Retain), Err(Error::Entry));
    assert_eq!((ni.unlink_entry(memory), ni.unlink_memory(entry)), (Err(Error::Entry), Err(Error::Memory)));
    assert_eq!(ni.free_queue(memory), Err(Error::Queue));
    assert_eq!(ni.event(memory), Err(Error::Queue));
    assert_eq!(ni.status(6), Err(Error::Register));
    for process in [ProcessId::ANY, ProcessId { nid: ANY, pid: 1 }, ProcessId { nid: 9, pid: ANY }] {
        assert_eq!(ni.put(memory, None, false, &Target::at(process, 4)), Err(Error::Process));
        assert_eq!(ni.distance(process), Err(Error::Process));
    }
    assert_eq!([id(0), id(1), ProcessId { nid: 8, pid: 0 }].map(|to| ni.distance(to)), [Ok(0), Ok(1), Ok(2)]);
    assert!(ni.has(ni.handle()) && ni.has(memory) && ni.has(entry) && ni.has(sides[0].queue));
    assert!(!ni.has(Handle::NONE) && !ni.has(Handle::INVALID) && !ni.has(sides[1].ni.handle()));
    assert_eq!(ni.queue(0, false), Ok(Handle::NO_QUEUE));
}

/// Programs wait for the end of a send before they wait for what it causes, and drop what else they
/// find. So a short put ends once its bytes have left, whatever its target does.
#[test]
fn a_short_send_ends_before_its_target_looks() {
    for transport in TRANSPORTS {
        let sides = two(transport);
        sides[1].post(anything(), &zeroes(64), PUT | GET);
        put(&sides, 0, b"link", &other(1));
        events(&sides, 1, &[PutStart, PutEnd]);
        let [short, sink, source] = [(); 3].map(|()| sides[0].bind(&zeroes(8)));
        for wants_ack in [false, true] {
            sides[0].ni.put(short, None, wants_ack, &other(1)).expect("room");
            // The target makes no call.
            let seen = [sides[0].event(), sides[0].event()].map(|event| event.map(|event| (event.kind, event.failure)));
            assert_eq!(seen, [Some((SendStart, 0)), Some((SendEnd, 0))], "{transport}, ack: {wants_ack}");
        }
        sides[0].ni.get_put(sink, source, &other(1)).expect("room");
        let seen = std::iter::from_fn(|| sides[0].event()).map(|event| (event.memory, event.kind));
        assert_eq!(seen.collect::<Vec<_>>()[..2], [(source, SendStart), (source, SendEnd)], "{transport}");
        crate::world::close(sides);
    }
}

/// What a send has told of arrives, also if its process ends at once and frames are lost. An end
/// that takes its whole time on a loaded machine promises nothing, so one round within it is asked
/// for.
#[test]
fn a_process_that_ends_delivers_its_short_sends_first() {
    let mut within = 0;
    for (round, has_engine) in (0..5).flat_map(|round| [(round, false), (round, true)]) {
        let network = format!("last{round}{has_engine}");
        let seed = round.to_string();
        let keys = [("network", network.as_str()), ("seed", &seed), ("delay", "20000"), ("loss", "30")];
        let mut sides = two_modes(&device_of("sim", &keys), [has_engine, false]);
        let memory = zeroes(64);
        sides[1].post(anything(), &memory, PUT);
        put(&sides, 0, b"link", &other(1));
        events(&sides, 1, &[PutStart, PutEnd]);
        for _ in 0..4 {
            put(&sides[..1], 0, b"last", &other(1));
        }
        let gone = sides.remove(0);
        let closing = std::thread::spawn(move || {
            let begun = Instant::now();
            drop(gone);
            begun.elapsed()
        });
        // Asleep, so that the time of the network leaps to what is retransmitted next.
        while !closing.is_finished() {
            assert!(sides[0].ni.make_progress(Duration::from_millis(2)).is_ok());
        }
        if closing.join().expect("no panic") >= LONGEST_END {
            continue;
        }
        within += 1;
        for at in 0..4 {
            let arrived = events(&sides, 0, &[PutStart, PutEnd]);
            assert_eq!(arrived[1].failure, 0, "{at}, round {round}, engine: {has_engine}");
        }
    }
    assert!(within > 0, "each end took {LONGEST_END:?}");
}
