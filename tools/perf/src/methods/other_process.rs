//! The process of the other end, which is told line by line what to do.

use cci_report::{UserError, while_doing};
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The process, as the measuring one sees it.
pub(super) struct OtherProcess {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl OtherProcess {
    /// Starts it, and waits until it is ready.
    pub(super) fn start(mut command: Command) -> Result<Self, UserError> {
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = spawned.map_err(while_doing("cannot start the process of the peers"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(UserError::new("the process of the peers has no pipes"));
        };
        let mut other = Self { child, input, output: BufReader::new(output).lines() };
        other.answer()?;
        Ok(other)
    }

    /// Tells it what to do.
    pub(super) fn tell(&mut self, what: &str) -> Result<(), UserError> {
        writeln!(self.input, "{what}").map_err(while_doing("the process of the peers ended early"))
    }

    /// Waits until it has done so.
    pub(super) fn answer(&mut self) -> Result<(), UserError> {
        match self.output.next() {
            Some(Ok(_)) => Ok(()),
            _ => Err(UserError::new("the process of the peers ended early")),
        }
    }
}

impl Drop for OtherProcess {
    fn drop(&mut self) {
        // Both fail only when it has ended and been waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// In that process: does what it is told, until there is nobody to tell. An order is a word and
/// numbers.
pub(super) fn obey(mut act: impl FnMut(&str, &[u64]) -> Result<(), UserError>) -> Result<(), UserError> {
    let say = || {
        let mut output = std::io::stdout();
        writeln!(output, "ok").and_then(|()| output.flush()).map_err(while_doing("the measuring process ended early"))
    };
    say()?;
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { return Ok(()) };
        let mut words = line.split(' ');
        let word = words.next().unwrap_or_default();
        let numbers: Result<Vec<u64>, _> = words.map(str::parse).collect();
        act(word, &numbers.map_err(while_doing("cannot parse an order"))?)?;
        say()?;
    }
    Ok(())
}
