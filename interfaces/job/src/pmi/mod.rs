//! PMI-1, the text protocol by which process managers such as hydra serve their ranks: a line a
//! command, words `key=value` between spaces.

use crate::error::JobError;
use crate::source::{Environment, Source, cannot, check};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeMap;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// The longest line that a process manager may send.
const LONGEST_LINE: usize = 65_536;

/// The first pause before a value is asked for again, and the longest.
const AGAIN: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(50));

/// The digits of one entry: the fewest that are of use, and the most with which a line stays below
/// the 1,024 bytes that process managers read at once.
const DIGITS: std::ops::RangeInclusive<usize> = 64..=512;

/// A connection to a process manager. After a failure it is of no use any more.
pub(crate) struct Pmi {
    manager: Option<OwnedFd>,
    inbound: Vec<u8>,
    rank: u32,
    size: u32,
    space: String,
    /// The most digits of one entry's value.
    digits: usize,
    exchanges: u64,
}

type Words = BTreeMap<String, String>;

fn lost(why: impl Into<String>) -> JobError {
    JobError::Lost(why.into())
}

/// A line without its end.
fn command(name: &str, words: &[(&str, &str)]) -> String {
    words.iter().fold(format!("cmd={name}"), |line, (key, value)| line + " " + key + "=" + value)
}

