//! The launcher of another host: it reads frames, and ends when its standard input does.

use crate::end::End;
use crate::feed::{Feed, MOST};
use crate::frames::{Frame, Frames, Kind, send};
use crate::output::{CHANNELS, Channel};
use crate::polling::{Polling, read};
use crate::signals::Signals;
use crate::site::{Site, Streams, Task, channels, count_of_processors, kill_orphans};
use cci_report::{UserError, while_doing};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
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
    Pmi(u32),
    PmiRoom(u32),
}

struct Remote {
    signals: Signals,
    frames: Frames,
    output: Feed<Stdout>,
    site: Site,
    /// Connections of ranks to the store.
    stores: BTreeMap<u32, Feed<UnixStream>>,
    /// Connections of ranks of an MPI to its process manager.
    pmis: BTreeMap<u32, Feed<UnixStream>>,
    is_input_open: bool,
    /// How many bytes of rank 0's input it has not taken, or are not yet reported.
    input: usize,
    /// Ranks that have ended, whose last output is still to be read.
    ended: VecDeque<(u32, End)>,
    /// What is not read, because the launcher keeps enough of it.
    paused: BTreeSet<(u32, Channel)>,
}

/// How many bytes rank 0 takes between two reports: the launcher always has leave to send more.
const REPORT: usize = MOST / 4;

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
        output: Feed::shared(stdout()),
        site: Site::default(),
        stores: BTreeMap::new(),
        pmis: BTreeMap::new(),
        is_input_open: true,
        input: 0,
        ended: VecDeque::new(),
        paused: BTreeSet::new(),
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
            self.report_ends();
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
            let is_read = |channel| has_room && !self.paused.contains(&(process.rank, channel));
            for (channel, from) in channels(process).filter(|(channel, _)| is_read(*channel)) {
                polling.read(Some(from), Name::Rank(at, channel));
            }
            polling.write(process.input.as_ref().and_then(Feed::waits), Name::RankInput(at));
        }
        for (rank, store) in &self.stores {
            polling.read(store.open().filter(|_| has_room), Name::Store(*rank));
            polling.write(store.waits(), Name::StoreRoom(*rank));
        }
        for (rank, pmi) in &self.pmis {
            // Who does not take its answers asks nothing more.
            polling.read(pmi.open().filter(|_| has_room && pmi.has_room()), Name::Pmi(*rank));
            polling.write(pmi.waits(), Name::PmiRoom(*rank));
        }
        polling
    }

    fn handle(&mut self, name: Name) -> Result<(), UserError> {
        match name {
            Name::Signals => self.take_signals(),
            Name::Input => return self.take_input(),
            Name::Output => self.output.flush(),
            Name::Rank(at, channel) => self.take_output(at, channel),
            Name::RankInput(at) => {
                let process = self.site.processes.get_mut(at);
                process.into_iter().flat_map(|process| &mut process.input).for_each(Feed::flush);
                self.report_input();
            }
            Name::Store(rank) => self.take_store(rank),
            Name::StoreRoom(rank) => self.stores.get_mut(&rank).into_iter().for_each(Feed::flush),
            Name::Pmi(rank) => self.take_pmi(rank),
            Name::PmiRoom(rank) => self.pmis.get_mut(&rank).into_iter().for_each(Feed::flush),
        }
        Ok(())
    }

    /// A signal other than that of children ends this launcher.
    fn take_signals(&mut self) {
        let ends = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT];
        if self.signals.take().iter().any(|signal| ends.contains(signal)) {
            self.is_input_open = false;
        }
        self.ended.extend(self.site.reap().0);
    }

    /// Reports ranks that have ended, each after what it wrote last.
    fn report_ends(&mut self) {
        while self.output.has_room() {
            let Some((rank, end)) = self.ended.pop_front() else { return };
            self.take_last_output(rank);
            self.take_last_of_pmi(rank);
            send(&mut self.output, Kind::Ended, rank, &end.emit());
        }
    }

    fn take_input(&mut self) -> Result<(), UserError> {
        let mut frames = std::mem::take(&mut self.frames);
        self.is_input_open = frames.read(stdin().as_fd()) != Some(0);
        loop {
            match frames.next() {
                Ok(Some(frame)) => self.obey(&frame)?,
                Ok(None) => break,
                Err(_) => {
                    return Err(UserError::new("standard input is not that of cci run; start ranks by cci run -H"));
                }
            }
        }
        self.frames = frames;
        Ok(())
    }

    fn obey(&mut self, frame: &Frame<'_>) -> Result<(), UserError> {
        match frame.kind {
            // A host starts its ranks once.
            Kind::Start if self.site.processes.is_empty() => return self.start(frame.bytes),
            Kind::Store => self.stores.get_mut(&frame.rank).into_iter().for_each(|store| store.push(frame.bytes)),
            Kind::StoreEnd => self.stores.get_mut(&frame.rank).into_iter().for_each(Feed::end),
            Kind::Pmi => self.pmis.get_mut(&frame.rank).into_iter().for_each(|pmi| pmi.push(frame.bytes)),
            Kind::PmiEnd => self.pmis.get_mut(&frame.rank).into_iter().for_each(Feed::end),
            Kind::Signal => self.signal(frame.bytes),
            Kind::Input => self.feed(frame.bytes),
            Kind::Output => self.close(Channel::Output),
            Kind::Errors => self.close(Channel::Errors),
            Kind::Pause | Kind::Resume => self.pause(frame),
            Kind::Start | Kind::Ready | Kind::Ended | Kind::Taken => (),
        }
        Ok(())
    }

    /// Nobody reads this channel any more: ranks that write to it get SIGPIPE.
    fn close(&mut self, channel: Channel) {
        self.site.processes.iter_mut().for_each(|process| process.close(channel));
    }

    fn pause(&mut self, frame: &Frame<'_>) {
        for channel in CHANNELS.into_iter().filter(|channel| frame.bytes == [*channel as u8]) {
            match frame.kind {
                Kind::Pause => self.paused.insert((frame.rank, channel)),
                _ => self.paused.remove(&(frame.rank, channel)),
            };
        }
    }

    fn start(&mut self, plan: &[u8]) -> Result<(), UserError> {
        let plan: Plan =
            serde_json::from_slice(plan).map_err(while_doing("the other launcher is of another version"))?;
        let streams = Streams { are_outputs_piped: true, is_input_piped: true };
        let (site, ends) = Site::start(&plan.task, &plan.ranks, streams)?;
        self.site = site;
        for (rank, end) in plan.ranks.iter().zip(ends) {
            for (ends, end) in [(&mut self.stores, Some(end.store)), (&mut self.pmis, end.pmi)] {
                let Some(end) = end else { continue };
                end.set_nonblocking(true).map_err(while_doing("cannot connect a rank"))?;
                ends.insert(*rank, Feed::new(end));
            }
        }
        send(&mut self.output, Kind::Ready, 0, &count_of_processors().to_le_bytes());
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
        self.input += bytes.len();
        self.report_input();
    }

    /// Reports how much rank 0 has taken of its input, and that it takes no more.
    fn report_input(&mut self) {
        let Some(input) = self.site.processes.iter_mut().find_map(|process| process.input.as_mut()) else { return };
        let taken = self.input.saturating_sub(input.len());
        if input.failure().is_some() {
            self.input = 0;
            self.site.processes.iter_mut().for_each(|process| process.input = None);
            send(&mut self.output, Kind::Input, 0, &[]);
        } else if taken >= REPORT {
            self.input -= taken;
            send(&mut self.output, Kind::Taken, 0, &u32::try_from(taken).unwrap_or(u32::MAX).to_le_bytes());
        }
    }

    fn take_output(&mut self, at: usize, channel: Channel) {
        let Some(process) = self.site.processes.get_mut(at) else { return };
        let Some(bytes) = process.output(channel).and_then(read) else { return };
        if bytes.is_empty() {
            process.close(channel);
        }
        let kind = if channel == Channel::Output { Kind::Output } else { Kind::Errors };
        send(&mut self.output, kind, process.rank, &bytes);
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
            send(&mut self.output, Kind::StoreEnd, rank, &[]);
        } else {
            send(&mut self.output, Kind::Store, rank, &bytes);
        }
    }

    fn take_pmi(&mut self, rank: u32) {
        let Some(bytes) = self.pmis.get(&rank).and_then(Feed::open).and_then(read) else { return };
        if bytes.is_empty() {
            self.pmis.remove(&rank);
            send(&mut self.output, Kind::PmiEnd, rank, &[]);
        } else {
            send(&mut self.output, Kind::Pmi, rank, &bytes);
        }
    }

    /// Takes what a rank asked before it ended; what it has left behind may keep its connection.
    fn take_last_of_pmi(&mut self, rank: u32) {
        for _ in 0..LAST_READS {
            self.take_pmi(rank);
        }
        self.pmis.remove(&rank);
    }
}
