//! The process manager that a launcher is to MPI: PMI-1 and PMI-2 served, without I/O and clock.

mod answers;
mod mapping;
mod table;
#[cfg(test)]
mod tests;
mod wire;

use crate::pmi::manager::Version;
use std::collections::{BTreeSet, VecDeque};
use table::Table;
use wire::{Command, Inbound, LONGEST, Outcome, Reply, Wrong};

/// How many questions of one rank may wait for others, which its threads ask.
const MOST_WAITING: usize = 64;

/// The most bytes of a rank that wait to be handled: the longest command, and one read.
const MOST_INBOUND: usize = 2 * LONGEST;

/// Where a rank of a job is, and what it runs.
///
/// ```
/// let seat = cci_job::Seat { host: 0, program: 1 };
/// assert_eq!(seat.program, 1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "launchers make it")]
pub struct Seat {
    /// The number of its host, from 0.
    pub host: u32,
    /// The number of its program among those of the job, from 0.
    pub program: u32,
}

/// What a [`ProcessManager`] has for its launcher.
///
/// ```
/// let event = cci_job::ManagerEvent::Aborted { rank: 1, status: 7, why: String::new() };
/// assert!(matches!(event, cci_job::ManagerEvent::Aborted { status: 7, .. }));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "launchers handle each")]
pub enum ManagerEvent {
    /// Bytes to send to a rank.
    Answer {
        /// The rank.
        rank: u32,
        /// Whole answers.
        bytes: Vec<u8>,
    },
    /// A rank has broken the protocol: its connection is to be closed.
    Closed {
        /// The rank.
        rank: u32,
        /// What it has sent.
        why: String,
    },
    /// A rank has aborted the job, which is to end.
    Aborted {
        /// The rank.
        rank: u32,
        /// The status that the job is to end with.
        status: u8,
        /// The rank's reason, which may be empty. At most 200 bytes, without control characters.
        why: String,
    },
    /// Something that whoever reads the output of the job is to know: a sentence.
    Report(String),
    /// A command or an answer, where they are traced.
    Line(String),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Its first command is to come: `init`.
    New,
    Begun,
    /// Nothing comes of it any more.
    Gone,
}

struct Rank {
    seat: Seat,
    inbound: Inbound,
    version: Version,
    phase: Phase,
    /// It waits in the barrier.
    barrier: Option<Reply>,
    /// It waits for a value that another rank of its host is to put.
    waits: Vec<(String, Reply)>,
    was_reported: bool,
}

/// Serves PMI-1 and PMI-2 to the ranks of one job: values that are seen after a barrier, names of
/// services, what ranks of one host tell each other, and abort. Inputs are `handle_*` and
/// [`ProcessManager::advance`], the output is [`ProcessManager::poll_event`].
///
/// All that a rank can make it keep is bounded: 16 MiB of values, 128 KiB of commands, 64 questions
/// that wait.
///
/// ```
/// use cci_job::{ManagerEvent, ProcessManager, Seat};
///
/// let mut manager = ProcessManager::new("job", vec![Seat { host: 0, program: 0 }]);
/// manager.handle_bytes(0, b"cmd=init pmi_version=1 pmi_subversion=1\n");
/// manager.advance(|_| true);
/// let bytes = b"cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n".to_vec();
/// assert_eq!(manager.poll_event(), Some(ManagerEvent::Answer { rank: 0, bytes }));
/// ```
pub struct ProcessManager {
    space: String,
    mapping: Option<String>,
    ranks: Vec<Rank>,
    /// The ranks of which something has arrived that is not handled.
    unhandled: BTreeSet<u32>,
    table: Table,
    in_barrier: u32,
    /// One of those that will not come to a barrier any more.
    gone: Option<u32>,
    was_missed: bool,
    events: VecDeque<ManagerEvent>,
    is_traced: bool,
}

impl ProcessManager {
    /// A process manager for these ranks, in their order, who know their job by this name: at most
    /// 255 bytes, without spaces and semicolons.
    #[must_use]
    pub fn new(space: &str, seats: Vec<Seat>) -> Self {
        let hosts: Vec<u32> = seats.iter().map(|seat| seat.host).collect();
        let rank = |seat| Rank {
            seat,
            inbound: Inbound::default(),
            version: Version::One,
            phase: Phase::New,
            barrier: None,
            waits: Vec::new(),
            was_reported: false,
        };
        Self {
            space: space.to_owned(),
            mapping: mapping::mapping(&hosts),
            ranks: seats.into_iter().map(rank).collect(),
            unhandled: BTreeSet::new(),
            table: Table::default(),
            in_barrier: 0,
            gone: None,
            was_missed: false,
            events: VecDeque::new(),
            is_traced: false,
        }
    }

    /// Has each command and each answer be an event of its own, [`ManagerEvent::Line`].
    ///
    /// ```
    /// let manager = cci_job::ProcessManager::new("job", Vec::new()).traced();
    /// # let _ = manager;
    /// ```
    #[must_use]
    pub fn traced(mut self) -> Self {
        self.is_traced = true;
        self
    }

    fn size(&self) -> u32 {
        u32::try_from(self.ranks.len()).unwrap_or(u32::MAX)
    }

    /// Takes what a rank has sent. Ranks beyond the job are ignored.
    pub fn handle_bytes(&mut self, rank: u32, bytes: &[u8]) {
        let Some(of) = self.ranks.get_mut(rank as usize).filter(|of| of.phase != Phase::Gone) else { return };
        of.inbound.push(bytes);
        self.unhandled.insert(rank);
        if of.inbound.len() > MOST_INBOUND {
            self.close(rank, "more than 131072 bytes of commands at once");
        }
    }

