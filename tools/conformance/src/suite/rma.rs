//! RMA: what is copied, when it is visible, in which order.

use crate::memory::{Bytes, Origin};
use crate::sys::by_address;
use crate::world::{LIMIT, World, drain, most, open, pattern, while_polled};
use cci::__binding::{Contract, Flags};
use cci::{
    Attribute, BlockingError, Connection, Device, Endpoint, EventKind, Failure, Memory, Rights, Rma, RmaError,
    RmaHandle, SharedMemory,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

const RO: Attribute = Attribute::ReliableOrdered;

/// Memory at the initiator and at the target, registered.
pub(super) struct Ranges {
    pub(super) local: RmaHandle,
    pub(super) remote: RmaHandle,
    pub(super) source: Bytes,
    pub(super) target: Bytes,
}

impl Ranges {
    /// `len` bytes of this origin at either side.
    pub(super) fn new(a: &Endpoint, b: &Endpoint, origin: [Origin; 2], len: usize, rights: Rights) -> Self {
        let (source, target) = (origin[0].allocate(len), origin[1].allocate(len));
        let local = a.register_memory(source.memory(), Rights::NONE).expect("a registration");
        let remote = b.register_memory(target.memory(), rights).expect("a registration");
        Self { local, remote, source, target }
    }

    /// An RMA between them.
    pub(super) fn rma(&self, local_offset: u64, remote_offset: u64, len: u64) -> Rma<'_> {
        Rma::new(&self.local, &self.remote, len).local_offset(local_offset).remote_offset(remote_offset)
    }
}

/// Starts an RMA and waits for its success.
fn complete(world: &World<'_>, a: &Endpoint, connection: Connection, rma: &Rma<'_>, flags: Flags) {
    a.rma(connection, rma, 99, flags).expect("an RMA");
    assert_eq!(world.sent(0), 99);
}

/// Every length at every offset copies these bytes and no others, both ways.
pub fn lengths_and_offsets(device: &Device) {
    const ROOM: usize = 80_000;
    let (a, b) = (open(device), open(device));
    let (world, connection, _) = World::joined([&a, &b], RO);
    for origin in Origin::ALL {
        let ranges = Ranges::new(&a, &b, [origin; 2], ROOM, Rights::READ_WRITE);
        for len in [1, 2, 3, 7, 8, 9, 55, 56, 57, 63, 64, 65, 511, 4095, 4096, 4097, 8191, 8193, 65_535, 65_537] {
            for (from, to) in [(0, 0), (1, 0), (0, 1), (8, 3), (63, 4095), (4096, 4096), (7000, 9)] {
                let (before, after) = (pattern(1, ROOM), pattern(2, ROOM));
                ranges.source.write(0, &after);
                ranges.target.write(0, &before);
                let rma = ranges.rma(from as u64, to as u64, len as u64);
                complete(&world, &a, connection, &rma, Flags::WRITE);
                let mut expected = before.clone();
                expected[to..to + len].copy_from_slice(&after[from..from + len]);
                assert!(ranges.target.to_vec(0, ROOM) == expected, "write of {len} from {from} to {to}, {origin:?}");
                ranges.target.write(0, &before);
                complete(&world, &a, connection, &rma, Flags::READ);
                let mut expected = after;
                expected[from..from + len].copy_from_slice(&before[to..to + len]);
                assert!(ranges.source.to_vec(0, ROOM) == expected, "read of {len} from {to} to {from}, {origin:?}");
            }
        }
    }
}

fn large(device: &Device, flags: Flags) {
    let (a, b) = (open(device), open(device));
    let (world, connection, _) = World::joined([&a, &b], RO);
    for origin in Origin::ALL {
        for len in [1 << 20, (1 << 20) + 1, (3 << 20) - 5, 16 << 20, 64 << 20] {
            let ranges = Ranges::new(&a, &b, [origin; 2], len, Rights::READ_WRITE);
            let bytes = pattern(len as u64, len);
            let (from, to) =
                if flags == Flags::WRITE { (&ranges.source, &ranges.target) } else { (&ranges.target, &ranges.source) };
            from.write(0, &bytes);
            complete(&world, &a, connection, &ranges.rma(0, 0, len as u64), flags);
            assert!(to.to_vec(0, len) == bytes, "{len} bytes, {origin:?}");
            a.deregister(&ranges.local).expect("own registration");
            b.deregister(&ranges.remote).expect("own registration");
        }
    }
}

