//! What the launcher of a job has, and how the job ends.

use crate::end::End;
use crate::host::RemoteHost;
use crate::mpi::MpiServer;
use crate::output::{Channel, Output};
use crate::signals::Signals;
use crate::site::Site;
use cci_job::{ManagerEvent, Server};
use cci_report::UserError;
use rustix::process::Signal;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// How long ranks may take to end after another one has failed.
pub(super) const AFTER_A_FAILURE: Duration = Duration::from_millis(300);

/// How long ranks may take to end after the user has asked for it.
const AFTER_A_SIGNAL: Duration = Duration::from_secs(2);

/// How long killed ranks may take to be reported by their host.
pub(super) const AFTER_A_KILL: Duration = Duration::from_secs(2);

/// The job is to end.
pub(super) struct Ending {
    pub(super) status: u8,
    /// When what still runs is asked to end, then killed, and then given up.
    pub(super) deadline: Instant,
    pub(super) is_asked: bool,
    pub(super) is_killed: bool,
}

/// A job that runs, and all that it is made of.
pub(super) struct Launcher {
    pub(super) signals: Signals,
    pub(super) server: Server,
    pub(super) site: Site,
    pub(super) hosts: Vec<RemoteHost>,
    /// What the ranks of an MPI find, where they are such.
    pub(super) mpi: Option<MpiServer>,
    pub(super) output: Output,
    /// Whether standard input is copied to rank 0.
    pub(super) copies_input: bool,
    /// Whether ranks have been cut off from what nobody reads: standard output, standard error.
    pub(super) are_closed: [bool; 2],
    /// The ranks on other hosts that are not read, and which channel of each.
    pub(super) paused: BTreeSet<(u32, Channel)>,
    /// Where each rank is, for messages.
    pub(super) places: BTreeMap<u32, String>,
    pub(super) begin: Instant,
    pub(super) ending: Option<Ending>,
    /// Whether a rank has failed, and how many others have since.
    pub(super) has_failed: bool,
    pub(super) failed_besides: u32,
}

impl Launcher {
    pub(super) fn ask_to_end(&mut self) {
        self.signal(Signal::TERM);
        // A stopped process would never see it.
        self.signal(Signal::CONT);
    }

    pub(super) fn signal(&mut self, signal: Signal) {
        self.site.signal(signal);
        for host in &mut self.hosts {
            host.signal(signal);
        }
    }

    /// Stops the job, and then this process; SIGCONT reaches both by this process.
    pub(super) fn stop(&mut self) {
        self.signal(Signal::STOP);
        for host in &mut self.hosts {
            host.to().flush();
        }
        // A process may always stop itself.
        let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::STOP);
    }

    /// Gives up a host, and with it the job.
    pub(super) fn lose(&mut self, at: usize, why: &str) {
        let host = &mut self.hosts[at];
        let lost = host.leave();
        for rank in lost {
            self.ended(rank, &End::NotStarted(format!("is lost with its host: {why}")));
        }
    }

    /// The user asks the job to end: at once if for the second time.
    pub(super) fn interrupt(&mut self, signal: Signal) {
        if self.ending.is_some() {
            return self.kill();
        }
        self.signal(signal);
        // A stopped process would never see it.
        self.signal(Signal::CONT);
        self.end(128 | u8::try_from(signal.as_raw()).unwrap_or(0), AFTER_A_SIGNAL);
    }

    /// Ends the job with this status, unless it ends already.
    pub(super) fn end(&mut self, status: u8, grace: Duration) {
        let ending = || Ending { status, deadline: Instant::now() + grace, is_asked: true, is_killed: false };
        self.ending.get_or_insert_with(ending);
    }

    pub(super) fn kill(&mut self) {
        self.signal(Signal::KILL);
        if let Some(ending) = &mut self.ending {
            ending.deadline = Instant::now() + AFTER_A_KILL;
            ending.is_killed = true;
        }
    }

    pub(super) fn take_ends(&mut self) {
        let (ends, others) = self.site.reap();
        for (rank, end) in ends {
            self.ended(rank, &end);
        }
        for at in 0..self.hosts.len() {
            // What it wrote before is read first: its pipe ends then.
            if others.contains(&self.hosts[at].pid) && self.hosts[at].from().is_none() {
                self.lose(at, "its launcher has gone; see what it has written");
            }
        }
    }

    /// Serves the ranks of an MPI, one of which may end the job.
    pub(super) fn serve_mpi(&mut self) {
        let Some(mpi) = &mut self.mpi else { return };
        for event in mpi.advance(&mut self.hosts) {
            match event {
                ManagerEvent::Report(text) => self.output.report(&text),
                ManagerEvent::Aborted { rank, status, why } => self.abort(rank, status, &why),
                // The server of MPI has sent the others.
                ManagerEvent::Answer { .. } | ManagerEvent::Closed { .. } | ManagerEvent::Line(_) => (),
            }
        }
    }

    /// A rank has aborted the job, unless that ends already.
    fn abort(&mut self, rank: u32, status: u8, why: &str) {
        if self.ending.is_some() {
            return;
        }
        // MPICH gives the word for the reason.
        let why = if why.is_empty() || why == "abort" { String::new() } else { format!(": {why}") };
        let place = self.place(rank);
        let why =
            UserError::new(format!("rank {rank}{place} has aborted the job{why}; the job ends with status {status}"));
        self.output.report(&why.0);
        self.end(status, AFTER_A_FAILURE);
        self.ask_to_end();
    }

    /// Where a rank is, if not here.
    fn place(&self, rank: u32) -> String {
        self.places.get(&rank).map(|place| format!(" on {place}")).unwrap_or_default()
    }

    /// A rank has ended; unless it ended well, so does the job. The first failure is reported, and
    /// others are counted.
    pub(super) fn ended(&mut self, rank: u32, end: &End) {
        // It may have aborted the job before.
        self.mpi.iter_mut().for_each(|mpi| mpi.take_last(rank));
        self.serve_mpi();
        self.count_end(rank, end);
        // A job that ends has its ranks end, and needs no word of theirs about their barriers.
        self.mpi.iter_mut().filter(|_| self.ending.is_none()).for_each(|mpi| mpi.handle_gone(rank));
    }

    fn count_end(&mut self, rank: u32, end: &End) {
        // One that fails after another has ended the job well fails all the same.
        let is_well = self.ending.as_ref().is_none_or(|ending| !ending.is_asked);
        if !is_well {
            self.failed_besides += u32::from(self.has_failed && end.is_failure_besides());
        }
        if end.status() == 0 || !is_well {
            return;
        }
        self.has_failed = true;
        self.ending = None;
        let place = self.place(rank);
        let why = UserError::new(format!("rank {rank}{place} {end}; the job ends with status {}", end.status()));
        self.output.report(&why.0);
        self.end(end.status(), AFTER_A_FAILURE);
        self.ask_to_end();
    }
}
