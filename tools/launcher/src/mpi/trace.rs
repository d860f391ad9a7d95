//! What an MPI asks, and what it is answered, in a file.

use crate::feed::Feed;
use cci_report::{UserError, while_doing};
use std::fs::{File, OpenOptions};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A file that gets lines. Where it is a pipe that nobody empties, lines are left out and counted.
pub(crate) struct Trace {
    feed: Feed<File>,
    path: PathBuf,
    left_out: u64,
    is_reported: bool,
}

impl Trace {
    /// Opens the file, which is emptied.
    pub(super) fn open(path: &Path) -> Result<Self, UserError> {
        let mut options = OpenOptions::new();
        // A pipe without a reader is an error, and not waited for.
        options.write(true).create(true).truncate(true).custom_flags(libc::O_NONBLOCK);
        let failed = format!("cannot write the trace {}; set CCI_MPI_TRACE to a file", path.display());
        let file = options.open(path).map_err(while_doing(&failed))?;
        Ok(Self { feed: Feed::new(file), path: path.to_owned(), left_out: 0, is_reported: false })
    }

    pub(super) fn line(&mut self, text: &str) {
        if self.feed.has_room() {
            self.feed.push(format!("{text}\n").as_bytes());
        } else {
            self.left_out += 1;
        }
    }

    /// The descriptor, if it is to be asked for room.
    pub(crate) fn waits(&self) -> Option<BorrowedFd<'_>> {
        self.feed.waits()
    }

    pub(crate) fn flush(&mut self) {
        self.feed.flush();
    }

    /// Why nothing more is traced, once.
    pub(super) fn failure(&mut self) -> Option<String> {
        let error = self.feed.failure().filter(|_| !self.is_reported)?;
        self.is_reported = true;
        let path = self.path.display();
        Some(UserError::new(format!("cannot write the trace {path}: {error}; the job goes on without it")).0)
    }

    /// How much of the trace is missing at the end.
    pub(crate) fn missing(&mut self) -> Option<String> {
        self.flush();
        let path = self.path.display();
        let is_whole = self.left_out == 0 && self.feed.is_done();
        let why = || UserError::new(format!("the trace {path} lacks its last lines: its reader was too slow")).0;
        (!is_whole).then(why)
    }
}
