//! The mapping: what the engine of Active Messages calls.

use crate::channel::{Phase, ViaChannel};
use crate::door::Door;
use crate::flow::Class;
use crate::frame::MESSAGE;
use crate::options::{Options, Variant};
use crate::pipe::{Pieces, Shape};
use crate::regions::{Regions, ViaRegion, number};
use crate::table::Table;
use crate::watch::{Unwatched, Watch};
use crate::{Core, bulk, transfers};
use cci::{Device, Memory, OpenError, PollError, RegisterError, Rights, RmaHandle, Status};
use cci_am::{Arrived, Asking, Incoming, Mapping, Outcome, Refused, Room, Transfer};
use cci_via::Part;
use cci_via::{Error, MAX_DESCRIPTORS, MAX_QUEUE_ENTRIES, MAX_TRANSFER, Tag};
use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Descriptors of a VI that bulk data leaves to messages.
const FOR_MESSAGES: u64 = 1_536;

/// Active Messages over a NIC of the VI Architecture, opened on a device of CCI. One thread at a
/// time uses it.
///
/// # Example
///
/// ```
/// use cci_am::Mapping;
/// use cci_am_via::{Options, Variant, ViaMapping};
///
/// let device = cci::Context::new()?.default_device()?.clone();
/// let mapping = ViaMapping::open(&device, &Options::new(Variant::V1))?;
/// assert!(mapping.name().starts_with("via://"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ViaMapping<W: Watch = Unwatched> {
    pub(crate) watch: W,
    pub(crate) core: Arc<Core>,
    pub(crate) tag: Tag,
    pub(crate) options: Options,
    pub(crate) shapes: Vec<Shape>,
    /// Completion queues of sends and of receives.
    pub(crate) sends: u32,
    pub(crate) receives: u32,
    pub(crate) regions: Regions,
    pub(crate) table: RefCell<Table>,
    pub(crate) door: RefCell<Door>,
    name: String,
}

fn not_opened(why: Error) -> OpenError {
    OpenError::new(Status::Error, why.to_string())
}

impl ViaMapping {
    /// Opens a NIC on a device of CCI, and listens for peers.
    ///
    /// # Errors
    ///
    /// As [`cci::Endpoint::open`]; or no memory, no descriptor, or no port is left.
    pub fn open(device: &Device, options: &Options) -> Result<Self, OpenError> {
        Self::watched(device, options, Unwatched)
    }
}

impl<W: Watch> ViaMapping<W> {
    /// As [`ViaMapping::open`], and tells `watch` what it does.
    ///
    /// # Errors
    ///
    /// As [`ViaMapping::open`].
    pub fn watched(device: &Device, options: &Options, watch: W) -> Result<Self, OpenError> {
        let core = Arc::new(Core::open(device)?);
        let tag = core.create_tag().map_err(not_opened)?;
        let sends = core.create_queue(MAX_QUEUE_ENTRIES).map_err(not_opened)?;
        let receives = core.create_queue(MAX_QUEUE_ENTRIES).map_err(not_opened)?;
        let (door, name) = Door::open(&core).map_err(not_opened)?;
        let (regions, table) = (Regions::default(), RefCell::default());
        let (options, shapes, door) = (options.clone(), Shape::of(options), RefCell::new(door));
        Ok(Self { watch, core, tag, options, shapes, sends, receives, regions, table, door, name })
    }

    /// Sends a message by the pipe for its length.
    #[inline]
    fn put(&self, at: ViaChannel, class: Class, message: &[u8]) -> Result<(), Refused> {
        self.watch.spent(Part::Act);
        let mut table = self.table.borrow_mut();
        let mut channel = table.get(at).filter(|channel| channel.phase == Phase::Open).ok_or(Refused::Gone)?;
        if channel.is_held_up() {
            return Err(Refused::NoRoom);
        }
        let (index, order) = (channel.pipe_for(message.len()), channel.next_order());
        if self.options.variant == Variant::V4
            && class == Class::Request
            && let Ok(word) = message.try_into()
        {
            return channel.pipes[index].launch_word(&self.core, word);
        }
        if channel.pipes[index].free.is_empty() {
            drop(table);
            self.reap_all();
            table = self.table.borrow_mut();
            channel = table.get(at).ok_or(Refused::Gone)?;
        }
        let pipe = &mut channel.pipes[index];
        let buffer = pipe.claim(class)?;
        self.watch.spent(Part::BookkeepSend);
        if !pipe.fill(buffer, 0, message) {
            pipe.unclaim(class, buffer);
            return Err(Refused::Gone);
        }
        let sent = pipe.launch(&self.core, &self.watch, MESSAGE, class, order, buffer, message.len());
        match sent {
            Ok(()) => channel.advance_order(),
            Err(_) => pipe.unclaim(class, buffer),
        }
        sent
    }

