//! A rank's side of the store.

use crate::error::JobError;
use crate::seal::{Claim, Seal};
use crate::secret::Secret;
use crate::source::{Source, cannot, check};
use crate::stream::{Broken, Stream};
use crate::wire::{Hello, Key, LONGEST_VALUE, Refusal, Reply, Request, Welcome};
use cci_mem::inherited::close_in_children;
use cci_seal::Refused;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// How much longer than the limit a rank waits: the store keeps the limit, and only one that is
/// stopped does not answer.
const STORE: Duration = Duration::from_secs(5);

/// The longest answer before the size of the job is known.
const LONGEST_BEFORE: usize = 4096;

/// A connection to the store. After a failure it is of no use any more.
pub(crate) struct Client {
    stream: Option<Stream>,
    size: u32,
    /// Whether a launcher serves the store.
    is_launched: bool,
    ended: Option<u8>,
}

/// Why a rank did not join a store that listens.
pub(crate) struct Unmet {
    pub(crate) error: JobError,
    pub(crate) at: CutOff,
}

/// At what point of the handshake the store has closed the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CutOff {
    /// It had no place or no descriptor.
    BeforeChallenge,
    /// It has refused the proof, or another stranger has taken the place.
    AfterHello,
    /// It has not.
    Never,
}

fn lost(why: &str) -> JobError {
    JobError::Lost(why.into())
}

impl Client {
    fn over(socket: OwnedFd) -> Result<Self, JobError> {
        close_in_children(&socket);
        let stream =
            Stream::new(socket, LONGEST_BEFORE).map_err(|error| cannot(format!("the store's socket: {error}")))?;
        Ok(Self { stream: Some(stream), size: 0, is_launched: false, ended: None })
    }

    /// Joins by the descriptor that the launcher gave to this process. `inode`: that of the socket,
    /// where the launcher names it. Another file of this number is the program's, and is left
    /// alone.
    pub(crate) fn inherited(descriptor: i32, inode: Option<u64>, limit: Duration) -> Result<(Self, Welcome), JobError> {
        let found = std::fs::read_link(format!("/proc/self/fd/{descriptor}")).unwrap_or_default();
        let found = found.as_os_str().as_encoded_bytes();
        let is_it = match inode {
            Some(inode) => found == format!("socket:[{inode}]").as_bytes(),
            None => found.starts_with(b"socket:"),
        };
        if !is_it && found.starts_with(b"socket:") {
            return Err(cannot(format!(
                "CCI_JOB_FD names descriptor {descriptor}, which is another socket than that of the job: the program \
                 has closed that one; leave it open until the process has joined"
            )));
        }
        if !is_it {
            return Err(cannot(format!(
                "CCI_JOB_FD names descriptor {descriptor}, which is no socket here: a process joins once, and `cci run` \
                 itself has to start it; join once, or unset CCI_JOB_FD"
            )));
        }
        let socket =
            crate::sys::take_alone(descriptor).map_err(|error| cannot(format!("descriptor {descriptor}: {error}")))?;
        Self::trusted(socket, limit)
    }

    /// Joins by a socket that is for this rank alone, so that nothing is to be proven.
    pub(crate) fn trusted(socket: OwnedFd, limit: Duration) -> Result<(Self, Welcome), JobError> {
        let mut client = Self::over(socket)?;
        client.is_launched = true;
        let hello = Hello { rank: 0, size: 0, share: None };
        let welcome = client.hello(hello, limit)?;
        check(welcome.rank, welcome.size)?;
        client.expect(welcome.size);
        Ok((client, welcome))
    }

