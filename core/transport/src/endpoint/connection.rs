//! A connection: 96 bytes in a slab that is never unmapped.

use crate::endpoint::Endpoint;
use cci_mem::life::Life;
use cci_mem::slab::AtomicRef;
use cci_mem::sync::{AtomicU32, AtomicU64, Ordering};
use cci_proto::{Attribute, Time};

/// Where a connection is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ConnectionState {
    /// Not in use.
    Free = 0,
    /// Asked for, not answered.
    Opening = 1,
    /// Usable.
    Open = 2,
    /// Its peer is gone, or a failure broke it; to be disconnected by the program.
    Broken = 3,
}

/// The state of an open connection, without its largest message. Above every other state.
const OPEN: u32 = 4;

/// Bits of [`Connection::place`]; those above name the way.
const PLACE_BITS: u32 = 29;
/// The greatest place.
pub(super) const LAST_PLACE: u32 = (1 << PLACE_BITS) - 1;
/// Ways of an endpoint, at most.
pub(super) const MOST_WAYS: u8 = 1 << (u32::BITS - PLACE_BITS);

/// The state of a connection. The first 32 bytes are `cci_connection_t`; programs read them
/// directly.
///
/// Written by the holder of the endpoint's lock with relaxed order; the public part does not change
/// between the event that shows the connection and its disconnect.
#[derive(Default)]
#[repr(C, align(32))]
pub struct Connection {
    /// `max_send_size`, bytes.
    pub max_send_size: AtomicU32,
    life: Life,
    /// `endpoint`.
    pub endpoint: AtomicRef<Endpoint>,
    attribute: AtomicU32,
    /// [`ConnectionState`]; where that is `Open`, [`OPEN`] and the largest message instead, so that
    /// one look tells both.
    state: AtomicU32,
    /// `context`.
    pub context: AtomicU64,
    /// For the transport: the number of the lane in `sm`, which is stale once the connection is
    /// broken, because another peer's lane may have it by now; over a link, whom its receive slots
    /// count for (`shares.rs`).
    pub lane: AtomicU32,
    /// For the transport: the peer's number of this connection.
    pub remote: AtomicU32,
    /// For the transport: this side's number of this connection.
    pub local: AtomicU32,
    /// Open operations.
    pub open: AtomicU32,
    /// Send timeout, as [`Timeout::micros`](crate::Timeout::micros) gives it.
    pub send_timeout: AtomicU32,
    /// Keepalive timeout, likewise.
    pub keepalive: AtomicU32,
    /// What was counted.
    pub counters: Counters,
    /// For the transport: when the connection opened in `sm`, milliseconds, wrapping; not used over
    /// a link.
    pub opened_at: AtomicU32,
    /// Place among the endpoint's connections, and above it the way ([`PLACE_BITS`]).
    place: AtomicU32,
}

const _: () = assert!(size_of::<Connection>() <= 96);

/// Counters of a connection.
#[derive(Default)]
#[repr(C)]
pub struct Counters {
    /// Messages sent.
    pub sent: AtomicU64,
    /// Messages received.
    pub received: AtomicU64,
    /// Bytes moved by RMA that this side began.
    pub rma_bytes: AtomicU64,
    /// Times that a message had to wait for room.
    pub rnr: AtomicU32,
    /// Messages dropped.
    pub dropped: AtomicU32,
}

/// Adds to a counter that one lock holder at a time writes: no locked instruction.
#[inline(always)]
pub(crate) fn add(counter: &AtomicU64, amount: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
}

/// As [`add`], by one.
#[inline(always)]
fn bump(counter: &AtomicU32) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}

impl Counters {
    /// A message had to wait for room.
    #[inline(always)]
    pub fn on_rnr(&self) {
        bump(&self.rnr);
    }

    /// A message was dropped.
    #[inline(always)]
    pub fn on_dropped(&self) {
        bump(&self.dropped);
    }

    /// A message was sent.
    #[inline(always)]
    pub fn on_sent(&self) {
        add(&self.sent, 1);
    }

    /// A message was received.
    #[inline(always)]
    pub fn on_received(&self) {
        add(&self.received, 1);
    }

    /// Bytes were copied.
    pub fn on_rma(&self, bytes: u64) {
        add(&self.rma_bytes, bytes);
    }

