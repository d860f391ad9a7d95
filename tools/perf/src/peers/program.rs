//! One running program of a peer: started, asked for blocks over its standard input and output, and
//! ended.
//!
//! Each line of a program is checked, and each wait has a time limit.

use super::catalogue::{Choice, OWN_PATH};
use cci_report::{UserError, while_doing};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Version of the protocol with a program; `tools/peers/peer.h` has the same.
const PROTOCOL: &str = "peer 1";
/// Bytes of a line, at most.
const LINE: u64 = 1024;
/// Lines that may wait to be read here.
const LINES: usize = 16;
/// Lines of its complaints that are kept.
const COMPLAINTS: usize = 4;

/// Time limits of a program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    /// Until it is ready.
    pub(crate) start: Duration,
    /// For a block: a block is calibrated to milliseconds.
    pub(crate) block: Duration,
    /// To exit, when it is asked to.
    pub(crate) exit: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { start: Duration::from_secs(30), block: Duration::from_secs(20), exit: Duration::from_secs(2) }
    }
}

/// Answer of a program to a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It took so long.
    Took(Duration),
    /// It cannot be done with such a message, for this reason.
    Cannot(String),
}

/// A program, which is ended when this is dropped.
pub(crate) struct Program {
    child: Child,
    /// Readable when it has ended.
    ended: OwnedFd,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    complaints: Arc<Mutex<VecDeque<String>>>,
    /// Its sender is gone when there will be no more complaints.
    complained: Receiver<()>,
    started: Instant,
    timeouts: Timeouts,
}

