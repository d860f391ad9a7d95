//! RMA through frames: bytes, rights, ranges, registrations that go.

use crate::memory_link::{Faults, Hub};
use crate::world::{End, How, join, message, next, outcome, waiting};
use cci_instruments::pattern;
use cci_mem::arena::SharedMemory;
use cci_proto::{Access, Attribute, EventKind, RegisterError, Rights, RmaError, RmaHandle, Status};
use cci_transport::{Connection, Rma};

const LEN: usize = 300_000;

struct Site {
    hub: Hub,
    a: End,
    b: End,
    to_b: &'static Connection,
    source: SharedMemory,
    target: SharedMemory,
    local: RmaHandle,
    remote: RmaHandle,
}

fn site(rights: Rights) -> Site {
    site_of(Hub::new(), rights)
}

fn site_of(hub: Hub, rights: Rights) -> Site {
    let (a, b) = (End::open(&hub, How::default()), End::open(&hub, How::default()));
    let (to_b, _) = join(&[&a, &b], Attribute::ReliableOrdered);
    let [source, target] = [1, 2].map(|seed| {
        let memory = SharedMemory::new(LEN).expect("memory");
        memory.write(0, &pattern(seed, LEN));
        memory
    });
    let local = a.register(source.memory(), Rights::NONE);
    let remote = b.register(target.memory(), rights);
    Site { hub, a, b, to_b, source, target, local, remote }
}

impl Site {
    fn rma(&self, local_offset: u64, remote_offset: u64, len: u64, read: bool) -> Rma<'_> {
        let (local, remote) = (&self.local, &self.remote);
        let access = if read { Access::Read } else { Access::Write };
        Rma { local, local_offset, remote, remote_offset, len, access, fence: false, message: None }
    }

    fn ends(&self) -> [&End; 2] {
        [&self.a, &self.b]
    }

    /// Starts an RMA and waits for its end.
    fn run(&self, rma: &Rma<'_>) -> Option<Status> {
        self.a.rma(self.to_b, rma, 3).expect("started");
        let (status, context) = outcome(&self.ends(), 0, EventKind::Send);
        assert_eq!(context, 3);
        status
    }

    fn is_untouched(&self) -> bool {
        self.target.to_vec(0, LEN) == pattern(2, LEN) && self.source.to_vec(0, LEN) == pattern(1, LEN)
    }
}

#[test]
fn bytes_go_where_they_should_and_nowhere_else_whatever_the_network() {
    let site = site(Rights::READ_WRITE);
    for faults in [Faults::default(), Faults { lost: 30, doubled: 30, late: 60, spoilt: 30 }] {
        site.hub.set_faults(faults);
        for (len, from, to) in [(1, 0, 0), (1000, 1, 7), (5000, 4096, 63), (LEN - 10, 10, 3)] {
            site.source.write(0, &pattern(1, LEN));
            site.target.write(0, &pattern(2, LEN));
            let (local, remote, bytes) = (from as u64, to as u64, len as u64);
            assert_eq!(site.run(&site.rma(local, remote, bytes, false)), Some(Status::Success));
            let mut expected = pattern(2, LEN);
            expected[to..to + len].copy_from_slice(&pattern(1, LEN)[from..from + len]);
            assert!(site.target.to_vec(0, LEN) == expected, "write of {len} with {faults:?}");
            site.target.write(0, &pattern(5, LEN));
            assert_eq!(site.run(&site.rma(local, remote, bytes, true)), Some(Status::Success));
            let mut expected = pattern(1, LEN);
            expected[from..from + len].copy_from_slice(&pattern(5, LEN)[to..to + len]);
            assert!(site.source.to_vec(0, LEN) == expected, "read of {len} with {faults:?}");
        }
    }
    site.hub.set_faults(Faults::default());
    let moved = 4 * (1 + 1000 + 5000 + LEN as u64 - 10);
    assert_eq!(site.a.report(site.to_b).rma_bytes, moved);
}

#[test]
fn a_message_comes_after_the_data() {
    let site = site(Rights::READ_WRITE);
    for read in [false, true] {
        let rma = Rma { message: Some(b"done"[..].into()), ..site.rma(0, 0, LEN as u64, read) };
        site.a.rma(site.to_b, &rma, 3).expect("started");
        let slot = next(&site.ends(), 1, EventKind::Recv);
        assert!(site.target.to_vec(0, LEN) == pattern(1, LEN));
        site.b.give_back(slot);
        assert_eq!(outcome(&site.ends(), 0, EventKind::Send), (Some(Status::Success), 3));
    }
}

