//! Messages that lie in several parts.

/// The bytes of a message, in one part or several, which the engine copies into its frames.
///
/// # Example
///
/// ```
/// use cci_proto::{Cursor, Gather};
///
/// let parts = [&b"he"[..], b"llo"];
/// let (mut first, mut second, mut cursor) = ([0; 3], [0; 2], Cursor::default());
/// parts.copy(&mut cursor, &mut first);
/// parts.copy(&mut cursor, &mut second);
/// assert_eq!((parts.total(), &first, &second), (5, b"hel", b"lo"));
/// ```
pub trait Gather {
    /// Returns the bytes of all parts together.
    fn total(&self) -> usize;

    /// Copies bytes of the part with this number, from `offset` on, to the start of `target`: as
    /// many as there are or fit. Returns their number, or `None` behind the last part.
    fn copy_part(&self, part: usize, offset: usize, target: &mut [u8]) -> Option<usize>;

    /// Fills `target` with the next bytes, and moves the cursor behind them. Bytes behind the end
    /// of the message stay as they are.
    #[inline]
    fn copy(&self, cursor: &mut Cursor, target: &mut [u8]) {
        let mut filled = 0;
        while filled < target.len() {
            let Some(copied) = self.copy_part(cursor.part, cursor.offset, &mut target[filled..]) else { return };
            filled += copied;
            cursor.offset += copied;
            if filled < target.len() {
                *cursor = Cursor { part: cursor.part + 1, offset: 0 };
            }
        }
    }
}

/// Where the next copy of a message begins. The default is its start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor {
    part: usize,
    offset: usize,
}

impl<P: AsRef<[u8]>> Gather for [P] {
    #[inline]
    fn total(&self) -> usize {
        self.iter().map(|part| part.as_ref().len()).sum()
    }

    #[inline]
    fn copy_part(&self, part: usize, offset: usize, target: &mut [u8]) -> Option<usize> {
        let rest = self.get(part)?.as_ref().get(offset..)?;
        let count = rest.len().min(target.len());
        target[..count].copy_from_slice(&rest[..count]);
        Some(count)
    }
}

impl<P: AsRef<[u8]>, const N: usize> Gather for [P; N] {
    #[inline]
    fn total(&self) -> usize {
        self[..].total()
    }

    #[inline]
    fn copy_part(&self, part: usize, offset: usize, target: &mut [u8]) -> Option<usize> {
        self[..].copy_part(part, offset, target)
    }
}
