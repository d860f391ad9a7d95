//! What a viewer reads of an endpoint's counters. It believes nothing: `docs/design/counters.md`.

use crate::WaitFor;
use cci_mem::counters::{ARMED, CLEAR, Home, LEN, MAGIC, NAME, Page, SEALED, STARVING, VERSION, VIRTUAL};
use cci_mem::sync::{AtomicU64, Ordering};
use std::fmt;
use std::time::Duration;

/// Why a file is not read.
///
/// # Example
///
/// ```
/// # use cci_transport as cci;
/// use cci::{Snapshot, Unreadable};
///
/// let empty = Snapshot::take(|_| Ok(0));
/// assert!(matches!(empty, Err(Unreadable::Length(0))));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Unreadable {
    /// The system refuses.
    System(std::io::Error),
    /// Its number of bytes is another.
    Length(usize),
    /// It does not begin as a page does: it is just being made, or another program's.
    NotComplete,
    /// Its version or length differs from its name.
    Version(u32, u32),
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(error) => write!(f, "it cannot be read: {error}"),
            Self::Length(len) => write!(f, "it has {len} bytes instead of {LEN}"),
            Self::NotComplete => f.write_str("it does not begin with the mark of a page of counters"),
            Self::Version(version, len) => {
                write!(f, "it says version {version} and {len} bytes, instead of {VERSION} and {LEN}")
            }
        }
    }
}

impl std::error::Error for Unreadable {}

/// One whom an endpoint waits for.
///
/// # Example
///
/// ```
/// # use cci_transport::{Snapshot, WaitShown};
/// fn shown(wait: &WaitShown, endpoint: &Snapshot) -> String {
///     let waited = endpoint.progress.saturating_sub(wait.since);
///     format!("{} operations wait {waited:?} for {}", wait.operations, wait.peer)
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitShown {
    /// The peer, as its URI or address.
    pub peer: String,
    /// What for; none: something that this version does not know.
    pub what: Option<WaitFor>,
    /// Since when, by the endpoint's clock, from that clock's start.
    pub since: Duration,
    /// Operations that wait.
    pub operations: u64,
}

/// The counters of an endpoint at a moment. Every number may be anything.
///
/// # Example
///
/// ```
/// use std::fs::File;
/// use std::io::Read;
/// # use cci_transport::{Snapshot, Unreadable};
///
/// /// Reads the counters page of an endpoint.
/// fn read(mut page: File) -> Result<Snapshot, Unreadable> {
///     Snapshot::take(|bytes| page.read(bytes))
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The process, as it knew itself when it opened the endpoint: in its own name space.
    pub pid: u32,
    /// Times are those of a virtual network.
    pub is_virtual: bool,
    /// What crosses a network is sealed; where [`Snapshot::is_clear`] too, only if the peer agrees.
    /// Neither: nothing crosses one, or the process has a cci that does not publish it.
    pub is_sealed: bool,
    /// What crosses a network is in clear; where [`Snapshot::is_sealed`] too, only if the peer asks
    /// for that.
    pub is_clear: bool,
    /// Name of the transport.
    pub transport: String,
    /// What others connect to.
    pub uri: String,
    /// When the endpoint was opened, by CLOCK_MONOTONIC, from that clock's start.
    pub opened: Duration,
    /// When the program last had the endpoint make progress, by the endpoint's clock: that of a
    /// virtual network if [`Snapshot::is_virtual`], and CLOCK_MONOTONIC otherwise.
    pub progress: Duration,
    /// Its handle is armed: the program may sleep on it.
    pub is_armed: bool,
    /// The program holds every receive slot, and a peer waits for one.
    pub is_starving: bool,
    /// Messages sent.
    pub sent: u64,
    /// Bytes of those of them that are longer than 56.
    pub sent_long_bytes: u64,
    /// Messages received.
    pub received: u64,
    /// Bytes of those of them that are longer than 56.
    pub received_long_bytes: u64,
    /// RMA that this side began and that ended well.
    pub rma: u64,
    /// Its bytes.
    pub rma_bytes: u64,
    /// Times that a peer had no room.
    pub not_ready: u64,
    /// Times that this side had no receive slot for a peer.
    pub refused: u64,
    /// Messages dropped.
    pub dropped: u64,
    /// Frames for connections that do not exist.
    pub strays: u64,
    /// Frames that contradict themselves.
    pub malformed: u64,
    /// Frames sent.
    pub frames_sent: u64,
    /// Frames received.
    pub frames_received: u64,
    /// Frames sent again.
    pub resent: u64,
    /// Frames that came a second time.
    pub duplicates: u64,
    /// Losses that turned out to be none.
    pub spurious: u64,
    /// Frames dropped because nothing more could be held back.
    pub unheld: u64,
    /// Connections, those being made included.
    pub connections: u64,
    /// Operations that have begun and not ended.
    pub in_flight: u64,
    /// Receive slots that are taken.
    pub recv_taken: u64,
    /// Those of them that the program holds, or has given back lately.
    pub recv_lent: u64,
    /// Receive slots that may be taken.
    pub recv_limit: u64,
    /// Send slots that are taken.
    pub send_taken: u64,
    /// Send slots that may be taken.
    pub send_limit: u64,
    /// RMA slots that are taken.
    pub rma_taken: u64,
    /// RMA slots that may be taken.
    pub rma_limit: u64,
    /// Whom the endpoint waits for.
    pub waits: Vec<WaitShown>,
    /// More of them, without names.
    pub unlisted: u64,
}