/// Writes of up to 64 MiB.
pub fn large_write(device: &Device) {
    large(device, Flags::WRITE);
}

/// Reads of up to 64 MiB.
pub fn large_read(device: &Device) {
    large(device, Flags::READ);
}

/// Memory of the library and of the program in any combination.
pub fn both_origins(device: &Device) {
    const LEN: usize = (1 << 20) + 77;
    let (a, b) = (open(device), open(device));
    let (world, connection, _) = World::joined([&a, &b], RO);
    for from in Origin::ALL {
        for to in Origin::ALL {
            let ranges = Ranges::new(&a, &b, [from, to], LEN, Rights::READ_WRITE);
            ranges.source.write(0, &pattern(1, LEN));
            complete(&world, &a, connection, &ranges.rma(0, 0, LEN as u64), Flags::WRITE);
            assert!(ranges.target.to_vec(0, LEN) == pattern(1, LEN), "{from:?} to {to:?}");
            ranges.target.write(0, &pattern(2, LEN));
            complete(&world, &a, connection, &ranges.rma(5, 5, LEN as u64 - 5), Flags::READ);
            assert!(ranges.source.to_vec(5, LEN - 5) == pattern(2, LEN)[5..], "{to:?} read into {from:?}");
        }
    }
}

/// Registrations keep library memory that the program has freed, at the initiator and at the
/// target.
pub fn freed_memory_is_kept(device: &Device) {
    const LEN: usize = 300_000;
    let (a, b) = (open(device), open(device));
    let (world, connection, _) = World::joined([&a, &b], RO);
    let allocate = || SharedMemory::new(LEN).expect("memory of the library");
    let (source, target, back) = (allocate(), allocate(), allocate());
    source.write(0, &pattern(1, LEN));
    let local = a.register_memory(by_address(&source), Rights::NONE).expect("a registration");
    let remote = b.register_memory(by_address(&target), Rights::READ_WRITE).expect("a registration");
    let into = a.register_memory(by_address(&back), Rights::NONE).expect("a registration");
    drop((source, target));
    let rma = |local| Rma::new(local, &remote, LEN as u64);
    complete(&world, &a, connection, &rma(&local), Flags::WRITE);
    complete(&world, &a, connection, &rma(&into), Flags::READ);
    assert!(back.to_vec(0, LEN) == pattern(1, LEN));
    a.deregister(&local).expect("own registration");
    b.deregister(&remote).expect("own registration");
    // What ends with the endpoint ends as well.
    drop(back);
}

/// Memory of which a word changes without pause is written from and read, in the time of other
/// memory, and the bytes beside the word arrive as they are.
pub fn changing_memory(device: &Device) {
    while_a_word_changes(device, |_, _| {});
}

/// A word that changes arrives whole, and no older than before.
pub fn changing_word_is_whole(device: &Device) {
    while_a_word_changes(device, |before, word| {
        assert_eq!(word >> 32, word & 0xFFFF_FFFF, "the word is torn");
        assert!(word >= before, "an older value than before");
    });
}

/// Writes and reads memory of which a word changes. `check` gets the word that arrived before, and
/// the one that has arrived.
fn while_a_word_changes(device: &Device, check: fn(u64, u64)) {
    const LEN: usize = 1 << 20;
    /// Of the word that changes.
    const AT: usize = 2048;
    let (a, b) = (open(device), open(device));
    let (world, connection, _) = World::joined([&a, &b], RO);
    for flags in [Flags::WRITE, Flags::READ] {
        let ranges = Ranges::new(&a, &b, [Origin::Program; 2], LEN, Rights::READ_WRITE);
        let (changing, arriving) =
            if flags == Flags::WRITE { (&ranges.source, &ranges.target) } else { (&ranges.target, &ranges.source) };
        changing.write(0, &pattern(1, LEN));
        assert!(changing.memory().copy_in(AT as u64, &[0; 8]));
        let expected = changing.to_vec(0, LEN);
        while_changed(&changing.memory(), AT as u64, || {
            // On a busy machine RMA is over before the other thread has begun.
            world.until("a change", || changing.to_vec(AT, 8) != [0; 8]);
            let mut last = 0;
            for len in [LEN, 8, 4096, 5000, 65_536, 300_000, LEN] {
                let offset = if len == 8 { AT as u64 } else { 0 };
                for _ in 0..5 {
                    let begun = Instant::now();
                    complete(&world, &a, connection, &ranges.rma(offset, offset, len as u64), flags);
                    assert!(begun.elapsed() < LIMIT / 10, "{len} bytes took {:?}", begun.elapsed());
                    let word = u64::from_ne_bytes(arriving.to_vec(AT, 8).try_into().expect("8 bytes"));
                    check(last, word);
                    last = word;
                }
            }
            assert!(last > 0, "nothing changed");
        });
        let mut arrived = arriving.to_vec(0, LEN);
        arrived[AT..AT + 8].fill(0);
        assert!(arrived == expected, "the memory beside the word");
    }
}

