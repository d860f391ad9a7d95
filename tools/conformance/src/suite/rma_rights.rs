//! RMA that must not happen: handles, rights, ranges.

use super::rma::Ranges;
use crate::memory::Origin;
use crate::sys::null_memory;
use crate::world::{World, drain, most, open, pattern};
use cci::__binding::{Contract, Flags};
use cci::{
    Attribute, Connection, Device, Endpoint, EventKind, Failure, ImportError, RegisterError, Rights, Rma, RmaError,
    RmaHandle, Status,
};
use std::collections::HashSet;

const RO: Attribute = Attribute::ReliableOrdered;
const LEN: usize = 4096;

/// Two endpoints with a connection, and what is asserted about them.
struct Site<'e> {
    world: World<'e>,
    a: &'e Endpoint,
    b: &'e Endpoint,
    connection: Connection,
}

impl<'e> Site<'e> {
    fn new(a: &'e Endpoint, b: &'e Endpoint, attribute: Attribute) -> Self {
        let world = World::new([a, b]);
        let (connection, _) = world.connect(0, 1, attribute);
        Self { world, a, b, connection }
    }

    fn ranges(&self, origin: Origin, rights: Rights) -> Ranges {
        let ranges = Ranges::new(self.a, self.b, [origin; 2], LEN, rights);
        ranges.source.write(0, &pattern(1, LEN));
        ranges.target.write(0, &pattern(2, LEN));
        ranges
    }

    /// The target refuses: one failed event, no message, memory untouched, connection alive.
    fn refuses(&self, ranges: &Ranges, rma: &Rma<'_>, flags: Flags, what: &str) {
        let rma = rma.message(&b"must not arrive"[..]);
        self.a.rma(self.connection, &rma, 5, flags).unwrap_or_else(|error| panic!("{what}: {error} at once"));
        let event = self.world.next(0, EventKind::Send);
        assert_eq!((event.outcome(), event.context()), (Err(Failure::RemoteHandle), 5), "{what}");
        drop(event);
        self.a.send(self.connection, b"alive", 6).expect("the connection lives");
        assert_eq!(self.world.message(1), b"alive", "{what}");
        assert_eq!(self.world.sent(0), 6, "{what}");
        assert!(ranges.target.to_vec(0, LEN) == pattern(2, LEN), "{what}: the target was written");
        assert!(ranges.source.to_vec(0, LEN) == pattern(1, LEN), "{what}: the source was written");
    }
}

/// Peers read and write only where they may.
pub fn rights_are_enforced(device: &Device) {
    let (a, b) = (open(device), open(device));
    let site = Site::new(&a, &b, RO);
    for origin in Origin::ALL {
        for rights in [Rights::NONE, Rights::READ, Rights::WRITE, Rights::READ_WRITE] {
            for (flags, needed) in [(Flags::READ, Rights::READ), (Flags::WRITE, Rights::WRITE)] {
                let ranges = site.ranges(origin, rights);
                let what = format!("{flags:?} with {rights:?}, {origin:?}");
                if !rights.has(needed) {
                    site.refuses(&ranges, &ranges.rma(0, 0, 64), flags, &what);
                    continue;
                }
                a.rma(site.connection, &ranges.rma(0, 0, 64), 1, flags).expect("an RMA");
                assert_eq!(site.world.sent(0), 1);
            }
        }
    }
    assert_eq!(Failure::RemoteHandle.status(), Status::RmaHandle);
}

/// A device with `rma_rights = open` waives READ and WRITE, and nothing else.
pub fn rights_are_waived(device: &Device) {
    let mut device = device.clone();
    device.arguments.push(("rma_rights".into(), "open".into()));
    let (a, b) = (open(&device), open(&device));
    let site = Site::new(&a, &b, RO);
    for origin in Origin::ALL {
        for rights in [Rights::NONE, Rights::READ, Rights::WRITE] {
            let ranges = site.ranges(origin, rights);
            let whole = ranges.rma(0, 0, LEN as u64);
            for (flags, expected) in [(Flags::WRITE, 1), (Flags::READ, 2)] {
                ranges.source.write(0, &pattern(1, LEN));
                ranges.target.write(0, &pattern(expected, LEN));
                a.rma(site.connection, &whole, 1, flags).expect("an RMA");
                assert_eq!(site.world.sent(0), 1, "{flags:?} with {rights:?}, {origin:?}");
                assert!(ranges.target.to_vec(0, LEN) == pattern(expected, LEN));
                assert!(ranges.source.to_vec(0, LEN) == pattern(expected, LEN));
            }
            ranges.source.write(0, &pattern(1, LEN));
            ranges.target.write(0, &pattern(2, LEN));
            site.refuses(&ranges, &ranges.rma(0, 1, LEN as u64), Flags::WRITE, "a range outside");
            for word in 0..2 {
                let mut forged = ranges.remote;
                let mut words = forged.words();
                words[word] ^= 1 << 17;
                forged = RmaHandle::from_words(words);
                let rma = ranges.rma(0, 0, 8).remote(&forged);
                site.refuses(&ranges, &rma, Flags::READ, "a forged handle");
            }
            b.deregister(&ranges.remote).expect("own registration");
            site.refuses(&ranges, &ranges.rma(0, 0, 8), Flags::WRITE, "a stale handle");
        }
    }
}