    /// Joins a store that listens: both sides prove the secret.
    pub(crate) fn connected(
        socket: OwnedFd,
        rank: u32,
        size: u32,
        secret: Option<&Secret>,
        limit: Duration,
    ) -> Result<Self, Unmet> {
        let never = |error| Unmet { error, at: CutOff::Never };
        let mut client = Self::over(socket).map_err(never)?;
        let begin = Instant::now();
        let challenge = match client.answer(begin + limit) {
            Ok(Reply::Challenge(challenge)) => challenge,
            Ok(_) => {
                return Err(never(cannot("something else than a job's store listens there; choose another port")));
            }
            Err(error) if error == ended() => return Err(Unmet { error, at: CutOff::BeforeChallenge }),
            Err(error) => return Err(never(error)),
        };
        let asked = secret.map(|secret| Claim { challenge, rank, size }.ask(secret)).transpose();
        let asked = asked.map_err(|refused| never(unusable(refused)))?;
        let hello = Hello { rank, size, share: asked.as_ref().map(|(_, share)| *share) };
        let limit = limit.saturating_sub(begin.elapsed());
        let welcome = client.hello(hello, limit).map_err(|error| Unmet { error, at: CutOff::AfterHello })?;
        match (&asked, &welcome.key) {
            (None, Key::None) => (),
            (Some((initiator, _)), Key::Share(share)) => {
                let seal = Seal::finish(initiator, share, &welcome.numbers());
                let seal = seal.map_err(|refused| never(unproven(refused)))?;
                client.seal(seal).map_err(never)?;
            }
            _ => return Err(never(unproven(Refused::Forged))),
        }
        // A store that nobody has to prove anything to can state what it likes.
        if (welcome.rank, welcome.size) != (rank, size) {
            let (other, of) = (welcome.rank, welcome.size);
            return Err(never(cannot(format!(
                "the store takes rank {rank} of {size} for rank {other} of {of}; see that all ranks name the same store"
            ))));
        }
        client.expect(size);
        Ok(client)
    }

    /// Seals all that follows.
    fn seal(&mut self, seal: Seal) -> Result<(), JobError> {
        let stream = self.stream.as_mut().ok_or_else(|| lost("an earlier call has failed"))?;
        stream.seal(Box::new(seal)).map_err(broken)
    }

    /// Allows the answers that a job of this size has.
    fn expect(&mut self, size: u32) {
        self.size = size;
        let longest = (LONGEST_VALUE + 4).saturating_mul(size as usize).saturating_add(1);
        if let Some(stream) = &mut self.stream {
            stream.allow(longest);
        }
    }

    fn hello(&mut self, hello: Hello, limit: Duration) -> Result<Welcome, JobError> {
        // The store waits for nobody before it answers this.
        let answer = self.request_until(&Request::Hello(hello), Instant::now() + limit);
        let answer = answer.map_err(|error| if error == ended() { turned_away() } else { error });
        let Reply::Welcome(welcome) = answer? else {
            return Err(turned_away());
        };
        Ok(welcome)
    }

    /// Sends a request that the store answers within the limit, and waits for its answer.
    fn request(&mut self, request: &Request, limit: Duration) -> Result<Reply, JobError> {
        self.request_until(request, Instant::now() + limit.saturating_add(STORE))
    }

    /// Sends a request and waits for its answer; after a failure there is no other.
    fn request_until(&mut self, request: &Request, deadline: Instant) -> Result<Reply, JobError> {
        let stream = self.stream.as_mut().ok_or_else(|| lost("an earlier call has failed"))?;
        let sent = stream.push(request.emit().into());
        let answer = sent.map_err(broken).and_then(|()| self.answer(deadline));
        if answer.is_err() {
            self.stream = None;
        }
        answer
    }

    /// Waits for one frame.
    fn answer(&mut self, deadline: Instant) -> Result<Reply, JobError> {
        let stream = self.stream.as_mut().ok_or_else(|| lost("an earlier call has failed"))?;
        loop {
            match stream.frame() {
                Ok(Some(frame)) => match Reply::parse(&frame) {
                    Some(Reply::Ending(status)) => {
                        self.ended = Some(status);
                        return Err(lost("a rank has ended the job"));
                    }
                    Some(reply) => return Ok(reply),
                    None => return Err(lost("the store sent a malformed frame")),
                },
                Ok(None) => (),
                Err(_) => return Err(lost("the store sent a frame that is too long")),
            }
            wait(stream, deadline)?;
            stream.flush().map_err(broken)?;
            stream.receive().map_err(broken)?;
        }
    }

    /// The error that a refusal is.
    fn refused(why: Refusal, ranks: Vec<u32>, limit: Duration) -> JobError {
        match why {
            Refusal::TimedOut => JobError::NeverCame { ranks, limit },
            Refusal::GivenUp => JobError::GivenUp(ranks),
            Refusal::Gone => JobError::Gone(ranks),
            Refusal::Published => JobError::Refused("this rank has published that key before; use another key"),
            Refusal::Full => JobError::Refused("this rank has published 16 MiB, which is the most; publish less"),
        }
    }
}

