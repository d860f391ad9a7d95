//! Sending, RMA, and when frames leave (`docs/design/reliable.md`).

use super::Reliable;
use super::deferred::index_of;
use super::host::HostCtx;
use super::operation_table::{Local, Operation, Operations};
use super::registrations::FrameMemory;
use crate::{Link, Outgoing};
use cci_mem::memory::Memory;
use cci_mem::source::Source;
use cci_mem::sync::Ordering;
use cci_proto::engine::{Index, Post, Target, Transmit};
use cci_proto::{Access, Attribute, Rights, RmaError, SendError, Time, wire};
use cci_transport::{Connection, Core, Message, Posted, Rma, Slot};

/// A program that sends again within this time, nanoseconds, sends a stream of messages.
const STREAM_GAP: u64 = 10_000;
/// How long empty calls leave waiting messages in the coalescer, nanoseconds. A program that polls
/// between any two messages sends a stream too.
const HOLD: u64 = 2_000;
/// Waiting messages for each reading of the clock, which costs as much as a tenth of a message.
const CLOCK_EVERY: u32 = 8;
/// Messages that are sent at once after a pause in which none was sent.
const SINGLE_SENDS: u32 = 4;
/// The least such pause, nanoseconds.
const PAUSE: u64 = 100_000;
/// Most messages that wait: about as many as a fast processor sends in [`STREAM_GAP`]. With half as
/// many, each message of a stream takes a fifth longer, for its share of the system call.
const MOST_MESSAGES: u32 = 128;
/// Most bytes that wait.
const MOST_BYTES: usize = 32 << 10;
/// Most bursts given to the link in one call, so that a long transfer does not hold the lock.
const ROUNDS: u32 = 4;

/// The coalescer: decides which messages wait for others, to share a frame and a system call.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Coalescer {
    /// Messages that wait.
    waiting: u32,
    /// Their bytes.
    bytes: usize,
    /// When the first of them began to wait.
    since: Time,
    /// When a call of the program last sent frames.
    sent_at: Time,
    /// When the program last sent a message.
    last: Time,
    /// Messages since the last pause.
    count: u32,
    /// A message has arrived since `sent_at`: the program may be answering it. Acknowledgements do
    /// not count, because the one of a single message would send the next message at once, and no
    /// messages would be coalesced.
    received: bool,
}

impl Coalescer {
    /// Returns the time of a message. In a stream the clock is not read for each one.
    #[inline]
    fn time(&self, clock: impl FnOnce() -> Time) -> Time {
        if self.waiting.is_multiple_of(CLOCK_EVERY) { clock() } else { self.last }
    }

    /// Adds a message. True: all waiting messages must be sent now.
    #[inline]
    fn is_due(&mut self, now: Time, len: usize, urgent: bool) -> bool {
        if self.waiting == 0 {
            self.since = now;
        }
        self.waiting += 1;
        self.bytes += len;
        self.count = if now.since(self.last) > PAUSE { 1 } else { self.count.saturating_add(1) };
        self.last = now;
        urgent
            || self.count <= SINGLE_SENDS
            || self.waiting == 1 && (self.received || now.since(self.sent_at) > STREAM_GAP)
            || now.since(self.since) > STREAM_GAP
            || self.waiting >= MOST_MESSAGES
            || self.bytes >= MOST_BYTES
    }

    /// Removes the last message, which was refused.
    fn withdraw(&mut self, len: usize) {
        self.waiting -= 1;
        self.bytes -= len;
    }

    /// Records that a call of the program sends all waiting messages.
    #[inline]
    fn on_sent(&mut self, now: Time) {
        (self.waiting, self.bytes) = (0, 0);
        (self.sent_at, self.received) = (now, false);
    }

    /// Records that a message has arrived.
    #[inline]
    pub(super) fn on_received(&mut self) {
        self.received = true;
    }

    /// Whether a message waits.
    #[inline]
    pub(super) fn is_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// Whether messages wait that an empty call must not send yet.
    #[inline]
    pub(super) fn is_holding(&self, now: Time) -> bool {
        self.waiting > 0 && now.since(self.since) < HOLD
    }
}

impl<L: Link> Reliable<L> {
    /// Gives the engine's frames to the link, as far as it takes them. `idle`: the program has had
    /// its chance to answer.
    pub(super) fn transmit(&mut self, core: &mut Core, now: Time, idle: bool) {
        self.coalescer.waiting = 0;
        self.coalescer.bytes = 0;
        for _ in 0..ROUNDS {
            let mut full = self.more;
            if self.outbox.is_empty() {
                full = self.fill(core, now, idle);
            } else if self.blocked && !self.link.is_writable() {
                return;
            }
            if !self.outbox.is_empty() {
                self.blocked = !self.outbox.flush(&mut self.link);
            }
            self.more = full;
            if self.blocked || !full {
                return;
            }
        }
    }

