//! Requests, their credit and their ends; answers.

use cci::{Connection, Endpoint, Received};
use cci_peers::{Deferred, Name, Peer, Peers};
use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

/// Requests that a side has at one peer at most, until it has taken their ends.
pub const CREDITS: usize = 8;
/// Bytes of a request at most.
pub const LONGEST: usize = 1024;

/// Kinds of messages: the first byte. The number of the request follows, a u64, and its bytes.
const REQUEST: u8 = 0;
const ANSWER: u8 = 1;

cci_ground::codes! {
    /// Why a call was refused, or how a request has ended.
    Code: i32:
    Null = 1 => "a pointer is NULL; pass an address",
    Closed = 2 => "this process has no such echo; was it closed, or opened before a fork?",
    NotOpened = 3 => "the echo cannot be opened; look at the output of cci doctor, or name another number",
    Name = 4 => "no peer can have this name; name another process",
    TooLong = 5 => "the request is longer than 1,024 bytes; send parts",
    Timeout = 6 => "the time is over; take answers to have credit, or wait longer",
    Request = 7 => "no such request; was its answer taken?",
    Unreached = 8 => "the peer could not be reached; see that it runs",
    Gone = 9 => "the peer has ended",
    Failed = 10 => "the endpoint has failed, or is the parent process's; open another echo",
}

/// What has become of something; `None`: it goes on.
pub(crate) type End<R> = Option<Result<R, Code>>;

/// What the threads of a program share.
pub(crate) struct State {
    pub(crate) peers: Peers<Vec<u8>>,
    /// Messages that wait for room in CCI.
    pub(crate) outgoing: VecDeque<(Connection, Vec<u8>)>,
    /// By their numbers, of which none is given twice: at whom, and how they have ended.
    requests: BTreeMap<u64, (Peer, End<Vec<u8>>)>,
    last: u64,
    pub(crate) changes: u64,
    /// Why calls are refused from now on.
    pub(crate) over: Option<Code>,
}

impl State {
    pub(crate) fn new(peers: Peers<Vec<u8>>) -> Self {
        Self { peers, outgoing: VecDeque::new(), requests: BTreeMap::new(), last: 0, changes: 0, over: None }
    }

    /// Sends a request, and returns its number, once there is credit.
    pub(crate) fn begin(&mut self, endpoint: &Endpoint, to: &Name, bytes: &[u8]) -> Result<Option<u64>, Code> {
        let peer = self.peers.peer(to).map_err(|_| Code::Name)?;
        if self.requests.values().filter(|(at, _)| *at == peer).count() == CREDITS {
            return Ok(None);
        }
        self.last += 1;
        let message = [&[REQUEST], &self.last.to_le_bytes()[..], bytes].concat();
        let deferred = self.peers.defer(endpoint, peer, message, Instant::now()).map_err(|_| Code::Unreached)?;
        if let Deferred::Now(link, message) = deferred {
            self.outgoing.push_back((link, message));
            self.pump(endpoint);
        }
        self.requests.insert(self.last, (peer, None));
        Ok(Some(self.last))
    }

    /// Takes the end of a request, and its credit back.
    pub(crate) fn finish(&mut self, request: u64) -> End<Vec<u8>> {
        let Some((_, end)) = self.requests.get_mut(&request) else { return Some(Err(Code::Request)) };
        let end = end.take()?;
        self.requests.remove(&request);
        self.changes += 1;
        Some(end)
    }

    /// Answers a request, or ends one of this side. `None`: the peer breaks the rules.
    pub(crate) fn on_message(&mut self, message: &Received<'_>) -> Option<()> {
        let (link, message) = (message.connection()?, message.to_vec());
        let (number, bytes) = message.get(1..)?.split_first_chunk()?;
        if message[0] == REQUEST {
            // So many requests and answers at most are for a peer that keeps the rules.
            let is_right = self.outgoing.iter().filter(|(to, _)| *to == link).count() < 2 * CREDITS;
            return is_right.then(|| self.outgoing.push_back((link, [&[ANSWER], &number[..], bytes].concat())));
        }
        let (at, end) = self.requests.get_mut(&u64::from_le_bytes(*number)).filter(|_| message[0] == ANSWER)?;
        self.changes += 1;
        (self.peers.peer_of(link) == Some(*at) && end.is_none()).then(|| *end = Some(Ok(bytes.to_vec())))
    }

    /// Ends the requests at a peer.
    pub(crate) fn on_lost(&mut self, peer: Peer, why: Code) {
        self.requests.values_mut().filter(|(at, _)| *at == peer).for_each(|(_, end)| _ = end.get_or_insert(Err(why)));
        self.changes += 1;
    }
}
