//! The ranks of one host: started, signalled, reaped.

use crate::Program;
use crate::end::{End, NOT_STARTED};
use crate::feed::Feed;
use crate::output::{CHANNELS, Channel};
use crate::sys;
use cci_job::{DESCRIPTOR, SOCKET};
use cci_mem::descriptors;
use cci_report::names::Choice;
use cci_report::{UserError, while_doing};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, kill_process_group};
use rustix::thread::{CpuSet, sched_getaffinity};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

/// How long processes that somebody left behind may take to die.
const ORPHANS: Duration = Duration::from_secs(2);

/// The variable with the number of a rank's program among those of the job.
const PROGRAM: &str = "CCI_APPNUM";

/// Variables of other launchers, in whose ranks this one may run: an MPI would take them for its
/// own.
const OF_OTHERS: [&str; 5] = ["PMI_PORT", "PMI_JOBID", "PMI_SPAWNED", "PMIX_NAMESPACE", "PMIX_RANK"];

/// Which processors a rank may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_enums, reason = "the command line has no other")]
pub enum Bind {
    /// Those that the launcher may use.
    #[default]
    None,
    /// One, in turn.
    Core,
}

impl Choice for Bind {
    const CHOICES: &'static [(Self, &'static str, &'static str)] =
        &[(Self::Core, "core", "one, in turn"), (Self::None, "none", "those that this command may use")];
}

/// What the ranks run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    /// The first ranks of the job run the first of these, and so on.
    pub(crate) programs: Vec<Program>,
    /// The directory, where it is not that of the launcher.
    pub(crate) directory: Option<PathBuf>,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) bind: Bind,
    pub(crate) size: u32,
    /// Of ranks of an MPI: what each has in its environment, here as well.
    pub(crate) mpi: Option<Vec<(OsString, OsString)>>,
}

/// The launcher's ends of what a rank is connected to.
pub(crate) struct Ends {
    pub(crate) store: UnixStream,
    /// The process manager of its MPI.
    pub(crate) pmi: Option<UnixStream>,
}

/// What becomes of a rank's standard descriptors.
#[derive(Clone, Copy)]
pub(crate) struct Streams {
    pub(crate) are_outputs_piped: bool,
    /// Of rank 0; the others have none.
    pub(crate) is_input_piped: bool,
}

/// A rank of this host.
pub(crate) struct Process {
    pub(crate) rank: u32,
    pid: Option<Pid>,
    outputs: [Option<OwnedFd>; 2],
    pub(crate) input: Option<Feed<ChildStdin>>,
}

impl Process {
    /// Where the rank's output can be read.
    pub(crate) fn output(&self, channel: Channel) -> Option<BorrowedFd<'_>> {
        self.outputs[channel as usize].as_ref().map(AsFd::as_fd)
    }

    pub(crate) fn close(&mut self, channel: Channel) {
        self.outputs[channel as usize] = None;
    }

    /// Whether the rank runs.
    pub(crate) fn runs(&self) -> bool {
        self.pid.is_some()
    }

    /// Whether all that the rank wrote has been read.
    pub(crate) fn is_read(&self) -> bool {
        self.outputs.iter().all(Option::is_none)
    }
}

/// The ranks of this host.
#[derive(Default)]
pub(crate) struct Site {
    pub(crate) processes: Vec<Process>,
    /// Ranks that could not be started.
    not_started: Vec<(u32, End)>,
    /// Where ranks write why they cannot run what they shall, and that.
    failures: Option<(OwnedFd, Task)>,
    /// What has been read there of ranks that have not been reaped.
    unreaped: BTreeMap<u32, End>,
}

/// The processors that this process may use.
fn processors() -> Vec<usize> {
    let allowed = sched_getaffinity(None).unwrap_or_default();
    (0..CpuSet::MAX_CPU).filter(|at| allowed.is_set(*at)).collect()
}

