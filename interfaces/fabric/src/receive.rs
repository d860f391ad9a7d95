//! Receives, and how messages get to them.

use crate::NOT_AVAILABLE;
use crate::arrivals::{self, Arrival};
use crate::bits::{CLAIM, DISCARD, MSG, MULTI_RECV, PEEK, RECV, REMOTE_CQ_DATA, TAGGED};
use crate::code::Code;
use crate::operations::Receive;
use crate::partner::Control;
use crate::queue::{Entry, Failed};
use crate::requests::{Multi, Slot, Space, Stage};
use crate::segments::Segments;
use crate::state::{OWN, State};
use cci::Endpoint;
use cci_matching::{Envelope, Pattern};
use cci_rendezvous::{Body, Link, Remote};

/// Messages in one buffer begin at multiples of this.
const ALIGNMENT: u64 = 8;
/// What an unexpected message holds beside its bytes, about: bytes.
pub(crate) const ENTRY: u64 = 256;

/// A receive that a message has matched: where it goes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Matched {
    One(u32),
    /// A buffer that takes several: the offset, and the bytes that are left there.
    Multi {
        index: u32,
        at: u64,
        room: u64,
    },
}

impl Matched {
    const fn index(self) -> u32 {
        match self {
            Self::One(index) | Self::Multi { index, .. } => index,
        }
    }
}

/// What an entry says of a message: its length, tag and remote data.
pub(crate) type Meta = (u64, u64, Option<u64>);

const fn kind(space: Space) -> u64 {
    match space {
        Space::Message => RECV | MSG,
        Space::Tagged => RECV | TAGGED,
    }
}

impl State {
    pub(crate) fn receive(&mut self, endpoint: &Endpoint, receive: Receive) -> Result<(), Code> {
        if let Some(code) = self.failed {
            return Err(code);
        }
        let flags = receive.flags;
        if flags & PEEK != 0 {
            return self.peek(endpoint, receive);
        }
        if flags & CLAIM != 0 {
            return self.receive_claimed(endpoint, receive);
        }
        let Receive { segments, space, tag, context, .. } = receive;
        let flags = flags & !TAGGED | if space == Space::Tagged { TAGGED } else { 0 };
        if !segments.are_right() || flags & DISCARD != 0 {
            return Err(Code::Invalid);
        }
        let pattern = self.pattern(space, receive.from, (tag, receive.ignore))?;
        self.requests.reserve().ok_or(Code::NoMemory)?;
        self.setup.receive.as_mut().ok_or(Code::NoQueue)?.reserve()?;
        if flags & MULTI_RECV != 0 {
            return self.receive_several(endpoint, (segments, space), pattern, (context, flags));
        }
        let matching = self.space(space);
        if !matching.unexpected.is_empty()
            && let Some((envelope, arrival)) = matching.unexpected.take(&pattern.0)
        {
            let ticket = None;
            let stage = Stage::Posted { segments, space, ticket, source: None };
            let index = self.requests.insert(Slot { context, flags, tag, data: None, stage });
            self.receive_arrival(endpoint, Matched::One(index), (envelope, arrival));
            return Ok(());
        }
        let index = self.requests.next();
        let matching = self.space(space);
        let ticket = Some(matching.posted.post(pattern.0, index).map_err(|_| Code::NoMemory)?);
        let stage = Stage::Posted { segments, space, ticket, source: pattern.1 };
        self.requests.insert(Slot { context, flags, tag, data: None, stage });
        // Its end is told by the link.
        pattern.1.into_iter().for_each(|source| self.watch(endpoint, source));
        Ok(())
    }

    /// What a receive asks for; and of whom, if of one partner that is not this endpoint.
    fn pattern(&mut self, space: Space, from: u64, (tag, ignore): (u64, u64)) -> Result<(Pattern, Option<u32>), Code> {
        let (bits, mask) = if space == Space::Tagged { (tag, !ignore) } else { (0, !0) };
        if !self.setup.options.directed || from == NOT_AVAILABLE {
            return Ok((Pattern::new(0, 0, bits, mask), None));
        }
        let source = self.partner_at(from)?;
        Ok((Pattern::new(source.into(), !0, bits, mask), Some(source).filter(|source| *source != OWN)))
    }

