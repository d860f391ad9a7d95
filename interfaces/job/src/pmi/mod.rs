//! PMI-1 and PMI-2, the text protocols by which process managers such as hydra serve their ranks.

mod manager;
pub(crate) mod server;

use crate::error::JobError;
use crate::names;
use crate::source::{Environment, LONGEST_VALUE, Source, cannot, check, lost};
use cci_mem::descriptors;
use manager::{Manager, Version, Words, silent};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// The first pause before a value is asked for again, and the longest.
const AGAIN: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(50));

/// The digits of one entry: the fewest that are of use, and the most with which a line stays below
/// the 1,024 bytes that process managers read at once.
const DIGITS: std::ops::RangeInclusive<usize> = 64..=512;

/// The digits of the longest value, and the most entries that a rank puts for them.
const MOST_DIGITS: usize = 2 * LONGEST_VALUE;
const MOST_ENTRIES: usize = MOST_DIGITS.div_ceil(*DIGITS.start() - ROOM_OF_COUNT);

/// A rank of a process manager.
pub(crate) struct Pmi {
    manager: Manager,
    rank: u32,
    size: u32,
    /// The key-value space, of PMI-1.
    space: String,
    /// The most digits of one entry's value.
    digits: usize,
    exchanges: u64,
    /// How long the process manager may take for its answer to the farewell.
    farewell: Duration,
}

/// Hexadecimal digits: what PMI stores is text without spaces.
pub(crate) fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn bytes(digits: &str) -> Option<Vec<u8>> {
    let pair = |at| digits.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    (0..digits.len()).step_by(2).map(pair).collect()
}

impl Pmi {
    /// Joins the process manager that the environment names: the connection, rank and size.
    pub(crate) fn join(environment: &Environment<'_>, limit: Duration) -> Result<(Self, u32, u32), JobError> {
        let deadline = Instant::now() + limit;
        let socket = match environment.get("PMI_FD") {
            Some(_) => inherited(environment.number("PMI_FD")?)?,
            None => connected(&environment.get("PMI_PORT").unwrap_or_default(), deadline)?,
        };
        let manager = Manager::over(socket);
        let (space, digits, farewell) = (String::new(), *DIGITS.end(), limit.min(FAREWELL));
        let mut pmi = Self { manager, rank: 0, size: 0, space, digits, exchanges: 0, farewell };
        if let Err(why) = pmi.meet(environment, deadline) {
            // Whoever has not joined has no farewell to say, for which a silent manager would have
            // time of its own.
            pmi.manager.close();
            return Err(why);
        }
        let (rank, size) = (pmi.rank, pmi.size);
        Ok((pmi, rank, size))
    }

    fn meet(&mut self, environment: &Environment<'_>, deadline: Instant) -> Result<(), JobError> {
        if environment.get("PMI_FD").is_some() {
            (self.rank, self.size) = (environment.number("PMI_RANK")?, environment.number("PMI_SIZE")?);
        } else {
            self.identify(environment.number("PMI_ID")?, deadline)?;
        }
        check(self.rank, self.size)?;
        match version(environment)? {
            Version::Two => self.begin_2(environment, deadline)?,
            Version::One => self.begin(environment, deadline)?,
        }
        check(self.rank, self.size)
    }

