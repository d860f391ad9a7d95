//! Another process of the same test.

use crate::LIMIT;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A process that plays a role of the program `cci-peer`. It is killed and reaped when dropped, and
/// dies with the thread that started it.
pub struct Peer {
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
    buffer: Vec<u8>,
}

impl Peer {
    /// Starts `program` in a role.
    ///
    /// # Panics
    ///
    /// It cannot be started.
    pub fn spawn(program: &str, role: &str, arguments: &[&str]) -> Self {
        Self::spawn_with(program, role, arguments, &[])
    }

    /// As [`Peer::spawn`], with environment variables of its own.
    ///
    /// # Panics
    ///
    /// It cannot be started.
    pub fn spawn_with(program: &str, role: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut child = Command::new(program)
            .arg(role)
            .args(arguments)
            .envs(variables.iter().copied())
            .env("CCI_TEST_PARENT", std::process::id().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the peer's program starts");
        let input = child.stdin.take();
        let output = child.stdout.take().expect("its output is a pipe");
        rustix::io::ioctl_fionbio(&output, true).expect("a pipe can be non-blocking");
        Self { child, input, output, buffer: Vec::new() }
    }

    /// Its process number.
    ///
    /// # Panics
    ///
    /// Never: a process number is positive.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// The next line that it has written, if there is one now.
    ///
    /// # Panics
    ///
    /// It has ended without another line.
    pub fn poll_line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let rest = self.buffer.split_off(end + 1);
                let line = std::mem::replace(&mut self.buffer, rest);
                return Some(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            let mut bytes = [0; 1024];
            match self.output.read(&mut bytes) {
                Ok(0) => panic!("the peer ended without an answer: {:?}", self.child.wait()),
                Ok(count) => self.buffer.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => panic!("cannot read from the peer: {error}"),
            }
        }
    }

    /// The next line that it writes, while `meanwhile` is called again and again.
    ///
    /// # Panics
    ///
    /// It ends or stays silent.
    pub fn line_while(&mut self, mut meanwhile: impl FnMut()) -> String {
        let deadline = Instant::now() + LIMIT;
        loop {
            if let Some(line) = self.poll_line() {
                return line;
            }
            assert!(Instant::now() < deadline, "the peer stays silent");
            meanwhile();
        }
    }

    /// The next line that it writes.
    ///
    /// # Panics
    ///
    /// It ends or stays silent.
    pub fn line(&mut self) -> String {
        self.line_while(|| std::thread::sleep(Duration::from_micros(200)))
    }

    /// Writes a line to it.
    ///
    /// # Panics
    ///
    /// It has ended.
    pub fn tell(&mut self, line: &str) {
        let input = self.input.as_mut().expect("open until dropped");
        writeln!(input, "{line}").and_then(|()| input.flush()).expect("the peer reads");
    }

    /// Sends it a signal.
    ///
    /// # Panics
    ///
    /// It has been reaped.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("an own child");
    }

    /// Kills it with SIGKILL and gives a descriptor that is readable once it is dead. Not reaped
    /// yet.
    ///
    /// # Panics
    ///
    /// No descriptor left.
    pub fn kill(&self) -> OwnedFd {
        let pidfd = open_pidfd(self.pid());
        self.signal(Signal::KILL);
        pidfd
    }

    /// Waits for its end.
    ///
    /// # Panics
    ///
    /// It does not end.
    pub fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + LIMIT;
        loop {
            if let Some(status) = self.child.try_wait().expect("an own child") {
                return status;
            }
            assert!(Instant::now() < deadline, "the peer does not end");
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

/// A descriptor that is readable once the process is dead.
///
/// # Panics
///
/// No such process, or no descriptor left.
pub fn open_pidfd(pid: Pid) -> OwnedFd {
    pidfd_open(pid, PidfdFlags::empty()).expect("a pidfd")
}

impl Drop for Peer {
    fn drop(&mut self) {
        // A peer that is gone already is what this is for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