    /// Posts a buffer that takes several messages; those first that wait.
    fn receive_several(
        &mut self,
        endpoint: &Endpoint,
        (memory, space): (Segments, Space),
        (pattern, source): (Pattern, Option<u32>),
        (context, flags): (u64, u64),
    ) -> Result<(), Code> {
        let least = self.setup.least_multi as u64;
        let index = self.requests.next();
        let matching = self.space(space);
        let ticket = Some(matching.posted.post(pattern, index).map_err(|_| Code::NoMemory)?);
        matching.multis += 1;
        let multi = Multi { memory, space, used: 0, least, ticket, open: 0, source, ended: None };
        self.requests.insert(Slot { context, flags, tag: 0, data: None, stage: Stage::Multi(multi) });
        // Its end is told by the link.
        source.into_iter().for_each(|source| self.watch(endpoint, source));
        loop {
            let is_posted = matches!(
                self.requests.get(index).map(|slot| &slot.stage),
                Some(Stage::Multi(multi)) if multi.ticket.is_some() && multi.space == space
            );
            if !is_posted {
                return Ok(());
            }
            let Some((envelope, arrival)) = self.space(space).unexpected.take(&pattern) else { return Ok(()) };
            let Some(matched) = self.take_room(index, arrival.length) else { return Ok(()) };
            self.receive_arrival(endpoint, matched, (envelope, arrival));
        }
    }

    /// The receive that a message matches, which is taken out of the queue unless it takes more.
    #[inline]
    pub(crate) fn match_posted(&mut self, space: Space, envelope: &Envelope, length: u64) -> Option<Matched> {
        let matching = &mut self.spaces[space.index()];
        if matching.multis == 0 {
            return matching.posted.take(envelope).map(Matched::One);
        }
        let (ticket, index) = matching.posted.peek(envelope).map(|(ticket, index)| (ticket, *index))?;
        match self.requests.get(index).map(|slot| &slot.stage) {
            Some(Stage::Multi(_)) => self.take_room(index, length),
            _ => {
                self.space(space).posted.cancel(ticket);
                Some(Matched::One(index))
            }
        }
    }

    /// Room for a message in a buffer that takes several, and a place for its entry.
    fn take_room(&mut self, index: u32, length: u64) -> Option<Matched> {
        if self.setup.receive.as_mut()?.reserve().is_err() {
            self.fail(Code::NoMemory);
            return None;
        }
        let Stage::Multi(multi) = &mut self.requests.get(index)?.stage else { return None };
        let (at, whole) = (multi.used, multi.memory.len());
        let room = whole - at;
        multi.used = (at + length.min(room)).next_multiple_of(ALIGNMENT).min(whole);
        if length > room || whole - multi.used < multi.least.max(1) {
            self.unpost(index);
        }
        Some(Matched::Multi { index, at, room })
    }

    /// Takes a buffer that takes several messages out of the queue.
    pub(crate) fn unpost(&mut self, index: u32) {
        if let Some(Stage::Multi(multi)) = self.requests.get(index).map(|slot| &mut slot.stage)
            && let Some(ticket) = multi.ticket.take()
        {
            let space = multi.space;
            let matching = self.space(space);
            matching.posted.cancel(ticket);
            matching.multis -= 1;
        }
    }