/// Runs `act` while another thread writes a word of this memory, each number twice.
fn while_changed(memory: &Memory, at: u64, act: impl FnOnce()) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for number in (1_u64..).take_while(|_| !over.load(Ordering::Relaxed)) {
                assert!(memory.copy_in(at, &((number & 0xFFFF_FFFF) * 0x1_0000_0001).to_ne_bytes()));
            }
        });
        let acted = std::panic::catch_unwind(std::panic::AssertUnwindSafe(act));
        over.store(true, Ordering::Relaxed);
        writer.join().expect("the writer");
        if let Err(failed) = acted {
            std::panic::resume_unwind(failed);
        }
    });
}

/// When the message of a write arrives, the data are there.
pub fn message_after_data(device: &Device) {
    let (a, b) = (open(device), open(device));
    let world = World::new([&a, &b]);
    for attribute in [RO, Attribute::ReliableUnordered] {
        let (connection, at_b) = world.connect(0, 1, attribute);
        for origin in Origin::ALL {
            for len in [8, 5000, (5 << 20) + 3] {
                let ranges = Ranges::new(&a, &b, [origin; 2], len, Rights::WRITE);
                let bytes = pattern(len as u64, len);
                ranges.source.write(0, &bytes);
                let message = pattern(3, most(connection));
                let rma = ranges.rma(0, 0, len as u64).message(&message[..]);
                a.rma(connection, &rma, 1, Flags::WRITE).expect("a write");
                let event = world.next(1, EventKind::Recv);
                assert!(ranges.target.to_vec(0, len) == bytes, "{len} bytes, {origin:?}, {attribute:?}");
                assert_eq!(event.received().expect("a message").to_vec(), message);
                assert_eq!((event.connection(), world.sent(0)), (Some(at_b), 1));
            }
        }
    }
}

/// A read carries a message too: to the target, after the data were read. An empty message is one.
pub fn message_after_read(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (world, connection, _) = World::joined([&a, &b], RO);
    for (len, message) in [(8, &b"read"[..]), (100_000, b""), (3 << 20, b"all of it")] {
        let ranges = Ranges::new(&a, &b, [Origin::Program; 2], len, Rights::READ);
        ranges.target.write(0, &pattern(9, len));
        let rma = ranges.rma(0, 0, len as u64).message(message);
        a.rma(connection, &rma, 2, Flags::READ).expect("a read");
        assert_eq!(world.message(1), message);
        assert_eq!(world.sent(0), 2);
        assert!(ranges.source.to_vec(0, len) == pattern(9, len));
    }
}

/// A fence comes after everything before it and before everything after it.
pub fn fence_orders(device: &Device) {
    const LEN: usize = 4 << 20;
    let (a, b) = (open(device), open(device));
    let world = World::new([&a, &b]);
    for attribute in [RO, Attribute::ReliableUnordered] {
        let (connection, _) = world.connect(0, 1, attribute);
        let big = Ranges::new(&a, &b, [Origin::Program; 2], LEN, Rights::WRITE);
        let small = Ranges::new(&a, &b, [Origin::Program; 2], 8, Rights::READ_WRITE);
        for round in 1..6u64 {
            let bytes = pattern(round, LEN);
            big.source.write(0, &bytes);
            small.source.write(0, &round.to_ne_bytes());
            a.rma(connection, &big.rma(0, 0, LEN as u64), 0, Flags::WRITE).expect("a write");
            let fenced = small.rma(0, 0, 8).message(&b"fenced"[..]);
            a.rma(connection, &fenced, 1, Flags::WRITE | Flags::FENCE).expect("a write");
            assert_eq!(world.message(1), b"fenced");
            assert!(big.target.to_vec(0, LEN) == bytes, "the fence passed a write, {attribute:?}");
            assert_eq!(small.target.to_vec(0, 8), round.to_ne_bytes());
            let mut contexts = [world.sent(0), world.sent(0)];
            contexts.sort_unstable();
            assert_eq!(contexts, [0, 1]);
        }
    }
}