/// How many processors ranks of this host have.
pub(crate) fn count_of_processors() -> u32 {
    u32::try_from(processors().len().max(1)).unwrap_or(1)
}

impl Site {
    /// Starts these ranks: the first one of each program alone, because what it cannot run none
    /// can, and the others at once. Returns the launcher's ends of their connections. `reap`
    /// reports a rank that cannot be started, and those after it that are not started.
    pub(crate) fn start(task: &Task, ranks: &[u32], streams: Streams) -> Result<(Self, Vec<Ends>), UserError> {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(while_doing("cannot become the parent of what ranks leave behind"))?;
        let processors = processors();
        let (mut site, mut ends) = (Self::default(), Vec::new());
        let (read, write) = pipe(PipeFlags::NONBLOCK).map_err(while_doing("cannot connect a rank; raise ulimit -n"))?;
        site.failures = Some((read, task.clone()));
        let mut started = BTreeSet::new();
        for (at, rank) in ranks.iter().enumerate() {
            let pair = || descriptors::stream_pair().map_err(while_doing("cannot connect a rank; raise ulimit -n"));
            let (ours, theirs) = pair()?;
            let (pmi, theirs_of_pmi) = task.mpi.as_ref().map(|_| pair()).transpose()?.unzip();
            let mut command = task.command(*rank, at, ranks.len());
            if let Some(theirs) = &theirs_of_pmi {
                task.join_mpi(&mut command, (*rank, at, ranks.len()), theirs.as_raw_fd());
            }
            let socket = rustix::fs::fstat(&theirs).map_err(while_doing("cannot connect a rank"))?.st_ino;
            command.env(DESCRIPTOR, theirs.as_raw_fd().to_string()).env(SOCKET, socket.to_string());
            let own = processors.get(at % processors.len().max(1)).filter(|_| task.bind == Bind::Core);
            let inherited = [Some(&theirs), theirs_of_pmi.as_ref()].into_iter().flatten().map(AsRawFd::as_raw_fd);
            sys::prepare(&mut command, inherited.collect(), own.map(|own| one(*own)));
            let is_first = started.insert(task.program(*rank).0);
            match spawn(&mut command, *rank, streams, Some(write.as_fd()).filter(|_| !is_first)) {
                Ok(process) => site.processes.push(process),
                Err(why) => {
                    site.not_started.push((*rank, End::NotStarted(task.cannot_start(*rank, &why))));
                    site.not_started.extend(ranks[at + 1..].iter().map(|rank| (*rank, End::NotTried)));
                    break;
                }
            }
            ends.push(Ends { store: ours, pmi });
        }
        Ok((site, ends))
    }

    /// Sends a signal to the groups of all ranks that run.
    pub(crate) fn signal(&self, signal: Signal) {
        for pid in self.processes.iter().filter_map(|process| process.pid) {
            // It fails only for a group that has ended.
            let _ = kill_process_group(pid, signal);
        }
    }

    /// Takes the ends of ranks, and what else has ended and who it was.
    pub(crate) fn reap(&mut self) -> (Vec<(u32, End)>, Vec<Pid>) {
        let mut ends = std::mem::take(&mut self.not_started);
        let mut others = Vec::new();
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            let number = |number: i32| u8::try_from(number).unwrap_or(u8::MAX);
            let end = match (status.exit_status(), status.terminating_signal()) {
                (Some(status), _) => End::Status(number(status)),
                (_, Some(signal)) => End::Signal(number(signal)),
                _ => continue,
            };
            if end == End::Status(NOT_STARTED) {
                let failures = self.read_failures();
                self.unreaped.extend(failures);
            }
            match self.processes.iter_mut().find(|process| process.pid == Some(pid)) {
                Some(process) => {
                    process.pid = None;
                    ends.push((process.rank, self.unreaped.remove(&process.rank).unwrap_or(end)));
                }
                None => others.push(pid),
            }
        }
        (ends, others)
    }

    /// The ranks that could not run what they shall, some of which may not have been reaped.
    fn read_failures(&self) -> Vec<(u32, End)> {
        let Some((from, task)) = &self.failures else { return Vec::new() };
        let mut found = Vec::new();
        let mut failure = [[0; 4]; 2];
        // One is written whole, and read whole.
        while rustix::io::read(from, failure.as_flattened_mut()) == Ok(8) {
            let why = std::io::Error::from_raw_os_error(i32::from_le_bytes(failure[1]));
            let rank = u32::from_le_bytes(failure[0]);
            found.push((rank, End::NotStarted(task.cannot_start(rank, &why))));
        }
        found
    }

    /// Whether no rank runs.
    pub(crate) fn is_over(&self) -> bool {
        self.not_started.is_empty() && !self.processes.iter().any(Process::runs)
    }
}

