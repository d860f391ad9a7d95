//! The launcher of a job: one loop over everything that may happen.

mod handle;
mod state;

use crate::host::RemoteHost;
use crate::hosts::{self, Host};
use crate::mpi::{self, MpiServer};
use crate::output::{CHANNELS, Output};
use crate::polling::Polling;
use crate::remote::Plan;
use crate::security::{IN_CLEAR, Security};
use crate::signals::Signals;
use crate::site::{Site, Streams, Task, count_of_processors, kill_orphans};
use crate::{Program, RunOptions};
use cci_job::{Local, Secret, Server};
use cci_report::{UserError, while_doing};
use handle::Name;
use rustix::process::{Pid, Signal};
use state::{AFTER_A_FAILURE, AFTER_A_KILL, Launcher};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal, stdin};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// How long ranks may go on after another one has ended the job well.
const AFTER_THE_END: Duration = Duration::from_secs(1);

/// How long a remote launcher may take to start its ranks.
const START: Duration = Duration::from_secs(30);

/// How variables begin that MPICH and Intel MPI read, and the libraries below them.
const OF_MPI: [&str; 5] = ["FI_", "I_MPI_", "MPICH_", "MPIR_", "UCX_"];

/// Runs a job until all of its processes have ended; the status that the job ends with.
///
/// Takes SIGCHLD and the signals that end or stop a process over for the whole process, and becomes
/// the parent of what ranks leave behind.
///
/// # Errors
///
/// The job cannot be started.
pub fn run(options: &RunOptions) -> Result<u8, UserError> {
    let task = task(options)?;
    let (here, others) = split(options, task.size);
    let mut launcher = Launcher::new(options, task.size, &here, !others.is_empty())?;
    launcher.mpi = options.mpi.as_ref().map(|mpi| MpiServer::new(mpi, &task, &others)).transpose()?;
    let introduction = options.mpi.iter().flat_map(|mpi| mpi::introduction(mpi, !others.is_empty()));
    introduction.for_each(|text| launcher.output.report(&text));
    if options.security == Security::Off {
        launcher.output.report(IN_CLEAR);
    }
    // What has been started ends with a failure of the rest.
    let served = launcher.start(options, task, &here, others).and_then(|()| launcher.serve());
    launcher.site.signal(Signal::KILL);
    launcher.leave_hosts()?;
    kill_orphans()?;
    launcher.report_others();
    launcher.report_trace();
    launcher.write_the_rest()?;
    served.map(|()| launcher.status())
}

/// Splits hosts into this one and others, each with its ranks.
fn split(options: &RunOptions, size: u32) -> (Vec<u32>, Vec<(String, Vec<u32>)>) {
    let alone = [Host { name: "localhost".into(), slots: 1 }];
    let all = if options.hosts.is_empty() { &alone[..] } else { &options.hosts };
    let (mut here, mut others) = (Vec::new(), Vec::new());
    for (host, ranks) in all.iter().zip(hosts::place(size, all)) {
        match hosts::is_this(&host.name) {
            true => here.extend(ranks),
            false if ranks.is_empty() => (),
            false => others.push((host.name.clone(), ranks)),
        }
    }
    here.sort_unstable();
    (here, others)
}

/// What all ranks run, each its part, as those of other hosts need it.
fn task(options: &RunOptions) -> Result<Task, UserError> {
    let first =
        Program { ranks: options.ranks, program: options.program.clone(), arguments: options.arguments.clone() };
    let programs: Vec<Program> = std::iter::once(first).chain(options.more.iter().cloned()).collect();
    let size = programs.iter().try_fold(0, |size: u32, program| size.checked_add(program.ranks));
    Ok(Task {
        programs,
        directory: std::env::current_dir().ok(),
        environment: environment(options.mpi.is_some()),
        bind: options.bind,
        mpi: options.mpi.as_ref().map(|mpi| mpi.variables.clone()),
        size: size.ok_or_else(|| UserError::new("the programs have more than 4294967295 ranks; start fewer"))?,
    })
}

/// What ranks of other hosts have of this environment: with `--mpi` also what MPIs and their
/// libraries read.
fn environment(is_mpi: bool) -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
    let is_taken = |name: &std::ffi::OsStr| {
        let text = name.to_string_lossy();
        let is_of_one = [cci_job::DESCRIPTOR, cci_job::SOCKET].contains(&&*text);
        let is_of_mpi = is_mpi && OF_MPI.iter().any(|begin| text.starts_with(begin));
        text.starts_with("CCI_") && !is_of_one || is_of_mpi || text == "PATH" || text == "LD_LIBRARY_PATH"
    };
    std::env::vars_os().filter(|(name, _)| is_taken(name)).collect()
}