    /// Whether there may be something to send.
    #[inline]
    pub(super) fn has_to_transmit(&self, now: Time, idle: bool) -> bool {
        self.coalescer.is_waiting() || self.more || !self.outbox.is_empty() || self.engine.may_transmit(now, idle)
    }

    /// Fills the outbox with frames of the engine. True: there may be more than fit.
    fn fill(&mut self, core: &mut Core, now: Time, idle: bool) -> bool {
        self.host.registry.now = now;
        let mut host = HostCtx { state: &mut self.host, core };
        while let Some(space) = self.outbox.space() {
            let Some(transmit) = self.engine.poll_transmit(now, idle, space, &mut host) else { return false };
            self.outbox.push(&transmit, &host.state.registry, host.state.keys.as_deref_mut());
        }
        true
    }

    /// Adds a message or an RMA whose operation is about to begin. True: all that waits must be
    /// sent now.
    #[inline]
    fn is_due(&mut self, now: Time, len: usize, urgent: bool) -> bool {
        let is_only = self.host.operations.count() == 0;
        self.coalescer.is_due(now, len, urgent || is_only)
    }

    /// Sends all that waits.
    fn send_all(&mut self, core: &mut Core, now: Time) {
        self.coalescer.on_sent(now);
        self.transmit(core, now, false);
        self.run_deferred(core, now);
    }

