//! The connection to a process manager: commands and answers of PMI-1 and of PMI-2.
//!
//! Both are words `key=value`, the first of which names the command. PMI-1 puts spaces between them
//! and ends a command by a line end. PMI-2 ends each word by a semicolon, and writes the length of
//! the command before it, in six places.

use crate::error::JobError;
use crate::source::lost;
use cci_mem::inherited::close_in_children;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::time::Instant;

/// The longest command that a process manager may send.
const LONGEST: usize = 65_536;

/// The places of a length.
pub(super) const PLACES: usize = 6;

/// A protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    One,
    Two,
}

pub(super) type Words = BTreeMap<String, String>;

/// A process manager. After a failure it is of no use any more.
pub(super) struct Manager {
    socket: Option<OwnedFd>,
    inbound: Vec<u8>,
    version: Version,
    /// The answer that a question given up at its limit has not had yet.
    owed: Option<String>,
}

/// A command as bytes.
pub(super) fn emit(version: Version, name: &str, words: &[(&str, &str)]) -> Vec<u8> {
    let separator = if version == Version::One { ' ' } else { ';' };
    let mut text =
        words.iter().fold(format!("cmd={name}"), |text, (key, value)| format!("{text}{separator}{key}={value}"));
    text.push(if version == Version::One { '\n' } else { ';' });
    match version {
        Version::One => text.into(),
        Version::Two => format!("{:>PLACES$}{text}", text.len()).into(),
    }
}

/// Cuts the first whole command off what has arrived.
fn cut(version: Version, inbound: &mut Vec<u8>) -> Result<Option<String>, JobError> {
    let (begin, end, next) = match version {
        Version::One => match inbound.iter().position(|byte| *byte == b'\n') {
            Some(end) => (0, end, end + 1),
            None if inbound.len() > LONGEST => return Err(lost("the process manager sent a command that is too long")),
            None => return Ok(None),
        },
        Version::Two => {
            let Some(length) = inbound.get(..PLACES) else { return Ok(None) };
            let length = str::from_utf8(length).ok().and_then(|length| length.trim().parse::<usize>().ok());
            let length = length.filter(|length| *length <= LONGEST);
            let end = PLACES + length.ok_or_else(|| lost("the process manager sent a false length"))?;
            (PLACES, end, end)
        }
    };
    if inbound.len() < next {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&inbound[begin..end]).into_owned();
    inbound.drain(..next);
    Ok(Some(text))
}