#[test]
fn rights_ranges_and_handles_are_enforced() {
    for (rights, read) in [(Rights::READ, false), (Rights::WRITE, true), (Rights::NONE, true), (Rights::NONE, false)] {
        let site = site(rights);
        assert_eq!(site.run(&site.rma(0, 0, 64, read)), Some(Status::RmaHandle), "{rights:?}");
        assert!(site.is_untouched());
    }
    let site = site(Rights::READ_WRITE);
    let len = LEN as u64;
    for read in [false, true] {
        for (offset, bytes) in [(len, 1), (len - 1, 2), (1, len), (u64::MAX, 1), (u64::MAX - len + 1, len)] {
            let outcome = site.run(&site.rma(0, offset, bytes, read));
            assert_eq!(outcome, Some(Status::RmaHandle), "{bytes} at {offset:#x}");
        }
        for bit in 0..128usize {
            let mut invented = site.remote;
            let mut words = invented.words();
            words[bit / 64] ^= 1 << (bit % 64);
            invented = RmaHandle::from_words(words);
            let rma = Rma { remote: &invented, ..site.rma(0, 0, 64, read) };
            assert_eq!(site.run(&rma), Some(Status::RmaHandle), "bit {bit}");
            let rma = Rma { local: &invented, ..site.rma(0, 0, 64, read) };
            assert_eq!(site.a.rma(site.to_b, &rma, 1), Err(RmaError::LocalHandle));
        }
        let beyond = site.rma(1, 0, len, read);
        assert_eq!(site.a.rma(site.to_b, &beyond, 1), Err(RmaError::LocalHandle));
        assert_eq!(site.a.rma(site.to_b, &site.rma(u64::MAX, 0, 2, read), 1), Err(RmaError::LocalHandle));
    }
    assert!(site.is_untouched());
    site.a.send(site.to_b, b"alive", 1);
    assert_eq!(message(&site.ends(), 1), b"alive");
}

#[test]
fn a_deregistered_handle_is_stale_for_ever() {
    let site = site(Rights::READ_WRITE);
    site.b.deregister(&site.remote).expect("its own");
    assert_eq!(site.b.deregister(&site.remote), Err(RegisterError::UnknownHandle));
    let newer = site.b.register(site.target.memory(), Rights::READ_WRITE);
    assert_ne!(newer, site.remote);
    for read in [false, true] {
        assert_eq!(site.run(&site.rma(0, 0, 64, read)), Some(Status::RmaHandle));
    }
    assert!(site.is_untouched());
    let rma = Rma { remote: &newer, ..site.rma(0, 0, 64, false) };
    assert_eq!(site.run(&rma), Some(Status::Success));
}

#[test]
fn local_memory_that_goes_ends_its_operation_and_is_not_touched_again() {
    for read in [false, true] {
        let site = site(Rights::READ_WRITE);
        // Nothing can leave or arrive meanwhile.
        site.hub.set_full(true);
        site.a.rma(site.to_b, &site.rma(0, 0, LEN as u64, read), 8).expect("started");
        site.a.deregister(&site.local).expect("its own");
        site.source.write(0, &pattern(7, LEN));
        site.hub.set_full(false);
        let told = outcome(&site.ends(), 0, EventKind::Send);
        assert_eq!(told, (Some(Status::RmaHandle), 8), "read: {read}");
        assert!(site.source.to_vec(0, LEN) == pattern(7, LEN), "touched after deregistration");
        assert_eq!(waiting(&site.a, EventKind::Send), 0);
        site.a.send(site.to_b, b"alive", 1);
        assert_eq!(message(&site.ends(), 1), b"alive");
    }
}

#[test]
fn many_are_open_and_each_ends_once_in_order() {
    let site = site(Rights::READ_WRITE);
    for number in 0..256u64 {
        site.a.rma(site.to_b, &site.rma(number * 16, number * 16, 16, false), number).expect("started");
    }
    assert_eq!(site.a.rma(site.to_b, &site.rma(0, 0, 16, false), 256), Err(RmaError::NoBuffers));
    for number in 0..256 {
        assert_eq!(outcome(&site.ends(), 0, EventKind::Send), (Some(Status::Success), number));
    }
    assert_eq!(site.target.to_vec(0, 4096), site.source.to_vec(0, 4096));
}

/// A site whose frames carry so much, with memory of which a word changes each time that a frame is
/// taken.
fn changing_site(mtu: u16, read: bool) -> Site {
    let hub = Hub::new();
    hub.set_mtu(mtu);
    let site = site_of(hub, Rights::READ_WRITE);
    let changed = if read { site.target.memory() } else { site.source.memory() };
    let mut count = 0_u64;
    site.hub.set_change(Some(Box::new(move || {
        count += 1;
        assert!(changed.copy_in(20_000, &count.to_ne_bytes()));
    })));
    site
}

#[test]
fn memory_that_changes_while_it_leaves_arrives() {
    for mtu in [1400, 4096, 9000, 60_000] {
        for read in [false, true] {
            let site = changing_site(mtu, read);
            for round in 0..12 {
                let len = if round % 2 == 0 { LEN as u64 - 8 } else { 30_000 };
                let before = site.hub.pieces();
                assert_eq!(
                    site.run(&site.rma(0, 8, len, read)),
                    Some(Status::Success),
                    "frames of {mtu}, read: {read}"
                );
                let (there, at, here, from) =
                    if read { (&site.source, 0, &site.target, 8) } else { (&site.target, 8, &site.source, 0) };
                let arrived = there.to_vec(at, 20_000 - 8);
                assert!(arrived == here.to_vec(from, 20_000 - 8), "frames of {mtu}, read: {read}");
                let has_pieces = site.hub.pieces() > before;
                assert_eq!(has_pieces, mtu > 4096 && round == 0, "frames of {mtu}, read: {read}, round {round}");
            }
        }
    }
}

#[test]
fn little_memory_is_always_copied() {
    let site = site(Rights::READ_WRITE);
    for read in [false, true] {
        assert_eq!(site.run(&site.rma(1, 3, LEN as u64 - 10, read)), Some(Status::Success));
    }
    assert_eq!(site.hub.pieces(), 0);
}
