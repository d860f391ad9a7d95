//! Registered memory: what peers reach by its match bits.

mod attached;

use cci_mem::memory::Memory;
use cci_proto::{Rights, RmaHandle};
use std::collections::HashMap;

/// What the second word of a handle is made of, for a registration of everybody and for one of one
/// connection: they differ in many bits.
const KINDS: [u64; 2] = [0x9e6c_63d0_876a_3f6b, 0x3c81_19ee_5b1d_a0d4];

/// The second word of a handle: it follows from the first, so that an initiator finds a handle that
/// was damaged or invented.
fn second(first: u64, is_private: bool) -> u64 {
    // The finalizer of SplitMix64.
    let mut word = first ^ KINDS[usize::from(is_private)];
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

/// The match bits of a peer's registration, for an operation of the connection with this tag;
/// `None`: nobody has given this handle.
pub(crate) fn bits_of(handle: &RmaHandle, tag: u64) -> Option<u64> {
    let [first, word] = handle.name();
    if word == second(first, false) {
        Some(first)
    } else if word == second(first, true) {
        Some(first ^ tag)
    } else {
        None
    }
}

#[derive(Debug)]
struct Registered<B> {
    memory: Memory,
    rights: Rights,
    /// The connection that it is for, by this side's number, if it is for one.
    only: Option<u32>,
    /// The connection that it was for has ended.
    is_orphaned: bool,
    bound: Option<B>,
}

/// The registrations of an endpoint, by the first words of their handles.
#[derive(Debug)]
pub struct Registrations<B>(HashMap<u64, Registered<B>>);

impl<B> Default for Registrations<B> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<B> Registrations<B> {
    fn find(&self, handle: &RmaHandle) -> Option<&Registered<B>> {
        let [first, word] = handle.name();
        self.0.get(&first).filter(|found| word == second(first, found.only.is_some()))
    }

    /// Memory of this process, for an operation of the connection with this number.
    pub(crate) fn memory(&self, handle: &RmaHandle, number: u32) -> Option<&Memory> {
        let found = self.find(handle).filter(|found| !found.is_orphaned && found.bound.is_some());
        found.filter(|found| found.only.is_none_or(|only| only == number)).map(|found| &found.memory)
    }

    /// Memory that a peer of a connection reaches by its word, if these rights are granted, and
    /// what keeps it registered. The connection is given by this side's number of it, and its tag.
    #[must_use]
    pub fn reach(&self, bits: u64, (number, tag): (u32, u64), rights: Rights) -> Option<(&Memory, &B)> {
        let of_all = self.0.get(&bits).filter(|found| found.only.is_none());
        let found = of_all.or_else(|| self.0.get(&(bits ^ tag)).filter(|found| found.only == Some(number)))?;
        if !found.rights.has(rights) || found.is_orphaned {
            return None;
        }
        Some((&found.memory, found.bound.as_ref()?))
    }

    /// Ends all: what keeps memory registered.
    pub(crate) fn take_all(&mut self) -> Vec<B> {
        self.0.drain().filter_map(|(_, registered)| registered.bound).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_with_any_bit_changed_is_nobodys() {
        for is_private in [false, true] {
            let handle = RmaHandle::from_words([7, second(7, is_private), 0, 0]);
            assert_eq!(bits_of(&handle, 3), Some(if is_private { 7 ^ 3 } else { 7 }));
            for bit in 0..128 {
                let mut words = handle.words();
                words[bit / 64] ^= 1 << (bit % 64);
                assert_eq!(bits_of(&RmaHandle::from_words(words), 3), None, "bit {bit}");
            }
        }
    }
}
