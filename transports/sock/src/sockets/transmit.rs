//! Sending: which frames leave together, and what an error of the system means.

use super::refusals::{Meaning, Refusals, meaning};
use super::reports::Reports;
use crate::sys::{Naming, RUNS, Run, SendBatch, VECTORS};
use cci_proto::{Address, Time};
use cci_reliable::Outgoing;
use cci_transport::monotonic;
use rustix::fd::BorrowedFd;
use rustix::io::Errno;

/// Frames that the kernel cuts out of one datagram: its limit before Linux 6.9.
const SEGMENTS: usize = 64;
/// Bytes of a datagram that the kernel cuts: an IPv4 packet less its headers.
const MAX_RUN: usize = 65_507;
/// Destinations without segmentation offload that are remembered.
const REMEMBERED: usize = 16;
/// How often a call is repeated that meets other datagrams' errors.
const MOST_REPEATS: u32 = 16;
/// How long a full queue of an interface is left alone, microseconds: 1,500 bytes take 12 µs at 1
/// Gb/s.
const PAUSE: u64 = 100;

/// What sends. The system, except in tests of what happens when it refuses.
pub(super) trait Kernel {
    /// Sends runs of frames; returns how many runs it took.
    fn send(
        &mut self,
        socket: BorrowedFd<'_>,
        frames: &[Outgoing<'_>],
        runs: &[Run],
        naming: Naming,
    ) -> Result<usize, Errno>;
}

impl Kernel for SendBatch {
    #[inline]
    fn send(
        &mut self,
        socket: BorrowedFd<'_>,
        frames: &[Outgoing<'_>],
        runs: &[Run],
        naming: Naming,
    ) -> Result<usize, Errno> {
        Self::send(self, socket, frames, runs, naming)
    }
}

/// Why nothing can be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blocked {
    /// The socket's buffer is full: the socket becomes writable when it has room.
    Buffer,
    /// The interface's queue is full. No descriptor reports room, so the call is retried at this
    /// time.
    Queue(Time),
}

/// What was sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sent {
    pub(super) frames: u64,
    /// What they left in: one for each run.
    pub(super) datagrams: u64,
    pub(super) calls: u64,
    pub(super) segmented: u64,
    pub(super) lost: u64,
    /// Frames that left by the connected socket.
    pub(super) connected: u64,
}

/// What came of frames for a connected socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BurstOutcome {
    pub(super) taken: usize,
    /// A call took less than it was given, and the kernel has swallowed why: it may have been the
    /// error of an earlier datagram.
    pub(super) is_cut_short: bool,
    /// What the rest met.
    pub(super) met: Result<(), Errno>,
}

/// Sends frames.
pub(super) struct Transmitter<K = SendBatch> {
    kernel: K,
    runs: Vec<Run>,
    /// Why the kernel is not asked to cut datagrams, if so.
    pub(super) no_offload: Option<String>,
    off: Off,
    pub(super) blocked: Option<Blocked>,
    pub(super) sent: Sent,
    /// What the system has refused.
    pub(super) refusals: Refusals,
}

impl<K: Kernel> Transmitter<K> {
    pub(super) fn new(kernel: K, no_offload: Option<String>) -> Self {
        let runs = Vec::with_capacity(RUNS);
        let (off, sent, refusals) = (Off::default(), Sent::default(), Refusals::default());
        Self { kernel, runs, no_offload, off, blocked: None, sent, refusals }
    }