/// On RO a send that follows an RMA with a message arrives after that message.
pub fn send_after_rma(device: &Device) {
    const LEN: usize = 3 << 20;
    let (a, b) = (open(device), open(device));
    let (world, connection, _) = World::joined([&a, &b], RO);
    let ranges = Ranges::new(&a, &b, [Origin::Program; 2], LEN, Rights::READ_WRITE);
    for round in 0..20u64 {
        let flags = if round.is_multiple_of(2) { Flags::WRITE } else { Flags::READ };
        a.send(connection, b"before", 3 * round).expect("a send");
        let len = if round.is_multiple_of(3) { 64 } else { LEN as u64 };
        let rma = ranges.rma(0, 0, len).message(&b"with it"[..]);
        a.rma(connection, &rma, 3 * round + 1, flags).expect("an RMA");
        a.send(connection, b"after", 3 * round + 2).expect("a send");
        for expected in [&b"before"[..], b"with it", b"after"] {
            assert_eq!(world.message(1), expected, "round {round}");
        }
        for context in 0..3 {
            assert_eq!(world.sent(0), 3 * round + context);
        }
    }
}

/// SILENT gives no event, BLOCKING returns the status.
pub fn silent_and_blocking(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (world, connection, _) = World::joined([&a, &b], RO);
    let ranges = Ranges::new(&a, &b, [Origin::Program; 2], 4 << 20, Rights::WRITE);
    for len in [8u64, 4 << 20] {
        ranges.source.write(0, &pattern(len, 4 << 20));
        while_polled(&b, || a.rma(connection, &ranges.rma(0, 0, len), 1, Flags::WRITE | Flags::BLOCKING))
            .expect("a write");
        let len = usize::try_from(len).expect("small");
        assert!(ranges.target.to_vec(0, len) == pattern(len as u64, len));
        a.rma(connection, &ranges.rma(0, 0, len as u64), 2, Flags::WRITE | Flags::SILENT).expect("a write");
        a.rma(connection, &ranges.rma(0, 0, 8), 3, Flags::WRITE).expect("a write");
        let event = world.first(0);
        assert_eq!((event.kind(), event.context()), (EventKind::Send, 3), "RO completes in order");
    }
    let beyond = ranges.rma(0, 4 << 20, 1);
    let refused = while_polled(&b, || a.rma(connection, &beyond, 4, Flags::WRITE | Flags::BLOCKING));
    assert_eq!(refused, Err(BlockingError::Failed(Failure::RemoteHandle)));
    assert_eq!(drain(&a), 0);
}

/// 8,192 RMAs are outstanding on one connection, and each completes once.
pub fn many_outstanding(device: &Device) {
    const COUNT: usize = 8192;
    let (a, b) = (open(device), open(device));
    let (world, connection, _) = World::joined([&a, &b], RO);
    let ranges = Ranges::new(&a, &b, [Origin::Program; 2], COUNT * 16, Rights::READ_WRITE);
    for round in 0..2u64 {
        ranges.source.write(0, &pattern(round, COUNT * 16));
        for number in 0..COUNT as u64 {
            a.rma(connection, &ranges.rma(number * 16, number * 16, 16), number, Flags::WRITE)
                .unwrap_or_else(|error| panic!("write {number} with none reaped: {error}"));
        }
        for number in 0..COUNT as u64 {
            assert_eq!(world.sent(0), number);
        }
        assert!(ranges.target.to_vec(0, COUNT * 16) == pattern(round, COUNT * 16));
    }
    // The same behind one that takes long, so that they are open indeed.
    let big = Ranges::new(&a, &b, [Origin::Program; 2], 16 << 20, Rights::WRITE);
    a.rma(connection, &big.rma(0, 0, 16 << 20), 0, Flags::WRITE).expect("a write");
    for number in 1..COUNT as u64 {
        a.rma(connection, &ranges.rma(0, number * 16, 16), number, Flags::READ)
            .unwrap_or_else(|error| panic!("read {number} behind a long write: {error}"));
    }
    for number in 0..COUNT as u64 {
        assert_eq!(world.sent(0), number);
    }
    assert_eq!(drain(&a), 0);
}

