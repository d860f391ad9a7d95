//! The launcher of a job: one loop over everything that may happen.

use crate::RunOptions;
use crate::end::End;
use crate::feed::Feed;
use crate::frames::{Frame, Kind};
use crate::host::RemoteHost;
use crate::hosts::{self, Host};
use crate::output::{Channel, Output};
use crate::polling::{Polling, read};
use crate::remote::Plan;
use crate::signals::Signals;
use crate::site::{Site, Streams, Task, channels, count_of_processors, kill_orphans};
use cci_job::{Local, Secret, Server};
use cci_report::{UserError, while_doing};
use rustix::process::{Pid, Signal};
use std::collections::BTreeMap;
use std::io::{IsTerminal, stdin};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// How long ranks may take to end after another one has failed.
const AFTER_A_FAILURE: Duration = Duration::from_millis(300);

/// How long ranks may go on after another one has ended the job well.
const AFTER_THE_END: Duration = Duration::from_secs(1);

/// How long ranks may take to end after the user has asked for it.
const AFTER_A_SIGNAL: Duration = Duration::from_secs(2);

/// How long killed ranks may take to be reported by their host.
const AFTER_A_KILL: Duration = Duration::from_secs(2);

/// How long a remote launcher may take to start its ranks.
const START: Duration = Duration::from_secs(30);

/// What may be ready.
enum Name {
    Signals,
    Server,
    Terminal,
    Output,
    Errors,
    Rank(usize, Channel),
    RankInput(usize),
    Host(usize),
    HostRoom(usize),
    Bridge(usize, u32),
    BridgeRoom(usize, u32),
}

/// The job is to end.
struct Ending {
    status: u8,
    /// When what still runs is asked to end, then killed, and then given up.
    deadline: Instant,
    is_asked: bool,
    is_killed: bool,
}

struct Launcher {
    signals: Signals,
    server: Server,
    site: Site,
    hosts: Vec<RemoteHost>,
    output: Output,
    /// Whether standard input is copied to rank 0.
    copies_input: bool,
    /// Where each rank is, for messages.
    places: BTreeMap<u32, String>,
    begin: Instant,
    ending: Option<Ending>,
}

/// Runs a job until all of its processes have ended; the status that the job ends with.
///
/// Takes SIGCHLD and the signals that end or stop a process over for the whole process, and becomes
/// the parent of what ranks leave behind.
///
/// # Errors
///
/// The job cannot be started.
pub fn run(options: &RunOptions) -> Result<u8, UserError> {
    let (here, others) = split(options);
    let mut launcher = Launcher::new(options, &here)?;
    // What has been started ends with a failure of the rest.
    let served = launcher.start(options, &here, others).and_then(|()| launcher.serve());
    launcher.site.signal(Signal::KILL);
    launcher.leave_hosts()?;
    kill_orphans()?;
    launcher.write_the_rest()?;
    served.map(|()| launcher.ending.map_or(0, |ending| ending.status))
}

/// Splits hosts into this one and others, each with its ranks.
fn split(options: &RunOptions) -> (Vec<u32>, Vec<(String, Vec<u32>)>) {
    let alone = [Host { name: "localhost".into(), slots: 1 }];
    let all = if options.hosts.is_empty() { &alone[..] } else { &options.hosts };
    let (mut here, mut others) = (Vec::new(), Vec::new());
    for (host, ranks) in all.iter().zip(hosts::place(options.ranks, all)) {
        match hosts::is_this(&host.name) {
            true => here.extend(ranks),
            false if ranks.is_empty() => (),
            false => others.push((host.name.clone(), ranks)),
        }
    }
    here.sort_unstable();
    (here, others)
}

/// What ranks of other hosts have of this environment.
fn environment() -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
    let is_taken = |name: &std::ffi::OsStr| {
        let text = name.to_string_lossy();
        text.starts_with("CCI_") && text != cci_job::DESCRIPTOR || text == "PATH" || text == "LD_LIBRARY_PATH"
    };
    std::env::vars_os().filter(|(name, _)| is_taken(name)).collect()
}