    fn reset(&self) {
        for counter in [&self.sent, &self.received, &self.rma_bytes] {
            counter.store(0, Ordering::Relaxed);
        }
        self.rnr.store(0, Ordering::Relaxed);
        self.dropped.store(0, Ordering::Relaxed);
    }
}

impl Connection {
    /// Begins a life: everything is set but what the transport keeps.
    pub fn begin(&self, endpoint: &'static Endpoint, attribute: Attribute, context: u64, max_send_size: u32) {
        self.life.begin();
        self.max_send_size.store(max_send_size, Ordering::Relaxed);
        self.endpoint.set(Some(endpoint));
        self.attribute.store(attribute as u32, Ordering::Relaxed);
        self.context.store(context, Ordering::Relaxed);
        self.open.store(0, Ordering::Relaxed);
        self.opened_at.store(0, Ordering::Relaxed);
        self.counters.reset();
        self.set_state(ConnectionState::Opening);
    }

    /// Ends a life: every handle to it is stale from now on. The public part stays readable.
    pub fn end(&self) {
        self.set_state(ConnectionState::Free);
        self.life.end();
    }

    /// An operation begins.
    #[inline(always)]
    pub fn on_begun(&self) {
        bump(&self.open);
    }

    /// When an operation that begins now is late; `None`: never. `now` is asked only if the program
    /// has set a send timeout.
    #[inline]
    #[must_use]
    pub fn send_deadline(&self, now: impl FnOnce() -> Time) -> Option<Time> {
        let timeout = self.send_timeout.load(Ordering::Relaxed);
        (timeout > 0).then(|| now().plus_micros(timeout.into()))
    }

    /// Its place among the endpoint's connections ([`Core::connection`](crate::Core::connection)).
    /// It does not change while the connection is not free.
    #[inline(always)]
    #[must_use]
    pub fn place(&self) -> u32 {
        self.place.load(Ordering::Relaxed) & LAST_PLACE
    }

    /// The way that it belongs to ([`Core::enter_way`](crate::Core::enter_way)); 0 where its
    /// endpoint has no ways. It does not change while the connection is not free.
    #[inline(always)]
    #[must_use]
    pub fn way(&self) -> u8 {
        // Three bits.
        (self.place.load(Ordering::Relaxed) >> PLACE_BITS) as u8
    }

    /// Puts it at this place, of at most [`LAST_PLACE`], of this way.
    pub(super) fn put_at(&self, place: u32, way: u8) {
        self.place.store(place & LAST_PLACE | u32::from(way) << PLACE_BITS, Ordering::Relaxed);
    }

    /// Counts lives.
    #[inline(always)]
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.life.number()
    }

    /// What `read` finds, from any thread, if the life with this generation has not ended.
    pub fn of_life<T>(&self, generation: u32, read: impl FnOnce(&Self) -> T) -> Option<T> {
        self.life.read(generation, || read(self))
    }

    /// The state.
    #[inline(always)]
    #[must_use]
    pub fn state(&self) -> ConnectionState {
        match self.state.load(Ordering::Relaxed) {
            0 => ConnectionState::Free,
            1 => ConnectionState::Opening,
            3 => ConnectionState::Broken,
            _ => ConnectionState::Open,
        }
    }

    /// Whether a message of so many bytes may be sent: the connection is open, and the message not
    /// too long.
    #[inline(always)]
    #[must_use]
    pub fn takes(&self, bytes: usize) -> bool {
        self.state.load(Ordering::Relaxed) as usize >= OPEN as usize + bytes
    }

    /// Changes the state. The largest message of an open connection does not change any more.
    pub fn set_state(&self, state: ConnectionState) {
        let number = match state {
            ConnectionState::Open => OPEN.saturating_add(self.max_send_size.load(Ordering::Relaxed)),
            other => other as u32,
        };
        self.state.store(number, Ordering::Relaxed);
    }

    /// What the connection promises.
    #[inline]
    #[must_use]
    pub fn attribute(&self) -> Attribute {
        Attribute::from_u32(self.attribute.load(Ordering::Relaxed)).unwrap_or(Attribute::ReliableOrdered)
    }

    /// The address, as it stands in events.
    #[inline(always)]
    #[must_use]
    pub fn address(&'static self) -> u64 {
        std::ptr::from_ref(self).expose_provenance() as u64
    }
}
