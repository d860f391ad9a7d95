//! Windows and their sequences.

use crate::errors::Error;
use crate::mapped::Mapped;
use crate::mirror::{Mirror, Sent};
use crate::shared::Shared;
use crate::sys::{self, Word};
use crate::types::{Access, Kind};
use cci_mem::sync::{AtomicU64, Ordering, fence};
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Weak};

/// Bytes that [`Window::transfer`] moves at once.
const PART: usize = 4096;

/// A range of a segment, mapped until the value and its sequences are dropped. Others read and
/// write it at any time, so it is never shown as a slice. Any thread may use it; no call blocks,
/// and no load or store faults, whatever becomes of the owner.
///
/// # Example
///
/// ```
/// use cci_sci::{Access, Host, Kind, Options};
///
/// let host = Host::open(&Options::new())?;
/// let segment = host.create(std::process::id(), 8192)?;
/// let window = segment.map(100..5000, Access::ReadWrite)?;
/// window.store(4, 7_u64)?;
/// window.write(100, b"bytes")?;
/// window.flush();
/// assert_eq!((window.load::<u64>(4)?, window.kind(), window.len()), (7, Kind::Shared, 4900));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Window {
    mapped: Arc<Mapped>,
    /// Of a mirror: who sends what was stored. Shared pages need nobody.
    host: Weak<Shared>,
    /// Of the segment.
    offset: usize,
    len: usize,
    access: Access,
}

impl Window {
    pub(crate) fn new(
        host: &Arc<Shared>,
        mapped: &Arc<Mapped>,
        range: Range<usize>,
        access: Access,
    ) -> Result<Self, Error> {
        let len = range.end.checked_sub(range.start).filter(|len| *len > 0).ok_or(Error::OutOfRange)?;
        mapped.check(range.start, len)?;
        if !mapped.allows(access) {
            return Err(Error::Access);
        }
        mapped.begin_window();
        let host = mapped.as_mirror().map_or_else(Weak::new, |_| Arc::downgrade(host));
        Ok(Self { mapped: Arc::clone(mapped), host, offset: range.start, len, access })
    }

