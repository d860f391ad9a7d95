//! Receives, probes, and what becomes of requests by calls of the program.

use crate::arrivals::Arrival;
use crate::errors::{Code, Error};
use crate::partner::Control;
use crate::requests::{OWN, Outcome, Request, Stage};
use crate::state::{State, received};
use crate::types::{Buffer, Match, Segments, Status};
use crate::wire::DONE;
use cci::Endpoint;
use cci_matching::{Envelope, Pattern};
use cci_rendezvous::Body;
use std::time::{Duration, Instant};

fn pattern(wanted: Match) -> Pattern {
    Pattern::new(0, 0, wanted.bits, wanted.mask)
}

impl<B: Buffer> State<B> {
    #[inline]
    pub(crate) fn receive(
        &mut self,
        endpoint: &Endpoint,
        segments: Segments<B>,
        wanted: Match,
        context: u64,
    ) -> Result<Request, Error> {
        self.requests.context_bits.check(wanted)?;
        let index = self.requests.reserve().ok_or(Error::NoResources)?;
        let pattern = pattern(wanted);
        if !self.unexpected.is_empty()
            && let Some(found) = self.unexpected.take(&pattern)
        {
            return Ok(self.receive_arrival(endpoint, segments, context, found));
        }
        let ticket = self.posted.post(pattern, index).map_err(|_| Error::NoResources)?;
        Ok(self.requests.insert(context, wanted.bits, Stage::Posted { segments, ticket }))
    }

    /// Receives an unexpected message.
    #[inline(never)]
    fn receive_arrival(
        &mut self,
        endpoint: &Endpoint,
        segments: Segments<B>,
        context: u64,
        (envelope, arrival): (Envelope, Arrival),
    ) -> Request {
        let bits = envelope.bits;
        let Arrival { peer, session, link, length, cost, number, .. } = arrival;
        let copied = segments.len().min(length as usize);
        let mut whole = |bytes: &[u8]| {
            let is_in = segments.copy_in(0, &bytes[..copied]);
            let outcome = Outcome { peer, session, ..received(length, copied, is_in) };
            self.requests.insert_done(context, bits, outcome)
        };
        let request = match arrival.body {
            Body::Short(bytes) => whole(&bytes),
            Body::Long(bytes) => {
                let request = whole(&bytes);
                self.buffers.give_back(Body::Long(bytes));
                request
            }
            Body::Offered(remote) => {
                let request = self.requests.insert(context, bits, Stage::Reading);
                let of = (bits, length, number);
                self.read(endpoint, request.index(), segments, (peer, link), of, remote);
                self.release_held(endpoint, (peer, link), cost);
                return request;
            }
            Body::Own => {
                let sender = number.map(Request::from_bits).and_then(|number| self.requests.get(number));
                let outcome = match sender.map(|slot| &slot.stage) {
                    Some(Stage::Queued { segments: from, .. }) => Self::copy_own(from, &segments),
                    _ => received(length, 0, false),
                };
                self.requests.insert_done(context, bits, outcome)
            }
        };
        if peer == OWN {
            self.own_credit += cost;
            if let Some(sender) = number {
                self.finish_own(Request::from_bits(sender), length);
            }
        } else {
            let is_current = self.partner(peer).is_some_and(|partner| partner.link == link);
            if let (Some(sender), true) = (number, is_current) {
                self.post(endpoint, peer, Control::Answer(DONE, 0, sender));
            }
            self.release_held(endpoint, (peer, link), cost);
        }
        request
    }

    /// The oldest unexpected message that matches.
    pub(crate) fn probe(&mut self, wanted: Match) -> Option<Status> {
        let (envelope, arrival) = self.unexpected.peek(&pattern(wanted))?;
        let (bits, peer, session, length) = (envelope.bits, arrival.peer, arrival.session, arrival.length);
        let source = self.address(peer, session);
        Some(Status { code: Code::Success, source, bits, length, copied: 0, context: 0 })
    }

    /// Whether a receive was taken back.
    pub(crate) fn cancel(&mut self, endpoint: &Endpoint, request: Request) -> Result<bool, Error> {
        match &self.requests.named(request)?.stage {
            Stage::Posted { ticket, .. } => {
                self.posted.cancel(*ticket);
                self.requests.remove(request.index());
                Ok(true)
            }
            Stage::Queued { peer, .. } => {
                let number = *peer;
                self.unqueue(request, number);
                self.requests.remove(request.index());
                // Those behind it may have credit enough.
                self.pump(endpoint, number);
                Ok(true)
            }
            // What leaves for it, and its answer, find nobody.
            Stage::Connecting { .. } => {
                self.requests.remove(request.index());
                Ok(true)
            }
            Stage::Reading | Stage::Done { .. } => Ok(false),
            _ => Err(Error::CancelNotSupported),
        }
    }

    /// The status of a request that has ended, which is gone then.
    #[inline]
    pub(crate) fn consume(&mut self, index: u32) -> Option<Status> {
        let ended = self.requests.consume(index)?;
        Some(self.status(ended))
    }

    /// Nobody will ask for a request.
    #[inline]
    pub(crate) fn forget(&mut self, request: Request) -> Result<(), Error> {
        let slot = self.requests.named(request)?;
        if slot.is_done() {
            self.requests.consume(request.index());
        } else {
            slot.is_forgotten = true;
        }
        Ok(())
    }

    /// Whether the memory of a send is the program's again.
    pub(crate) fn is_buffered(&mut self, request: Request) -> Result<bool, Error> {
        match &self.requests.named(request)?.stage {
            Stage::Done { .. } | Stage::Sent { .. } => Ok(true),
            Stage::Queued { .. } | Stage::Offered { .. } | Stage::Connecting { .. } => Ok(false),
            _ => Err(Error::BadRequest),
        }
    }

    /// Ends a request after so long, in place of what was set before.
    pub(crate) fn set_timeout(&mut self, request: Request, limit: Option<Duration>) -> Result<(), Error> {
        let slot = self.requests.named(request)?;
        if slot.is_done() {
            return Ok(());
        }
        let at = limit.and_then(|limit| Instant::now().checked_add(limit));
        if std::mem::replace(&mut slot.has_timer, at.is_some()) {
            self.timers.retain(|(_, other)| *other != request);
        }
        self.timers.extend(at.map(|at| (at, request)));
        Ok(())
    }
}
