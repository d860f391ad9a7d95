//! Lines of several ranks in one stream, each whole and behind the number of its rank.
//!
//! A line is kept until its end comes. One that grows too long for that holds the stream: it is
//! written as it comes, and the lines of other ranks wait until it ends. A rank whose waiting text
//! is long is not read meanwhile. If then the held line does not go on, it may be what waits for
//! such a rank; so it is broken off.

use crate::feed::Feed;
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// The longest text of a rank that is kept.
const LONGEST: usize = 65_536;

/// How long a line may hold the stream without a byte while ranks are not read.
const SILENCE: Duration = Duration::from_secs(1);

/// What a rank has written and the stream has not got.
#[derive(Default)]
struct Text {
    bytes: Vec<u8>,
    /// Whether `ready` has the rank.
    is_ready: bool,
}

/// The texts of ranks that wait for one stream.
#[derive(Default)]
pub(crate) struct Labels {
    texts: BTreeMap<u32, Text>,
    /// Ranks with a whole line, or with a text that is not kept any longer.
    ready: VecDeque<u32>,
    /// The rank whose line holds the stream, and since when it is silent.
    holder: Option<(u32, Instant)>,
}

impl Labels {
    /// Takes what a rank wrote; nothing is its end, which also ends its line.
    pub(crate) fn take<F: AsFd>(&mut self, rank: u32, bytes: &[u8], to: &mut Feed<F>) {
        let mut bytes = bytes;
        if let Some((_, since)) = self.holder.as_mut().filter(|(holder, _)| *holder == rank) {
            *since = Instant::now();
            match bytes.iter().position(|byte| *byte == b'\n') {
                None if bytes.is_empty() => to.push(b"\n"),
                None => return to.push(bytes),
                Some(end) => {
                    to.push(&bytes[..=end]);
                    bytes = &bytes[end + 1..];
                }
            }
            self.holder = None;
        }
        self.keep(rank, bytes);
        self.settle(to);
    }

    fn keep(&mut self, rank: u32, bytes: &[u8]) {
        let text = self.texts.entry(rank).or_default();
        let bytes = match text.bytes.last() {
            Some(last) if bytes.is_empty() && *last != b'\n' => b"\n",
            _ => bytes,
        };
        text.bytes.extend_from_slice(bytes);
        if !text.is_ready && (bytes.contains(&b'\n') || text.bytes.len() >= LONGEST) {
            text.is_ready = true;
            self.ready.push_back(rank);
        } else if text.bytes.is_empty() {
            self.texts.remove(&rank);
        }
    }

    /// Writes what is ready, as long as no line holds the stream and the stream has room.
    pub(crate) fn settle<F: AsFd>(&mut self, to: &mut Feed<F>) {
        while self.holder.is_none() && to.has_room() {
            let Some(rank) = self.ready.pop_front() else { return };
            let Some(mut text) = self.texts.remove(&rank) else { continue };
            let whole = text.bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
            for line in text.bytes[..whole].split_inclusive(|byte| *byte == b'\n') {
                to.push_both(label(rank).as_bytes(), line);
            }
            text.bytes.drain(..whole);
            text.is_ready = false;
            if text.bytes.len() >= LONGEST {
                to.push_both(label(rank).as_bytes(), &text.bytes);
                self.holder = Some((rank, Instant::now()));
            } else if !text.bytes.is_empty() {
                self.texts.insert(rank, text);
            }
        }
    }

    /// The ranks that are not to be read, because their text has to wait.
    pub(crate) fn full(&self) -> impl Iterator<Item = u32> {
        self.texts.iter().filter(|(_, text)| text.bytes.len() >= LONGEST).map(|(rank, _)| *rank)
    }

    /// Whether this rank is not to be read.
    pub(crate) fn is_full(&self, rank: u32) -> bool {
        self.texts.get(&rank).is_some_and(|text| text.bytes.len() >= LONGEST)
    }