/// Kills what ranks have left behind: it has become this process's, one generation after the other.
pub(crate) fn kill_orphans() -> Result<(), UserError> {
    let deadline = Instant::now() + ORPHANS;
    // Without a child it is refused.
    while rustix::process::wait(WaitOptions::NOHANG).is_ok() {
        if Instant::now() > deadline {
            return Err(UserError::new("processes that ranks have left behind do not die; see ps"));
        }
        for child in children() {
            // Only this process can reap it, so that the number is still its own.
            let _ = kill_process(child, Signal::KILL);
            let _ = rustix::process::waitpid(Some(child), WaitOptions::empty());
        }
    }
    Ok(())
}

/// The processes whose parent this one is.
fn children() -> Vec<Pid> {
    let Ok(all) = std::fs::read_dir("/proc") else { return Vec::new() };
    let names = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    names.filter_map(Pid::from_raw).filter(|pid| parent_of(*pid) == Some(rustix::process::getpid())).collect()
}

/// The parent of a process, the second word behind the name in parentheses.
fn parent_of(pid: Pid) -> Option<Pid> {
    let about = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    let parent = about.rsplit_once(") ")?.1.split(' ').nth(1)?;
    parent.parse().ok().and_then(Pid::from_raw)
}

fn one(processor: usize) -> CpuSet {
    let mut set = CpuSet::new();
    set.set(processor);
    set
}

impl Task {
    fn command(&self, rank: u32, at: usize, count: usize) -> Command {
        let (number, program) = self.program(rank);
        let mut command = Command::new(&program.program);
        command.args(&program.arguments).process_group(0);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.env(PROGRAM, number.to_string());
        command.env("RANK", rank.to_string()).env("WORLD_SIZE", self.size.to_string());
        command.env("LOCAL_RANK", at.to_string()).env("LOCAL_WORLD_SIZE", count.to_string());
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command
    }

    /// Gives a rank what its MPI looks for: its number, that among so many of its host, and the
    /// descriptor of its process manager.
    fn join_mpi(&self, command: &mut Command, (rank, at, count): (u32, usize, usize), descriptor: i32) {
        for name in OF_OTHERS {
            command.env_remove(name);
        }
        command.envs(self.mpi.iter().flatten().map(|(name, value)| (name, value)));
        command.env("PMI_FD", descriptor.to_string()).env("PMI_ID", rank.to_string());
        command.env("PMI_RANK", rank.to_string()).env("PMI_SIZE", self.size.to_string());
        // As hydra names them.
        command.env("MPI_LOCALRANKID", at.to_string()).env("MPI_LOCALNRANKS", count.to_string());
    }

    /// What a rank runs, and the number of that program.
    pub(crate) fn program(&self, rank: u32) -> (usize, &Program) {
        let mut end = 0_u32;
        let ends = self.programs.iter().map(|program| {
            end = end.saturating_add(program.ranks);
            end
        });
        let number = ends.take_while(|end| *end <= rank).count().min(self.programs.len() - 1);
        (number, &self.programs[number])
    }

