//! Signals that end a run: what was measured by then is shown and written.

use cci_report::{UserError, while_doing};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

static ASKED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// The status of a second signal, which ends the process at once.
const AT_ONCE: i32 = 130;

/// Why a run ended.
pub(crate) const ENDED: &str = "a signal ended the run";

/// How often a process that waits for a child looks whether a signal has come.
pub(crate) const LOOK: Duration = Duration::from_millis(100);

/// From now on the first signal asks the run to end, and the second ends the process.
///
/// A signal that is ignored stays ignored: `nohup` ignores SIGHUP so that the run outlives its
/// terminal.
pub fn watch() -> Result<(), UserError> {
    let failed = while_doing("cannot wait for signals");
    for signal in watched() {
        flag::register_conditional_shutdown(signal, AT_ONCE, ASKED.clone()).map_err(&failed)?;
        flag::register(signal, ASKED.clone()).map_err(&failed)?;
    }
    Ok(())
}

/// As [`watch`], for a child of the run. A terminal sends its signals to the child too; the parent
/// sends SIGTERM and ends it.
pub(crate) fn watch_in_child() -> Result<(), UserError> {
    let mut signals = watched().filter(|signal| *signal != SIGTERM).chain([SIGTERM]);
    let watched = signals.try_for_each(|signal| flag::register(signal, ASKED.clone()).map(drop));
    watched.map_err(while_doing("cannot wait for signals"))
}

/// Asks a child that watches to end what it does.
pub(crate) fn pass_on(child: &Child) {
    // It fails only for a child that has ended.
    let _ = kill_process(Pid::from_child(child), Signal::TERM);
}

/// Whether a signal has asked the run to end.
pub(crate) fn is_asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// Why the run ended early, if a signal has asked for it.
pub(crate) fn why() -> Option<String> {
    is_asked().then(|| ENDED.into())
}

/// The signals that end a run and are not ignored.
fn watched() -> impl Iterator<Item = i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    [SIGINT, SIGTERM, SIGHUP].into_iter().filter(move |signal| !is_ignored(&status, *signal))
}

/// Whether the kernel's text about a process names the signal among those that are ignored.
fn is_ignored(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read_from_the_kernels_mask() {
        let status = "SigBlk:\tffffffffffffffff\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000000000\n";
        assert!(is_ignored(status, SIGHUP));
        assert!(!is_ignored(status, SIGINT) && !is_ignored(status, SIGTERM));
        assert!(!is_ignored("", SIGHUP));
    }
}
