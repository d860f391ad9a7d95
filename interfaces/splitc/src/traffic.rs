//! What is under way: requests, answers, and the first fault that no call has had.

use crate::fault::Fault;
use crate::frame::{Ask, Header};
use crate::requests::Requests;
use std::collections::VecDeque;

/// What is under way.
#[derive(Default)]
pub(crate) struct Traffic {
    pub(crate) requests: Requests,
    /// The first fault of a request that no call waits for, until `sync` reports it.
    fault: Option<Fault>,
    /// Answers that found no room.
    pub(crate) answers: VecDeque<(u32, Vec<u8>)>,
    pub(crate) buffer: Vec<u8>,
}

impl Traffic {
    pub(crate) fn take_fault(&mut self) -> Option<Fault> {
        self.fault.take()
    }

    /// Keeps the first fault until `sync` reports it.
    pub(crate) fn note(&mut self, fault: Fault) {
        self.fault.get_or_insert(fault);
    }

    /// Forgets all requests.
    pub(crate) fn cancel(&mut self) {
        for number in self.requests.open(|_| true) {
            self.requests.forget(number);
        }
    }

    /// Settles a request that has just ended.
    #[inline]
    pub(crate) fn settle(&mut self, number: u32, outcome: Result<u64, Fault>) {
        if let Some(fault) = self.requests.settle(number, outcome) {
            self.note(fault);
        }
    }

    fn end(&mut self, number: u32, outcome: Result<(u64, &[u8]), ()>) {
        let Some(pending) = self.requests.end(number) else { return };
        let result = match outcome {
            Ok((value, bytes)) => {
                if let Some(target) = pending.target {
                    target.fill(bytes);
                }
                Ok(value)
            }
            Err(()) => Err(pending.fault()),
        };
        self.settle(number, result);
    }

    /// Takes an answer of a rank, header and payload, or that a store could not be done there.
    pub(crate) fn answer(&mut self, rank: Option<u32>, message: &[u8]) {
        match Header::parse(message) {
            Some((Header { ask: Ask::Answer(is_done, value), number, .. }, payload)) => {
                // No rank ends what another one, or an RMA, is to end.
                if !self.requests.is_open(number, rank) {
                    return;
                }
                self.end(number, if is_done { Ok((value, payload)) } else { Err(()) });
            }
            Some((Header { ask: Ask::Lost(len), number, address }, _)) => {
                self.note(Fault::Unmapped { rank: number, address, len });
            }
            _ => {}
        }
    }

    /// Ends all requests to a rank that is gone, but RMA, of which an event reports the end.
    pub(crate) fn end_all(&mut self, rank: u32) {
        for number in self.requests.open(|pending| pending.rank == rank && !pending.is_rma) {
            if self.requests.end(number).is_some() {
                self.settle(number, Err(Fault::Gone { rank }));
            }
        }
    }
}