impl Program {
    /// Starts it; it is not awaited yet, so that several get ready at the same time.
    pub(crate) fn start(
        choice: Choice,
        directory: &Path,
        processors: [usize; 2],
        largest: u64,
        timeouts: Timeouts,
    ) -> Result<Self, UserError> {
        let program = directory.join(choice.peer.library);
        let mut command = match choice.peer.launcher {
            [] => Command::new(&program),
            [launcher, arguments @ ..] => {
                let mut command = Command::new(launcher);
                let own = format!("cci-{}-{}-{}", std::process::id(), choice.peer.library, choice.setting.name);
                let own = std::env::temp_dir().join(own);
                command
                    .args(arguments.iter().map(|word| if *word == OWN_PATH { own.as_os_str() } else { word.as_ref() }));
                command.arg(&program);
                command
            }
        };
        let numbers = processors.map(|cpu| cpu.to_string());
        command.arg(choice.setting.name).args(numbers).arg(largest.to_string());
        let name = command.get_program().to_string_lossy().into_owned();
        let failed = |error: std::io::Error| {
            UserError(format!("{name} cannot be started ({error}): is one of {} not installed?", choice.peer.packages))
        };
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = pipes.spawn().map_err(failed)?;
        match pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
            Ok(ended) => Ok(Self::attach(child, ended, timeouts)),
            Err(error) => {
                // Without it there is no waiting with a limit.
                let _ = child.kill();
                let _ = child.wait();
                Err(while_doing("cannot watch a process")(error))
            }
        }
    }

    fn attach(mut child: Child, ended: OwnedFd, timeouts: Timeouts) -> Self {
        let (sender, lines) = sync_channel(LINES);
        let complaints = Arc::new(Mutex::new(VecDeque::new()));
        if let Some(output) = child.stdout.take() {
            std::thread::spawn(move || pass_on(output, &sender));
        }
        let (complaining, complained) = sync_channel(0);
        if let Some(errors) = child.stderr.take() {
            let complaints = Arc::clone(&complaints);
            std::thread::spawn(move || {
                keep_last(errors, &complaints);
                drop(complaining);
            });
        }
        let input = child.stdin.take();
        Self { child, ended, input, lines, complaints, complained, started: Instant::now(), timeouts }
    }

    /// Waits until it is ready: its version and setting, as it tells them.
    pub(crate) fn ready(&mut self, library: &str) -> Result<String, UserError> {
        // Those that start together wait together.
        let limit = self.timeouts.start.saturating_sub(self.started.elapsed());
        let line = self.recv(limit, "it did not start")?;
        let mut parts = line.split('\t');
        if (parts.next(), parts.next()) != (Some(PROTOCOL), Some(library)) {
            return Err(self.protocol_error(&line, "run `make peers` for programs that belong to this `cci`"));
        }
        match (parts.next(), parts.next()) {
            (Some(version), Some(setting)) => Ok(format!("{setting}; version {version}")),
            _ => Err(self.protocol_error(&line, "run `make peers`")),
        }
    }

    /// Runs a block.
    pub(crate) fn block(&mut self, what: &str, size: u64, count: u64, reads: bool) -> Result<Answer, UserError> {
        match self.lines.try_recv() {
            Err(TryRecvError::Empty) => {}
            Ok(line) => return Err(self.protocol_error(&line, "nothing was asked")),
            Err(TryRecvError::Disconnected) => return Err(self.exit_error()),
        }
        let begin = Instant::now();
        let reads = if reads { " read" } else { "" };
        let written = self.input.as_mut().map(|input| writeln!(input, "block {what} {size} {count}{reads}"));
        if !matches!(written, Some(Ok(()))) {
            return Err(self.exit_error());
        }
        let line = self.recv(self.timeouts.block, "it hangs")?;
        if let Some(reason) = line.strip_prefix("cannot ") {
            return Ok(Answer::Cannot(reason.into()));
        }
        let took = line.strip_prefix("ns ").and_then(|number| number.parse().ok()).map(Duration::from_nanos);
        match took {
            Some(took) if took.is_zero() => Err(self.protocol_error(&line, "a block takes time")),
            Some(took) if took > begin.elapsed() => Err(self.protocol_error(&line, "it has not been so long")),
            Some(took) => Ok(Answer::Took(took)),
            None => Err(self.protocol_error(&line, "a time was expected")),
        }
    }

    /// Receives the next line; `otherwise` names the failure when none arrives within `limit`.
    fn recv(&mut self, limit: Duration, otherwise: &str) -> Result<String, UserError> {
        match self.lines.recv_timeout(limit) {
            Ok(line) => match line.strip_prefix("error ") {
                Some(reason) => Err(UserError(reason.into())),
                None => Ok(line),
            },
            Err(RecvTimeoutError::Timeout) => {
                Err(UserError(format!("{otherwise}: it sent no line for {limit:.1?}{}", self.last_errors())))
            }
            Err(RecvTimeoutError::Disconnected) => Err(self.exit_error()),
        }
    }

    fn protocol_error(&self, line: &str, why: &str) -> UserError {
        let shown: String = line.chars().take(60).collect();
        UserError(format!("it sent an unexpected line {shown:?} ({why}){}", self.last_errors()))
    }

    /// Its exit status, after the end of its output, as an error.
    fn exit_error(&mut self) -> UserError {
        let how = if self.await_end(self.timeouts.exit) {
            // Ends by the sender's, or by the limit where a process that it has left behind keeps
            // its errors open.
            let _ = self.complained.recv_timeout(self.timeouts.exit);
            match self.child.wait() {
                Ok(status) => format!("it ended ({status})"),
                Err(error) => format!("it ended ({error})"),
            }
        } else {
            "it closed its output".into()
        };
        UserError(how + &self.last_errors())
    }

    /// The last lines of its standard error, as the end of an error text.
    fn last_errors(&self) -> String {
        let kept = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        let words: Vec<_> = kept.iter().map(String::as_str).collect();
        if words.is_empty() { String::new() } else { format!("; the end of its standard error: {}", words.join(" / ")) }
    }

    /// Whether it has ended by then.
    fn await_end(&self, limit: Duration) -> bool {
        let begin = Instant::now();
        loop {
            let left = limit.saturating_sub(begin.elapsed());
            let timeout = Timespec::try_from(left).ok();
            match poll(&mut [PollFd::new(&self.ended, PollFlags::IN)], timeout.as_ref()) {
                Err(rustix::io::Errno::INTR) => {}
                Ok(ended) => return ended > 0,
                Err(_) => return false,
            }
        }
    }
}

