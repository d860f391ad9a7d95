//! Memory that ranks have registered.

use cci::RmaHandle;

/// Registered memory of a rank, by its addresses there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) start: u64,
    pub(crate) len: u64,
    pub(crate) handle: RmaHandle,
}

impl Piece {
    fn offset_of(&self, address: u64) -> Option<u64> {
        let offset = address.wrapping_sub(self.start);
        (offset < self.len).then_some(offset)
    }

    /// Whether all of these bytes are its own.
    pub(crate) fn has(&self, address: u64, len: usize) -> bool {
        self.offset_of(address).is_some_and(|offset| len as u64 <= self.len - offset)
    }
}

/// A part of a piece.
pub(crate) struct Part {
    pub(crate) handle: RmaHandle,
    pub(crate) offset: u64,
    pub(crate) len: usize,
}

pub(crate) fn part_of(pieces: &[Piece], address: u64, most: usize) -> Option<Part> {
    pieces.iter().find_map(|piece| {
        let offset = piece.offset_of(address)?;
        let len = usize::try_from(piece.len - offset).map_or(most, |left| left.min(most));
        Some(Part { handle: piece.handle, offset, len })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_ends_with_its_piece() {
        let handle = RmaHandle::from_words([1; 4]);
        let pieces = [(0x1000, 0x100), (0x1100, 0x80)].map(|(start, len)| Piece { start, len, handle });
        let found = |address, most| part_of(&pieces, address, most).map(|part| (part.offset, part.len));
        assert_eq!(found(0x10f8, 100), Some((0xf8, 8)));
        assert_eq!(found(0x1100, 100), Some((0, 100)));
        assert_eq!((found(0xfff, 1), found(0x1180, 1)), (None, None));
        let has = |address, len| pieces.iter().any(|piece| piece.has(address, len));
        assert!(has(0x10f8, 8) && has(0x1100, 0x80) && !has(0x10f8, 9) && !has(0xfff, 1) && !has(0x1180, 1));
    }
}
