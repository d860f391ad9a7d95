//! What is to be measured.

use super::virtual_time;
use crate::peers::PeerSelection;
use crate::reach;
use cci::Scope;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// Declares enumerations whose names are the same on the command line and in JSON.
macro_rules! named {
    ($($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $text:literal,)+ })+) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
        pub(crate) enum $name { $($(#[$vmeta])* #[serde(rename = $text)] #[value(name = $text)] $variant,)+ }

        impl $name {
            /// The name.
            pub(crate) fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }
    )+};
}

named! {
    /// How time is related to operations.
    Measurement {
        /// Half round trip: one operation there, one back
        PingPong = "pingpong",
        /// One operation at a time, each waited for until its SEND event (in shared memory: until it is published)
        OneWay = "oneway",
        /// Operations per second, one direction, as many in flight as there is room
        Rate = "rate",
        /// Bytes per second, one direction, as many in flight as there is room
        Bandwidth = "bw",
        /// Single round trips, each timed
        Jitter = "jitter",
        /// One operation at a time, computing until it is waited for
        Overlap = "overlap",
    }
    /// Which operation.
    Operation {
        /// A message
        Send = "send",
        /// RMA from here to there
        Write = "write",
        /// RMA from there to here
        Read = "read",
    }
    /// What the measured connection promises.
    AttributeName {
        /// Reliable, ordered
        Ro = "ro",
        /// Reliable, unordered
        Ru = "ru",
        /// Unreliable, unordered
        Uu = "uu",
    }
    /// How both ends wait.
    Mode {
        /// Call get_event again and again
        Polling = "polling",
        /// Sleep in poll() on the endpoint's handle
        Blocking = "blocking",
    }
    /// Who may call the measured endpoints.
    Threads {
        /// One thread only: no lock
        One = "one",
        /// Any thread (the library's default)
        Many = "many",
    }
    /// Where the memory of RMA comes from.
    MemoryOrigin {
        /// Allocated by the library: copied without a system call
        Library = "library",
        /// Ordinary private pages of each process
        Any = "any",
    }
    /// What the target of RMA does meanwhile.
    Target {
        /// Calls get_event again and again
        Polling = "polling",
        /// Computes, and does not call the library
        Computing = "computing",
    }
    /// Through which interface the library is called.
    Abi {
        /// The Rust facade
        Rust = "rust",
        /// The functions of libcci.so
        C = "c",
    }
    /// Bare operations to compare with.
    ProbeKind {
        /// Half round trip of one cache line
        Line = "line",
        /// Half round trip of a copy through shared memory, every byte read
        Copy = "copy",
        /// Single-producer ring of one-line entries
        Ring = "ring",
        /// The same with one locked instruction a message
        LockedRing = "locked-ring",
        /// memcpy within one process
        Memcpy = "memcpy",
        /// process_vm_writev, or process_vm_readv
        ProcessVm = "process-vm",
        /// Copied in by one process, copied out by the other
        Pipe = "pipe",
        /// eventfd ping-pong with poll, read and write
        Wake = "wake",
        /// Half round trip of a UDP datagram over the loop-back interface, both ends polling
        Udp = "udp",
        /// The same, both ends asleep in poll()
        UdpWake = "udp-wake",
        /// UDP datagrams over loop-back, 64 in a call, cut and put together by the kernel, none lost
        UdpMessages = "udp-messages",
        /// The fastest stream of UDP datagrams over loop-back that loses nothing
        UdpStream = "udp-stream",
        /// A TCP stream over loop-back
        Tcp = "tcp",
    }
}

impl Measurement {
    /// Whether operations go there and back.
    pub(crate) fn is_exchange(self) -> bool {
        matches!(self, Self::PingPong | Self::Jitter)
    }

    /// Whether each operation is waited for before the next is started.
    pub(crate) fn is_one_by_one(self) -> bool {
        matches!(self, Self::OneWay | Self::Overlap)
    }

    /// Whether its result is a speed: operations and bytes per second.
    pub(crate) fn is_speed(self) -> bool {
        matches!(self, Self::Rate | Self::Bandwidth)
    }
}

impl ProbeKind {
    /// Whether an operation of the probe moves as many bytes as the measured one.
    pub(crate) fn moves_the_size(self) -> bool {
        !matches!(self, Self::Line | Self::Ring | Self::LockedRing | Self::Wake)
    }

    /// Whether the probe goes through the loop-back interface.
    pub(crate) fn is_network(self) -> bool {
        matches!(self, Self::Udp | Self::UdpWake | Self::UdpMessages | Self::UdpStream | Self::Tcp)
    }

    /// Whether an operation of the probe goes there and back, as its time is that of two.
    pub(crate) fn is_exchange(self) -> bool {
        matches!(self, Self::Line | Self::Copy | Self::Wake | Self::Udp | Self::UdpWake)
    }
}

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

