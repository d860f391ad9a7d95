//! The trait [`Link`]: it moves frames to addresses and back. It is not reliable.

use cci_mem::memory::{Piece, Span};
use cci_proto::engine::PathMtu;
use cci_proto::{Address, ConnectError, Time};
use std::cell::Cell;
use std::fmt;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

/// A frame to be sent: bytes of a buffer, then registered memory.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// Where to.
    pub to: Address,
    /// Header and records.
    pub head: &'a [u8],
    /// Registered memory that follows, from where it lies.
    pub piece: Option<&'a Piece>,
    /// A probe of the path's MTU: not to be fragmented; may be lost without notice.
    pub probe: bool,
}

/// What a link receives.
#[derive(Clone, Copy, Debug)]
pub enum Incoming<'a> {
    /// A frame, from this address.
    Frame {
        /// Its sender.
        from: Address,
        /// The frame.
        bytes: &'a [u8],
        /// Marked by a congested router.
        congested: bool,
    },
    /// A frame that arrived where nobody may ask. If it is for a connection with its sender, the
    /// sink sets `is_known`, and the link shows it as a [`Frame`](Incoming::Frame); otherwise it is
    /// dropped, and not answered.
    Unasked {
        /// Its sender.
        from: Address,
        /// The frame.
        bytes: &'a [u8],
        /// False at first.
        is_known: &'a Cell<bool>,
    },
    /// A frame to a group that was joined under this number.
    Multicast {
        /// The number.
        group: u32,
        /// Its sender.
        from: Address,
        /// The frame.
        bytes: &'a [u8],
    },
    /// No socket is bound at the address; the first bytes of our frame as the network quotes them.
    Refused {
        /// Where we sent to.
        to: Address,
        /// The beginning of our frame.
        quoted: &'a [u8],
        /// An address of this host reports it: the socket is closed for good.
        is_own: bool,
    },
    /// The path to the address carries at most `mtu` bytes of frame.
    TooBig {
        /// Where we sent to.
        to: Address,
        /// The beginning of our frame.
        quoted: &'a [u8],
        /// Bytes of frame.
        mtu: u16,
    },
    /// The system refuses every call by which frames leave or arrive, and no call can change that:
    /// the socket is gone, or a filter of system calls forbids it. Shown again while calls
    /// are refused, now and then. A link of several sockets tells which peers are behind that one.
    Down {
        /// Whether frames of this address leave or arrive there.
        concerns: fn(&Address) -> bool,
    },
    /// The system could not read registered memory of a frame, which is lost: the program has
    /// unmapped the memory.
    Faulted {
        /// The memory.
        span: Span,
    },
}

