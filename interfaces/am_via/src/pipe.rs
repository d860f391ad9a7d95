//! One VI of a channel: its buffers, its credits, its ring.

use crate::Core;
use crate::flow::{Class, Flow};
use crate::frame::{HEADER, Header, MESSAGE, Placed, UPDATE};
use crate::options::{Buffers, Options, Variant};
use crate::space::{Expected, Space};
use crate::watch::Watch;
use cci::{HeapBytes, Memory, SharedMemory};
use cci_am::Refused;
use cci_via::Part;
use cci_via::engine::{Completion, Token as Work};
use cci_via::{Access, Error, Op, Reliability, Remote, Segment, Tag, Task, ViAttributes};
use std::sync::Arc;

/// Bytes of the buffers of v1's pipes; the others have the middle one.
const SIZES: [u32; 3] = [128, 4_096, 8_192];
/// Pipes of v1.
pub(crate) const SHORT: usize = 0;
pub(crate) const MEDIUM: usize = 1;
pub(crate) const BULK: usize = 2;

/// What rides with a descriptor: two words, which go by registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) of: Of,
    /// The buffer, or the context of the operation.
    value: u64,
}

/// What a descriptor is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Of {
    /// A receive buffer.
    Receive,
    /// A send buffer.
    Send,
    /// A piece of bulk data, or immediate data alone.
    Piece,
    /// The last piece of bulk data.
    LastPiece,
}

impl Token {
    fn receive(buffer: u16) -> Self {
        Self { of: Of::Receive, value: buffer.into() }
    }

    fn send(buffer: u16) -> Self {
        Self { of: Of::Send, value: buffer.into() }
    }

    fn piece() -> Self {
        Self { of: Of::Piece, value: 0 }
    }

    fn last_piece(context: u64) -> Self {
        Self { of: Of::LastPiece, value: context }
    }

    /// The buffer of a receive or of a send.
    #[inline]
    pub(crate) fn buffer(self) -> u16 {
        self.value as u16
    }

    /// The context of the operation whose last piece it is.
    pub(crate) fn context(self) -> u64 {
        self.value
    }
}

impl Work for Token {
    fn complete(&mut self, _: &Completion) {}
}

/// What both ends of a pipe agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) size: u32,
    pub(crate) requests: u16,
    pub(crate) replies: u16,
    pub(crate) every: u16,
}

impl Shape {
    /// The shapes of the pipes of a channel.
    pub(crate) fn of(options: &Options) -> Vec<Self> {
        let shape = |size, requests: u16| {
            let replies = match options.buffers {
                Buffers::Double => requests,
                Buffers::Power => (1 << requests.clamp(2, 10)) - requests.clamp(2, 10),
            };
            let every = options.update_every.unwrap_or(requests / 4).max(1);
            Self { size, requests, replies, every }
        };
        let k = options.credits.clamp(1, 256);
        match options.variant {
            Variant::V1 => vec![shape(SIZES[SHORT], 8 * k), shape(SIZES[MEDIUM], k), shape(SIZES[BULK], k)],
            _ => vec![shape(SIZES[MEDIUM], k)],
        }
    }
}

/// Memory that the peer writes, and the peer's.
pub(crate) struct Ring {
    pub(crate) memory: Memory,
    pub(crate) handle: u32,
    pub(crate) expected: Expected,
    pub(crate) space: Space,
    /// The peer's, once it has told.
    pub(crate) peer: Option<u32>,
}

pub(crate) struct Pipe {
    pub(crate) vi: u32,
    pub(crate) is_connected: bool,
    pub(crate) shape: Shape,
    variant: Variant,
    /// Receive buffers, then send buffers.
    pub(crate) memory: Memory,
    handle: u32,
    receives: u16,
    pub(crate) free: Vec<u16>,
    pub(crate) flow: Flow,
    pub(crate) ring: Option<Ring>,
    /// Descriptors that have not come back.
    pub(crate) posted: u32,
}

const NO_RING: Error = Error::Resource("no memory for a ring; lower `ring`");

