//! Requests to a `cci perf server`: for it each burst is a block of a ping-pong.

use super::Session;
use super::machine::{Burst, Machine, Times};
use super::requester::Requester;
use crate::measure::Sentence;
use crate::measure::client::{End, join};
use crate::measure::control::{Command, What};
use crate::measure::loops::Lane;
use crate::measure::plan::Plan;
use crate::measure::port::{Facade, Port};
use cci::Connection;

/// The end that issues requests to a server.
pub(super) struct Remote<'p> {
    end: End<'p, Facade>,
    requester: Requester,
    /// Bytes of a reply.
    reply: u64,
}

impl<'p> Remote<'p> {
    /// Connects. The plan is that of a ping-pong, which is what the server takes part in.
    pub(super) fn new(plan: &'p Plan, session: &Session, uri: &str) -> Result<Self, Sentence> {
        let end = join(plan, uri, None)?;
        Ok(Self { end, requester: Requester::calibrated(), reply: session.size })
    }

    pub(super) fn port(&self) -> (&Facade, Connection) {
        (&self.end.link.port, self.end.link.operations)
    }

    /// Lets the server go.
    pub(super) fn leave(self) -> Result<(), Sentence> {
        self.end.link.tell(&Command::End)
    }
}

impl Machine for Remote<'_> {
    fn burst(&mut self, burst: &Burst) -> Result<Times, Sentence> {
        self.end.begin(What::Measured, self.reply, burst.length)?;
        let silent = self.end.plan.session.silent;
        let lane = Lane { port: &self.end.link.port, connection: self.end.link.operations, silent };
        self.requester.burst(&lane, burst)
    }

    fn compute(&mut self, delay: u64) -> Result<f64, Sentence> {
        Ok(self.requester.compute(delay))
    }

    fn resize(&mut self, size: u64) -> Result<(), Sentence> {
        self.requester.resize(size)
    }

    fn largest(&self) -> u64 {
        let (port, connection) = self.port();
        port.max_send_size(connection)
    }
}