/// The words of a line.
fn words(line: &str) -> Words {
    let words = line.split(' ').filter_map(|word| word.split_once('='));
    words.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// Hexadecimal digits: what PMI stores is text without spaces.
fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(digits: &str) -> Option<Vec<u8>> {
    let pair = |at| digits.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    (0..digits.len()).step_by(2).map(pair).collect()
}

impl Pmi {
    /// Joins the process manager that the environment names: the connection, rank and size.
    pub(crate) fn join(environment: &Environment<'_>, limit: Duration) -> Result<(Self, u32, u32), JobError> {
        let deadline = Instant::now() + limit;
        let manager = match environment.get("PMI_FD") {
            Some(_) => inherited(environment.number("PMI_FD")?)?,
            None => connected(&environment.get("PMI_PORT").unwrap_or_default())?,
        };
        let mut pmi = Self::over(manager);
        if environment.get("PMI_FD").is_some() {
            (pmi.rank, pmi.size) = (environment.number("PMI_RANK")?, environment.number("PMI_SIZE")?);
        } else {
            pmi.identify(environment.number("PMI_ID")?, deadline)?;
        }
        check(pmi.rank, pmi.size)?;
        pmi.begin(deadline)?;
        let (rank, size) = (pmi.rank, pmi.size);
        Ok((pmi, rank, size))
    }

    fn over(manager: OwnedFd) -> Self {
        let space = String::new();
        Self { manager: Some(manager), inbound: Vec::new(), rank: 0, size: 0, space, digits: 0, exchanges: 0 }
    }

    /// Tells a process manager that was connected to who this is; it answers with rank and size.
    fn identify(&mut self, id: u32, deadline: Instant) -> Result<(), JobError> {
        self.ask(&format!("cmd=initack pmiid={id}"), "initack", deadline)?;
        for _ in ["size", "rank", "debug"] {
            let set = self.answer("set", deadline)?;
            let number = |key: &str| set.get(key).and_then(|value| value.parse().ok());
            self.size = number("size").unwrap_or(self.size);
            self.rank = number("rank").unwrap_or(self.rank);
        }
        Ok(())
    }

    fn begin(&mut self, deadline: Instant) -> Result<(), JobError> {
        self.ask(&command("init", &[("pmi_version", "1"), ("pmi_subversion", "1")]), "response_to_init", deadline)?;
        let maxes = self.ask("cmd=get_maxes", "maxes", deadline)?;
        let longest = maxes.get("vallen_max").and_then(|value| value.parse::<usize>().ok());
        // One byte may be for a terminating zero. A digit pair is never split.
        self.digits = (longest.unwrap_or(0).saturating_sub(1) & !1).clamp(*DIGITS.start(), *DIGITS.end());
        let space = self.ask("cmd=get_my_kvsname", "my_kvsname", deadline)?;
        self.space =
            space.get("kvsname").cloned().ok_or_else(|| cannot("the process manager names no key-value space"))?;
        Ok(())
    }

    /// Sends a command and takes its answer. An answer other than expected ends the connection.
    fn ask(&mut self, line: &str, answer: &str, deadline: Instant) -> Result<Words, JobError> {
        let answered = self.send(line, deadline).and_then(|()| self.answer(answer, deadline));
        if answered.is_err() {
            self.manager = None;
        }
        answered
    }

    fn send(&mut self, line: &str, deadline: Instant) -> Result<(), JobError> {
        let line = format!("{line}\n");
        let mut rest = line.as_bytes();
        while !rest.is_empty() {
            let manager = self.wait(PollFlags::OUT, deadline)?;
            let sent = rustix::io::write(manager, rest);
            rest = &rest[sent.map_err(|error| lost(format!("the process manager has gone: {error}")))?..];
        }
        Ok(())
    }

    fn answer(&mut self, name: &str, deadline: Instant) -> Result<Words, JobError> {
        let line = self.line(deadline)?;
        let answer = words(&line);
        let is_right = answer.get("cmd").is_some_and(|cmd| cmd == name);
        if is_right { Ok(answer) } else { Err(lost(format!("the process manager sent '{line}' in place of {name}"))) }
    }

    fn line(&mut self, deadline: Instant) -> Result<String, JobError> {
        loop {
            if let Some(end) = self.inbound.iter().position(|byte| *byte == b'\n') {
                let line = self.inbound.drain(..=end).collect::<Vec<_>>();
                return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            if self.inbound.len() > LONGEST_LINE {
                return Err(lost("the process manager sent a line longer than 65536 bytes"));
            }
            let manager = self.wait(PollFlags::IN, deadline)?;
            let mut chunk = [0; 4096];
            let length = rustix::io::read(manager, &mut chunk);
            match length.map_err(|error| lost(format!("the process manager has gone: {error}")))? {
                0 => return Err(lost("the process manager has closed the connection; see what it has written")),
                length => self.inbound.extend(&chunk[..length]),
            }
        }
    }

    fn wait(&self, flags: PollFlags, deadline: Instant) -> Result<&OwnedFd, JobError> {
        let manager = self.manager.as_ref().ok_or_else(|| lost("an earlier call has failed"))?;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let limit = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: i64::from(i32::MAX), tv_nsec: 0 });
            match poll(&mut [PollFd::new(manager, flags)], Some(&limit)) {
                Ok(0) => {
                    return Err(lost(
                        "the process manager does not answer within the limit; PMI does not tell which ranks are missing",
                    ));
                }
                Ok(_) => return Ok(manager),
                Err(rustix::io::Errno::INTR) => (),
                Err(error) => return Err(lost(format!("waiting for the process manager: {error}"))),
            }
        }
    }

    /// Puts a value under a name of ours: entries of digits, the first with the number of entries.
    fn put(&mut self, name: &str, value: &[u8], deadline: Instant) -> Result<(), JobError> {
        let text = digits(value);
        let room = self.digits - ROOM_OF_COUNT;
        let mut pieces: Vec<&str> =
            text.as_bytes().chunks(room).map(|piece| str::from_utf8(piece).unwrap_or("")).collect();
        if pieces.is_empty() {
            pieces.push("");
        }
        for (at, piece) in pieces.iter().enumerate() {
            let (space, count) = (&self.space, pieces.len());
            let (key, value) = (format!("{name}-{at}"), format!("{count:08x}{piece}"));
            let line = command("put", &[("kvsname", space), ("key", &key), ("value", &value)]);
            let answer = self.ask(&line, "put_result", deadline)?;
            if answer.get("rc").is_none_or(|code| code != "0") {
                return Err(JobError::Refused(
                    "the process manager has no room for the value, or has the key; publish less",
                ));
            }
        }
        Ok(())
    }

    /// What was put, if it is visible yet.
    fn get(&mut self, name: &str, deadline: Instant) -> Result<Option<Vec<u8>>, JobError> {
        let (mut text, mut at, mut count) = (String::new(), 0, 1);
        while at < count {
            let line = command("get", &[("kvsname", &self.space), ("key", &format!("{name}-{at}"))]);
            let answer = self.ask(&line, "get_result", deadline)?;
            if answer.get("rc").is_none_or(|code| code != "0") {
                return Ok(None);
            }
            let entry = answer.get("value").and_then(|value| value.split_at_checked(ROOM_OF_COUNT));
            let (pieces, piece) = entry.ok_or_else(malformed)?;
            count = usize::from_str_radix(pieces, 16).map_err(|_| malformed())?;
            text.push_str(piece);
            at += 1;
        }
        bytes(&text).map(Some).ok_or_else(malformed)
    }
}

