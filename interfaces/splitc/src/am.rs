//! The mapping over Active Messages: a request runs a handler at its rank, which serves it and
//! replies. Nothing is mapped, so that all that leaves the rank goes by it.

use crate::fault::{Fault, StartError};
use crate::frame::{Ask, HEADER, Header, OnAnswer};
use crate::server::{LONGEST, Server};
use cci_am::{Endpoint, Handlers, Options, Peer, Reply, Request, Returned, TAG_ALL};
use cci_job::Job;
use std::rc::Rc;
use std::time::Duration;

/// The handler of requests, and that of replies.
const ASKED: u8 = 1;
const ANSWERED: u8 = 2;

/// Arguments of a message: a header, and of a request the rank that sends it.
const HEADER_WORDS: usize = HEADER / 4;

/// What handlers use.
struct State {
    server: Rc<Server>,
    payload: Vec<u8>,
    answer: Vec<u8>,
    /// Answers that have come, header and payload, each behind its length.
    ended: Vec<u8>,
}

fn words_of(header: &[u8; HEADER]) -> [u32; HEADER_WORDS] {
    let (words, _) = header.as_chunks::<4>();
    std::array::from_fn(|at| u32::from_le_bytes(words[at]))
}

fn bytes_of(words: &[u32]) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    for (place, word) in header.as_chunks_mut::<4>().0.iter_mut().zip(words) {
        *place = word.to_le_bytes();
    }
    header
}

impl State {
    fn asked(&mut self, request: Request<'_>) {
        let (words, payload) = (request.arguments(), request.payload());
        let (header, rank) = (bytes_of(words), words.get(HEADER_WORDS).copied().unwrap_or(u32::MAX));
        // A malformed request is not served.
        let Some((header, _)) = Header::parse(&header).filter(|_| rank < self.server.procs()) else { return };
        self.payload.resize(payload.len(), 0);
        payload.copy_to(0, &mut self.payload);
        let answer = self.server.serve(rank, header, &self.payload, &mut self.answer);
        // Its rank is gone, which a returned request or the end of its connection tells.
        let _ = request.reply_medium(ANSWERED, &words_of(&answer.emit()), &self.answer);
    }

    fn answered(&mut self, reply: Reply<'_>) {
        let (header, payload) = (bytes_of(reply.arguments()), reply.payload());
        let len = HEADER + payload.len();
        self.ended.extend_from_slice(&(len as u32).to_ne_bytes());
        self.ended.extend_from_slice(&header);
        let start = self.ended.len();
        self.ended.resize(start + payload.len(), 0);
        payload.copy_to(0, &mut self.ended[start..]);
    }

    /// A request that comes back ends as one that was refused.
    fn returned(&mut self, returned: Returned<'_>) {
        let Some((header, _)) = Header::parse(&bytes_of(returned.arguments())) else { return };
        self.ended.extend_from_slice(&(HEADER as u32).to_ne_bytes());
        self.ended.extend_from_slice(&Header { ask: Ask::Answer(false, 0), ..header }.emit());
    }
}

/// The endpoint of Active Messages of a rank.
pub(crate) struct ActiveMessages {
    endpoint: Endpoint<State>,
    me: u32,
    /// None for this rank itself.
    peers: Vec<Option<Peer>>,
}

impl ActiveMessages {
    /// Opens the endpoint, and maps all other ranks. All ranks call it.
    pub(crate) fn open(job: &Job, context: &cci::Context, server: Rc<Server>) -> Result<Self, StartError> {
        let refused = |why: &dyn std::fmt::Display| StartError(why.to_string());
        let device = job.device(context).map_err(|why| refused(&why))?;
        let state = State { server, payload: Vec::new(), answer: Vec::new(), ended: Vec::new() };
        let handlers =
            Handlers::new().request(ASKED, State::asked).reply(ANSWERED, State::answered).returned(State::returned);
        let options = Options::new().credits(64).longest_medium(LONGEST).longest_reply(LONGEST);
        let mut endpoint = Endpoint::open(&device, &options, handlers, state).map_err(|why| refused(&why))?;
        let names = job.exchange(endpoint.name().as_bytes()).map_err(|why| refused(&why))?;
        let mut peers = Vec::new();
        for (rank, name) in (0..).zip(&names) {
            let name = String::from_utf8_lossy(name);
            let mut peer = || endpoint.map(&name, TAG_ALL).map_err(|why| refused(&why));
            peers.push(if rank == job.rank() { None } else { Some(peer()?) });
        }
        Ok(Self { endpoint, me: job.rank(), peers })
    }

    /// The longest payload that goes as one message; before it is known, one that may be cut.
    pub(crate) fn longest(&mut self, rank: u32) -> usize {
        let peer = self.peers[rank as usize];
        peer.and_then(|peer| self.endpoint.longest_in_place(peer)).unwrap_or(LONGEST)
    }

    /// Sends a request. Serves others while there is no room.
    pub(crate) fn ask(&mut self, rank: u32, header: &Header, payload: &[u8]) -> Result<(), Fault> {
        let peer = self.peers[rank as usize].ok_or(Fault::Gone { rank })?;
        let mut words = [self.me; HEADER_WORDS + 1];
        words[..HEADER_WORDS].copy_from_slice(&words_of(&header.emit()));
        let sent = self.endpoint.request_medium(peer, ASKED, &words, payload);
        sent.map_err(|why| Fault::Endpoint(why.to_string()))
    }

    /// Sleeps until something has come, and runs its handlers; for `limit` at most. Whether
    /// something has come.
    pub(crate) fn wait(&mut self, limit: Duration) -> Result<bool, Fault> {
        // A request that waited for room has taken these.
        if !self.endpoint.state().ended.is_empty() {
            return Ok(true);
        }
        self.endpoint.wait(Some(limit)).map(|found| found > 0).map_err(|why| Fault::Endpoint(why.to_string()))
    }

    /// Runs the handlers of what has come, and hands out the answers. Whether something has come.
    pub(crate) fn poll(&mut self, on_answer: OnAnswer<'_>) -> Result<bool, Fault> {
        let found = self.endpoint.poll().map_err(|why| Fault::Endpoint(why.to_string()))?;
        let mut ended = std::mem::take(&mut self.endpoint.state().ended);
        let has_come = found > 0 || !ended.is_empty();
        let mut rest = &ended[..];
        while let Some((len, behind)) = rest.split_first_chunk::<4>() {
            let (message, next) = behind.split_at(u32::from_ne_bytes(*len) as usize);
            on_answer(None, message);
            rest = next;
        }
        ended.clear();
        // Nothing has come meanwhile: handlers run in polls only.
        self.endpoint.state().ended = ended;
        Ok(has_come)
    }
}