    /// Returns the number of bytes.
    #[expect(clippy::len_without_is_empty, reason = "a window is never empty")]
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns how the window reaches its segment.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.mapped.kind()
    }

    /// Returns what the window is mapped for.
    #[must_use]
    pub fn access(&self) -> Access {
        self.access
    }

    /// Returns the address of the first byte, for programs that use memory which several processes
    /// write. It is valid as long as this window.
    #[must_use]
    pub fn as_ptr(&self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.mapped.start() + self.offset)
    }

    #[inline]
    fn check(&self, at: usize, len: usize) -> Result<(), Error> {
        if at.checked_add(len).is_some_and(|end| end <= self.len) { Ok(()) } else { Err(Error::OutOfRange) }
    }

    #[inline]
    fn word<T: Word>(&self, at: usize) -> Result<usize, Error> {
        self.check(at, size_of::<T>())?;
        let offset = self.offset + at;
        if offset.is_multiple_of(size_of::<T>()) { Ok(offset) } else { Err(Error::OffsetAlignment) }
    }

    /// Loads a value, whole, with acquire order. `at` counts bytes from the window's first one.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`]; [`Error::OffsetAlignment`]: the value is not aligned in the segment.
    #[inline]
    pub fn load<T: Word>(&self, at: usize) -> Result<T, Error> {
        let offset = self.word::<T>(at)?;
        // SAFETY: inside of the mapping, which begins at a page, and aligned, as just checked.
        #[expect(unsafe_code, reason = "a load of mapped memory")]
        Ok(unsafe { sys::load(self.mapped.start(), offset) })
    }

    /// Stores a value, whole, with release order: stores of one thread arrive in their order.
    ///
    /// # Errors
    ///
    /// As [`Window::load`]; [`Error::Access`]: the window is mapped for reading.
    #[inline]
    pub fn store<T: Word>(&self, at: usize, value: T) -> Result<(), Error> {
        let offset = self.word::<T>(at)?;
        self.check_write()?;
        // SAFETY: as in `load`; the owner allows writing.
        #[expect(unsafe_code, reason = "a store to mapped memory")]
        unsafe {
            sys::store(self.mapped.start(), offset, value);
        }
        Ok(())
    }

    #[inline]
    fn check_write(&self) -> Result<(), Error> {
        if self.access == Access::ReadWrite { Ok(()) } else { Err(Error::Access) }
    }

    /// Copies bytes out, aligned words of 8 bytes whole.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`].
    pub fn read(&self, at: usize, target: &mut [u8]) -> Result<(), Error> {
        self.check(at, target.len())?;
        if self.mapped.read(self.offset + at, target) { Ok(()) } else { Err(Error::OutOfRange) }
    }

    /// Copies bytes in, aligned words of 8 bytes whole, in no promised order.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`], [`Error::Access`].
    pub fn write(&self, at: usize, bytes: &[u8]) -> Result<(), Error> {
        self.check(at, bytes.len())?;
        self.check_write()?;
        if self.mapped.write(self.offset + at, bytes) { Ok(()) } else { Err(Error::Access) }
    }

    /// Copies `len` bytes from this window into another one. Of ranges that overlap the target is
    /// undefined.
    ///
    /// # Errors
    ///
    /// As [`Window::read`] and [`Window::write`]; nothing is copied then.
    pub fn transfer(&self, from: usize, target: &Self, to: usize, len: usize) -> Result<(), Error> {
        self.check(from, len)?;
        target.check(to, len)?;
        target.check_write()?;
        let mut part = [0; PART];
        for done in (0..len).step_by(PART) {
            let part = &mut part[..PART.min(len - done)];
            self.read(from + done, part)?;
            target.write(to + done, part)?;
        }
        Ok(())
    }

    /// Orders stores: no store after it arrives before one that was made before it. Over a mirror
    /// it is a [`Window::flush`].
    #[inline]
    pub fn store_barrier(&self) {
        store_barrier(&self.mapped, &self.host);
    }

    /// Waits until everything stored before can be seen by all processors; over a mirror until it
    /// is on its way, a second at most while nothing moves.
    #[inline]
    pub fn flush(&self) {
        flush(&self.mapped, &self.host);
    }

    /// Has loads after it find what others have stored before. A mirror sends what was stored here,
    /// and reads the window.
    ///
    /// # Errors
    ///
    /// Over a mirror alone: [`Error::SegmentNotConnected`], [`Error::Timeout`],
    /// [`Error::NodeNotResponding`].
    pub fn flush_reads(&self) -> Result<(), Error> {
        fence(Ordering::Acquire);
        let Some(mirror) = self.mapped.as_mirror() else { return Ok(()) };
        let host = self.host.upgrade().ok_or(Error::NotInitialized)?;
        host.load_mirror(mirror, self.offset..self.offset + self.len)
    }

    /// Returns a sequence, by which the program finds stores that did not arrive.
    #[must_use]
    pub fn sequence(&self) -> Sequence {
        self.mapped.begin_window();
        let failures = AtomicU64::new(self.mapped.as_mirror().map_or(0, Mirror::failures));
        Sequence { mapped: Arc::clone(&self.mapped), host: self.host.clone(), failures }
    }
}

#[inline]
fn store_barrier(mapped: &Mapped, host: &Weak<Shared>) {
    fence(Ordering::Release);
    if let Some(mirror) = mapped.as_mirror() {
        send(mirror, host, false);
    }
}

#[inline]
fn flush(mapped: &Mapped, host: &Weak<Shared>) {
    fence(Ordering::SeqCst);
    if let Some(mirror) = mapped.as_mirror() {
        send(mirror, host, false);
    }
}

/// Sends what the program has changed in a mirror; with `is_confirmed` waits until the owner has
/// it.
fn send(mirror: &Mirror, host: &Weak<Shared>, is_confirmed: bool) -> Sent {
    host.upgrade().map_or(Sent::Gone, |host| host.flush_mirror(mirror.token, is_confirmed))
}