    /// Whether lines wait that could be written.
    pub(crate) fn is_done(&self) -> bool {
        self.ready.is_empty()
    }

    /// When the line that holds the stream is broken off, if nothing comes before.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let (_, since) = self.holder?;
        self.full().next().map(|_| since + SILENCE)
    }

    /// The stream has taken bytes, so that what the holder writes could not be read before.
    pub(crate) fn restart(&mut self) {
        self.holder.iter_mut().for_each(|(_, since)| *since = Instant::now());
    }

    /// Breaks off the line that holds the stream.
    pub(crate) fn break_off<F: AsFd>(&mut self, to: &mut Feed<F>) {
        if self.holder.take().is_some() {
            to.push(b"\n");
            self.settle(to);
        }
    }
}

fn label(rank: u32) -> String {
    format!("[{rank}] ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek};

    /// Labels, and a file that they write to.
    struct Stream(Labels, Feed<std::fs::File>, std::fs::File);

    impl Stream {
        fn new() -> Self {
            let file = tempfile::tempfile().expect("a file");
            Self(Labels::default(), Feed::new(file.try_clone().expect("a descriptor")), file)
        }

        fn take(&mut self, rank: u32, text: &str) {
            self.0.take(rank, text.as_bytes(), &mut self.1);
        }

        fn text(mut self) -> String {
            let mut text = String::new();
            self.2.rewind().expect("the start");
            self.2.read_to_string(&mut text).expect("text");
            text
        }
    }

    #[test]
    fn lines_are_labelled_whole() {
        let mut stream = Stream::new();
        for (rank, text) in [(3, "a\n\nb"), (4, "x\ny"), (3, "c\n"), (4, ""), (5, ""), (3, "\n"), (3, "")] {
            stream.take(rank, text);
        }
        assert_eq!(stream.text(), "[3] a\n[3] \n[4] x\n[3] bc\n[4] y\n[3] \n");
    }

    #[test]
    fn a_line_stays_one_whatever_its_length_and_what_others_write() {
        let mut stream = Stream::new();
        let long = "l".repeat(LONGEST);
        for _ in 0..10 {
            stream.take(0, &long);
            stream.take(1, "short\n");
        }
        stream.take(2, "begun");
        stream.take(0, "end\nnext\n");
        stream.take(2, " and ended\n");
        assert!(stream.0.is_done());
        let (first, rest) = (format!("[0] {}end", long.repeat(10)), stream.text());
        let lines: Vec<&str> = rest.lines().collect();
        assert!(lines[0] == first, "the long line is whole");
        assert_eq!(lines[1..], [&["[1] short"; 10][..], &["[0] next", "[2] begun and ended"]].concat());
    }

    #[test]
    fn a_rank_that_waits_for_a_long_line_is_not_read_beyond_a_bound() {
        let mut stream = Stream::new();
        let long = "l".repeat(LONGEST);
        stream.take(0, &long);
        assert!(!stream.0.is_full(0) && stream.0.deadline().is_none(), "it holds the stream, and nobody waits");
        stream.take(1, &long);
        assert!(stream.0.is_full(1) && stream.0.full().eq([1]) && stream.0.deadline().is_some());
        // The end of the rank ends its line. The other long line follows.
        stream.take(0, "");
        assert!(!stream.0.is_full(1) && stream.0.deadline().is_none());
        stream.take(1, "");
        assert!(stream.text() == format!("[0] {long}\n[1] {long}\n"));
    }

    #[test]
    fn a_silent_long_line_is_broken_off_for_a_rank_that_is_not_read() {
        let mut stream = Stream::new();
        let long = "l".repeat(LONGEST);
        stream.take(0, &long);
        stream.take(1, &format!("{long}\n"));
        stream.0.break_off(&mut stream.1);
        stream.take(0, "rest\n");
        assert!(stream.text() == format!("[0] {long}\n[1] {long}\n[0] rest\n"));
    }
}
