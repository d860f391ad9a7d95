//! Messages between hosts (`docs/design/sci.md`, Between two hosts).

use crate::mirror::Groups;
use cci::RmaHandle;

/// Bytes before what follows.
pub(crate) const HEADER: usize = 24;
/// Events of one connection to an interrupt with bytes that nobody has taken, at most.
pub(crate) const MOST_DATA: u32 = 16;
/// Bytes of a handle.
const HANDLE: usize = 32;
/// ATTACH: the interrupt takes bytes.
const WITH_BYTES: u8 = 1;
/// The kind of a PATCH. Flag: it is to be confirmed.
const PATCH: u8 = 9;
const IS_ASKING: u8 = 1;
/// The kind of a WATCH. Flag: the owner watches the block no more.
const WATCH: u8 = 12;
const IS_END: u8 = 1;

/// A message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Message {
    Connect {
        token: u64,
        segment: u32,
        node: u32,
    },
    Attach {
        token: u64,
        interrupt: u32,
        has_bytes: bool,
    },
    Answer {
        token: u64,
        answer: Answer,
    },
    Disconnect {
        token: u64,
    },
    Notice {
        token: u64,
        reason: u32,
    },
    Trigger {
        token: u64,
    },
    Data {
        token: u64,
        bytes: Vec<u8>,
    },
    Taken {
        token: u64,
    },
    Patch {
        token: u64,
        number: u32,
        is_asking: bool,
        groups: Groups,
    },
    Applied {
        token: u64,
        number: u32,
    },
    /// A member of a broadcast group; of no bytes: there is none here.
    Join {
        token: u64,
        group: u32,
        len: u64,
        memory: u64,
        is_answer: bool,
        is_published: bool,
    },
    /// A mirror asks what a block has that differs from these sums of its pages, and what the
    /// program of the owner changes from then on.
    Watch {
        token: u64,
        block: u32,
        sums: Vec<u64>,
    },
    /// Nothing is stored to a block any more.
    Unwatch {
        token: u64,
        block: u32,
    },
    /// Words of a segment that are not what its mirror has, behind the patch of this number.
    Changed {
        token: u64,
        number: u32,
        groups: Groups,
    },
    /// The owner has sent what differs in a block.
    Watched {
        token: u64,
        block: u32,
    },
}

/// What an owner answers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    Refused(u32),
    Interrupt,
    Segment(RmaHandle, u64),
}

/// A PATCH as it was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Patch<'a> {
    pub(crate) token: u64,
    pub(crate) number: u32,
    pub(crate) is_asking: bool,
    /// Places of its groups count from here.
    pub(crate) first: u64,
    pub(crate) groups: &'a [u8],
}

impl<'a> Patch<'a> {
    /// `None`: it is another message, or malformed.
    pub(crate) fn parse(message: &'a [u8]) -> Option<Self> {
        let (header, groups) = message.split_at_checked(HEADER)?;
        let [PATCH, flags @ (0 | IS_ASKING), 0, 0] = header[..4] else { return None };
        let (number, token, first) = numbers(header)?;
        Some(Self { token, number, is_asking: flags == IS_ASKING, first, groups })
    }
}

/// The numbers of a header: word, token and long.
fn numbers(header: &[u8]) -> Option<(u32, u64, u64)> {
    let (word, rest) = header.get(4..HEADER)?.split_first_chunk()?;
    let (token, long) = rest.split_first_chunk()?;
    Some((u32::from_le_bytes(*word), u64::from_le_bytes(*token), u64::from_le_bytes(long.try_into().ok()?)))
}

