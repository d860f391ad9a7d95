//! The launcher of another host: it reads frames, and ends when its standard input does.

use crate::feed::Feed;
use crate::frames::{Frame, Frames, Kind, emit};
use crate::output::{CHANNELS, Channel};
use crate::polling::{Polling, read};
use crate::signals::Signals;
use crate::site::{Site, Streams, Task, channels, count_of_processors, kill_orphans};
use cci_report::{UserError, while_doing};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{Stdout, stdin, stdout};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

/// How many reads of 64 KiB empty a pipe, which holds 1 MiB at most unless it is given more.
const LAST_READS: usize = 16;

/// What a host is to start.
#[derive(Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) ranks: Vec<u32>,
    pub(crate) task: Task,
}

/// What may be ready.
enum Name {
    Signals,
    Input,
    Output,
    Rank(usize, Channel),
    RankInput(usize),
    Store(u32),
    StoreRoom(u32),
}

struct Remote {
    signals: Signals,
    frames: Frames,
    output: Feed<Stdout>,
    site: Site,
    /// Connections of ranks to the store.
    stores: BTreeMap<u32, Feed<UnixStream>>,
    is_input_open: bool,
}

/// Serves a launcher on another host by standard input and output, until all ranks have ended or
/// the input does.
///
/// # Errors
///
/// The system refuses, or the input is none of a launcher.
pub fn remote() -> Result<(), UserError> {
    let mut remote = Remote {
        signals: Signals::watch()?,
        frames: Frames::default(),
        output: Feed::new(stdout()),
        site: Site::default(),
        stores: BTreeMap::new(),
        is_input_open: true,
    };
    let served = remote.serve();
    remote.site.signal(Signal::KILL);
    kill_orphans()?;
    served
}

impl Remote {
    fn serve(&mut self) -> Result<(), UserError> {
        while self.is_input_open && self.output.open().is_some() {
            for name in self.polling().wait(None)? {
                self.handle(name)?;
            }
        }
        Ok(())
    }

    fn polling(&self) -> Polling<'_, Name> {
        let mut polling = Polling::new();
        polling.read(Some(self.signals.as_fd()), Name::Signals);
        polling.read(Some(rustix::stdio::stdin()), Name::Input);
        polling.write(self.output.waits(), Name::Output);
        let has_room = self.output.has_room();
        for (at, process) in self.site.processes.iter().enumerate() {
            for (channel, from) in channels(process).filter(|_| has_room) {
                polling.read(Some(from), Name::Rank(at, channel));
            }
            polling.write(process.input.as_ref().and_then(Feed::waits), Name::RankInput(at));
        }
        for (rank, store) in &self.stores {
            polling.read(store.open().filter(|_| has_room), Name::Store(*rank));
            polling.write(store.waits(), Name::StoreRoom(*rank));
        }
        polling
    }

    fn handle(&mut self, name: Name) -> Result<(), UserError> {
        match name {
            Name::Signals => self.take_signals(),
            Name::Input => return self.take_input(),
            Name::Output => self.output.flush(),
            Name::Rank(at, channel) => self.take_output(at, channel),
            Name::RankInput(at) => self.site.processes[at].input.iter_mut().for_each(Feed::flush),
            Name::Store(rank) => self.take_store(rank),
            Name::StoreRoom(rank) => self.stores.get_mut(&rank).into_iter().for_each(Feed::flush),
        }
        Ok(())
    }

    /// A signal other than that of children ends this launcher.
    fn take_signals(&mut self) {
        let ends = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT];
        if self.signals.take().iter().any(|signal| ends.contains(signal)) {
            self.is_input_open = false;
        }
        for (rank, end) in self.site.reap().0 {
            self.take_last_output(rank);
            self.output.push(&emit(Kind::Ended, rank, &end.emit()));
        }
    }

    fn take_input(&mut self) -> Result<(), UserError> {
        let Some(bytes) = read(stdin().as_fd()) else { return Ok(()) };
        self.is_input_open = !bytes.is_empty();
        self.frames.push(&bytes);
        loop {
            match self.frames.next() {
                Ok(Some(frame)) => self.obey(&frame)?,
                Ok(None) => return Ok(()),
                Err(_) => {
                    return Err(UserError::new("standard input is not that of cci run; start ranks by cci run -H"));
                }
            }
        }
    }

    fn obey(&mut self, frame: &Frame) -> Result<(), UserError> {
        match frame.kind {
            Kind::Start => return self.start(&frame.bytes),
            Kind::Store => self.stores.get_mut(&frame.rank).into_iter().for_each(|store| store.push(&frame.bytes)),
            Kind::StoreEnd => self.stores.get_mut(&frame.rank).into_iter().for_each(Feed::end),
            Kind::Signal => self.signal(&frame.bytes),
            Kind::Input => self.feed(&frame.bytes),
            Kind::Output | Kind::Errors | Kind::Ready | Kind::Ended => (),
        }
        Ok(())
    }

    fn start(&mut self, plan: &[u8]) -> Result<(), UserError> {
        let plan: Plan =
            serde_json::from_slice(plan).map_err(while_doing("the other launcher is of another version"))?;
        let streams = Streams { are_outputs_piped: true, is_input_piped: true };
        let (site, ends) = Site::start(&plan.task, &plan.ranks, streams)?;
        self.site = site;
        for (rank, end) in plan.ranks.iter().zip(ends) {
            end.set_nonblocking(true).map_err(while_doing("cannot connect a rank"))?;
            self.stores.insert(*rank, Feed::new(end));
        }
        self.output.push(&emit(Kind::Ready, 0, &count_of_processors().to_le_bytes()));
        // What could not be started gives no signal.
        self.take_signals();
        Ok(())
    }

    fn signal(&self, bytes: &[u8]) {
        let number = bytes.try_into().map(i32::from_le_bytes).ok();
        if let Some(signal) = number.and_then(Signal::from_named_raw) {
            self.site.signal(signal);
        }
    }

    /// Gives rank 0 its input; nothing is the end of it.
    fn feed(&mut self, bytes: &[u8]) {
        for input in self.site.processes.iter_mut().filter_map(|process| process.input.as_mut()) {
            if bytes.is_empty() { input.end() } else { input.push(bytes) }
        }
    }

    fn take_output(&mut self, at: usize, channel: Channel) {
        let process = &mut self.site.processes[at];
        let Some(bytes) = process.output(channel).and_then(read) else { return };
        if bytes.is_empty() {
            process.close(channel);
        }
        let kind = if channel == Channel::Output { Kind::Output } else { Kind::Errors };
        self.output.push(&emit(kind, process.rank, &bytes));
    }

    /// Takes what a rank wrote before it ended; what it has left behind may write more, which goes
    /// the usual way.
    fn take_last_output(&mut self, rank: u32) {
        let Some(at) = self.site.processes.iter().position(|process| process.rank == rank) else { return };
        for channel in CHANNELS {
            // A pipe holds no more than this reads.
            for _ in 0..LAST_READS {
                self.take_output(at, channel);
            }
        }
    }

    fn take_store(&mut self, rank: u32) {
        let Some(bytes) = self.stores.get(&rank).and_then(Feed::open).and_then(read) else { return };
        if bytes.is_empty() {
            self.stores.remove(&rank);
            self.output.push(&emit(Kind::StoreEnd, rank, &[]));
        } else {
            self.output.push(&emit(Kind::Store, rank, &bytes));
        }
    }
}