    /// Bulk data of v1: it is cut into messages.
    fn put_bulk(&self, at: ViaChannel, outgoing: transfers::Outgoing) -> Result<(), Refused> {
        let mut table = self.table.borrow_mut();
        let channel = table.get(at).filter(|channel| channel.phase == Phase::Open).ok_or(Refused::Gone)?;
        if channel.is_held_up() {
            return Err(Refused::NoRoom);
        }
        if let Some(bulk) = &mut channel.bulk {
            bulk.queue.push_back(outgoing);
        }
        drop(table);
        self.pump(at);
        Ok(())
    }
}

/// Whether bulk data in so many pieces finds descriptors. It never does if there are too many.
fn has_descriptors(posted: u32, len: u64) -> Result<(), Refused> {
    let pieces = len.div_ceil(MAX_TRANSFER);
    let most = MAX_DESCRIPTORS as u64 - FOR_MESSAGES;
    if pieces > most {
        return Err(Refused::Gone);
    }
    if u64::from(posted) + pieces > MAX_DESCRIPTORS as u64 - 2 { Err(Refused::NoRoom) } else { Ok(()) }
}

impl<W: Watch> Mapping for ViaMapping<W> {
    type Channel = ViaChannel;
    type Region = ViaRegion;
    type Room<'e> = ViaRoom<'e, W>;
    type Asking<'e> = ViaAsking<'e, W>;

    fn name(&self) -> &str {
        &self.name
    }

    fn connect(&self, name: &str, hello: &[u8], context: u64) -> Result<(), String> {
        self.open_channel(name, hello, context)
    }

    fn close(&self, channel: ViaChannel) {
        self.table.borrow_mut().close(&self.core, channel, true);
    }

    fn longest(&self, channel: ViaChannel) -> usize {
        let mut table = self.table.borrow_mut();
        let pipe = table.get(channel).and_then(|channel| channel.pipes.get(crate::pipe::MEDIUM.min(channel.last())));
        pipe.map_or(0, crate::pipe::Pipe::longest)
    }

    #[inline]
    fn send(&self, channel: ViaChannel, message: &[u8], _: u64) -> Result<(), Refused> {
        self.put(channel, Class::Request, message)
    }

    #[inline]
    fn reply(&self, channel: ViaChannel, message: &[u8], _: u64) -> Result<(), Refused> {
        self.put(channel, Class::Reply, message)
    }

