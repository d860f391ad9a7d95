//! What ranks write, as it is or with the rank in front of each line.

use crate::feed::{Feed, MOST};
use crate::labels::Labels;
use cci_report::UserError;
use rustix::io::Errno;
use rustix::stdio::{stderr, stdout};
use std::os::fd::BorrowedFd;
use std::time::Instant;

/// Which of the two a rank wrote to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Channel {
    Output,
    Errors,
}

pub(crate) const CHANNELS: [Channel; 2] = [Channel::Output, Channel::Errors];

impl Channel {
    fn name(self) -> &'static str {
        match self {
            Self::Output => "standard output",
            Self::Errors => "standard error",
        }
    }
}

/// The status of a shell for a process that SIGPIPE has ended.
const BROKEN_PIPE: u8 = 141;

/// The launcher's own standard output or standard error.
struct Stream {
    feed: Feed<BorrowedFd<'static>>,
    labels: Option<Labels>,
    /// Whether bytes of ranks go this way.
    carries: bool,
    /// Whether bytes of ranks could not be written.
    has_lost: bool,
}

/// The launcher's own standard output and standard error.
pub(crate) struct Output {
    streams: [Stream; 2],
    /// What messages begin with.
    speaker: String,
    is_reported: bool,
    /// The output had no room, and half of it has not left since: no rank elsewhere is read.
    is_held: bool,
}

impl Output {
    /// `carries`: the launcher reads what ranks write, and labels it or not.
    pub(crate) fn new(carries: bool, label: bool, speaker: &str) -> Self {
        let stream = |to| {
            let labels = label.then(Labels::default);
            Stream { feed: Feed::shared(to), labels, carries, has_lost: false }
        };
        Self {
            streams: [stream(stdout()), stream(stderr())],
            speaker: speaker.to_owned(),
            is_reported: false,
            is_held: false,
        }
    }

    /// Whether ranks may be read.
    pub(crate) fn has_room(&self) -> bool {
        self.streams.iter().all(|stream| stream.feed.has_room())
    }

    /// Whether ranks elsewhere are not to be read: from when there is no room until half is free.
    pub(crate) fn hold(&mut self) -> bool {
        let is_half_empty = |stream: &Stream| stream.feed.is_done() || stream.feed.len() <= MOST / 2;
        self.is_held = if self.is_held { !self.streams.iter().all(is_half_empty) } else { !self.has_room() };
        self.is_held
    }

    /// Nobody is read elsewhere any more.
    pub(crate) fn end_hold(&mut self) {
        self.is_held = false;
    }

    /// Whether the line that holds a stream is silent by itself, and not because it is not read.
    fn may_break_off(&self) -> bool {
        !self.is_held && self.has_room()
    }

    /// Whether everything has been written.
    pub(crate) fn is_done(&self) -> bool {
        self.streams.iter().all(|stream| stream.feed.is_done() && stream.labels.as_ref().is_none_or(Labels::is_done))
    }

    /// Whether nobody reads this channel any more.
    pub(crate) fn is_closed(&self, channel: Channel) -> bool {
        self.streams[channel as usize].feed.open().is_none()
    }

    /// The descriptor of a channel, if something waits for room there.
    pub(crate) fn waits(&self, channel: Channel) -> Option<BorrowedFd<'_>> {
        self.streams[channel as usize].feed.waits()
    }

    /// Writes what the descriptor of a channel takes, which is ready.
    pub(crate) fn flush(&mut self, channel: Channel) {
        let stream = &mut self.streams[channel as usize];
        stream.feed.flush();
        // Bytes of ranks waited, or a message of the launcher behind which some may have.
        stream.has_lost |= stream.carries && stream.feed.failure().is_some();
        if let Some(labels) = &mut stream.labels {
            labels.restart();
            labels.settle(&mut stream.feed);
        }
    }

    /// Takes what a rank wrote; nothing is its end.
    pub(crate) fn take(&mut self, rank: u32, channel: Channel, bytes: &[u8]) {
        let stream = &mut self.streams[channel as usize];
        stream.has_lost |= !bytes.is_empty() && stream.feed.open().is_none();
        match &mut stream.labels {
            Some(labels) => labels.take(rank, bytes, &mut stream.feed),
            None => stream.feed.push(bytes),
        }
    }

    /// Whether a rank's channel is not to be read, because a line of another rank comes first.
    pub(crate) fn is_full(&self, rank: u32, channel: Channel) -> bool {
        self.streams[channel as usize].labels.as_ref().is_some_and(|labels| labels.is_full(rank))
    }

    /// The ranks, and channels of each, that are not to be read.
    pub(crate) fn full(&self) -> impl Iterator<Item = (u32, Channel)> {
        let labels = CHANNELS.into_iter().filter_map(|at| Some((at, self.streams[at as usize].labels.as_ref()?)));
        labels.flat_map(|(channel, labels)| labels.full().map(move |rank| (rank, channel)))
    }

    /// When `keep_deadlines` is to be called.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.streams
            .iter()
            .filter(|_| self.may_break_off())
            .filter_map(|stream| stream.labels.as_ref()?.deadline())
            .min()
    }

    /// Breaks off long lines that do not go on while other ranks wait.
    pub(crate) fn keep_deadlines(&mut self, now: Instant) {
        if !self.may_break_off() {
            return;
        }
        for stream in &mut self.streams {
            if let Some(labels) = stream.labels.as_mut().filter(|labels| labels.deadline().is_some_and(|at| now >= at))
            {
                labels.break_off(&mut stream.feed);
            }
        }
    }

    /// Writes a message of the launcher's own.
    pub(crate) fn report(&mut self, text: &str) {
        self.streams[1].feed.push(format!("{}: {text}\n", self.speaker).as_bytes());
    }

    /// The status that a job has because of what could not be written, and, once, the reason to be
    /// reported. Without a reader it is that of SIGPIPE, which needs no words.
    pub(crate) fn failure(&mut self) -> Option<(u8, Option<String>)> {
        let lost = |channel: &Channel| self.streams[*channel as usize].has_lost;
        let failure = |channel: Channel| Some((channel, self.streams[channel as usize].feed.failure()?));
        let mut failures = CHANNELS.into_iter().filter(lost).filter_map(failure);
        let (channel, error) = failures.clone().find(|(_, error)| *error != Errno::PIPE).or_else(|| failures.next())?;
        if error == Errno::PIPE {
            return Some((BROKEN_PIPE, None));
        }
        let why = || {
            let to = channel.name();
            UserError::new(format!("cannot write to {to}: {error}; make room there; the job ends with status 1")).0
        };
        let is_new = !std::mem::replace(&mut self.is_reported, true);
        Some((1, is_new.then(why)))
    }
}