    /// Sends a single message at once, if nothing must be sent before it. False: it waits in the
    /// engine.
    #[inline]
    fn send_now(
        &mut self,
        core: &mut Core,
        now: Time,
        index: Index,
        post: &Post<'_, Message<'_>>,
    ) -> Result<bool, SendError> {
        let Self { engine, link, host, outbox, .. } = self;
        let is_free = outbox.is_empty() && !self.blocked && !self.more;
        let Some(space) = outbox.space().filter(|_| is_free) else {
            return engine.send(now, index, post.parts, post.op, post.prompt).map(|()| false);
        };
        // A sealed frame: its length. One that the keys refuse to seal is lost.
        let (mut taken, mut sealed) = (0, None);
        let leave = |transmit: &Transmit<FrameMemory>, frame: &mut [u8], host: &mut HostCtx<'_>| {
            let mut len = transmit.len;
            if let Some(seal) = &transmit.seal {
                let keys = host.state.keys.as_deref_mut();
                sealed = Some(keys.and_then(|keys| keys.seal_frame(seal, frame, len)));
                len = sealed.flatten().unwrap_or(0);
                if len == 0 {
                    return;
                }
            } else {
                wire::seal(&mut frame[..len], 0, |crc| crc);
            }
            let head = &frame[..len];
            taken = link.send_burst(&[Outgoing { to: transmit.to, head, piece: None, probe: false }]);
        };
        let sent = engine.send_now(now, index, post, space, &mut HostCtx { state: host, core }, leave)?;
        let Some(transmit) = sent else { return Ok(false) };
        if taken == 0 {
            match sealed {
                None => outbox.push(&transmit, &host.registry, None),
                Some(Some(len)) => outbox.keep_sealed(&transmit, len),
                Some(None) => {}
            }
            self.blocked = !outbox.is_empty();
        }
        self.coalescer.on_sent(now);
        Ok(true)
    }

    pub(super) fn send_message(
        &mut self,
        core: &mut Core,
        cell: &'static Connection,
        message: Message<'_>,
        posted: Posted,
    ) -> Result<Option<&'static Slot>, SendError> {
        if cell.attribute().is_multicast() {
            return self.send_to_group(core, cell, message, posted);
        }
        let slot = core.take_send().ok_or(SendError::NoBuffers)?;
        let now = self.coalescer.time(|| self.link.now());
        self.on_send_call(now);
        let op = Operations::send(slot);
        let (len, is_waited) = (message.len(), posted == Posted::Waited);
        let is_due = self.is_due(now, len, is_waited);
        let sent = match &message {
            Message::One(_) if is_due && self.coalescer.waiting == 1 => {
                self.send_now(core, now, index_of(cell), &Post { parts: &message, op, prompt: is_waited })
            }
            _ => self.engine.send(now, index_of(cell), &message, op, is_waited).map(|()| false),
        };
        let has_left = match sent {
            Ok(has_left) => has_left,
            Err(error) => {
                self.coalescer.withdraw(len);
                core.release(slot);
                if error == SendError::NoBuffers {
                    self.on_refused(core);
                }
                return Err(error);
            }
        };
        // Entered after the message was sent, which saves it time: its acknowledgement arrives in a
        // later call.
        self.host.operations.begin(Operation { slot, cell, posted, local: None, is_own: false, spoilt: false });
        cell.on_begun();
        cell.counters.on_sent();
        core.counters().on_sent(len);
        if is_due && !has_left {
            self.send_all(core, now);
        }
        Ok(is_waited.then_some(slot))
    }

    /// Copies the message of an RMA, and returns its length.
    fn gather(&mut self, message: Source<'_>) -> usize {
        if self.gathered.len() < message.len() {
            self.gathered.resize(message.len(), 0);
        }
        message.copy_to(0, &mut self.gathered)
    }

    /// Records that the engine has refused a call for lack of buffers.
    #[cold]
    fn on_refused(&mut self, core: &mut Core) {
        self.refused_at = Some(self.engine.released());
        core.begin_shortage();
    }

    pub(super) fn start_rma(
        &mut self,
        core: &mut Core,
        cell: &'static Connection,
        rma: &Rma<'_>,
        posted: Posted,
    ) -> Result<Option<&'static Slot>, RmaError> {
        let (number, memory) = self.host.registry.find(rma.local, cell).ok_or(RmaError::LocalHandle)?;
        if !memory.contains(rma.local_offset, rma.len) {
            return Err(RmaError::LocalHandle);
        }
        let local = Local { number, offset: rma.local_offset, len: rma.len };
        self.begin_rma(core, cell, rma, posted, local)
    }

    /// Starts the send of a message that is longer than the connection's maximum. It is an RMA
    /// whose memory the peer gives.
    pub(super) fn start_large(
        &mut self,
        core: &mut Core,
        cell: &'static Connection,
        memory: Memory,
        posted: Posted,
    ) -> Result<Option<&'static Slot>, SendError> {
        let len = memory.len();
        let local = self.host.registry.register(memory, Rights::NONE, Some(cell)).map_err(|_| SendError::NoBuffers)?;
        let rma = Rma {
            local: &local,
            local_offset: 0,
            remote: &local,
            remote_offset: 0,
            len,
            access: Access::Large,
            fence: cell.attribute() == Attribute::ReliableOrdered,
            message: None,
        };
        let started = self.start_rma(core, cell, &rma, posted);
        match started {
            Ok(_) => {
                cell.counters.on_sent();
                core.counters().on_sent(usize::try_from(len).unwrap_or(usize::MAX));
            }
            // It was made above.
            Err(_) => drop(self.host.registry.deregister(&local)),
        }
        started
            .map_err(|error| if error == RmaError::NoBuffers { SendError::NoBuffers } else { SendError::Disconnected })
    }

    fn begin_rma(
        &mut self,
        core: &mut Core,
        cell: &'static Connection,
        rma: &Rma<'_>,
        posted: Posted,
        local: Local,
    ) -> Result<Option<&'static Slot>, RmaError> {
        let slot = core.take_rma().ok_or(RmaError::NoBuffers)?;
        let now = self.coalescer.time(|| self.link.now());
        self.on_send_call(now);
        let len = usize::try_from(rma.len).unwrap_or(usize::MAX).min(MOST_BYTES);
        let is_due = self.is_due(now, len, posted == Posted::Waited);
        let is_own = rma.access == Access::Large;
        let op =
            self.host.operations.begin(Operation { slot, cell, posted, local: Some(local), is_own, spoilt: false });
        cell.on_begun();
        let len_after = rma.message.map(|message| self.gather(message));
        let started = cci_proto::engine::Rma {
            op,
            target: Target { handle: rma.remote.name(), offset: rma.remote_offset, len: rma.len },
            access: rma.access,
            fence: rma.fence,
            message: len_after.map(|len| &self.gathered[..len]),
        };
        if let Err(error) = self.engine.rma(now, index_of(cell), &started) {
            self.coalescer.withdraw(len);
            self.host.operations.end(op);
            cell.open.store(cell.open.load(Ordering::Relaxed).saturating_sub(1), Ordering::Relaxed);
            core.release(slot);
            if error == RmaError::NoBuffers {
                self.on_refused(core);
            }
            return Err(error);
        }
        if let Some(message) = rma.message {
            cell.counters.on_sent();
            core.counters().on_sent(message.len());
        }
        if is_due {
            self.send_all(core, now);
        }
        Ok((posted == Posted::Waited).then_some(slot))
    }
}
