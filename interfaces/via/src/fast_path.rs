//! The usual work, each in one pass: a short send of one segment that nothing waits before, its
//! end, and a message that comes as a whole. Whatever else happens takes the ways of `send.rs` and
//! `receive.rs`; these begin with nothing done here.

use crate::attributes::{Reliability, Tag};
use crate::errors::Status;
use crate::state::{Area, CompletionQueue, Published, Slab, State, Vi, ViState, check, context};
use crate::task::{Op, Task, Token, WorkQueue};
use crate::wire::{self, HEADER, Header};
use cci::{Completed, Endpoint, Notify, Received};

/// The longest send that is gathered on the stack, bytes.
const SHORT: usize = 112;

/// The only segment, if there is no more than one.
#[inline]
fn sole(task: &Task) -> Option<crate::task::Segment> {
    match *task.segments() {
        [segment] => Some(segment),
        _ => None,
    }
}

impl<T> Vi<T> {
    /// Whether nothing of the send queue, and nothing of the library, waits to be handed to CCI but
    /// the last `new` entries.
    #[inline]
    fn has_handed_all_but(&self, new: usize) -> bool {
        self.send.next + new == self.send.entries.len() && self.acks_owed == 0 && self.answers_owed.is_empty()
    }
}

impl<T: Token> State<T> {
    /// Hands the send that has just been posted to CCI. False: nothing has been done.
    #[inline]
    pub(crate) fn send_at_once(&mut self, endpoint: &Endpoint, number: u32) -> bool {
        let Self { vis, areas, queues, changes, .. } = self;
        let Some(vi) = vis.get_mut(number) else { return false };
        if !vi.has_handed_all_but(1) || vi.writes_open > 0 {
            return false;
        }
        let (Some(connection), tag, level) = (vi.connection, vi.attributes.tag, vi.attributes.reliability) else {
            return false;
        };
        let at = vi.send.next;
        let seq = vi.send.first.wrapping_add(at as u32);
        let Some(entry) = vi.send.entries.get_mut(at) else { return false };
        let task = &entry.task;
        if task.op != Op::Send || task.fence || task.fault.is_error() {
            return false;
        }
        let Some(segment) = sole(task).filter(|segment| segment.length as usize <= SHORT) else { return false };
        let Some((area, offset)) = check(areas, tag, &segment) else { return false };
        let length = segment.length as usize;
        let mut message = [0; HEADER + SHORT];
        let Some(body) = message.get_mut(HEADER..HEADER + length) else { return false };
        if !area.memory.copy_out(offset, body) || u64::from(segment.length) > vi.attributes.max_transfer {
            return false;
        }
        let flags = if task.immediate.is_some() { wire::IMMEDIATE } else { 0 };
        let value = task.immediate.unwrap_or(0);
        message[..HEADER].copy_from_slice(&Header { kind: wire::SEND, flags, length: segment.length, value }.emit());
        let report = match level {
            Reliability::Delivery => Notify::Always(context(number, seq)),
            // It has ended already, or ends by its acknowledgement.
            Reliability::Unreliable | Reliability::Reception => Notify::OnFailure(context(number, seq)),
        };
        if endpoint.send(connection, &message[..HEADER + length], report).is_err() {
            return false;
        }
        (entry.has_begun, entry.is_sent, entry.handed) = (true, true, segment.length);
        vi.send.next = at + 1;
        match level {
            Reliability::Delivery => entry.open = 1,
            Reliability::Unreliable => {
                entry.finish(Status(0), segment.length, None);
                let after = hand_over(&mut vi.send, at, areas, tag, queues, changes, (number, false));
                if let Some(published) = after {
                    self.after(endpoint, number, false, published);
                }
            }
            Reliability::Reception => {
                entry.awaits_reply = true;
                vi.unacknowledged.push_back(seq);
            }
        }
        true
    }

