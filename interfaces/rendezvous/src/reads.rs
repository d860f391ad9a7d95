//! Reads of what partners have offered.

use crate::bodies::Remote;
use crate::link::{Link, register};
use cci::{Connection, Endpoint, Failure, Memory, Notify, RegisterError, Registration, Rights, Rma, RmaError};
use std::fmt;

/// Why a message could not be read.
///
/// # Example
///
/// ```
/// use cci::Failure;
/// use cci_rendezvous::Unread;
///
/// let why = Unread::Failed(Failure::Disconnected);
/// assert!(why.to_string().starts_with("a read of what a partner offers has failed: "));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unread {
    /// The memory of this side could not be registered.
    Memory(RegisterError),
    /// A read was refused.
    Refused(RmaError),
    /// The parts that the partner offers are shorter than what is wanted of them.
    Short,
    /// A read, or the link, has failed.
    Failed(Failure),
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(why) => write!(f, "the memory of a receive cannot be registered: {why}"),
            Self::Refused(why) => write!(f, "a read of what a partner offers is refused: {why}"),
            Self::Short => f.write_str("a partner offers less than the length that it states"),
            Self::Failed(why) => write!(f, "a read of what a partner offers has failed: {why}"),
        }
    }
}

impl std::error::Error for Unread {}

/// There is no room in CCI: again later.
///
/// # Example
///
/// ```
/// assert_eq!(format!("{:?}", cci_rendezvous::NoRoom), "NoRoom");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing more to say")]
pub struct NoRoom;

/// Reads that are over: the bytes are in place, or will not be. It still has the registrations of
/// this side, so that its caller first tells the partner, who waits; then [`Reads::let_go`] ends
/// them.
///
/// # Example
///
/// ```
/// use cci_rendezvous::{Ended, Reads};
///
/// fn end(reads: &mut Reads<u32>, ended: Ended<u32>, mut tell: impl FnMut(u32, bool)) {
///     tell(ended.request, ended.result.is_ok());
///     reads.let_go(ended);
/// }
/// ```
#[derive(Debug)]
#[must_use = "its registrations last until `Reads::let_go`"]
pub struct Ended<R> {
    /// Whose reads.
    pub request: R,
    /// The link of the offer.
    pub link: Link,
    /// Bytes read; or the first failure, with which any of them may have come.
    pub result: Result<u64, Unread>,
    number: u32,
}

#[derive(Debug)]
struct Read<R> {
    /// `None`: it is over, or the place is free.
    of: Option<(R, Link)>,
    /// Bytes that are to be read, and of reads that have begun.
    wanted: u64,
    begun: u64,
    /// Reads that have not ended.
    open: u32,
    failed: Option<Unread>,
    memory: Vec<Memory>,
    registered: Vec<Registration<Memory>>,
    remote: Vec<Remote>,
}

/// Returns the part in which the byte at `offset` of the whole is, the offset there, and the bytes
/// left in that part; `None`: beyond the last one.
///
/// # Example
///
/// ```
/// assert_eq!(cci_rendezvous::locate([3, 0, 5].into_iter(), 4), Some((2, 1, 4)));
/// ```
pub fn locate(lengths: impl Iterator<Item = u64>, mut offset: u64) -> Option<(usize, u64, u64)> {
    for (index, len) in lengths.enumerate() {
        if offset < len {
            return Some((index, offset, len - offset));
        }
        offset -= len;
    }
    None
}

impl<R> Read<R> {
    /// Registers the memory and begins reads, as far as there is room.
    fn begin(&mut self, endpoint: &Endpoint, connection: Connection, context: u64) -> Result<(), NoRoom> {
        if self.registered.is_empty() && self.failed.is_none() {
            let Self { memory, registered, .. } = self;
            // It is tried again where there is no room.
            match register(endpoint, connection, (memory.iter().cloned(), registered), Rights::NONE) {
                Ok(()) => memory.clear(),
                // A link that is lost reports its end.
                Err(RegisterError::NoMemory | RegisterError::Disconnected) => return Err(NoRoom),
                Err(why) => self.failed = Some(Unread::Memory(why)),
            }
        }
        while self.begun < self.wanted && self.failed.is_none() {
            let local = locate(self.registered.iter().map(Registration::len), self.begun);
            let remote = locate(self.remote.iter().map(|part| part.len), self.begun);
            let (Some((own, own_offset, own_left)), Some((other, other_offset, other_left))) = (local, remote) else {
                self.failed = Some(Unread::Short);
                break;
            };
            let len = own_left.min(other_left).min(self.wanted - self.begun);
            let rma = Rma::new(self.registered[own].handle(), &self.remote[other].handle, len);
            let rma = rma.local_offset(own_offset).remote_offset(other_offset);
            match endpoint.read(connection, &rma, Notify::Always(context)) {
                Ok(()) => {
                    self.begun += len;
                    self.open += 1;
                }
                // What has begun goes on meanwhile.
                Err(RmaError::NoBuffers) => return Err(NoRoom),
                Err(why) => self.failed = Some(Unread::Refused(why)),
            }
        }
        Ok(())
    }
}

