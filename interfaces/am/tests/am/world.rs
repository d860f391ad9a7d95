//! Several endpoints of one process, driven by one thread, over the mapping that `below` names.

pub(crate) use crate::below::{Device, Endpoint, Mapping, open};
use cci::{HeapBytes, Memory};
use cci_am::{Handlers, Immediate, Options, Peer, RequestError, Status};
use cci_conformance::{LIMIT, device_of};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

/// A device of a virtual network of its own, with these faults.
pub(crate) fn sim(faults: &[(&str, &str)]) -> cci::Device {
    static LAST: AtomicU32 = AtomicU32::new(0);
    let network = format!("am{}", LAST.fetch_add(1, Ordering::Relaxed));
    let keys = [("network", network.as_str()), ("delay", "2000"), ("bandwidth", "1250000000")];
    device_of("sim", &[&keys[..], faults].concat())
}

/// The faults of a bad network: frames are lost, doubled, spoilt, and overtake each other.
pub(crate) const FAULTS: [(&str, &str); 4] = [("loss", "3"), ("duplicate", "3"), ("corrupt", "1"), ("jitter", "20000")];

/// A segment of so many zeroes.
pub(crate) fn segment(len: usize) -> Memory {
    Memory::of_bytes(&Arc::new(HeapBytes::new(vec![0; len])))
}

/// What handlers have seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Requests: arguments, payload.
    pub(crate) requests: Vec<(Vec<u32>, Vec<u8>)>,
    pub(crate) replies: Vec<(Vec<u32>, Vec<u8>)>,
    pub(crate) returned: Vec<(Status, u8, Vec<u32>)>,
}

/// Endpoints with their states.
pub(crate) struct World<S: Send> {
    pub(crate) endpoints: Vec<Endpoint<S>>,
    /// When a poll has found something, the last time.
    progress: Instant,
}

impl<S: Send> World<S> {
    pub(crate) fn new(
        device: &Device,
        options: &Options,
        count: usize,
        handlers: fn() -> Handlers<S>,
        state: fn() -> S,
    ) -> Self {
        let open = |_| open(device, options, handlers(), state());
        Self { endpoints: (0..count).map(open).collect(), progress: Instant::now() }
    }

    pub(crate) fn map(&mut self, from: usize, to: usize, tag: u64) -> Peer {
        let name = self.endpoints[to].name().to_owned();
        self.endpoints[from].map(&name, tag).expect("a name")
    }

    /// Polls every endpoint once.
    pub(crate) fn step(&mut self) {
        let found: usize = self.endpoints.iter_mut().map(|endpoint| endpoint.poll().expect("usable")).sum();
        if found == 0 {
            std::thread::yield_now();
        } else {
            self.progress = Instant::now();
        }
    }

    /// Steps until it is done. What fails is a wait in which nothing happens: a loaded machine may
    /// take its time.
    pub(crate) fn until(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        self.progress = Instant::now();
        while !done(self) {
            assert!(self.progress.elapsed() < LIMIT, "waited in vain for {what}");
            self.step();
        }
    }

    /// Sends by an immediate request, and polls all endpoints until it goes.
    pub(crate) fn send(
        &mut self,
        from: usize,
        mut act: impl FnMut(Immediate<'_, S, Mapping>) -> Result<(), RequestError>,
    ) {
        self.until("a credit", |world| match act(world.endpoints[from].now()) {
            Err(RequestError::WouldBlock) => false,
            sent => {
                sent.expect("a request");
                true
            }
        });
    }

    /// Steps until a peer of an endpoint has no open request.
    pub(crate) fn drain(&mut self, from: usize, peer: Peer) {
        self.until("the end of all requests", |world| world.endpoints[from].outstanding(peer) == 0);
    }

    pub(crate) fn state(&mut self, at: usize) -> &mut S {
        self.endpoints[at].state()
    }
}

/// All of them close at once: one that closes waits for its peers, and the time of a virtual
/// network stands nearly still while these do not poll.
impl<S: Send> Drop for World<S> {
    fn drop(&mut self) {
        std::thread::scope(|scope| self.endpoints.drain(..).for_each(|endpoint| drop(scope.spawn(|| drop(endpoint)))));
    }
}
