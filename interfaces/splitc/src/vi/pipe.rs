//! One VI to a rank: its buffers, its credits, and what waits for a buffer.

use super::watch::Watched;
use crate::frame::{Ask, HEADER, Header};
use crate::sys::Buffers;
use cci_via::engine::Completion;
use cci_via::{Access, Error, Part, Reliability, Segment, Tag, ViAttributes};
use std::collections::VecDeque;

/// What rides with a descriptor: its buffer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Token {
    Receive(u16),
    Send(u16),
}

impl cci_via::engine::Token for Token {
    fn complete(&mut self, _: &Completion) {}
}

pub(super) type Core = cci_via::engine::Core<Token>;

/// What both ends of a pipe have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Requests that may be under way.
    pub(super) credits: u16,
    /// Bytes of a message.
    pub(super) size: u32,
    /// Whether a message may have its payload elsewhere.
    pub(super) is_segmented: bool,
}

impl Shape {
    /// Stores after which credits go back by themselves.
    fn every(self) -> u32 {
        u32::from(self.credits / 4).max(1)
    }

    /// Requests and replies of the peer, and one whose descriptor is not posted again yet.
    pub(super) fn receives(self) -> u16 {
        2 * self.credits + 1
    }

    pub(super) fn sends(self) -> u16 {
        2 * self.credits
    }

    /// Descriptors of both queues.
    pub(super) fn descriptors(self) -> usize {
        usize::from(self.receives() + self.sends())
    }

    /// The longest payload.
    pub(super) fn longest(self) -> usize {
        self.size as usize - HEADER
    }
}

/// The payload of a message.
#[derive(Clone, Debug)]
pub(super) enum Body<'a> {
    Bytes(&'a [u8]),
    /// In registered memory.
    There(Segment),
}

/// A reply that found no buffer.
#[derive(Debug)]
struct Waiting {
    header: Header,
    bytes: Vec<u8>,
    there: Option<Segment>,
}

/// Why a message has not left.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unsent {
    /// No credit or no buffer now.
    NoRoom,
    /// The VI has ended.
    Gone,
}

pub(super) struct Pipe {
    pub(super) vi: u32,
    pub(super) rank: u32,
    shape: Shape,
    is_open: bool,
    /// Receives, then sends.
    buffers: Buffers,
    handle: u32,
    free: Vec<u16>,
    credits: u16,
    /// Credits of the peer that wait for a message to go back with.
    owed: u32,
    /// Requests of the peer that are not answered.
    open: u16,
    /// Whether stores were sent since the last flush.
    pub(super) has_stored: bool,
    waiting: VecDeque<Waiting>,
}

impl Pipe {
    pub(super) fn new(core: &Core, tag: Tag, queues: (u32, u32), rank: u32, shape: Shape) -> Result<Self, Error> {
        const NO_MEMORY: Error = Error::Resource("no memory for buffers");
        let buffers = Buffers::new(shape.descriptors() * shape.size as usize).ok_or(NO_MEMORY)?;
        let handle = core.register(buffers.memory(), 0, tag, Access::default())?;
        let attributes = ViAttributes { reliability: Reliability::Delivery, tag, ..ViAttributes::default() };
        let vi = core.create_vi(&attributes, Some(queues.0), Some(queues.1))?;
        let pipe = Self {
            vi,
            rank,
            shape,
            is_open: true,
            buffers,
            handle,
            free: (0..shape.sends()).collect(),
            credits: shape.credits,
            owed: 0,
            open: 0,
            has_stored: false,
            waiting: VecDeque::new(),
        };
        for buffer in 0..shape.receives() {
            pipe.post_receive(core, buffer)?;
        }
        Ok(pipe)
    }

    fn segment(&self, buffer: u16, len: usize) -> Segment {
        let address = u64::from(buffer) * u64::from(self.shape.size);
        Segment { address, handle: self.handle, length: len as u32 }
    }

    pub(super) fn post_receive(&self, core: &Core, buffer: u16) -> Result<(), Error> {
        let segment = self.segment(buffer, self.shape.size as usize);
        core.post_receive(self.vi, None, Token::Receive(buffer), |_, _, task| task.push(segment))
            .map_err(|(_, why)| why)
    }

    /// Has `take` read a message that has come.
    pub(super) fn read<R>(&self, buffer: u16, len: usize, take: impl FnOnce(&[u8]) -> R) -> R {
        let size = self.shape.size as usize;
        self.buffers.read(usize::from(buffer) * size, len.min(size), take)
    }

    /// Ends it. True: it was open.
    pub(super) fn close(&mut self, core: &Core) -> bool {
        self.waiting.clear();
        // Refused where the peer has ended it.
        let _ = core.disconnect(self.vi);
        std::mem::take(&mut self.is_open)
    }

    /// Credits have come back. False: more than there are.
    pub(super) fn returned(&mut self, count: u64) -> bool {
        let credits = u64::from(self.credits).saturating_add(count);
        let is_right = credits <= u64::from(self.shape.credits);
        if is_right {
            self.credits = credits as u16;
        }
        is_right
    }

