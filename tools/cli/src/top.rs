//! `cci top`: the endpoints of this host's processes, live or once.

use crate::choice::choice;
use cci_report::UserError;
use cci_report::sizes::parse_time;
use cci_top::{Order, Output, TopOptions};
use clap::Args;
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
    #[arg(long, value_parser = choice::<Order>(), default_value = "pid")]
    sort: Order,
}

/// Shows endpoints.
pub(crate) fn top(arguments: &TopArguments) -> Result<(), UserError> {
    let output = match (arguments.json, arguments.once) {
        (true, _) => Output::Json,
        (false, true) => Output::Table,
        (false, false) => Output::Live,
    };
    cci_top::top(&TopOptions {
        output,
        pids: arguments.pid.clone(),
        interval: arguments.interval,
        order: arguments.sort,
    })
}
