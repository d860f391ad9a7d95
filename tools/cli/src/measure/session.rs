//! What is measured, as both ends and the rows of a document have it.

use super::names::{AttributeName, Measurement, MemoryOrigin, Mode, Operation, Target, Threads};
use serde::{Deserialize, Serialize};

/// What both ends must agree on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Session {
    pub(crate) measurement: Measurement,
    pub(crate) operation: Operation,
    pub(crate) attribute: AttributeName,
    pub(crate) mode: Mode,
    /// No SEND events.
    pub(crate) silent: bool,
    pub(crate) threads: Threads,
    pub(crate) memory: MemoryOrigin,
    /// Every byte of a received message is read.
    pub(crate) touch: bool,
    pub(crate) target: Target,
    /// Most operations in flight; as many as there is room for, and 16 RMA, when absent.
    #[serde(default)]
    pub(crate) window: Option<u64>,
    /// Both ends begin operations.
    #[serde(default)]
    pub(crate) bidirectional: bool,
    /// Largest size of the run, bytes: what RMA memory must hold.
    pub(crate) largest: u64,
}

impl Session {
    /// Whether the operation is an RMA.
    pub(crate) fn is_rma(&self) -> bool {
        self.operation != Operation::Send
    }

    /// Why the parts do not fit together, if they do not.
    pub(crate) fn contradiction(&self) -> Option<&'static str> {
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
        Session {
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
            largest: 4096,
        }
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
