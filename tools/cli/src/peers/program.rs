//! One running program of a peer: started, asked for blocks over its standard input and output, and ended.
//!
//! Nothing that it says is believed without a look, and nothing is waited for without a limit.

use super::catalogue::{Choice, OWN_PATH};
use crate::measure::{UserError, while_doing};
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

/// Version of what is said with a program; the same stands in `tools/peers/peer.h`.
const PROTOCOL: &str = "peer 1";
/// Bytes of a line, at most.
const LINE: u64 = 1024;
/// Lines that may wait to be read here.
const LINES: usize = 16;
/// Lines of its complaints that are kept.
const COMPLAINTS: usize = 4;
/// How long a program may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// Until it is ready.
    pub(crate) start: Duration,
    /// For a block: a block is calibrated to milliseconds.
    pub(crate) block: Duration,
    /// To leave, when it is asked to.
    pub(crate) farewell: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { start: Duration::from_secs(30), block: Duration::from_secs(20), farewell: Duration::from_secs(2) }
    }
}

/// What it said of a block.
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
    said: Receiver<String>,
    complaints: Arc<Mutex<VecDeque<String>>>,
    /// Its sender is gone when there will be no more complaints.
    complained: Receiver<()>,
    started: Instant,
    patience: Patience,
}

impl Program {
    /// Starts it; it is not awaited yet, so that several get ready at the same time.
    pub(crate) fn start(
        choice: Choice,
        directory: &Path,
        processors: [usize; 2],
        largest: u64,
        patience: Patience,
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
            Ok(ended) => Ok(Self::over(child, ended, patience)),
            Err(error) => {
                // Without it there is no waiting with a limit.
                let _ = child.kill();
                let _ = child.wait();
                Err(while_doing("cannot watch a process")(error))
            }
        }
    }

    fn over(mut child: Child, ended: OwnedFd, patience: Patience) -> Self {
        let (sender, said) = sync_channel(LINES);
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
        Self { child, ended, input, said, complaints, complained, started: Instant::now(), patience }
    }

    /// Waits until it is ready: its version and setting, as it tells them.
    pub(crate) fn ready(&mut self, library: &str) -> Result<String, UserError> {
        // Those that start together wait together.
        let limit = self.patience.start.saturating_sub(self.started.elapsed());
        let line = self.hear(limit, "it did not start")?;
        let mut parts = line.split('\t');
        if (parts.next(), parts.next()) != (Some(PROTOCOL), Some(library)) {
            return Err(self.nonsense(&line, "run `make peers` for programs that belong to this `cci`"));
        }
        match (parts.next(), parts.next()) {
            (Some(version), Some(setting)) => Ok(format!("{setting}; version {version}")),
            _ => Err(self.nonsense(&line, "run `make peers`")),
        }
    }

    /// Runs a block.
    pub(crate) fn block(&mut self, what: &str, size: u64, count: u64, reads: bool) -> Result<Answer, UserError> {
        match self.said.try_recv() {
            Err(TryRecvError::Empty) => {}
            Ok(line) => return Err(self.nonsense(&line, "nothing was asked")),
            Err(TryRecvError::Disconnected) => return Err(self.obituary()),
        }
        let begin = Instant::now();
        let reads = if reads { " read" } else { "" };
        let told = self.input.as_mut().map(|input| writeln!(input, "block {what} {size} {count}{reads}"));
        if !matches!(told, Some(Ok(()))) {
            return Err(self.obituary());
        }
        let line = self.hear(self.patience.block, "it hangs")?;
        if let Some(reason) = line.strip_prefix("cannot ") {
            return Ok(Answer::Cannot(reason.into()));
        }
        let took = line.strip_prefix("ns ").and_then(|number| number.parse().ok()).map(Duration::from_nanos);
        match took {
            Some(took) if took.is_zero() => Err(self.nonsense(&line, "a block takes time")),
            Some(took) if took > begin.elapsed() => Err(self.nonsense(&line, "it has not been so long")),
            Some(took) => Ok(Answer::Took(took)),
            None => Err(self.nonsense(&line, "a time was expected")),
        }
    }

    /// The next line.
    fn hear(&mut self, limit: Duration, otherwise: &str) -> Result<String, UserError> {
        match self.said.recv_timeout(limit) {
            Ok(line) => match line.strip_prefix("error ") {
                Some(reason) => Err(UserError(reason.into())),
                None => Ok(line),
            },
            Err(RecvTimeoutError::Timeout) => {
                Err(UserError(format!("{otherwise}: it said nothing for {limit:.1?}{}", self.last_words())))
            }
            Err(RecvTimeoutError::Disconnected) => Err(self.obituary()),
        }
    }

    fn nonsense(&self, line: &str, why: &str) -> UserError {
        let shown: String = line.chars().take(60).collect();
        UserError(format!("it said {shown:?} ({why}){}", self.last_words()))
    }

    /// How it ended, after its output has.
    fn obituary(&mut self) -> UserError {
        let how = if self.await_end(self.patience.farewell) {
            // Ends by the sender's, or by the limit where a process that it has left behind keeps its errors open.
            let _ = self.complained.recv_timeout(self.patience.farewell);
            match self.child.wait() {
                Ok(status) => format!("it ended ({status})"),
                Err(error) => format!("it ended ({error})"),
            }
        } else {
            "it closed its output".into()
        };
        UserError(how + &self.last_words())
    }

    /// What it said last on its standard error.
    fn last_words(&self) -> String {
        let kept = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        let words: Vec<_> = kept.iter().map(String::as_str).collect();
        if words.is_empty() { String::new() } else { format!("; its last words: {}", words.join(" / ")) }
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
        if !self.await_end(self.patience.farewell) {
            // Both fail only when it has ended.
            let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
            if !self.await_end(self.patience.farewell) {
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
    use crate::measure::plan::Mode;
    use crate::peers::catalogue::{PEERS, Peer};
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
    const PATIENCE: Patience = Patience { start: SHORT, block: SHORT, farewell: SHORT };

    fn start(script: &str, patience: Patience) -> (Program, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("script"), script).unwrap();
        (Program::start(SCRIPT, directory.path(), [0, 0], 8, patience).unwrap(), directory)
    }

    /// Why the program of a script is lost.
    fn lost(script: &str, patience: Patience) -> String {
        let (mut program, _directory) = start(script, patience);
        let outcome = program.ready("script").and_then(|_| program.block("pingpong", 8, 10, false));
        outcome.unwrap_err().0
    }

    #[test]
    fn a_program_tells_its_setting_and_times_of_blocks() {
        let (mut program, _directory) = start(WELL, Patience::default());
        assert_eq!(program.ready("script").unwrap(), "shm; version 3.2");
        for _ in 0..3 {
            assert_eq!(program.block("pingpong", 8, 10, false).unwrap(), Answer::Took(Duration::from_micros(1)));
        }
    }

    #[test]
    fn a_program_hears_its_arguments_and_what_block_is_asked_for() {
        let echo = "printf 'peer 1\\tscript\\t3.2\\t%s %s %s %s\\n' $@; read line; echo cannot $line";
        let (mut program, _directory) = start(echo, Patience::default());
        assert_eq!(program.ready("script").unwrap(), "shm 0 0 8; version 3.2");
        assert_eq!(program.block("stream", 64, 7, true).unwrap(), Answer::Cannot("block stream 64 7 read".into()));
    }

    #[test]
    fn one_that_dies_is_told_with_its_status_and_last_words() {
        let why = lost("echo no such library >&2; exit 3", Patience::default());
        assert!(why.contains("exit status: 3"), "{why}");
        let hello = "printf 'peer 1\\tscript\\t1\\tshm\\n'; read line;";
        let why = lost(&format!("{hello} kill -9 $$"), Patience::default());
        assert!(why.contains("signal: 9"), "{why}");
        let why = lost(&format!("{hello} echo error lost a message"), Patience::default());
        assert_eq!(why, "lost a message");
    }

    #[test]
    fn the_last_lines_on_standard_error_are_its_last_words() {
        let why = lost("for i in 1 2 3 4 5 6; do echo line $i >&2; echo ---- >&2; done", Patience::default());
        assert!(why.ends_with("its last words: line 3 / line 4 / line 5 / line 6"), "{why}");
    }

    #[test]
    fn one_that_hangs_is_given_up() {
        let why = lost("exec sleep 1000", PATIENCE);
        assert!(why.contains("did not start: it said nothing for"), "{why}");
        let patience = Patience { start: Patience::default().start, ..PATIENCE };
        let why = lost("printf 'peer 1\\tscript\\t1\\tshm\\n'; while read line; do :; done", patience);
        assert!(why.contains("it hangs"), "{why}");
    }

    #[test]
    fn one_that_hears_nothing_is_ended() {
        let (program, _directory) = start("trap '' TERM; exec sleep 1000", PATIENCE);
        let ended = pidfd_open(Pid::from_child(&program.child), PidfdFlags::empty()).unwrap();
        drop(program);
        assert_eq!(poll(&mut [PollFd::new(&ended, PollFlags::IN)], Some(&Timespec::default())), Ok(1));
    }

    #[test]
    fn nonsense_is_told_with_what_was_said() {
        let told = |script: &str| lost(script, Patience { farewell: SHORT, ..Patience::default() });
        assert!(told("echo hello; exec sleep 1000").contains("\"hello\""));
        assert!(told("printf 'peer 2\\tscript\\t1\\tshm\\n'").contains("make peers"));
        assert!(told("printf 'peer 1\\tother\\t1\\tshm\\n'").contains("make peers"));
        assert!(told("printf 'peer 1\\tscript\\n'").contains("make peers"));
        let answer = |text: &str| told(&format!("printf 'peer 1\\tscript\\t1\\tshm\\n'; read line; echo {text}"));
        assert!(answer("ns many").contains("a time was expected"));
        assert!(answer("ns 0").contains("takes time"));
        assert!(answer("ns 99999999999999").contains("has not been so long"));
        assert!(answer("ns -5").contains("a time was expected"));
        assert!(told("yes | tr -d '\\n'").contains("yyyy"));
    }

    #[test]
    fn what_nobody_asked_for_is_nonsense() {
        let twice = "printf 'peer 1\\tscript\\t1\\tshm\\n'; while read line; do echo ns 1; echo ns 1; done";
        let (mut program, _directory) = start(twice, Patience::default());
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
        let why = Program::start(choice, Path::new("/"), [0, 0], 8, PATIENCE).err().unwrap().0;
        assert!(why.contains("no-such-launcher") && why.contains("the-package"), "{why}");
    }
}
