//! Why a call was refused.

cci_ground::codes! {
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
    Error: i32:
    AccessIndex = 1 => "no such entry of the access control table; name one up to max_ac_index",
    EventsDropped = 2 => "events were lost before this one; allocate a longer event queue, or read it sooner",
    QueueEmpty = 3 => "the event queue is empty; wait for it, or poll again",
    Queue = 4 => "no such event queue; was it freed?",
    Failed = 5 => "the network interface cannot be opened; look at the devices in the output of cci info",
    Handle = 6 => "no such object; was it freed, or is it of another kind?",
    Interface = 7 => "no such interface; name the default one",
    IllegalMemory = 8 => "the memory descriptor is not legal; check start, length, the number of its parts, and the region",
    Memory = 9 => "no such memory descriptor, or it is inactive; was it unlinked, or is its threshold 0?",
    MemoryInUse = 10 => "operations of the memory descriptor are pending; wait for their events",
    NoUpdate = 11 => "the memory descriptor was not changed; read the events of the queue first",
    Entry = 12 => "no such match entry; was it unlinked?",
    EntryInUse = 13 => "the match entry has a memory descriptor in use; unlink that, or wait for its events",
    ListTooLong = 14 => "the match list has max_me_list entries; ask for more when the interface is opened",
    Network = 15 => "no such network interface; was it closed?",
    NotInitialised = 16 => "the library is not initialised in this process; call PtlInit and PtlNIInit",
    NoSpace = 17 => "a table of the interface is full; free entries, or ask for more when it is opened",
    ProcessNumber = 18 => "the process number is out of range, or another process has it; choose another one",
    Process = 19 => "no such process can be a target; name its nid and pid, without wildcards",
    TableFull = 20 => "each portal index has a match entry; name an index, or unlink entries",
    PortalIndex = 21 => "no such portal index; name one up to max_pt_index",
    Address = 22 => "a pointer leads nowhere; pass the address of a variable",
    Register = 23 => "no such status register; name one that the header defines",
    Unknown = 24 => "the library has failed inside; report it as a bug",
}

impl Error {
    /// The error with this code, as another process says it.
    pub(crate) fn of_code(code: u64) -> Self {
        i32::try_from(code).ok().and_then(Self::from_code).unwrap_or(Self::Unknown)
    }
}
