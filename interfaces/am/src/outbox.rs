//! The reply that a handler writes, and the buffers of replies that cannot leave at once.

use crate::errors::{ReplyError, Status};
use crate::reply_buffers::ReplyBuffers;
use crate::wire::{Head, KEEP, Kind, MAX_ARGUMENTS, Span};

/// The reply to the request whose handler runs.
#[derive(Debug)]
pub(crate) struct Outbox {
    /// The reply, if it has arguments alone.
    short: Head,
    /// The reply otherwise. Both are empty: no reply yet.
    long: Vec<u8>,
    /// The buffer of a bulk reply's bytes, and where they go.
    pub(crate) bulk: Option<(u32, Span)>,
    pub(crate) buffers: ReplyBuffers,
    id: u32,
    /// The requester's segment: length and epoch.
    segment: (u64, u32),
}

impl Outbox {
    pub(crate) fn new(buffers: ReplyBuffers) -> Self {
        Self { short: Head::empty(), long: Vec::with_capacity(256), bulk: None, buffers, id: 0, segment: (0, 0) }
    }

    /// Prepares for the reply to a request.
    #[inline]
    pub(crate) fn begin(&mut self, id: u32, segment: (u64, u32)) {
        self.short.clear();
        self.long.clear();
        self.bulk = None;
        (self.id, self.segment) = (id, segment);
    }

    /// Returns the request to its requester.
    pub(crate) fn refuse(&mut self, status: Status) {
        self.short.fill(Kind::Returned, status as u8, self.id, &[]);
    }

    /// Whether there is no reply.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.short.is_empty() && self.long.is_empty()
    }

    /// The message; of a bulk reply that of its RMA.
    #[inline]
    pub(crate) fn message(&self) -> &[u8] {
        if self.short.is_empty() { &self.long } else { self.short.bytes() }
    }

    /// A reply of arguments alone, if it is one and no other waits; `keeps`: it brings the credit
    /// of its request back.
    #[inline]
    pub(crate) fn short(&mut self, keeps: bool) -> Option<&[u8]> {
        if self.short.is_empty() || !self.buffers.queue.is_empty() {
            return None;
        }
        self.short.set_flags(u8::from(keeps) * KEEP);
        Some(self.short.bytes())
    }

    /// Sets the flags of the message.
    #[inline]
    pub(crate) fn set_flags(&mut self, flags: u8) {
        self.short.set_flags(flags);
        if let Some(byte) = self.long.get_mut(3) {
            *byte = flags;
        }
    }

    #[inline]
    pub(crate) fn write(&mut self, kind: Kind, at: u8, arguments: &[u32], bytes: &[u8]) -> Result<(), ReplyError> {
        self.check(arguments, bytes)?;
        if bytes.is_empty() {
            self.short.fill(kind, at, self.id, arguments);
        } else {
            self.long.extend_from_slice(Head::new(kind, at, self.id, arguments).bytes());
            self.long.extend_from_slice(bytes);
        }
        Ok(())
    }

    pub(crate) fn write_bulk(
        &mut self,
        at: u8,
        arguments: &[u32],
        bytes: &[u8],
        offset: u64,
    ) -> Result<(), ReplyError> {
        self.check(arguments, bytes)?;
        let (len, (all, epoch)) = (bytes.len() as u64, self.segment);
        let fits = offset.checked_add(len).is_some_and(|end| end <= all);
        // A buffer is there: the credit of the request stands for it.
        let buffer = if fits && all > 0 { self.buffers.take() } else { None };
        let buffer = buffer.ok_or(ReplyError::NoSegment)?;
        self.buffers.fill(buffer, bytes);
        let span = Span { offset, len, epoch };
        self.write(Kind::ReplyBulk, at, arguments, &span.emit())?;
        self.bulk = Some((buffer, span));
        Ok(())
    }

    #[inline]
    fn check(&self, arguments: &[u32], bytes: &[u8]) -> Result<(), ReplyError> {
        if arguments.len() > MAX_ARGUMENTS {
            return Err(ReplyError::TooManyArguments);
        }
        if bytes.len() > self.buffers.longest() { Err(ReplyError::TooLong) } else { Ok(()) }
    }
}