impl Message {
    pub(crate) fn emit(&self) -> Vec<u8> {
        let of_join = match self {
            Self::Join { memory, is_answer, is_published, .. } => {
                let flags = u64::from(*is_answer) | u64::from(*is_published) << 1;
                [memory.to_le_bytes(), flags.to_le_bytes()]
            }
            _ => [[0; 8]; 2],
        };
        let of_watch: Vec<u8> = match self {
            Self::Watch { sums, .. } => sums.iter().flat_map(|sum| sum.to_le_bytes()).collect(),
            _ => Vec::new(),
        };
        let (kind, flags, word, token, long, rest): (u8, u8, u32, u64, u64, &[u8]) = match self {
            Self::Connect { token, segment, node } => (1, 0, *segment, *token, u64::from(*node), &[]),
            Self::Attach { token, interrupt, has_bytes } => {
                (2, if *has_bytes { WITH_BYTES } else { 0 }, *interrupt, *token, 0, &[])
            }
            Self::Answer { token, answer: Answer::Refused(code) } => (3, 0, *code, *token, 0, &[]),
            Self::Answer { token, answer: Answer::Interrupt } => (3, 0, 0, *token, 0, &[]),
            Self::Answer { token, answer: Answer::Segment(handle, size) } => {
                (3, 0, 0, *token, *size, &handle.to_bytes())
            }
            Self::Disconnect { token } => (4, 0, 0, *token, 0, &[]),
            Self::Notice { token, reason } => (5, 0, *reason, *token, 0, &[]),
            Self::Trigger { token } => (6, 0, 0, *token, 0, &[]),
            Self::Data { token, bytes } => (7, 0, 0, *token, 0, bytes),
            Self::Taken { token } => (8, 0, 0, *token, 0, &[]),
            Self::Patch { token, number, is_asking, groups } => {
                (PATCH, if *is_asking { IS_ASKING } else { 0 }, *number, *token, groups.first, &groups.bytes)
            }
            Self::Applied { token, number } => (10, 0, *number, *token, 0, &[]),
            Self::Join { token, group, len, .. } => (11, 0, *group, *token, *len, of_join.as_flattened()),
            Self::Watch { token, block, .. } => (WATCH, 0, *block, *token, 0, &of_watch),
            Self::Unwatch { token, block } => (WATCH, IS_END, *block, *token, 0, &[]),
            Self::Changed { token, number, groups } => (13, 0, *number, *token, groups.first, &groups.bytes),
            Self::Watched { token, block } => (14, 0, *block, *token, 0, &[]),
        };
        let mut message = Vec::with_capacity(HEADER + rest.len());
        message.extend([kind, flags, 0, 0]);
        message.extend(word.to_le_bytes());
        message.extend(token.to_le_bytes());
        message.extend(long.to_le_bytes());
        message.extend(rest);
        message
    }

