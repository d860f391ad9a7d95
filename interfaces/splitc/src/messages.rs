//! Messages: what this rank asks others, and what it does for them.

use crate::carrier::Carrier;
use crate::fault::Fault;
use crate::frame::{Ask, HEADER, Header};
use crate::layout::{ASKED, OWN};
use crate::looks::{LOOKS_SHARED, POLLS, SERVED};
use crate::requests::Pending;
use crate::rma::RMA;
use crate::server::LONGEST;
use crate::sys::Target;
use crate::world::World;
use cci::{Event, Notify, PollError, Received, SendError};
use cci_mem::sync::Ordering;

/// Events that a look handles at most, so that a call whose request has ended returns.
const BATCH: usize = 64;

/// A request to be sent.
pub(crate) struct Request<'a> {
    pub(crate) rank: u32,
    pub(crate) address: u64,
    pub(crate) ask: Ask,
    pub(crate) payload: &'a [u8],
    pub(crate) target: Option<Target>,
    pub(crate) is_awaited: bool,
}

impl World {
    /// The longest payload of a message to a rank.
    pub(crate) fn longest(&self, rank: u32) -> usize {
        let most = match &mut *self.carrier.borrow_mut() {
            Some(carrier) => carrier.longest(rank),
            None => {
                let connection = self.peers[rank as usize].connection.get();
                let most = connection.and_then(|connection| connection.max_send_size()).unwrap_or(0) as usize;
                most.saturating_sub(HEADER)
            }
        };
        most.clamp(1, LONGEST)
    }

    /// Takes a place for a request, and serves others while there is none.
    #[inline]
    pub(crate) fn begin(&self, pending: &Pending) -> Result<u32, Fault> {
        let begun = self.traffic.borrow_mut().requests.begin(pending);
        begun.map_or_else(|| self.begin_later(pending), Ok)
    }

    #[cold]
    fn begin_later(&self, pending: &Pending) -> Result<u32, Fault> {
        loop {
            self.check_endpoint()?;
            self.nap(None)?;
            if let Some(number) = self.traffic.borrow_mut().requests.begin(pending) {
                return Ok(number);
            }
        }
    }