impl Launcher {
    /// The launcher of a job whose ranks here are these. Nothing has been started yet.
    fn new(options: &RunOptions, here: &[u32]) -> Result<Self, UserError> {
        let signals = Signals::watch()?;
        let secret = Secret::fresh().map_err(while_doing("cannot draw a secret"))?;
        let server = Server::new(options.ranks, Some(secret)).map_err(while_doing("cannot serve the job"))?;
        Ok(Self {
            signals,
            server,
            site: Site::default(),
            hosts: Vec::new(),
            output: Output::new(options.label, options.speaker.as_deref().unwrap_or("cci run")),
            copies_input: stdin().is_terminal() || here.first() != Some(&0),
            places: BTreeMap::new(),
            begin: Instant::now(),
            ending: None,
        })
    }

    /// Starts launchers on other hosts, which takes them longest, and then the ranks here.
    fn start(&mut self, options: &RunOptions, here: &[u32], others: Vec<(String, Vec<u32>)>) -> Result<(), UserError> {
        let mut task = Task {
            program: options.program.clone(),
            arguments: options.arguments.clone(),
            directory: std::env::current_dir().ok(),
            environment: environment(),
            bind: options.bind,
            size: options.ranks,
        };
        for (name, ranks) in others {
            self.places.extend(ranks.iter().map(|rank| (*rank, name.clone())));
            self.hosts.push(RemoteHost::start(
                options.rsh.as_deref(),
                options.command.as_ref(),
                &name,
                &Plan { ranks, task: task.clone() },
            )?);
        }
        (task.directory, task.environment) = (None, Vec::new());
        self.start_here(
            &task,
            here,
            Streams { are_outputs_piped: options.label, is_input_piped: stdin().is_terminal() },
        )
    }