    /// `None`: it is malformed.
    pub(crate) fn parse(message: &[u8]) -> Option<Self> {
        let (header, rest) = message.split_at_checked(HEADER)?;
        let (word, token, long) = numbers(header)?;
        let flags = header[1];
        if header[2..4] != [0, 0] || (flags != 0 && !matches!(header[0], 2 | PATCH | WATCH)) || flags > WITH_BYTES {
            return None;
        }
        let is_plain = rest.is_empty() && long == 0;
        Some(match header[0] {
            1 if rest.is_empty() => Self::Connect { token, segment: word, node: u32::try_from(long).ok()? },
            2 if is_plain => Self::Attach { token, interrupt: word, has_bytes: flags == WITH_BYTES },
            3 if is_plain && word != 0 => Self::Answer { token, answer: Answer::Refused(word) },
            3 if is_plain => Self::Answer { token, answer: Answer::Interrupt },
            3 if word == 0 && long != 0 && rest.len() == HANDLE => {
                let handle = RmaHandle::from_bytes(rest)?;
                Self::Answer { token, answer: Answer::Segment(handle, long) }
            }
            4 if is_plain && word == 0 => Self::Disconnect { token },
            5 if is_plain => Self::Notice { token, reason: word },
            6 if is_plain && word == 0 => Self::Trigger { token },
            7 if long == 0 && word == 0 => Self::Data { token, bytes: rest.to_vec() },
            8 if is_plain && word == 0 => Self::Taken { token },
            PATCH => {
                let groups = Groups { first: long, bytes: rest.to_vec() };
                Self::Patch { token, number: word, is_asking: flags == IS_ASKING, groups }
            }
            10 if is_plain => Self::Applied { token, number: word },
            11 if rest.len() == 16 => {
                let [memory, flags] = [0, 8].map(|at| rest[at..].first_chunk().map(|bytes| u64::from_le_bytes(*bytes)));
                let (memory, flags) = (memory?, flags.filter(|flags| *flags <= 3)?);
                let (is_answer, is_published) = (flags & 1 != 0, flags & 2 != 0);
                Self::Join { token, group: word, len: long, memory, is_answer, is_published }
            }
            WATCH if is_plain && flags == IS_END => Self::Unwatch { token, block: word },
            WATCH if long == 0 && flags == 0 => {
                let (sums, left) = rest.as_chunks();
                let sums: Vec<_> = sums.iter().map(|sum| u64::from_le_bytes(*sum)).collect();
                return (left.is_empty() && !sums.is_empty()).then_some(Self::Watch { token, block: word, sums });
            }
            13 => Self::Changed { token, number: word, groups: Groups { first: long, bytes: rest.to_vec() } },
            14 if is_plain => Self::Watched { token, block: word },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Message> {
        let token = 0x0123_4567_89ab_cdef;
        let handle = RmaHandle::from_words([1, 2, 3, 4]);
        vec![
            Message::Connect { token, segment: u32::MAX, node: 8 },
            Message::Attach { token, interrupt: 7, has_bytes: false },
            Message::Attach { token, interrupt: 7, has_bytes: true },
            Message::Answer { token, answer: Answer::Refused(0x4000_090c) },
            Message::Answer { token, answer: Answer::Interrupt },
            Message::Answer { token, answer: Answer::Segment(handle, 4096) },
            Message::Disconnect { token },
            Message::Notice { token, reason: 5 },
            Message::Trigger { token },
            Message::Data { token, bytes: b"bytes".to_vec() },
            Message::Data { token, bytes: Vec::new() },
            Message::Taken { token },
            Message::Patch {
                token,
                number: 7,
                is_asking: false,
                groups: Groups { first: 1 << 40, bytes: vec![1; 24] },
            },
            Message::Patch { token, number: u32::MAX, is_asking: true, groups: Groups { first: 0, bytes: Vec::new() } },
            Message::Applied { token, number: 7 },
            Message::Join { token, group: 7, len: 4096, memory: u64::MAX, is_answer: false, is_published: true },
            Message::Join { token, group: 0, len: 0, memory: 1, is_answer: true, is_published: false },
            Message::Watch { token, block: 3, sums: vec![7, u64::MAX] },
            Message::Unwatch { token, block: u32::MAX },
            Message::Changed { token, number: 7, groups: Groups { first: 1 << 40, bytes: vec![1; 24] } },
            Message::Watched { token, block: 3 },
        ]
    }

    #[test]
    fn a_message_is_read_as_written() {
        for message in all() {
            assert_eq!(Message::parse(&message.emit()), Some(message));
        }
    }

    #[test]
    fn what_is_no_message_is_refused() {
        for message in all() {
            let bytes = message.emit();
            for len in 0..bytes.len() {
                let cut = Message::parse(&bytes[..len]);
                let is_shorter = match message {
                    Message::Data { .. } | Message::Patch { .. } | Message::Changed { .. } => len >= HEADER,
                    // One sum fewer.
                    Message::Watch { .. } => len == HEADER + 8,
                    _ => false,
                };
                assert_eq!(cut.is_some(), is_shorter, "{message:?} cut to {len}");
            }
            let with = |at: usize, value: u8| {
                let mut wrong = bytes.clone();
                wrong[at] = value;
                Message::parse(&wrong)
            };
            assert_eq!([with(0, 0), with(0, 15), with(1, 2), with(2, 1), with(3, 1)], [const { None }; 5]);
            if !matches!(message, Message::Data { .. } | Message::Patch { .. } | Message::Changed { .. }) {
                assert_eq!(Message::parse(&[&bytes[..], &[0]].concat()), None, "{message:?} and a byte");
            }
        }
    }
}
