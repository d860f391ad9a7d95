//! Pairs of processes on this host that measure something beside CCI's own.

use super::warn_of_one_processor;
use crate::device::{Device, device_of_ends};
use crate::interrupt;
use crate::measure::driver::DriverOptions;
use crate::reach::scope;
use crate::workers::{Work, Workers};
use cci::Scope;
use cci_report::UserError;
use cci_report::environment::Environment;
use cci_report::names::{Mode, Threads};
use serde::de::DeserializeOwned;

/// Keys, as of the configuration.
type Keys = Vec<(String, String)>;

/// The transport and the keys of the device of both ends, which are processes. `warn` hears what
/// the user should know before `what` begins.
pub(super) fn device(what: &str, device: &Device, warn: &dyn Fn(&str)) -> Result<(String, Keys), UserError> {
    let (name, keys) = device_of_ends(device, None)?;
    if scope(&name) == Some(Scope::Process) {
        let why = format!("{what} runs in two processes, and {name} is in one: use --transport sm or sock");
        return Err(UserError(why));
    }
    warn_of_one_processor(warn);
    Ok((name, keys))
}

/// How an end opens an endpoint, of so many that its process opens.
pub(super) fn opening(transport: Option<&String>, keys: &[(String, String)], ends: u32) -> DriverOptions {
    DriverOptions {
        transport: transport.cloned(),
        threads: Threads::Many,
        mode: Mode::Polling,
        keys: keys.to_vec(),
        library: None,
        ends,
    }
}

/// Starts a pair, and hands the card of the second to the first.
pub(super) fn start<W: Work>(roles: &[W; 2], environment: &mut Environment) -> Result<Workers, UserError> {
    let mut workers = begin(roles, environment)?;
    hand_over(&mut workers)?;
    Ok(workers)
}

/// Pairs one after the other, `most` or, if the user ends the run, at least `least`: `add` gets
/// what the first of each has measured. Returns why there are no more. What fails in the first pair
/// fails the run.
pub(super) fn launch<W: Work, L: DeserializeOwned>(
    (least, most): (usize, usize),
    environment: &mut Environment,
    roles: impl Fn(usize) -> [W; 2],
    mut add: impl FnMut(L, &mut Environment),
) -> Result<Option<String>, UserError> {
    for number in 0..most {
        if number >= least && interrupt::is_asked() {
            break;
        }
        let mut workers = begin(&roles(number), environment)?;
        match hand_over(&mut workers).and_then(|()| workers.recv(0)) {
            Ok(launch) => add(launch, environment),
            Err(why) if number == 0 => return Err(why),
            Err(why) => return Ok(Some(why.0)),
        }
    }
    Ok(interrupt::why())
}

fn begin<W: Work>(roles: &[W; 2], environment: &mut Environment) -> Result<Workers, UserError> {
    let workers = Workers::start(roles)?;
    if let Some([first, second]) = workers.processors.as_deref() {
        environment.pinned = Some([*first, *second]);
    }
    Ok(workers)
}

fn hand_over(workers: &mut Workers) -> Result<(), UserError> {
    let card: serde_json::Value = workers.recv(1)?;
    workers.send(0, &card)
}
