//! What is to be measured.

use crate::device::{STREAMS, VIRTUAL};
use crate::effort::Effort;
use crate::peers;
use crate::peers::{PeerList, PeerSelection, PeerStatus};
use crate::reach;
use cci::Scope;
use cci_report::UserError;
use cci_report::names::{Abi, Measurement, MemoryOrigin, Mode, Operation, ProbeKind, Target, Threads};
use cci_report::row::Subject;
use cci_report::session::Session;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// What is measured.
    pub session: Session,
    /// Sizes, bytes, in the order in which they are measured.
    pub sizes: Vec<u64>,
    /// How long, and how sure.
    pub effort: Effort,
    /// Bare operation to compare with; only where both ends share memory for it.
    pub probe: Option<ProbeKind>,
    /// Name of the transport; the default device when absent.
    pub transport: Option<String>,
    /// Keys of the device beyond those of its configuration.
    #[serde(default)]
    pub keys: Vec<(String, String)>,
    /// Through which interface the library is called.
    pub abi: Abi,
    /// The shared library for [`Abi::C`].
    pub library: Option<PathBuf>,
    /// Other libraries to measure in turn; only where both ends are on this host.
    pub peers: PeerSelection,
}

impl Plan {
    /// What its rows over this transport are about.
    pub fn subject<'a>(&'a self, transport: &'a str) -> Subject<'a> {
        let bound = self.effort.bound;
        Subject { session: &self.session, transport, abi: self.abi, probe: self.probe, bound }
    }

    /// Whether it is measured in virtual time.
    pub fn is_virtual(&self) -> bool {
        self.transport.as_deref() == Some(VIRTUAL)
    }

