//! One slot of an endpoint: the event as C programs read it, its state, and room for a small
//! message.
//!
//! All fields are atomics, so that a stale pointer can be looked at safely; under the endpoint's
//! lock they are used with relaxed order, which costs nothing.
//!
//! Safe code cannot reach undefined behaviour through a slot. Its safe methods read and write these
//! atomics only. Whatever reads at the address of a payload is `unsafe`: [`Slot::copy_payload`],
//! [`Slot::view`], [`Slot::private_payload`]. Safe code can return an event or fill its slot anew
//! at any time, from any thread. So only the borrower of the event can promise that the address is
//! still valid and that the length belongs to it.

#[cfg(not(loom))]
use crate::region::Zeroed;
use crate::ring::{BODY, BODY_WORDS};
use crate::slab::AtomicRef;
use crate::sync::{AtomicU32, AtomicU64, Ordering, own};
#[cfg(not(loom))]
use crate::view::View;

/// The kind of an event that carries a message: `CCI_EVENT_RECV`.
const RECV: u32 = 2;
/// The kind of an event that carries a request's payload: `CCI_EVENT_CONNECT_REQUEST`.
const CONNECT_REQUEST: u32 = 4;

/// A word of a small payload as a slot takes it: the last one ends in zeroes.
#[inline]
fn word(bytes: &[u8], at: usize) -> u64 {
    let rest = &bytes[8 * at..];
    u64::from_ne_bytes(rest.first_chunk().copied().unwrap_or_else(|| {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        last
    }))
}

/// Whether the second word of an event of this kind is the address of a payload.
#[inline(always)]
const fn has_payload(kind: u32) -> bool {
    matches!(kind, RECV | CONNECT_REQUEST)
}

/// Who may write a payload while the program borrows its event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nobody: the memory is private to this process.
    Private = 1,
    /// The peer: the memory is shared with it.
    Shared = 2,
}

/// Where a slot is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum State {
    /// In the pool.
    Free = 0,
    /// Taken by the library: an operation in flight, or an event in the queue.
    Taken = 1,
    /// With the program.
    Borrowed = 2,
    /// Given back by the program, not yet seen by the library.
    Returned = 3,
    /// The operation has ended and the thread that waits for it has not seen it yet (BLOCKING).
    Ended = 4,
}

/// A slot of an endpoint `E` with connections `C`. The first 24 bytes are `cci_event_t`.
#[repr(C, align(64))]
pub struct Slot<C: 'static, E: 'static> {
    /// Kind of the event, and status or length above it.
    head: AtomicU64,
    /// Second word of the event: connection, payload address or context, by kind.
    second: AtomicU64,
    /// Third word: context, connection or attribute, by kind.
    third: AtomicU64,
    state: AtomicU32,
    /// For the transport: whether a request has been answered, flags of an operation.
    pub mark: AtomicU32,
    /// The endpoint.
    pub owner: AtomicRef<E>,
    /// The connection, if there is one.
    pub connection: AtomicRef<C>,
    /// For the transport: which payload the slot holds.
    pub payload: AtomicU64,
    pub(crate) next: AtomicU32,
    /// The slot's number in its endpoint.
    pub index: AtomicU32,
    inline: [AtomicU64; BODY_WORDS + 1],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Slot<u8, u8>>() == 128);

// SAFETY: atomics and null references only.
#[cfg(not(loom))]
unsafe impl<C: Sync, E: Sync> Zeroed for Slot<C, E> {}