    fn reserve(&self, channel: ViaChannel, len: usize) -> Result<ViaRoom<'_, W>, Refused> {
        self.reap_all();
        let mut table = self.table.borrow_mut();
        let found = table.get(channel).filter(|channel| channel.phase == Phase::Open).ok_or(Refused::Gone)?;
        if found.is_held_up() {
            return Err(Refused::NoRoom);
        }
        let at = found.pipe_for(len);
        let pipe = &mut found.pipes[at];
        if len > pipe.longest() {
            return Err(Refused::Gone);
        }
        let buffer = pipe.claim(Class::Request)?;
        Ok(ViaRoom { mapping: self, channel, pipe: at, buffer: Some(buffer), capacity: len, len: 0 })
    }

    fn register(&self, memory: &Memory, rights: Rights) -> Result<ViaRegion, RegisterError> {
        ViaRegion::new(&self.core, &self.regions, memory, self.tag, rights)
    }

    fn handle(region: &ViaRegion) -> &RmaHandle {
        &region.handle
    }

    fn deregister(&self, region: ViaRegion) -> Result<(), (ViaRegion, RegisterError)> {
        region.deregister()
    }

    fn write(&self, at: ViaChannel, transfer: &Transfer<'_>, message: &[u8], context: u64) -> Result<(), Refused> {
        let (local, remote) = (number(transfer.local), number(transfer.remote));
        let Transfer { local_offset, remote_offset, len, .. } = *transfer;
        if self.options.variant == Variant::V1 {
            let memory = self.regions.get(local, Rights::NONE).ok_or(Refused::Gone)?;
            let write = Some((message.to_vec(), context));
            let outgoing =
                transfers::Outgoing { memory, offset: local_offset, number: remote, remote_offset, left: len, write };
            return self.put_bulk(at, outgoing);
        }
        self.reap_all();
        let mut table = self.table.borrow_mut();
        let channel = table.get(at).filter(|channel| channel.phase == Phase::Open).ok_or(Refused::Gone)?;
        let pipe = &mut channel.pipes[0];
        has_descriptors(pipe.posted, len)?;
        let class = Class::Request;
        let buffer = pipe.claim(class)?;
        pipe.fill(buffer, 0, message);
        let pieces = Pieces { local, local_offset, remote, remote_offset, len };
        let (core, len) = (&self.core, message.len());
        let sent = match self.options.variant {
            // The immediate data of the last piece brings the message, which is in place by then.
            Variant::V4 => pipe
                .place(core, class, buffer, len)
                .and_then(|word| pipe.transfer(core, &pieces, true, Some(word), context)),
            _ => pipe
                .transfer(core, &pieces, true, None, context)
                .and_then(|()| pipe.launch(core, &self.watch, MESSAGE, class, 0, buffer, len)),
        };
        sent.inspect_err(|_| pipe.unclaim(class, buffer))
    }

    fn read(&self, at: ViaChannel, transfer: &Transfer<'_>, context: u64) -> Result<(), Refused> {
        let (local, remote) = (number(transfer.local), number(transfer.remote));
        let Transfer { local_offset, remote_offset, len, .. } = *transfer;
        self.reap_all();
        let mut table = self.table.borrow_mut();
        let channel = table.get(at).filter(|channel| channel.phase == Phase::Open).ok_or(Refused::Gone)?;
        if let Some(bulk) = &mut channel.bulk {
            if !bulk.queue.is_empty() {
                return Err(Refused::NoRoom);
            }
            bulk.last_read = bulk.last_read.wrapping_add(1);
            let number = bulk.last_read;
            let memory = self.regions.get(local, Rights::NONE).ok_or(Refused::Gone)?;
            let read = transfers::Incoming { number, memory, offset: local_offset, len, came: 0, context };
            return bulk::ask(channel, &self.core, read, remote, remote_offset);
        }
        let pipe = &mut channel.pipes[0];
        has_descriptors(pipe.posted, len)?;
        let pieces = Pieces { local, local_offset, remote, remote_offset, len };
        pipe.transfer(&self.core, &pieces, false, None, context)
    }

    #[inline]
    fn poll<'e>(
        &'e self,
        most: usize,
        mut take: impl FnMut(Incoming<'_, ViaChannel, ViaAsking<'e, W>>),
    ) -> Result<usize, PollError> {
        Ok(self.poll_all(most, &mut take))
    }

    fn wait<'e>(
        &'e self,
        limit: Duration,
        mut take: impl FnMut(Incoming<'_, ViaChannel, ViaAsking<'e, W>>),
    ) -> Result<usize, PollError> {
        Self::wait_any(&[self], limit, |_, incoming| take(incoming))
    }

    /// There is no waker.
    fn take_wake(&self) -> bool {
        false
    }

    fn wait_any<'e>(
        mappings: &[&'e Self],
        limit: Duration,
        mut take: impl FnMut(usize, Incoming<'_, ViaChannel, ViaAsking<'e, W>>),
    ) -> Result<usize, PollError> {
        let deadline = Instant::now().checked_add(limit);
        loop {
            for (at, mapping) in mappings.iter().enumerate() {
                mapping.look_for_peers();
                let found = mapping.poll_all(1, &mut |incoming| take(at, incoming));
                if found > 0 {
                    return Ok(found);
                }
            }
            let left = deadline.map_or(limit, |deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Ok(0);
            }
            Self::sleep(mappings, left);
        }
    }
}