/// The same with a short message each: writes and reads with none reaped, then their messages and
/// ends in order.
pub fn many_outstanding_with_message(device: &Device) {
    const COUNT: u64 = 8192;
    let (a, b) = (open(device), open(device));
    let (world, connection, _) = World::joined([&a, &b], RO);
    let ranges = Ranges::new(&a, &b, [Origin::Program; 2], 16 * COUNT as usize, Rights::READ_WRITE);
    for flags in [Flags::WRITE, Flags::READ] {
        ranges.source.write(0, &pattern(1, 16 * COUNT as usize));
        for number in 0..COUNT {
            let message = pattern(number, 64);
            let rma = ranges.rma(number * 16, number * 16, 16).message(&message[..]);
            a.rma(connection, &rma, number, flags)
                .unwrap_or_else(|error| panic!("number {number}, {flags:?}, with none reaped: {error}"));
        }
        for number in 0..COUNT {
            assert_eq!(world.message(1), pattern(number, 64), "number {number}, {flags:?}");
            assert_eq!(world.sent(0), number);
        }
        assert!(ranges.target.to_vec(0, 16 * COUNT as usize) == pattern(1, 16 * COUNT as usize));
    }
    assert_eq!((drain(&a), drain(&b)), (0, 0));
}

/// An endpoint reads and writes its own registrations through a connection to itself.
pub fn to_itself(device: &Device) {
    let endpoint = open(device);
    let world = World::new([&endpoint]);
    let (connection, _) = world.connect(0, 0, RO);
    for origin in Origin::ALL {
        let ranges = Ranges::new(&endpoint, &endpoint, [origin; 2], 2 << 20, Rights::READ_WRITE);
        ranges.source.write(0, &pattern(1, 2 << 20));
        complete(&world, &endpoint, connection, &ranges.rma(0, 0, 2 << 20), Flags::WRITE);
        assert!(ranges.target.to_vec(0, 2 << 20) == pattern(1, 2 << 20));
        ranges.source.write(0, &pattern(2, 2 << 20));
        complete(&world, &endpoint, connection, &ranges.rma(0, 0, 2 << 20), Flags::READ);
        assert!(ranges.source.to_vec(0, 2 << 20) == pattern(1, 2 << 20));
    }
}

/// After a disconnect RMA is refused and touches nothing.
pub fn after_disconnect(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (_world, connection, _) = World::joined([&a, &b], RO);
    let ranges = Ranges::new(&a, &b, [Origin::Program; 2], 64, Rights::READ_WRITE);
    ranges.source.write(0, &[1; 64]);
    a.disconnect(connection).expect("a disconnect");
    for flags in [Flags::READ, Flags::WRITE] {
        assert_eq!(a.rma(connection, &ranges.rma(0, 0, 64), 1, flags), Err(RmaError::Disconnected.into()));
    }
    assert_eq!((ranges.target.to_vec(0, 64), ranges.source.to_vec(0, 64)), (vec![0; 64], vec![1; 64]));
}

/// The bytes that an RMA moves are counted where it began.
pub fn counted(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (world, connection, at_b) = World::joined([&a, &b], RO);
    let ranges = Ranges::new(&a, &b, [Origin::Program; 2], 3 << 20, Rights::READ_WRITE);
    complete(&world, &a, connection, &ranges.rma(0, 0, 3 << 20), Flags::WRITE);
    complete(&world, &a, connection, &ranges.rma(0, 0, 100), Flags::READ);
    assert_eq!(a.report(connection).expect("open").rma_bytes, (3 << 20) + 100);
    assert_eq!(b.report(at_b).expect("open").rma_bytes, 0);
}
