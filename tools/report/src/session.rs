//! What is measured, as both ends and the rows of a document have it.

use super::names::{AttributeName, Measurement, MemoryOrigin, Mode, Operation, Target, Threads};
use serde::{Deserialize, Serialize};

/// What both ends must agree on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// How time is related to operations.
    pub measurement: Measurement,
    /// Which operation.
    pub operation: Operation,
    /// What the measured connection promises.
    pub attribute: AttributeName,
    /// How both ends wait.
    pub mode: Mode,
    /// No SEND events.
    pub silent: bool,
    /// Who may call the measured endpoints.
    pub threads: Threads,
    /// Where the memory of RMA comes from.
    pub memory: MemoryOrigin,
    /// Every byte of a received message is read.
    pub touch: bool,
    /// What the target of RMA does meanwhile.
    pub target: Target,
    /// Most operations in flight; as many as there is room for, and 16 RMA, when absent.
    #[serde(default)]
    pub window: Option<u64>,
    /// Both ends begin operations.
    #[serde(default)]
    pub bidirectional: bool,
    /// Largest size of the run, bytes: what RMA memory must hold.
    pub largest: u64,
}

/// A ping-pong of messages over a reliable, ordered connection, of endpoints for many threads that
/// poll.
impl Default for Session {
    fn default() -> Self {
        Self {
            measurement: Measurement::PingPong,
            operation: Operation::Send,
            attribute: AttributeName::Ro,
            mode: Mode::Polling,
            silent: false,
            threads: Threads::Many,
            memory: MemoryOrigin::Library,
            touch: false,
            target: Target::Polling,
            window: None,
            bidirectional: false,
            largest: 0,
        }
    }
}

impl Session {
    /// Whether the operation is an RMA.
    pub fn is_rma(&self) -> bool {
        self.operation != Operation::Send
    }

    /// Why the parts do not fit together, if they do not.
    pub fn contradiction(&self) -> Option<&'static str> {
        if self.is_rma() && self.attribute == AttributeName::Uu {
            return Some("RMA needs a reliable connection: use --attribute ro or ru");
        }
        if let Some(why) = self.contradiction_of_measurement() {
            return Some(why);
        }
        if self.target == Target::Computing && (!self.is_rma() || self.measurement.is_exchange()) {
            return Some("a computing target does not answer: use it with --op write or read and oneway or bw");
        }
        if self.target == Target::Computing && self.mode == Mode::Blocking {
            return Some("a computing target does not wait: leave out --mode blocking");
        }
        if self.touch && self.is_rma() {
            return Some("--touch reads received messages: use it with --op send");
        }
        if self.window.is_some() && self.silent {
            return Some("a window is kept by SEND events: leave out --silent");
        }
        if self.measurement.is_exchange() && self.attribute == AttributeName::Uu && self.silent {
            return Some("a ping-pong of unreliable messages needs their events: leave out --silent");
        }
        None
    }

    /// Why the measurement does not fit the rest, if it does not.
    fn contradiction_of_measurement(&self) -> Option<&'static str> {
        if self.bidirectional && !self.measurement.is_speed() {
            return Some("--bidirectional is for rate and bw: a ping-pong goes both ways already");
        }
        if self.bidirectional
            && (self.attribute == AttributeName::Uu || self.silent || self.target == Target::Computing)
        {
            return Some(
                "both directions end when all has arrived: use --bidirectional with --attribute ro or ru, without --silent, and \
                 with a polling target",
            );
        }
        if self.measurement == Measurement::Overlap && (self.attribute == AttributeName::Uu || self.silent) {
            return Some("overlap waits for each operation: leave out --silent, and use --attribute ro or ru");
        }
        None
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn session() -> Session {
        Session { largest: 4096, ..Session::default() }
    }

    #[test]
    fn contradictions_are_told() {
        let told = |change: &dyn Fn(&mut Session)| {
            let mut session = session();
            change(&mut session);
            session.contradiction().unwrap_or("")
        };
        assert_eq!(told(&|_| ()), "");
        assert!(
            told(&|s| (s.operation, s.attribute) = (Operation::Read, AttributeName::Uu))
                .contains("reliable connection")
        );
        assert!(told(&|s| s.target = Target::Computing).contains("computing"));
        assert!(told(&|s| (s.operation, s.touch) = (Operation::Write, true)).contains("--touch"));
        assert!(told(&|s| (s.attribute, s.silent) = (AttributeName::Uu, true)).contains("--silent"));
        assert!(told(&|s| (s.window, s.silent) = (Some(8), true)).contains("--silent"));
        assert!(told(&|s| s.bidirectional = true).contains("both ways already"));
        let both = |s: &mut Session| (s.measurement, s.bidirectional) = (Measurement::Rate, true);
        assert_eq!(told(&both), "");
        assert!(
            told(&|s| {
                both(s);
                s.silent = true;
            })
            .contains("without --silent")
        );
        assert!(
            told(&|s| {
                both(s);
                s.attribute = AttributeName::Uu;
            })
            .contains("ro or ru")
        );
        assert!(told(&|s| (s.measurement, s.silent) = (Measurement::Overlap, true)).contains("waits for each"));
    }
}
