//! The process of the other end, which is told line by line what to do.

use crate::task::Running;
use cci_report::{UserError, while_doing};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

/// The process, as the measuring one sees it.
pub(super) struct OtherProcess {
    child: Running,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl OtherProcess {
    /// Starts it, and waits until it is ready.
    pub(super) fn start(mut command: Command) -> Result<Self, UserError> {
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = spawned.map_err(while_doing("cannot start the process of the peers"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(UserError::new("the process of the peers has no pipes"));
        };
        let mut other = Self { child: Running(child), input, output: BufReader::new(output) };
        other.answer()?;
        Ok(other)
    }

    /// Tells it what to do.
    pub(super) fn tell(&mut self, what: &str) -> Result<(), UserError> {
        writeln!(self.input, "{what}").map_err(while_doing("the process of the peers ended early"))
    }

    /// Waits until it has done so.
    pub(super) fn answer(&mut self) -> Result<(), UserError> {
        self.answer_into(&mut String::new())
    }

    /// Waits until it has done so, and stores its answer: what it has [added](add_to_answer), and
    /// "ok".
    pub(super) fn answer_into(&mut self, line: &mut String) -> Result<(), UserError> {
        line.clear();
        match self.output.read_line(line) {
            Ok(1..) => Ok(()),
            _ => Err(UserError::new("the process of the peers ended early")),
        }
    }

    /// Whether [`Self::answer`] would return at once.
    pub(super) fn has_answered(&self) -> bool {
        !self.output.buffer().is_empty() || is_readable(self.output.get_ref(), &Timespec::default())
    }

    /// Whether the process has ended.
    pub(super) fn has_ended(&mut self) -> bool {
        !matches!(self.child.0.try_wait(), Ok(None))
    }
}

/// In that process: adds a word to the answer to the order that it obeys.
pub(super) fn add_to_answer(word: impl std::fmt::Display) -> Result<(), UserError> {
    write!(std::io::stdout(), "{word} ").map_err(while_doing("the measuring process ended early"))
}

/// In that process: does what it is told, until there is nobody to tell. An order is a word and
/// numbers.
pub(super) fn obey(act: impl FnMut(&str, &[u64]) -> Result<(), UserError>) -> Result<(), UserError> {
    // What it is waiting for is the next order alone.
    let rest = |_: &mut _| poll(&mut [PollFd::new(&std::io::stdin(), PollFlags::IN)], None).map_or(Ok(()), |_| Ok(()));
    obey_and_rest(act, |act, order, numbers| act(order, numbers), rest)
}

/// As [`obey`], with what the process has; `rest` is called again and again while no order comes.
/// Orders come one at a time, each after the answer to the one before.
pub(super) fn obey_and_rest<T>(
    mut of: T,
    mut act: impl FnMut(&mut T, &str, &[u64]) -> Result<(), UserError>,
    mut rest: impl FnMut(&mut T) -> Result<(), UserError>,
) -> Result<(), UserError> {
    let say = || {
        let mut output = std::io::stdout();
        writeln!(output, "ok").and_then(|()| output.flush()).map_err(while_doing("the measuring process ended early"))
    };
    let mut input = std::io::stdin().lock();
    say()?;
    loop {
        while !is_readable(&input, &NAP) {
            rest(&mut of)?;
        }
        let mut line = String::new();
        if !input.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
            return Ok(());
        }
        let mut words = line.trim_end().split(' ');
        let word = words.next().unwrap_or_default();
        let numbers: Result<Vec<u64>, _> = words.map(str::parse).collect();
        act(&mut of, word, &numbers.map_err(while_doing("cannot parse an order"))?)?;
        say()?;
    }
}

/// How long a process without an order sleeps between two rests.
const NAP: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };

fn is_readable(input: impl AsFd, limit: &Timespec) -> bool {
    // A signal ends it early, which callers allow.
    poll(&mut [PollFd::new(&input, PollFlags::IN)], Some(limit)).is_ok_and(|ready| ready > 0)
}
