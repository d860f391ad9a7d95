//! What has completed: messages, ends of sends, and what follows from them.

use crate::bulk;
use crate::channel::{Channel, Phase, ViaChannel};
use crate::flow::Class;
use crate::frame::{ACCEPT, DATA, HEADER, HELLO, Header, MESSAGE, Placed, READ, READ_DATA, UPDATE};
use crate::mapping::{ViaAsking, ViaMapping, ended, message};
use crate::options::Variant;
use crate::pipe::Of;
use crate::table::{Report, Table};
use crate::transfers::Held;
use crate::watch::Watch;
use cci::Memory;
use cci_am::{Incoming, Outcome, Payload};
use cci_via::Part;
use cci_via::engine::Completion;
use std::cell::RefMut;

/// The longest body that is copied to the stack before its handler runs; others are read in place.
const COPIED: usize = 128;

/// The engine's part of a poll.
type Take<'t, 'e, W> = &'t mut dyn FnMut(Incoming<'_, ViaChannel, ViaAsking<'e, W>>);

/// Where a frame is.
#[derive(Clone, Copy)]
enum Place {
    /// In this receive buffer.
    Buffer(u16),
    /// In the ring, at this offset; the receive buffer is empty.
    Ring(u16, u32),
}

impl Place {
    fn buffer(self) -> u16 {
        match self {
            Self::Buffer(buffer) | Self::Ring(buffer, _) => buffer,
        }
    }
}

