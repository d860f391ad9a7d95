//! Several endpoints of one process over a mapping, driven by one thread: what the conformance
//! checks of `cci-am` need.

use cci::{HeapBytes, Memory};
use cci_am::{Handlers, Immediate, Options, Peer, RequestError, Status};
use cci_am_via::{Buffers, Variant, ViaMapping};
use cci_testkit::{LIMIT, device_of};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

pub(crate) type Endpoint<S> = cci_am::Endpoint<S, ViaMapping>;

/// A device of CCI, and how mappings are opened on it.
pub(crate) struct Device {
    pub(crate) device: cci::Device,
    pub(crate) options: cci_am_via::Options,
}

impl Device {
    pub(crate) fn new(device: cci::Device, variant: Variant) -> Self {
        Self { device, options: cci_am_via::Options::new(variant) }
    }

    /// So many credits, and buffers of that kind.
    pub(crate) fn with(mut self, credits: u16, buffers: Buffers) -> Self {
        self.options = self.options.credits(credits).buffers(buffers);
        self
    }

    /// A ring of so many bytes, and credits that go back after so many messages.
    pub(crate) fn with_ring(mut self, bytes: u32, every: u16) -> Self {
        self.options = self.options.ring(bytes).update_every(every);
        self
    }
}

/// A device of a virtual network of its own, with these faults.
pub(crate) fn sim(faults: &[(&str, &str)]) -> cci::Device {
    static LAST: AtomicU32 = AtomicU32::new(0);
    let network = format!("amvia{}", LAST.fetch_add(1, Ordering::Relaxed));
    let keys = [("network", network.as_str()), ("delay", "2000"), ("bandwidth", "1250000000")];
    device_of("sim", &[&keys[..], faults].concat())
}

/// The faults of a bad network.
pub(crate) const FAULTS: [(&str, &str); 4] = [("loss", "3"), ("duplicate", "3"), ("corrupt", "1"), ("jitter", "20000")];

/// A segment of so many zeroes.
pub(crate) fn segment(len: usize) -> Memory {
    Memory::of_bytes(&Arc::new(HeapBytes::new(vec![0; len])))
}

pub(crate) fn open<S>(device: &Device, options: &Options, handlers: Handlers<S>, state: S) -> Endpoint<S> {
    let mapping = ViaMapping::open(&device.device, &device.options).expect("a mapping");
    Endpoint::over(mapping, options, handlers, state).expect("an endpoint")
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
}

impl<S: Send> World<S> {
    pub(crate) fn new(
        device: &Device,
        options: &Options,
        count: usize,
        handlers: fn() -> Handlers<S>,
        state: fn() -> S,
    ) -> Self {
        Self { endpoints: (0..count).map(|_| open(device, options, handlers(), state())).collect() }
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
        }
    }

    pub(crate) fn until(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        let begun = Instant::now();
        while !done(self) {
            assert!(begun.elapsed() < LIMIT, "waited in vain for {what}");
            self.step();
        }
    }

    /// Sends by an immediate request, and polls all endpoints until it goes.
    pub(crate) fn send(
        &mut self,
        from: usize,
        mut act: impl FnMut(Immediate<'_, S, ViaMapping>) -> Result<(), RequestError>,
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

/// All of them close at once: one that closes waits for its peers.
impl<S: Send> Drop for World<S> {
    fn drop(&mut self) {
        std::thread::scope(|scope| self.endpoints.drain(..).for_each(|endpoint| drop(scope.spawn(|| drop(endpoint)))));
    }
}