/// A handle is stale after deregister: remotely a failure, locally a refusal.
pub fn stale_handle(device: &Device) {
    let (a, b) = (open(device), open(device));
    let site = Site::new(&a, &b, RO);
    for origin in Origin::ALL {
        let ranges = site.ranges(origin, Rights::READ_WRITE);
        a.rma(site.connection, &ranges.rma(0, 0, 1), 1, Flags::READ).expect("it works before");
        assert_eq!(site.world.sent(0), 1);
        ranges.source.write(0, &pattern(1, LEN));
        b.deregister(&ranges.remote).expect("own registration");
        for flags in [Flags::READ, Flags::WRITE] {
            site.refuses(&ranges, &ranges.rma(0, 0, 64), flags, "a stale remote handle");
        }
        // The same place of the table serves another registration; the old handle must not fit it.
        let newer = b.register_memory(ranges.target.memory(), Rights::READ_WRITE).expect("a registration");
        site.refuses(&ranges, &ranges.rma(0, 0, 64), Flags::WRITE, "a stale handle of a reused entry");
        b.deregister(&newer).expect("own registration");
        a.deregister(&ranges.local).expect("own registration");
        let refused = a.rma(site.connection, &ranges.rma(0, 0, 64), 1, Flags::WRITE);
        assert_eq!(refused, Err(RmaError::LocalHandle.into()));
    }
}

/// Invented handles, and real ones with any one bit of the first 16 bytes changed, are refused.
pub fn invented_handle(device: &Device) {
    let (a, b) = (open(device), open(device));
    let site = Site::new(&a, &b, RO);
    let ranges = site.ranges(Origin::Program, Rights::READ_WRITE);
    let mut invented = vec![RmaHandle::from_words([0; 4]), RmaHandle::from_words([u64::MAX; 4])];
    let mut random = fastrand::Rng::with_seed(3);
    invented.extend((0..50).map(|_| RmaHandle::from_words(std::array::from_fn(|_| random.u64(..)))));
    for bit in 0..128usize {
        let mut handle = ranges.remote;
        let mut words = handle.words();
        words[bit / 64] ^= 1 << (bit % 64);
        handle = RmaHandle::from_words(words);
        invented.push(handle);
    }
    for handle in invented {
        let rma = ranges.rma(0, 0, 64).remote(&handle);
        site.refuses(&ranges, &rma, Flags::WRITE, "an invented handle");
        let rma = ranges.rma(0, 0, 64).local(&handle);
        assert_eq!(
            a.rma(site.connection, &rma, 1, Flags::READ),
            Err(RmaError::LocalHandle.into()),
            "{:x?}",
            handle.words()
        );
    }
}

/// Ranges outside the target's registration are refused, sums that wrap around too.
pub fn remote_range(device: &Device) {
    let (a, b) = (open(device), open(device));
    let site = Site::new(&a, &b, RO);
    for origin in Origin::ALL {
        let ranges = site.ranges(origin, Rights::READ_WRITE);
        let len = LEN as u64;
        for (offset, bytes) in [
            (len, 1),
            (len - 1, 2),
            (1, len),
            (len + 1, 1),
            (u64::MAX, 1),
            (u64::MAX, len),
            (u64::MAX - len + 1, len),
            (u64::MAX / 2, 64),
            (1 << 32, 64),
        ] {
            for flags in [Flags::READ, Flags::WRITE] {
                let what = format!("{bytes} bytes at {offset:#x}");
                site.refuses(&ranges, &ranges.rma(0, offset, bytes), flags, &what);
            }
        }
        a.rma(site.connection, &ranges.rma(0, len - 1, 1), 1, Flags::WRITE).expect("the last byte");
        assert_eq!(site.world.sent(0), 1);
    }
}

