//! The messages between ranks that do not map each other's memory, and for addresses that nobody
//! maps. All numbers are little-endian.

use crate::sys::Change;

/// Bytes of a header: kind, size of a word or status, 2 zeroes, number u32, address u64, two words.
pub(crate) const HEADER: usize = 32;

/// What a message asks, or that it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// For so many bytes.
    Read(u64),
    /// To write the payload.
    Write,
    /// To write the payload, and to count its bytes as stored.
    Store,
    /// To change a word of so many bytes.
    Change(u8, Change),
    /// Nothing: the receiver sleeps.
    Wake,
    /// Nothing: the answer, whether it was done, and the old value of a word; the payload has the
    /// bytes that were read.
    Answer(bool, u64),
    /// Nothing: a store of so many bytes that could not be done, whose number is the rank.
    Lost(u64),
}

/// Takes an answer: whose it is, if that is known, and header and payload.
pub(crate) type OnAnswer<'a> = &'a mut dyn FnMut(Option<u32>, &[u8]);

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) ask: Ask,
    /// Of the request, by which its answer is known.
    pub(crate) number: u32,
    pub(crate) address: u64,
}

impl Header {
    pub(crate) fn emit(&self) -> [u8; HEADER] {
        let (kind, size, words) = match self.ask {
            Ask::Read(len) => (1, 0, [len, 0]),
            Ask::Write => (2, 0, [0, 0]),
            Ask::Store => (3, 0, [0, 0]),
            Ask::Change(size, Change::Add(value)) => (4, size, [value, 0]),
            Ask::Change(size, Change::Swap(value)) => (5, size, [value, 0]),
            Ask::Change(size, Change::CompareSwap { expected, desired }) => (6, size, [expected, desired]),
            Ask::Wake => (7, 0, [0, 0]),
            Ask::Answer(is_done, value) => (8, u8::from(is_done), [value, 0]),
            Ask::Lost(len) => (9, 0, [len, 0]),
        };
        let mut bytes = [0; HEADER];
        bytes[..2].copy_from_slice(&[kind, size]);
        bytes[4..8].copy_from_slice(&self.number.to_le_bytes());
        for (place, word) in bytes[8..].chunks_exact_mut(8).zip([self.address, words[0], words[1]]) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// The header and the payload. None: malformed.
    pub(crate) fn parse(message: &[u8]) -> Option<(Self, &[u8])> {
        let (header, payload) = message.split_first_chunk::<HEADER>()?;
        let word = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("8 bytes"));
        let (size, first, second) = (header[1], word(16), word(24));
        let ask = match header[0] {
            1 => Ask::Read(first),
            2 => Ask::Write,
            3 => Ask::Store,
            4 => Ask::Change(size, Change::Add(first)),
            5 => Ask::Change(size, Change::Swap(first)),
            6 => Ask::Change(size, Change::CompareSwap { expected: first, desired: second }),
            7 => Ask::Wake,
            8 => Ask::Answer(size == 1, first),
            9 => Ask::Lost(first),
            _ => return None,
        };
        let number = u32::from_le_bytes(header[4..8].try_into().expect("4 bytes"));
        Some((Self { ask, number, address: word(8) }, payload))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_as_they_were_written_and_others_refused() {
        let swap = Change::CompareSwap { expected: 5, desired: u64::MAX };
        let changes = [Change::Add(1), Change::Swap(2), swap].map(|change| Ask::Change(8, change));
        let others = [
            Ask::Read(9),
            Ask::Write,
            Ask::Store,
            Ask::Wake,
            Ask::Answer(true, 7),
            Ask::Answer(false, 0),
            Ask::Lost(5),
        ];
        for ask in changes.into_iter().chain(others) {
            let header = Header { ask, number: 0x0102_0304, address: 1 << 47 };
            let message = [&header.emit()[..], b"payload"].concat();
            assert_eq!(Header::parse(&message), Some((header, &b"payload"[..])));
            assert_eq!(Header::parse(&message[..HEADER - 1]), None);
        }
        assert_eq!(Header::parse(&[0; HEADER]), None);
        assert_eq!(Header::parse(&[10; HEADER]), None);
    }
}
