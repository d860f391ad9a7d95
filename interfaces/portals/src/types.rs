//! What programs name and get: processes, limits, memory, events.

use crate::handles::Handle;
use crate::options;
use cci::{HeapBytes, Memory};
use std::sync::Arc;

/// Matches any node, process, user, job or portal index.
///
/// # Example
///
/// ```
/// use cci_portals::{ANY, ProcessId};
///
/// assert!(!ProcessId { nid: 1, pid: ANY }.is_definite());
/// ```
pub const ANY: u32 = u32::MAX;
/// A threshold that is never reached.
///
/// # Example
///
/// ```
/// assert_eq!(cci_portals::Described::default().threshold, cci_portals::FOREVER);
/// ```
pub const FOREVER: i32 = -1;

/// A process: its node, and its number there.
///
/// # Example
///
/// ```
/// use cci_portals::{ANY, ProcessId};
///
/// let anybody = ProcessId { nid: ANY, pid: ANY };
/// assert!(!anybody.is_definite() && ProcessId { nid: 1, pid: 2 }.is_definite());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_structs, reason = "as the specification has it")]
pub struct ProcessId {
    /// The node.
    pub nid: u32,
    /// The process.
    pub pid: u32,
}

impl ProcessId {
    /// Matches every process.
    pub const ANY: Self = Self { nid: ANY, pid: ANY };

    /// Returns whether it has no wildcard.
    #[must_use]
    pub const fn is_definite(self) -> bool {
        self.nid != ANY && self.pid != ANY
    }

    pub(crate) const fn word(self) -> u64 {
        (self.nid as u64) << 32 | self.pid as u64
    }

    #[expect(clippy::cast_possible_truncation, reason = "the halves")]
    pub(crate) const fn of_word(word: u64) -> Self {
        Self { nid: (word >> 32) as u32, pid: word as u32 }
    }

    /// The bits of [`ProcessId::word`] that are compared.
    pub(crate) fn mask(self) -> u64 {
        let half = |number| if number == ANY { 0 } else { u64::from(u32::MAX) };
        half(self.nid) << 32 | half(self.pid)
    }

    pub(crate) fn matches(self, other: Self) -> bool {
        (self.word() ^ other.word()) & self.mask() == 0
    }
}

/// How much of everything an interface has. Indices count from 0, and the members say the largest.
///
/// # Example
///
/// ```
/// use cci_portals::Limits;
///
/// let mut wanted = Limits::default();
/// wanted.max_mes = 10_000;
/// assert_eq!(wanted.granted().max_mes, 10_000);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "as the specification has it")]
pub struct Limits {
    /// Match entries.
    pub max_mes: u32,
    /// Memory descriptors.
    pub max_mds: u32,
    /// Event queues.
    pub max_eqs: u32,
    /// The largest index of the access control table.
    pub max_ac_index: u32,
    /// The largest portal index.
    pub max_pt_index: u32,
    /// Parts of a memory descriptor.
    pub max_md_iovecs: u32,
    /// Entries of a match list.
    pub max_me_list: u32,
    /// Bytes of a swap.
    pub max_getput_md: u32,
}

/// More than this of anything is not granted.
const MOST: Limits = Limits {
    max_mes: 131_072,
    max_mds: 131_072,
    max_eqs: 4_096,
    max_ac_index: 1_023,
    max_pt_index: 1_023,
    max_md_iovecs: MAX_PARTS as u32,
    max_me_list: 131_072,
    max_getput_md: MAX_SWAP as u32,
};

/// Parts of a memory descriptor at most.
pub(crate) const MAX_PARTS: usize = 16;
/// Bytes of a swap at most.
pub(crate) const MAX_SWAP: usize = 64;

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_mes: 1_024,
            max_mds: 4_096,
            max_eqs: 256,
            max_ac_index: 63,
            max_pt_index: 255,
            max_me_list: 1_024,
            ..MOST
        }
    }
}

impl Limits {
    /// Returns what an interface grants of what is wanted: at least one of each, at most its most.
    #[must_use]
    pub fn granted(self) -> Self {
        let within = |wanted: u32, most: u32| wanted.clamp(1, most);
        Self {
            max_mes: within(self.max_mes, MOST.max_mes),
            max_mds: within(self.max_mds, MOST.max_mds),
            max_eqs: within(self.max_eqs, MOST.max_eqs),
            max_ac_index: self.max_ac_index.min(MOST.max_ac_index),
            max_pt_index: self.max_pt_index.min(MOST.max_pt_index),
            max_md_iovecs: within(self.max_md_iovecs, MOST.max_md_iovecs),
            max_me_list: within(self.max_me_list, MOST.max_me_list),
            max_getput_md: within(self.max_getput_md, MOST.max_getput_md),
        }
    }
}

/// What a program states of a memory descriptor, and finds in events.
///
/// # Example
///
/// ```
/// let described = cci_portals::Described::default();
/// assert_eq!((described.threshold, described.options), (cci_portals::FOREVER, 0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "as the specification has it")]
pub struct Described {
    /// The address of the program's memory, or of the list of its parts; the engine leaves it as it
    /// is.
    pub start: u64,
    /// Bytes, or with [`options::IOVEC`] the number of parts.
    pub length: u64,
    /// Operations until it is inactive; [`FOREVER`], or 0 and less.
    pub threshold: i32,
    /// With [`options::MAX_SIZE`]: a request that leaves fewer bytes than these makes it inactive.
    pub max_size: u64,
    /// [`options`].
    pub options: u32,
    /// The program's own.
    pub user: u64,
    /// Where its events go, or [`Handle::NO_QUEUE`].
    pub queue: Handle,
}

