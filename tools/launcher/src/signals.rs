//! Signals of the launcher, as bytes of a pipe beside a flag for each.

use cci_mem::descriptors;
use cci_report::{UserError, while_doing};
use rustix::process::Signal;
use signal_hook::{flag, low_level};
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The signals that have come. Those that this process ignores stay ignored, as `nohup` wants it.
pub(crate) struct Signals {
    pipe: UnixStream,
    flags: Vec<(Signal, Arc<AtomicBool>)>,
}

/// The child's signal, and those that are passed on.
const WATCHED: [Signal; 9] = [
    Signal::CHILD,
    Signal::INT,
    Signal::TERM,
    Signal::HUP,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
    Signal::TSTP,
    Signal::CONT,
];

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

impl Signals {
    pub(crate) fn watch() -> Result<Self, UserError> {
        let failed = while_doing("cannot wait for signals");
        let (pipe, write) = descriptors::stream_pair().map_err(&failed)?;
        pipe.set_nonblocking(true).map_err(&failed)?;
        // A write without a reader shall fail and not end a program that has become a launcher. The
        // ranks get what a signal does by itself again.
        if !is_ignored(Signal::PIPE) {
            flag::register(Signal::PIPE.as_raw(), Arc::default()).map_err(&failed)?;
        }
        let mut flags = Vec::new();
        for signal in WATCHED.into_iter().filter(|signal| *signal == Signal::CHILD || !is_ignored(*signal)) {
            let flag = Arc::new(AtomicBool::new(false));
            // The flag is set before the pipe becomes readable.
            flag::register(signal.as_raw(), flag.clone()).map_err(&failed)?;
            let write = write.try_clone().map_err(&failed)?;
            low_level::pipe::register(signal.as_raw(), write).map_err(&failed)?;
            flags.push((signal, flag));
        }
        Ok(Self { pipe, flags })
    }

    /// Takes the signals that have come since the last call.
    pub(crate) fn take(&mut self) -> Vec<Signal> {
        // It is emptied first, so that a signal that comes now is found at the next call.
        while matches!(self.pipe.read(&mut [0; 256]), Ok(1..)) {}
        self.flags.iter().filter(|(_, flag)| flag.swap(false, Ordering::SeqCst)).map(|(signal, _)| *signal).collect()
    }
}

/// Whether this process was started with a signal ignored.
fn is_ignored(signal: Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal.as_raw() - 1) & 1 == 1)
}