impl<W: Watch> fmt::Debug for ViaMapping<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ViaMapping({}, {})", self.options.variant.name(), self.name)
    }
}

/// Room for a message of a [`ViaMapping`]: a send buffer.
///
/// # Example
///
/// ```
/// use cci_am::Room;
///
/// fn write(room: &mut cci_am_via::ViaRoom<'_>) -> bool {
///     room.write_at(0, b"in place")
/// }
/// ```
pub struct ViaRoom<'e, W: Watch = Unwatched> {
    mapping: &'e ViaMapping<W>,
    channel: ViaChannel,
    pipe: usize,
    buffer: Option<u16>,
    capacity: usize,
    /// Up to the last byte that was written.
    len: usize,
}

impl<W: Watch> Room for ViaRoom<'_, W> {
    fn write_at(&mut self, offset: usize, bytes: &[u8]) -> bool {
        let mut table = self.mapping.table.borrow_mut();
        let Some(channel) = table.get(self.channel) else { return false };
        let end = offset.saturating_add(bytes.len());
        let is_written = end <= self.capacity
            && self.buffer.is_some_and(|buffer| channel.pipes[self.pipe].fill(buffer, offset, bytes));
        if is_written {
            self.len = self.len.max(end);
        }
        is_written
    }

    fn send(mut self, _: u64) -> Result<(), (Refused, Self)> {
        let mapping = self.mapping;
        let mut table = mapping.table.borrow_mut();
        let Some(channel) = table.get(self.channel).filter(|channel| channel.phase == Phase::Open) else {
            drop(table);
            return Err((Refused::Gone, self));
        };
        let order = channel.next_order();
        let Some(buffer) = self.buffer else {
            drop(table);
            return Err((Refused::Gone, self));
        };
        let pipe = &mut channel.pipes[self.pipe];
        match pipe.launch(&mapping.core, &mapping.watch, MESSAGE, Class::Request, order, buffer, self.len) {
            Ok(()) => {
                channel.advance_order();
                self.buffer = None;
                drop(table);
                Ok(())
            }
            Err(why) => {
                drop(table);
                Err((why, self))
            }
        }
    }
}

impl<W: Watch> Drop for ViaRoom<'_, W> {
    /// A room that was not sent gives its buffer and its credit back.
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer
            && let Some(channel) = self.mapping.table.borrow_mut().get(self.channel)
        {
            channel.pipes[self.pipe].unclaim(Class::Request, buffer);
        }
    }
}

impl<W: Watch> fmt::Debug for ViaRoom<'_, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ViaRoom({} bytes)", self.len)
    }
}

/// A peer that asks a [`ViaMapping`] for a channel.
///
/// # Example
///
/// ```
/// use cci_am::Asking;
///
/// fn turn_away(peer: cci_am_via::ViaAsking<'_>) {
///     peer.reject();
/// }
/// ```
pub struct ViaAsking<'e, W: Watch = Unwatched> {
    pub(crate) mapping: &'e ViaMapping<W>,
    pub(crate) channel: ViaChannel,
    pub(crate) hello: Vec<u8>,
}

impl<W: Watch> Asking for ViaAsking<'_, W> {
    fn hello(&self) -> Vec<u8> {
        self.hello.clone()
    }

    fn accept(self, context: u64) -> bool {
        self.mapping.admit(self.channel, context)
    }

    fn reject(self) {
        self.mapping.close(self.channel);
    }
}

impl<W: Watch> fmt::Debug for ViaAsking<'_, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ViaAsking({} bytes)", self.hello.len())
    }
}

/// What the engine gets of a message.
#[inline]
pub(crate) fn message<'m, 'e, W: Watch>(
    context: u64,
    bytes: cci_am::Payload<'m>,
) -> Incoming<'m, ViaChannel, ViaAsking<'e, W>> {
    Incoming::Message(context, Arrived::new(bytes))
}

/// The end of an operation.
pub(crate) fn ended<'m, 'e, W: Watch>(context: u64, outcome: Outcome) -> Incoming<'m, ViaChannel, ViaAsking<'e, W>> {
    Incoming::Ended(context, outcome)
}
