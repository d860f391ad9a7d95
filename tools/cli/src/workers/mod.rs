//! Several processes of this host that measure together: spawned by executing this program again, each with a role, pinned to
//! different processors as long as there are enough.
//!
//! Parent and members say lines of JSON to each other over the members' standard input and output. Members die with their
//! parent (the kernel sees to that); the parent notices the death of one by the end of its output.

mod worker;

pub(crate) use worker::{MemberArguments, Voice, member};

use crate::measure::environment::{allowed, two_processors};
use crate::measure::{UserError, while_doing};
use crate::probe::WakePair;
use crate::probe::shared::{self, Shared};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;
use worker::Line;

/// How long the crew may say nothing before it is taken for stuck: longer than anything that it does.
const SILENCE: Duration = Duration::from_secs(300);
/// How long the members that are left may take to say what they saw, when one has died.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What a member does.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Role {
    /// An end of `cci perf logp`.
    Logp(crate::logp::Role),
    /// An end of `cci perf breakdown`.
    Breakdown(crate::breakdown::Role),
    /// A process of `cci perf gups`.
    Gups(crate::gups::Role),
}

/// A member, ended when this is dropped.
struct Member {
    child: Child,
    input: Option<ChildStdin>,
    /// What it said that was not asked for yet.
    said: VecDeque<serde_json::Value>,
    /// It has done everything.
    is_done: bool,
}

impl Drop for Member {
    fn drop(&mut self) {
        // Both fail only when it has ended and been waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the parent heard.
enum Heard {
    Line(Line),
    /// The member's output has ended.
    End,
}

/// The processes.
pub(crate) struct Crew {
    members: Vec<Member>,
    heard: Receiver<(usize, Heard)>,
    /// Memory and descriptors of the probes, which the members inherit.
    bare: (Shared, WakePair),
    /// Processors of the members, if each has one of its own.
    pub(crate) processors: Option<Vec<usize>>,
}

impl Crew {
    /// Starts a member for each role. The first is the client of probes, the second the server.
    pub(crate) fn start(roles: &[Role]) -> Result<Self, UserError> {
        let memory = Shared::create(shared::LEN).map_err(while_doing("no memory for the probes"))?;
        let wake = WakePair::create().map_err(while_doing("no descriptors for the probes"))?;
        let processors = processors(roles.len());
        let (sender, heard) = channel();
        let mut crew = Self { members: Vec::new(), heard, bare: (memory, wake), processors };
        for (number, role) in roles.iter().enumerate() {
            let member = crew.spawn(number, role, &sender)?;
            crew.members.push(member);
        }
        Ok(crew)
    }

    fn spawn(&self, number: usize, role: &Role, sender: &Sender<(usize, Heard)>) -> Result<Member, UserError> {
        let failed = while_doing("cannot start a process of the run");
        let program = std::env::current_exe().map_err(&failed)?;
        let role = serde_json::to_string(role).map_err(while_doing("cannot write the role"))?;
        let (memory, wake) = &self.bare;
        let mut command = Command::new(program);
        command.args(["member", "--role", &role, "--parent", &std::process::id().to_string()]);
        command.args(["--number", &number.to_string(), "--memory", &memory.number().to_string(), "--wake"]);
        command.args(wake.numbers().map(|number| number.to_string()));
        if let Some(processors) = &self.processors {
            command.args(["--cpu", &processors[number].to_string()]);
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(&failed)?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let sender = sender.clone();
        std::thread::spawn(move || {
            for line in output.into_iter().flat_map(|output| BufReader::new(output).lines()) {
                let Ok(Ok(line)) = line.map(|line| serde_json::from_str(&line)) else { break };
                // Nobody listens any more once the run has ended.
                let _ = sender.send((number, Heard::Line(line)));
            }
            let _ = sender.send((number, Heard::End));
        });
        Ok(Member { child, input, said: VecDeque::new(), is_done: false })
    }

    /// Says something to a member.
    pub(crate) fn tell(&mut self, number: usize, what: &impl Serialize) -> Result<(), UserError> {
        let text = serde_json::to_string(what).map_err(while_doing("cannot write to a process of the run"))?;
        let written = self.members[number].input.as_mut().map(|input| writeln!(input, "{text}"));
        match written {
            Some(Ok(())) => Ok(()),
            // It has ended: what it said last is the reason.
            _ => Err(self.why_over(number)),
        }
    }

    /// The next thing that the member with this number says. What others say meanwhile is heard later.
    ///
    /// # Errors
    ///
    /// A member failed, died, or ended before it had said everything.
    pub(crate) fn hear<T: DeserializeOwned>(&mut self, number: usize) -> Result<T, UserError> {
        let value = loop {
            if let Some(value) = self.members[number].said.pop_front() {
                break value;
            }
            self.listen(number)?;
        };
        serde_json::from_value(value).map_err(while_doing("a process of the run spoke nonsense"))
    }

    /// Listens until something has been said, for a member that is waited for.
    fn listen(&mut self, awaited: usize) -> Result<(), UserError> {
        match self.heard.recv_timeout(SILENCE) {
            Ok((number, Heard::Line(Line::Said(value)))) => self.members[number].said.push_back(value),
            Ok((number, Heard::Line(Line::Done))) => self.members[number].is_done = true,
            Ok((number, Heard::Line(Line::Failed(why)))) => {
                return Err(self.who_died(number).unwrap_or(UserError(why)));
            }
            // One that is done may go, unless more was expected of it.
            Ok((number, Heard::End)) if !self.members[number].is_done || number == awaited => {
                return Err(self.why_over(number));
            }
            Ok((_, Heard::End)) => {}
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                return Err(UserError(format!("the processes of the run said nothing for {} s", SILENCE.as_secs())));
            }
        }
        Ok(())
    }

    /// Says something to every member.
    pub(crate) fn tell_all(&mut self, what: &impl Serialize) -> Result<(), UserError> {
        (0..self.members.len()).try_for_each(|number| self.tell(number, what))
    }

    /// One thing from each member, by number.
    pub(crate) fn hear_all<T: DeserializeOwned>(&mut self) -> Result<Vec<T>, UserError> {
        (0..self.members.len()).map(|number| self.hear(number)).collect()
    }

    /// One member failed: maybe because another was killed, which is then the reason.
    fn who_died(&mut self, number: usize) -> Option<UserError> {
        while let Ok((other, heard)) = self.heard.recv_timeout(LAST_WORDS) {
            if other != number && matches!(heard, Heard::End) && self.is_killed(other) {
                return Some(self.why_over(other));
            }
        }
        None
    }

    fn is_killed(&mut self, number: usize) -> bool {
        self.members[number].child.wait().is_ok_and(|status| status.code().is_none())
    }

    /// Why a member is not there any more.
    fn why_over(&mut self, number: usize) -> UserError {
        let status = self.members[number].child.wait();
        let how = status.map_or_else(|error| error.to_string(), |status| status.to_string());
        UserError(format!("process {number} of the run died: {how}"))
    }
}

/// A processor for each of so many members: different ones, or none.
fn processors(count: usize) -> Option<Vec<usize>> {
    let there = allowed();
    match count {
        2 => Some(two_processors().to_vec()),
        count if count <= there.len() => Some(there[..count].to_vec()),
        _ => None,
    }
}
