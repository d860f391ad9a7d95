//! `--mpi`: the process manager that the ranks of an MPI find in this launcher.

mod trace;

use crate::feed::Feed;
use crate::host::RemoteHost;
use crate::polling::read;
use crate::site::Task;
use cci_job::{ManagerEvent, ProcessManager, Seat};
use cci_report::UserError;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};
pub(crate) use trace::Trace;

/// How soon after its connection a rank ends, if it does: until then a barrier goes on waiting for
/// it, because the end of a rank says more than that of its connection.
const AFTER_A_CONNECTION: Duration = Duration::from_millis(300);

/// How many reads empty a socket: it holds less unless it is given more room.
pub(crate) const LAST_READS: usize = 16;

/// What the launcher writes where an MPI uses a network of its own between hosts.
const IN_CLEAR: &str = "--mpi=own: the network of the MPI does not seal what ranks send between hosts; whoever is on \
                        the path reads and changes it";

/// How the ranks of an MPI are started.
///
/// ```
/// let mpi = cci_launcher::Mpi {
///     variables: vec![("FI_PROVIDER".into(), "tcp".into())],
///     ..Default::default()
/// };
/// assert!(!mpi.is_verbose);
/// ```
#[derive(Clone, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "the command makes it")]
pub struct Mpi {
    /// What each rank has in its environment besides the variables of PMI.
    pub variables: Vec<(OsString, OsString)>,
    /// Whether ranks use a network of the MPI's own, which seals nothing.
    pub is_own_network: bool,
    /// Whether the variables are written to standard error.
    pub is_verbose: bool,
    /// A file that gets each command and each answer of PMI.
    pub trace: Option<PathBuf>,
}

/// The process manager with the connections of ranks of this host. Those of other hosts come in
/// frames.
pub(crate) struct MpiServer {
    manager: ProcessManager,
    here: BTreeMap<u32, Feed<UnixStream>>,
    /// Ranks whose connection has ended, and when that counts.
    leaving: BTreeMap<u32, Instant>,
    pub(crate) trace: Option<Trace>,
}

impl MpiServer {
    /// A process manager for the ranks of this task, those elsewhere on these hosts.
    pub(crate) fn new(mpi: &Mpi, task: &Task, others: &[(String, Vec<u32>)]) -> Result<Self, UserError> {
        // The names of process groups are compared between jobs.
        let space = format!("cci_{}_{:016x}", std::process::id(), RandomState::new().build_hasher().finish());
        let manager = ProcessManager::new(&space, seats(task, others));
        let trace = mpi.trace.as_deref().map(Trace::open).transpose()?;
        Ok(Self {
            manager: if trace.is_some() { manager.traced() } else { manager },
            here: BTreeMap::new(),
            leaving: BTreeMap::new(),
            trace,
        })
    }

    /// Serves a rank of this host.
    pub(crate) fn adopt(&mut self, rank: u32, end: UnixStream) -> std::io::Result<()> {
        end.set_nonblocking(true)?;
        self.here.insert(rank, Feed::new(end));
        Ok(())
    }

    /// The connections of ranks here, and whether each is to be read.
    pub(crate) fn connections(&self) -> impl Iterator<Item = (u32, &Feed<UnixStream>, bool)> {
        let is_read = |rank: u32, feed: &Feed<UnixStream>| feed.has_room() && !self.manager.is_behind(rank);
        self.here.iter().map(move |(rank, feed)| (*rank, feed, is_read(*rank, feed)))
    }

    /// Takes what a rank here has sent.
    pub(crate) fn take(&mut self, rank: u32) {
        let Some(bytes) = self.here.get(&rank).and_then(Feed::open).and_then(read) else { return };
        if bytes.is_empty() {
            self.here.remove(&rank);
            self.handle_left(rank);
        } else {
            self.manager.handle_bytes(rank, &bytes);
        }
    }

    /// Writes what a rank here has room for.
    pub(crate) fn flush(&mut self, rank: u32) {
        self.here.get_mut(&rank).into_iter().for_each(Feed::flush);
    }

    /// Takes what a rank elsewhere has sent.
    pub(crate) fn handle_bytes(&mut self, rank: u32, bytes: &[u8]) {
        self.manager.handle_bytes(rank, bytes);
    }

    /// The connection of a rank has ended.
    pub(crate) fn handle_left(&mut self, rank: u32) {
        self.leaving.entry(rank).or_insert_with(|| Instant::now() + AFTER_A_CONNECTION);
    }