impl Default for Described {
    fn default() -> Self {
        Self { start: 0, length: 0, threshold: FOREVER, max_size: 0, options: 0, user: 0, queue: Handle::NO_QUEUE }
    }
}

/// A memory descriptor: memory, and what is stated of it.
///
/// # Example
///
/// ```
/// use cci_portals::{Descriptor, buffer, options};
///
/// let memory = buffer(b"0123".to_vec());
/// let descriptor = Descriptor::new(&memory).options(options::OP_PUT).threshold(2);
/// assert_eq!((descriptor.described.length, descriptor.described.threshold), (4, 2));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Descriptor {
    /// The parts of the memory, in order.
    pub memory: Vec<Memory>,
    /// What is stated of it.
    pub described: Described,
}

impl Descriptor {
    /// Of memory in one part.
    #[must_use]
    pub fn new(memory: &Memory) -> Self {
        let described = Described { start: memory.start() as u64, length: memory.len(), ..Described::default() };
        let memory = if memory.is_empty() { Vec::new() } else { vec![memory.clone()] };
        Self { memory, described }
    }

    /// Of memory in several parts.
    #[must_use]
    pub fn of_parts(memory: Vec<Memory>) -> Self {
        let described = Described { length: memory.len() as u64, options: options::IOVEC, ..Described::default() };
        Self { memory, described }
    }

    /// Of these parts, whatever is stated of them.
    #[must_use]
    pub fn of(memory: Vec<Memory>, described: Described) -> Self {
        Self { memory, described }
    }

    /// Adds options.
    #[must_use]
    pub fn options(mut self, bits: u32) -> Self {
        self.described.options |= bits;
        self
    }

    /// Sets the threshold.
    #[must_use]
    pub fn threshold(mut self, operations: i32) -> Self {
        self.described.threshold = operations;
        self
    }

    /// Makes it inactive once fewer bytes are left.
    #[must_use]
    pub fn max_size(mut self, bytes: u64) -> Self {
        self.described.max_size = bytes;
        self.options(options::MAX_SIZE)
    }

    /// Sets the program's word.
    #[must_use]
    pub fn user(mut self, word: u64) -> Self {
        self.described.user = word;
        self
    }

    /// Sets where events go.
    #[must_use]
    pub fn events(mut self, queue: Handle) -> Self {
        self.described.queue = queue;
        self
    }
}

/// Memory that owns these bytes, for [`Descriptor`]s. Peers change it, so it is read by
/// [`Memory::copy_out`].
///
/// # Example
///
/// ```
/// let memory = cci_portals::buffer(vec![7; 3]);
/// let mut copy = [0; 3];
/// assert!(memory.copy_out(0, &mut copy) && copy == [7; 3]);
/// ```
#[must_use]
pub fn buffer(bytes: Vec<u8>) -> Memory {
    Memory::of_bytes(&Arc::new(HeapBytes::new(bytes)))
}

/// What an event reports, with the numbers of Portals 3.3.
///
/// # Example
///
/// ```
/// assert_eq!(cci_portals::EventKind::Ack as u32, 10);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the kinds are those of the specification")]
#[expect(missing_docs, reason = "the names of the specification")]
pub enum EventKind {
    GetStart = 0,
    GetEnd = 1,
    PutStart = 2,
    PutEnd = 3,
    GetPutStart = 4,
    GetPutEnd = 5,
    ReplyStart = 6,
    ReplyEnd = 7,
    SendStart = 8,
    SendEnd = 9,
    Ack = 10,
    Unlink = 11,
}

/// An event.
///
/// # Example
///
/// ```
/// use cci_portals::{Event, EventKind};
///
/// fn is_data(event: &Event) -> bool {
///     event.kind == EventKind::PutEnd && event.failure == 0
/// }
/// assert!(!is_data(&Event::default()));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "as the specification has it")]
pub struct Event {
    /// What it reports.
    pub kind: EventKind,
    /// Who began the operation.
    pub initiator: ProcessId,
    /// The initiator's user.
    pub uid: u32,
    /// The initiator's job.
    pub jid: u32,
    /// The portal index.
    pub portal: u32,
    /// The match bits of the request.
    pub bits: u64,
    /// Bytes that were asked for.
    pub rlength: u64,
    /// Bytes that were accepted.
    pub mlength: u64,
    /// Where in the memory descriptor.
    pub offset: u64,
    /// The memory descriptor.
    pub memory: Handle,
    /// That memory descriptor, as it is after the operation.
    pub described: Described,
    /// The initiator's word of a put.
    pub header: u64,
    /// Equal in START and END; in UNLINK the sequence of the last event before it, that of END
    /// unless END is disabled.
    pub link: u32,
    /// 0: done. 1: failed.
    pub failure: u32,
    /// Counts the events of the queue.
    pub sequence: u32,
}

impl Default for Event {
    fn default() -> Self {
        Self {
            kind: EventKind::GetStart,
            initiator: ProcessId::default(),
            uid: 0,
            jid: 0,
            portal: ANY,
            bits: 0,
            rlength: 0,
            mlength: 0,
            offset: 0,
            memory: Handle::INVALID,
            described: Described::default(),
            header: 0,
            link: 0,
            failure: 0,
            sequence: 0,
        }
    }
}
