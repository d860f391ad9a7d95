//! What ranks write, as it is or with the rank in front of each line.

use crate::feed::Feed;
use std::collections::BTreeMap;
use std::io::{Stderr, Stdout, stderr, stdout};

/// The longest line that is kept until its end comes.
const LONGEST_LINE: usize = 65_536;

/// Which of the two a rank wrote to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Channel {
    Output,
    Errors,
}

pub(crate) const CHANNELS: [Channel; 2] = [Channel::Output, Channel::Errors];

/// The launcher's own standard output and standard error.
pub(crate) struct Output {
    pub(crate) output: Feed<Stdout>,
    pub(crate) errors: Feed<Stderr>,
    label: bool,
    /// What messages begin with.
    speaker: String,
    /// The begun lines.
    lines: BTreeMap<(u32, Channel), Vec<u8>>,
}

impl Output {
    pub(crate) fn new(label: bool, speaker: &str) -> Self {
        let speaker = speaker.to_owned();
        Self { output: Feed::new(stdout()), errors: Feed::new(stderr()), label, speaker, lines: BTreeMap::new() }
    }

    /// Whether ranks may be read.
    pub(crate) fn has_room(&self) -> bool {
        self.output.has_room() && self.errors.has_room()
    }

    /// Whether everything has been written.
    pub(crate) fn is_done(&self) -> bool {
        self.output.is_done() && self.errors.is_done()
    }

    /// Whether nobody reads this channel any more.
    pub(crate) fn is_closed(&self, channel: Channel) -> bool {
        match channel {
            Channel::Output => self.output.open().is_none(),
            Channel::Errors => self.errors.open().is_none(),
        }
    }

    fn push(&mut self, channel: Channel, bytes: &[u8]) {
        match channel {
            Channel::Output => self.output.push(bytes),
            Channel::Errors => self.errors.push(bytes),
        }
    }

    /// Takes what a rank wrote; nothing is its end.
    pub(crate) fn take(&mut self, rank: u32, channel: Channel, bytes: &[u8]) {
        if !self.label {
            return self.push(channel, bytes);
        }
        let mut line = self.lines.remove(&(rank, channel)).unwrap_or_default();
        line.extend_from_slice(bytes);
        let whole = whole(&line, bytes.is_empty());
        let labelled = labelled(rank, &line[..whole]);
        self.push(channel, &labelled);
        if whole < line.len() {
            self.lines.insert((rank, channel), line.split_off(whole));
        }
    }

    /// Writes a message of the launcher's own.
    pub(crate) fn report(&mut self, text: &str) {
        self.errors.push(format!("{}: {text}\n", self.speaker).as_bytes());
    }
}

/// How much of what came is whole lines: all at the end, or where a line is too long.
fn whole(text: &[u8], is_end: bool) -> usize {
    if is_end || text.len() > LONGEST_LINE {
        return text.len();
    }
    text.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1)
}

/// Each line behind its rank; a last one without an end gets one.
fn labelled(rank: u32, lines: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(lines.len() + 16);
    for line in lines.split_inclusive(|byte| *byte == b'\n') {
        text.extend_from_slice(format!("[{rank}] ").as_bytes());
        text.extend_from_slice(line);
    }
    if text.last().is_some_and(|last| *last != b'\n') {
        text.push(b'\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_labelled_whole() {
        assert_eq!(labelled(3, b"a\n\nb"), b"[3] a\n[3] \n[3] b\n");
        assert_eq!((whole(b"a\nb", false), whole(b"ab", false), whole(b"ab", true)), (2, 0, 2));
        assert_eq!(whole(&[b'x'; LONGEST_LINE + 1], false), LONGEST_LINE + 1);
    }
}
