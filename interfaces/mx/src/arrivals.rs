//! Unexpected messages: their bytes, and what they count for.

use crate::types::{Buffer, Segments};
use crate::wire::Remote;
use cci::View;

/// Messages up to this length are kept beside their entry, bytes.
const INLINE: usize = 64;
/// Lengths of the buffers for others: twice the one before each.
const FIRST: usize = 128;
const CLASSES: usize = 8;
/// The longest eager message, bytes.
pub(crate) const MOST_EAGER: usize = FIRST << (CLASSES - 1);

/// The bytes of a message that has arrived, from `from` on.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    /// Private to this process.
    Bytes(&'a [u8]),
    /// A peer can write them.
    View(View<'a>),
}

impl Source<'_> {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::View(view) => view.len(),
        }
    }

    pub(crate) fn copy_to(&self, from: usize, target: &mut [u8]) -> usize {
        match self {
            Self::Bytes(bytes) => {
                let bytes = bytes.get(from..).unwrap_or_default();
                let len = bytes.len().min(target.len());
                target[..len].copy_from_slice(&bytes[..len]);
                len
            }
            Self::View(view) => view.copy_to(from, target),
        }
    }

    /// Copies `len` bytes from `from` on into segments.
    #[inline]
    pub(crate) fn copy_into<B: Buffer>(&self, from: usize, len: usize, to: &Segments<B>) -> bool {
        match self {
            Self::Bytes(bytes) => bytes.get(from..from + len).is_some_and(|bytes| to.copy_in(0, bytes)),
            Self::View(view) => to.copy_view(view, from, len),
        }
    }
}

/// What is kept of an unexpected message.
pub(crate) enum Body {
    Short([u8; INLINE]),
    /// As long as its class.
    Long(Vec<u8>),
    /// Memory of the sender.
    Offered(Vec<Remote>),
    /// A send of this endpoint to itself that found no room.
    Own,
}

/// An unexpected message, but for its match bits.
pub(crate) struct Arrival {
    /// The number of the partner, and its session.
    pub(crate) peer: u32,
    pub(crate) session: u32,
    /// The link that it came by.
    pub(crate) link: u32,
    pub(crate) length: u32,
    /// Granules.
    pub(crate) cost: u32,
    /// The sender's request, if it waits for the end.
    pub(crate) number: Option<u64>,
    pub(crate) body: Body,
}

/// Buffers that are used again. There are as many as there have been unexpected messages at once,
/// which credits bound.
#[derive(Default)]
pub(crate) struct Buffers {
    free: [Vec<Vec<u8>>; CLASSES],
    offers: Vec<Vec<Remote>>,
}

impl Buffers {
    /// Keeps the bytes that `fill` writes; `None`: there is no memory.
    pub(crate) fn keep(&mut self, len: usize, fill: impl FnOnce(&mut [u8])) -> Option<Body> {
        if len <= INLINE {
            let mut bytes = [0; INLINE];
            fill(&mut bytes[..len]);
            return Some(Body::Short(bytes));
        }
        let class = (0..CLASSES).find(|class| len <= FIRST << class)?;
        let mut bytes = match self.free[class].pop() {
            Some(bytes) => bytes,
            None => {
                let mut bytes = Vec::new();
                bytes.try_reserve_exact(FIRST << class).ok()?;
                bytes.resize(FIRST << class, 0);
                bytes
            }
        };
        fill(&mut bytes[..len]);
        Some(Body::Long(bytes))
    }

    pub(crate) fn offer(&mut self) -> Vec<Remote> {
        self.offers.pop().unwrap_or_default()
    }

    pub(crate) fn give_back(&mut self, body: Body) {
        match body {
            Body::Long(bytes) => {
                if let Some(class) = (0..CLASSES).find(|class| bytes.len() == FIRST << class) {
                    self.free[class].push(bytes);
                }
            }
            Body::Offered(offer) => self.offers.push(offer),
            Body::Short(_) | Body::Own => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_used_again_by_a_message_of_its_class() {
        let mut buffers = Buffers::default();
        for (len, class) in [(65, 128), (128, 128), (129, 256), (MOST_EAGER, MOST_EAGER)] {
            let body = buffers.keep(len, |bytes| bytes.fill(7)).expect("memory");
            let Body::Long(bytes) = &body else { panic!("too long to lie beside the entry") };
            assert_eq!((bytes.len(), bytes[len - 1]), (class, 7));
            let at = bytes.as_ptr();
            buffers.give_back(body);
            let again = buffers.keep(len, |_| {}).expect("memory");
            assert!(matches!(&again, Body::Long(bytes) if bytes.as_ptr() == at));
            buffers.give_back(again);
        }
        assert!(matches!(buffers.keep(64, |_| {}), Some(Body::Short(_))));
        assert!(buffers.keep(MOST_EAGER + 1, |_| {}).is_none());
    }
}