    /// Takes what a rank that has ended had sent before: a process that it has started may keep its
    /// connection open.
    pub(crate) fn take_last(&mut self, rank: u32) {
        for _ in 0..LAST_READS {
            self.take(rank);
        }
        self.here.remove(&rank);
    }

    /// A rank has ended.
    pub(crate) fn handle_gone(&mut self, rank: u32) {
        self.leaving.remove(&rank);
        self.manager.handle_gone(rank);
    }

    /// When [`MpiServer::keep_deadlines`] is to be called.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.leaving.values().min().copied()
    }

    pub(crate) fn keep_deadlines(&mut self, now: Instant) {
        let late: Vec<u32> = self.leaving.iter().filter(|(_, at)| now >= **at).map(|(rank, _)| *rank).collect();
        late.into_iter().for_each(|rank| self.handle_gone(rank));
    }

    /// Answers what has arrived, as far as answers have room; what the launcher is to handle.
    pub(crate) fn advance(&mut self, hosts: &mut [RemoteHost]) -> Vec<ManagerEvent> {
        let here = &self.here;
        self.manager.advance(|rank| match here.get(&rank) {
            Some(feed) => feed.has_room(),
            None => hosts.iter().find(|host| host.has(rank)).is_none_or(RemoteHost::has_room),
        });
        let mut events = Vec::new();
        while let Some(event) = self.manager.poll_event() {
            match event {
                ManagerEvent::Answer { rank, bytes } => self.answer(hosts, rank, &bytes),
                ManagerEvent::Closed { rank, ref why } => {
                    let why = UserError::new(format!("the PMI connection of rank {rank} is closed: {why}"));
                    self.close(hosts, rank);
                    events.push(ManagerEvent::Report(why.0));
                }
                ManagerEvent::Line(text) => self.trace.iter_mut().for_each(|trace| trace.line(&text)),
                other => events.push(other),
            }
        }
        let lost: Vec<u32> =
            self.here.iter().filter(|(_, feed)| feed.open().is_none()).map(|(rank, _)| *rank).collect();
        for rank in lost {
            self.here.remove(&rank);
            self.handle_left(rank);
        }
        events.extend(self.trace.as_mut().and_then(Trace::failure).map(ManagerEvent::Report));
        events
    }

    fn answer(&mut self, hosts: &mut [RemoteHost], rank: u32, bytes: &[u8]) {
        match self.here.get_mut(&rank) {
            Some(feed) => feed.push(bytes),
            None => hosts.iter_mut().filter(|host| host.has(rank)).for_each(|host| host.send_pmi(rank, bytes)),
        }
    }

    /// Closes the connection of a rank behind its last answer.
    fn close(&mut self, hosts: &mut [RemoteHost], rank: u32) {
        match self.here.get_mut(&rank) {
            Some(feed) => feed.end(),
            None => hosts.iter_mut().filter(|host| host.has(rank)).for_each(|host| host.send_pmi(rank, &[])),
        }
    }
}

/// What is to be written before the ranks start: the variables, and what they do not protect.
pub(crate) fn introduction(mpi: &Mpi, has_others: bool) -> Vec<String> {
    let shown = |(name, value): &(OsString, OsString)| format!("{}={}", name.display(), value.display());
    let variables =
        mpi.variables.iter().map(shown).chain(["PMI_FD, PMI_RANK, PMI_SIZE and PMI_ID of each rank".into()]);
    let in_clear = (mpi.is_own_network && has_others).then(|| IN_CLEAR.to_owned());
    variables.filter(|_| mpi.is_verbose).chain(in_clear).collect()
}

/// Where each rank is: hosts are numbered as they come in the order of ranks.
fn seats(task: &Task, others: &[(String, Vec<u32>)]) -> Vec<Seat> {
    let mut names = vec![""; task.size as usize];
    for (name, ranks) in others {
        ranks.iter().for_each(|rank| names[*rank as usize] = name);
    }
    let mut numbers = BTreeMap::new();
    let seat = |(rank, name): (u32, &&str)| {
        let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        let program = u32::try_from(task.program(rank).0).unwrap_or(u32::MAX);
        Seat { host: *numbers.entry((*name).to_owned()).or_insert(next), program }
    };
    (0..).zip(&names).map(seat).collect()
}
