//! Transfers over `sm` that are copied piece by piece and past the caches, and the page faults of
//! such memory.

use cci::__binding::{Contract, Flags};
use cci::{Attribute, EventKind, Rights, Rma, SharedMemory};
use cci_conformance::{World, alone, open, pattern, sm_device};

/// Bytes before and behind the range, which nobody may write.
const MARGIN: usize = 64;

/// Both ways, with beginnings that are no multiples of a line and an end that is none.
#[test]
fn transfers_past_the_caches_arrive_whole_and_touch_nothing_beside() {
    let _alone = alone();
    let len = usize::try_from(cci_mem::streaming::threshold()).expect("a length") + 77;
    let (a, b) = (open(&sm_device()), open(&sm_device()));
    let (world, connection, _) = World::joined([&a, &b], Attribute::ReliableOrdered);
    let bytes = pattern(3, len);
    // Another way would not copy past the caches.
    let path = a.report(connection).expect("open").rma_path;
    assert!(path.contains("direct copy"), "{path}");
    for (flags, from, to) in [(Flags::WRITE, 1, 6), (Flags::READ, 5, 0)] {
        let [near, far] = [0; 2].map(|_: u8| SharedMemory::new(len + 2 * MARGIN).expect("memory of the library"));
        let local = a.register_memory(near.memory(), Rights::NONE).expect("a registration");
        let remote = b.register_memory(far.memory(), Rights::READ_WRITE).expect("a registration");
        let (source, target) = if flags == Flags::WRITE { (&near, &far) } else { (&far, &near) };
        let (from, to) = (MARGIN + from, MARGIN + to);
        source.write(from, &bytes);
        let (local_offset, remote_offset) = if flags == Flags::WRITE { (from, to) } else { (to, from) };
        let rma =
            Rma::new(&local, &remote, len as u64).local_offset(local_offset as u64).remote_offset(remote_offset as u64);
        a.rma(connection, &rma, 0, flags).expect("an RMA");
        assert_eq!(world.next(0, EventKind::Send).outcome(), Ok(()));
        assert!(target.to_vec(to, len) == bytes, "{flags:?}");
        let beside = [target.to_vec(0, to), target.to_vec(to + len, 2 * MARGIN - to)].concat();
        assert!(beside.iter().all(|byte| *byte == 0), "{flags:?}");
    }
}

/// Page faults of this thread so far, including those that the kernel handles for it ahead of time.
fn page_faults() -> usize {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").expect("what the kernel counts");
    // The eighth field after the name, which ends with the last parenthesis.
    let fields = stat.rsplit_once(')').expect("a name").1;
    fields.split_whitespace().nth(7).expect("a field").parse().expect("a number")
}

/// Neither the program's first use of library memory nor the first transfer to it takes a page
/// fault for each page.
#[test]
fn first_use_of_library_memory_takes_few_page_faults() {
    let _alone = alone();
    const LEN: usize = 32 << 20;
    const FEW: usize = LEN / 4096 / 4;
    let (a, b) = (open(&sm_device()), open(&sm_device()));
    let (world, connection, _) = World::joined([&a, &b], Attribute::ReliableOrdered);
    let bytes = pattern(4, LEN);
    let [near, far] = [0; 2].map(|_: u8| SharedMemory::new(LEN).expect("memory of the library"));
    let before = page_faults();
    near.write(0, &bytes);
    let written = page_faults() - before;
    assert!(written < FEW, "{written} page faults of the first write");
    let local = a.register_memory(near.memory(), Rights::NONE).expect("a registration");
    let remote = b.register_memory(far.memory(), Rights::WRITE).expect("a registration");
    let rma = Rma::new(&local, &remote, LEN as u64);
    let before = page_faults();
    a.rma(connection, &rma, 0, Flags::WRITE).expect("an RMA");
    assert_eq!(world.next(0, EventKind::Send).outcome(), Ok(()));
    let transferred = page_faults() - before;
    assert!(transferred < FEW, "{transferred} page faults of the first transfer");
    assert!(far.to_vec(0, LEN) == bytes);
}