    fn start_here(&mut self, task: &Task, ranks: &[u32], streams: Streams) -> Result<(), UserError> {
        let (site, ends) = Site::start(task, ranks, streams)?;
        self.site = site;
        let size = u32::try_from(ranks.len()).expect("ranks have numbers of that type");
        let processors = count_of_processors();
        for ((at, rank), end) in (0..).zip(ranks).zip(ends) {
            let local = Local { rank: at, size, processors };
            self.server.adopt(end, *rank, local).map_err(while_doing("cannot serve a rank; raise ulimit -n"))?;
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
            let limit = timeout.into_iter().chain(self.until_deadline()).min();
            for name in self.polling().wait(limit)? {
                self.handle(name)?;
            }
            self.keep_deadlines();
        }
        Ok(())
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

    fn ask_to_end(&mut self) {
        self.signal(Signal::TERM);
        // A stopped process would never see it.
        self.signal(Signal::CONT);
    }

    fn is_over(&self) -> bool {
        self.site.is_over() && self.hosts.iter().all(|host| host.running.is_empty())
    }

    fn until_deadline(&self) -> Option<Duration> {
        let start = self.hosts.iter().any(RemoteHost::starts).then(|| self.begin + START);
        let ending = self.ending.as_ref().map(|ending| ending.deadline);
        start.into_iter().chain(ending).min().map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    fn polling(&self) -> Polling<'_, Name> {
        let mut polling = Polling::new();
        polling.read(Some(self.signals.as_fd()), Name::Signals);
        polling.read(Some(self.server.as_fd()), Name::Server);
        polling.read(self.copies_input.then(rustix::stdio::stdin).filter(|_| self.takes_input()), Name::Terminal);
        polling.write(self.output.output.waits(), Name::Output);
        polling.write(self.output.errors.waits(), Name::Errors);
        let has_room = self.output.has_room();
        for (at, process) in self.site.processes.iter().enumerate() {
            for (channel, from) in channels(process).filter(|_| has_room) {
                polling.read(Some(from), Name::Rank(at, channel));
            }
            polling.write(process.input.as_ref().and_then(Feed::waits), Name::RankInput(at));
        }
        for (at, host) in self.hosts.iter().enumerate() {
            polling.read(host.from().filter(|_| has_room), Name::Host(at));
            polling.write(host.waits(), Name::HostRoom(at));
            for (rank, bridge) in &host.bridges {
                polling.read(bridge.open().filter(|_| host.has_room()), Name::Bridge(at, *rank));
                polling.write(bridge.waits(), Name::BridgeRoom(at, *rank));
            }
        }
        polling
    }

    /// Whether what rank 0 is to read has room.
    fn takes_input(&self) -> bool {
        let here = self.site.processes.first().filter(|process| process.rank == 0);
        match here {
            Some(process) => process.input.as_ref().is_some_and(Feed::has_room),
            None => self.hosts.iter().any(|host| host.running.contains(&0) && host.has_room()),
        }
    }

    fn handle(&mut self, name: Name) -> Result<(), UserError> {
        match name {
            Name::Signals => self.take_signals(),
            Name::Server => (),
            Name::Terminal => self.take_input(),
            Name::Output => self.output.output.flush(),
            Name::Errors => self.output.errors.flush(),
            Name::Rank(at, channel) => self.take_output(at, channel),
            Name::RankInput(at) => self.site.processes[at].input.iter_mut().for_each(Feed::flush),
            Name::Host(at) => return self.take_frames(at),
            Name::HostRoom(at) => self.hosts[at].to().flush(),
            Name::Bridge(at, rank) => self.take_store(at, rank),
            Name::BridgeRoom(at, rank) => {
                self.hosts[at].bridges.get_mut(&rank).into_iter().for_each(Feed::flush);
            }
        }
        Ok(())
    }

    fn take_output(&mut self, at: usize, channel: Channel) {
        let process = &mut self.site.processes[at];
        let Some(bytes) = process.output(channel).and_then(read) else { return };
        // Without a reader the rank shall get SIGPIPE, as if it wrote to him.
        if bytes.is_empty() || self.output.is_closed(channel) {
            process.close(channel);
        }
        self.output.take(process.rank, channel, &bytes);
    }

    /// Copies standard input to rank 0.
    fn take_input(&mut self) {
        let Some(bytes) = read(stdin().as_fd()) else { return };
        self.copies_input = !bytes.is_empty();
        for input in self.site.processes.iter_mut().filter_map(|process| process.input.as_mut()) {
            if bytes.is_empty() { input.end() } else { input.push(&bytes) }
        }
        if let Some(host) = self.hosts.iter_mut().find(|host| host.running.contains(&0)) {
            host.send(Kind::Input, 0, &bytes);
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
        let Some(bytes) = self.hosts[at].from().and_then(read) else { return Ok(()) };
        if bytes.is_empty() {
            self.lose(at, "its launcher has gone; see what it has written");
            return Ok(());
        }
        self.hosts[at].frames().push(&bytes);
        loop {
            match self.hosts[at].frames().next() {
                Ok(Some(frame)) => self.take_frame(at, &frame)?,
                Ok(None) => return Ok(()),
                Err(_) => {
                    self.lose(at, "it writes something else than cci run; see that its shell prints nothing");
                    return Ok(());
                }
            }
        }
    }

    fn take_frame(&mut self, at: usize, frame: &Frame) -> Result<(), UserError> {
        let (host, rank) = (&mut self.hosts[at], frame.rank);
        match frame.kind {
            Kind::Ready => {
                let processors = frame.bytes[..].try_into().map_or(1, u32::from_le_bytes);
                let ready = host.ready(&mut self.server, processors);
                ready.map_err(while_doing("cannot serve a rank; raise ulimit -n"))?;
            }
            Kind::Store => host.bridges.get_mut(&rank).into_iter().for_each(|bridge| bridge.push(&frame.bytes)),
            Kind::StoreEnd => drop(host.bridges.remove(&rank)),
            Kind::Output => self.output.take(rank, Channel::Output, &frame.bytes),
            Kind::Errors => self.output.take(rank, Channel::Errors, &frame.bytes),
            Kind::Ended => {
                if host.running.remove(&rank) {
                    let end = End::parse(&frame.bytes).unwrap_or(End::Status(1));
                    self.ended(rank, &end);
                }
            }
            Kind::Start | Kind::Input | Kind::Signal => (),
        }
        Ok(())
    }

    /// Gives up a host, and with it the job.
    fn lose(&mut self, at: usize, why: &str) {
        let host = &mut self.hosts[at];
        let lost = host.leave();
        if let Some(rank) = lost.first() {
            self.ended(*rank, &End::NotStarted(format!("is lost with its host: {why}")));
        }
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

    fn signal(&mut self, signal: Signal) {
        self.site.signal(signal);
        for host in &mut self.hosts {
            host.signal(signal);
        }
    }

    /// Stops the job, and then this process; SIGCONT reaches both by this process.
    fn stop(&mut self) {
        self.signal(Signal::STOP);
        for host in &mut self.hosts {
            host.to().flush();
        }
        // A process may always stop itself.
        let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::STOP);
    }

    /// The user asks the job to end: at once if for the second time.
    fn interrupt(&mut self, signal: Signal) {
        if self.ending.is_some() {
            return self.kill();
        }
        self.signal(signal);
        // A stopped process would never see it.
        self.signal(Signal::CONT);
        self.end(128 | u8::try_from(signal.as_raw()).unwrap_or(0), AFTER_A_SIGNAL);
    }

    /// Ends the job with this status, unless it ends already.
    fn end(&mut self, status: u8, grace: Duration) {
        let ending = || Ending { status, deadline: Instant::now() + grace, is_asked: true, is_killed: false };
        self.ending.get_or_insert_with(ending);
    }

    fn kill(&mut self) {
        self.signal(Signal::KILL);
        if let Some(ending) = &mut self.ending {
            ending.deadline = Instant::now() + AFTER_A_KILL;
            ending.is_killed = true;
        }
    }

    fn take_ends(&mut self) {
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

    /// A rank has ended; unless it ended well, so does the job.
    fn ended(&mut self, rank: u32, end: &End) {
        // One that fails after another has ended the job well fails all the same.
        let is_well = self.ending.as_ref().is_none_or(|ending| !ending.is_asked);
        if end.status() == 0 || !is_well {
            return;
        }
        self.ending = None;
        let place = self.places.get(&rank).map(|place| format!(" on {place}")).unwrap_or_default();
        let why = UserError::new(format!("rank {rank}{place} {end}; the job ends with status {}", end.status()));
        self.output.report(&why.0);
        self.end(end.status(), AFTER_A_FAILURE);
        self.ask_to_end();
    }

    fn keep_deadlines(&mut self) {
        let now = Instant::now();
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
        let is_read = |launcher: &Self| launcher.site.processes.iter().all(crate::site::Process::is_read);
        while !(is_read(self) && self.output.is_done()) {
            let mut polling = self.polling_output();
            polling.read(Some(self.signals.as_fd()), Name::Signals);
            for name in polling.wait(None)? {
                match name {
                    Name::Signals if self.signals.take().iter().any(|signal| *signal != Signal::CHILD) => return Ok(()),
                    Name::Signals => (),
                    name => self.handle(name)?,
                }
            }
        }
        Ok(())
    }

    fn polling_output(&self) -> Polling<'_, Name> {
        let mut polling = Polling::new();
        polling.write(self.output.output.waits(), Name::Output);
        polling.write(self.output.errors.waits(), Name::Errors);
        for (at, process) in self.site.processes.iter().enumerate().filter(|_| self.output.has_room()) {
            for (channel, from) in channels(process) {
                polling.read(Some(from), Name::Rank(at, channel));
            }
        }
        polling
    }
}