    /// The protocol that it speaks.
    pub(crate) fn name(&self) -> &'static str {
        if self.manager.version() == Version::One { "PMI-1" } else { "PMI-2" }
    }

    /// Tells a process manager that was connected to who this is; it answers with rank and size.
    fn identify(&mut self, id: u32, deadline: Instant) -> Result<(), JobError> {
        self.manager.ask("initack", &[("pmiid", &id.to_string())], "initack", deadline)?;
        for _ in ["size", "rank", "debug"] {
            let set = self.manager.answer("set", deadline)?;
            self.take_place(&set);
        }
        Ok(())
    }

    fn take_place(&mut self, words: &Words) {
        let number = |key: &str| words.get(key).and_then(|value| value.parse().ok());
        self.size = number("size").unwrap_or(self.size);
        self.rank = number("rank").unwrap_or(self.rank);
    }

    /// Begins by PMI-1, or by PMI-2 with a process manager that has only that.
    fn begin(&mut self, environment: &Environment<'_>, deadline: Instant) -> Result<(), JobError> {
        let version = [("pmi_version", "1"), ("pmi_subversion", "1")];
        let answer = self.manager.ask("init", &version, "response_to_init", deadline)?;
        if !is_done(&answer) && answer.get("pmi_version").is_some_and(|version| version == "2") {
            return self.begin_2(environment, deadline);
        }
        if !is_done(&answer) {
            return Err(cannot("the process manager speaks neither PMI-1 nor PMI-2"));
        }
        let maxes = self.manager.ask("get_maxes", &[], "maxes", deadline)?;
        let longest = maxes.get("vallen_max").and_then(|value| value.parse::<usize>().ok());
        // One byte may be for a terminating zero. A digit pair is never split.
        self.digits = (longest.unwrap_or(0).saturating_sub(1) & !1).clamp(*DIGITS.start(), *DIGITS.end());
        let space = self.manager.ask("get_my_kvsname", &[], "my_kvsname", deadline)?;
        self.space =
            space.get("kvsname").cloned().ok_or_else(|| cannot("the process manager names no key-value space"))?;
        Ok(())
    }

    /// Begins by PMI-2, whose first command is still a line of PMI-1.
    fn begin_2(&mut self, environment: &Environment<'_>, deadline: Instant) -> Result<(), JobError> {
        let version = [("pmi_version", "2"), ("pmi_subversion", "0")];
        let answer = self.manager.ask("init", &version, "response_to_init", deadline)?;
        if !is_done(&answer) {
            return Err(cannot("the process manager does not speak PMI-2; unset CCI_PMI"));
        }
        self.manager.speak(Version::Two);
        let (rank, job) = (self.rank.to_string(), environment.get("PMI_JOBID"));
        let mut words: Vec<(&str, &str)> = job.iter().map(|job| ("pmijobid", job.as_str())).collect();
        words.extend([("pmirank", rank.as_str()), ("threaded", "FALSE")]);
        let answer = self.manager.ask("fullinit", &words, "fullinit-response", deadline)?;
        if !is_done(&answer) {
            return Err(cannot("the process manager does not know this rank; start it by its launcher itself"));
        }
        self.take_place(&answer);
        Ok(())
    }

    fn of_version(&self, commands: [(&'static str, &'static str); 2]) -> (&'static str, &'static str) {
        commands[usize::from(self.manager.version() == Version::Two)]
    }

    /// Asks, in the version that is spoken: the commands of PMI-1 and of PMI-2 with their answers.
    fn ask(
        &mut self,
        commands: [(&'static str, &'static str); 2],
        words: &[(&str, &str)],
        deadline: Instant,
    ) -> Result<Words, JobError> {
        let (command, answer) = self.of_version(commands);
        // PMI-2 has one space.
        let space = Some(("kvsname", self.space.as_str())).filter(|space| !space.1.is_empty() && !words.is_empty());
        let words: Vec<_> = space.into_iter().chain(words.iter().copied()).collect();
        self.manager.ask(command, &words, answer, deadline)
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
            let (key, value) = (format!("{name}-{at}"), format!("{:08x}{piece}", pieces.len()));
            let answer = self.ask(PUT, &[("key", &key), ("value", &value)], deadline)?;
            if !is_done(&answer) {
                return Err(JobError::Refused(
                    "the process manager has no room for the value, or has the key; publish less",
                ));
            }
        }
        Ok(())
    }

    /// What was put, if it is visible yet.
    fn get(&mut self, name: &str, deadline: Instant) -> Result<Got, JobError> {
        let (mut text, mut at, mut count) = (String::new(), 0, 1);
        while at < count {
            let key = format!("{name}-{at}");
            let (command, answer) = self.of_version(GET);
            let words = [("kvsname", self.space.as_str()), ("key", &key)];
            // PMI-2 has one space.
            let words = if self.space.is_empty() { &words[1..] } else { &words[..] };
            let Some(answer) = self.manager.question(command, words, answer, deadline)? else {
                return Ok(Got::NoAnswer);
            };
            // PMI-2 has a flag for it.
            if !is_done(&answer) || answer.get("flag").is_some_and(|flag| flag != "TRUE") {
                return Ok(Got::Nothing);
            }
            let entry = answer.get("value").and_then(|value| value.split_at_checked(ROOM_OF_COUNT));
            let (pieces, piece) = entry.ok_or_else(malformed)?;
            count = usize::from_str_radix(pieces, 16).map_err(|_| malformed())?;
            text.push_str(piece);
            at += 1;
            // The words of the process manager alone have no end.
            if count > MOST_ENTRIES || text.len() > MOST_DIGITS {
                return Err(malformed());
            }
        }
        bytes(&text).map(Got::Value).ok_or_else(malformed)
    }
}

/// What a process manager holds under a name.
enum Got {
    Value(Vec<u8>),
    Nothing,
    /// It has not answered before the deadline.
    NoAnswer,
}

/// Commands and their answers, of PMI-1 and of PMI-2.
const PUT: [(&str, &str); 2] = [("put", "put_result"), ("kvs-put", "kvs-put-response")];
const GET: [(&str, &str); 2] = [("get", "get_result"), ("kvs-get", "kvs-get-response")];
const BARRIER: [(&str, &str); 2] = [("barrier_in", "barrier_out"), ("kvs-fence", "kvs-fence-response")];
const FINALIZE: [(&str, &str); 2] = [("finalize", "finalize_ack"), ("finalize", "finalize-response")];