impl Drop for Window {
    fn drop(&mut self) {
        if self.access == Access::ReadWrite {
            self.store_barrier();
        }
        self.mapped.end_window();
    }
}

impl fmt::Debug for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Window({:?}, {} bytes from {})", self.access, self.len, self.offset)
    }
}

/// Whether stores have arrived, with the numbers of SISCI.
///
/// # Example
///
/// ```
/// assert_eq!(cci_sci::SequenceStatus::NotRetriable as u32, 2);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[expect(clippy::exhaustive_enums, reason = "those of SISCI")]
pub enum SequenceStatus {
    /// All have arrived.
    Ok = 0,
    /// Some have not, or it is not known. Never given over shared windows; over a mirror the
    /// library sends them again.
    Retriable = 1,
    /// The connection is no more.
    NotRetriable = 2,
    /// The check has not ended. Never given.
    Pending = 3,
}

/// Finds stores to a window that did not arrive. It keeps the mapping, and costs a few loads.
///
/// # Example
///
/// ```
/// use cci_sci::{Error, SequenceStatus, Window};
///
/// fn publish(window: &Window, value: u64) -> Result<bool, Error> {
///     let sequence = window.sequence();
///     if sequence.start() != SequenceStatus::Ok {
///         return Ok(false);
///     }
///     window.store(0, value)?;
///     Ok(sequence.check() == SequenceStatus::Ok)
/// }
/// ```
pub struct Sequence {
    mapped: Arc<Mapped>,
    host: Weak<Shared>,
    /// Writes of the mirror that had failed when the sequence began.
    failures: AtomicU64,
}

impl Sequence {
    /// Begins a sequence: [`SequenceStatus::Ok`], or the connection is no more.
    #[inline]
    #[must_use]
    pub fn start(&self) -> SequenceStatus {
        if let Some(mirror) = self.mapped.as_mirror() {
            // Publishes nothing.
            self.failures.store(mirror.failures(), Ordering::Relaxed);
        }
        self.status()
    }

    #[inline]
    fn status(&self) -> SequenceStatus {
        if self.mapped.is_current() { SequenceStatus::Ok } else { SequenceStatus::NotRetriable }
    }

    /// Returns whether the stores since the start have arrived, as far as this process has been
    /// told of the end of the owner. Orders stores as [`Window::store_barrier`]. Over a mirror it
    /// waits until the owner has them, a second at most while nothing moves.
    #[inline]
    #[must_use]
    pub fn check(&self) -> SequenceStatus {
        fence(Ordering::Release);
        match self.mapped.as_mirror() {
            Some(mirror) if self.mapped.is_current() => self.confirm(mirror),
            _ => self.status(),
        }
    }

    #[cold]
    fn confirm(&self, mirror: &Mirror) -> SequenceStatus {
        let sent = send(mirror, &self.host, true);
        let failures = mirror.failures();
        // Publishes nothing.
        let has_failed = self.failures.swap(failures, Ordering::Relaxed) != failures;
        match (sent, self.status()) {
            (_, SequenceStatus::NotRetriable) | (Sent::Gone, _) => SequenceStatus::NotRetriable,
            (Sent::All, _) if !has_failed => SequenceStatus::Ok,
            _ => SequenceStatus::Retriable,
        }
    }

    /// As [`Window::store_barrier`] of its window.
    #[inline]
    pub fn store_barrier(&self) {
        store_barrier(&self.mapped, &self.host);
    }

    /// As [`Window::flush`] of its window.
    #[inline]
    pub fn flush(&self) {
        flush(&self.mapped, &self.host);
    }
}

impl Drop for Sequence {
    fn drop(&mut self) {
        self.mapped.end_window();
    }
}

impl fmt::Debug for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sequence({:?})", self.start())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_to_a_mirror_has_gone_nowhere_once_its_host_is_gone() {
        let mirror = Mirror::new(1, 64).expect("memory");
        assert_eq!(send(&mirror, &Weak::new(), true), Sent::Gone);
    }
}
