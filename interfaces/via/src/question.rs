//! A client's question: it goes from port to port of the server's host until one answers for the
//! discriminator.
//!
//! ```text
//!   port 1   connect, ask ------------------------------------ OTHER: refuses
//!   port 2            | 100 ms without an answer: connect, ask --- ACCEPT: the rest is closed
//!   port 3            |        | 100 ms: connect, refused
//! ```
//!
//! A port that is silent stays open, as its owner may be the server whose program has not decided
//! yet. The ports after it are asked meanwhile, and those that have refused are asked again.
//!
//! Any program may own a port, and answer what it likes. An invitation that leads nowhere leaves
//! out its port alone. A refusal of the server counts once the other ports have answered too.

use crate::attributes::ViAttributes;
use crate::errors::Error;
use crate::rendezvous::{Accept, Address, Answer, PORTS, ask_frame, ports, read_frame, write_frame};
use cci_mem::descriptors;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// How long a port is waited for alone.
const SILENT: Duration = Duration::from_millis(100);
/// Before ports are asked again: a server that cut a client off may have a place, or a server may
/// have come while another port is silent. The pause grows with the time that the question takes.
const AGAIN: Duration = Duration::from_millis(20);
const SELDOM: Duration = Duration::from_secs(1);
/// For how long a client that is cut off asks again: another program may have the port, and close
/// whatever comes.
const CUT_OFF: Duration = Duration::from_secs(60);
/// How long an invitation is followed before other ports are asked again.
const FOLLOWED_ALONE: Duration = Duration::from_secs(1);
/// How long a refusal of the server waits for ports that do not take the connection. The system
/// has asked such a port twice by then.
const REFUSED_CONNECTING: Duration = Duration::from_secs(2);
/// How long it waits for ports that have taken the question, and do not answer.
const REFUSED_SILENT: Duration = Duration::from_secs(60);

/// A client has no descriptor for its question.
pub(crate) const NO_DESCRIPTOR: Error =
    Error::Resource("no descriptor is left for asking who waits for that discriminator; raise the limit (ulimit -n)");

fn is_without_descriptors(why: Errno) -> bool {
    matches!(why, Errno::MFILE | Errno::NFILE)
}

/// Why a port that was asked is not the server's.
enum Refusal {
    /// Nobody listens, or somebody who is no server for this discriminator.
    Other,
    /// Closed without a word: the server has no place.
    CutOff,
    Unreachable,
    /// The system has given up.
    Late,
}

impl Refusal {
    fn of(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::NetworkUnreachable | ErrorKind::HostUnreachable => Self::Unreachable,
            ErrorKind::TimedOut => Self::Late,
            _ => Self::Other,
        }
    }
}

/// A port that has not answered yet.
struct Attempt {
    port: u16,
    stream: TcpStream,
    begun: Instant,
    is_connecting: bool,
    buffer: Vec<u8>,
}

impl Attempt {
    /// Goes on, without waiting. `None`: no answer yet.
    fn step(&mut self, ask: &[u8]) -> Result<Option<Answer>, Refusal> {
        if self.is_connecting {
            let mut watched = [PollFd::new(&self.stream, PollFlags::OUT)];
            // A signal ends it early: the next step looks again.
            if !matches!(poll(&mut watched, Some(&Timespec::default())), Ok(1..)) {
                return Ok(None);
            }
            match self.stream.take_error() {
                Ok(None) => self.is_connecting = false,
                Ok(Some(why)) | Err(why) => return Err(Refusal::of(why.kind())),
            }
            write_frame(&mut self.stream, ask).map_err(|_| Refusal::CutOff)?;
        }
        match read_frame(&mut self.stream, &mut self.buffer) {
            Ok(None) => Ok(None),
            Ok(Some(frame)) => Answer::parse(&frame).ok_or(Refusal::Other).map(Some),
            // Without a word: the server has no place. With one: somebody else's port.
            Err(_) if self.buffer.is_empty() => Err(Refusal::CutOff),
            Err(_) => Err(Refusal::Other),
        }
    }
}

/// What the ports have refused with since they were last asked.
#[derive(Default)]
struct Refusals {
    is_cut_off: bool,
    is_unreachable: bool,
    is_late: bool,
    /// Ports were left out, since the process has no descriptor.
    lacks_descriptor: bool,
}

/// What ports have answered that owned the discriminator, or pretended to. Each is asked once.
#[derive(Default)]
struct Answers {
    ports: Vec<u16>,
    /// Invitations that have not been followed yet, oldest first.
    invited: VecDeque<(Accept, TcpStream)>,
    /// The stream of the invitation that the caller has. A server takes an invitation back whose
    /// client hangs up.
    current: Option<TcpStream>,
    /// Since when the last invitation is followed, and its stream.
    followed: Option<(Instant, TcpStream)>,
    /// Whether an invitation has led nowhere.
    has_led_nowhere: bool,
    /// The first refusal, and when it came.
    refused: Option<(Error, Instant)>,
}