impl Launcher {
    /// The launcher of a job whose ranks here are these. Nothing has been started yet.
    fn new(options: &RunOptions, size: u32, here: &[u32], has_others: bool) -> Result<Self, UserError> {
        let signals = Signals::watch()?;
        let secret = Secret::fresh().map_err(while_doing("cannot draw a secret"))?;
        let server = Server::new(size, Some(secret)).map_err(while_doing("cannot serve the job"))?;
        let server = if options.security == Security::Off { server.in_clear() } else { server };
        Ok(Self {
            signals,
            server,
            site: Site::default(),
            hosts: Vec::new(),
            mpi: None,
            output: Output::new(
                options.label || has_others,
                options.label,
                options.speaker.as_deref().unwrap_or("cci run"),
            ),
            copies_input: stdin().is_terminal() || here.first() != Some(&0),
            are_closed: [false; 2],
            paused: BTreeSet::new(),
            places: BTreeMap::new(),
            begin: Instant::now(),
            ending: None,
            has_failed: false,
            failed_besides: 0,
        })
    }

    /// Starts launchers on other hosts, which takes them longest, and then the ranks here.
    fn start(
        &mut self,
        options: &RunOptions,
        mut task: Task,
        here: &[u32],
        others: Vec<(String, Vec<u32>)>,
    ) -> Result<(), UserError> {
        for (name, ranks) in others {
            self.places.extend(ranks.iter().map(|rank| (*rank, name.clone())));
            let plan = Plan { ranks, task: task.clone() };
            self.hosts.push(RemoteHost::start(options.rsh.as_deref(), options.command.as_ref(), &name, &plan)?);
        }
        (task.directory, task.environment) = (None, Vec::new());
        let streams = Streams { are_outputs_piped: options.label, is_input_piped: stdin().is_terminal() };
        self.start_here(&task, here, streams)
    }

    fn start_here(&mut self, task: &Task, ranks: &[u32], streams: Streams) -> Result<(), UserError> {
        let (site, ends) = Site::start(task, ranks, streams)?;
        self.site = site;
        let size = u32::try_from(ranks.len()).expect("ranks have numbers of that type");
        let processors = count_of_processors();
        for ((at, rank), end) in (0..).zip(ranks).zip(ends) {
            let local = Local { rank: at, size, processors };
            let failed = || while_doing("cannot serve a rank; raise ulimit -n");
            self.server.adopt(end.store, *rank, local).map_err(failed())?;
            if let Some((mpi, end)) = self.mpi.as_mut().zip(end.pmi) {
                mpi.adopt(*rank, end).map_err(failed())?;
            }
        }
        Ok(())
    }

    /// Handles what happens until no rank is left, or those that are left are given up.
    fn serve(&mut self) -> Result<(), UserError> {
        self.take_ends();
        while !self.is_over() {
            let timeout = self.server.progress().map_err(while_doing("cannot serve the job"))?;
            for report in self.server.reports() {
                self.output.report(&report);
            }
            self.take_end();
            self.serve_mpi();
            let limit = timeout.into_iter().chain(self.until_deadline()).min();
            for name in self.polling().wait(limit)? {
                self.handle(name)?;
            }
            self.close_unread();
            self.pause_ranks();
            self.take_failure();
            self.keep_deadlines();
        }
        Ok(())
    }

    /// What cannot be written ends the job. Without a reader SIGPIPE ends those ranks that write.
    fn take_failure(&mut self) {
        let Some((status, Some(why))) = self.output.failure() else { return };
        self.output.report(&why);
        if self.ending.as_ref().is_none_or(|ending| !ending.is_asked) {
            self.ending = None;
            self.end(status, AFTER_A_FAILURE);
            self.ask_to_end();
        }
    }

    /// The status that the job ends with.
    fn status(&mut self) -> u8 {
        let status = self.ending.as_ref().map_or(0, |ending| ending.status);
        match self.output.failure() {
            Some((lost, _)) if status == 0 => lost,
            _ => status,
        }
    }

    /// A rank may have ended the job.
    fn take_end(&mut self) {
        let Some(status) = self.server.end().filter(|_| self.ending.is_none()) else { return };
        self.end(status, AFTER_THE_END);
        if let Some(ending) = self.ending.as_mut().filter(|_| status == 0) {
            ending.is_asked = false;
            return;
        }
        self.ask_to_end();
    }

