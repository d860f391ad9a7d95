//! `cci top` in a terminal: taken over, and given back as it was.
#![allow(missing_docs, reason = "tests")]

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Termios, Winsize, tcgetattr, tcsetwinsize};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Far longer than anything here takes, so that a machine under load does not fail a test.
const PATIENCE: Duration = Duration::from_secs(60);
const TAKES: &str = "\u{1b}[?1049h";
const GIVES_BACK: &str = "\u{1b}[?1049l";

/// A terminal with the command in it.
struct Terminal {
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    seen: String,
    other_end: File,
    child: Child,
}

impl Terminal {
    fn start(columns: u16, lines: u16) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let other_end = File::options().read(true).write(true).open(OsStr::from_bytes(name.as_bytes())).unwrap();
        let size = Winsize { ws_row: lines, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size).unwrap();
        let keyboard = File::from(master);
        let mut reader = keyboard.try_clone().unwrap();
        let (sender, screen) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(len) = reader.read(&mut bytes) {
                if sender.send(bytes[..len].to_vec()).is_err() {
                    return;
                }
            }
        });
        // A session of its own with this terminal: the one of whoever runs the tests is not touched.
        let mut command = Command::new("setsid");
        command.args(["--ctty", env!("CARGO_BIN_EXE_cci"), "top", "--interval", "50ms"]).env("TERM", "xterm");
        let end = || Stdio::from(other_end.try_clone().unwrap());
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        Self { keyboard, screen, seen: String::new(), other_end, child }
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
        self.keyboard.write_all(keys).unwrap();
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
fn a_terminal_that_is_too_small_is_left_alone() {
    for (columns, lines) in [(79, 24), (80, 9)] {
        let mut terminal = Terminal::start(columns, lines);
        terminal.expect("needs a terminal of 80 columns and 10 lines");
        assert_eq!(terminal.ends(), Some(1));
        assert!(!terminal.seen.contains(TAKES) && !terminal.is_raw());
    }
}
