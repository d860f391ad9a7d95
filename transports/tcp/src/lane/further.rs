//! The further streams of a lane, and the parts of operations that come on any stream.

use super::sum::Sum;
use super::work::Fragment;
use crate::frame::{ANSWER_PART, HEADER, HELLO, MOST_STREAMS, SUM, WRITE_PART};
use crate::seal::Sealed;
use cci_proto::Time;
use rustix::fd::OwnedFd;

/// Bytes of the longest head of a part, and of those that each has.
const LONGEST_HEAD: usize = HEADER + WRITE_PART + SUM;
pub(crate) const HEAD: usize = HEADER + ANSWER_PART;

/// A part whose bytes come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// The peer writes; otherwise it answers a read.
    pub(crate) is_write: bool,
    pub(crate) operation: u32,
    /// Offset of the next byte: of a write in the registration, of a read in the operation.
    pub(crate) at: u64,
    /// Bytes of all of it.
    pub(crate) len: u64,
}

impl Part {
    /// So many bytes later.
    pub(crate) fn after(self, bytes: usize) -> Self {
        // What was refused may begin anywhere.
        Self { at: self.at.wrapping_add(bytes as u64), ..self }
    }

    /// Bytes of the head of another part like it.
    pub(crate) fn head_len(&self) -> usize {
        HEADER + if self.is_write { WRITE_PART } else { ANSWER_PART }
    }
}

/// Where a further stream is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamPhase {
    /// It is dialed at this time.
    Paused(Time),
    /// It waits for the connection, since this time.
    Dialing(Time),
    /// It waits for the peer's HELLO, since this time.
    Greeting(Time),
    Open,
    /// Dialing has failed too often.
    GivenUp,
}

/// A further stream of a lane.
pub(crate) struct Stream {
    pub(crate) phase: StreamPhase,
    /// `None`: it is not dialed.
    pub(crate) socket: Option<OwnedFd>,
    /// How often dialing has failed.
    pub(crate) attempts: u32,
    /// The first bytes of a head, or of a HELLO.
    pub(crate) head: [u8; LONGEST_HEAD],
    pub(crate) head_len: usize,
    /// The part whose bytes come now, how many are left, and their check.
    pub(crate) part: Option<Part>,
    pub(crate) left: usize,
    pub(crate) sum: Option<Sum>,
    /// The part that has begun to leave.
    pub(crate) fragment: Option<Fragment>,
    /// The stream takes no more bytes for now.
    pub(crate) is_blocked: bool,
    /// What it has if it is sealed.
    pub(crate) seal: Option<Box<Sealed>>,
}

impl Stream {
    pub(crate) fn new(phase: StreamPhase, socket: Option<OwnedFd>) -> Self {
        Self {
            phase,
            socket,
            attempts: 0,
            head: [0; LONGEST_HEAD],
            head_len: 0,
            part: None,
            left: 0,
            sum: None,
            fragment: None,
            is_blocked: false,
            seal: None,
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.phase == StreamPhase::Open
    }

    /// The stream ends, or is dialed once more: nothing of it is left.
    pub(crate) fn begin_again(&mut self, phase: StreamPhase) {
        *self = Self { attempts: self.attempts, ..Self::new(phase, None) };
    }
}

/// The further streams of a lane.
pub(crate) struct Further {
    /// What a stream shows to join.
    pub(crate) offer: [u64; 2],
    /// By their numbers less 1. `None`: it has not joined, or has ended.
    pub(crate) streams: Vec<Option<Box<Stream>>>,
    /// Why there are fewer than both sides take.
    pub(crate) shortage: Option<String>,
    /// One has ended: the lane ends at this time.
    pub(crate) ends_at: Option<Time>,
}

impl Further {
    /// For so many streams of a lane, with the first.
    pub(crate) fn new(offer: [u64; 2], streams: u64) -> Self {
        let count = streams.min(MOST_STREAMS).saturating_sub(1);
        Self { offer, streams: (0..count).map(|_| None).collect(), shortage: None, ends_at: None }
    }

    pub(crate) fn open(&self) -> impl Iterator<Item = &Stream> {
        self.streams.iter().flatten().map(|stream| &**stream).filter(|stream| stream.is_open())
    }
}

const _: () = assert!(HELLO <= LONGEST_HEAD);
