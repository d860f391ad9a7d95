//! What endpoints of this process share, and how their cells are taken from it and given back.

use super::Endpoint;
use crate::endpoint::runs::Runs;
use crate::{Body, Slot};
use cci_mem::barrier::{Pairing, prepare};
use cci_mem::fork::{Mark, PerProcess};
use cci_mem::guarded::Threading;
use cci_mem::region::Regions;
use cci_mem::slab::Slab;
use cci_mem::sync::Ordering;

/// What endpoints of this process share.
pub struct Globals {
    /// Endpoints.
    pub endpoints: Slab<Endpoint>,
    /// Connections, by runs.
    pub(in crate::endpoint) connections: Runs,
    /// Slots.
    pub slots: Regions<Slot>,
    /// How this process fences.
    pub pairing: Pairing,
}

static GLOBALS: PerProcess<Globals> = PerProcess::new();

/// This process's globals and fork mark.
///
/// # Errors
///
/// No memory.
pub fn globals() -> rustix::io::Result<&'static (Mark, Globals)> {
    GLOBALS.get(|| Globals {
        endpoints: Slab::new(),
        connections: Slab::new(),
        slots: Regions::new(),
        pairing: prepare(),
    })
}

impl Endpoint {
    /// Opens a cell for a body. Without one the cell stays closed, and the caller recycles it.
    ///
    /// # Errors
    ///
    /// No memory.
    pub fn open(
        threading: Threading,
        make: impl FnOnce(&'static Self) -> Option<Body>,
    ) -> rustix::io::Result<&'static Self> {
        let (mark, globals) = globals()?;
        let endpoint = globals.endpoints.take();
        endpoint.mark.set(*mark);
        endpoint.holders.store(1, Ordering::Relaxed);
        endpoint.starving.store(false, Ordering::Relaxed);
        endpoint.failed.store(false, Ordering::Relaxed);
        if let Some(body) = make(endpoint) {
            endpoint.wakers.open(body.transport.waker());
            // A cell in the slab is for many threads (see `close`), so that nobody can be refused
            // here.
            if let Ok(mut place) = endpoint.body.enter() {
                *place = Some(body);
                place.hand_over(threading);
            }
        }
        Ok(endpoint)
    }

    /// Gives a closed cell back to the slab.
    pub fn recycle(&'static self) {
        if let Ok((_, globals)) = globals() {
            globals.endpoints.give(self);
        }
    }
}
