//! Signals that end a run: what was measured by then is shown and written.

use cci_report::{UserError, while_doing};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

static ASKED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// The status of a second signal, which ends the process at once.
const AT_ONCE: i32 = 130;

/// Why a run ended.
pub(crate) const ENDED: &str = "a signal ended the run";

/// From now on the first signal asks the run to end, and the second ends the process.
pub fn watch() -> Result<(), UserError> {
    let failed = while_doing("cannot wait for signals");
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        flag::register_conditional_shutdown(signal, AT_ONCE, ASKED.clone()).map_err(&failed)?;
        flag::register(signal, ASKED.clone()).map_err(&failed)?;
    }
    Ok(())
}

/// As [`watch`], for a child of the run: its parent ends it.
pub(crate) fn watch_in_child() -> Result<(), UserError> {
    flag::register(SIGINT, ASKED.clone()).map(drop).map_err(while_doing("cannot wait for signals"))
}

/// Whether a signal has asked the run to end.
pub(crate) fn is_asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}
