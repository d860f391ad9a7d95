//! What a program and an engine read of the lines that they share.

use super::frames::{Command, Returned, read_event, write_event};
use super::rings::Frame;

/// Lines of 64 bytes: kind, word, body.
fn lines(bytes: &[u8]) -> impl Iterator<Item = Frame> {
    bytes.as_chunks::<64>().0.iter().map(|line| {
        let words = line.as_chunks::<8>().0;
        let word = |at: usize| words.get(at).map_or(0, |word| u64::from_le_bytes(*word));
        let first = word(0);
        Frame { kind: first as u8, word: (first >> 32) as u32, body: std::array::from_fn(|at| word(at + 1)) }
    })
}

/// What a program writes for the engine: a command means the same when it is written again.
pub fn commands(bytes: &[u8]) {
    for frame in lines(bytes) {
        if let Some(command) = Command::parse(&frame) {
            assert_eq!(Command::parse(&command.frame()), Some(command));
        }
    }
}

/// What the engine writes for a program.
pub fn events(bytes: &[u8]) {
    let mut first = None;
    for frame in lines(bytes) {
        match (Returned::parse(&frame), first.take()) {
            (Some(Returned::Event), _) => first = Some(frame),
            (Some(Returned::Rest), Some(first)) => {
                if let Some((event, is_lost)) = read_event(&first, &frame) {
                    let [first, rest] = write_event(&event, is_lost);
                    assert_eq!(read_event(&first, &rest), Some((event, is_lost)));
                }
            }
            _ => {}
        }
    }
}
