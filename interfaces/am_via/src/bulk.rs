//! Bulk data of v1: cut into messages, copied into and out of buffers, and kept in order with the
//! messages of the other pipes.

use crate::Core;
use crate::channel::Channel;
use crate::flow::Class;
use crate::frame::{DATA, HEADER, MESSAGE, READ, READ_DATA};
use crate::pipe::BULK;
use crate::transfers::{Incoming, Outgoing};
use crate::watch::Unwatched;
use cci_am::{Outcome, Refused};

/// Bytes before those of a piece: handle or number, and offset.
pub(crate) const PIECE: usize = 16;

/// Sends what lies in a claimed buffer of a channel of v1, in order; gives the claim back if that
/// is refused.
fn launch(channel: &mut Channel, core: &Core, at: usize, kind: u8, class: Class, buffer: u16, len: usize) -> bool {
    let order = channel.next_order();
    let pipe = &mut channel.pipes[at];
    let is_sent = pipe.launch(core, &Unwatched, kind, class, order, buffer, len).is_ok();
    if is_sent {
        channel.advance_order();
    } else {
        pipe.unclaim(class, buffer);
    }
    is_sent
}

/// Sends what has room; ends of writes go to `ended`. True: something still waits.
pub(crate) fn pump(channel: &mut Channel, core: &Core, ended: &mut Vec<u64>) -> bool {
    loop {
        let Some(outgoing) = channel.bulk.as_ref().and_then(|bulk| bulk.queue.front()) else { return false };
        let class = if outgoing.write.is_some() { Class::Request } else { Class::Reply };
        if outgoing.left == 0 {
            let Some((message, context)) = &outgoing.write else {
                if let Some(bulk) = &mut channel.bulk {
                    bulk.queue.pop_front();
                }
                continue;
            };
            let (context, at) = (*context, channel.pipe_for(message.len()));
            let Ok(buffer) = channel.pipes[at].claim(class) else { return true };
            channel.pipes[at].fill(buffer, 0, message);
            let len = message.len();
            if !launch(channel, core, at, MESSAGE, class, buffer, len) {
                return true;
            }
            if let Some(bulk) = &mut channel.bulk {
                bulk.queue.pop_front();
            }
            ended.push(context);
            continue;
        }
        let room = (channel.pipes[BULK].longest() - PIECE) as u64;
        let count = outgoing.left.min(room) as usize;
        let Ok(buffer) = channel.pipes[BULK].claim(class) else { return true };
        let mut head = [0; PIECE];
        head[..4].copy_from_slice(&outgoing.number.to_le_bytes());
        head[8..].copy_from_slice(&outgoing.remote_offset.to_le_bytes());
        let pipe = &channel.pipes[BULK];
        let target = pipe.body_of_send(buffer) + PIECE as u64;
        pipe.fill(buffer, 0, &head);
        // Both ranges have been checked.
        let is_copied = outgoing.memory.copy_to(outgoing.offset, &pipe.memory, target, count as u64);
        debug_assert!(is_copied, "bulk data lies inside of its memory");
        let kind = if outgoing.write.is_some() { DATA } else { READ_DATA };
        if !launch(channel, core, BULK, kind, class, buffer, PIECE + count) {
            return true;
        }
        if let Some(outgoing) = channel.bulk.as_mut().and_then(|bulk| bulk.queue.front_mut()) {
            outgoing.offset += count as u64;
            outgoing.remote_offset += count as u64;
            outgoing.left -= count as u64;
        }
    }
}

/// Asks for bytes of the peer.
pub(crate) fn ask(channel: &mut Channel, core: &Core, read: Incoming, handle: u32, from: u64) -> Result<(), Refused> {
    let buffer = channel.pipes[BULK].claim(Class::Request)?;
    let mut message = [0; 24];
    message[..4].copy_from_slice(&read.number.to_le_bytes());
    message[4..8].copy_from_slice(&handle.to_le_bytes());
    message[8..16].copy_from_slice(&from.to_le_bytes());
    message[16..].copy_from_slice(&read.len.to_le_bytes());
    channel.pipes[BULK].fill(buffer, 0, &message);
    if !launch(channel, core, BULK, READ, Class::Request, buffer, message.len()) {
        return Err(Refused::NoRoom);
    }
    if let Some(bulk) = &mut channel.bulk {
        bulk.reads.push(read);
    }
    Ok(())
}

/// Puts a piece that has come where it belongs. None: it belongs nowhere. The context of the read
/// that it ends.
pub(crate) fn placed(
    channel: &mut Channel,
    regions: &crate::regions::Regions,
    kind: u8,
    pipe: usize,
    offset: u64,
    len: usize,
) -> Option<Option<u64>> {
    let source = &channel.pipes[pipe].memory;
    let mut head = [0; PIECE];
    if len < HEADER + PIECE || !source.copy_out(offset + HEADER as u64, &mut head) {
        return None;
    }
    let number = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
    let target = u64::from_le_bytes(head.last_chunk().copied()?);
    let (from, count) = (offset + (HEADER + PIECE) as u64, (len - HEADER - PIECE) as u64);
    if kind == DATA {
        let memory = regions.get(number, cci::Rights::WRITE)?;
        return source.copy_to(from, &memory, target, count).then_some(None);
    }
    let bulk = channel.bulk.as_mut()?;
    let at = bulk.reads.iter().position(|read| read.number == number)?;
    let read = &mut bulk.reads[at];
    // The pieces come in order.
    let is_next = target == read.came && count > 0 && read.came + count <= read.len;
    if !is_next || !source.copy_to(from, &read.memory, read.offset + read.came, count) {
        return None;
    }
    read.came += count;
    let is_whole = read.came == read.len;
    Some(is_whole.then(|| bulk.reads.swap_remove(at).context))
}

/// A peer asks for bytes: they wait their turn. False: it may not.
pub(crate) fn answer(channel: &mut Channel, regions: &crate::regions::Regions, pipe: usize, offset: u64) -> bool {
    let mut message = [0; 24];
    if !channel.pipes[pipe].memory.copy_out(offset + HEADER as u64, &mut message) {
        return false;
    }
    let word = |at: usize| u32::from_le_bytes([message[at], message[at + 1], message[at + 2], message[at + 3]]);
    let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
    let (number, handle, from, len) = (word(0), word(4), long(8), long(16));
    let Some(memory) = regions.get(handle, cci::Rights::READ) else { return false };
    let Some(bulk) = &mut channel.bulk else { return false };
    if len == 0 || !memory.contains(from, len) || bulk.queue.len() > MOST_ANSWERS {
        return false;
    }
    bulk.queue.push_back(Outgoing { memory, offset: from, number, remote_offset: 0, left: len, write: None });
    true
}

/// Reads of a peer that wait their turn: it has no more credits than that.
const MOST_ANSWERS: usize = 1_024;

/// How an operation of v1 ended that did not break its channel.
pub(crate) const DONE: Outcome = Outcome::Done;
