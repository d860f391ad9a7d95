//! Keys of the live view, from the bytes that a terminal gives for them.

/// A key that the live view has a use for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Char(char),
    /// Ctrl-C, which is a key like any other while the terminal is raw.
    Interrupt,
    Escape,
    Up,
    Down,
    PageUp,
    PageDown,
}

const ESCAPE: u8 = 0x1b;

/// The keys in these bytes; sequences of other keys are passed over.
pub(crate) fn keys(mut bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    while let Some((first, rest)) = bytes.split_first() {
        let (key, rest) = match (first, rest) {
            (&ESCAPE, [b'[' | b'O', sequence @ ..]) => {
                let end = sequence.iter().position(|byte| (0x40..=0x7e).contains(byte));
                let (sequence, rest) = sequence.split_at(end.map_or(sequence.len(), |end| end + 1));
                (of_sequence(sequence), rest)
            }
            (&ESCAPE, rest) => (Some(Key::Escape), rest),
            (3, rest) => (Some(Key::Interrupt), rest),
            (byte, rest) => (byte.is_ascii_graphic().then(|| Key::Char((*byte).into())), rest),
        };
        keys.extend(key.or_else(|| (*first == b' ').then_some(Key::Char(' '))));
        bytes = rest;
    }
    keys
}

/// The key of a control sequence, without what introduces it.
fn of_sequence(sequence: &[u8]) -> Option<Key> {
    match sequence {
        [.., b'A'] => Some(Key::Up),
        [.., b'B'] => Some(Key::Down),
        [b'5', .., b'~'] => Some(Key::PageUp),
        [b'6', .., b'~'] => Some(Key::PageDown),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_arrows_and_pages() {
        assert_eq!(keys(b"q \x03+"), [Key::Char('q'), Key::Char(' '), Key::Interrupt, Key::Char('+')]);
        assert_eq!(keys(b"\x1b[A\x1bOB\x1b[1;5A"), [Key::Up, Key::Down, Key::Up]);
        assert_eq!(keys(b"\x1b[5~\x1b[6~s"), [Key::PageUp, Key::PageDown, Key::Char('s')]);
        assert_eq!(keys(b"\x1b"), [Key::Escape]);
        assert_eq!(keys(b"\x1bq"), [Key::Escape, Key::Char('q')]);
    }

    #[test]
    fn other_keys_and_unfinished_sequences_are_passed_over() {
        for bytes in [&b"\x1b[15~"[..], b"\x1b[", b"\x1b[3", b"\x1bOP", b"\xc3\xa4", b"\x01\t\r", b""] {
            assert_eq!(keys(bytes), [], "{bytes:?}");
        }
    }
}