    fn cannot_start(&self, rank: u32, why: &std::io::Error) -> String {
        let program = self.program(rank).1.program.display();
        match self.directory.as_ref().filter(|directory| !directory.is_dir()) {
            Some(directory) => format!("cannot start in {}, which is no directory there", directory.display()),
            None => format!("cannot start '{program}': {why}; name a program that the host has"),
        }
    }
}

/// A pipe, also for a program without standard descriptors that starts its own workers.
fn pipe(flags: PipeFlags) -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = pipe_with(flags | PipeFlags::CLOEXEC)?;
    Ok((descriptors::above_standard(read)?, descriptors::above_standard(write)?))
}

/// Starts a rank. `failures`: it is not waited for, and writes there why it cannot run.
fn spawn(
    command: &mut Command,
    rank: u32,
    streams: Streams,
    failures: Option<BorrowedFd<'_>>,
) -> std::io::Result<Process> {
    let mut outputs = [None, None];
    if streams.are_outputs_piped {
        let [(output, to_output), (errors, to_errors)] = [pipe(PipeFlags::empty())?, pipe(PipeFlags::empty())?];
        command.stdout(to_output).stderr(to_errors);
        outputs = [Some(output), Some(errors)];
    }
    // Rank 0 is the first of its host.
    command.stdin(match rank {
        0 if streams.is_input_piped => Stdio::piped(),
        0 => Stdio::inherit(),
        _ => Stdio::null(),
    });
    let (pid, input) = match failures {
        Some(failures) => (sys::start(command, rank, failures)?, None),
        None => {
            let mut child = command.spawn()?;
            (Pid::from_child(&child), child.stdin.take())
        }
    };
    for pipe in outputs.iter().flatten().map(AsFd::as_fd).chain(input.as_ref().map(AsFd::as_fd)) {
        rustix::io::ioctl_fionbio(pipe, true)?;
    }
    Ok(Process { rank, pid: Some(pid), outputs, input: input.map(Feed::new) })
}

/// Both channels of each rank that still has them.
pub(crate) fn channels(process: &Process) -> impl Iterator<Item = (Channel, BorrowedFd<'_>)> {
    CHANNELS.into_iter().filter_map(|channel| Some((channel, process.output(channel)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Child;

    /// A process with the status of a rank that cannot run its program; it ends with its input.
    fn failing() -> (Child, Process) {
        let mut command = Command::new("sh");
        let child = command.args(["-c", "read word; exit 127"]).stdin(Stdio::piped()).spawn().expect("a process");
        let pid = Some(Pid::from_child(&child));
        (child, Process { rank: 0, pid, outputs: [None, None], input: None })
    }

    #[test]
    fn each_rank_that_cannot_be_started_tells_why_whenever_it_is_reaped() {
        let program = Program { ranks: 3, program: "/nowhere/program".into(), arguments: Vec::new() };
        let task = Task {
            programs: vec![program],
            directory: None,
            environment: Vec::new(),
            bind: Bind::None,
            size: 3,
            mpi: None,
        };
        let (read, write) = pipe(PipeFlags::NONBLOCK).expect("a pipe");
        let mut site = Site { failures: Some((read, task)), ..Site::default() };
        let mut children = Vec::new();
        for rank in [1, 2] {
            let (child, process) = failing();
            site.processes.push(Process { rank, ..process });
            children.push(child);
            rustix::io::write(&write, [rank.to_le_bytes(), 2_i32.to_le_bytes()].as_flattened()).expect("room");
        }
        // Both have written; they end one after the other.
        for (rank, child) in [1, 2].into_iter().zip(&mut children) {
            drop(child.stdin.take());
            let (mut ends, begin) = (Vec::new(), Instant::now());
            while ends.is_empty() {
                ends = site.reap().0;
                assert!(begin.elapsed() < 30 * ORPHANS, "rank {rank} does not end");
                std::thread::yield_now();
            }
            let why = "cannot start '/nowhere/program': No such file or directory (os error 2); name a program that \
                       the host has";
            assert_eq!(ends, [(rank, End::NotStarted(why.into()))]);
        }
    }
}
