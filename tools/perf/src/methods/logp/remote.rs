//! Requests to a `cci perf server`: for it each burst is a block of a ping-pong.

use super::requester::Answerer;
use crate::measure::client::{End, join};
use crate::measure::control::{Command, What};
use crate::measure::facade::Facade;
use crate::measure::loops::Lane;
use crate::measure::plan::Plan;
use cci_report::UserError;

/// A server that answers.
pub(super) struct Remote<'p> {
    end: End<'p, Facade>,
    /// Bytes of a reply.
    reply: u64,
}

impl<'p> Remote<'p> {
    /// Connects. The plan is that of a ping-pong, which is what the server takes part in.
    pub(super) fn new(plan: &'p Plan, reply: u64, uri: &str) -> Result<Self, UserError> {
        Ok(Self { end: join(plan, uri, None)?, reply })
    }

    /// Lets the server go.
    pub(super) fn leave(self) -> Result<(), UserError> {
        self.end.link.send(&Command::End)
    }
}

impl Answerer for Remote<'_> {
    type Driver = Facade;

    fn expect(&mut self, requests: u64) -> Result<(), UserError> {
        self.end.begin(What::Measured, self.reply, requests)
    }

    fn lane(&self) -> Lane<'_, Facade> {
        let link = &self.end.link;
        Lane { driver: &link.driver, connection: link.operations, silent: self.end.plan.session.silent }
    }
}