pub(crate) struct Question {
    is_peer: bool,
    host: IpAddr,
    ports: [u16; PORTS],
    ask: Vec<u8>,
    /// At most one for each port.
    attempts: Vec<Attempt>,
    /// The place of the port that is asked next.
    next: usize,
    refusals: Refusals,
    answers: Answers,
    /// Whether the host has answered at any port.
    is_reached: bool,
    /// When the ports are asked again, once each of them has been.
    again: Option<Instant>,
    begun: Instant,
}

impl Question {
    pub(crate) fn new(remote: &Address, own: &Address, attributes: &ViAttributes, is_peer: bool) -> Self {
        // Each address of the loop-back network is this host.
        let is_here = remote.host.is_ipv4() && remote.host.is_loopback();
        Self {
            is_peer,
            host: if is_here { Ipv4Addr::LOCALHOST.into() } else { remote.host },
            ports: ports(&remote.discriminator),
            ask: ask_frame(remote, own, attributes, is_peer),
            attempts: Vec::new(),
            next: 0,
            refusals: Refusals::default(),
            answers: Answers::default(),
            is_reached: false,
            again: None,
            begun: Instant::now(),
        }
    }

    /// What it sends.
    #[cfg(test)]
    pub(crate) fn frame(&self) -> Vec<u8> {
        [&(self.ask.len() as u16).to_le_bytes()[..], &self.ask].concat()
    }

    /// The next invitation to follow; none yet. Never waits. While an invitation is followed, the
    /// refusals of the other ports end nothing.
    pub(crate) fn poll(&mut self) -> Result<Option<Accept>, Error> {
        let now = Instant::now();
        loop {
            self.read_answers(now)?;
            if self.alone_until().is_some_and(|until| until > now) {
                return Ok(None);
            }
            if let Some((accept, stream)) = self.answers.invited.pop_front() {
                self.answers.current = Some(stream);
                return Ok(Some(accept));
            }
            self.bound_refusal(now)?;
            if self.next == PORTS && !self.begin_again(now)? {
                return Ok(None);
            }
            let is_young = |attempt: &Attempt| now.saturating_duration_since(attempt.begun) < SILENT;
            if self.answers.refused.is_none() && self.attempts.iter().any(is_young) {
                return Ok(None);
            }
            self.ask_next(now)?;
        }
    }

    /// The invitation is followed from now on, in place of an earlier one.
    pub(crate) fn begin_following(&mut self) {
        self.answers.followed = self.answers.current.take().map(|stream| (Instant::now(), stream));
    }

    /// The invitation cannot even be followed. An earlier one goes on.
    pub(crate) fn leave_out(&mut self) {
        (self.answers.current, self.answers.has_led_nowhere) = (None, true);
    }

    /// The invitation that was followed has led nowhere.
    pub(crate) fn end_following(&mut self) {
        (self.answers.followed, self.answers.has_led_nowhere) = (None, true);
    }

    pub(crate) fn is_following(&self) -> bool {
        self.answers.followed.is_some()
    }

    pub(crate) fn has_led_nowhere(&self) -> bool {
        self.answers.has_led_nowhere
    }

    fn alone_until(&self) -> Option<Instant> {
        self.answers.followed.as_ref().map(|(since, _)| *since + FOLLOWED_ALONE)
    }

    /// Ends the wait of a refusal for ports that are silent.
    fn bound_refusal(&mut self, now: Instant) -> Result<(), Error> {
        let Some((why, since)) = self.answers.refused.filter(|_| !self.is_following()) else { return Ok(()) };
        if now >= since + REFUSED_SILENT {
            return Err(why);
        }
        if now >= since + REFUSED_CONNECTING {
            let ended = self.attempts.extract_if(.., |attempt| attempt.is_connecting);
            self.answers.ports.extend(ended.map(|attempt| attempt.port));
        }
        Ok(())
    }

    /// Takes the answers that are there.
    fn read_answers(&mut self, now: Instant) -> Result<(), Error> {
        let mut at = 0;
        while let Some(attempt) = self.attempts.get_mut(at) {
            let refusal = match attempt.step(&self.ask) {
                Ok(None) => {
                    at += 1;
                    continue;
                }
                Ok(Some(Answer::Accept(accept))) => {
                    let stream = self.answered(at);
                    self.answers.invited.push_back((accept, stream));
                    continue;
                }
                Ok(Some(Answer::Reject)) if !self.is_peer => {
                    self.answers.refused.get_or_insert((Error::Reject, now));
                    self.answered(at);
                    continue;
                }
                Ok(Some(Answer::Mismatch(why))) if self.is_peer => {
                    self.answers.refused.get_or_insert((why, now));
                    self.answered(at);
                    continue;
                }
                // Servers send no mismatch, and peers do not reject.
                Ok(Some(Answer::Other | Answer::Reject | Answer::Mismatch(_))) => Refusal::Other,
                Err(refusal) => refusal,
            };
            self.attempts.remove(at);
            self.refuse(&refusal, now)?;
        }
        Ok(())
    }

    fn answered(&mut self, at: usize) -> TcpStream {
        self.is_reached = true;
        let Attempt { port, stream, .. } = self.attempts.remove(at);
        self.answers.ports.push(port);
        stream
    }