    /// What virtual time has not, if this asks for it.
    pub fn not_virtual(&self, asked_probe: bool) -> Option<&'static str> {
        if self.abi == Abi::C {
            return Some("the C library cannot be measured in virtual time: use --abi rust with --transport sim");
        }
        if self.session.mode == Mode::Blocking {
            return Some("an end in virtual time never sleeps: leave out --mode blocking with --transport sim");
        }
        if self.session.target == Target::Computing || self.session.measurement == Measurement::Overlap {
            return Some(
                "in virtual time computing takes no time: measure overlap, and --target computing, over another transport",
            );
        }
        if asked_probe {
            return Some("in virtual time there is no bare operation to compare with: leave out --probe");
        }
        None
    }

    /// Adds the peers of the list whose programs exist, in this directory, or where `make peers`
    /// puts them.
    ///
    /// # Errors
    ///
    /// Peers cannot be measured in such a session.
    pub fn add_peers(&mut self, list: &PeerList, directory: Option<&Path>) -> Result<PeerStatus, UserError> {
        if let Some(why) = self.not_with_peers() {
            return Err(UserError::new(why));
        }
        let (selection, status) = peers::select(list, directory);
        // The time is that of a row.
        self.effort.time *= u32::try_from(1 + selection.names.len()).unwrap_or(u32::MAX);
        self.peers = selection;
        Ok(status)
    }

    /// Why peers cannot be measured in such a run, if they cannot.
    fn not_with_peers(&self) -> Option<&'static str> {
        if self.session.operation == Operation::Read {
            return Some("peers send and receive: use --peers with --op send or write");
        }
        if self.session.mode == Mode::Blocking {
            return Some("peers wait in their own best way: leave out --mode blocking, or --peers");
        }
        if self.is_virtual() {
            return Some(
                "peers take real time, and the transport sim virtual time: use --peers with another transport",
            );
        }
        None
    }

    /// The probe that a measurement over this transport is compared with unless asked otherwise.
    pub fn natural_probe(session: &Session, transport: &str) -> Option<ProbeKind> {
        // What a transfer hides behind is computing, of which every processor is as capable as it
        // is.
        if session.measurement == Measurement::Overlap {
            return None;
        }
        Some(match reach::scope(transport) {
            _ if transport == STREAMS => Self::probe_of_streams(session),
            Some(Scope::Host) => Self::probe_of_memory(session),
            _ => Self::probe_of_network(session),
        })
    }

    fn probe_of_streams(session: &Session) -> ProbeKind {
        match Self::probe_of_network(session) {
            ProbeKind::UdpMessages => ProbeKind::TcpMessages,
            ProbeKind::UdpStream => ProbeKind::TcpStream,
            ProbeKind::UdpWake => ProbeKind::TcpWake,
            _ => ProbeKind::TcpPing,
        }
    }

    fn probe_of_network(session: &Session) -> ProbeKind {
        match (session.operation, session.measurement) {
            (Operation::Send, Measurement::Rate) => ProbeKind::UdpMessages,
            (Operation::Send, Measurement::Bandwidth) | (Operation::Write | Operation::Read, _) => ProbeKind::UdpStream,
            (Operation::Send, _) => match session.mode {
                Mode::Blocking => ProbeKind::UdpWake,
                Mode::Polling => ProbeKind::Udp,
            },
        }
    }

    fn probe_of_memory(session: &Session) -> ProbeKind {
        match (session.operation, session.measurement) {
            (Operation::Send, Measurement::Rate) => match session.threads {
                Threads::One => ProbeKind::Ring,
                Threads::Many => ProbeKind::LockedRing,
            },
            (Operation::Send, Measurement::Bandwidth) => ProbeKind::Pipe,
            (Operation::Send, _) => match (session.mode, session.touch) {
                (Mode::Blocking, _) => ProbeKind::Wake,
                (Mode::Polling, true) => ProbeKind::Copy,
                (Mode::Polling, false) => ProbeKind::Line,
            },
            (Operation::Write | Operation::Read, _) => match session.memory {
                MemoryOrigin::Library => ProbeKind::Memcpy,
                MemoryOrigin::Any => ProbeKind::ProcessVm,
            },
        }
    }

    /// Sizes to measure when none are asked for, bytes.
    pub fn natural_sizes(session: &Session) -> Vec<u64> {
        let range = |from: u32, to: u32| (from..=to).step_by(2).map(|power| 1_u64 << power).collect();
        match (session.operation, session.measurement) {
            (_, Measurement::Jitter) | (Operation::Send, Measurement::Rate) => vec![8],
            (Operation::Send, Measurement::PingPong | Measurement::OneWay) => vec![8, 64, 256, 1024, 4096, 8192],
            (Operation::Send, Measurement::Bandwidth | Measurement::Overlap) => vec![64, 256, 1024, 4096, 8192],
            (_, Measurement::Rate) => vec![8, 64, 4096],
            (_, Measurement::Overlap) => range(12, 20),
            (_, Measurement::PingPong | Measurement::OneWay | Measurement::Bandwidth) => range(6, 20),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use cci_report::names::Choice;
    use std::time::Duration;

    pub(crate) fn session() -> Session {
        Session { largest: 4096, ..Session::default() }
    }

    pub(crate) fn plan() -> Plan {
        Plan {
            session: session(),
            sizes: vec![8],
            effort: Effort { time: Duration::from_secs(1), count: None, blocks: None, launches: 1, bound: 0.05 },
            probe: Some(ProbeKind::Line),
            transport: None,
            keys: vec![],
            abi: Abi::Rust,
            library: None,
            peers: PeerSelection::default(),
        }
    }

    #[test]
    fn each_measurement_has_the_probe_that_does_the_same_barely() {
        let probe = |change: &dyn Fn(&mut Session)| {
            let mut session = session();
            change(&mut session);
            Plan::natural_probe(&session, "sm").unwrap()
        };
        assert_eq!(probe(&|_| ()), ProbeKind::Line);
        assert_eq!(probe(&|s| s.touch = true), ProbeKind::Copy);
        assert_eq!(probe(&|s| s.mode = Mode::Blocking), ProbeKind::Wake);
        assert_eq!(probe(&|s| s.measurement = Measurement::Rate), ProbeKind::LockedRing);
        let one = |s: &mut Session| (s.measurement, s.threads) = (Measurement::Rate, Threads::One);
        assert_eq!(probe(&one), ProbeKind::Ring);
        assert_eq!(probe(&|s| s.measurement = Measurement::Bandwidth), ProbeKind::Pipe);
        assert_eq!(probe(&|s| s.operation = Operation::Read), ProbeKind::Memcpy);
        let any = |s: &mut Session| (s.operation, s.memory) = (Operation::Write, MemoryOrigin::Any);
        assert_eq!(probe(&any), ProbeKind::ProcessVm);
    }

    #[test]
    fn over_a_network_the_probe_goes_through_the_loop_back_interface() {
        let probe = |change: &dyn Fn(&mut Session)| {
            let mut session = session();
            change(&mut session);
            Plan::natural_probe(&session, "sock").unwrap()
        };
        assert_eq!(probe(&|_| ()), ProbeKind::Udp);
        assert_eq!(probe(&|s| s.mode = Mode::Blocking), ProbeKind::UdpWake);
        assert_eq!(probe(&|s| s.measurement = Measurement::Rate), ProbeKind::UdpMessages);
        assert_eq!(probe(&|s| s.measurement = Measurement::Bandwidth), ProbeKind::UdpStream);
        assert_eq!(probe(&|s| s.operation = Operation::Write), ProbeKind::UdpStream);
        assert!(ProbeKind::CHOICES.iter().filter(|(kind, ..)| kind.is_network()).count() == 9);
    }

    #[test]
    fn streams_are_compared_with_a_bare_stream() {
        let probe = |change: &dyn Fn(&mut Session)| {
            let mut session = session();
            change(&mut session);
            Plan::natural_probe(&session, "tcp").unwrap()
        };
        assert_eq!(probe(&|_| ()), ProbeKind::TcpPing);
        assert_eq!(probe(&|s| s.mode = Mode::Blocking), ProbeKind::TcpWake);
        assert_eq!(probe(&|s| s.measurement = Measurement::Rate), ProbeKind::TcpMessages);
        assert_eq!(probe(&|s| s.measurement = Measurement::Bandwidth), ProbeKind::TcpStream);
        assert_eq!(probe(&|s| s.operation = Operation::Read), ProbeKind::TcpStream);
    }
}