/// The digits in front of each entry: how many entries the value has.
const ROOM_OF_COUNT: usize = 8;

/// The name of a published value: a hash of its key, since PMI has names of 64 bytes only.
fn name_of(rank: u32, key: &str) -> String {
    format!("cci-{rank}-{}", digits(&blake3::hash(key.as_bytes()).as_bytes()[..16]))
}

fn malformed() -> JobError {
    lost("the process manager holds a value that no rank of this version has put")
}

fn inherited(descriptor: i32) -> Result<OwnedFd, JobError> {
    let is_open = std::fs::exists(format!("/proc/self/fd/{descriptor}")).unwrap_or(false);
    if !is_open {
        return Err(cannot(format!(
            "PMI_FD names descriptor {descriptor}, which is not open; start the program by its launcher itself"
        )));
    }
    crate::sys::take(descriptor).map_err(|error| cannot(format!("descriptor {descriptor}: {error}")))
}

fn connected(address: &str) -> Result<OwnedFd, JobError> {
    let failed = |error: std::io::Error| cannot(format!("no process manager at PMI_PORT {address}: {error}"));
    let found = address.to_socket_addrs().map_err(failed)?;
    let found: Vec<_> = found.collect();
    TcpStream::connect(&found[..]).map(Into::into).map_err(failed)
}

impl Source for Pmi {
    fn publish(&mut self, key: &str, value: &[u8]) -> Result<(), JobError> {
        let name = name_of(self.rank, key);
        self.put(&name, value, Instant::now() + ANSWER)
    }

    fn look_up(&mut self, rank: u32, key: &str, limit: Duration) -> Result<Vec<u8>, JobError> {
        let name = name_of(rank, key);
        let (begin, mut pause) = (Instant::now(), AGAIN.0);
        loop {
            if let Some(value) = self.get(&name, Instant::now() + ANSWER)? {
                return Ok(value);
            }
            if begin.elapsed() + pause > limit {
                return Err(JobError::NeverCame { ranks: vec![rank], limit });
            }
            // Nothing tells when a value becomes visible.
            std::thread::sleep(pause);
            pause = (pause * 2).min(AGAIN.1);
        }
    }

    fn exchange(&mut self, value: &[u8], limit: Duration) -> Result<Vec<Vec<u8>>, JobError> {
        let deadline = Instant::now() + limit;
        self.exchanges += 1;
        let number = self.exchanges;
        self.put(&format!("cci-x{number}-{}", self.rank), value, deadline)?;
        self.ask("cmd=barrier_in", "barrier_out", deadline)?;
        let mut values = Vec::with_capacity(self.size as usize);
        for rank in 0..self.size {
            let other = if rank == self.rank {
                Some(value.to_vec())
            } else {
                self.get(&format!("cci-x{number}-{rank}"), deadline)?
            };
            values.push(other.ok_or_else(|| JobError::Gone(vec![rank]))?);
        }
        Ok(values)
    }

    fn leave(&mut self) {
        if self.manager.is_some() {
            // hydra takes an end without this for a failure. A manager that has gone needs none.
            let _ = self.ask("cmd=finalize", "finalize_ack", Instant::now() + ANSWER);
            self.manager = None;
        }
    }
}

/// How long the process manager may take for an answer that waits for no other rank.
const ANSWER: Duration = Duration::from_secs(10);

impl Drop for Pmi {
    fn drop(&mut self) {
        self.leave();
    }
}