    /// An operation of CCI has ended.
    #[inline(always)]
    pub(crate) fn completed(&mut self, endpoint: &Endpoint, operation: &Completed<'_>) {
        let (number, seq) = ((operation.context() >> 32) as u32, operation.context() as u32);
        let Self { vis, areas, queues, changes, .. } = self;
        let Some(vi) = vis.get_mut(number) else { return };
        // An operation of a connection that the VI had before is none of its.
        if vi.connection.is_none() || operation.connection() != vi.connection {
            return;
        }
        let outcome = operation.outcome();
        if outcome.is_ok()
            && vi.has_handed_all_but(0)
            && let Some((at, entry)) = vi.send.by_number(seq)
            && entry.task.op == Op::Send
            && entry.open == 1
            && !entry.is_finished
            && !entry.awaits_reply
            && !entry.failure.is_error()
        {
            entry.open = 0;
            entry.finish(Status(0), entry.handed, None);
            let tag = vi.attributes.tag;
            let after = hand_over(&mut vi.send, at, areas, tag, queues, changes, (number, false));
            return after.into_iter().for_each(|published| self.after(endpoint, number, false, published));
        }
        self.ended(endpoint, operation.context(), outcome);
    }

    /// Puts a message that has come as a whole into the first receive. False: nothing has been
    /// done.
    #[inline(always)]
    pub(crate) fn receive_at_once(&mut self, endpoint: &Endpoint, number: u32, message: &Received<'_>) -> bool {
        let Self { vis, areas, queues, changes, .. } = self;
        let Some(vi) = vis.get_mut(number) else { return false };
        let Some((header, body)) = message.bytes().and_then(<[u8]>::split_first_chunk) else { return false };
        let header = Header::parse(header);
        let is_whole = header.kind == wire::SEND && header.length as usize == body.len() && vi.incoming.is_none();
        if !is_whole || vi.state != ViState::Connected || u64::from(header.length) > vi.attributes.max_transfer {
            return false;
        }
        let at = vi.receive.published;
        let Some(entry) = vi.receive.entries.get_mut(at) else { return false };
        if entry.task.fault.is_error() {
            return false;
        }
        let Some(segment) = sole(&entry.task).filter(|segment| segment.length >= header.length) else { return false };
        let Some((area, offset)) = check(areas, vi.attributes.tag, &segment) else { return false };
        if !area.memory.copy_in(offset, body) {
            return false;
        }
        entry.finish(Status::OP_RECEIVE, header.length, header.immediate());
        let is_acknowledged = vi.attributes.reliability == Reliability::Reception;
        let tag = vi.attributes.tag;
        let after = hand_over(&mut vi.receive, at, areas, tag, queues, changes, (number, true));
        if let Some(published) = after {
            self.after(endpoint, number, true, published);
        }
        if is_acknowledged {
            self.owe_acknowledgement(endpoint, number);
        }
        true
    }

    /// The rest of handing over an entry: what went wrong, and entries after it that had finished
    /// before.
    #[cold]
    #[inline(never)]
    fn after(&mut self, endpoint: &Endpoint, number: u32, is_receive: bool, published: Published) {
        match published {
            Published::Well => {}
            Published::Overrun(queue) => self.publish_badly(endpoint, number, Some(queue), false),
            Published::Lost => self.publish_badly(endpoint, number, None, true),
        }
        self.publish_queue(endpoint, number, is_receive);
    }
}

/// Hands over an entry that has just finished, if it is the next one. What it returns is for
/// [`State::after`]; nothing: that is all.
#[inline(always)]
fn hand_over<T: Token>(
    queue: &mut WorkQueue<T>,
    at: usize,
    areas: &Slab<Area>,
    tag: Tag,
    queues: &mut Slab<CompletionQueue>,
    changes: &mut u64,
    entry: (u32, bool),
) -> Option<Published> {
    if queue.published != at {
        return None;
    }
    *changes += 1;
    let published = queue.publish_next(areas, tag, queues, entry);
    let is_followed = queue.entries.get(at + 1).is_some_and(|entry| entry.is_finished);
    (is_followed || !matches!(published, Published::Well)).then_some(published)
}
