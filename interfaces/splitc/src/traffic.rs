//! Messages: what this rank asks others, and what it does for them.

use crate::fault::Fault;
use crate::frame::{Ask, HEADER, Header};
use crate::layout::stored;
use crate::sys::{self, Target};
use crate::world::World;
use cci::{Event, Notify, PollError, Received, SendError};
use cci_mem::sync::Ordering;
use std::collections::{HashMap, VecDeque};

/// Requests of a rank that may be open at a time.
const MOST_OPEN: usize = 64;

/// The longest payload of a message, bytes.
const LONGEST: usize = 8192;

/// A request whose answer has not come.
struct Pending {
    rank: u32,
    address: u64,
    len: u64,
    /// Where the bytes of the answer go.
    target: Option<Target>,
    /// Whether a call waits for this one, so that its outcome is kept.
    is_awaited: bool,
}

impl Pending {
    fn fault(&self) -> Fault {
        Fault::Unmapped { rank: self.rank, address: self.address, len: self.len }
    }
}

/// A request to be sent.
pub(crate) struct Request<'a> {
    pub(crate) rank: u32,
    pub(crate) address: u64,
    pub(crate) ask: Ask,
    pub(crate) payload: &'a [u8],
    pub(crate) target: Option<Target>,
    pub(crate) is_awaited: bool,
}

/// What is under way.
#[derive(Default)]
pub(crate) struct Traffic {
    open: HashMap<u32, Pending>,
    /// Of requests that a call waits for.
    outcomes: HashMap<u32, Result<u64, Fault>>,
    /// The first fault of a request that no call waits for, until `sync` reports it.
    fault: Option<Fault>,
    next: u32,
    /// Answers that found no room.
    answers: VecDeque<(u32, Vec<u8>)>,
    buffer: Vec<u8>,
}

impl Traffic {
    pub(crate) fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    pub(crate) fn take_fault(&mut self) -> Option<Fault> {
        self.fault.take()
    }

    /// Keeps the first fault until `sync` reports it.
    pub(crate) fn note(&mut self, fault: Fault) {
        self.fault.get_or_insert(fault);
    }

    /// Forgets these requests: their answers are dropped.
    pub(crate) fn forget(&mut self, numbers: &[u32]) {
        for number in numbers {
            self.open.remove(number);
            self.outcomes.remove(number);
        }
    }

    /// Forgets all requests.
    pub(crate) fn cancel(&mut self) {
        self.open.clear();
    }

    fn end(&mut self, number: u32, outcome: Result<(u64, &[u8]), ()>) {
        let Some(pending) = self.open.remove(&number) else { return };
        let result = match outcome {
            Ok((value, bytes)) => {
                if let Some(target) = pending.target {
                    target.fill(bytes);
                }
                Ok(value)
            }
            Err(()) => Err(pending.fault()),
        };
        self.settle(number, pending.is_awaited, result);
    }

    fn settle(&mut self, number: u32, is_awaited: bool, result: Result<u64, Fault>) {
        if is_awaited {
            self.outcomes.insert(number, result);
        } else if let Err(fault) = result {
            self.note(fault);
        }
    }

    /// Ends all requests to a rank that is gone.
    fn end_all(&mut self, rank: u32) {
        let numbers: Vec<u32> =
            self.open.iter().filter(|(_, open)| open.rank == rank).map(|(number, _)| *number).collect();
        for number in numbers {
            if let Some(pending) = self.open.remove(&number) {
                self.settle(number, pending.is_awaited, Err(Fault::Gone { rank }));
            }
        }
    }
}

impl World {
    /// The longest payload of a message to a rank.
    pub(crate) fn longest(&self, rank: u32) -> usize {
        let connection = self.peers[rank as usize].connection.get();
        let most = connection.and_then(|connection| connection.max_send_size()).unwrap_or(0) as usize;
        most.saturating_sub(HEADER).clamp(1, LONGEST)
    }

    /// Sends a request, and returns its number. Serves others while there is no room.
    pub(crate) fn ask(&self, request: &Request<'_>) -> Result<u32, Fault> {
        let &Request { rank, address, ask, payload, target, is_awaited } = request;
        while self.traffic.borrow().open.len() >= MOST_OPEN {
            self.check_endpoint()?;
            self.nap(None)?;
        }
        let number = {
            let mut traffic = self.traffic.borrow_mut();
            traffic.next = traffic.next.wrapping_add(1);
            let len = if let Ask::Read(len) = ask { len } else { payload.len() as u64 };
            let number = traffic.next;
            traffic.open.insert(number, Pending { rank, address, len, target, is_awaited });
            number
        };
        let mut message = Header { ask, number, address }.emit().to_vec();
        message.extend_from_slice(payload);
        self.send(rank, &message).inspect_err(|_| {
            self.traffic.borrow_mut().open.remove(&number);
        })?;
        Ok(number)
    }

    /// Sends a message, and serves others while there is no room.
    pub(crate) fn send(&self, rank: u32, message: &[u8]) -> Result<(), Fault> {
        loop {
            let peer = &self.peers[rank as usize];
            let connection = peer.connection.get().filter(|_| !peer.gone.get()).ok_or(Fault::Gone { rank })?;
            match self.endpoint.send(connection, message, Notify::OnFailure(u64::from(rank))) {
                Ok(()) => return Ok(()),
                Err(SendError::NoBuffers) => self.poll()?,
                Err(SendError::Disconnected) => self.set_gone(rank),
                Err(why) => return Err(Fault::Endpoint(why.to_string())),
            }
        }
    }

