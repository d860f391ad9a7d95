//! What the launcher waits for, and what it does with each.

use super::state::Launcher;
use crate::end::End;
use crate::feed::Feed;
use crate::frames::{Frame, Kind};
use crate::host::RemoteHost;
use crate::mpi::{MpiServer, Trace};
use crate::output::{CHANNELS, Channel};
use crate::polling::{Polling, read};
use crate::site::channels;
use cci_report::{UserError, while_doing};
use rustix::process::Signal;
use std::io::stdin;
use std::os::fd::AsFd;

/// What may be ready.
pub(super) enum Name {
    Signals,
    Server,
    Terminal,
    Room(Channel),
    Rank(usize, Channel),
    RankInput(usize),
    Host(usize),
    HostRoom(usize),
    Bridge(usize, u32),
    BridgeRoom(usize, u32),
    Pmi(u32),
    PmiRoom(u32),
    Trace,
}

impl Launcher {
    pub(super) fn polling(&self) -> Polling<'_, Name> {
        let mut polling = self.polling_output();
        polling.read(Some(self.signals.as_fd()), Name::Signals);
        polling.read(Some(self.server.as_fd()), Name::Server);
        polling.read(self.copies_input.then(rustix::stdio::stdin).filter(|_| self.takes_input()), Name::Terminal);
        for (at, process) in self.site.processes.iter().enumerate() {
            polling.write(process.input.as_ref().and_then(Feed::waits), Name::RankInput(at));
        }
        for (rank, connection, is_read) in self.mpi.iter().flat_map(MpiServer::connections) {
            polling.read(connection.open().filter(|_| is_read), Name::Pmi(rank));
            polling.write(connection.waits(), Name::PmiRoom(rank));
        }
        polling.write(self.mpi.as_ref().and_then(|mpi| mpi.trace.as_ref()?.waits()), Name::Trace);
        for (at, host) in self.hosts.iter().enumerate() {
            // Also while output waits: the store of a job goes this way, and the ends of ranks.
            polling.read(host.from(), Name::Host(at));
            polling.write(host.waits(), Name::HostRoom(at));
            for (rank, bridge) in &host.bridges {
                polling.read(bridge.open().filter(|_| host.has_room()), Name::Bridge(at, *rank));
                polling.write(bridge.waits(), Name::BridgeRoom(at, *rank));
            }
        }
        polling
    }

    /// What ranks of this host write, and where it goes.
    pub(super) fn polling_output(&self) -> Polling<'_, Name> {
        let mut polling = Polling::new();
        for channel in CHANNELS {
            polling.write(self.output.waits(channel), Name::Room(channel));
        }
        for (at, process) in self.site.processes.iter().enumerate().filter(|_| self.output.has_room()) {
            for (channel, from) in channels(process).filter(|(at, _)| !self.output.is_full(process.rank, *at)) {
                polling.read(Some(from), Name::Rank(at, channel));
            }
        }
        polling
    }

    /// Whether what rank 0 is to read has room.
    fn takes_input(&self) -> bool {
        let here = self.site.processes.first().filter(|process| process.rank == 0);
        match here {
            Some(process) => process.input.as_ref().is_some_and(|input| input.open().is_some() && input.has_room()),
            None => self.hosts.iter().any(|host| host.running.contains(&0) && host.takes_input()),
        }
    }

    pub(super) fn handle(&mut self, name: Name) -> Result<(), UserError> {
        match name {
            Name::Signals => self.take_signals(),
            Name::Server => (),
            Name::Terminal => self.take_input(),
            Name::Room(channel) => self.output.flush(channel),
            Name::Rank(at, channel) => self.take_output(at, channel),
            Name::RankInput(at) => self.site.processes[at].input.iter_mut().for_each(Feed::flush),
            Name::Host(at) => return self.take_frames(at),
            Name::HostRoom(at) => self.hosts[at].to().flush(),
            Name::Bridge(at, rank) => self.take_store(at, rank),
            Name::BridgeRoom(at, rank) => {
                self.hosts[at].bridges.get_mut(&rank).into_iter().for_each(Feed::flush);
            }
            Name::Pmi(rank) => self.mpi.iter_mut().for_each(|mpi| mpi.take(rank)),
            Name::PmiRoom(rank) => self.mpi.iter_mut().for_each(|mpi| mpi.flush(rank)),
            Name::Trace => {
                self.mpi.iter_mut().filter_map(|mpi| mpi.trace.as_mut()).for_each(Trace::flush);
            }
        }
        Ok(())
    }

    fn take_output(&mut self, at: usize, channel: Channel) {
        let process = &mut self.site.processes[at];
        let Some(bytes) = process.output(channel).and_then(read) else { return };
        if bytes.is_empty() {
            process.close(channel);
        }
        self.output.take(process.rank, channel, &bytes);
    }

    /// Has ranks get SIGPIPE where nobody reads what they write, as if they wrote to him.
    pub(super) fn close_unread(&mut self) {
        for (channel, kind) in CHANNELS.into_iter().zip([Kind::Output, Kind::Errors]) {
            if self.output.is_closed(channel) && !std::mem::replace(&mut self.are_closed[channel as usize], true) {
                self.site.processes.iter_mut().for_each(|process| process.close(channel));
                self.hosts.iter_mut().for_each(|host| host.send(kind, 0, &[]));
            }
        }
    }

    /// Has other hosts not read the ranks whose text has to wait here, and go on with the others.
    /// While the output has no room these are all ranks, until half of it has left.
    pub(super) fn pause_ranks(&mut self) {
        let is_held = self.output.hold();
        let mut full: std::collections::BTreeSet<_> = self.output.full().collect();
        if is_held {
            // What a rank that has ended left behind may still write.
            let elsewhere = self.hosts.iter().flat_map(RemoteHost::ranks);
            full.extend(elsewhere.flat_map(|rank| CHANNELS.map(|channel| (*rank, channel))));
        }
        for (ranks, kind) in [(&full - &self.paused, Kind::Pause), (&self.paused - &full, Kind::Resume)] {
            for (rank, channel) in ranks {
                self.hosts.iter_mut().filter(|host| host.has(rank)).for_each(|host| {
                    host.send(kind, rank, &[channel as u8]);
                });
            }
        }
        self.paused = full;
    }

    /// Copies standard input to rank 0.
    fn take_input(&mut self) {
        let Some(bytes) = read(stdin().as_fd()) else { return };
        self.copies_input = !bytes.is_empty();
        for input in self.site.processes.iter_mut().filter_map(|process| process.input.as_mut()) {
            if bytes.is_empty() { input.end() } else { input.push(&bytes) }
        }
        if let Some(host) = self.hosts.iter_mut().find(|host| host.running.contains(&0)) {
            host.send_input(&bytes);
        }
    }

    fn take_store(&mut self, at: usize, rank: u32) {
        let host = &mut self.hosts[at];
        let Some(bytes) = host.bridges.get(&rank).and_then(Feed::open).and_then(read) else { return };
        if bytes.is_empty() {
            host.bridges.remove(&rank);
            host.send(Kind::StoreEnd, rank, &[]);
        } else {
            host.send(Kind::Store, rank, &bytes);
        }
    }

    fn take_frames(&mut self, at: usize) -> Result<(), UserError> {
        let mut frames = std::mem::take(self.hosts[at].frames());
        let Some(length) = self.hosts[at].from().and_then(|from| frames.read(from)) else {
            *self.hosts[at].frames() = frames;
            return Ok(());
        };
        if length == 0 {
            self.lose(at, "its launcher has gone; see what it has written");
            return Ok(());
        }
        loop {
            match frames.next() {
                Ok(Some(frame)) => self.take_frame(at, &frame)?,
                Ok(None) => break,
                Err(_) => {
                    self.lose(at, "it writes something else than cci run; see that its shell prints nothing");
                    return Ok(());
                }
            }
        }
        *self.hosts[at].frames() = frames;
        Ok(())
    }

    fn take_frame(&mut self, at: usize, frame: &Frame<'_>) -> Result<(), UserError> {
        let (host, rank) = (&mut self.hosts[at], frame.rank);
        match frame.kind {
            Kind::Ready => {
                let processors = frame.bytes.try_into().map_or(1, u32::from_le_bytes);
                let ready = host.ready(&mut self.server, processors);
                ready.map_err(while_doing("cannot serve a rank; raise ulimit -n"))?;
            }
            Kind::Store => host.bridges.get_mut(&rank).into_iter().for_each(|bridge| bridge.push(frame.bytes)),
            Kind::StoreEnd => drop(host.bridges.remove(&rank)),
            Kind::Pmi | Kind::PmiEnd => {
                let mpi = self.mpi.as_mut().filter(|_| host.has(rank));
                mpi.into_iter().for_each(|mpi| match frame.kind {
                    Kind::Pmi => mpi.handle_bytes(rank, frame.bytes),
                    _ => mpi.handle_left(rank),
                });
            }
            Kind::Output => self.output.take(rank, Channel::Output, frame.bytes),
            Kind::Errors => self.output.take(rank, Channel::Errors, frame.bytes),
            // What rank 0 does not read is left to who reads standard input next.
            Kind::Input => self.copies_input = false,
            Kind::Taken => host.take_credit(frame.bytes.try_into().map_or(0, u32::from_le_bytes)),
            Kind::Ended => {
                if host.running.remove(&rank) {
                    let end = End::parse(frame.bytes).unwrap_or(End::Status(1));
                    self.ended(rank, &end);
                }
            }
            Kind::Start | Kind::Signal | Kind::Pause | Kind::Resume => (),
        }
        Ok(())
    }

    fn take_signals(&mut self) {
        for signal in self.signals.take() {
            match signal {
                Signal::CHILD => self.take_ends(),
                Signal::TSTP => self.stop(),
                Signal::USR1 | Signal::USR2 | Signal::CONT => self.signal(signal),
                signal => self.interrupt(signal),
            }
        }
    }
}