/// How long a point takes, and how sure it has to be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Effort {
    /// Time for the blocks of one size, probe blocks included.
    pub(crate) time: Duration,
    /// Operations of a block; calibrated when absent.
    pub(crate) count: Option<u64>,
    /// Number of blocks; from the time when absent.
    pub(crate) blocks: Option<u32>,
    /// Pairs of processes that the time, or the blocks, are shared out to.
    pub(crate) launches: u32,
    /// Largest spread of a point that counts as accurate, as a part of the median.
    pub(crate) bound: f64,
}

/// Blocks of a size, at least and at most.
const BLOCKS: std::ops::RangeInclusive<u64> = 11..=5000;

impl Effort {
    /// Launches, each of which has a block at least.
    pub(crate) fn launches(&self) -> u32 {
        self.blocks.map_or(self.launches, |blocks| self.launches.min(blocks)).max(1)
    }

    /// Whether one launch has measured enough, with so many blocks in this time.
    pub(crate) fn is_enough(&self, blocks: u64, took: Duration) -> bool {
        let launches = u64::from(self.launches());
        match self.blocks {
            Some(asked) => blocks >= u64::from(asked).div_ceil(launches).max(1),
            None if blocks == 0 => false,
            None if blocks < BLOCKS.start().div_ceil(launches) && took < 2 * self.time / self.launches() => false,
            None => blocks >= BLOCKS.end().div_ceil(launches) || took >= self.time / self.launches(),
        }
    }
}

/// A whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) session: Session,
    pub(crate) sizes: Vec<u64>,
    pub(crate) effort: Effort,
    /// Bare operation to compare with; only where both ends share memory for it.
    pub(crate) probe: Option<ProbeKind>,
    /// Name of the transport; the default device when absent.
    pub(crate) transport: Option<String>,
    /// Keys of the device beyond those of its configuration.
    #[serde(default)]
    pub(crate) keys: Vec<(String, String)>,
    pub(crate) abi: Abi,
    /// The shared library for [`Abi::C`].
    pub(crate) library: Option<PathBuf>,
    /// Other libraries to measure in turn; only where both ends are on this host.
    pub(crate) peers: PeerSelection,
}

impl Plan {
    /// Whether it is measured in virtual time.
    pub(crate) fn is_virtual(&self) -> bool {
        self.transport.as_deref() == Some(virtual_time::TRANSPORT)
    }

    /// What virtual time has not, if this asks for it.
    pub(crate) fn not_virtual(&self, asked_probe: bool) -> Option<&'static str> {
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

    /// The probe that a measurement over this transport is compared with unless asked otherwise.
    pub(crate) fn natural_probe(session: &Session, transport: &str) -> Option<ProbeKind> {
        // What a transfer hides behind is computing, of which every processor is as capable as it is.
        if session.measurement == Measurement::Overlap {
            return None;
        }
        let is_memory = reach::scope(transport) == Some(Scope::Host);
        Some(if is_memory { Self::probe_of_memory(session) } else { Self::probe_of_network(session) })
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

    /// Keys that keep both ends on the loop-back interface, as the probes are.
    pub(crate) fn keys_of_loopback(transport: &str) -> Vec<(String, String)> {
        let keys = cci::driver(transport).map_or(&[][..], |driver| driver.loopback);
        keys.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect()
    }

    /// Sizes to measure when none are asked for, bytes.
    pub(crate) fn natural_sizes(session: &Session) -> Vec<u64> {
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
        assert!(ProbeKind::value_variants().iter().filter(|kind| kind.is_network()).count() == 5);
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

    #[test]
    fn the_time_and_the_blocks_have_bounds_and_are_shared_out_to_the_launches() {
        let of = |blocks: Option<u32>, launches: u32| Effort {
            time: Duration::from_millis(300),
            blocks,
            launches,
            ..plan().effort
        };
        let least = |effort: Effort, took: u64| {
            (0..9999).find(|blocks| effort.is_enough(*blocks, Duration::from_millis(took))).unwrap()
        };
        assert_eq!((least(of(None, 1), 300), least(of(None, 1), 299)), (11, 5000));
        assert_eq!((least(of(None, 10), 30), least(of(None, 10), 29)), (2, 500));
        assert_eq!((of(Some(3), 10).launches(), least(of(Some(3), 10), 900), least(of(Some(3), 10), 0)), (3, 1, 1));
        assert_eq!((of(Some(15), 10).launches(), least(of(Some(15), 10), 0)), (10, 2));
    }

    #[test]
    fn names_are_the_same_on_the_command_line_and_in_json() {
        for kind in ProbeKind::value_variants() {
            assert_eq!(serde_json::to_string(kind).unwrap(), format!("\"{}\"", kind.name()));
            assert_eq!(ProbeKind::from_str(kind.name(), false).unwrap(), *kind);
        }
    }
}
