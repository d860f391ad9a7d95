//! Waiting for a send buffer.

use super::AsyncEndpoint;
use crate::{Connection, Notify, binding};
use cci_mem::descriptors;
use cci_proto::SendError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::future::{Future, poll_fn};
use std::os::fd::{AsFd, OwnedFd};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Watches a copy of a descriptor, which the runtime may watch already. `None`: the runtime
/// refuses.
#[expect(unsafe_code, reason = "the descriptor must stay open while the runtime watches it")]
fn watch(descriptor: impl AsFd) -> Option<AsyncFd<OwnedFd>> {
    let own = descriptors::duplicate(descriptor).ok()?;
    // SAFETY: an `OwnedFd` has one descriptor, which is open as long as the `AsyncFd` that owns it.
    unsafe { AsyncFd::register_with_interest(own, Interest::READABLE) }.ok()
}

impl AsyncEndpoint {
    /// Sends a message as [`crate::EndpointFor::send`], and waits for a send buffer where none is
    /// free. The message is in the library's hands when this returns.
    ///
    /// Makes progress while it waits, and takes no event: events that nobody takes hold buffers. So
    /// the ends of sends are taken by another task, or are no events ([`Notify::OnFailure`]).
    ///
    /// Cancel safe: a future that is dropped before it is ready has sent nothing.
    ///
    /// # Errors
    ///
    /// As [`crate::EndpointFor::send`]: nothing was sent. [`SendError::NoBuffers`]: the runtime
    /// does not wait, because it is shutting down or has no descriptor left.
    ///
    /// # Example
    ///
    /// ```
    /// use cci::tokio::AsyncEndpoint;
    /// use cci::{Connection, Notify, SendError};
    ///
    /// async fn send_all(endpoint: &AsyncEndpoint, to: Connection, lines: &[&str]) -> Result<(), SendError> {
    ///     for line in lines {
    ///         endpoint.send_when_room(to, line.as_bytes(), Notify::OnFailure(0)).await?;
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub async fn send_when_room(
        &self,
        connection: Connection,
        message: &[u8],
        notify: impl Into<Notify>,
    ) -> Result<(), SendError> {
        let notify = notify.into();
        loop {
            let looks = self.senders().looks();
            match self.send(connection, message, notify) {
                Err(SendError::NoBuffers) => {}
                ended => return ended,
            }
            let sleep = binding::progress_and_arm(self.cell())?;
            // Progress may have made room.
            match self.send(connection, message, notify) {
                Err(SendError::NoBuffers) => {}
                ended => return ended,
            }
            match sleep {
                Some(quiet) => self.wait_for_room(quiet, looks).await?,
                // There is something to do already.
                None => tokio::task::yield_now().await,
            }
        }
    }

    /// Waits until a call could move something, another task looks for events, or the handle
    /// becomes readable. `quiet`: readable for progress, and not for events that wait.
    async fn wait_for_room(&self, quiet: Arc<OwnedFd>, looks: u64) -> Result<(), SendError> {
        // While events wait it says nothing about room. A watch of its own, so that no edge of
        // another task is taken.
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let is_readable = poll(&mut [PollFd::new(&**self, PollFlags::IN)], Some(&now)) != Ok(0);
        let handle = if is_readable { None } else { Some(watch(&**self).ok_or(SendError::NoBuffers)?) };
        let quiet = watch(quiet).ok_or(SendError::NoBuffers)?;
        let mut moved = pin!(quiet.readable());
        let mut room = pin!(async {
            match &handle {
                Some(handle) => handle.readable().await.map(drop),
                None => std::future::pending().await,
            }
        });
        let refused = |_| SendError::NoBuffers;
        poll_fn(|context| {
            if self.senders().poll_look(context, looks).is_ready() {
                return Poll::Ready(Ok(()));
            }
            if let Poll::Ready(moved) = moved.as_mut().poll(context) {
                return Poll::Ready(moved.map(drop).map_err(refused));
            }
            room.as_mut().poll(context).map_err(refused)
        })
        .await
    }
}
