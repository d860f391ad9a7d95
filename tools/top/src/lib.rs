//! `cci top`: the endpoints of this host's processes, live, once, or as metrics.
#![forbid(unsafe_code)]

#[doc(hidden)]
pub mod fuzzing;
mod keys;
mod listen;
mod metrics;
mod plain;
mod processes;
mod rows;
mod terminal;
mod view;

use cci_report::{UserError, while_doing};
use processes::{Look, Scope};
use rows::Watch;
use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::time::Duration;

pub use rows::Order;

/// What to show, and how.
#[derive(Clone, Debug)]
pub struct TopOptions {
    /// What goes to standard output.
    pub output: Output,
    /// These processes only, once for each; also those of another user, if the kernel allows it.
    /// Without one all of this user.
    pub pids: Vec<i32>,
    /// Time from look to look.
    pub interval: Duration,
    /// What comes first.
    pub order: Order,
}

/// What goes to standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The live view, until a key ends it.
    Live,
    /// A table, after two looks.
    Table,
    /// JSON, after two looks.
    Json,
    /// The address at which requests of HTTP get OpenMetrics, until the process ends.
    Metrics(SocketAddr),
}

/// Shows endpoints.
///
/// # Errors
///
/// There is no such process, the kernel does not show it, or standard output cannot take what is
/// shown: the live view needs a terminal for input and output.
pub fn top(options: &TopOptions) -> Result<(), UserError> {
    let scope = Scope { proc: "/proc".into(), user: rustix::process::geteuid().as_raw(), pids: options.pids.clone() };
    if let Output::Metrics(address) = options.output {
        return listen::serve(&scope, address);
    }
    if options.output != Output::Live {
        return print(options, &scope);
    }
    if !(std::io::stdout().is_terminal() && std::io::stdin().is_terminal()) {
        return Err(UserError::new(
            "the live view needs a terminal for input and output; `cci top --once` prints a table, `cci top --json` JSON",
        ));
    }
    terminal::run(&scope, options.interval, options.order)
}

/// Looks, and says in one sentence what stands in the way.
fn look(scope: &Scope) -> Result<Look, UserError> {
    let look = scope.look().map_err(while_doing("the kernel does not show its processes, is /proc mounted"))?;
    for pid in &scope.pids {
        let path = scope.proc.join(pid.to_string());
        if !path.exists() {
            return Err(UserError(format!("there is no process {pid}")));
        }
        if std::fs::read_dir(path.join("fd")).is_err_and(|e| e.kind() == std::io::ErrorKind::PermissionDenied) {
            return Err(UserError(format!(
                "the kernel does not let this user look at process {pid}: be its user, or root, and see that it has not changed its rights"
            )));
        }
    }
    Ok(look)
}

fn print(options: &TopOptions, scope: &Scope) -> Result<(), UserError> {
    let mut watch = Watch::default();
    watch.rows(&look(scope)?, options.order);
    std::thread::sleep(options.interval);
    let look = look(scope)?;
    let rows = watch.rows(&look, options.order);
    let text = if options.output == Output::Json {
        format!("{:#}\n", plain::json(&rows, &look))
    } else {
        plain::table(&rows, &look)
    };
    std::io::stdout().write_all(text.as_bytes()).map_err(while_doing("cannot write the table"))
}
