//! One of the processes: what it hears and says.

use super::Role;
use crate::measure::environment::pin;
use crate::measure::local::die_with_parent;
use crate::measure::{UserError, while_doing};
use crate::probe::shared::Shared;
use crate::probe::{Probe, Side, WakePair};
use clap::Args;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, Write, stdin, stdout};

/// A line that a member says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Line {
    Said(serde_json::Value),
    Done,
    Failed(String),
}

/// Arguments of a member; not for people.
#[derive(Args, Debug)]
pub(crate) struct MemberArguments {
    /// What it does
    #[arg(long)]
    role: String,
    /// Its number
    #[arg(long)]
    number: usize,
    /// Process that must be the parent
    #[arg(long)]
    parent: i32,
    /// Processor to stay on
    #[arg(long)]
    cpu: Option<usize>,
    /// Descriptor of the common memory
    #[arg(long)]
    memory: i32,
    /// Descriptors that wake the server, and the client, of probes
    #[arg(long, num_args = 2)]
    wake: Vec<i32>,
}

/// What a member speaks to its parent with, and its side of the probes.
pub(crate) struct Voice {
    probe: Option<Probe>,
}

impl Voice {
    /// The probes, which the first two members have a side of: the first is the client.
    pub(crate) fn probe(&mut self) -> Result<&mut Probe, UserError> {
        self.probe.as_mut().ok_or_else(|| UserError::new("this process has no part in probes"))
    }

    /// Says something to the parent.
    #[expect(clippy::unused_self, reason = "who has a voice may speak")]
    pub(crate) fn say(&self, what: &impl Serialize) -> Result<(), UserError> {
        speak(&Line::Said(serde_json::to_value(what).map_err(while_doing("cannot say what was measured"))?));
        Ok(())
    }

    /// Waits for what the parent says.
    #[expect(clippy::unused_self, reason = "who has a voice has ears")]
    pub(crate) fn hear<T: DeserializeOwned>(&self) -> Result<T, UserError> {
        let mut line = String::new();
        stdin().lock().read_line(&mut line).map_err(while_doing("cannot hear the parent"))?;
        serde_json::from_str(&line).map_err(while_doing("the parent spoke nonsense"))
    }
}

/// Plays a role, in a process of its own.
pub(crate) fn member(arguments: &MemberArguments) -> Result<(), UserError> {
    let outcome = play(arguments);
    speak(&match &outcome {
        Ok(()) => Line::Done,
        Err(why) => Line::Failed(why.0.clone()),
    });
    outcome
}

fn play(arguments: &MemberArguments) -> Result<(), UserError> {
    die_with_parent(arguments.parent)?;
    let role: Role = serde_json::from_str(&arguments.role).map_err(while_doing("the role is malformed"))?;
    if let Some(cpu) = arguments.cpu {
        pin(cpu).map_err(while_doing("cannot stay on the processor"))?;
    }
    let mut voice = Voice { probe: probe(arguments)? };
    match role {
        Role::Breakdown(role) => crate::breakdown::play(&role, &mut voice),
        Role::Gups(role) => crate::gups::play(&role, &voice),
        Role::Logp(role) => crate::logp::play(&role, &voice),
    }
}

/// The side of the probes that the member with this number takes.
fn probe(arguments: &MemberArguments) -> Result<Option<Probe>, UserError> {
    let side = match arguments.number {
        0 => Side::Client,
        1 => Side::Server,
        _ => return Ok(None),
    };
    let memory = Shared::inherit(arguments.memory).map_err(while_doing("cannot map the memory of the probes"))?;
    let [to_server, to_client] = arguments.wake[..] else { return Err(UserError::new("two descriptors are needed")) };
    Ok(Some(Probe::new(memory, WakePair::inherit([to_server, to_client]), side)))
}

fn speak(line: &Line) {
    let mut output = stdout().lock();
    // A parent that is gone takes this process with it.
    let _ = serde_json::to_writer(&mut output, line);
    let _ = writeln!(output);
    let _ = output.flush();
}