    pub(super) fn sent(&mut self, buffer: u16) {
        self.free.push(buffer);
    }

    fn send(
        &mut self,
        core: &Core,
        watched: &Watched,
        header: &Header,
        body: &Body<'_>,
        back: u32,
    ) -> Result<(), Unsent> {
        if !self.is_open {
            return Err(Unsent::Gone);
        }
        let buffer = self.free.pop().ok_or(Unsent::NoRoom)?;
        watched.spent(Part::BookkeepSend);
        let at = self.shape.receives() + buffer;
        let start = usize::from(at) * self.shape.size as usize;
        self.buffers.put(start, &header.emit());
        let mut len = HEADER;
        if let Body::Bytes(bytes) = body {
            debug_assert!(bytes.len() <= self.longest(), "a payload has room in its buffer");
            self.buffers.put(start + HEADER, bytes);
            len += bytes.len();
        }
        let own = self.segment(at, len);
        watched.spent(Part::Build);
        let posted = core.post_send(self.vi, None, Token::Send(buffer), |_, _, task| {
            task.push(own);
            if let Body::There(segment) = body {
                task.push(*segment);
            }
            task.immediate = (back > 0).then_some(u64::from(back));
        });
        watched.spent(Part::PostSend);
        // The queue has room for all buffers.
        posted.map_err(|_| Unsent::Gone)
    }

    /// Sends a request.
    pub(super) fn ask(
        &mut self,
        core: &Core,
        watched: &Watched,
        header: &Header,
        body: &Body<'_>,
    ) -> Result<(), Unsent> {
        if self.credits == 0 && self.is_open {
            return Err(Unsent::NoRoom);
        }
        self.send(core, watched, header, body, self.owed)?;
        self.credits -= 1;
        self.owed = 0;
        self.has_stored |= header.ask == Ask::Store;
        Ok(())
    }

    /// A request has come. False: the peer had no credit for it.
    pub(super) fn begin(&mut self) -> bool {
        self.open += 1;
        self.open <= self.shape.credits
    }

    /// Answers a request, or puts the answer behind those that wait for a buffer. The credit of the
    /// request goes back with it.
    pub(super) fn answer(
        &mut self,
        core: &Core,
        watched: &Watched,
        header: &Header,
        body: &Body<'_>,
    ) -> Result<(), Unsent> {
        let sent =
            if self.waiting.is_empty() { self.send_answer(core, watched, header, body) } else { Err(Unsent::NoRoom) };
        if sent != Err(Unsent::NoRoom) {
            return sent;
        }
        let (bytes, there) = match body {
            Body::Bytes(bytes) => (bytes.to_vec(), None),
            Body::There(segment) => (Vec::new(), Some(*segment)),
        };
        self.waiting.push_back(Waiting { header: *header, bytes, there });
        Ok(())
    }

    fn send_answer(&mut self, core: &Core, watched: &Watched, header: &Header, body: &Body<'_>) -> Result<(), Unsent> {
        self.send(core, watched, header, body, self.owed + 1)?;
        self.owed = 0;
        self.open -= 1;
        Ok(())
    }

    /// A store has been done: its credit goes back with others.
    pub(super) fn stored(&mut self, core: &Core, watched: &Watched) -> Result<(), Unsent> {
        self.owed += 1;
        self.open -= 1;
        self.give_back(core, watched)
    }

    /// Gives credits back where they are many and nothing else takes them along.
    pub(super) fn give_back(&mut self, core: &Core, watched: &Watched) -> Result<(), Unsent> {
        if self.owed < self.shape.every() || !self.waiting.is_empty() {
            return Ok(());
        }
        match self.send(core, watched, &Header { ask: Ask::Wake, number: 0, address: 0 }, &Body::Bytes(&[]), self.owed)
        {
            Ok(()) => {
                self.owed = 0;
                Ok(())
            }
            // The next poll does it.
            Err(Unsent::NoRoom) => Ok(()),
            Err(Unsent::Gone) => Err(Unsent::Gone),
        }
    }

    /// Sends answers that waited for a buffer, as far as there are some now.
    pub(super) fn flush(&mut self, core: &Core, watched: &Watched) -> Result<(), Unsent> {
        while let Some(Waiting { header, bytes, there }) = self.waiting.pop_front() {
            let body = there.map_or(Body::Bytes(&bytes), Body::There);
            match self.send_answer(core, watched, &header, &body) {
                Ok(()) => {}
                Err(Unsent::NoRoom) => {
                    self.waiting.push_front(Waiting { header, bytes, there });
                    return Ok(());
                }
                Err(Unsent::Gone) => return Err(Unsent::Gone),
            }
        }
        self.give_back(core, watched)
    }

    pub(super) fn longest(&self) -> usize {
        self.shape.longest()
    }

    pub(super) fn is_segmented(&self) -> bool {
        self.shape.is_segmented
    }
}