impl<W: Watch> ViaMapping<W> {
    /// First what the last poll has left: a receive to be posted again, and one send, as the
    /// paper's poll takes. Then receives: those that have completed, or the next one that comes.
    /// The program acts upon a message before anything else is done.
    pub(crate) fn poll_all<'e>(
        &'e self,
        most: usize,
        take: &mut impl FnMut(Incoming<'_, ViaChannel, ViaAsking<'e, W>>),
    ) -> usize {
        self.watch.spent(Part::Wait);
        self.post_again(&mut self.table.borrow_mut());
        self.reap();
        let mut found = self.report_all(take);
        let mut looks = true;
        self.watch.spent(Part::Wait);
        while found < most
            && let Ok(Some((vi, _, end, token))) = self.core.take_completed(self.receives, looks)
        {
            self.watch.spent(Part::NotifyReceive);
            let messages = self.received(vi, &end, token.buffer(), take);
            // A look after a message would find nothing, as a rule.
            looks &= messages == 0;
            found += messages + self.report_all(take);
        }
        self.watch.spent(Part::Wait);
        self.after_poll(found);
        self.watch.spent(Part::Wait);
        found + self.report_all(take)
    }

    /// Hands over what waits.
    #[inline]
    fn report_all<'e>(&'e self, take: &mut impl FnMut(Incoming<'_, ViaChannel, ViaAsking<'e, W>>)) -> usize {
        if self.table.borrow().reports.is_empty() { 0 } else { self.report_waiting(take) }
    }

    #[cold]
    #[inline(never)]
    fn report_waiting<'e>(&'e self, take: Take<'_, 'e, W>) -> usize {
        let mut found = 0;
        loop {
            let Some(report) = self.table.borrow_mut().reports.pop_front() else { return found };
            found += 1;
            take(match report {
                Report::Ended(context, outcome) => ended(context, outcome),
                Report::Asks(channel, hello) => Incoming::Asks(ViaAsking { mapping: self, channel, hello }),
                Report::Opened(context, channel) => Incoming::Opened(context, channel),
                Report::Closed(context) => Incoming::Closed(context),
            });
        }
    }

    /// Now and then: peers that connect, and bulk data that found no room.
    #[inline]
    fn after_poll(&self, found: usize) {
        let is_due = self.door.borrow_mut().pace.is_due(found);
        let table = self.table.borrow();
        let is_busy = !table.connecting.is_empty() || !table.moving.is_empty() || !table.owing.is_empty();
        if is_busy || is_due {
            drop(table);
            self.look_for_peers();
            let moving = self.table.borrow().moving.clone();
            moving.into_iter().for_each(|at| self.pump(at));
            self.reap_all();
            let mut table = self.table.borrow_mut();
            for (at, pipe) in std::mem::take(&mut table.owing) {
                table.update(&self.core, at, pipe);
            }
        }
    }

    /// Sends bulk data of v1 that has room.
    #[inline(never)]
    pub(crate) fn pump(&self, at: ViaChannel) {
        self.reap_all();
        let mut table = self.table.borrow_mut();
        let mut ended = Vec::new();
        let waits = table.get(at).is_some_and(|channel| bulk::pump(channel, &self.core, &mut ended));
        table.moving.retain(|other| *other != at);
        if waits {
            table.moving.push(at);
        }
        table.reports.extend(ended.into_iter().map(|context| Report::Ended(context, bulk::DONE)));
    }

    /// Takes the oldest send that has completed. Makes no progress.
    #[inline(never)]
    pub(crate) fn reap(&self) -> bool {
        let Ok(Some((vi, _, end, token))) = self.core.take_completed(self.sends, false) else { return false };
        self.watch.spent(Part::NotifySend);
        let mut table = self.table.borrow_mut();
        let Some((at, pipe, channel)) = table.of_vi(vi) else { return true };
        let pipe = &mut channel.pipes[pipe];
        pipe.posted -= 1;
        let is_closing = channel.phase == Phase::Closing;
        match token.of {
            Of::Send => pipe.free.push(token.buffer()),
            Of::LastPiece => {
                let outcome = if end.status.is_error() { Outcome::Broken } else { Outcome::Done };
                table.reports.push_back(Report::Ended(token.context(), outcome));
            }
            Of::Piece | Of::Receive => {}
        }
        if end.status.is_error() {
            table.close(&self.core, at, false);
        }
        if is_closing {
            table.retire(&self.core, at);
        }
        self.watch.spent(Part::RecycleSend);
        true
    }

    /// Takes all sends that have completed.
    pub(crate) fn reap_all(&self) {
        while self.reap() {}
    }

    /// A receive has completed. How many messages the engine got.
    #[inline]
    fn received<'e>(
        &'e self,
        vi: u32,
        end: &Completion,
        buffer: u16,
        take: &mut impl FnMut(Incoming<'_, ViaChannel, ViaAsking<'e, W>>),
    ) -> usize {
        let mut table = self.table.borrow_mut();
        self.post_again(&mut table);
        let Some((at, p, channel)) = table.of_vi(vi) else { return 0 };
        let pipe = &mut channel.pipes[p];
        pipe.posted -= 1;
        if end.status.is_error() || channel.phase == Phase::Closing {
            table.close(&self.core, at, false);
            table.retire(&self.core, at);
            return 0;
        }
        let (place, len) = match end.immediate {
            None => (Place::Buffer(buffer), end.length as usize),
            Some(word) => match self.arrived_by_word(channel, p, buffer, word, end.length) {
                ByWord::At(place, len) => (place, len),
                ByWord::Nothing => {
                    channel.pipes[p].post_receive(&self.core, buffer);
                    return 0;
                }
                ByWord::Message(bytes) => {
                    let context = channel.context.unwrap_or_default();
                    channel.pipes[p].flow.came(Class::Request);
                    drop(table);
                    take(message(context, Payload::of_bytes(&bytes)));
                    self.again(at, p, buffer, None);
                    return 1;
                }
                ByWord::Wrong => {
                    table.close(&self.core, at, false);
                    return 0;
                }
            },
        };
        if self.options.variant == Variant::V1 {
            drop(table);
            return self.take_in_order(at, Held { order: 0, pipe: p, buffer, len }, take);
        }
        self.take_frame(table, at, p, place, len, take)
    }

    /// Gives credits back, and has the receive of a frame that has been taken posted again: by the
    /// next poll, unless credits are due. Until then the spare receive stands for it. `class`: that
    /// of a message that is over only now.
    #[inline]
    fn again(&self, at: ViaChannel, p: usize, buffer: u16, class: Option<Class>) {
        let mut table = self.table.borrow_mut();
        let Some(channel) = table.get(at) else { return };
        let flow = &mut channel.pipes[p].flow;
        if let Some(class) = class {
            flow.came(class);
        }
        let is_due = flow.is_due();
        self.watch.spent(Part::Process);
        table.unposted = Some((at, p, buffer));
        if is_due {
            self.post_again(&mut table);
            table.update(&self.core, at, p);
            self.watch.spent(Part::Process);
        }
    }

    /// Posts the receive that waits for it.
    #[inline]
    fn post_again(&self, table: &mut Table) {
        let Some((at, p, buffer)) = table.unposted.take() else { return };
        let Some(channel) = table.get(at).filter(|channel| channel.phase != Phase::Closing) else { return };
        self.watch.spent(Part::RecycleReceive);
        channel.pipes[p].post_receive(&self.core, buffer);
        self.watch.spent(Part::PostReceive);
    }

    /// Takes a frame. How many messages the engine got.
    #[inline]
    fn take_frame<'e>(
        &'e self,
        mut table: RefMut<'e, Table>,
        at: ViaChannel,
        p: usize,
        place: Place,
        len: usize,
        take: &mut impl FnMut(Incoming<'_, ViaChannel, ViaAsking<'e, W>>),
    ) -> usize {
        let Some(channel) = table.get(at) else { return 0 };
        let Some(pipe) = channel.pipes.get_mut(p) else { return 0 };
        let (memory, offset) = match (place, &pipe.ring) {
            (Place::Ring(_, offset), Some(ring)) => (&ring.memory, u64::from(offset)),
            _ => (&pipe.memory, pipe.receive_offset(place.buffer())),
        };
        self.watch.spent(Part::RecycleReceive);
        let mut bytes = [0; HEADER + COPIED];
        let copied = if len <= bytes.len() { len } else { HEADER };
        let is_there = len >= HEADER && memory.copy_out(offset, &mut bytes[..copied]);
        let longer: Option<Memory> = (len > bytes.len()).then(|| memory.clone());
        self.watch.spent(Part::Read);
        let header = bytes.first_chunk().and_then(|header| Header::parse(*header)).filter(|_| is_there);
        let Some(header) = header.filter(|header| pipe.returned(header.back)) else {
            table.close(&self.core, at, false);
            return 0;
        };
        if header.kind != MESSAGE || channel.phase != Phase::Open {
            return self.take_other(&mut table, at, p, place.buffer(), header, len);
        }
        let context = channel.context.unwrap_or_default();
        // A credit goes back with the reply, since there is a receive for the message in its
        // handler; space in the ring goes back when the handler has returned.
        let later = match place {
            Place::Buffer(_) => {
                pipe.flow.came(header.class);
                None
            }
            Place::Ring(..) => Some(header.class),
        };
        drop(table);
        let body = match &longer {
            None => Payload::of_bytes(&bytes[HEADER..len]),
            Some(memory) => Payload::of_memory(memory, offset + HEADER as u64, len - HEADER),
        };
        self.watch.spent(Part::Process);
        take(message(context, body));
        self.watch.spent(Part::Act);
        self.again(at, p, place.buffer(), later);
        1
    }

    /// A frame that is no message of the engine.
    #[inline(never)]
    fn take_other(
        &self,
        table: &mut Table,
        at: ViaChannel,
        p: usize,
        buffer: u16,
        header: Header,
        len: usize,
    ) -> usize {
        let Some(channel) = table.get(at) else { return 0 };
        let offset = channel.pipes[p].receive_offset(buffer);
        let is_counted = header.kind != UPDATE;
        let mut report = None;
        let is_right = match (header.kind, channel.phase) {
            (UPDATE, _) => true,
            (HELLO, Phase::Waiting | Phase::Connecting) if !channel.is_client => {
                let said = channel.pipes[p].body(offset, len).and_then(|hello| self.greeted(channel, &hello));
                report = said.map(|said| Report::Asks(at, said));
                report.is_some()
            }
            (ACCEPT, Phase::Waiting) if channel.is_client => {
                report = channel.context.map(|context| Report::Opened(context, at));
                channel.pipes[p].body(offset, len).is_some_and(|answer| self.answered(channel, &answer))
            }
            (DATA | READ_DATA, Phase::Open) => {
                let placed = bulk::placed(channel, &self.regions, header.kind, p, offset, len);
                report = placed.flatten().map(|context| Report::Ended(context, bulk::DONE));
                placed.is_some()
            }
            (READ, Phase::Open) => bulk::answer(channel, &self.regions, p, offset),
            _ => false,
        };
        if !is_right {
            table.close(&self.core, at, false);
            return 0;
        }
        let pipe = &mut channel.pipes[p];
        if is_counted {
            pipe.flow.came(header.class);
        }
        pipe.post_receive(&self.core, buffer);
        let waits = channel.is_held_up();
        table.update(&self.core, at, p);
        table.reports.extend(report);
        if waits && !table.moving.contains(&at) {
            table.moving.push(at);
        }
        0
    }

    /// What immediate data says.
    fn arrived_by_word(&self, channel: &mut Channel, p: usize, buffer: u16, word: u64, length: u32) -> ByWord {
        let pipe = &mut channel.pipes[p];
        let is_open = channel.phase == Phase::Open;
        match (self.options.variant, length) {
            (Variant::V2, 0) => {
                let back = [(word >> 16) as u16, word as u16];
                if pipe.returned(back) { ByWord::Nothing } else { ByWord::Wrong }
            }
            (Variant::V4, 0) if is_open => ByWord::Message(word.to_le_bytes()),
            (Variant::V2 | Variant::V4, length) if is_open => {
                let placed = match self.options.variant {
                    Variant::V2 => Placed::of(word as u32),
                    _ => Placed { offset: (word >> 32) as u32, len: word as u32 },
                };
                let is_whole = self.options.variant == Variant::V4 || length == placed.len;
                let is_next = pipe.ring.as_mut().is_some_and(|ring| ring.expected.advance(placed.offset, placed.len));
                if is_whole && is_next {
                    ByWord::At(Place::Ring(buffer, placed.offset), placed.len as usize)
                } else {
                    ByWord::Wrong
                }
            }
            _ => ByWord::Wrong,
        }
    }

    /// Takes a frame of v1 if it is the next one of its channel, and those that it was before; a
    /// frame that has overtaken others keeps its buffer until then.
    #[inline(never)]
    fn take_in_order<'e>(&'e self, at: ViaChannel, mut frame: Held, take: Take<'_, 'e, W>) -> usize {
        let mut found = 0;
        loop {
            {
                let mut table = self.table.borrow_mut();
                let Some(channel) = table.get(at) else { return found };
                let pipe = &channel.pipes[frame.pipe];
                let mut head = [0; HEADER];
                let is_there =
                    frame.len >= HEADER && pipe.memory.copy_out(pipe.receive_offset(frame.buffer), &mut head);
                let Some(header) = Header::parse(head).filter(|_| is_there) else {
                    table.close(&self.core, at, false);
                    return found;
                };
                let Some(bulk) = &mut channel.bulk else { return found };
                if header.kind != UPDATE {
                    frame.order = header.order;
                    if header.order != bulk.expected {
                        bulk.held.push(frame);
                        return found;
                    }
                    bulk.expected = bulk.expected.wrapping_add(1);
                }
            }
            let (table, place) = (self.table.borrow_mut(), Place::Buffer(frame.buffer));
            found += self.take_frame(table, at, frame.pipe, place, frame.len, &mut |incoming| take(incoming));
            let mut table = self.table.borrow_mut();
            self.post_again(&mut table);
            let Some(bulk) = table.get(at).and_then(|channel| channel.bulk.as_mut()) else { return found };
            let Some(next) = bulk.held.iter().position(|held| held.order == bulk.expected) else { return found };
            frame = bulk.held.swap_remove(next);
        }
    }
}

enum ByWord {
    /// A frame is here.
    At(Place, usize),
    /// It is a message by itself.
    Message([u8; 8]),
    /// It was credits, which have been taken.
    Nothing,
    Wrong,
}