    /// Sends frames in order; returns how many were taken, those among them that were lost.
    pub(super) fn send(&mut self, socket: BorrowedFd<'_>, frames: &[Outgoing<'_>], reports: &mut Reports) -> usize {
        self.blocked = None;
        if frames.len() == 1 && self.send_single(socket, frames, reports) {
            return 1;
        }
        let mut failure = RunFailure::default();
        let mut taken = 0;
        while taken < frames.len() {
            let rest = &frames[taken..];
            self.plan(rest, failure.suspect.is_some());
            self.sent.calls += 1;
            match self.kernel.send(socket, rest, &self.runs, Naming::Each) {
                Ok(0) => {
                    self.blocked = Some(Blocked::Buffer);
                    break;
                }
                Ok(count) => {
                    if let Some(error) = failure.suspect.filter(|error| *error != Errno::FAULT) {
                        // The same frame leaves when it is alone: cutting is at fault.
                        self.off.insert(&rest[0].to, error);
                    }
                    failure = RunFailure::default();
                    // The rest met an error that the kernel has swallowed. If it was an earlier
                    // datagram's, nobody else tells of it.
                    reports.pending |= count < self.runs.len();
                    taken += self.count_sent(count);
                }
                Err(error) => match self.on_error(error, &mut failure, rest, reports) {
                    Some(lost) => taken += lost,
                    None => break,
                },
            }
        }
        taken
    }

    /// Sends frames in order by a socket that is connected to where all of them go.
    pub(super) fn send_connected(&mut self, socket: BorrowedFd<'_>, frames: &[Outgoing<'_>]) -> BurstOutcome {
        let mut passed = BurstOutcome { taken: 0, is_cut_short: false, met: Ok(()) };
        while passed.taken < frames.len() {
            let rest = &frames[passed.taken..];
            self.plan(rest, false);
            self.sent.calls += 1;
            match self.kernel.send(socket, rest, &self.runs, Naming::Connected) {
                Ok(count) if count > 0 => {
                    passed.is_cut_short |= count < self.runs.len();
                    passed.taken += self.count_sent(count);
                }
                other => {
                    passed.met = other.and(Err(Errno::AGAIN));
                    break;
                }
            }
        }
        passed
    }

    /// There is no room, and no descriptor reports when there is.
    pub(super) fn pause(&mut self) {
        self.blocked = Some(Blocked::Queue(monotonic().plus_micros(PAUSE)));
    }

    /// Sends one frame. False: an error, of this frame or an earlier one; the way of many finds
    /// out.
    #[inline]
    fn send_single(&mut self, socket: BorrowedFd<'_>, frame: &[Outgoing<'_>], reports: &mut Reports) -> bool {
        self.sent.calls += 1;
        let is_sent = match self.kernel.send(socket, frame, &[Run { first: 0, count: 1, segment: 0 }], Naming::Each) {
            Ok(count) => count > 0,
            Err(error) => {
                // The call has taken away what may be an earlier datagram's, which the queue of
                // errors tells.
                reports.pending |= error != Errno::INTR && !is_want_of_room(error);
                false
            }
        };
        self.sent.frames += u64::from(is_sent);
        self.sent.datagrams += u64::from(is_sent);
        is_sent
    }

    /// Frames of the first runs, which were sent.
    fn count_sent(&mut self, runs: usize) -> usize {
        let mut frames = 0;
        for run in self.runs.iter().take(runs) {
            frames += run.count;
            if run.segment > 0 {
                self.sent.segmented += run.count as u64;
            }
        }
        self.sent.frames += frames as u64;
        self.sent.datagrams += runs as u64;
        frames
    }

    /// What an error means for the first run: so many frames are lost (0: try again), or nothing
    /// can be sent now.
    #[cold]
    fn on_error(
        &mut self,
        error: Errno,
        failure: &mut RunFailure,
        frames: &[Outgoing<'_>],
        reports: &mut Reports,
    ) -> Option<usize> {
        match error {
            Errno::INTR => return Some(0),
            Errno::AGAIN => {
                self.blocked = Some(Blocked::Buffer);
                return None;
            }
            Errno::NOBUFS | Errno::NOMEM => {
                self.pause();
                return None;
            }
            _ => {}
        }
        // It may be the error of an earlier datagram, for the next call. The call has taken it
        // away, so it is repeated; what comes again is this datagram's. "Refused" never is: nobody
        // has looked at this datagram yet.
        reports.pending = true;
        failure.errors += 1;
        if error == Errno::CONNREFUSED {
            return (failure.errors < MOST_REPEATS).then_some(0);
        }
        if failure.last != Some(error) && failure.errors < MOST_REPEATS {
            failure.last = Some(error);
            return Some(0);
        }
        let run = self.runs.first()?;
        // Cutting may be at fault, or the memory of one of the frames.
        if run.segment > 0 && matches!(error, Errno::IO | Errno::INVAL | Errno::MSGSIZE | Errno::FAULT) {
            *failure = RunFailure { suspect: Some(error), ..RunFailure::default() };
            return Some(0);
        }
        if let (Errno::FAULT, Some(piece)) = (error, frames[0].piece) {
            reports.add_fault(piece.span());
        }
        match error {
            Errno::FAULT => {}
            Errno::MSGSIZE => reports.add_oversized(&frames[0]),
            _ => {
                let call = SendBatch::call(frames, &self.runs);
                reports.is_down |= self.refusals.record(call, error, &frames[0].to, self.sent.frames);
                if meaning(error) == Meaning::Unreachable {
                    reports.add_unreachable(&frames[0]);
                }
            }
        }
        *failure = RunFailure::default();
        self.sent.lost += run.count as u64;
        Some(run.count)
    }

    /// Groups the first frames into runs, in order. `alone`: the first frame only.
    fn plan(&mut self, frames: &[Outgoing<'_>], alone: bool) {
        self.runs.clear();
        let frames = if alone { &frames[..1] } else { frames };
        let (mut first, mut vectors) = (0, 0);
        while first < frames.len() && self.runs.len() < RUNS {
            let (run, used) = self.run(frames, first, VECTORS - vectors);
            if run.count == 0 {
                break;
            }
            self.runs.push(run);
            first += run.count;
            vectors += used;
        }
    }

    /// The run that begins at `first`, and how many pieces of memory it consists of, at most
    /// `room`.
    fn run(&self, frames: &[Outgoing<'_>], first: usize, room: usize) -> (Run, usize) {
        let start = &frames[first];
        let segment = len(start);
        if room < 2 {
            return (Run { first, count: 0, segment: 0 }, 0);
        }
        let mut run = Run { first, count: 1, segment: 0 };
        let mut used = 2;
        let may_follow = frames.get(first + 1).is_some_and(|next| next.to == start.to && !next.probe);
        if !may_follow || start.probe || self.no_offload.is_some() || segment == 0 || self.off.has(&start.to) {
            return (run, used);
        }
        let mut total = segment;
        for next in frames[first + 1..].iter().take(SEGMENTS - 1) {
            let bytes = len(next);
            let fits = bytes != 0 && bytes <= segment && total + bytes <= MAX_RUN && used + 2 <= room;
            if next.to != start.to || next.probe || !fits {
                break;
            }
            run.count += 1;
            used += 2;
            total += bytes;
            // A shorter frame is the last that the kernel can cut off.
            if bytes < segment {
                break;
            }
        }
        if run.count > 1 {
            run.segment = u16::try_from(segment).unwrap_or(u16::MAX);
        }
        (run, used)
    }

    /// Why frames to this address are not cut by the kernel.
    pub(super) fn why_not(&self, to: &Address) -> Option<String> {
        self.no_offload.clone().or_else(|| {
            self.off
                .why(to)
                .map(|error| format!("the system refused it on the way there ({})", std::io::Error::from(error)))
        })
    }
}

/// Whether the error means only that the system has no room for a datagram now.
pub(super) fn is_want_of_room(error: Errno) -> bool {
    matches!(error, Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM)
}

/// Bytes of a frame.
#[inline]
fn len(frame: &Outgoing<'_>) -> usize {
    frame.head.len() + frame.piece.map_or(0, |piece| piece.len())
}

/// What has gone wrong with the first run so far.
#[derive(Clone, Copy, Debug, Default)]
struct RunFailure {
    errors: u32,
    last: Option<Errno>,
    /// A run was refused with this; its first frame is tried alone.
    suspect: Option<Errno>,
}

/// Hosts that frames cannot be sent to in one datagram to be cut. Of bounded size: the oldest is
/// forgotten, and found out again.
#[derive(Debug, Default)]
struct Off {
    hosts: [Option<(Address, Errno)>; REMEMBERED],
    next: usize,
    any: bool,
}

impl Off {
    /// A way depends on the host, not on the port.
    fn host(to: &Address) -> Address {
        let mut host = *to;
        host.0[16..20].fill(0);
        host
    }

    fn insert(&mut self, to: &Address, error: Errno) {
        self.hosts[self.next] = Some((Self::host(to), error));
        self.next = (self.next + 1) % REMEMBERED;
        self.any = true;
    }

    #[inline]
    fn has(&self, to: &Address) -> bool {
        self.any && self.why(to).is_some()
    }

    fn why(&self, to: &Address) -> Option<Errno> {
        let host = Self::host(to);
        self.hosts.iter().flatten().find(|(other, _)| *other == host).map(|(_, error)| *error)
    }
}

#[cfg(test)]
mod tests;
