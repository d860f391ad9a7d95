//! Measurements: what is measured, and the two ends that do it.

mod blocks;
pub(crate) mod c_library;
pub(crate) mod client;
pub(crate) mod control;
pub(crate) mod driver;
pub(crate) mod ends;
pub(crate) mod facade;
#[cfg(test)]
mod hostile;
pub(crate) mod kernel;
pub(crate) mod local;
pub(crate) mod loops;
pub mod plan;
pub(crate) mod points;
pub(crate) mod ports;
mod reception;
pub(crate) mod remote;
pub mod request;
#[cfg(test)]
mod scripted;
pub(crate) mod server;
pub(crate) mod shared_pages;
mod turns;
pub(crate) mod usage;
pub(crate) mod virtual_time;
mod visits;

pub use client::Progress;
pub use ends::attribute;
pub use points::Finished;
pub use server::Notice;

use crate::device::{Device, VIRTUAL, VIRTUAL_IS_LOCAL, library_beside};
use c_library::CLibrary;
use cci_report::UserError;
use cci_report::names::{Abi, Mode, Threads};
use driver::DriverOptions;
use facade::Facade;
use plan::Plan;
use std::convert::Infallible;
use std::path::PathBuf;

/// Measures a plan: with both ends on this host, or against the server at this URI. `on` hears of
/// it as it goes on.
///
/// # Errors
///
/// Nothing was measured. A run that ended early is no error here: it has rows.
pub fn run(plan: &Plan, server: Option<&str>, on: impl FnMut(Progress<'_>)) -> Result<Finished, UserError> {
    match server {
        None => local::run(plan, on),
        Some(uri) => remote::remote(plan, uri, on),
    }
}

/// Serves runs, one after the other, until the process ends.
///
/// # Errors
///
/// The device cannot be opened, or fails, or what the callback returns.
pub fn serve(
    device: &Device,
    abi: Abi,
    library: Option<PathBuf>,
    on: impl FnMut(Notice<'_>) -> Result<(), UserError>,
) -> Result<Infallible, UserError> {
    if device.transport.as_deref() == Some(VIRTUAL) {
        return Err(UserError::new(VIRTUAL_IS_LOCAL));
    }
    let opening = DriverOptions {
        transport: device.transport.clone(),
        threads: Threads::Many,
        mode: Mode::Blocking,
        keys: device.keys.clone(),
        library: library.or_else(library_beside),
        ends: 1,
    };
    match abi {
        Abi::Rust => server::serve::<Facade>(&opening, server::PATIENCE, None, on),
        Abi::C => server::serve::<CLibrary>(&opening, server::PATIENCE, None, on),
    }
}