/// The words of a command.
fn words(version: Version, text: &str) -> Words {
    let words = text.split(if version == Version::One { ' ' } else { ';' });
    words.filter_map(|word| word.split_once('=')).map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

pub(super) fn silent() -> JobError {
    lost("the process manager does not answer within the limit; PMI does not tell which ranks are missing")
}

fn gone(error: Errno) -> JobError {
    lost(format!("the process manager has gone: {error}"))
}

impl Manager {
    /// Speaks PMI-1 until [`Manager::speak`] changes it.
    pub(super) fn over(socket: OwnedFd) -> Self {
        close_in_children(&socket);
        Self { socket: Some(socket), inbound: Vec::new(), version: Version::One, owed: None }
    }

    pub(super) fn is_there(&self) -> bool {
        self.socket.is_some()
    }

    pub(super) fn close(&mut self) {
        self.socket = None;
    }

    pub(super) fn speak(&mut self, version: Version) {
        self.version = version;
    }

    pub(super) fn version(&self) -> Version {
        self.version
    }

    /// Sends a command and takes its answer. An answer other than expected ends the connection.
    pub(super) fn ask(
        &mut self,
        name: &str,
        words: &[(&str, &str)],
        answer: &str,
        deadline: Instant,
    ) -> Result<Words, JobError> {
        self.ask_until(name, words, answer, deadline)
            .and_then(|answer| answer.ok_or_else(silent))
            .inspect_err(|_| self.close())
    }

    /// Asks what changes nothing. `None`: no answer before the deadline. The next command then
    /// first takes that answer, and drops it.
    pub(super) fn question(
        &mut self,
        name: &str,
        words: &[(&str, &str)],
        answer: &str,
        deadline: Instant,
    ) -> Result<Option<Words>, JobError> {
        let asked = self.ask_until(name, words, answer, deadline).inspect_err(|_| self.close())?;
        if asked.is_none() {
            self.owed = Some(answer.to_owned());
        }
        Ok(asked)
    }

    fn ask_until(
        &mut self,
        name: &str,
        words: &[(&str, &str)],
        answer: &str,
        deadline: Instant,
    ) -> Result<Option<Words>, JobError> {
        if let Some(owed) = self.owed.take() {
            self.answer(&owed, deadline)?;
        }
        let command = emit(self.version, name, words);
        self.send(&command, deadline)?;
        match self.command(deadline)? {
            Some(text) => self.checked(&text, answer).map(Some),
            None => Ok(None),
        }
    }

    fn send(&mut self, mut rest: &[u8], deadline: Instant) -> Result<(), JobError> {
        while !rest.is_empty() {
            let socket = self.wait(PollFlags::OUT, deadline)?.ok_or_else(silent)?;
            match rustix::net::send(socket, rest, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(sent) => rest = &rest[sent..],
                Err(Errno::AGAIN | Errno::INTR) => (),
                Err(error) => return Err(gone(error)),
            }
        }
        Ok(())
    }

    /// Takes a command of this name.
    pub(super) fn answer(&mut self, name: &str, deadline: Instant) -> Result<Words, JobError> {
        let text = self.command(deadline)?.ok_or_else(silent)?;
        self.checked(&text, name)
    }

    fn checked(&self, text: &str, name: &str) -> Result<Words, JobError> {
        let answer = words(self.version, text);
        let is_right = answer.get("cmd").is_some_and(|cmd| cmd == name);
        if is_right { Ok(answer) } else { Err(lost(format!("the process manager sent '{text}' in place of {name}"))) }
    }

    /// `None`: no whole command before the deadline. What has come of it is kept.
    fn command(&mut self, deadline: Instant) -> Result<Option<String>, JobError> {
        loop {
            if let Some(text) = cut(self.version, &mut self.inbound)? {
                return Ok(Some(text));
            }
            let Some(socket) = self.wait(PollFlags::IN, deadline)? else { return Ok(None) };
            let mut chunk = [0; 4096];
            // Whoever shares the descriptor may have taken what was there.
            match rustix::net::recv(socket, &mut chunk, RecvFlags::DONTWAIT) {
                Ok((0, _)) => {
                    return Err(lost("the process manager has closed the connection; see what it has written"));
                }
                Ok((length, _)) => self.inbound.extend(&chunk[..length]),
                Err(Errno::AGAIN | Errno::INTR) => (),
                Err(error) => return Err(gone(error)),
            }
        }
    }

    /// `None`: not before the deadline.
    fn wait(&self, flags: PollFlags, deadline: Instant) -> Result<Option<&OwnedFd>, JobError> {
        let socket = self.socket.as_ref().ok_or_else(|| lost("an earlier call has failed"))?;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let limit = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: i64::from(i32::MAX), tv_nsec: 0 });
            match poll(&mut [PollFd::new(socket, flags)], Some(&limit)) {
                Ok(0) => return Ok(None),
                Ok(_) => return Ok(Some(socket)),
                Err(Errno::INTR) => (),
                Err(error) => return Err(lost(format!("waiting for the process manager: {error}"))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_cut_and_read_as_they_are_written() {
        let words_of = [("key", "a"), ("value", "1=2")];
        assert_eq!(emit(Version::One, "put", &words_of), b"cmd=put key=a value=1=2\n");
        assert_eq!(emit(Version::Two, "put", &words_of), b"    24cmd=put;key=a;value=1=2;");
        for version in [Version::One, Version::Two] {
            let all = [emit(version, "put", &words_of), emit(version, "get", &[])].concat();
            let mut inbound = Vec::new();
            let mut texts = Vec::new();
            for byte in all {
                inbound.push(byte);
                texts.extend(cut(version, &mut inbound).expect("right"));
            }
            let read: Vec<_> = texts.iter().map(|text| words(version, text)).collect();
            let of =
                |pairs: &[(&str, &str)]| pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
            assert_eq!(read, [of(&[("cmd", "put"), words_of[0], words_of[1]]), of(&[("cmd", "get")])]);
            assert!(inbound.is_empty());
        }
    }

    #[test]
    fn a_false_length_ends_it() {
        for text in ["abcdef", "-00001", "999999"] {
            assert!(cut(Version::Two, &mut text.into()).is_err(), "{text}");
        }
        assert_eq!(cut(Version::Two, &mut "     ".into()), Ok(None));
        assert!(cut(Version::One, &mut vec![b'a'; LONGEST + 1]).is_err());
    }
}