fn zeroes(len: usize) -> Memory {
    Memory::of_bytes(&Arc::new(HeapBytes::new(vec![0; len])))
}

/// Why a post was refused: the queue is full, or there is nothing to post to.
fn refused(why: Error) -> Refused {
    if matches!(why, Error::Resource(_)) { Refused::NoRoom } else { Refused::Gone }
}

/// The attributes of every VI.
pub(crate) fn attributes(tag: Tag) -> ViAttributes {
    let access = Access { write: true, read: true };
    ViAttributes { reliability: Reliability::Delivery, max_transfer: cci_via::MAX_TRANSFER, tag, access, qos: 0 }
}

impl Pipe {
    /// A VI with its buffers, and all its receives posted.
    pub(crate) fn new(
        core: &Core,
        tag: Tag,
        queues: (u32, u32),
        shape: Shape,
        options: &Options,
    ) -> Result<Self, Error> {
        let flow = Flow::new(shape.requests, shape.replies, shape.every);
        let messages = shape.requests + shape.replies;
        let (receives, sends) = (messages + 1 + flow.most_updates(), messages + flow.most_updates());
        let memory = zeroes((u32::from(receives + sends) * shape.size) as usize);
        let handle = core.register(memory.clone(), 0, tag, Access::default())?;
        let ring = match options.variant {
            Variant::V1 | Variant::V3 => None,
            Variant::V2 | Variant::V4 => {
                let size = options.ring.clamp(2 * shape.size, crate::frame::LARGEST_RING);
                // Peers of this host write such memory without a system call.
                let memory = SharedMemory::new(size as usize).map_err(|_| NO_RING)?.memory();
                let handle = core.register(memory.clone(), 0, tag, Access { write: true, read: false })?;
                Some(Ring { memory, handle, expected: Expected::new(size), space: Space::new(size), peer: None })
            }
        };
        let vi = core.create_vi(&attributes(tag), Some(queues.0), Some(queues.1))?;
        let variant = options.variant;
        let free = (0..sends).rev().collect();
        let mut pipe =
            Self { vi, is_connected: false, shape, variant, memory, handle, receives, free, flow, ring, posted: 0 };
        (0..receives).for_each(|buffer| pipe.post_receive(core, buffer));
        Ok(pipe)
    }

    /// Ends the VI, whose descriptors have all come back, and its memory.
    pub(crate) fn end(&self, core: &Core) {
        // A peer that copies at this moment keeps the memory until the NIC closes.
        let _ = core.destroy_vi(self.vi);
        let _ = core.deregister(self.handle, 0);
        if let Some(ring) = &self.ring {
            let _ = core.deregister(ring.handle, 0);
        }
    }

    pub(crate) fn longest(&self) -> usize {
        self.shape.size as usize - HEADER
    }

    #[inline]
    pub(crate) fn receive_offset(&self, buffer: u16) -> u64 {
        u64::from(buffer) * u64::from(self.shape.size)
    }

    #[inline]
    fn send_offset(&self, buffer: u16) -> u64 {
        self.receive_offset(self.receives) + u64::from(buffer) * u64::from(self.shape.size)
    }

    /// Where the body of a send buffer begins.
    pub(crate) fn body_of_send(&self, buffer: u16) -> u64 {
        self.send_offset(buffer) + HEADER as u64
    }

