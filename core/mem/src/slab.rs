//! Objects that stay mapped and typed for ever, so that a once-valid pointer can be looked at
//! safely.
//!
//! A slab hands out `&'static T` and takes them back; it never gives memory to anything but `T`.
//! Freed objects are reused in first-in first-out order and only after a quarantine, so that a
//! stale pointer is found stale by the object's own generation rather than mistaken for its
//! successor.

use crate::mutex::lock;
use crate::sync::{AtomicPtr, Ordering};
use std::collections::VecDeque;
use std::sync::Mutex;

/// A store of objects of one type. So many freed ones wait before the first of them is reused, and
/// so many are made at a time: `REST`. Thread-safe; for control paths only (it locks and may
/// allocate).
pub struct Slab<T: 'static, const REST: usize = 64> {
    free: Mutex<VecDeque<&'static T>>,
}

impl<T: Default + Sync + 'static, const REST: usize> Slab<T, REST> {
    /// Empty.
    #[must_use]
    pub const fn new() -> Self {
        Self { free: Mutex::new(VecDeque::new()) }
    }

    /// An object: a fresh one in its default state, or one that was freed, in the state it was
    /// freed in.
    #[must_use]
    pub fn take(&self) -> &'static T {
        let mut free = lock(&self.free);
        if free.len() <= REST {
            let chunk: &'static mut [T] = Box::leak((0..REST).map(|_| T::default()).collect());
            // Fresh objects go before the freed ones, which alone are counted.
            for object in chunk.iter().rev() {
                free.push_front(object);
            }
        }
        free.pop_front().unwrap_or_else(|| Box::leak(Box::default()))
    }

    /// Gives an object back; it stays readable through stale pointers.
    pub fn give(&self, object: &'static T) {
        lock(&self.free).push_back(object);
    }
}

impl<T: Default + Sync + 'static, const REST: usize> Default for Slab<T, REST> {
    fn default() -> Self {
        Self::new()
    }
}

/// A reference to an object of a slab, or none, that can be changed from any thread. As large as a
/// pointer, so that it can stand in a structure that C programs read.
#[repr(transparent)]
pub struct AtomicRef<T: 'static>(AtomicPtr<T>);

impl<T: Sync + 'static> AtomicRef<T> {
    /// None.
    #[must_use]
    pub fn none() -> Self {
        Self(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// The reference.
    #[inline(always)]
    #[must_use]
    pub fn get(&self) -> Option<&'static T> {
        // SAFETY: null, or stored by `set` from a `&'static T`. Acquire: pairs with `set`, so that
        // the object is whole here.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// Replaces the reference.
    #[inline(always)]
    pub fn set(&self, object: Option<&'static T>) {
        let pointer = object.map_or(std::ptr::null_mut(), |object| std::ptr::from_ref(object).cast_mut());
        // Release: publishes the object, which may be younger than what else this thread and the
        // reader share.
        self.0.store(pointer, Ordering::Release);
    }
}

impl<T: Sync + 'static> Default for AtomicRef<T> {
    fn default() -> Self {
        Self::none()
    }
}