    /// Gives a message to its receive; `copy` has the memory, an offset there, and how many bytes
    /// fit. False: the copy failed.
    #[inline]
    pub(crate) fn deliver_with(
        &mut self,
        matched: Matched,
        from: u32,
        meta: Meta,
        copy: impl FnOnce(&Segments, u64, u64) -> bool,
    ) -> bool {
        let source = self.source_of(from);
        match matched {
            Matched::One(index) => {
                let Some(Slot { context, flags, stage: Stage::Posted { segments, space, .. }, .. }) =
                    self.requests.remove(index)
                else {
                    return false;
                };
                let copied = meta.0.min(segments.len());
                let is_in = copied == 0 || copy(&segments, 0, copied);
                let buffer = segments.parts().first().map_or(0, |part| part.start() as u64);
                self.end_receive((context, flags), kind(space), (meta, source), (buffer, copied, is_in));
                is_in
            }
            Matched::Multi { index, at, room } => {
                let Some(Slot { context, flags, stage: Stage::Multi(multi), .. }) = self.requests.get(index) else {
                    return false;
                };
                let copied = meta.0.min(room);
                let is_in = copied == 0 || copy(&multi.memory, at, copied);
                let buffer = multi.memory.parts().first().map_or(0, |part| part.start() as u64) + at;
                let (context, flags, space) = (*context, *flags, multi.space);
                let is_last = multi.ticket.is_none() && multi.open == 0;
                let what = kind(space) | if is_last { MULTI_RECV } else { 0 };
                self.end_receive((context, flags), what, (meta, source), (buffer, copied, is_in));
                if is_last {
                    self.requests.remove(index);
                    // The place of the release: the entry has told it.
                    self.setup.receive.iter_mut().for_each(crate::queue::Bound::pass);
                }
                is_in
            }
        }
    }

    /// Reports how a receive has ended.
    #[inline]
    fn end_receive(
        &mut self,
        (context, flags): (u64, u64),
        what: u64,
        ((length, tag, data), source): (Meta, u64),
        (buffer, copied, is_in): (u64, u64, bool),
    ) {
        let what = what | if data.is_some() { REMOTE_CQ_DATA } else { 0 };
        let len = copied as usize;
        let entry = Entry { context, flags: what, len, buffer, data: data.unwrap_or(0), tag, source };
        if is_in && copied == length {
            return self.complete_receive(flags, entry);
        }
        let code = if is_in { Code::Truncated } else { Code::Other };
        let dropped = (length - copied) as usize;
        self.report(Failed { entry, dropped, code, detail: code as i32 });
    }

    pub(crate) fn deliver_bytes(&mut self, matched: Matched, from: u32, meta: Meta, bytes: &[u8]) -> bool {
        self.deliver_with(matched, from, meta, |to, at, len| {
            bytes.get(..len as usize).is_some_and(|bytes| to.copy_in(at, bytes))
        })
    }

    pub(crate) fn deliver_segments(&mut self, matched: Matched, meta: Meta, segments: &Segments) -> bool {
        self.deliver_with(matched, OWN, meta, |to, at, len| segments.copy_to(to, at, len))
    }

    /// Receives an unexpected message.
    fn receive_arrival(&mut self, endpoint: &Endpoint, matched: Matched, (envelope, arrival): (Envelope, Arrival)) {
        let Arrival { partner, link, length, cost, number, data, body } = arrival;
        let meta = (length, envelope.bits, data);
        self.unkeep(cost);
        match body {
            // Its link is no more: nothing can be read.
            Body::Offered(_) if !self.is_current(partner, link) => self.end(matched.index(), Code::ConnectionReset),
            Body::Offered(pieces) => {
                self.read_offer(endpoint, matched, (partner, link, number), meta, pieces);
            }
            Body::Own => {
                let Some(slot) = self.requests.get(number) else { return };
                let Stage::Own { segments } = &mut slot.stage else { return };
                let segments = std::mem::take(segments);
                self.deliver_segments(matched, meta, &segments);
                self.finish_own(number);
            }
            body => {
                self.deliver_bytes(matched, partner, meta, arrivals::bytes(&body, length as usize));
                self.buffers.give_back(body);
                self.let_go(endpoint, (partner, link), cost);
            }
        }
    }