/// Reads of what partners have offered into memory of this side, each message under a number. `R`
/// names the request that waits for it.
///
/// ```text
///    insert ---> waits for its turn --- begin ---> under way --- completed ---> Ended
///                  |                    |  NoRoom: begin again                    |
///                  |                    |  a failure with none under way -------->|
///                  '--- end_link -------|---------------------------------------->|
///                                       '--- end_link: once those under way have -'
///                                            completed                let_go: the place is free
/// ```
///
/// The memory is the library's from [`Reads::begin`] to [`Ended`]. It is registered then for the
/// link alone and without rights, so that no partner can touch it. Places are used again, with
/// their lists.
///
/// # Example
///
/// ```
/// use cci::{Failure, HeapBytes, Memory};
/// use cci_rendezvous::{Link, Reads, Unread};
/// use std::sync::Arc;
///
/// let (mut reads, link) = (Reads::default(), Link { peer: 1, life: 1 });
/// let memory = Memory::of_bytes(&Arc::new(HeapBytes::new(vec![0; 10])));
/// reads.insert(("request", link), (10, Vec::new()), |parts| parts.push(memory));
/// // The link ends before its turn.
/// let ended = reads.end_link(link, Failure::Disconnected).pop().ok_or("there is one")?;
/// assert_eq!((ended.request, ended.result), ("request", Err(Unread::Failed(Failure::Disconnected))));
/// reads.let_go(ended);
/// assert_eq!(reads.open(), 0);
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug)]
pub struct Reads<R> {
    all: Vec<Read<R>>,
    free: Vec<u32>,
}

impl<R> Default for Reads<R> {
    fn default() -> Self {
        Self { all: Vec::new(), free: Vec::new() }
    }
}

impl<R: Copy> Reads<R> {
    /// Enters reads of `wanted` bytes from the parts of an offer, in their order, into the memory
    /// that `fill` appends. Returns their number, and a list of parts for [`crate::Buffers`], which
    /// is of others.
    pub fn insert(
        &mut self,
        (request, link): (R, Link),
        (wanted, remote): (u64, Vec<Remote>),
        fill: impl FnOnce(&mut Vec<Memory>),
    ) -> (u32, Vec<Remote>) {
        let number = self.free.pop().unwrap_or_else(|| {
            let (memory, registered, remote) = (Vec::new(), Vec::new(), Vec::new());
            self.all.push(Read { of: None, wanted: 0, begun: 0, open: 0, failed: None, memory, registered, remote });
            self.all.len() as u32 - 1
        });
        let read = &mut self.all[number as usize];
        read.of = Some((request, link));
        (read.wanted, read.begun, read.open, read.failed) = (wanted, 0, 0, None);
        fill(&mut read.memory);
        (number, std::mem::replace(&mut read.remote, remote))
    }

    /// Begins reads by the connection of their link, as far as there is room. Each ends with an
    /// event of CCI that has this context, of which the caller tells [`Reads::completed`]. Reads of
    /// another link, or that are over, are left alone.
    ///
    /// # Errors
    ///
    /// [`NoRoom`]: to be called again. What has begun goes on meanwhile, and may end them.
    pub fn begin(
        &mut self,
        endpoint: &Endpoint,
        (connection, link): (Connection, Link),
        (number, context): (u32, u64),
    ) -> Result<Option<Ended<R>>, NoRoom> {
        let read = self.all.get_mut(number as usize).filter(|read| read.of.is_some_and(|(_, of)| of == link));
        let Some(read) = read else { return Ok(None) };
        read.begin(endpoint, connection, context)?;
        Ok(if read.open == 0 { self.end(number) } else { None })
    }

    /// One read has ended.
    pub fn completed(&mut self, number: u32, outcome: Result<(), Failure>) -> Option<Ended<R>> {
        let read = self.all.get_mut(number as usize).filter(|read| read.of.is_some() && read.open > 0)?;
        read.open -= 1;
        if let Err(why) = outcome {
            read.failed.get_or_insert(Unread::Failed(why));
        }
        if read.open == 0 && (read.failed.is_some() || read.begun == read.wanted) { self.end(number) } else { None }
    }

    /// The link of reads is no more. Returns those that are over by that; those that CCI has begun
    /// end by their events.
    pub fn end_link(&mut self, link: Link, why: Failure) -> Vec<Ended<R>> {
        let mut over = Vec::new();
        for (number, read) in (0..).zip(&mut self.all) {
            if read.of.is_some_and(|(_, of)| of == link) {
                read.failed.get_or_insert(Unread::Failed(why));
                over.extend((read.open == 0).then_some(number));
            }
        }
        over.into_iter().filter_map(|number| self.end(number)).collect()
    }

    fn end(&mut self, number: u32) -> Option<Ended<R>> {
        let read = self.all.get_mut(number as usize)?;
        let (request, link) = read.of.take()?;
        let result = read.failed.map_or(Ok(read.wanted), Err);
        Some(Ended { request, link, result, number })
    }

    /// Ends the registrations of reads that are over, and lets go of their place.
    pub fn let_go(&mut self, ended: Ended<R>) {
        if let Some(read) = self.all.get_mut(ended.number as usize) {
            read.registered.clear();
            read.memory.clear();
            self.free.push(ended.number);
        }
    }

    /// Returns how many have not been let go of.
    #[must_use]
    pub fn open(&self) -> usize {
        self.all.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_is_found_by_an_offset_of_64_bits() {
        let lengths = [1 << 40, 0, 5, u64::MAX];
        let locate = |offset| locate(lengths.into_iter(), offset);
        assert_eq!(locate(0), Some((0, 0, 1 << 40)));
        assert_eq!(locate((1 << 40) - 1), Some((0, (1 << 40) - 1, 1)));
        assert_eq!(locate(1 << 40), Some((2, 0, 5)));
        assert_eq!(locate((1 << 40) + 5), Some((3, 0, u64::MAX)));
        assert_eq!(locate(u64::MAX), Some((3, u64::MAX - (1 << 40) - 5, (1 << 40) + 5)));
        assert_eq!(super::locate([u64::MAX].into_iter(), u64::MAX), None);
    }
}
