//! `cci top`: the endpoints of this host's processes, live or once.

use crate::choice::choice;
use cci_report::UserError;
use cci_report::sizes::parse_time;
use cci_top::{Order, Output, TopOptions};
use clap::Args;
use std::net::SocketAddr;
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
    /// Serve OpenMetrics over HTTP at this address, /metrics, until ended; 127.0.0.1:9617 without
    /// one. There is no authentication: whoever reaches the address sees the endpoints
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:9617",
          conflicts_with_all = ["once", "json", "sort", "interval"], value_parser = address)]
    listen: Option<SocketAddr>,
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

/// An address with a port, or a port of 127.0.0.1.
fn address(text: &str) -> Result<SocketAddr, String> {
    let whole = if text.contains(':') { text.to_owned() } else { format!("127.0.0.1:{text}") };
    whole.parse().map_err(|_| "pass ADDRESS:PORT, such as 127.0.0.1:9617, or a port".into())
}

/// Shows endpoints.
pub(crate) fn top(arguments: &TopArguments) -> Result<(), UserError> {
    let output = match (arguments.listen, arguments.json, arguments.once) {
        (Some(address), ..) => Output::Metrics(address),
        (None, true, _) => Output::Json,
        (None, false, true) => Output::Table,
        (None, false, false) => Output::Live,
    };
    cci_top::top(&TopOptions {
        output,
        pids: arguments.pid.clone(),
        interval: arguments.interval,
        order: arguments.sort,
    })
}