    fn refuse(&mut self, refusal: &Refusal, now: Instant) -> Result<(), Error> {
        match refusal {
            Refusal::Other => self.is_reached = true,
            Refusal::Unreachable => {
                // A firewall may answer so for some ports alone.
                if !self.is_reached && self.attempts.iter().all(|attempt| attempt.is_connecting) {
                    return Err(Error::NotReachable);
                }
                self.refusals.is_unreachable = true;
            }
            Refusal::Late => self.refusals.is_late = true,
            Refusal::CutOff => {
                (self.is_reached, self.refusals.is_cut_off) = (true, true);
                self.again = self.again.map(|again| again.min(now + self.pause()));
            }
        }
        Ok(())
    }

    /// Asks the next port, unless it has not answered yet.
    fn ask_next(&mut self, now: Instant) -> Result<(), Error> {
        if let Some(port) = self.ports.get(self.next).copied()
            && !self.answers.ports.contains(&port)
            && self.attempts.iter().all(|attempt| attempt.port != port)
        {
            match descriptors::begin_stream(&SocketAddr::from((self.host, port))) {
                Ok(stream) => {
                    let buffer = Vec::new();
                    self.attempts.push(Attempt { port, stream, begun: now, is_connecting: true, buffer });
                }
                Err(why) if is_without_descriptors(why) => {
                    if self.attempts.is_empty() && !self.is_following() {
                        return Err(self.answers.refused.map_or(NO_DESCRIPTOR, |(why, _)| why));
                    }
                    self.refusals.lacks_descriptor = true;
                    self.next = PORTS - 1;
                }
                Err(why) => self.refuse(&Refusal::of(std::io::Error::from(why).kind()), now)?,
            }
        }
        self.next += 1;
        if self.next == PORTS {
            self.again = Some(now + self.pause());
        }
        Ok(())
    }

    fn is_to_ask_again(&self) -> bool {
        self.refusals.is_cut_off && self.begun.elapsed() < CUT_OFF
    }

    fn pause(&self) -> Duration {
        if self.is_to_ask_again() { AGAIN } else { (self.begun.elapsed() / 8).clamp(AGAIN, SELDOM) }
    }

    /// Begins to ask at the first port again, if it is time. Fails once each port has refused.
    fn begin_again(&mut self, now: Instant) -> Result<bool, Error> {
        // Those that have refused left descriptors for the others.
        let is_at_once = self.attempts.is_empty() && self.refusals.lacks_descriptor && !self.is_following();
        if !is_at_once {
            if self.attempts.is_empty() && !self.is_following() && !self.is_to_ask_again() {
                if let Some((why, _)) = self.answers.refused {
                    return Err(why);
                }
                return Err(match &self.refusals {
                    _ if self.has_led_nowhere() => Error::NotReachable,
                    Refusals { is_unreachable: true, .. } => Error::NotReachable,
                    Refusals { is_late: true, .. } => Error::Timeout,
                    _ => Error::NoMatch,
                });
            }
            if self.again.is_some_and(|again| again > now) {
                return Ok(false);
            }
        }
        (self.next, self.again, self.refusals) = (0, None, Refusals::default());
        Ok(true)
    }

    /// Why there is no answer, once the time is over.
    pub(crate) fn late(&self) -> Error {
        match self.answers.refused {
            Some((why, _)) => why,
            None if self.refusals.lacks_descriptor => NO_DESCRIPTOR,
            None => Error::Timeout,
        }
    }

    /// For how long a sleep may last: then another port is asked.
    pub(crate) fn left(&self) -> Duration {
        let now = Instant::now();
        if let Some(until) = self.alone_until().filter(|until| *until > now) {
            return until - now;
        }
        let last = self.attempts.iter().map(|attempt| attempt.begun + SILENT).max();
        let bound = self.answers.refused.map(|(_, since)| since + REFUSED_CONNECTING).filter(|bound| *bound > now);
        let at = self.again.or(last).into_iter().chain(bound).min();
        at.map_or(Duration::ZERO, |at| at.saturating_duration_since(now))
    }

    /// What is ready when `poll` may have something.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.attempts.iter().map(|attempt| {
            let flags = if attempt.is_connecting { PollFlags::OUT } else { PollFlags::IN };
            PollFd::new(&attempt.stream, flags)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rendezvous::parse_ask;

    #[test]
    fn what_is_asked_is_parsed() {
        let attributes = ViAttributes { max_transfer: 70_000, ..ViAttributes::default() };
        for host in ["10.0.0.7", "2001:db8::7"] {
            let own = Address::new(host.parse::<IpAddr>().expect("an address"), b"client");
            let question = Question::new(&Address::new(Ipv4Addr::LOCALHOST, b"server"), &own, &attributes, true);
            let (wanted, parsed, address, is_peer) = parse_ask(&question.ask).expect("a question");
            assert_eq!((wanted, parsed, address, is_peer), (&b"server"[..], attributes, own, true));
            for length in 0..question.ask.len() {
                assert!(parse_ask(&question.ask[..length]).is_none());
            }
        }
    }
}
