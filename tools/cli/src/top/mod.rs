//! `cci top`: the endpoints of this host's processes, live or once.

mod keys;
mod plain;
mod processes;
mod rows;
mod terminal;
mod view;

use cci_report::sizes::parse_time;
use cci_report::{UserError, while_doing};
use clap::Args;
use processes::{Look, Scope};
use rows::{Order, Watch};
use std::io::{IsTerminal, Write};
use std::time::Duration;

/// Arguments of `cci top`.
#[derive(Args, Debug)]
pub(crate) struct TopArguments {
    /// Look twice, print a table, and end
    #[arg(long)]
    once: bool,
    /// Look twice, print JSON, and end
    #[arg(long)]
    json: bool,
    /// Show this process only, once for each; also one of another user, if the kernel allows it
    #[arg(long, value_parser = clap::value_parser!(i32).range(1..))]
    pid: Vec<i32>,
    /// Time from look to look, such as 500ms or 2s
    #[arg(long, default_value = "1s", value_parser = parse_time)]
    interval: Duration,
    /// What comes first
    #[arg(long, value_enum, default_value = "pid")]
    sort: Order,
}

/// Shows endpoints.
pub(crate) fn top(arguments: &TopArguments) -> Result<(), UserError> {
    let scope = Scope { proc: "/proc".into(), user: rustix::process::geteuid().as_raw(), pids: arguments.pid.clone() };
    if arguments.once || arguments.json {
        return print(arguments, &scope);
    }
    if !(std::io::stdout().is_terminal() && std::io::stdin().is_terminal()) {
        return Err(UserError::new(
            "the live view needs a terminal for input and output; `cci top --once` prints a table, `cci top --json` JSON",
        ));
    }
    terminal::run(&scope, arguments.interval, arguments.sort)
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

fn print(arguments: &TopArguments, scope: &Scope) -> Result<(), UserError> {
    let mut watch = Watch::default();
    watch.rows(&look(scope)?, arguments.sort);
    std::thread::sleep(arguments.interval);
    let look = look(scope)?;
    let rows = watch.rows(&look, arguments.sort);
    let text = if arguments.json { format!("{:#}\n", plain::json(&rows, &look)) } else { plain::table(&rows, &look) };
    std::io::stdout().write_all(text.as_bytes()).map_err(while_doing("cannot write the table"))
}