    /// Sends a request, and returns its number. Serves others while there is no room.
    pub(crate) fn ask(&self, request: &Request<'_>) -> Result<u32, Fault> {
        let &Request { rank, address, ask, payload, target, is_awaited } = request;
        let len = if let Ask::Read(len) = ask { len } else { payload.len() as u64 };
        let is_answered = self.carrier.borrow().as_ref().is_none_or(|carrier| carrier.answers(ask));
        let number = match is_answered {
            true => self.begin(&Pending { rank, address, len, target, is_awaited, is_rma: false })?,
            false => 0,
        };
        let header = Header { ask, number, address };
        let sent = match &mut *self.carrier.borrow_mut() {
            Some(_) if self.peers[rank as usize].gone.get() => Err(Fault::Gone { rank }),
            Some(carrier) => carrier.ask(rank, &header, payload, is_awaited, &mut |rank, message| {
                self.traffic.borrow_mut().answer(rank, message);
            }),
            None => self.send(rank, &[&header.emit()[..], payload].concat()),
        };
        if is_answered && sent.is_err() {
            // It may have ended with its rank meanwhile.
            self.traffic.borrow_mut().requests.forget(number);
        }
        sent?;
        if let Some(asked) = self.windows.word(rank, ASKED) {
            // After the request, which the rank looks for when it has seen the word.
            asked.store(1, Ordering::Release);
        }
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

    /// Waits for the end of a request.
    pub(crate) fn outcome(&self, number: u32) -> Result<u64, Fault> {
        let mut looks = 0;
        loop {
            if let Some(outcome) = self.traffic.borrow_mut().requests.take(number) {
                return outcome;
            }
            self.look(&mut looks)?;
        }
    }

    /// Looks for events; sleeps where many looks have found none.
    pub(crate) fn look(&self, looks: &mut u32) -> Result<(), Fault> {
        *looks += 1;
        if *looks > POLLS || *looks > LOOKS_SHARED && cci::is_oversubscribed() {
            self.check_endpoint()?;
            if self.nap(None)? {
                *looks = POLLS - SERVED;
            }
            return Ok(());
        }
        self.flush_answers();
        if self.poll_some()? {
            *looks = (*looks).min(POLLS - SERVED);
        }
        Ok(())
    }

    /// Serves by the carrier, and takes its answers; whether something has come.
    fn poll_carrier(&self) -> Result<bool, Fault> {
        let mut carrier = self.carrier.borrow_mut();
        let Some(carrier) = &mut *carrier else { return Ok(false) };
        let has_come = carrier.poll(&mut |rank, message| self.traffic.borrow_mut().answer(rank, message))?;
        while let Some(rank) = carrier.take_gone() {
            self.set_gone(rank);
        }
        Ok(has_come)
    }

    /// Sends a flush behind all stores that nobody answers.
    pub(crate) fn flush_stores(&self) {
        let stored = self.carrier.borrow_mut().as_mut().map_or(Vec::new(), Carrier::take_stored);
        for (way, rank) in stored {
            // One that fails is a fault of `sync`, and the others are flushed all the same.
            if let Err(fault) = self.flush_way(way, rank) {
                self.traffic.borrow_mut().note(fault);
            }
        }
    }

    fn flush_way(&self, way: usize, rank: u32) -> Result<(), Fault> {
        let pending = Pending { rank, address: OWN, len: 0, target: None, is_awaited: false, is_rma: false };
        let number = self.begin(&pending)?;
        let header = Header { ask: Ask::Read(0), number, address: OWN };
        let Some(carrier) = &mut *self.carrier.borrow_mut() else { return Ok(()) };
        let sent = carrier.flush(way, &header, &mut |rank, message| self.traffic.borrow_mut().answer(rank, message));
        sent.inspect_err(|_| self.traffic.borrow_mut().requests.forget(number))
    }

    /// Handles events until none is there, or no request is under way any more, which is what a
    /// call waits for; whether something has come.
    fn poll_some(&self) -> Result<bool, Fault> {
        let mut has_come = self.poll_carrier()?;
        for _ in 0..BATCH {
            match self.endpoint.get_event() {
                Ok(Some(event)) => {
                    self.handle(event);
                    has_come = true;
                    if self.traffic.borrow().requests.is_idle() {
                        break;
                    }
                }
                Ok(None) | Err(PollError::NoBuffers) => return self.check_endpoint().map(|()| has_come),
                Err(why) => return Err(Fault::Endpoint(why.to_string())),
            }
        }
        Ok(has_come)
    }

    /// Serves what other ranks have asked by messages. Never waits. Calls that wait do it too.
    ///
    /// # Errors
    ///
    /// The endpoint of this rank has failed.
    pub fn poll(&self) -> Result<(), Fault> {
        self.poll_all().map(drop)
    }

    /// As [`World::poll`]; whether something has come.
    pub(crate) fn poll_all(&self) -> Result<bool, Fault> {
        self.flush_answers();
        let mut has_come = false;
        while self.poll_some()? {
            has_come = true;
        }
        Ok(has_come)
    }

    /// As [`World::poll`], where there may be something to serve: a rank whose memory is mapped
    /// has announced a request, another one may send any, or this one waits for answers.
    pub(crate) fn poll_if_asked(&self) -> Result<(), Fault> {
        let asked = self.windows.own_word(ASKED);
        // Swapped, so that the endpoint is looked at after a rank that asks now is seen to ask.
        let is_asked = || asked.load(Ordering::Relaxed) != 0 && asked.swap(0, Ordering::AcqRel) != 0;
        let is_under_way = || {
            let traffic = self.traffic.borrow();
            !traffic.requests.is_idle() || !traffic.answers.is_empty()
        };
        if is_asked() || !self.is_all_mapped.get() || is_under_way() { self.poll() } else { Ok(()) }
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
            Event::Completed(ended) if ended.context() & RMA != 0 => {
                self.end_rma(ended.context() as u32, ended.outcome());
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
        peer.gone.set(true);
        // Each way to it that ends may have had requests begun since another one ended.
        self.traffic.borrow_mut().end_all(rank);
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
                Ask::Wake | Ask::Lost(_) => {}
                Ask::Answer(..) => self.traffic.borrow_mut().answer(Some(rank), &buffer),
                _ => self.serve(rank, header, payload),
            }
        }
        self.traffic.borrow_mut().buffer = buffer;
    }

    fn serve(&self, rank: u32, header: Header, payload: &[u8]) {
        let mut bytes = Vec::new();
        let mut message = self.server.serve(rank, header, payload, &mut bytes).emit().to_vec();
        message.extend_from_slice(&bytes);
        self.traffic.borrow_mut().answers.push_back((rank, message));
        self.flush_answers();
    }

    #[inline]
    fn flush_answers(&self) {
        if !self.traffic.borrow().answers.is_empty() {
            self.send_answers();
        }
    }

    #[cold]
    fn send_answers(&self) {
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
