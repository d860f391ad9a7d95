//! Blocking calls: they look for the end of their operation, and sleep in between.

use cci_mem::cancellation::Uncancelled;
use cci_mem::sync::{AtomicU64, Ordering};
use cci_proto::{Failure, Status, Unusable};
use cci_transport::{Core, Endpoint, Slot, Transport, is_oversubscribed};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

/// The longest sleep of a blocking call. It bounds what another thread could cost that polls, so
/// that the handle is not armed, and then makes no call any more.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);

/// How long a thread pauses where the system refuses to let it sleep.
const REFUSED: Duration = Duration::from_millis(1);

/// Looks this often at a blocking operation before it sleeps: about the time of a wake-up.
const BLOCKING_SPINS: u32 = 2000;

/// The same where that time is another process's, which may be the one that is waited for.
const OVERSUBSCRIBED_SPINS: u32 = 4;

/// Sleeps of blocking calls in this process that their limit has ended although their operation was
/// over. Relaxed: it publishes nothing.
static MISSED: AtomicU64 = AtomicU64::new(0);

/// Wake-ups that blocking calls of this process have missed: their operation had ended, or a call
/// could end it, while nothing woke them. Each cost the limit of a sleep. For tests: there is none.
pub fn missed_wakeups() -> u64 {
    MISSED.load(Ordering::Relaxed)
}

/// Waits for the end of an operation, without the lock while it sleeps.
pub(super) fn wait(endpoint: &Endpoint, slot: &'static Slot) -> Result<Result<(), Failure>, Unusable> {
    let (mut looks, most) = (0, if is_oversubscribed() { OVERSUBSCRIBED_SPINS } else { BLOCKING_SPINS });
    // Closing the descriptor of a sleep is a cancellation point.
    let mut uncancelled = None;
    let life = endpoint.generation();
    let mut slept: Option<Sleep> = None;
    loop {
        let ended = endpoint.with(|core, transport| {
            if endpoint.generation() != life {
                // Closed meanwhile, and another life begun: the slot is that one's.
                return Err(Status::Disconnected);
            }
            // Before this call takes what has come.
            let is_missed = slept.as_ref().is_some_and(|sleep| sleep.is_over && !sleep.is_readable());
            if let Some(sleep) = slept.take() {
                core.wake_up(slot, sleep.waker);
            }
            transport.progress(core);
            if slot.state() != cci_mem::slot::State::Ended {
                looks += 1;
                // A descriptor of the sleeper's own outlives the endpoint's lock. Without one to
                // spare, or with something to do, the wait spins: slower, never stuck.
                return Ok(if looks > most {
                    uncancelled.get_or_insert_with(Uncancelled::new);
                    Sleep::new(core, transport, slot)
                } else {
                    None
                });
            }
            let status = Status::from_u32(slot.detail()).unwrap_or(Status::Error);
            core.release(slot);
            if is_missed {
                MISSED.fetch_add(1, Ordering::Relaxed);
            }
            Err(status)
        })?;
        match ended {
            Err(Status::Success) => return Ok(Ok(())),
            Err(status) => return Ok(Err(Failure::from_status(status).unwrap_or(Failure::Disconnected))),
            Ok(None) => std::hint::spin_loop(),
            Ok(Some(sleep)) => slept = Some(sleep.until(LONGEST_SLEEP)),
        }
    }
}

/// A sleep of a blocking call.
struct Sleep {
    /// Of the transport: readable when a call could move something.
    handle: Arc<OwnedFd>,
    /// Readable when the operation has ended.
    waker: Arc<OwnedFd>,
    /// The limit has ended it.
    is_over: bool,
}

impl Sleep {
    /// `None`: a call has something to do, or no descriptor is left.
    fn new(core: &mut Core, transport: &mut dyn Transport, slot: &'static Slot) -> Option<Self> {
        let handle = transport.arm_in_call(core)?;
        let waker = core.fall_asleep(slot)?;
        Some(Self { handle, waker, is_over: false })
    }

    /// Sleeps until a descriptor is readable.
    fn until(self, limit: Duration) -> Self {
        let limit = Timespec { tv_sec: 0, tv_nsec: i64::from(limit.subsec_nanos()) };
        let ended = self.poll(limit);
        if ended.is_err_and(|error| error != Errno::INTR) {
            // The system refuses the sleep: the caller's loop must not spin.
            std::thread::sleep(REFUSED);
        }
        Self { is_over: ended == Ok(0), ..self }
    }

    fn is_readable(&self) -> bool {
        self.poll(Timespec { tv_sec: 0, tv_nsec: 0 }) != Ok(0)
    }

    /// How many descriptors are readable within the limit.
    fn poll(&self, limit: Timespec) -> rustix::io::Result<usize> {
        let mut all = [PollFd::new(&*self.handle, PollFlags::IN), PollFd::new(&*self.waker, PollFlags::IN)];
        poll(&mut all, Some(&limit))
    }
}
