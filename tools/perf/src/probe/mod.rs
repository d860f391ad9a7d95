//! Bare operations to compare with, and the few other things that need raw memory.
//!
//! A probe does with two processes and bare shared memory what a measurement does through the
//! library, without anything that a library must do: no lengths, no connections, no events. Its
//! time is the floor that ratios are taken over.
#![allow(unsafe_code)]

pub(crate) mod buffer;
mod copying;
mod futex;
mod lines;
mod network;
pub(crate) mod shared;
mod side;
mod stores;
mod stream;
pub(crate) mod ticks;
mod touch;
mod wake;

use buffer::Buffer;
use cci_report::names::ProbeKind;
use shared::Shared;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

/// Has what this command starts inherit the descriptors of a probe, which every other program finds
/// closed.
pub(crate) fn pass_on(command: &mut Command, memory: &Shared, wake: &WakePair) {
    let [client, server] = wake.numbers();
    let numbers = [memory.number(), client, server];
    let prepared = move || {
        numbers.into_iter().try_for_each(|number| {
            // SAFETY: the caller keeps it open until the command has been started.
            let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
            Ok(rustix::io::fcntl_setfd(descriptor, rustix::io::FdFlags::empty())?)
        })
    };
    // SAFETY: between fork and exec it makes system calls and touches no memory but its own.
    unsafe { command.pre_exec(prepared) };
}

/// One side of every probe. Both sides run the same blocks in the same order, so that their
/// sequence numbers agree.
pub(crate) struct Probe {
    shared: Shared,
    wake: wake::Pair,
    side: Side,
    lines: lines::Turn,
    ring: u64,
    pipe: u64,
    network: network::Network,
    stream: stream::Stream,
    /// Memory of this process only, grown as sizes ask for it.
    private: Buffer,
    /// Mapped like the library's memory: source and target of the memcpy probe.
    mapped: Option<[Shared; 2]>,
    /// What other processes of the run show of their memory.
    pub(crate) remote: Option<Remote>,
}

impl Probe {
    /// A side, over memory and descriptors that the parent passed on.
    pub(crate) fn new(shared: Shared, wake: wake::Pair, side: Side) -> Self {
        Self {
            shared,
            wake,
            side,
            lines: lines::Turn::default(),
            ring: 0,
            pipe: 0,
            network: network::Network::default(),
            stream: stream::Stream::default(),
            private: Buffer::empty(),
            mapped: None,
            remote: None,
        }
    }

    /// Whether a block of this kind needs the server to take part.
    pub(crate) fn needs_server(kind: ProbeKind) -> bool {
        !matches!(kind, ProbeKind::Memcpy | ProbeKind::ProcessVm)
    }