/// Whether an answer reports no failure.
fn is_done(answer: &Words) -> bool {
    answer.get("rc").is_some_and(|code| code == "0")
}

/// The protocol to begin with.
fn version(environment: &Environment<'_>) -> Result<Version, JobError> {
    match environment.get("CCI_PMI").as_deref() {
        None | Some("1") => Ok(Version::One),
        Some("2") => Ok(Version::Two),
        Some(other) => Err(cannot(format!("CCI_PMI: '{other}' is not a value; write 1 or 2"))),
    }
}

/// The digits in front of each entry: how many entries the value has.
const ROOM_OF_COUNT: usize = 8;

/// The name of a published value: a hash of its key, since PMI has names of 64 bytes only.
pub(crate) fn name_of(rank: u32, key: &str) -> String {
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

fn connected(address: &str, deadline: Instant) -> Result<OwnedFd, JobError> {
    let failed = |error: std::io::Error| cannot(format!("no process manager at PMI_PORT {address}: {error}"));
    let found = names::addresses_of(address, deadline).map_err(failed)?;
    first_of(&found, deadline).map_err(failed)
}

/// Connects to the first of these addresses that answers. One that is silent leaves the others
/// their share of the time.
fn first_of(addresses: &[SocketAddr], deadline: Instant) -> std::io::Result<OwnedFd> {
    let mut why = std::io::ErrorKind::AddrNotAvailable.into();
    for (address, rest) in addresses.iter().zip((1..=addresses.len()).rev()) {
        let left = deadline.saturating_duration_since(Instant::now());
        let share = left / u32::try_from(rest).unwrap_or(u32::MAX);
        // No time at all is no limit that the system takes.
        match descriptors::stream_within(address, share.max(Duration::from_millis(1))) {
            Ok(stream) => return Ok(stream.into()),
            Err(error) => why = error,
        }
    }
    Err(why)
}

impl Source for Pmi {
    fn publish(&mut self, key: &str, value: &[u8]) -> Result<(), JobError> {
        let name = name_of(self.rank, key);
        self.put(&name, value, Instant::now() + ANSWER)
    }

    fn look_up(&mut self, rank: u32, key: &str, limit: Duration) -> Result<Vec<u8>, JobError> {
        let name = name_of(rank, key);
        let (deadline, mut pause, mut has_answered) = (Instant::now() + limit, AGAIN.0, false);
        loop {
            match self.get(&name, deadline)? {
                Got::Value(value) => return Ok(value),
                // The next call takes the late answer first.
                Got::NoAnswer if !has_answered => return Err(silent()),
                Got::Nothing | Got::NoAnswer => has_answered = true,
            }
            if Instant::now() + pause > deadline {
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
        self.ask(BARRIER, &[], deadline)?;
        let mut values = Vec::with_capacity(self.size as usize);
        for rank in 0..self.size {
            if rank == self.rank {
                values.push(value.to_vec());
                continue;
            }
            values.push(match self.get(&format!("cci-x{number}-{rank}"), deadline)? {
                Got::Value(value) => value,
                Got::Nothing => return Err(JobError::Gone(vec![rank])),
                Got::NoAnswer => {
                    self.manager.close();
                    return Err(silent());
                }
            });
        }
        Ok(values)
    }

    fn leave(&mut self) {
        if self.manager.is_there() {
            // hydra takes an end without this for a failure. A manager that has gone needs none.
            let _ = self.ask(FINALIZE, &[], Instant::now() + self.farewell);
            self.manager.close();
        }
    }
}

/// How long the process manager may take for an answer that waits for no other rank.
const ANSWER: Duration = Duration::from_secs(10);

/// As [`ANSWER`], for the farewell: the rank needs nothing of its answer, and process managers send
/// it at once. It is waited for because one that finds the connection closed may report a failure.
const FAREWELL: Duration = Duration::from_secs(2);

impl Drop for Pmi {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn an_address_that_is_silent_leaves_the_next_one_its_share_of_the_time() {
        const LIMIT: Duration = Duration::from_secs(6);
        let silent = crate::tests::limits::Silent::new();
        let answers = TcpListener::bind("127.0.0.1:0").expect("a port");
        let addresses = [silent.address(), answers.local_addr().expect("an address")];
        let begin = Instant::now();
        first_of(&addresses, begin + LIMIT).expect("the second one answers");
        assert!(begin.elapsed() < LIMIT, "{:?}", begin.elapsed());
        let begin = Instant::now();
        let limit = Duration::from_millis(200);
        let late = first_of(&[silent.address(), silent.address()], begin + limit).expect_err("neither answers");
        assert_eq!(late.kind(), std::io::ErrorKind::TimedOut);
        assert!((limit..limit * 20).contains(&begin.elapsed()), "{:?}", begin.elapsed());
    }
}
