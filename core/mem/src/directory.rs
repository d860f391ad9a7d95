//! An entry of a directory in shared memory: its owner changes it under a lock of the owners, and
//! other processes read it without a lock.
//!
//! The life of an entry is odd while the entry is used. It is a sequence lock whose writer never
//! makes a reader wait: a reader that meets a change finds another life in the end, and takes the
//! entry for none.
//!
//! ```text
//!   owner                                  reader
//!   end      available = 0     (1)         seen = life          acquire   (6)
//!            life + 1          (2)         available == 1?      acquire   (7)
//!   begin    fence    release  (3)         copy the words       relaxed   (8)
//!            write the words   (4)         fence                acquire   (9)
//!            life + 1 release  (5)         life == seen?        relaxed   (10)
//!   offer    available = 1     release
//! ```
//!
//! | order | without it |
//! |---|---|
//! | (3) with (9) | words of the next life with the number of the one before |
//! | (1) before (2), which is a release; with (6) | an entry that its owner has not offered: available in the life before |
//! | (5) with (6) | words of the life before with the number of the next one |
//! | offer with (7) | what the owner has stored before it offers is not visible yet |
//!
//! Whoever can write the memory can write anything: the reader checks what the words say.

use crate::sync::{AtomicU64, Ordering, fence, own};

/// The words of an entry, wherever they stand.
///
/// # Example
///
/// ```
/// use cci_mem::directory::Entry;
/// use cci_mem::sync::AtomicU64;
///
/// let words: [AtomicU64; 4] = Default::default();
/// let [life, available, id, len] = &words;
/// let entry = Entry { life, available, words: [id, len] };
/// entry.begin([7, 4096]);
/// assert_eq!(entry.find(), None, "it is not offered");
/// entry.set_available(true);
/// assert_eq!(entry.find(), Some((1, [7, 4096])));
/// entry.end();
/// assert_eq!(entry.find(), None);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Entry<'m, const WORDS: usize> {
    /// Odd while the entry is used. It changes when the use ends, and when the owner renews it.
    pub life: &'m AtomicU64,
    /// 1 while the owner offers the entry.
    pub available: &'m AtomicU64,
    /// What the entry holds.
    pub words: [&'m AtomicU64; WORDS],
}

impl<const WORDS: usize> Entry<'_, WORDS> {
    /// Returns the words if the entry is used, offered or not. Called by a holder of the lock.
    #[must_use]
    pub fn used(&self) -> Option<[u64; WORDS]> {
        let is_used = !self.life.load(Ordering::Relaxed).is_multiple_of(2);
        is_used.then(|| self.copy())
    }

    fn copy(&self) -> [u64; WORDS] {
        self.words.map(|word| word.load(Ordering::Relaxed))
    }

    /// Begins a use of a free entry, which is not offered. Called by a holder of the lock.
    pub fn begin(&self, words: [u64; WORDS]) {
        // (3): a reader that copies a word of this life finds that the life before has ended.
        self.begin_by(words, || fence(Ordering::Release));
    }

    fn begin_by(&self, words: [u64; WORDS], fence: impl FnOnce()) {
        fence();
        for (to, word) in self.words.iter().zip(words) {
            to.store(word, Ordering::Relaxed);
        }
        self.available.store(0, Ordering::Relaxed);
        // (5): publishes the words.
        self.life.store(own(self.life) | 1, Ordering::Release);
    }

    /// Ends the use. Called by its owner, or by a holder of the lock whose owner has ended.
    pub fn end(&self) {
        let life = own(self.life);
        self.end_as(life.wrapping_add(1) & !1);
    }

    /// Ends the use and begins another one with the same words, which is not offered. Called by the
    /// owner.
    pub fn renew(&self) {
        let life = own(self.life);
        self.end_as(life.wrapping_add(2));
    }

    fn end_as(&self, next: u64) {
        self.available.store(0, Ordering::Relaxed);
        // (2): a reader that finds the next life finds that it is not offered.
        self.life.store(next, Ordering::Release);
    }

    /// Offers the entry, or no more. Called by the owner.
    pub fn set_available(&self, is_available: bool) {
        // Release: what the owner has stored before.
        self.available.store(u64::from(is_available), Ordering::Release);
    }

    /// Returns the life and the words of an entry that is used and offered. `None` also if the
    /// entry changes meanwhile. Any process may call it.
    #[must_use]
    pub fn find(&self) -> Option<(u64, [u64; WORDS])> {
        // (9): with a word of a later life comes the end of the one before.
        self.find_by(Ordering::Acquire, || fence(Ordering::Acquire))
    }

    fn find_by(&self, first: Ordering, fence: impl FnOnce()) -> Option<(u64, [u64; WORDS])> {
        // (6): the words of this life, and whether it was offered.
        let seen = self.life.load(first);
        // (7): what the owner has stored before it offered.
        if seen.is_multiple_of(2) || self.available.load(Ordering::Acquire) != 1 {
            return None;
        }
        let words = self.copy();
        fence();
        (self.life.load(Ordering::Relaxed) == seen).then_some((seen, words))
    }

    /// Models only: [`Entry::begin`] without the fence (3).
    #[cfg(loom)]
    pub fn begin_without_fence(&self, words: [u64; WORDS]) {
        self.begin_by(words, || {});
    }

    /// Models only: [`Entry::renew`] whose life (2) may be seen before (1).
    #[cfg(loom)]
    pub fn renew_relaxed(&self) {
        self.available.store(0, Ordering::Relaxed);
        self.life.store(own(self.life).wrapping_add(2), Ordering::Relaxed);
    }

    /// Models only: [`Entry::find`] without the fence (9).
    #[cfg(loom)]
    pub fn find_without_fence(&self) -> Option<(u64, [u64; WORDS])> {
        self.find_by(Ordering::Acquire, || {})
    }

    /// Models only: [`Entry::find`] with a relaxed load (6).
    #[cfg(loom)]
    pub fn find_relaxed(&self) -> Option<(u64, [u64; WORDS])> {
        self.find_by(Ordering::Relaxed, || fence(Ordering::Acquire))
    }
}