/// Ranges outside the initiator's registration are refused at once.
pub fn local_range(device: &Device) {
    let (a, b) = (open(device), open(device));
    let site = Site::new(&a, &b, RO);
    let ranges = site.ranges(Origin::Program, Rights::READ_WRITE);
    let len = LEN as u64;
    for (offset, bytes) in [
        (len, 1),
        (len - 1, 2),
        (1, len),
        (0, len + 1),
        (0, u64::MAX),
        (u64::MAX, 1),
        (u64::MAX, u64::MAX),
        (u64::MAX - len + 1, len),
        (1 << 63, 1 << 63),
    ] {
        for flags in [Flags::READ, Flags::WRITE, Flags::WRITE | Flags::BLOCKING] {
            let refused = a.rma(site.connection, &ranges.rma(offset, 0, bytes), 1, flags);
            assert_eq!(refused, Err(RmaError::LocalHandle.into()), "{bytes:#x} bytes at {offset:#x}");
        }
    }
    assert_eq!(drain(&a), 0);
    assert!(ranges.target.to_vec(0, LEN) == pattern(2, LEN));
}

/// Wrong flags, no bytes, and a message that is too long are refused at once.
pub fn refused_at_once(device: &Device) {
    let (a, b) = (open(device), open(device));
    let site = Site::new(&a, &b, RO);
    let ranges = site.ranges(Origin::Program, Rights::READ_WRITE);
    for flags in [Flags::NONE, Flags::READ | Flags::WRITE, Flags::FENCE, Flags::SILENT] {
        assert_eq!(a.rma(site.connection, &ranges.rma(0, 0, 8), 1, flags), Err(RmaError::BadFlags.into()), "{flags:?}");
    }
    let none = a.rma(site.connection, &ranges.rma(0, 0, 0), 1, Flags::WRITE);
    assert_eq!(none, Err(RmaError::ZeroLength.into()));
    let message = vec![0; most(site.connection) + 1];
    let rma = ranges.rma(0, 0, 8).message(&message[..]);
    assert_eq!(a.rma(site.connection, &rma, 1, Flags::WRITE), Err(RmaError::MessageTooLong.into()));
    assert_eq!(RmaError::MessageTooLong.status(), Status::MsgSize);
    assert_eq!(drain(&a), 0);
    assert!(ranges.target.to_vec(0, LEN) == pattern(2, LEN));
}

/// An unreliable connection has no RMA.
pub fn unreliable_connection(device: &Device) {
    let (a, b) = (open(device), open(device));
    let site = Site::new(&a, &b, Attribute::Unreliable);
    let ranges = site.ranges(Origin::Program, Rights::READ_WRITE);
    for flags in [Flags::READ, Flags::WRITE] {
        let refused = a.rma(site.connection, &ranges.rma(0, 0, 8), 1, flags);
        assert_eq!(refused, Err(RmaError::Unreliable.into()));
    }
    assert_eq!(RmaError::Unreliable.status(), Status::Inval);
    assert!(ranges.target.to_vec(0, LEN) == pattern(2, LEN));
}

/// Nothing, and a range without an address, cannot be registered.
pub fn registration_refused(device: &Device) {
    let endpoint = open(device);
    for len in [0, 1, 4096] {
        assert_eq!(endpoint.register_memory(null_memory(len), Rights::READ), Err(RegisterError::Null));
    }
    assert_eq!(endpoint.deregister(&RmaHandle::from_words([7; 4])), Err(RegisterError::UnknownHandle));
}

/// A second deregister is refused.
pub fn deregistered_twice(device: &Device) {
    let endpoint = open(device);
    let memory = Origin::Program.allocate(64);
    for _ in 0..100 {
        let handle = endpoint.register_memory(memory.memory(), Rights::READ).expect("a registration");
        let copy = RmaHandle::from_bytes(&handle.to_bytes()).expect("32 bytes");
        endpoint.deregister(&copy).expect("a handle is known by content");
        assert_eq!(endpoint.deregister(&handle), Err(RegisterError::UnknownHandle));
    }
}

