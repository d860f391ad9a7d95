//! The bytes of messages: where they have come, and what is kept of them.

use cci::{RmaHandle, View};

/// Messages up to this length are kept beside their entry, bytes.
const INLINE: usize = 64;
/// Lengths of the buffers for others: twice the one before each.
const FIRST: usize = 128;
const CLASSES: usize = 8;

/// The longest message that [`Buffers`] keep, in bytes.
///
/// # Example
///
/// ```
/// assert_eq!(cci_rendezvous::MOST_KEPT, 16 << 10);
/// ```
pub const MOST_KEPT: usize = FIRST << (CLASSES - 1);

/// The bytes of a message that has arrived, as long as its event is borrowed.
///
/// # Example
///
/// ```
/// use cci_rendezvous::Source;
///
/// let mut bytes = [0; 8];
/// assert_eq!((Source::Bytes(b"a message").copy_to(2, &mut bytes), &bytes), (7, b"message\0"));
/// ```
#[derive(Clone, Copy)]
#[expect(clippy::exhaustive_enums, reason = "a caller copies from each in its own way")]
pub enum Source<'a> {
    /// Private to this process.
    Bytes(&'a [u8]),
    /// A peer can write them: what is copied out twice may differ.
    View(View<'a>),
}

impl Source<'_> {
    /// Returns the bytes of the whole message.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::View(view) => view.len(),
        }
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies bytes from `from` on, as far as there are some and `target` has room for them.
    /// Returns how many.
    pub fn copy_to(&self, from: usize, target: &mut [u8]) -> usize {
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
}

/// Memory of a partner that it has offered: its bytes, 64 bits as on the wire of libfabric, and its
/// handle for RMA.
///
/// # Example
///
/// ```
/// use cci_rendezvous::Remote;
///
/// fn length(parts: &[Remote]) -> Option<u64> {
///     parts.iter().try_fold(0, |sum: u64, part| sum.checked_add(part.len))
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "it is made by who has parsed a message")]
pub struct Remote {
    /// Bytes.
    pub len: u64,
    /// The handle of CCI.
    pub handle: RmaHandle,
}

/// What is kept of a message that no receive has matched. It is given back to [`Buffers`].
///
/// # Example
///
/// ```
/// use cci_rendezvous::Body;
///
/// /// The bytes of a message of `len` bytes that were kept.
/// fn bytes(body: &Body, len: usize) -> Option<&[u8]> {
///     match body {
///         Body::Short(bytes) => bytes.get(..len),
///         Body::Long(bytes) => bytes.get(..len),
///         Body::Offered(_) | Body::Own => None,
///     }
/// }
/// ```
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "a receive takes each in its own way")]
pub enum Body {
    /// Its bytes, from the first on.
    Short([u8; INLINE]),
    /// Its bytes, in a buffer as long as its class.
    Long(Vec<u8>),
    /// Memory of its sender.
    Offered(Vec<Remote>),
    /// None: a send of this endpoint to itself, whose memory still has them.
    Own,
}

/// Buffers that are used again. There are as many as there have been messages at once, which the
/// caller bounds.
///
/// Lengths of what is kept are `usize`, since it lies in this process; those of what is offered are
/// `u64` ([`Remote`]).
///
/// # Example
///
/// ```
/// use cci_rendezvous::{Body, Buffers, Source};
///
/// let (mut buffers, message) = (Buffers::default(), Source::Bytes(&[7; 1_000]));
/// let body = buffers.keep(message.len(), |bytes| {
///     message.copy_to(0, bytes);
/// });
/// let body = body.ok_or("no memory")?;
/// assert!(matches!(&body, Body::Long(bytes) if bytes[..1_000] == [7; 1_000]));
/// // The next one has its memory.
/// buffers.give_back(body);
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug, Default)]
pub struct Buffers {
    free: [Vec<Vec<u8>>; CLASSES],
    offers: Vec<Vec<Remote>>,
}

impl Buffers {
    /// Keeps the bytes that `fill` writes. `None`: there is no memory, or `len` is beyond
    /// [`MOST_KEPT`].
    pub fn keep(&mut self, len: usize, fill: impl FnOnce(&mut [u8])) -> Option<Body> {
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

    /// Returns an empty list for memory that a partner offers.
    pub fn offer(&mut self) -> Vec<Remote> {
        let mut offer = self.offers.pop().unwrap_or_default();
        offer.clear();
        offer
    }

    /// Takes back what is no longer needed of a message, to be used again.
    pub fn give_back(&mut self, body: Body) {
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
        for (len, class) in [(65, 128), (128, 128), (129, 256), (MOST_KEPT, MOST_KEPT)] {
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
        for len in [MOST_KEPT + 1, 1 << 32, usize::MAX] {
            assert!(buffers.keep(len, |_| panic!("{len} bytes are kept")).is_none());
        }
    }

    #[test]
    fn a_list_of_offered_memory_is_used_again() {
        let mut buffers = Buffers::default();
        let mut offer = buffers.offer();
        offer.push(Remote { len: 1 << 40, handle: RmaHandle::from_bytes(&[1; 32]).expect("a handle") });
        let at = offer.as_ptr();
        buffers.give_back(Body::Offered(offer));
        buffers.give_back(Body::Own);
        let again = buffers.offer();
        assert!(again.as_ptr() == at && again.is_empty());
        assert_eq!(buffers.offer().capacity(), 0);
    }

    #[test]
    fn both_kinds_of_sources_are_copied_alike() {
        let mut bytes: Vec<u8> = (0..100).collect();
        let copy = bytes.clone();
        for source in [Source::Bytes(&copy), Source::View(View::of(&mut bytes))] {
            assert!(source.len() == 100 && !source.is_empty());
            for (from, room, len) in [(0, 100, 100), (1, 100, 99), (99, 5, 1), (100, 5, 0), (101, 5, 0), (3, 4, 4)] {
                let mut target = vec![0xff; room];
                assert_eq!(source.copy_to(from, &mut target), len, "{from} {room}");
                assert_eq!(target[..len], copy[from.min(100)..][..len], "{from} {room}");
                assert_eq!(target[len..], vec![0xff; room - len], "{from} {room}");
            }
        }
        assert!(Source::Bytes(&[]).is_empty());
    }
}
