//! `cci top` in a terminal: taken over, and given back as it was.
#![allow(missing_docs, reason = "tests")]

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Action, LocalModes, Termios, Winsize, tcflow, tcgetattr, tcsetwinsize};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Far longer than anything here takes, so that a machine under load does not fail a test.
const PATIENCE: Duration = Duration::from_secs(60);
const TAKES: &str = "\u{1b}[?1049h";
const GIVES_BACK: &str = "\u{1b}[?1049l";

/// A terminal with the command in it.
struct Terminal {
    /// Also the reading thread has it, until it is dropped here.
    keyboard: Option<Arc<File>>,
    reader: Option<JoinHandle<()>>,
    screen: Receiver<Vec<u8>>,
    seen: String,
    other_end: File,
    child: Child,
}

/// The reading thread looks this often whether the terminal goes away.
const NAP: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

impl Terminal {
    fn start(columns: u16, lines: u16) -> Self {
        // A session of its own with this terminal: the one of whoever runs the tests is not
        // touched.
        Self::start_by(&["setsid", "--ctty"], "50ms", columns, lines)
    }

    /// The words before the command decide whether the kernel signals that the terminal goes away.
    fn start_by(words: &[&str], interval: &str, columns: u16, lines: u16) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let other_end = File::options().read(true).write(true).open(OsStr::from_bytes(name.as_bytes())).unwrap();
        let size = Winsize { ws_row: lines, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size).unwrap();
        let keyboard = Arc::new(File::from(master));
        let watched = Arc::downgrade(&keyboard);
        let (sender, screen) = channel();
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Some(terminal) = watched.upgrade() {
                let ready = poll(&mut [PollFd::new(&*terminal, PollFlags::IN)], Some(&NAP)).unwrap();
                if ready > 0 {
                    let Ok(len) = (&*terminal).read(&mut bytes) else { return };
                    if sender.send(bytes[..len].to_vec()).is_err() {
                        return;
                    }
                }
            }
        });
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).args([env!("CARGO_BIN_EXE_cci"), "top", "--interval", interval]).env("TERM", "xterm");
        let end = || Stdio::from(other_end.try_clone().unwrap());
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        Self { keyboard: Some(keyboard), reader: Some(reader), screen, seen: String::new(), other_end, child }
    }

    /// Takes the terminal away from the command, as a window does that is closed.
    fn go_away(&mut self) {
        self.keyboard = None;
        self.reader.take().unwrap().join().unwrap();
    }

    fn modes(&self) -> Termios {
        tcgetattr(&self.other_end).unwrap()
    }

    fn is_raw(&self) -> bool {
        !self.modes().local_modes.intersects(LocalModes::ICANON | LocalModes::ECHO)
    }

    /// Waits until the screen has shown this, from where it was last looked at.
    fn expect(&mut self, text: &str) {
        let begin = Instant::now();
        loop {
            if let Some(at) = self.seen.find(text) {
                self.seen.drain(..at + text.len());
                return;
            }
            let left = PATIENCE.saturating_sub(begin.elapsed());
            let bytes = self.screen.recv_timeout(left).unwrap_or_else(|_| panic!("no {text:?} in {:?}", self.seen));
            self.seen.push_str(&String::from_utf8_lossy(&bytes));
        }
    }

    fn press(&mut self, keys: &[u8]) {
        let mut keyboard = &**self.keyboard.as_ref().unwrap();
        keyboard.write_all(keys).unwrap();
    }

    fn ends(&mut self) -> Option<i32> {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(begin.elapsed() < PATIENCE, "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn keys_do_what_the_help_says_and_the_terminal_is_given_back() {
    let mut terminal = Terminal::start(80, 24);
    assert!(!terminal.is_raw());
    terminal.expect(TAKES);
    terminal.expect("by process, every 50ms");
    assert!(terminal.is_raw());
    terminal.press(b"s");
    terminal.expect("messages/s");
    terminal.press(b"p");
    terminal.expect("paused");
    terminal.press(b"?");
    terminal.expect("Ctrl-C");
    terminal.press(b"q");
    terminal.expect(GIVES_BACK);
    assert_eq!(terminal.ends(), Some(0));
    assert!(!terminal.is_raw());
}

#[test]
fn whatever_ends_it_the_terminal_is_given_back() {
    for signal in [None, Some(Signal::TERM), Some(Signal::HUP), Some(Signal::INT)] {
        let mut terminal = Terminal::start(100, 12);
        terminal.expect("cci top:");
        match signal {
            Some(signal) => kill_process(Pid::from_child(&terminal.child), signal).unwrap(),
            // Ctrl-C, which is a key like any other while the terminal is taken over.
            None => terminal.press(b"\x03"),
        }
        terminal.expect(GIVES_BACK);
        assert_eq!(terminal.ends(), Some(0), "{signal:?}");
        assert!(!terminal.is_raw(), "{signal:?}");
    }
}

#[test]
fn a_terminal_that_goes_away_ends_it_with_and_without_a_signal() {
    // A leader of a session gets SIGHUP from the kernel; what another terminal controls gets none.
    for words in [&["setsid", "--ctty"][..], &["env"]] {
        // With the one interval it writes next, with the other it reads.
        for interval in ["50ms", "60s"] {
            let mut terminal = Terminal::start_by(words, interval, 80, 24);
            terminal.expect("cci top:");
            terminal.go_away();
            // By itself: 1 says that the table could not be shown.
            assert!(matches!(terminal.ends(), Some(0 | 1)), "{words:?} {interval}");
        }
    }
}

#[test]
fn signals_end_it_while_the_terminal_takes_no_output() {
    for signal in [Signal::TERM, Signal::HUP] {
        let mut terminal = Terminal::start(80, 24);
        terminal.expect("cci top:");
        tcflow(&terminal.other_end, Action::OOff).unwrap();
        // Each page is another, so that it is written, and the write does not return.
        terminal.press(b"?");
        let begin = Instant::now();
        let wchan = format!("/proc/{}/wchan", terminal.child.id());
        let is_writing = |at: &str| at.contains("n_tty_write") || at.contains("wait_woken");
        // Some kernels do not show where a process waits: then this is a signal like any other.
        while !is_writing(&std::fs::read_to_string(&wchan).unwrap()) && begin.elapsed() < Duration::from_secs(1) {
            std::thread::sleep(Duration::from_millis(5));
        }
        kill_process(Pid::from_child(&terminal.child), signal).unwrap();
        assert_eq!(terminal.ends(), Some(0), "{signal:?}");
        assert!(!terminal.is_raw(), "{signal:?}");
    }
}

#[test]
fn a_terminal_that_is_too_small_is_left_alone() {
    for (columns, lines) in [(79, 24), (80, 9)] {
        let mut terminal = Terminal::start(columns, lines);
        terminal.expect("needs a terminal of 80 columns and 10 lines");
        assert_eq!(terminal.ends(), Some(1));
        assert!(!terminal.seen.contains(TAKES) && !terminal.is_raw());
    }
}
