//! One slot of an endpoint: the event as C programs read it, its state, and room for a small message.
//!
//! All fields are atomics, so that a stale pointer can be looked at safely; under the endpoint's lock they are used with
//! relaxed order, which costs nothing.

#[cfg(not(loom))]
use crate::region::Zeroed;
use crate::ring::{BODY, BODY_WORDS};
use crate::slab::AtomicRef;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

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

    /// Fills in the event. Not for kinds whose second word is a payload's address.
    #[inline]
    pub fn fill(&self, kind: u32, detail: u32, words: [u64; 2]) {
        self.head.store(u64::from(detail) << 32 | u64::from(kind), Ordering::Relaxed);
        self.second.store(words[0], Ordering::Relaxed);
        self.third.store(words[1], Ordering::Relaxed);
    }

    /// Fills in an event whose payload of `len` bytes came in a frame's body, copied into the slot with a zero byte after it. `body`
    /// gives the words in use, and is asked once for each.
    #[inline(always)]
    pub fn fill_inline(&self, kind: u32, len: usize, third: u64, body: impl Fn(usize) -> u64) {
        let len = len.min(BODY);
        let (whole, rest) = (len / 8, len % 8);
        for (at, word) in self.inline[..whole].iter().enumerate() {
            word.store(body(at), Ordering::Relaxed);
        }
        // The bytes from `len` to the end of its word are the peer's; the program prints text, so a zero ends it.
        let last = if rest == 0 { 0 } else { u64::from_le(body(whole).to_le() & ((1 << (8 * rest)) - 1)) };
        self.inline[whole].store(last, Ordering::Relaxed);
        let address = self.inline.as_ptr().expose_provenance() as u64;
        self.fill(kind, u32::try_from(len).unwrap_or(0), [address, third]);
    }

    /// Fills in an event whose payload stands elsewhere.
    ///
    /// # Safety
    ///
    /// `len` bytes stay readable and writable at `payload`, and one more readable, until the slot has been returned.
    #[inline]
    pub unsafe fn fill_payload(&self, kind: u32, payload: *mut u8, len: u32, third: u64) {
        self.fill(kind, len, [payload.expose_provenance() as u64, third]);
    }

    /// Copies the first bytes of a borrowed event's payload and says how many. The caller has seen by the kind that the
    /// event has one.
    #[must_use]
    pub fn copy_payload(&self, target: &mut [u8]) -> usize {
        let len = (self.detail() as usize).min(target.len());
        let address = usize::try_from(self.second.load(Ordering::Relaxed)).unwrap_or(0);
        if len > 0 && address != 0 {
            let source = std::ptr::with_exposed_provenance::<u8>(address);
            // SAFETY: readable by the contract of `fill_payload`, or in this slot. A program's buffer is not part of a lane; a
            // peer that writes at the same time spoils these bytes and nothing else.
            unsafe { std::ptr::copy_nonoverlapping(source, target.as_mut_ptr(), len) };
        }
        len
    }

    /// The payload of a borrowed event, in place.
    ///
    /// # Safety
    ///
    /// The event has a payload, and its sender does not write to it any more. A peer of this library never does; a
    /// hostile one of the same user could.
    #[must_use]
    pub unsafe fn payload(&self) -> &[u8] {
        let len = self.detail() as usize;
        let address = usize::try_from(self.second.load(Ordering::Relaxed)).unwrap_or(0);
        if len == 0 || address == 0 {
            return &[];
        }
        // SAFETY: as in `copy_payload`; nobody writes, by this function's contract.
        unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance(address), len) }
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
    pub fn lend_again(&self) {
        self.set_state(State::Borrowed);
    }

    /// Gives a borrowed event back: one store, from any thread. False when it is not borrowed.
    #[inline]
    #[must_use]
    pub fn give_back(&self) -> bool {
        if self.state.load(Ordering::Relaxed) != State::Borrowed as u32 {
            return false;
        }
        // Release: the program has finished with the payload.
        self.state.store(State::Returned as u32, Ordering::Release);
        true
    }
}