/// Frames to addresses and back. All calls come with the endpoint's lock held; none blocks, none
/// allocates after warm-up but `resolve` and those of [`Names`] and [`Groups`].
pub trait Link: Wait + Send + 'static {
    /// Name of the transport.
    fn name(&self) -> &'static str;
    /// The URI to which clients connect.
    fn uri(&self) -> &str;
    /// Now, by the clock of [`monotonic`](cci_transport::monotonic), unless it [is
    /// virtual](Link::is_virtual).
    fn now(&self) -> Time;
    /// Largest frame on any path; at most 65,000.
    fn mtu(&self) -> u16;
    /// Largest frame that every path carries, to begin with.
    fn base_mtu(&self) -> u16;
    /// What the path to this address carries, which a connect goes to. Peers that ask are taken to
    /// be behind paths as [`Link::mtu`] and [`Link::base_mtu`] describe them.
    fn path_mtu(&self, to: &Address) -> PathMtu {
        let _ = to;
        PathMtu { base: self.base_mtu(), largest: self.mtu() }
    }
    /// Bytes of frames that the receive buffer holds, as the system counts them (overhead taken
    /// off).
    fn recv_buffer(&self) -> u32;
    /// The address of an endpoint, where the URI itself gives it: no name is looked up.
    ///
    /// # Errors
    ///
    /// Not a URI of this transport, or no such host.
    fn resolve(&mut self, uri: &str) -> Result<Address, ConnectError>;
    /// Sends frames in order, and returns how many it took. Offer the others again once
    /// `is_writable`. A frame that the system refuses for its destination alone counts as taken and
    /// lost.
    fn send_burst(&mut self, frames: &[Outgoing<'_>]) -> usize;
    /// Receives up to about `budget` frames, and passes each to `sink`. Returns their number.
    fn recv_burst(&mut self, budget: usize, sink: &mut dyn FnMut(Incoming<'_>)) -> usize;
    /// Whether frames that were not taken may be offered again.
    fn is_writable(&mut self) -> bool;
    /// How frames travel, and why so: which offloads are on, which are off and why. For
    /// `ccix_connection_info`.
    fn path(&self, to: &Address) -> (String, String);
    /// Writes the name of an address: a URI where it has one. Does not allocate by itself.
    ///
    /// # Errors
    ///
    /// Those of `text`.
    fn write_name(&self, to: &Address, text: &mut dyn fmt::Write) -> fmt::Result;
    /// What may keep frames from this address, which does not answer, or its answers from here: a
    /// sentence, where the link can tell. It may make system calls.
    fn silence(&self, to: &Address) -> Option<String> {
        let _ = to;
        None
    }
    /// Which call the system refuses for frames of this address: a sentence, if there is one now.
    fn refusal(&self, to: &Address) -> Option<String> {
        let _ = to;
        None
    }
    /// Whether its time is not that of the system.
    fn is_virtual(&self) -> bool {
        false
    }
    /// Looks names of hosts up. `None`: URIs give addresses only.
    fn names(&mut self) -> Option<&mut dyn Names> {
        None
    }
    /// The groups of the link's network. `None`: it has none.
    fn groups(&mut self) -> Option<&mut dyn Groups> {
        None
    }
}

/// How a program waits for a link.
pub trait Wait {
    /// Readable (level-triggered) when frames have arrived, when the armed deadline has passed, or
    /// when the waker was written.
    fn handle(&self) -> BorrowedFd<'_>;
    /// Prepares for a wait on `handle`: it becomes readable at `deadline` at the latest, and when
    /// writable if frames wait. False when something has arrived already.
    fn arm(&mut self, deadline: Option<Time>, wants_write: bool) -> bool;
    /// Undoes `arm`, and drains the waker and the timer.
    fn disarm(&mut self);
    /// Prepares once more, since `arm`, for another deadline or wish; with the waker drained if it
    /// is `signalled`. False as for `arm`, but what makes the handle readable anyway need not be
    /// looked for.
    fn rearm(&mut self, deadline: Option<Time>, wants_write: bool, signalled: bool) -> bool {
        if signalled {
            self.disarm();
        }
        self.arm(deadline, wants_write)
    }
    /// Makes the handle give an edge at this time and not before, whatever was armed. The next
    /// `arm` or `rearm` sets the timer anew. False: the link has no timer for that, or the system
    /// refuses.
    fn ring(&mut self, at: Time) -> bool {
        let _ = at;
        false
    }
    /// Chooses whether arriving frames make the handle readable; at first they do. Off while nobody
    /// waits on it, because watching costs time. Returns whether they do now.
    fn watch(&mut self, on: bool) -> bool {
        let _ = on;
        true
    }
    /// An eventfd that is part of `handle`.
    fn waker(&self) -> Arc<OwnedFd>;
}

/// Names of hosts, which are looked up away from the endpoint's lock.
pub trait Names {
    /// As [`Link::resolve`], for a URI that may name its host. `None`: the name is being looked up.
    /// Then the waker is written, and [`Names::next`] gives what was found under `number`.
    ///
    /// # Errors
    ///
    /// As [`Link::resolve`], or nobody can look the name up.
    fn begin(&mut self, uri: &str, number: u64) -> Result<Option<Address>, ConnectError>;
    /// What was found for a name: its number, and the addresses, at least one, or why there is
    /// none. A number comes once.
    fn next(&mut self) -> Option<(u64, Result<Vec<Address>, String>)>;
    /// Cancels the lookup of this name.
    fn forget(&mut self, number: u64);
}

/// Groups of a network, to which one frame goes for all members.
pub trait Groups {
    /// Joins a group: frames to it arrive as `Multicast` with this number.
    ///
    /// # Errors
    ///
    /// Not a group, or the system refuses.
    fn join(&mut self, uri: &str, number: u32) -> Result<(), ConnectError>;
    /// Leaves the group that was joined under this number, if any.
    fn leave(&mut self, number: u32);
    /// The address of a group to send to, with interface and TTL of the URI.
    ///
    /// # Errors
    ///
    /// As [`Groups::join`].
    fn address(&mut self, uri: &str) -> Result<Address, ConnectError>;
}

/// Implements calls of [`Link`] by the same calls of the field `inner`.
macro_rules! forward {
    (shared: $($name:ident($($argument:ident: $kind:ty),*) $(-> $output:ty)?;)+) => {
        $(
            fn $name(&self, $($argument: $kind),*) $(-> $output)? {
                self.inner.$name($($argument),*)
            }
        )+
    };
    (exclusive: $($name:ident($($argument:ident: $kind:ty),*) $(-> $output:ty)?;)+) => {
        $(
            fn $name(&mut self, $($argument: $kind),*) $(-> $output)? {
                self.inner.$name($($argument),*)
            }
        )+
    };
}

/// Implements all calls of [`Link`] by those of the field `inner`, except sending and receiving.
macro_rules! forward_most {
    () => {
        $crate::link::forward! { shared:
            name() -> &'static str;
            uri() -> &str;
            now() -> cci_proto::Time;
            mtu() -> u16;
            base_mtu() -> u16;
            recv_buffer() -> u32;
            path_mtu(to: &cci_proto::Address) -> cci_proto::engine::PathMtu;
            path(to: &cci_proto::Address) -> (String, String);
            write_name(to: &cci_proto::Address, text: &mut dyn std::fmt::Write) -> std::fmt::Result;
            silence(to: &cci_proto::Address) -> Option<String>;
            refusal(to: &cci_proto::Address) -> Option<String>;
            is_virtual() -> bool;
        }
        $crate::link::forward! { exclusive:
            resolve(uri: &str) -> Result<cci_proto::Address, cci_proto::ConnectError>;
            names() -> Option<&mut dyn $crate::Names>;
            groups() -> Option<&mut dyn $crate::Groups>;
            is_writable() -> bool;
        }
    };
}

/// Implements all calls of [`Wait`] by those of the field `inner`, except arming.
macro_rules! forward_wait {
    () => {
        $crate::link::forward! { shared:
            handle() -> std::os::fd::BorrowedFd<'_>;
            waker() -> std::sync::Arc<std::os::fd::OwnedFd>;
        }
        $crate::link::forward! { exclusive:
            disarm();
            ring(at: cci_proto::Time) -> bool;
            watch(on: bool) -> bool;
        }
    };
}

pub(crate) use {forward, forward_most, forward_wait};
