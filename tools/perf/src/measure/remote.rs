//! A run against a server that somebody else has started.

use super::c_library::CLibrary;
use super::client;
use super::client::Progress;
use super::control::Report;
use super::facade::Facade;
use super::plan::Plan;
use super::points::{Finished, in_launches};
use cci_report::UserError;
use cci_report::names::Abi;
use cci_report::output::table;

/// Measures against a server that somebody else has started, and reports to it.
pub(super) fn remote(plan: &Plan, uri: &str, mut on: impl FnMut(Progress<'_>)) -> Result<Finished, UserError> {
    let mut is_served = false;
    let on = |progress: Progress<'_>| {
        is_served |= matches!(progress, Progress::Size(_));
        on(progress);
    };
    let finished = in_launches(plan, on, |plan, on| match plan.abi {
        Abi::Rust => client::run::<Facade>(plan, uri, None, on),
        Abi::C => client::run::<CLibrary>(plan, uri, None, on),
    });
    if is_served {
        client::report::<Facade>(plan, uri, ending(&finished));
    }
    finished
}

/// What the server is told.
fn ending(finished: &Result<Finished, UserError>) -> Report {
    match finished {
        Ok(finished) => Report { result: table::in_short(&finished.rows), early: finished.interrupted.clone() },
        Err(why) => Report { result: String::new(), early: Some(why.0.clone()) },
    }
}