    /// Waits for the answer of a request.
    pub(crate) fn outcome(&self, number: u32) -> Result<u64, Fault> {
        loop {
            if let Some(outcome) = self.traffic.borrow_mut().outcomes.remove(&number) {
                return outcome;
            }
            self.check_endpoint()?;
            self.nap(None)?;
        }
    }

    /// Serves what other ranks have asked by messages. Never waits. Calls that wait do it too.
    ///
    /// # Errors
    ///
    /// The endpoint of this rank has failed.
    pub fn poll(&self) -> Result<(), Fault> {
        self.flush_answers();
        loop {
            match self.endpoint.get_event() {
                Ok(Some(event)) => self.handle(event),
                Ok(None) | Err(PollError::NoBuffers) => return self.check_endpoint(),
                Err(why) => return Err(Fault::Endpoint(why.to_string())),
            }
        }
    }

    /// Whether the endpoint is of use.
    pub(crate) fn check_endpoint(&self) -> Result<(), Fault> {
        self.failed.borrow().as_ref().map_or(Ok(()), |why| Err(Fault::Endpoint(why.clone())))
    }

    pub(crate) fn handle(&self, event: Event<'_>) {
        match event {
            Event::Received(message) => self.take(&message),
            Event::Disconnected(ended) => {
                let Some(connection) = ended.connection() else { return };
                let is_it = |peer: &crate::world::Peer| peer.connection.get() == Some(connection);
                if let Some(rank) = self.peers.iter().position(is_it) {
                    self.set_gone(rank as u32);
                }
            }
            Event::Completed(ended) if ended.outcome().is_err_and(|failure| failure.breaks_connection()) => {
                self.set_gone(ended.context() as u32);
            }
            // All ranks are connected since the start. A request that cannot be rejected now ends
            // by its own timeout.
            Event::Request(request) => drop(request.reject()),
            Event::EndpointFailed(_) => *self.failed.borrow_mut() = Some("its device has failed".to_owned()),
            _ => {}
        }
    }

    pub(crate) fn set_gone(&self, rank: u32) {
        let Some(peer) = self.peers.get(rank as usize) else { return };
        if !peer.gone.replace(true) {
            self.traffic.borrow_mut().end_all(rank);
        }
    }

    fn take(&self, message: &Received<'_>) {
        let rank = message.connection().and_then(|connection| connection.context());
        let Some(rank) = rank.and_then(|rank| u32::try_from(rank).ok()).filter(|rank| *rank < self.procs) else {
            return;
        };
        let mut buffer = std::mem::take(&mut self.traffic.borrow_mut().buffer);
        buffer.resize(message.len(), 0);
        message.copy_to(&mut buffer);
        // A malformed message is dropped.
        if let Some((header, payload)) = Header::parse(&buffer) {
            match header.ask {
                Ask::Wake => {}
                Ask::Answer(is_done, value) => {
                    let outcome = if is_done { Ok((value, payload)) } else { Err(()) };
                    self.traffic.borrow_mut().end(header.number, outcome);
                }
                _ => self.serve(rank, header, payload),
            }
        }
        self.traffic.borrow_mut().buffer = buffer;
    }

    fn serve(&self, rank: u32, header: Header, payload: &[u8]) {
        let mut bytes = Vec::new();
        let value = match header.ask {
            Ask::Read(len) => {
                bytes.resize(usize::try_from(len).unwrap_or(0).min(LONGEST), 0);
                self.copy_here(header.address, &mut bytes).then_some(0)
            }
            Ask::Write => self.write_here(header.address, payload).then_some(0),
            Ask::Store => self.write_here(header.address, payload).then(|| {
                let count = self.windows.own_word(stored(rank));
                count.store(count.load(Ordering::Relaxed) + payload.len() as u64, Ordering::Release);
                0
            }),
            Ask::Change(size, change) => self.change_here(header.address, size.into(), change),
            Ask::Wake | Ask::Answer(..) => None,
        };
        let ask = Ask::Answer(value.is_some(), value.unwrap_or(0));
        let mut message = Header { ask, ..header }.emit().to_vec();
        if value.is_some() {
            message.extend_from_slice(&bytes);
        }
        self.traffic.borrow_mut().answers.push_back((rank, message));
        self.flush_answers();
    }

    /// Copies out of this rank's memory, at an address that a peer has named.
    fn copy_here(&self, address: u64, bytes: &mut [u8]) -> bool {
        self.windows.read(self.me, address, Target::of(bytes)) || sys::copy_from(address, bytes)
    }

    /// Copies into this rank's memory, at an address that a peer has named.
    pub(crate) fn write_here(&self, address: u64, bytes: &[u8]) -> bool {
        self.windows.write(self.me, address, bytes) || sys::copy_to(address, bytes)
    }

    fn flush_answers(&self) {
        loop {
            let Some((rank, message)) = self.traffic.borrow_mut().answers.pop_front() else { return };
            let Some(connection) = self.peers[rank as usize].connection.get() else { continue };
            let sent = self.endpoint.answer(connection, &message, Notify::OnFailure(u64::from(rank)));
            if sent == Err(SendError::NoBuffers) {
                self.traffic.borrow_mut().answers.push_front((rank, message));
                return;
            }
        }
    }
}