impl Snapshot {
    /// Name of the memfd that a page is in.
    pub const NAME: &str = NAME;
    /// Bytes of a page.
    pub const LEN: usize = LEN;

    /// Reads a page. `read` reads the file from its beginning into the buffer, without mapping it,
    /// and returns how many bytes there were; it is called three times, so that what changes
    /// meanwhile is noticed.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is not a page of counters of this version.
    pub fn take(mut read: impl FnMut(&mut [u8]) -> std::io::Result<usize>) -> Result<Self, Unreadable> {
        let before = page(&mut read)?;
        let now = page(&mut read)?;
        let after = page(&mut read)?;
        let (magic, version, len) = now.head();
        if magic != MAGIC {
            return Err(Unreadable::NotComplete);
        }
        if version != VERSION || len as usize != LEN {
            return Err(Unreadable::Version(version, len));
        }
        let mut snapshot = Self::of(&now);
        for ((before, wait), after) in before.waits.iter().zip(&now.waits).zip(&after.waits) {
            let generation = before.generation();
            let is_whole = generation.is_multiple_of(2) && generation == after.generation();
            if let Some(waiting) = wait.get().filter(|_| is_whole) {
                let (what, since) = (WaitFor::from_u32(waiting.kind), Duration::from_nanos(waiting.since));
                snapshot.waits.push(WaitShown { peer: waiting.peer, what, since, operations: waiting.operations });
            }
        }
        Ok(snapshot)
    }

    fn of(page: &Page) -> Self {
        let word = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let time = |nanos: &AtomicU64| Duration::from_nanos(word(nanos));
        let state = word(&page.state);
        let flags = page.flags.load(Ordering::Relaxed);
        Self {
            pid: page.pid(),
            is_virtual: flags & VIRTUAL != 0,
            is_sealed: flags & SEALED != 0,
            is_clear: flags & CLEAR != 0,
            transport: page.transport.get(),
            uri: page.uri.get(),
            opened: time(&page.opened),
            progress: time(&page.progress),
            is_armed: state & ARMED != 0,
            is_starving: state & STARVING != 0,
            sent: word(&page.sent),
            sent_long_bytes: word(&page.sent_long_bytes),
            received: word(&page.received),
            received_long_bytes: word(&page.received_long_bytes),
            rma: word(&page.rma),
            rma_bytes: word(&page.rma_bytes),
            not_ready: word(&page.not_ready),
            refused: word(&page.refused),
            dropped: word(&page.dropped),
            strays: word(&page.strays),
            malformed: word(&page.malformed),
            frames_sent: word(&page.frames_sent),
            frames_received: word(&page.frames_received),
            resent: word(&page.resent),
            duplicates: word(&page.duplicates),
            spurious: word(&page.spurious),
            unheld: word(&page.unheld),
            connections: word(&page.connections),
            in_flight: word(&page.in_flight),
            recv_taken: word(&page.recv_taken),
            recv_lent: word(&page.recv_lent),
            recv_limit: word(&page.recv_limit),
            send_taken: word(&page.send_taken),
            send_limit: word(&page.send_limit),
            rma_taken: word(&page.rma_taken),
            rma_limit: word(&page.rma_limit),
            waits: Vec::new(),
            unlisted: word(&page.unlisted),
        }
    }
}

/// One look at the file.
fn page(read: &mut impl FnMut(&mut [u8]) -> std::io::Result<usize>) -> Result<Home, Unreadable> {
    // One byte more than there may be tells a longer file.
    let mut bytes = [0; LEN + 1];
    let len = read(&mut bytes).map_err(Unreadable::System)?;
    if len != LEN {
        return Err(Unreadable::Length(len));
    }
    Home::copy_of(&bytes).ok_or_else(|| Unreadable::System(std::io::ErrorKind::OutOfMemory.into()))
}
