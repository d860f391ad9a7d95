//! Segments in the memory of a device, for which a plain file stands.

use crate::world::{connect, id, published, refused, until, until_lost};
use cci_conformance::namespace::{Net, may_be_made};
use cci_conformance::{LIMIT, sm_device};
use cci_sci::{Access, Direction, Error, Host, Kind, Nodes, NotOpened, Options, Reason, SequenceStatus, Withdraw};
use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// A file that is removed in the end.
struct Memory(PathBuf);

impl Memory {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("cci-sci-device-{}", id()));
        let file = File::create(&path).expect("a file");
        file.set_len(1 << 20).expect("a length");
        file.set_permissions(Permissions::from_mode(0o600)).expect("a mode");
        Self(path)
    }

    fn open(&self, table: &str) -> Result<Host, NotOpened> {
        Host::open(&Options::new().nodes(Nodes::parse(table)?).device(sm_device()).memory(&self.0))
    }

    /// Hosts of nodes 4 and 8, each of which takes the other one for one that CCI cannot reach.
    fn apart(&self) -> [Host; 2] {
        ["4 localhost\n8 192.0.2.1\n", "4 192.0.2.1\n8 localhost\n"].map(|table| self.open(table).expect("a host"))
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn nodes_that_share_a_file_share_windows_without_cci() {
    let memory = Memory::new();
    let [owner, other] = memory.apart();
    let segment = owner.create(id(), 10_000).expect("room");
    segment.prepare().expect("room");
    refused(other.connect(4, segment.id(), Some(LIMIT)));
    segment.publish().expect("prepared");
    let far = other.connect(4, segment.id(), Some(LIMIT)).expect("it is in the file");
    assert_eq!((far.len(), far.node(), far.id()), (10_000, 4, segment.id()));
    let window = far.map(8..10_000, Access::ReadWrite).expect("inside");
    let own = segment.map(0..10_000, Access::ReadWrite).expect("inside");
    assert_eq!((window.kind(), own.kind()), (Kind::Shared, Kind::Shared));

    let sequence = window.sequence();
    window.store(0, 77_u64).expect("aligned");
    window.write(9_985, b"1234567").expect("inside");
    assert_eq!((own.load::<u64>(8), sequence.check()), (Ok(77), SequenceStatus::Ok));
    let mut bytes = [0; 7];
    own.read(9_993, &mut bytes).expect("inside");
    assert_eq!(&bytes, b"1234567");
    assert_eq!(refused(far.map(0..10_001, Access::Read)), Error::OutOfRange);

    // Nobody registered it for transfers.
    let source = published(&other, 4096);
    let queue = other.dma_queue(1).expect("a queue");
    assert_eq!(refused(queue.enqueue((&source, 0), (&far, 0), 8, Direction::Write)), Error::NotImplemented);

    segment.withdraw(Withdraw::Quiet).expect("it is there");
    assert_eq!(sequence.check(), SequenceStatus::Ok);
    refused(other.connect(4, segment.id(), Some(LIMIT)));
    segment.publish().expect("prepared");
    segment.withdraw(Withdraw::Force).expect("it is there");
    assert_eq!(sequence.check(), SequenceStatus::NotRetriable);
    segment.publish().expect("prepared");
    let far = other.connect(4, segment.id(), Some(LIMIT)).expect("it is in the file");
    let sequence = far.map(0..8, Access::Read).expect("inside").sequence();
    drop(own);
    segment.remove().expect("nobody is known to be connected");
    assert_eq!((sequence.check(), window.load::<u64>(0)), (SequenceStatus::NotRetriable, Ok(77)));
    refused(other.connect(4, segment.id(), Some(LIMIT)));
}

/// No message of CCI, nor of anything else, goes from one to the other.
#[test]
fn name_spaces_without_a_way_between_them_share_a_file() {
    if !may_be_made() {
        return;
    }
    let memory = Memory::new();
    let nets = [Net::new(), Net::new()];
    let open = |own: usize| {
        let nodes =
            Nodes::parse("4 localhost\n8 localhost\n").and_then(|nodes| nodes.at([4, 8][own])).expect("a table");
        let options = Options::new().nodes(nodes).device(sm_device()).memory(&memory.0);
        nets[own].enter(|| Host::open(&options).expect("a host"))
    };
    let (owner, other) = (open(0), open(1));
    let segment = nets[0].enter(|| published(&owner, 4096));
    let far = nets[1].enter(|| other.connect(4, segment.id(), Some(LIMIT)).expect("it is in the file"));
    let (own, far) = (segment.map(0..4096, Access::ReadWrite), far.map(0..4096, Access::ReadWrite));
    let (own, far) = (own.expect("inside"), far.expect("inside"));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for turn in 1..=1000_u64 {
                until("a ping", || own.load(0) == Ok(turn));
                own.store(64, turn).expect("aligned");
            }
        });
        for turn in 1..=1000_u64 {
            far.store(0, turn).expect("aligned");
            until("a pong", || far.load(64) == Ok(turn));
        }
    });
    assert_eq!(refused(other.connect_interrupt(4, 1, Some(LIMIT))), Error::NoSuchSegment);
}

/// An owner that can be asked is told of connections, as without a device.
#[test]
fn an_owner_of_this_host_is_told_of_connections() {
    let memory = Memory::new();
    let table = "4 localhost\n8 localhost\n";
    let owner = memory.open(table).expect("a host");
    let nodes = Nodes::parse(table).and_then(|nodes| nodes.at(8)).expect("a table");
    let other = Host::open(&Options::new().nodes(nodes).device(sm_device()).memory(&memory.0)).expect("a host");
    let segment = published(&owner, 4096);
    let far = connect(&other, &owner, &segment);
    let event = segment.wait(Some(LIMIT)).expect("an event");
    assert_eq!((event.reason, event.node), (Reason::Connect, 8));
    let window = far.map(0..4096, Access::ReadWrite).expect("inside");
    window.store(0, 5_u64).expect("aligned");
    assert_eq!(segment.map(0..8, Access::Read).expect("inside").load::<u64>(0), Ok(5));
    assert_eq!(refused(segment.remove()), Error::Busy);
    let itself = owner.connect(4, segment.id(), Some(LIMIT)).expect("its own");
    assert_eq!(itself.map(0..8, Access::Read).expect("inside").load::<u64>(0), Ok(5));

    // Transfers go by CCI.
    let source = published(&other, 4096);
    source.map(0..8, Access::ReadWrite).expect("inside").store(0, 6_u64).expect("aligned");
    let queue = other.dma_queue(1).expect("a queue");
    queue.enqueue((&source, 0), (&far, 0), 8, Direction::Write).expect("room");
    queue.post().expect("one");
    queue.wait(Some(LIMIT)).expect("its end");
    assert_eq!(window.load::<u64>(0), Ok(6));

    let sequence = window.sequence();
    drop(owner);
    until_lost(&sequence);
}

#[test]
fn a_file_of_another_table_or_of_others_is_refused() {
    let memory = Memory::new();
    drop(memory.apart());
    let why = memory.open("4 localhost\n").expect_err("another table").to_string();
    assert!(why.contains("divided for another node table") && why.contains("SCI_MEMORY"), "{why}");
    std::fs::set_permissions(&memory.0, Permissions::from_mode(0o666)).expect("a mode");
    let why = memory.open("4 localhost\n8 localhost\n").expect_err("anybody may cut it").to_string();
    assert!(why.contains("may be cut by other users"), "{why}");
}