fn broken(why: Broken) -> JobError {
    match why {
        Broken::Unsealed => {
            lost("what the store sends is not sealed by its key; see whether something on the path changes it")
        }
        Broken::Refused(refused) => JobError::Lost(format!("the keys of the store: {refused}")),
        Broken::Ended | Broken::TooLong => ended(),
    }
}

/// The error where the answer of the store is not right, or this rank cannot tell.
fn unproven(refused: Refused) -> JobError {
    match refused {
        Refused::Forged | Refused::Length => {
            cannot("the store does not prove the secret of this job; give all ranks the same CCI_SECRET_FILE")
        }
        other => unusable(other),
    }
}

fn unusable(refused: Refused) -> JobError {
    cannot(format!("the secret of this job: {refused}"))
}

fn ended() -> JobError {
    lost("the store has closed the connection; see what its launcher, or rank 0, has written")
}

fn turned_away() -> JobError {
    cannot("the store has closed the connection; see that each rank comes once, and with the secret of the job")
}

/// Waits until something arrives, or there is room for what has not left yet.
fn wait(stream: &Stream, deadline: Instant) -> Result<(), JobError> {
    let flags = if stream.is_flushed() { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT };
    let left = deadline.saturating_duration_since(Instant::now());
    let limit = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: i64::from(i32::MAX), tv_nsec: 0 });
    match poll(&mut [PollFd::new(stream, flags)], Some(&limit)) {
        Ok(0) => Err(lost("the store does not answer; see whether its launcher, or rank 0, is stopped")),
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(JobError::Lost(format!("waiting for the store: {error}"))),
    }
}

impl Source for Client {
    fn publish(&mut self, key: &str, value: &[u8]) -> Result<(), JobError> {
        let request = Request::Publish { key: key.into(), value: value.into() };
        match self.request(&request, Duration::ZERO)? {
            Reply::Done => Ok(()),
            Reply::Refused(why, ranks) => Err(Self::refused(why, ranks, Duration::ZERO)),
            _ => Err(self.confused()),
        }
    }

    fn look_up(&mut self, rank: u32, key: &str, limit: Duration) -> Result<Vec<u8>, JobError> {
        match self.request(&Request::LookUp { limit, rank, key: key.into() }, limit)? {
            Reply::Value(value) => Ok(value),
            Reply::Refused(why, ranks) => Err(Self::refused(why, ranks, limit)),
            _ => Err(self.confused()),
        }
    }

    fn end(&mut self, status: u8) -> bool {
        let Some(stream) = self.stream.as_mut().filter(|_| self.is_launched) else { return false };
        // A few bytes, which fit the socket: no call waits for an answer.
        stream.push(Request::End { status }.emit().into()).is_ok() && stream.flush().is_ok()
    }

    fn ended(&mut self) -> Option<u8> {
        if let Some(stream) = &mut self.stream {
            // One that has ended may have told why before.
            let _ = stream.receive();
            while let Ok(Some(frame)) = stream.frame() {
                if let Some(Reply::Ending(status)) = Reply::parse(&frame) {
                    self.ended = Some(status);
                }
            }
        }
        self.ended
    }

    fn exchange(&mut self, value: &[u8], limit: Duration) -> Result<Vec<Vec<u8>>, JobError> {
        match self.request(&Request::Exchange { limit, value: value.into() }, limit)? {
            Reply::Values(values) if values.len() == self.size as usize => Ok(values),
            Reply::Refused(why, ranks) => Err(Self::refused(why, ranks, limit)),
            _ => Err(self.confused()),
        }
    }
}

impl Client {
    fn confused(&mut self) -> JobError {
        self.stream = None;
        lost("the store answered something else than was asked")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_without_memory_does_not_say_that_the_secret_is_wrong() {
        let says = |refused| unproven(refused).to_string();
        assert!(says(Refused::Forged).contains("does not prove the secret"));
        assert!(says(Refused::NoMemory).contains("no memory for keys"));
        let lost = broken(Broken::Refused(Refused::NoMemory)).to_string();
        assert!(lost.contains("no memory for keys"), "{lost}");
    }
}
