//! Another host, as the launcher of the job sees it: a remote launcher behind pipes.

use crate::feed::{Feed, MOST};
use crate::frames::{Frames, Kind, send};
use crate::remote::Plan;
use crate::sys;
use cci_job::{Local, Server};
use cci_mem::descriptors;
use cci_report::{UserError, while_doing};
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

/// How programs are started on other hosts: without questions, which nobody would see.
const SSH: &str = "ssh -o BatchMode=yes";

/// A remote launcher and its ranks.
pub(crate) struct RemoteHost {
    pub(crate) pid: Pid,
    to: Feed<ChildStdin>,
    from: Option<ChildStdout>,
    frames: Frames,
    ranks: Vec<u32>,
    /// The ranks that have not ended.
    pub(crate) running: BTreeSet<u32>,
    /// Whether its ranks have been started.
    is_ready: bool,
    /// How many bytes of standard input rank 0 has not taken.
    input_in_flight: usize,
    /// The way between each rank and the store.
    pub(crate) bridges: BTreeMap<u32, Feed<UnixStream>>,
}

impl RemoteHost {
    /// Starts a launcher there.
    pub(crate) fn start(rsh: Option<&str>, own: Option<&OsString>, name: &str, plan: &Plan) -> Result<Self, UserError> {
        let own = match own {
            Some(own) => own.into(),
            None => std::env::current_exe().map_err(while_doing("cannot find the path of cci itself"))?,
        };
        let mut words = rsh.unwrap_or(SSH).split_whitespace();
        let first = words.next().ok_or_else(|| UserError::new("--rsh names no command; write one such as ssh"))?;
        if rsh.is_none() && !is_plain(&own) {
            let own = own.display();
            return Err(UserError::new(format!(
                "the path {own} has characters that a shell changes; move cci elsewhere"
            )));
        }
        let mut command = Command::new(first);
        command.args(words).arg(name).arg(own).args(["run", "--remote"]);
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        sys::prepare(&mut command, Vec::new(), None);
        let failed = format!("cannot start '{first}' for {name}; install it, or name another one by --rsh");
        let mut child = command.spawn().map_err(while_doing(&failed))?;
        let pid = Pid::from_child(&child);
        let (to, from) = child.stdin.take().zip(child.stdout.take()).expect("both are pipes");
        for pipe in [to.as_fd(), from.as_fd()] {
            rustix::io::ioctl_fionbio(pipe, true).map_err(while_doing("cannot use a pipe"))?;
        }
        let ranks = plan.ranks.clone();
        let mut host = Self {
            pid,
            to: Feed::new(to),
            from: Some(from),
            frames: Frames::default(),
            running: ranks.iter().copied().collect(),
            ranks,
            is_ready: false,
            input_in_flight: 0,
            bridges: BTreeMap::new(),
        };
        let plan = serde_json::to_vec(plan).map_err(while_doing("cannot write the plan of a host"))?;
        host.send(Kind::Start, 0, &plan);
        Ok(host)
    }

    pub(crate) fn send(&mut self, kind: Kind, rank: u32, bytes: &[u8]) {
        send(&mut self.to, kind, rank, bytes);
    }

    /// Sends answers of PMI to a rank; nothing closes its connection.
    pub(crate) fn send_pmi(&mut self, rank: u32, bytes: &[u8]) {
        self.send(if bytes.is_empty() { Kind::PmiEnd } else { Kind::Pmi }, rank, bytes);
    }

    /// Sends standard input for rank 0; nothing is its end.
    pub(crate) fn send_input(&mut self, bytes: &[u8]) {
        self.send(Kind::Input, 0, bytes);
        self.input_in_flight += bytes.len();
    }

    /// Rank 0 has taken so many bytes of its input.
    pub(crate) fn take_credit(&mut self, bytes: u32) {
        self.input_in_flight = self.input_in_flight.saturating_sub(bytes as usize);
    }

    /// Whether more of standard input may be read for rank 0.
    pub(crate) fn takes_input(&self) -> bool {
        self.input_in_flight < MOST && self.has_room()
    }

    /// Its ranks, those that have ended too.
    pub(crate) fn ranks(&self) -> &[u32] {
        &self.ranks
    }

    /// Whether this rank is there.
    pub(crate) fn has(&self, rank: u32) -> bool {
        self.ranks.binary_search(&rank).is_ok()
    }

    /// Sends a signal to all its ranks.
    pub(crate) fn signal(&mut self, signal: Signal) {
        self.send(Kind::Signal, 0, &signal.as_raw().to_le_bytes());
    }

    /// Has the store serve its ranks, on a host of so many processors.
    pub(crate) fn ready(&mut self, server: &mut Server, processors: u32) -> std::io::Result<()> {
        // One that states it again would have sockets made until none are left.
        if std::mem::replace(&mut self.is_ready, true) {
            return Ok(());
        }
        let size = u32::try_from(self.ranks.len()).expect("ranks have numbers of that type");
        for (at, rank) in (0..).zip(&self.ranks) {
            let (ours, theirs) = descriptors::stream_pair()?;
            theirs.set_nonblocking(true)?;
            server.adopt(ours, *rank, Local { rank: at, size, processors })?;
            self.bridges.insert(*rank, Feed::new(theirs));
        }
        Ok(())
    }

    pub(crate) fn frames(&mut self) -> &mut Frames {
        &mut self.frames
    }

    /// Whether its ranks are still to be started.
    pub(crate) fn starts(&self) -> bool {
        !self.is_ready && !self.running.is_empty()
    }

    /// Where its frames can be read.
    pub(crate) fn from(&self) -> Option<BorrowedFd<'_>> {
        self.from.as_ref().map(AsFd::as_fd)
    }

    pub(crate) fn to(&mut self) -> &mut Feed<ChildStdin> {
        &mut self.to
    }

    /// The pipe to it, if it is to be asked for room.
    pub(crate) fn waits(&self) -> Option<BorrowedFd<'_>> {
        self.to.waits()
    }

    /// Whether more may be read for it.
    pub(crate) fn has_room(&self) -> bool {
        self.to.has_room()
    }

    /// Closes what leads there, so that its ranks end; the ranks that ran.
    pub(crate) fn leave(&mut self) -> BTreeSet<u32> {
        self.to.close();
        self.from = None;
        self.bridges.clear();
        std::mem::take(&mut self.running)
    }

    /// Kills the command that leads there.
    pub(crate) fn kill(&self) {
        // It fails only if it has ended.
        let _ = kill_process_group(self.pid, Signal::KILL);
    }
}

/// Whether a shell on the other side leaves this path as it is.
fn is_plain(path: &Path) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+".contains(byte);
    path.as_os_str().as_encoded_bytes().iter().all(is_plain)
}