    /// Gets the memory that blocks of this size need, so that no block pays for it.
    pub(crate) fn prepare(&mut self, kind: ProbeKind, size: u64) -> io::Result<()> {
        let size = usize::try_from(size).map_err(|_| io::ErrorKind::OutOfMemory)?.max(1);
        if kind == ProbeKind::Copy && size > shared::LARGEST_COPY {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("the copy probe takes at most {} bytes", shared::LARGEST_COPY),
            ));
        }
        let memory = if kind.is_network() { size.max(network::LEAST_MEMORY) } else { size };
        if self.private.len() < memory {
            self.private = Buffer::new(memory)?;
        }
        self.network.prepare(&self.shared, self.side, kind, size)?;
        if stream::is_stream(kind) {
            self.stream.prepare(&self.shared, self.side)?;
        }
        if kind == ProbeKind::Memcpy && self.mapped.as_ref().is_none_or(|[source, _]| source.len() < size) {
            let mapped = [Shared::create(size)?, Shared::create(size)?];
            mapped.iter().for_each(Shared::fill);
            self.mapped = Some(mapped);
        }
        Ok(())
    }

    /// Runs a block and says how long it took on this side.
    pub(crate) fn run(&mut self, kind: ProbeKind, size: u64, count: u64) -> io::Result<Duration> {
        self.prepare(kind, size)?;
        let size = usize::try_from(size).map_err(|_| io::ErrorKind::OutOfMemory)?;
        self.network.exchange_addresses(&self.shared, self.side, kind)?;
        if stream::is_stream(kind) {
            self.stream.connect(&self.shared, self.side)?;
        }
        let begin = Instant::now();
        let amount = network::Amount { size, count };
        match kind {
            ProbeKind::Line => lines::ping(&self.shared, self.side, &mut self.lines, count),
            ProbeKind::Copy => {
                copying::ping(&self.shared, self.side, &mut self.lines, &self.private, size, count);
            }
            ProbeKind::Ring => lines::ring::<false>(&self.shared, self.side, &mut self.ring, size, count),
            ProbeKind::LockedRing => lines::ring::<true>(&self.shared, self.side, &mut self.ring, size, count),
            ProbeKind::Pipe => copying::pipe(&self.shared, self.side, &mut self.pipe, &self.private, size, count),
            ProbeKind::Memcpy => {
                if let Some([source, target]) = &self.mapped {
                    copying::memcpy(source, target, size, count);
                }
            }
            ProbeKind::ProcessVm => {
                let remote = self.remote.ok_or(io::ErrorKind::NotConnected)?;
                copying::process_vm(remote, &self.private, size, count)?;
            }
            ProbeKind::Wake => self.wake.ping(self.side, count)?,
            ProbeKind::Udp => self.network.exchange(self.side, &mut self.private, size, count, false)?,
            ProbeKind::UdpWake => self.network.exchange(self.side, &mut self.private, size, count, true)?,
            ProbeKind::UdpMessages | ProbeKind::UdpStream => {
                self.network.stream(&self.shared, self.side, &mut self.private, kind, amount)?;
            }
            ProbeKind::Tcp => self.network.tcp(&self.shared, self.side, &mut self.private, amount)?,
            ProbeKind::TcpPing => self.stream.exchange(self.side, &mut self.private, size, count, false)?,
            ProbeKind::TcpWake => self.stream.exchange(self.side, &mut self.private, size, count, true)?,
            ProbeKind::TcpMessages | ProbeKind::TcpStream => {
                self.stream.one_way(&self.shared, self.side, &mut self.private, amount)?;
            }
        }
        Ok(begin.elapsed())
    }

    /// Memory that both sides store into and poll. No block runs meanwhile.
    pub(crate) fn stores(&self) -> Stores<'_> {
        Stores::new(&self.shared, self.side)
    }

    /// Two wake-ups of sleeping processes, there and back, by words that both have mapped: so many
    /// times, and each time after a pause in which the server has gone to sleep. Returns how long
    /// each took, at the client.
    pub(crate) fn wake_by_futexes(&self, count: usize, pause: Duration) -> io::Result<Vec<Duration>> {
        futex::exchange(&self.shared, self.side, count, pause)
    }

    /// Computes without touching the library until the client says that its block has ended.
    pub(crate) fn compute(&self, block: u64) {
        let stop = self.shared.word(shared::STOP);
        let mut value = block;
        while stop.load(std::sync::atomic::Ordering::Acquire) < block {
            for _ in 0..1000 {
                value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            }
            std::hint::black_box(value);
        }
    }

    /// Ends [`Probe::compute`] at the other side.
    pub(crate) fn stop_computing(&self, block: u64) {
        self.shared.word(shared::STOP).store(block, std::sync::atomic::Ordering::Release);
    }
}

#[cfg(test)]
mod tests;

pub(crate) use copying::Remote;
pub(crate) use side::Side;
pub(crate) use stores::Stores;
pub(crate) use stream::set_up;
pub(crate) use touch::{sum, touch};
pub(crate) use wake::{NAP, Pair as WakePair};