    /// Copies the body of a frame of `len` bytes out of a receive buffer.
    pub(crate) fn body(&self, offset: u64, len: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; len.checked_sub(HEADER)?];
        self.memory.copy_out(offset + HEADER as u64, &mut bytes).then_some(bytes)
    }

    /// Writes the header of a send buffer, which it always has room for.
    #[inline]
    fn head(&self, buffer: u16, header: Header) -> u64 {
        let address = self.send_offset(buffer);
        let is_inside = self.memory.copy_in(address, &header.emit());
        debug_assert!(is_inside, "a send buffer lies inside of its memory");
        address
    }

    /// Posts a receive; to a VI that is gone, nothing.
    #[inline]
    pub(crate) fn post_receive(&mut self, core: &Core, buffer: u16) {
        let segment = Segment { address: self.receive_offset(buffer), handle: self.handle, length: self.shape.size };
        let posted = core.post_receive(self.vi, None, Token::receive(buffer), |_, _, task| task.push(segment));
        self.posted += u32::from(posted.is_ok());
    }

    #[inline]
    fn post_send(&mut self, core: &Core, token: Token, read: impl FnOnce(&mut Task)) -> Result<(), Refused> {
        core.post_send(self.vi, None, token, |_, _, task| read(task)).map_err(|(_, why)| refused(why))?;
        self.posted += 1;
        Ok(())
    }

    /// Takes a credit and a send buffer.
    #[inline]
    pub(crate) fn claim(&mut self, class: Class) -> Result<u16, Refused> {
        let Some(&buffer) = self.free.last() else { return Err(Refused::NoRoom) };
        if !self.flow.take(class) {
            return Err(Refused::NoRoom);
        }
        self.free.pop();
        Ok(buffer)
    }

    /// Undoes [`Pipe::claim`].
    pub(crate) fn unclaim(&mut self, class: Class, buffer: u16) {
        self.flow.untake(class);
        self.free.push(buffer);
    }

    /// Writes into a send buffer, behind the header.
    #[inline]
    pub(crate) fn fill(&self, buffer: u16, offset: usize, bytes: &[u8]) -> bool {
        offset + bytes.len() <= self.longest()
            && self.memory.copy_in(self.send_offset(buffer) + (HEADER + offset) as u64, bytes)
    }

    /// Sends what lies in a claimed buffer. Refused: the buffer and the credit are still claimed.
    #[inline]
    #[expect(clippy::too_many_arguments, reason = "what a frame consists of")]
    pub(crate) fn launch<W: Watch>(
        &mut self,
        core: &Core,
        watch: &W,
        kind: u8,
        class: Class,
        order: u16,
        buffer: u16,
        len: usize,
    ) -> Result<(), Refused> {
        let back = self.flow.pay();
        let address = self.head(buffer, Header { kind, class, back, order });
        let length = (HEADER + len) as u32;
        let segment = Segment { address, handle: self.handle, length };
        watch.spent(Part::Build);
        let sent = match (&mut self.ring, self.variant) {
            (Some(Ring { space, peer: Some(handle), .. }), Variant::V2) if kind == MESSAGE => {
                let Some(offset) = space.take(length) else {
                    self.flow.owe(back);
                    return Err(Refused::NoRoom);
                };
                let (word, handle) = (Placed { offset, len: length }.word(), *handle);
                self.post_send(core, Token::send(buffer), |task| {
                    task.op = Op::Write(Remote { address: offset.into(), handle });
                    task.immediate = Some(word.into());
                    task.push(segment);
                })
            }
            (ring, _) => {
                if let Some(ring) = ring {
                    ring.space.pass();
                }
                self.post_send(core, Token::send(buffer), |task| task.push(segment))
            }
        };
        watch.spent(Part::PostSend);
        sent.inspect_err(|_| {
            self.flow.owe(back);
            if let Some(ring) = &mut self.ring {
                ring.space.untake();
            }
        })
    }

    /// Sends a message of 8 bytes as immediate data (v4).
    pub(crate) fn launch_word(&mut self, core: &Core, word: [u8; 8]) -> Result<(), Refused> {
        let Some(handle) = self.ring.as_ref().and_then(|ring| ring.peer) else { return Err(Refused::Gone) };
        if !self.flow.take(Class::Request) {
            return Err(Refused::NoRoom);
        }
        let sent = self.post_send(core, Token::piece(), |task| {
            task.op = Op::Write(Remote { address: 0, handle });
            task.immediate = Some(u64::from_le_bytes(word));
        });
        match &mut self.ring {
            Some(ring) if sent.is_ok() => ring.space.pass(),
            _ => self.flow.untake(Class::Request),
        }
        sent
    }

    /// Writes what lies in a claimed buffer into the peer's ring, and returns the immediate data
    /// that points there (v4): the last piece of bulk data carries it.
    pub(crate) fn place(&mut self, core: &Core, class: Class, buffer: u16, len: usize) -> Result<u64, Refused> {
        let length = (HEADER + len) as u32;
        let Some(Ring { space, peer: Some(handle), .. }) = &mut self.ring else { return Err(Refused::Gone) };
        let handle = *handle;
        let offset = space.take(length).ok_or(Refused::NoRoom)?;
        let back = self.flow.pay();
        let address = self.head(buffer, Header { kind: MESSAGE, class, back, order: 0 });
        let segment = Segment { address, handle: self.handle, length };
        let written = self.post_send(core, Token::send(buffer), |task| {
            task.op = Op::Write(Remote { address: offset.into(), handle });
            task.push(segment);
        });
        if let Err(why) = written {
            self.flow.owe(back);
            if let Some(ring) = &mut self.ring {
                ring.space.untake();
            }
            return Err(why);
        }
        Ok(u64::from(offset) << 32 | u64::from(length))
    }

    /// Moves bytes between registered memory of both sides, in pieces; the last one reports with
    /// `context`, and carries `immediate`.
    pub(crate) fn transfer(
        &mut self,
        core: &Core,
        transfer: &Pieces,
        is_write: bool,
        immediate: Option<u64>,
        context: u64,
    ) -> Result<(), Refused> {
        let mut done = 0;
        while done < transfer.len {
            let length = (transfer.len - done).min(cci_via::MAX_TRANSFER);
            let is_last = done + length == transfer.len;
            let remote = Remote { address: transfer.remote_offset + done, handle: transfer.remote };
            let address = transfer.local_offset + done;
            let segment = Segment { address, handle: transfer.local, length: length as u32 };
            let token = if is_last { Token::last_piece(context) } else { Token::piece() };
            self.post_send(core, token, |task| {
                task.op = if is_write { Op::Write(remote) } else { Op::Read(remote) };
                task.immediate = immediate.filter(|_| is_last);
                task.push(segment);
            })?;
            done += length;
        }
        Ok(())
    }

    /// Sends credits that are owed, if they are due. False: they are, and there is no buffer now.
    #[inline]
    #[must_use]
    pub(crate) fn update(&mut self, core: &Core) -> bool {
        !self.flow.is_due() || self.send_update(core)
    }

    #[inline(never)]
    fn send_update(&mut self, core: &Core) -> bool {
        let back = self.flow.pay();
        let sent = if self.variant == Variant::V2 {
            let handle = self.ring.as_ref().and_then(|ring| ring.peer).unwrap_or(0);
            let word = u64::from(back[0]) << 16 | u64::from(back[1]);
            self.post_send(core, Token::piece(), |task| {
                task.op = Op::Write(Remote { address: 0, handle });
                task.immediate = Some(word);
            })
        } else {
            self.free.pop().ok_or(Refused::NoRoom).and_then(|buffer| {
                let address = self.head(buffer, Header { kind: UPDATE, class: Class::Request, back, order: 0 });
                let segment = Segment { address, handle: self.handle, length: HEADER as u32 };
                let sent = self.post_send(core, Token::send(buffer), |task| task.push(segment));
                sent.inspect_err(|_| self.free.push(buffer))
            })
        };
        if sent.is_err() {
            self.flow.owe(back);
        }
        sent != Err(Refused::NoRoom)
    }

    /// The peer gives credits back, and with them the space of as many messages.
    #[inline]
    pub(crate) fn returned(&mut self, back: [u16; 2]) -> bool {
        if back == [0, 0] {
            return true;
        }
        let messages = usize::from(back[0]) + usize::from(back[1]);
        self.flow.returned(back) && self.ring.as_mut().is_none_or(|ring| ring.space.free(messages))
    }
}

/// What [`Pipe::transfer`] moves: handles of the VI Architecture, and offsets.
pub(crate) struct Pieces {
    pub(crate) local: u32,
    pub(crate) local_offset: u64,
    pub(crate) remote: u32,
    pub(crate) remote_offset: u64,
    pub(crate) len: u64,
}
