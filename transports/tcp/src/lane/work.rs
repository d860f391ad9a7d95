//! What a lane has while operations are open: messages in flight and waiting, operations of both
//! sides, and what is held back by order.

use crate::lane::operation::Operations;
use crate::lane::posted::{Data, Ending};
use crate::lane::serving::Serving;
use crate::lane::shared::Shared;
use crate::seal::{RECORD, Sealed};
use crate::sys;
use cci_mem::memory::Piece;
use cci_mem::source::Source;
use cci_proto::Time;
use cci_transport::Connection;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::collections::VecDeque;

/// Zeros that stand for bytes that are gone.
static ZEROS: [u8; 4096] = [0; 4096];

/// What ends when the peer has taken a message.
#[derive(Clone, Copy)]
pub(crate) enum Sent {
    /// The message.
    Message(Ending),
    /// The operation at this place, whose message it is.
    Operation(u32, &'static Connection),
    /// Nothing: it has ended already, or ends by its RESULT.
    Nothing,
}

impl Sent {
    /// Whose it is.
    pub(crate) fn cell(&self) -> Option<&'static Connection> {
        match self {
            Self::Message(ending) => Some(ending.cell),
            Self::Operation(_, cell) => Some(cell),
            Self::Nothing => None,
        }
    }
}

/// A message that waits for a grant, or for room.
pub(crate) struct Waiting {
    pub(crate) data: Data,
    pub(crate) cell: &'static Connection,
    pub(crate) sent: Sent,
    /// The number of the write that it belongs to.
    pub(crate) write: Option<u32>,
}

/// What is held back behind an operation of its connection.
pub(crate) enum Behind {
    Message(Waiting),
    /// The operation at this place.
    Operation(u32),
}

/// Order within a connection: an operation, and what comes after it.
pub(crate) struct Hold {
    pub(crate) cell: &'static Connection,
    /// The place of the operation.
    pub(crate) barrier: u32,
    /// The operation itself waits for all earlier ones of the connection.
    pub(crate) waits: bool,
    pub(crate) behind: VecDeque<Behind>,
    /// Writes in parts that go at the same time and end in this order, with the operation first.
    pub(crate) row: VecDeque<u32>,
}

/// A fragment of an RMA that has begun to leave.
pub(crate) struct Fragment {
    pub(crate) head: [u8; Fragment::HEAD],
    pub(crate) head_len: usize,
    /// The RESULT behind the last bytes of a read, which leaves with them; empty otherwise.
    pub(crate) tail: [u8; Fragment::TAIL],
    pub(crate) tail_len: usize,
    /// Bytes of head, memory and tail that have left.
    pub(crate) sent: usize,
    /// The bytes; `None`: they are gone, and zeros leave in their place.
    pub(crate) memory: Option<Piece>,
    /// Bytes of the memory.
    pub(crate) len: usize,
    /// Where the bytes are checked: head, sum, a copy of the memory, which leaves in its place, and
    /// tail.
    pub(crate) copy: Vec<u8>,
    pub(crate) of: FragmentOf,
}

impl Fragment {
    /// Bytes of the longest head.
    pub(crate) const HEAD: usize = crate::frame::HEADER + crate::frame::WRITE_PART;
    /// Bytes of a tail: a RESULT.
    pub(crate) const TAIL: usize = crate::frame::HEADER + crate::frame::RESULT;

    /// Bytes of head, memory and tail, and of the sum.
    pub(crate) fn total(&self) -> usize {
        if self.copy.is_empty() { self.head_len + self.len + self.tail_len } else { self.copy.len() }
    }

    /// Sends as much as the stream takes. True: all of it has left.
    pub(crate) fn send(&mut self, socket: &OwnedFd) -> Result<bool, Errno> {
        let head = self.head.get(self.sent..self.head_len).unwrap_or(&[]);
        let from = self.sent.saturating_sub(self.head_len).min(self.len);
        let of_tail = self.sent.saturating_sub(self.head_len + self.len);
        let tail = self.tail.get(of_tail..self.tail_len).unwrap_or(&[]);
        self.sent += match &self.memory {
            _ if !self.copy.is_empty() => sys::send(socket, &self.copy[self.sent..]),
            Some(memory) => sys::send_with(socket, head, (memory, from), tail),
            None if head.is_empty() => sys::send(socket, &ZEROS[..ZEROS.len().min(self.len - from)]),
            None => sys::send(socket, head),
        }?;
        let is_zeros = self.memory.is_none() && self.copy.is_empty();
        match self.sent < self.total() {
            true if !is_zeros => Err(Errno::AGAIN),
            is_left => Ok(!is_left),
        }
    }