    fn is_over(&self) -> bool {
        self.site.is_over() && self.hosts.iter().all(|host| host.running.is_empty())
    }

    fn until_deadline(&self) -> Option<Duration> {
        let start = self.hosts.iter().any(RemoteHost::starts).then(|| self.begin + START);
        let ending = self.ending.as_ref().map(|ending| ending.deadline);
        start
            .into_iter()
            .chain(ending)
            .chain(self.output.deadline())
            .chain(self.mpi.as_ref().filter(|_| self.ending.is_none()).and_then(MpiServer::deadline))
            .min()
            .map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// Reports how many ranks have failed besides the first.
    fn report_others(&mut self) {
        if self.failed_besides > 0 {
            let why = UserError(format!("also failed: {} of the other ranks", self.failed_besides));
            self.output.report(&why.0);
        }
    }

    /// Reports what the trace of an MPI lacks.
    fn report_trace(&mut self) {
        let missing = self.mpi.as_mut().and_then(|mpi| mpi.trace.as_mut()?.missing());
        missing.iter().for_each(|text| self.output.report(text));
    }

    fn keep_deadlines(&mut self) {
        let now = Instant::now();
        self.output.keep_deadlines(now);
        self.mpi.iter_mut().filter(|_| self.ending.is_none()).for_each(|mpi| mpi.keep_deadlines(now));
        if now >= self.begin + START {
            for at in 0..self.hosts.len() {
                if self.hosts[at].starts() {
                    self.lose(at, "its launcher has not started within 30 s; see that the host is there");
                }
            }
        }
        match &mut self.ending {
            Some(ending) if now >= ending.deadline && !ending.is_asked => {
                (ending.is_asked, ending.deadline) = (true, now + AFTER_A_FAILURE);
                self.ask_to_end();
            }
            Some(ending) if now >= ending.deadline && ending.is_killed => self.give_up(),
            Some(ending) if now >= ending.deadline => self.kill(),
            _ => (),
        }
    }

    /// Leaves hosts that do not report the end of their ranks.
    fn give_up(&mut self) {
        for at in 0..self.hosts.len() {
            self.hosts[at].leave();
            self.hosts[at].kill();
        }
        self.kill();
    }

    /// Waits until remote launchers have ended, which they do when their input ends.
    fn leave_hosts(&mut self) -> Result<(), UserError> {
        let deadline = Instant::now() + AFTER_A_KILL;
        let mut left: Vec<Pid> = self.hosts.iter().map(|host| host.pid).collect();
        self.hosts.iter_mut().for_each(|host| drop(host.leave()));
        while !left.is_empty() && Instant::now() < deadline {
            let (_, ended) = self.site.reap();
            left.retain(|pid| !ended.contains(pid) && rustix::process::test_kill_process(*pid).is_ok());
            if !left.is_empty() {
                let mut polling = Polling::new();
                polling.read(Some(self.signals.as_fd()), ());
                polling.wait(Some(deadline.saturating_duration_since(Instant::now())))?;
                self.signals.take();
            }
        }
        self.hosts.iter().filter(|host| left.contains(&host.pid)).for_each(RemoteHost::kill);
        Ok(())
    }

    /// Writes what ranks wrote last, unless the user asks to end once more.
    fn write_the_rest(&mut self) -> Result<(), UserError> {
        // Nothing comes from other hosts any more.
        self.output.end_hold();
        let elsewhere: Vec<u32> = self.places.keys().copied().collect();
        for (rank, channel) in elsewhere.iter().flat_map(|rank| CHANNELS.map(|channel| (*rank, channel))) {
            self.output.take(rank, channel, &[]);
        }
        let is_read = |launcher: &Self| launcher.site.processes.iter().all(crate::site::Process::is_read);
        while !(is_read(self) && self.output.is_done()) {
            let mut polling = self.polling_output();
            polling.read(Some(self.signals.as_fd()), Name::Signals);
            let limit = self.output.deadline().map(|deadline| deadline.saturating_duration_since(Instant::now()));
            for name in polling.wait(limit)? {
                match name {
                    Name::Signals if self.signals.take().iter().any(|signal| *signal != Signal::CHILD) => return Ok(()),
                    Name::Signals => (),
                    name => self.handle(name)?,
                }
            }
            self.close_unread();
            self.take_failure();
            self.output.keep_deadlines(Instant::now());
        }
        Ok(())
    }
}