    /// Whether something of a rank waits for [`ProcessManager::advance`]: nothing more is to be
    /// read of it meanwhile.
    #[must_use]
    pub fn is_behind(&self, rank: u32) -> bool {
        self.unhandled.contains(&rank)
    }

    /// Handles what has arrived of those ranks whose answers have room. What has none stays.
    pub fn advance(&mut self, mut has_room: impl FnMut(u32) -> bool) {
        for rank in std::mem::take(&mut self.unhandled) {
            if has_room(rank) {
                self.handle_commands(rank);
            } else {
                self.unhandled.insert(rank);
            }
        }
    }

    /// A rank has ended, or its connection has, in whatever way: what it has sent counts, and
    /// others wait for it no longer.
    pub fn handle_gone(&mut self, rank: u32) {
        self.unhandled.remove(&rank);
        self.handle_commands(rank);
        self.leave(rank);
    }

    /// What the launcher is to do next.
    pub fn poll_event(&mut self) -> Option<ManagerEvent> {
        self.events.pop_front()
    }

    fn handle_commands(&mut self, rank: u32) {
        let at = rank as usize;
        let Some(mut inbound) = self.ranks.get_mut(at).map(|of| std::mem::take(&mut of.inbound)) else { return };
        while self.ranks[at].phase != Phase::Gone {
            let version = self.ranks[at].version;
            let handled = match inbound.command(version) {
                Ok(Some(text)) => self.handle_command(rank, text),
                Ok(None) => break,
                Err(wrong) => Err(wrong),
            };
            if let Err(wrong) = handled {
                return self.close(rank, wrong);
            }
        }
        self.ranks[at].inbound = inbound;
    }

    fn handle_command(&mut self, rank: u32, text: &str) -> Result<(), Wrong> {
        self.trace(rank, "asks", text);
        let version = self.ranks[rank as usize].version;
        let command = Command::parse(version, text)?;
        match (self.ranks[rank as usize].phase, command.name) {
            (_, "init") if version == Version::One => {
                self.begin(rank, &command);
                Ok(())
            }
            (Phase::Begun, _) => self.answer_command(rank, &command),
            _ => Err("a command before init"),
        }
    }

    /// Agrees on a version: that of the rank, which may begin anew after its end.
    fn begin(&mut self, rank: u32, command: &Command<'_>) {
        let (version, outcome): (_, Outcome) = match command.get("pmi_version") {
            Some("1") => (Version::One, Ok(vec![("pmi_version", "1".into()), ("pmi_subversion", "1".into())])),
            Some("2") => (Version::Two, Ok(vec![("pmi_version", "2".into()), ("pmi_subversion", "0".into())])),
            _ => (Version::One, Err("PMI-1 and PMI-2 are spoken here".into())),
        };
        let reply = Reply { version: Version::One, name: "response_to_init".into(), thread: None };
        self.answer(rank, &reply, &outcome);
        let of = &mut self.ranks[rank as usize];
        if outcome.is_ok() {
            (of.version, of.phase) = (version, Phase::Begun);
        }
    }

    fn answer(&mut self, rank: u32, reply: &Reply, outcome: &Outcome) {
        let bytes = reply.emit(outcome);
        if self.is_traced {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            self.trace(rank, "gets", &text);
        }
        self.events.push_back(ManagerEvent::Answer { rank, bytes });
    }

    fn trace(&mut self, rank: u32, does: &str, text: &str) {
        if self.is_traced {
            let text = text.trim().replace('\n', " ").replace(char::is_control, "?");
            self.events.push_back(ManagerEvent::Line([&rank.to_string(), does, &text].join(" ")));
        }
    }

    /// Ends the connection of a rank that has broken the protocol.
    fn close(&mut self, rank: u32, wrong: Wrong) {
        self.events.push_back(ManagerEvent::Closed { rank, why: wrong.into() });
        self.leave(rank);
    }

    /// Nothing comes of a rank any more. A barrier that waits for it fails.
    fn leave(&mut self, rank: u32) {
        let Some(of) = self.ranks.get_mut(rank as usize).filter(|of| of.phase != Phase::Gone) else { return };
        of.phase = Phase::Gone;
        of.inbound.clear();
        of.waits.clear();
        self.in_barrier -= u32::from(of.barrier.take().is_some());
        self.unhandled.remove(&rank);
        self.table.handle_gone(rank);
        self.gone.get_or_insert(rank);
        self.end_barrier();
        self.end_waits(self.ranks[rank as usize].seat.host);
    }

    /// A rank has come to the barrier.
    fn enter_barrier(&mut self, rank: u32, reply: Reply) -> Result<(), Wrong> {
        let of = &mut self.ranks[rank as usize];
        if of.barrier.replace(reply).is_some() {
            return Err("a second barrier while the first one waits");
        }
        self.in_barrier += 1;
        self.end_barrier();
        Ok(())
    }

    /// Answers the barrier once all are there, or one of them never will be.
    fn end_barrier(&mut self) {
        let outcome = match self.gone {
            _ if self.in_barrier == 0 => return,
            Some(gone) => Err(format!("rank {gone} has ended before the barrier")),
            None if self.in_barrier == self.size() => Ok(Vec::new()),
            None => return,
        };
        if let Some(gone) = self.gone.filter(|_| !std::mem::replace(&mut self.was_missed, true)) {
            let why = format!(
                "rank {gone} will not come to a barrier of MPI, which fails: it has ended, or has closed its \
                 connection"
            );
            self.events.push_back(ManagerEvent::Report(why));
        }
        if outcome.is_ok() {
            self.table.show();
        }
        self.in_barrier = 0;
        for rank in 0..self.size() {
            if let Some(reply) = self.ranks[rank as usize].barrier.take() {
                self.answer(rank, &reply, &outcome);
            }
        }
    }
}