    /// As [`Fragment::send`], by the next record of a sealed stream, which is taken from where the
    /// bytes lie.
    pub(crate) fn send_sealed(&mut self, s: &mut Shared, seal: &mut Sealed, socket: &OwnedFd) -> Result<bool, Errno> {
        let head = self.head.get(self.sent..self.head_len).unwrap_or(&[]);
        let from = self.sent.saturating_sub(self.head_len).min(self.len);
        let most = RECORD - Self::HEAD - Self::TAIL;
        let len = (self.len - from).min(most);
        let of_tail = self.sent.saturating_sub(self.head_len + self.len);
        let tail = self.tail.get(of_tail..self.tail_len).filter(|_| from + len == self.len).unwrap_or(&[]);
        let memory = match &self.memory {
            Some(memory) => memory.source(from, len),
            None => Source::from(&ZEROS[..len.min(ZEROS.len())]),
        };
        let parts = [head.into(), memory, tail.into()];
        // The last part needs no copy.
        let parts = if tail.is_empty() { &parts[..2] } else { &parts[..] };
        self.sent += seal.send_parts(s, socket, parts)?;
        Ok(self.sent == self.total())
    }

    /// Whether bytes of the memory are left to leave.
    pub(crate) fn has_bytes(&self) -> bool {
        self.sent < self.total() - self.tail_len
    }

    /// Takes the tail back while bytes of the memory are left to leave. False: none are.
    pub(crate) fn drop_tail(&mut self) -> bool {
        let has_bytes = self.has_bytes();
        if has_bytes {
            self.copy.truncate(self.total() - self.tail_len);
            self.tail_len = 0;
        }
        has_bytes
    }
}

/// Whose bytes a fragment has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FragmentOf {
    /// The write at this place.
    Write(u32),
    /// The read that the peer begins its number with.
    Answer(u32),
    /// Part of a write, and of the answer to a read.
    WritePart(u32),
    AnswerPart(u32),
}

#[derive(Default)]
pub(crate) struct Work {
    /// Messages whose bytes have left, in order, until the peer has taken them.
    pub(crate) in_flight: VecDeque<Sent>,
    pub(crate) waiting: VecDeque<Waiting>,
    pub(crate) operations: Operations,
    pub(crate) serving: Serving,
    pub(crate) holds: Vec<Hold>,
    pub(crate) fragment: Option<Fragment>,
    /// The last fragment was an answer, so that the next is a write's, if there is one.
    pub(crate) answered: bool,
}

impl Work {
    /// Whether nothing is open.
    pub(crate) fn is_empty(&self) -> bool {
        self.in_flight.is_empty()
            && self.waiting.is_empty()
            && self.operations.is_empty()
            && self.serving.is_empty()
            && self.holds.is_empty()
            && self.fragment.is_none()
    }

    /// Sets the deadline of everything of a connection.
    pub(crate) fn set_deadlines(&mut self, cell: &'static Connection, deadline: Option<Time>) {
        let set = |ending: &mut Ending| {
            if std::ptr::eq(ending.cell, cell) {
                ending.deadline = deadline;
            }
        };
        let set_sent = |sent: &mut Sent| {
            if let Sent::Message(ending) = sent {
                set(ending);
            }
        };
        self.in_flight.iter_mut().for_each(set_sent);
        self.waiting.iter_mut().for_each(|waiting| set_sent(&mut waiting.sent));
        for behind in self.holds.iter_mut().flat_map(|hold| &mut hold.behind) {
            if let Behind::Message(waiting) = behind {
                set_sent(&mut waiting.sent);
            }
        }
        self.operations.each(|operation| set(&mut operation.ending));
    }

    /// The hold of a connection.
    pub(crate) fn hold_of(&mut self, cell: &'static Connection) -> Option<&mut Hold> {
        self.holds.iter_mut().find(|hold| std::ptr::eq(hold.cell, cell))
    }
}
