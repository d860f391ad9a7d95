//! What can be asked for by name, and stands in documents.

/// A value that people choose by its name.
pub trait Choice: Copy + Send + Sync + 'static {
    /// Every value with its name and what it means, in the order in which they are listed.
    const CHOICES: &'static [(Self, &'static str, &'static str)];

    /// The value of this name.
    fn named(name: &str) -> Option<Self> {
        Self::CHOICES.iter().find(|(_, known, _)| *known == name).map(|(value, ..)| *value)
    }
}

/// Declares enumerations whose names are the same on the command line and in JSON. The comment of a
/// value is what it means.
#[macro_export]
macro_rules! named {
    ($($(#[$meta:meta])* $vis:vis enum $name:ident {
        $($(#[doc = $about:literal])+ $variant:ident = $text:literal,)+
    })+) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        $vis enum $name { $($(#[doc = $about])+ #[serde(rename = $text)] $variant,)+ }

        impl $name {
            /// The name.
            $vis fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }

        impl $crate::names::Choice for $name {
            const CHOICES: &'static [(Self, &'static str, &'static str)] =
                &[$((Self::$variant, $text, concat!($($about),+).trim_ascii()),)+];
        }
    )+};
}
named! {
    /// How time is related to operations.
    pub enum Measurement {
        /// Half round trip: one operation there, one back
        PingPong = "pingpong",
        /// One operation at a time, each waited for until its SEND event (in shared memory: until
        /// it is published)
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
    pub enum Operation {
        /// A message
        Send = "send",
        /// RMA from here to there
        Write = "write",
        /// RMA from there to here
        Read = "read",
    }
    /// What the measured connection promises.
    pub enum AttributeName {
        /// Reliable, ordered
        Ro = "ro",
        /// Reliable, unordered
        Ru = "ru",
        /// Unreliable, unordered
        Uu = "uu",
    }
    /// How both ends wait.
    pub enum Mode {
        /// Call get_event again and again
        Polling = "polling",
        /// Sleep in poll() on the endpoint's handle
        Blocking = "blocking",
    }
    /// Who may call the measured endpoints.
    pub enum Threads {
        /// One thread only: no lock
        One = "one",
        /// Any thread (the library's default)
        Many = "many",
    }
    /// Where the memory of RMA comes from.
    pub enum MemoryOrigin {
        /// Allocated by the library: copied without a system call
        Library = "library",
        /// Ordinary private pages of each process
        Any = "any",
    }
    /// What the target of RMA does meanwhile.
    pub enum Target {
        /// Calls get_event again and again
        Polling = "polling",
        /// Computes, and does not call the library
        Computing = "computing",
    }
    /// Through which interface the library is called.
    pub enum Abi {
        /// The Rust facade
        Rust = "rust",
        /// The functions of libcci.so
        C = "c",
    }
    /// Bare operations to compare with.
    pub enum ProbeKind {
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
        /// UDP datagrams over loop-back, 64 in a call, cut and put together by the kernel, none
        /// lost
        UdpMessages = "udp-messages",
        /// The fastest stream of UDP datagrams over loop-back that loses nothing
        UdpStream = "udp-stream",
        /// A TCP stream over loop-back
        Tcp = "tcp",
        /// Half round trip of bytes through a TCP stream over loop-back, both ends polling
        TcpPing = "tcp-ping",
        /// The same, both ends asleep in poll()
        TcpWake = "tcp-wake",
        /// One send() a message into a TCP stream over loop-back, the receiver polling
        TcpMessages = "tcp-messages",
        /// A TCP stream over loop-back, 1 MiB in a call, both ends polling, set up as by the
        /// transport tcp
        TcpStream = "tcp-stream",
    }
}

impl Measurement {
    /// Whether operations go there and back.
    pub fn is_exchange(self) -> bool {
        matches!(self, Self::PingPong | Self::Jitter)
    }

    /// Whether each operation is waited for before the next is started.
    pub fn is_one_by_one(self) -> bool {
        matches!(self, Self::OneWay | Self::Overlap)
    }

    /// Whether its result is a speed: operations and bytes per second.
    pub fn is_speed(self) -> bool {
        matches!(self, Self::Rate | Self::Bandwidth)
    }
}

impl ProbeKind {
    /// Whether an operation of the probe moves as many bytes as the measured one.
    pub fn moves_the_size(self) -> bool {
        !matches!(self, Self::Line | Self::Ring | Self::LockedRing | Self::Wake)
    }

    /// Whether the probe goes through the loop-back interface.
    pub fn is_network(self) -> bool {
        let is_udp = matches!(self, Self::Udp | Self::UdpWake | Self::UdpMessages | Self::UdpStream);
        is_udp || matches!(self, Self::Tcp | Self::TcpPing | Self::TcpWake | Self::TcpMessages | Self::TcpStream)
    }

    /// Whether an operation of the probe goes there and back, as its time is that of two.
    pub fn is_exchange(self) -> bool {
        matches!(self, Self::Line | Self::Copy | Self::Wake | Self::Udp | Self::UdpWake | Self::TcpPing | Self::TcpWake)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_same_on_the_command_line_and_in_json() {
        for (kind, name, about) in ProbeKind::CHOICES {
            assert_eq!(serde_json::to_string(kind).unwrap(), format!("\"{name}\""));
            assert_eq!((kind.name(), ProbeKind::named(name)), (*name, Some(*kind)));
            assert!(!about.is_empty() && !about.starts_with(' '), "{about:?}");
        }
        assert_eq!(ProbeKind::named("Udp"), None);
    }
}
