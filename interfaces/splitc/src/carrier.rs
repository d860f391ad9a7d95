//! What carries all that leaves a rank, where nothing is mapped: Active Messages, or the VI
//! Architecture.

use crate::am::ActiveMessages;
use crate::fault::Fault;
use crate::frame::{Ask, Header, OnAnswer};
use crate::vi::VirtualInterfaces;
use std::time::Duration;

pub(crate) enum Carrier {
    Am(Box<ActiveMessages>),
    Vi(Box<VirtualInterfaces>),
}

impl Carrier {
    /// The longest payload of a message to a rank.
    pub(crate) fn longest(&mut self, rank: u32) -> usize {
        match self {
            Self::Am(active) => active.longest(rank),
            Self::Vi(interfaces) => interfaces.longest(),
        }
    }

    /// Whether this request is answered. One that is not ends before a later flush does.
    pub(crate) fn answers(&self, ask: Ask) -> bool {
        matches!(self, Self::Am(_)) || ask != Ask::Store
    }

    /// Sends a request, whose payload stays as it is until its answer if `is_stable`. Serves others
    /// while there is no room.
    pub(crate) fn ask(
        &mut self,
        rank: u32,
        header: &Header,
        payload: &[u8],
        is_stable: bool,
        on_answer: OnAnswer<'_>,
    ) -> Result<(), Fault> {
        match self {
            Self::Am(active) => active.ask(rank, header, payload),
            Self::Vi(interfaces) => interfaces.ask(rank, header, payload, is_stable, on_answer),
        }
    }

    /// Where a flush is to follow stores: the way, and its rank.
    pub(crate) fn take_stored(&mut self) -> Vec<(usize, u32)> {
        match self {
            Self::Am(_) => Vec::new(),
            Self::Vi(interfaces) => interfaces.take_stored(),
        }
    }

    /// Sends a flush: a request behind the stores of a way.
    pub(crate) fn flush(&mut self, way: usize, header: &Header, on_answer: OnAnswer<'_>) -> Result<(), Fault> {
        match self {
            Self::Am(_) => Ok(()),
            Self::Vi(interfaces) => interfaces.flush(way, header, on_answer),
        }
    }

    /// Serves what has come, and hands out the answers; whether something has come.
    pub(crate) fn poll(&mut self, on_answer: OnAnswer<'_>) -> Result<bool, Fault> {
        match self {
            Self::Am(active) => active.poll(on_answer),
            Self::Vi(interfaces) => interfaces.poll(on_answer),
        }
    }

    /// Sleeps until something has come, for `limit` at most; whether it was served already.
    pub(crate) fn wait(&mut self, limit: Duration) -> Result<bool, Fault> {
        match self {
            Self::Am(active) => active.wait(limit),
            Self::Vi(interfaces) => {
                interfaces.sleep(limit)?;
                Ok(false)
            }
        }
    }

    /// A rank that can be reached no more, once.
    pub(crate) fn take_gone(&mut self) -> Option<u32> {
        match self {
            Self::Am(_) => None,
            Self::Vi(interfaces) => interfaces.take_gone(),
        }
    }
}
