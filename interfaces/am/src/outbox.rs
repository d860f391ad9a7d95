//! The reply that a handler writes, and the buffers of replies that cannot leave at once.

use crate::errors::ReplyError;
use crate::reply_buffers::ReplyBuffers;
use crate::wire::{Head, Kind, MAX_ARGUMENTS, Span};

/// The reply to the request whose handler runs.
#[derive(Debug)]
pub(crate) struct Outbox {
    /// The message; empty: no reply yet.
    pub(crate) message: Vec<u8>,
    /// The buffer of a bulk reply's bytes, and where they go.
    pub(crate) bulk: Option<(u32, Span)>,
    pub(crate) buffers: ReplyBuffers,
    id: u32,
    /// The requester's segment: length and epoch.
    segment: (u64, u32),
}

impl Outbox {
    pub(crate) fn new(buffers: ReplyBuffers) -> Self {
        Self { message: Vec::with_capacity(256), bulk: None, buffers, id: 0, segment: (0, 0) }
    }

    /// Prepares for the reply to a request.
    #[inline]
    pub(crate) fn begin(&mut self, id: u32, segment: (u64, u32)) {
        self.message.clear();
        self.bulk = None;
        (self.id, self.segment) = (id, segment);
    }

    #[inline]
    pub(crate) fn write(&mut self, kind: Kind, at: u8, arguments: &[u32], bytes: &[u8]) -> Result<(), ReplyError> {
        self.check(arguments, bytes)?;
        self.message.extend_from_slice(Head::new(kind, at, self.id, arguments).bytes());
        self.message.extend_from_slice(bytes);
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