    /// Has the bytes of an offer read to where they belong.
    pub(crate) fn read_offer(
        &mut self,
        endpoint: &Endpoint,
        matched: Matched,
        (from, link, number): (u32, u32, u32),
        meta: Meta,
        pieces: Vec<Remote>,
    ) {
        let source = self.source_of(from);
        let (length, tag, data) = meta;
        let Some(slot) = self.requests.get(matched.index()) else { return };
        let (local, at, multi) = match (&slot.stage, matched) {
            (Stage::Posted { segments, .. }, _) => (segments.part(0, length.min(segments.len())), 0, None),
            (Stage::Multi(multi), Matched::Multi { index, at, room }) => {
                (multi.memory.part(at, length.min(room)), at, Some(index))
            }
            _ => return,
        };
        if local.is_empty() {
            self.deliver_with(matched, from, meta, |_, _, _| true);
            return self.tell_done((from, link), number);
        }
        let stage = Stage::Reading { number, length, source, multi, at };
        let index = match multi {
            None => {
                slot.stage = stage;
                (slot.tag, slot.data) = (tag, data);
                matched.index()
            }
            Some(_) => {
                let (context, flags) = (slot.context, slot.flags);
                if let Stage::Multi(multi) = &mut slot.stage {
                    multi.open += 1;
                }
                if self.requests.reserve().is_none() {
                    return self.fail(Code::NoMemory);
                }
                self.requests.insert(Slot { context, flags, tag, data, stage })
            }
        };
        let its = (index, Link { peer: from, life: link });
        let (read, _) = self.reads.insert(its, (local.len(), pieces), |memory| {
            memory.extend(local.parts().iter().cloned());
        });
        self.post(endpoint, from, Control::Reads(read));
    }

    /// The reads of a receive have ended.
    pub(crate) fn finish_read(&mut self, index: u32, result: Result<u64, Code>) {
        let Some(Slot { context, flags, tag, data, stage: Stage::Reading { length, source, multi, at, .. } }) =
            self.requests.remove(index)
        else {
            return;
        };
        let mut what = RECV;
        let (mut buffer, mut is_last) = (0, None);
        if let Some(parent) = multi
            && let Some(Slot { stage: Stage::Multi(multi), .. }) = self.requests.get(parent)
        {
            multi.open -= 1;
            what |= kind(multi.space);
            buffer = multi.memory.parts().first().map_or(0, |part| part.start() as u64) + at;
            if multi.ticket.is_none() && multi.open == 0 {
                is_last = Some((parent, multi.ended));
            }
        } else {
            what |= kind(Space::of(flags & TAGGED != 0));
        }
        if matches!(is_last, Some((_, None))) {
            what |= MULTI_RECV;
        }
        let meta = (length, tag, data);
        match result {
            Ok(copied) => self.end_receive((context, flags), what, (meta, source), (buffer, copied, true)),
            Err(code) => {
                let entry = Entry { context, flags: what, buffer, tag, source, ..Entry::default() };
                let dropped = length as usize;
                self.report(Failed { entry, dropped, code, detail: code as i32 });
            }
        }
        match is_last {
            Some((parent, None)) => {
                self.requests.remove(parent);
                self.setup.receive.iter_mut().for_each(crate::queue::Bound::pass);
            }
            Some((parent, Some(code))) => self.end(parent, code),
            None => {}
        }
    }

    /// Keeps a message that nothing has matched.
    pub(crate) fn keep(&mut self, space: Space, envelope: Envelope, arrival: Arrival) {
        if self.failed.is_some() {
            return;
        }
        self.kept += if arrival.cost > 0 { 0 } else { ENTRY };
        if self.space(space).unexpected.insert(envelope, arrival).is_err() {
            return self.fail(Code::NoMemory);
        }
        if self.kept > self.setup.unexpected_max {
            self.fail(Code::NoMemory);
        }
    }

    fn unkeep(&mut self, cost: u32) {
        self.kept -= if cost > 0 { 0 } else { ENTRY };
    }

    /// Removes what a partner has offered by a link that is no more.
    pub(crate) fn drop_offers(&mut self, number: u32, link: u32) {
        for space in [Space::Message, Space::Tagged] {
            let is_gone = |arrival: &Arrival| {
                arrival.partner == number && arrival.link == link && matches!(arrival.body, Body::Offered(_))
            };
            let unexpected = &self.space(space).unexpected;
            let gone: Vec<_> =
                unexpected.iter().filter(|(.., arrival)| is_gone(arrival)).map(|(ticket, ..)| ticket).collect();
            for ticket in gone {
                if let Some((_, arrival)) = self.space(space).unexpected.remove(ticket) {
                    self.unkeep(arrival.cost);
                }
            }
        }
    }

