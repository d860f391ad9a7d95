//! Why a call was refused.

use std::fmt;

/// Why a call was refused, with the numbers of Portals 3.3. Nothing has happened then, but for
/// [`Error::EventsDropped`].
///
/// # Example
///
/// ```
/// use cci_portals::Error;
///
/// assert_eq!(Error::QueueEmpty.code(), 3);
/// assert_eq!(Error::QueueEmpty.to_string(), "the event queue is empty; wait for it, or poll again");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
#[expect(clippy::exhaustive_enums, reason = "the codes are those of the specification")]
pub enum Error {
    /// No such entry of the access control table.
    AccessIndex = 1,
    /// Events were lost before the one that came with this code.
    EventsDropped = 2,
    /// The event queue is empty.
    QueueEmpty = 3,
    /// No such event queue.
    Queue = 4,
    /// The interface could not be opened.
    Failed = 5,
    /// No such object.
    Handle = 6,
    /// No such interface.
    Interface = 7,
    /// The memory descriptor is not legal.
    IllegalMemory = 8,
    /// No such memory descriptor, or it is inactive.
    Memory = 9,
    /// Operations of the memory descriptor are pending.
    MemoryInUse = 10,
    /// The memory descriptor was not changed.
    NoUpdate = 11,
    /// No such match entry.
    Entry = 12,
    /// The match entry has a memory descriptor, or operations of it are pending.
    EntryInUse = 13,
    /// The match list has as many entries as may be.
    ListTooLong = 14,
    /// No such network interface.
    Network = 15,
    /// The library is not initialised.
    NotInitialised = 16,
    /// A table is full.
    NoSpace = 17,
    /// The process number is out of range, or another process has it.
    ProcessNumber = 18,
    /// No such process can be a target.
    Process = 19,
    /// Each portal index has a match entry.
    TableFull = 20,
    /// No such portal index.
    PortalIndex = 21,
    /// A pointer leads nowhere.
    Address = 22,
    /// No such status register.
    Register = 23,
    /// The library has failed inside.
    Unknown = 24,
}

const ALL: [Error; 24] = [
    Error::AccessIndex,
    Error::EventsDropped,
    Error::QueueEmpty,
    Error::Queue,
    Error::Failed,
    Error::Handle,
    Error::Interface,
    Error::IllegalMemory,
    Error::Memory,
    Error::MemoryInUse,
    Error::NoUpdate,
    Error::Entry,
    Error::EntryInUse,
    Error::ListTooLong,
    Error::Network,
    Error::NotInitialised,
    Error::NoSpace,
    Error::ProcessNumber,
    Error::Process,
    Error::TableFull,
    Error::PortalIndex,
    Error::Address,
    Error::Register,
    Error::Unknown,
];

impl Error {
    /// Returns the number of the code.
    #[must_use]
    pub const fn code(self) -> i32 {
        self as i32
    }

    /// The error with this code, as another process says it.
    pub(crate) fn of_code(code: u64) -> Self {
        let found = ALL.iter().find(|of| u64::from(of.code().unsigned_abs()) == code);
        found.copied().unwrap_or(Self::Unknown)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AccessIndex => "no such entry of the access control table; name one up to max_ac_index",
            Self::EventsDropped => "events were lost before this one; allocate a longer event queue, or read it sooner",
            Self::QueueEmpty => "the event queue is empty; wait for it, or poll again",
            Self::Queue => "no such event queue; was it freed?",
            Self::Failed => "the network interface cannot be opened; look at the devices in the output of cci info",
            Self::Handle => "no such object; was it freed, or is it of another kind?",
            Self::Interface => "no such interface; name the default one",
            Self::IllegalMemory => {
                "the memory descriptor is not legal; check start, length, the number of its parts, and the region"
            }
            Self::Memory => "no such memory descriptor, or it is inactive; was it unlinked, or is its threshold 0?",
            Self::MemoryInUse => "operations of the memory descriptor are pending; wait for their events",
            Self::NoUpdate => "the memory descriptor was not changed; read the events of the queue first",
            Self::Entry => "no such match entry; was it unlinked?",
            Self::EntryInUse => "the match entry has a memory descriptor in use; unlink that, or wait for its events",
            Self::ListTooLong => "the match list has max_me_list entries; ask for more when the interface is opened",
            Self::Network => "no such network interface; was it closed?",
            Self::NotInitialised => "the library is not initialised in this process; call PtlInit and PtlNIInit",
            Self::NoSpace => "a table of the interface is full; free entries, or ask for more when it is opened",
            Self::ProcessNumber => "the process number is out of range, or another process has it; choose another one",
            Self::Process => "no such process can be a target; name its nid and pid, without wildcards",
            Self::TableFull => "each portal index has a match entry; name an index, or unlink entries",
            Self::PortalIndex => "no such portal index; name one up to max_pt_index",
            Self::Address => "a pointer leads nowhere; pass the address of a variable",
            Self::Register => "no such status register; name one that the header defines",
            Self::Unknown => "the library has failed inside; report it as a bug",
        })
    }
}

impl std::error::Error for Error {}
