//! Replies on their way. A reply leaves at once, or waits in the buffer that its credit stands for.

use super::{Context, Due, Turn};
use crate::errors::Status;
use crate::mapping::{Mapping, Outcome, Refused, Transfer};
use crate::peers::Peer;
use crate::reply_buffers::Waiting;
use crate::wire::{HEAD, HEADER, Header, KEEP, Kind, SPAN};

/// Writes the next message of a payload that is cut: the first with its head and the total, the
/// others with a header. Returns how many bytes of the payload it has.
pub(super) fn cut(
    message: &mut Vec<u8>,
    most: usize,
    head: &[u8],
    (total, sent): (usize, usize),
    read: impl FnOnce(usize, &mut [u8]),
) -> usize {
    message.clear();
    if sent == 0 {
        message.extend_from_slice(head);
        message.extend_from_slice(&u32::try_from(total).unwrap_or(u32::MAX).to_le_bytes());
    } else {
        message.extend_from_slice(&Header::new(Kind::Part).emit());
    }
    let begin = message.len();
    let count = most.saturating_sub(begin).min(total - sent);
    message.resize(begin + count, 0);
    read(sent, &mut message[begin..]);
    count
}

impl<S, M: Mapping> Turn<'_, S, M> {
    /// Sends the reply in the outbox.
    pub(super) fn send_reply(&mut self, to: Peer) {
        let core = &mut *self.core;
        let Some(source) = core.sources.get_mut(to) else { return };
        let Some(channel) = source.channel else { return };
        let (outbox, keeps) = (&mut core.outbox, core.pool.keeps());
        outbox.set_flags(u8::from(keeps) * KEEP);
        let message = outbox.message();
        let is_single = outbox.bulk.is_none() && message.len() <= source.longest as usize;
        if !is_single || !outbox.buffers.queue.is_empty() {
            return self.queue_reply(to.index());
        }
        match self.mapping.reply(channel, message, Context::Source(to).pack()) {
            Ok(()) => {
                core.pool.end(&mut source.loan, keeps);
                if !keeps {
                    self.serve_waiting();
                }
            }
            Err(Refused::NoRoom) => self.queue_reply(to.index()),
            Err(Refused::Gone | Refused::Unusable) => self.drop_source(to.index()),
        }
    }

    /// Puts the reply in the outbox behind those that wait.
    #[inline(never)]
    fn queue_reply(&mut self, index: u32) {
        let core = &mut *self.core;
        let source = core.sources.key(index);
        let outbox = &mut core.outbox;
        let mut message = [0; HEAD + SPAN];
        let len = outbox.message().len();
        let head_len = len.min(message.len());
        message[..head_len].copy_from_slice(&outbox.message()[..head_len]);
        let (buffer, bulk) = match outbox.bulk.take() {
            Some((buffer, span)) => (buffer, Some(span)),
            None => {
                // A buffer for each credit: the credit of this request has none yet.
                let Some(buffer) = outbox.buffers.take() else { return };
                outbox.buffers.fill(buffer, outbox.message());
                (buffer, None)
            }
        };
        let waiting = Waiting { source, len, sent: 0, bulk, message, message_len: head_len, is_flying: false };
        outbox.buffers.set(buffer, waiting);
        outbox.buffers.queue.push_back(buffer);
        self.flush_replies();
    }

    /// Sends waiting replies, oldest first, as long as there is room.
    pub(super) fn flush_replies(&mut self) {
        while let Some(&buffer) = self.core.outbox.buffers.queue.front() {
            let Some(waiting) = self.core.outbox.buffers.get(buffer) else { return };
            let source = waiting.source;
            let is_bulk = waiting.bulk.is_some_and(|span| span.len > 0);
            let sent = if is_bulk { self.send_bulk(buffer) } else { self.send_waiting(buffer) };
            match sent {
                Ok(()) => {
                    self.core.outbox.buffers.queue.pop_front();
                    if !self.core.outbox.buffers.get(buffer).is_some_and(|waiting| waiting.is_flying) {
                        self.reply_left(buffer);
                    }
                }
                Err(Refused::NoRoom) => return,
                // Its buffers leave the queue, this one too.
                Err(Refused::Gone | Refused::Unusable) => self.drop_source(source.index()),
            }
        }
    }

    /// The last byte of a reply has left: its buffer and its credit are free.
    fn reply_left(&mut self, buffer: u32) {
        let core = &mut *self.core;
        let Some(waiting) = core.outbox.buffers.get(buffer) else { return };
        let (source, keeps) = (waiting.source, waiting.message[3] & KEEP != 0);
        core.outbox.buffers.free(buffer);
        if let Some(source) = core.sources.get_mut(source) {
            core.pool.end(&mut source.loan, keeps);
        }
        self.serve_waiting();
    }

    /// Sends a reply from its buffer, in as many messages as it needs.
    fn send_waiting(&mut self, buffer: u32) -> Result<(), Refused> {
        let core = &mut *self.core;
        let keeps = core.pool.keeps();
        loop {
            let waiting = core.outbox.buffers.get(buffer).ok_or(Refused::Gone)?;
            if waiting.sent == 0 {
                waiting.message[3] = u8::from(keeps) * KEEP;
            }
            let (whole, of) = (waiting.clone(), waiting.source);
            let source = core.sources.get_mut(of).ok_or(Refused::Gone)?;
            let channel = source.channel.ok_or(Refused::Gone)?;
            let (context, most) = (Context::Source(of).pack(), source.longest as usize);
            if whole.len <= most {
                core.scratch.resize(whole.len, 0);
                core.outbox.buffers.read(buffer, 0, &mut core.scratch);
                core.scratch[..whole.message_len].copy_from_slice(&whole.message[..whole.message_len]);
                return self.mapping.reply(channel, &core.scratch, context);
            }
            let mut head = whole.message;
            let end = HEADER + 4 * usize::from(head[2]);
            head[0] = Kind::ReplyLong as u8;
            let (total, buffers) = (whole.len - end, &core.outbox.buffers);
            let read = |from: usize, into: &mut [u8]| buffers.read(buffer, end + from, into);
            let count = cut(&mut core.scratch, most, &head[..end], (total, whole.sent), read);
            self.mapping.reply(channel, &core.scratch, context)?;
            let waiting = core.outbox.buffers.get(buffer).ok_or(Refused::Gone)?;
            waiting.sent += count;
            if waiting.sent == total {
                return Ok(());
            }
        }
    }

    /// Begins to write a bulk reply; its end frees the buffer.
    fn send_bulk(&mut self, buffer: u32) -> Result<(), Refused> {
        let core = &mut *self.core;
        let waiting = core.outbox.buffers.get(buffer).ok_or(Refused::Gone)?;
        // The credit comes back apart, once the buffer is free.
        waiting.message[3] = 0;
        let (whole, source) = (waiting.clone(), waiting.source);
        let span = whole.bulk.ok_or(Refused::Gone)?;
        let source = core.sources.get_mut(source).ok_or(Refused::Gone)?;
        let channel = source.channel.ok_or(Refused::Gone)?;
        let Some(segment) = source.segment.as_ref().filter(|segment| segment.epoch == span.epoch) else {
            self.reject_reply(buffer);
            return self.send_waiting(buffer);
        };
        let transfer = Transfer {
            local: M::handle(&core.reply_region),
            local_offset: core.outbox.buffers.offset(buffer),
            remote: &segment.handle,
            remote_offset: span.offset,
            len: span.len,
        };
        let message = &whole.message[..whole.message_len];
        self.mapping.write(channel, &transfer, message, Context::Reply(buffer).pack())?;
        if let Some(waiting) = core.outbox.buffers.get(buffer) {
            waiting.is_flying = true;
        }
        Ok(())
    }

    /// Turns a bulk reply for which the requester has no place into a refusal.
    fn reject_reply(&mut self, buffer: u32) {
        let buffers = &mut self.core.outbox.buffers;
        let Some(waiting) = buffers.get(buffer) else { return };
        let id = crate::wire::word_at(&waiting.message, 4).unwrap_or_default();
        let header = Header { handler: Status::ReplyRejected as u8, id, ..Header::new(Kind::Returned) }.emit();
        waiting.message[..HEADER].copy_from_slice(&header);
        (waiting.len, waiting.message_len, waiting.bulk, waiting.is_flying) = (HEADER, HEADER, None, false);
        buffers.fill(buffer, &header);
    }

    pub(super) fn bulk_reply_ended(&mut self, buffer: u32, outcome: Outcome) {
        let core = &mut *self.core;
        let Some(waiting) = core.outbox.buffers.get(buffer) else { return };
        let of = waiting.source;
        let Some(source) = core.sources.get_mut(of) else {
            core.outbox.buffers.free(buffer);
            core.pool.recover();
            return self.serve_waiting();
        };
        if outcome == Outcome::Rejected {
            self.reject_reply(buffer);
            self.core.outbox.buffers.queue.push_back(buffer);
            return;
        }
        let keeps = core.pool.keeps();
        core.outbox.buffers.free(buffer);
        core.pool.end(&mut source.loan, keeps);
        source.grant += u32::from(keeps);
        core.due.push_back(Due::Source(of.index()));
        if outcome == Outcome::Broken {
            self.drop_source(of.index());
        }
        self.serve_waiting();
    }

    /// Ends the channel of a source. Its credits are free, but those whose buffers are still read.
    pub(super) fn drop_source(&mut self, index: u32) {
        let core = &mut *self.core;
        if core.sources.at_mut(index).is_none() {
            return;
        }
        let key = core.sources.key(index);
        let Some(mut source) = core.sources.remove_at(index) else { return };
        if let Some(channel) = source.channel {
            self.mapping.close(channel);
        }
        let busy = core.outbox.buffers.leave(key);
        core.batching.retain(|other| *other != index);
        core.pool.leave(index, &mut source.loan, busy);
        self.serve_waiting();
    }
}