    /// Looks for a message; reports what it is, or that there is none.
    fn peek(&mut self, endpoint: &Endpoint, receive: Receive) -> Result<(), Code> {
        let Receive { space, tag, context, flags, .. } = receive;
        let (pattern, _) = self.pattern(space, receive.from, (tag, receive.ignore))?;
        self.requests.reserve().ok_or(Code::NoMemory)?;
        self.setup.receive.as_mut().ok_or(Code::NoQueue)?.reserve()?;
        let matching = self.space(space);
        let found = matching
            .unexpected
            .peek(&pattern)
            .map(|(envelope, arrival)| (envelope.bits, arrival.length, arrival.data, arrival.partner));
        let Some((bits, length, data, partner)) = found else {
            let entry = Entry { context, flags: kind(space), tag, source: NOT_AVAILABLE, ..Entry::default() };
            let code = Code::NoMessage;
            self.report(Failed { entry, dropped: 0, code, detail: code as i32 });
            return Ok(());
        };
        if flags & (CLAIM | DISCARD) != 0
            && let Some((envelope, arrival)) = self.space(space).unexpected.take(&pattern)
        {
            if flags & DISCARD != 0 {
                self.discard(endpoint, arrival);
            } else {
                let stage = Stage::Claimed { envelope, arrival: Box::new(arrival), space };
                self.requests.insert(Slot { context, flags, tag: bits, data, stage });
            }
        }
        let source = self.source_of(partner);
        let what = kind(space) | if data.is_some() { REMOTE_CQ_DATA } else { 0 };
        let (len, data) = (length as usize, data.unwrap_or(0));
        self.complete_receive(flags, Entry { context, flags: what, len, buffer: 0, data, tag: bits, source });
        Ok(())
    }

    /// Receives, or drops, the message that was claimed for a context.
    fn receive_claimed(&mut self, endpoint: &Endpoint, receive: Receive) -> Result<(), Code> {
        let Receive { segments, context, flags, space, .. } = receive;
        let claims = |stage: &Stage| matches!(stage, Stage::Claimed { space: of, .. } if *of == space);
        let index = self.requests.find(context, claims).ok_or(Code::Invalid)?;
        if !segments.are_right() {
            return Err(Code::Invalid);
        }
        self.setup.receive.as_mut().ok_or(Code::NoQueue)?.reserve()?;
        let Some(slot) = self.requests.get(index) else { return Err(Code::Invalid) };
        slot.flags = flags & !TAGGED | if space == Space::Tagged { TAGGED } else { 0 };
        let posted = Stage::Posted { segments, space, ticket: None, source: None };
        let Stage::Claimed { envelope, arrival, .. } = std::mem::replace(&mut slot.stage, posted) else {
            return Err(Code::Invalid);
        };
        if flags & DISCARD != 0 {
            self.requests.remove(index);
            let data = arrival.data;
            self.discard(endpoint, *arrival);
            let what = kind(space) | if data.is_some() { REMOTE_CQ_DATA } else { 0 };
            let data = data.unwrap_or(0);
            let entry = Entry { context, flags: what, data, tag: envelope.bits, ..Entry::default() };
            self.complete_receive(flags, entry);
        } else {
            self.receive_arrival(endpoint, Matched::One(index), (envelope, *arrival));
        }
        Ok(())
    }

    /// Drops an unexpected message.
    fn discard(&mut self, endpoint: &Endpoint, arrival: Arrival) {
        let Arrival { partner, link, cost, number, body, .. } = arrival;
        self.unkeep(cost);
        match body {
            Body::Offered(_) => self.tell_done((partner, link), number),
            Body::Own => self.finish_own(number),
            body => {
                self.buffers.give_back(body);
                self.let_go(endpoint, (partner, link), cost);
            }
        }
    }

    /// Takes back an operation that has not matched, or not left.
    pub(crate) fn cancel(&mut self, context: u64) -> Result<(), Code> {
        let can = |stage: &Stage| match stage {
            Stage::Posted { .. } | Stage::Queued { .. } => true,
            Stage::Multi(multi) => multi.ticket.is_some(),
            _ => false,
        };
        let index = self.requests.find(context, can).ok_or(Code::NoEntry)?;
        self.end(index, Code::Canceled);
        Ok(())
    }
}
