//! Processes that a measurement starts, and all tasks that they may have.

use crate::measure::local::EndTask;
use crate::methods::connections::ConnectionsTask;
use crate::methods::footprint::FootprintTask;
use crate::methods::many_peers::ManyPeersTask;
use crate::methods::memory_curves::CurveTask;
use crate::methods::splitc::{NetworkRank, PartsRank};
use crate::methods::ways::WaysTask;
use crate::methods::{am, breakdown, gups, logp, mappings, mx, portals, sci, via};
use crate::task::{Order, Task};
use crate::workers::WorkerTask;
use cci_report::{UserError, while_doing};
use serde_json::Value;
use std::io::Write;
use std::process::ExitCode;

/// Does a task, given as JSON.
type Run = fn(Value) -> Result<(), Option<UserError>>;

/// Every task, by its name.
const TASKS: [(&str, Run); 18] = [
    // One end of a local run.
    named::<EndTask>(),
    // One process of a measurement that needs several.
    named::<WorkerTask<logp::Role>>(),
    named::<WorkerTask<breakdown::Role>>(),
    named::<WorkerTask<gups::Role>>(),
    named::<WorkerTask<am::Role>>(),
    named::<WorkerTask<portals::Role>>(),
    named::<WorkerTask<portals::NodeRole>>(),
    named::<WorkerTask<mx::Role>>(),
    named::<WorkerTask<sci::Role>>(),
    named::<WorkerTask<mappings::Role>>(),
    named::<WorkerTask<via::Role>>(),
    // One figure that needs a process of its own.
    named::<FootprintTask>(),
    // Very many connections: the end that measures, or the one that connects.
    named::<ConnectionsTask>(),
    // One curve of memory: the end that measures, or peers.
    named::<CurveTask>(),
    // Many peers of one endpoint: the end that measures, or the peers.
    named::<ManyPeersTask>(),
    // One endpoint over several transports beside endpoints of one: the end that measures, or the
    // other.
    named::<WaysTask>(),
    // A rank of a Split-C job over a network.
    named::<NetworkRank>(),
    // A rank of one that tells the parts of a get.
    named::<PartsRank>(),
];

const fn named<T: Task>() -> (&'static str, Run) {
    (T::NAME, run_task::<T>)
}

fn run_task<T: Task>(arguments: Value) -> Result<(), Option<UserError>> {
    let task: T = serde_json::from_value(arguments).map_err(while_doing("cannot parse the task"))?;
    task.run()
}

/// Does the task of this process if a measurement has started it, and returns the status to end
/// with. A program that measures calls this first in `main`.
#[must_use]
pub fn run() -> Option<ExitCode> {
    let order = Order::of_this_process()?;
    Some(match order.map_err(Some).and_then(follow) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            // A task that has reported the error leaves nothing to write.
            let _ = why.map(|why| writeln!(std::io::stderr(), "{}.", why.0.trim_end_matches('.')));
            ExitCode::FAILURE
        }
    })
}

/// Does what the order names.
fn follow(order: Order) -> Result<(), Option<UserError>> {
    let found = TASKS.iter().find(|(name, _)| *name == order.task);
    let unknown = || while_doing("cannot parse the task")(format!("there is no {}", order.task));
    let (_, run) = found.ok_or_else(unknown)?;
    run(order.arguments)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_task_has_a_name_of_its_own() {
        let names: BTreeSet<_> = TASKS.iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), TASKS.len());
    }
}