/// Models only: elsewhere slots come out of zeroed regions.
#[cfg(loom)]
impl<C: Sync, E: Sync> Default for Slot<C, E> {
    fn default() -> Self {
        Self {
            head: AtomicU64::new(0),
            second: AtomicU64::new(0),
            third: AtomicU64::new(0),
            state: AtomicU32::new(State::Free as u32),
            mark: AtomicU32::new(0),
            owner: AtomicRef::none(),
            connection: AtomicRef::none(),
            payload: AtomicU64::new(0),
            next: AtomicU32::new(0),
            index: AtomicU32::new(0),
            inline: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

impl<C: Sync, E: Sync> Slot<C, E> {
    /// Kind of the event.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the low half")]
    #[must_use]
    pub fn kind(&self) -> u32 {
        self.head.load(Ordering::Relaxed) as u32
    }

    /// Status or length of the event.
    #[inline]
    #[must_use]
    pub fn detail(&self) -> u32 {
        (self.head.load(Ordering::Relaxed) >> 32) as u32
    }

    /// Second and third word of the event.
    #[must_use]
    pub fn words(&self) -> [u64; 2] {
        [self.second.load(Ordering::Relaxed), self.third.load(Ordering::Relaxed)]
    }

    /// Fills in the event. For kinds whose second word is the address of a payload, that word
    /// becomes 0: an address comes from [`Slot::fill_inline`] and [`Slot::fill_payload`] only.
    #[inline(always)]
    pub fn fill(&self, kind: u32, detail: u32, words: [u64; 2]) {
        let address = if has_payload(kind) { 0 } else { words[0] };
        self.set(kind, detail, [address, words[1]]);
    }

    #[inline(always)]
    fn set(&self, kind: u32, detail: u32, words: [u64; 2]) {
        self.head.store(u64::from(detail) << 32 | u64::from(kind), Ordering::Relaxed);
        self.second.store(words[0], Ordering::Relaxed);
        self.third.store(words[1], Ordering::Relaxed);
    }

    /// Fills in an event whose payload of `len` bytes came in a frame's body, copied into the slot
    /// with a zero byte after it. `body` gives the words in use, and is asked once for each.
    #[inline(always)]
    pub fn fill_inline(&self, kind: u32, len: usize, third: u64, body: impl Fn(usize) -> u64) {
        let len = len.min(BODY);
        let (whole, rest) = (len / 8, len % 8);
        for (at, word) in self.inline[..whole].iter().enumerate() {
            word.store(body(at), Ordering::Relaxed);
        }
        // The bytes from `len` to the end of its word are the peer's; the program prints text, so a
        // zero ends it.
        let last = if rest == 0 { 0 } else { u64::from_le(body(whole).to_le() & ((1 << (8 * rest)) - 1)) };
        self.inline[whole].store(last, Ordering::Relaxed);
        let address = self.inline.as_ptr().expose_provenance() as u64;
        self.set(kind, u32::try_from(len).unwrap_or(0), [address, third]);
    }

    /// As [`Slot::fill_inline`], with the payload's first bytes up to [`BODY`].
    #[inline(always)]
    pub fn fill_inline_bytes(&self, kind: u32, bytes: &[u8], third: u64) {
        self.fill_inline(kind, bytes.len(), third, |at| word(bytes, at));
    }

    /// Fills in an event whose payload stands elsewhere.
    ///
    /// # Safety
    ///
    /// `len` bytes stay readable and writable at `payload`, and one more readable, until the slot
    /// has been returned. With [`Access::Private`] nobody but the program writes them meanwhile.
    #[inline]
    pub unsafe fn fill_payload(&self, kind: u32, payload: *mut u8, access: Access, len: u32, third: u64) {
        // The room for a small message is free: it has the access, and no address of its own stands
        // in the event.
        self.inline[0].store(access as u64, Ordering::Relaxed);
        self.set(kind, len, [payload.expose_provenance() as u64, third]);
    }

    /// Takes the first `bytes` bytes off the payload of an event, which stands elsewhere than in
    /// the slot. For the holder of the endpoint's lock, before the program gets the event. False:
    /// the event has no such payload, and is as before.
    pub fn skip_payload(&self, bytes: u32) -> bool {
        let (kind, len, [address, third]) = (self.kind(), self.detail(), self.words());
        let is_inline = address == self.inline.as_ptr().addr() as u64;
        let Some(rest) = len.checked_sub(bytes).filter(|_| has_payload(kind) && address != 0 && !is_inline) else {
            return false;
        };
        self.set(kind, rest, [address + u64::from(bytes), third]);
        true
    }

    /// Address and length of the payload; null and 0 where the event has none.
    #[cfg(not(loom))]
    #[inline]
    fn payload(&self) -> (*const u8, usize) {
        let address = usize::try_from(self.second.load(Ordering::Relaxed)).unwrap_or(0);
        if !has_payload(self.kind()) || address == 0 {
            return (std::ptr::null(), 0);
        }
        (std::ptr::with_exposed_provenance(address), self.detail() as usize)
    }

    /// Copies the first bytes of a borrowed event's payload, and returns their number: 0 for an
    /// event without payload. Aligned words of 8 bytes are read whole if a peer writes meanwhile.
    ///
    /// # Safety
    ///
    /// The event is borrowed, and is returned only after this call. Nobody in this process writes
    /// the payload or fills the slot meanwhile.
    ///
    /// # Example
    ///
    /// Safe code cannot read where the payload of a returned event was:
    ///
    /// ```compile_fail,E0133
    /// # use cci_mem::{slot::Slot, sync::AtomicU32};
    /// fn read_late(slot: &Slot<AtomicU32, AtomicU32>, target: &mut [u8]) -> usize {
    ///     assert!(slot.give_back());
    ///     slot.copy_payload(target)
    /// }
    /// ```
    #[cfg(not(loom))]
    #[must_use]
    pub unsafe fn copy_payload(&self, target: &mut [u8]) -> usize {
        // SAFETY: the contract of this function; neither result outlives this call.
        let (private, view) = unsafe { (self.private_payload(), self.view()) };
        let Some(bytes) = private else { return view.copy_to(0, target) };
        let len = bytes.len().min(target.len());
        target[..len].copy_from_slice(&bytes[..len]);
        len
    }

    /// The payload of a borrowed event, in place; empty for an event without one.
    ///
    /// # Safety
    ///
    /// The event is borrowed, and is returned only after the last use of the view.
    #[cfg(not(loom))]
    #[inline]
    #[must_use]
    pub unsafe fn view(&self) -> View<'_> {
        let (start, len) = self.payload();
        // SAFETY: readable by the contract of `fill_payload`, or in this slot, until the event is
        // returned.
        unsafe { View::new(start, len) }
    }

    /// The payload of a borrowed event as a slice, where its memory is private to this process;
    /// empty for an event without one. None: a peer could write it.
    ///
    /// # Safety
    ///
    /// The event is borrowed, is returned only after the last use of the slice, and nobody in this
    /// process writes the payload meanwhile.
    #[cfg(not(loom))]
    #[inline]
    #[must_use]
    pub unsafe fn private_payload(&self) -> Option<&[u8]> {
        let (start, len) = self.payload();
        if len == 0 {
            return Some(&[]);
        }
        let is_inline = start.addr() == self.inline.as_ptr().addr();
        if !is_inline && self.inline[0].load(Ordering::Relaxed) != Access::Private as u64 {
            return None;
        }
        // SAFETY: readable by the contract of `fill_payload`, or in this slot; nobody writes, by
        // the contract of this function and by `Access::Private`.
        Some(unsafe { std::slice::from_raw_parts(start, len) })
    }

    /// The state.
    #[inline(always)]
    #[must_use]
    pub fn state(&self) -> State {
        // Acquire: pairs with `give_back`; the program has finished with the payload.
        match self.state.load(Ordering::Acquire) {
            1 => State::Taken,
            2 => State::Borrowed,
            3 => State::Returned,
            4 => State::Ended,
            _ => State::Free,
        }
    }

    /// Changes the state; for the holder of the endpoint's lock.
    #[inline(always)]
    pub fn set_state(&self, state: State) {
        self.state.store(state as u32, Ordering::Relaxed);
    }

    /// Hands a returned and filled slot to the program: `Pool::sole_returned`.
    #[inline(always)]
    pub fn hand_out_again(&self) {
        self.set_state(State::Borrowed);
    }

    /// Gives a borrowed event back: one store, from any thread. False when it is not borrowed.
    #[inline]
    #[must_use]
    pub fn give_back(&self) -> bool {
        if own(&self.state) != State::Borrowed as u32 {
            return false;
        }
        // Release: the program has finished with the payload.
        self.state.store(State::Returned as u32, Ordering::Release);
        true
    }
}
