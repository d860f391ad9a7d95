//! Messages between the libraries of two VIs: a header of 16 bytes, then bytes. Little-endian.
//!
//! ```text
//! 0      1       2          4           8            16
//! +------+-------+----------+-----------+------------+--------
//! | kind | flags | reserved | length    | value      | bytes
//! +------+-------+----------+-----------+------------+--------
//! ```

pub(crate) const HEADER: usize = 16;

/// The first part of a send: length is that of the whole, value its immediate data.
pub(crate) const SEND: u8 = 1;
/// A later part.
pub(crate) const PART: u8 = 2;
/// The immediate data of an RDMA write of that length, which is in place.
pub(crate) const NOTE: u8 = 3;
/// So many (value) sends have been received.
pub(crate) const RECEIVED: u8 = 4;
/// What is the handle (value)?
pub(crate) const RESOLVE: u8 = 5;
/// The handle (value) is this: base (8), length (8), handle of CCI (32); without them: refused.
pub(crate) const RESOLVED: u8 = 6;
/// The sender's VI is broken; value is the status for what it did not receive.
pub(crate) const BROKEN: u8 = 7;

/// There is immediate data.
pub(crate) const IMMEDIATE: u8 = 1;
/// The peer may write there, read there.
pub(crate) const MAY_WRITE: u8 = 2;
pub(crate) const MAY_READ: u8 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) length: u32,
    pub(crate) value: u64,
}

impl Header {
    /// Two words, stored whole: a load of a word that was stored by bytes has to wait until these
    /// have left the processor's store buffer, behind stores to memory that the peer has.
    #[inline]
    pub(crate) fn emit(&self) -> [u8; HEADER] {
        let first = u64::from(self.length) << 32 | u64::from(self.flags) << 8 | u64::from(self.kind);
        let mut bytes = [0; HEADER];
        if let ([low, high], []) = bytes.as_chunks_mut::<8>() {
            (*low, *high) = (first.to_le_bytes(), self.value.to_le_bytes());
        }
        bytes
    }

    #[inline]
    pub(crate) fn parse(bytes: &[u8; HEADER]) -> Self {
        let [kind, flags, _, _, length @ .., v0, v1, v2, v3, v4, v5, v6, v7] = *bytes;
        let (length, value) = (u32::from_le_bytes(length), u64::from_le_bytes([v0, v1, v2, v3, v4, v5, v6, v7]));
        Self { kind, flags, length, value }
    }

    pub(crate) fn immediate(&self) -> Option<u64> {
        (self.flags & IMMEDIATE != 0).then_some(self.value)
    }
}

/// The payload of a connection request: who is expected.
pub(crate) const TICKET: usize = 12;

pub(crate) fn ticket(number: u64) -> [u8; TICKET] {
    let mut bytes = [0; TICKET];
    bytes[..4].copy_from_slice(b"VIA1");
    bytes[4..].copy_from_slice(&number.to_le_bytes());
    bytes
}

pub(crate) fn ticket_of(bytes: &[u8]) -> Option<u64> {
    let number = bytes.strip_prefix(b"VIA1")?;
    number.try_into().ok().map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_emitted_is_parsed() {
        let header = Header { kind: SEND, flags: IMMEDIATE, length: 70_000, value: 0xDEAD_BEEF };
        assert_eq!(Header::parse(&header.emit()), header);
        assert_eq!(header.immediate(), Some(0xDEAD_BEEF));
        assert_eq!(ticket_of(&ticket(7)), Some(7));
        assert_eq!(ticket_of(b"VIA1"), None);
        assert_eq!(ticket_of(b"VIA212345678"), None);
    }
}