/// Programs that carry only the first 16 bytes of a handle are served.
pub fn half_a_handle(device: &Device) {
    let (a, b) = (open(device), open(device));
    let site = Site::new(&a, &b, RO);
    for origin in Origin::ALL {
        let ranges = site.ranges(origin, Rights::READ_WRITE);
        let half = RmaHandle::from_words([ranges.remote.words()[0], ranges.remote.words()[1], 0, 0]);
        let rma = ranges.rma(0, 0, LEN as u64).remote(&half);
        a.rma(site.connection, &rma, 1, Flags::WRITE).expect("a write");
        assert_eq!(site.world.sent(0), 1);
        assert!(ranges.target.to_vec(0, LEN) == pattern(1, LEN));
        b.deregister(&half).expect("it names the registration");
    }
}

/// Identical and overlapping ranges are distinct registrations with rights and lives of their own.
pub fn distinct_registrations(device: &Device) {
    let (a, b) = (open(device), open(device));
    let site = Site::new(&a, &b, RO);
    let ranges = site.ranges(Origin::Program, Rights::READ_WRITE);
    let again = b.register_memory(ranges.target.memory(), Rights::READ).expect("a registration");
    let third = b.register_memory(ranges.target.memory(), Rights::READ_WRITE).expect("a registration");
    let handles: HashSet<_> = [ranges.remote, again, third].iter().map(|handle| handle.words()[..2].to_vec()).collect();
    assert_eq!(handles.len(), 3);
    site.refuses(&ranges, &ranges.rma(0, 0, 8).remote(&again), Flags::WRITE, "the one without the right");
    b.deregister(&ranges.remote).expect("own registration");
    site.refuses(&ranges, &ranges.rma(0, 0, 8), Flags::WRITE, "the one that is gone");
    let rma = ranges.rma(0, 0, LEN as u64).remote(&third);
    a.rma(site.connection, &rma, 1, Flags::WRITE).expect("the third lives");
    assert_eq!(site.world.sent(0), 1);
    assert!(ranges.target.to_vec(0, LEN) == pattern(1, LEN));
}

/// A handle of another endpoint is no local handle.
pub fn local_handle_of_another_endpoint(device: &Device) {
    let (a, b) = (open(device), open(device));
    let site = Site::new(&a, &b, RO);
    let ranges = site.ranges(Origin::Program, Rights::READ_WRITE);
    let swapped = ranges.rma(0, 0, 8).local(&ranges.remote);
    assert_eq!(a.rma(site.connection, &swapped, 1, Flags::WRITE), Err(RmaError::LocalHandle.into()));
    assert_eq!(a.deregister(&ranges.remote), Err(RegisterError::UnknownHandle));
    site.refuses(&ranges, &ranges.rma(0, 0, 8).remote(&ranges.local), Flags::WRITE, "a handle of our own");
}

/// Handles of the same memory differ each time, and nothing in them is its address.
pub fn handles_are_not_guessable(device: &Device) {
    let endpoint = open(device);
    let memory = Origin::Program.allocate(LEN);
    let address = memory.memory().start() as u64;
    let mut seen = [HashSet::new(), HashSet::new()];
    for _ in 0..1000 {
        let handle = endpoint.register_memory(memory.memory(), Rights::READ).expect("a registration");
        endpoint.deregister(&handle).expect("own registration");
        for (word, seen) in handle.words().iter().zip(&mut seen) {
            assert!(seen.insert(*word), "a word of a handle came twice");
        }
        for word in handle.words() {
            assert!(word >> 12 != address >> 12, "a handle holds the address");
        }
    }
    let differences: HashSet<_> = {
        let mut secrets: Vec<_> = seen[1].iter().copied().collect();
        secrets.sort_unstable();
        secrets.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect()
    };
    assert!(differences.len() > 990, "secrets follow a step");
}

/// A transport that maps no memory of peers says so, and RMA does what the import could not.
pub fn import_or_rma(device: &Device) {
    let (a, b) = (open(device), open(device));
    let site = Site::new(&a, &b, RO);
    let ranges = site.ranges(Origin::Library, Rights::READ_WRITE);
    match a.import(site.connection, &ranges.remote) {
        Ok(import) => {
            let mut bytes = vec![0; LEN];
            assert!(import.is_current() && import.read(0, &mut bytes) && bytes == pattern(2, LEN));
            assert!(import.write(0, &pattern(1, LEN)));
        }
        Err(refused) => {
            assert_eq!((refused, refused.status()), (ImportError::NotImplemented, Status::NotImplemented));
            a.rma(site.connection, &ranges.rma(0, 0, LEN as u64), 1, Flags::WRITE).expect("an RMA");
            assert_eq!(site.world.sent(0), 1);
        }
    }
    assert!(ranges.target.to_vec(0, LEN) == pattern(1, LEN));
}