impl Drop for Program {
    /// Asks it to leave; then its launcher, which ends what it has launched; then the kernel.
    fn drop(&mut self) {
        if let Some(mut input) = self.input.take() {
            // One that has ended has no use for it.
            let _ = input.write_all(b"end\n");
        }
        if !self.await_end(self.timeouts.exit) {
            // Both fail only when it has ended.
            let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
            if !self.await_end(self.timeouts.exit) {
                let _ = self.child.kill();
            }
        }
        let _ = self.child.wait();
    }
}

/// Lines of a program, each of limited length, for whoever listens.
fn pass_on(output: impl Read, sender: &SyncSender<String>) {
    let mut output = BufReader::new(output);
    while let Some(line) = line(&mut output) {
        if sender.send(line).is_err() {
            break;
        }
    }
}

/// Reads to the end and keeps the last lines that say something.
fn keep_last(errors: impl Read, kept: &Mutex<VecDeque<String>>) {
    let mut errors = BufReader::new(errors);
    while let Some(line) = line(&mut errors) {
        if line.chars().any(char::is_alphanumeric) {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.len() == COMPLAINTS {
                kept.pop_front();
            }
            kept.push_back(line.trim().to_owned());
        }
    }
}

/// The next line, or the beginning of one that is too long; none at the end.
fn line(input: &mut impl BufRead) -> Option<String> {
    let mut bytes = Vec::new();
    let read = input.take(LINE).read_until(b'\n', &mut bytes);
    if !matches!(read, Ok(1..)) {
        return None;
    }
    Some(String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\r']).to_owned())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::peers::catalogue::{PEERS, Peer};
    use cci_report::names::Mode;
    use std::fs;

    /// A stand-in for a program: what a shell makes of this script.
    pub(crate) const SCRIPT: Choice = Choice {
        peer: &Peer {
            library: "script",
            settings: PEERS[0].settings,
            launcher: &["sh"],
            packages: "dash",
            mode: Mode::Polling,
        },
        setting: &PEERS[0].settings[0],
    };
    /// A first line, and an answer to each request.
    pub(crate) const WELL: &str = "printf 'peer 1\\tscript\\t3.2\\tshm\\n'; while read line; do echo ns 1000; done";

    const SHORT: Duration = Duration::from_millis(300);
    const TIMEOUTS: Timeouts = Timeouts { start: SHORT, block: SHORT, exit: SHORT };

    fn start(script: &str, timeouts: Timeouts) -> (Program, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("script"), script).unwrap();
        (Program::start(SCRIPT, directory.path(), [0, 0], 8, timeouts).unwrap(), directory)
    }

    /// Why the program of a script is lost.
    fn lost(script: &str, timeouts: Timeouts) -> String {
        let (mut program, _directory) = start(script, timeouts);
        let outcome = program.ready("script").and_then(|_| program.block("pingpong", 8, 10, false));
        outcome.unwrap_err().0
    }

    #[test]
    fn a_program_tells_its_setting_and_times_of_blocks() {
        let (mut program, _directory) = start(WELL, Timeouts::default());
        assert_eq!(program.ready("script").unwrap(), "shm; version 3.2");
        for _ in 0..3 {
            assert_eq!(program.block("pingpong", 8, 10, false).unwrap(), Answer::Took(Duration::from_micros(1)));
        }
    }

    #[test]
    fn a_program_hears_its_arguments_and_what_block_is_asked_for() {
        let echo = "printf 'peer 1\\tscript\\t3.2\\t%s %s %s %s\\n' $@; read line; echo cannot $line";
        let (mut program, _directory) = start(echo, Timeouts::default());
        assert_eq!(program.ready("script").unwrap(), "shm 0 0 8; version 3.2");
        assert_eq!(program.block("stream", 64, 7, true).unwrap(), Answer::Cannot("block stream 64 7 read".into()));
    }

    #[test]
    fn a_death_is_reported_with_status_and_standard_error() {
        let why = lost("echo no such library >&2; exit 3", Timeouts::default());
        assert!(why.contains("exit status: 3"), "{why}");
        let hello = "printf 'peer 1\\tscript\\t1\\tshm\\n'; read line;";
        let why = lost(&format!("{hello} kill -9 $$"), Timeouts::default());
        assert!(why.contains("signal: 9"), "{why}");
        let why = lost(&format!("{hello} echo error lost a message"), Timeouts::default());
        assert_eq!(why, "lost a message");
    }

    #[test]
    fn an_error_ends_with_the_last_lines_of_standard_error() {
        let why = lost("for i in 1 2 3 4 5 6; do echo line $i >&2; echo ---- >&2; done", Timeouts::default());
        assert!(why.ends_with("the end of its standard error: line 3 / line 4 / line 5 / line 6"), "{why}");
    }

    #[test]
    fn one_that_hangs_is_given_up() {
        let why = lost("exec sleep 1000", TIMEOUTS);
        assert!(why.contains("did not start: it sent no line for"), "{why}");
        let timeouts = Timeouts { start: Timeouts::default().start, ..TIMEOUTS };
        let why = lost("printf 'peer 1\\tscript\\t1\\tshm\\n'; while read line; do :; done", timeouts);
        assert!(why.contains("it hangs"), "{why}");
    }

    #[test]
    fn a_program_that_ignores_its_input_is_ended() {
        let (program, _directory) = start("trap '' TERM; exec sleep 1000", TIMEOUTS);
        let ended = pidfd_open(Pid::from_child(&program.child), PidfdFlags::empty()).unwrap();
        drop(program);
        assert_eq!(poll(&mut [PollFd::new(&ended, PollFlags::IN)], Some(&Timespec::default())), Ok(1));
    }

    #[test]
    fn an_unexpected_line_is_reported_with_its_text() {
        let error = |script: &str| lost(script, Timeouts { exit: SHORT, ..Timeouts::default() });
        assert!(error("echo hello; exec sleep 1000").contains("\"hello\""));
        assert!(error("printf 'peer 2\\tscript\\t1\\tshm\\n'").contains("make peers"));
        assert!(error("printf 'peer 1\\tother\\t1\\tshm\\n'").contains("make peers"));
        assert!(error("printf 'peer 1\\tscript\\n'").contains("make peers"));
        let answer = |text: &str| error(&format!("printf 'peer 1\\tscript\\t1\\tshm\\n'; read line; echo {text}"));
        assert!(answer("ns many").contains("a time was expected"));
        assert!(answer("ns 0").contains("takes time"));
        assert!(answer("ns 99999999999999").contains("has not been so long"));
        assert!(answer("ns -5").contains("a time was expected"));
        assert!(error("yes | tr -d '\\n'").contains("yyyy"));
    }

    #[test]
    fn a_line_without_a_request_is_an_error() {
        let twice = "printf 'peer 1\\tscript\\t1\\tshm\\n'; while read line; do echo ns 1; echo ns 1; done";
        let (mut program, _directory) = start(twice, Timeouts::default());
        program.ready("script").unwrap();
        let why = (0..1000).find_map(|_| program.block("pingpong", 8, 10, false).err()).unwrap().0;
        assert!(why.contains("nothing was asked"), "{why}");
    }

    #[test]
    fn a_launcher_that_is_not_installed_is_told_with_its_package() {
        let choice = Choice {
            peer: &Peer {
                library: "x",
                settings: &[],
                launcher: &["no-such-launcher"],
                packages: "the-package",
                mode: Mode::Polling,
            },
            ..SCRIPT
        };
        let why = Program::start(choice, Path::new("/"), [0, 0], 8, TIMEOUTS).err().unwrap().0;
        assert!(why.contains("no-such-launcher") && why.contains("the-package"), "{why}");
    }
}
