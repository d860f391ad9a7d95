//! Copies by peers that had not ended when their endpoint closed. Until they end, the memory must
//! stay mapped.

use crate::lock;
use cci_mem::fork::PerProcess;
use cci_mem::memory::Memory;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// An RMA by a peer that had not ended when the endpoint closed.
pub trait PeerCopy: Send {
    /// Whether the peer has ended the copy, or has itself ended.
    fn is_over(&self) -> bool;

    /// The name of the peer, for messages.
    fn peer(&self) -> String;
}

type Copies = Vec<Box<dyn PeerCopy>>;

static COPIES: PerProcess<Mutex<Copies>> = PerProcess::new();

fn copies() -> Option<MutexGuard<'static, Copies>> {
    let (_, copies) = COPIES.get(Mutex::default).ok()?;
    let mut copies = lock(copies);
    copies.retain(|copy| !copy.is_over());
    Some(copies)
}

/// Records the copies of a closing endpoint, for [`wait_for_copies`], and keeps the memory that the
/// endpoint had registered until all of them are over.
pub fn keep_copies(left: Vec<Box<dyn PeerCopy>>, memory: Vec<Memory>) {
    if left.is_empty() {
        return;
    }
    let memory: Arc<[Memory]> = memory.into();
    match copies() {
        Some(mut copies) => {
            copies.extend(
                left.into_iter()
                    .map(|copy| -> Box<dyn PeerCopy> { Box::new(WithMemory { copy, _memory: Arc::clone(&memory) }) }),
            );
        }
        // No memory for the list: what peers may still copy is never freed.
        None => std::mem::forget(memory),
    }
}

/// A copy, and the memory that it may touch.
struct WithMemory {
    copy: Box<dyn PeerCopy>,
    _memory: Arc<[Memory]>,
}

impl PeerCopy for WithMemory {
    fn is_over(&self) -> bool {
        self.copy.is_over()
    }

    fn peer(&self) -> String {
        self.copy.peer()
    }
}

/// Waits until all copies of closed endpoints have ended, at most `limit`. Returns a peer that
/// still copies, if any.
#[must_use]
pub fn wait_for_copies(limit: Duration) -> Option<String> {
    let begin = Instant::now();
    loop {
        let peer = copies()?.first()?.peer();
        if begin.elapsed() >= limit {
            return Some(peer);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cci_mem::memory::HeapBytes;
    use cci_mem::sync::{AtomicBool, Ordering};

    struct Fake(Arc<AtomicBool>);

    impl PeerCopy for Fake {
        fn is_over(&self) -> bool {
            self.0.load(Ordering::Relaxed)
        }

        fn peer(&self) -> String {
            "a peer".into()
        }
    }

    #[test]
    fn copies_are_kept_until_they_are_over() {
        let over = Arc::new(AtomicBool::new(false));
        let owner = Arc::new(HeapBytes::new(vec![0; 8]));
        let memory = Memory::of_bytes(&owner);
        keep_copies(vec![Box::new(Fake(Arc::clone(&over)))], vec![memory]);
        assert_eq!(wait_for_copies(Duration::ZERO).as_deref(), Some("a peer"));
        assert_eq!(Arc::strong_count(&owner), 2, "a peer may still copy");
        over.store(true, Ordering::Relaxed);
        assert_eq!(wait_for_copies(Duration::from_secs(30)), None);
        assert_eq!(Arc::strong_count(&owner), 1);
    }
}
