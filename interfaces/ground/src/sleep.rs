//! Sleeping on descriptors.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// Has a sleep end once this can be read.
///
/// # Example
///
/// ```
/// use std::os::fd::AsFd;
///
/// let file = std::fs::File::open("/dev/null")?;
/// cci_ground::sleep_until_ready(&mut [cci_ground::readable(file.as_fd())], None);
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use]
pub fn readable(descriptor: BorrowedFd<'_>) -> PollFd<'_> {
    PollFd::from_borrowed_fd(descriptor, PollFlags::IN)
}

/// Sleeps until one of these is as it says, at most for `left`, or until a signal: its caller looks
/// again. Returns false if the time is over.
///
/// # Example
///
/// ```
/// use std::time::Duration;
///
/// assert!(!cci_ground::sleep_until_ready(&mut [], Some(Duration::from_millis(1))));
/// ```
pub fn sleep_until_ready(descriptors: &mut [PollFd<'_>], left: Option<Duration>) -> bool {
    let left = left.and_then(|left| Timespec::try_from(left).ok());
    // A signal ends it early.
    poll(descriptors, left.as_ref()) != Ok(0)
}
