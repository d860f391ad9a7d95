//! The readers of what other hosts send, for the fuzz targets. No part of the interface.

use crate::claims::{Membership, Named, Owner};
use crate::mirror::{Groups, apply};
use crate::nodes::Nodes;
use crate::question::{Answer, Question};
use crate::wire::{Message, Patch};
use cci::{HeapBytes, Memory};
use std::sync::Arc;

/// A message between hosts: what is read is written again as it came.
pub fn message(bytes: &[u8]) {
    let Some(message) = Message::parse(bytes) else { return };
    assert_eq!(message.emit(), bytes);
    if let Message::Patch { token, number, is_asking, groups: Groups { first, bytes: groups } } = &message {
        let patch =
            Patch { token: *token, number: *number, is_asking: *is_asking, first: *first, groups: groups.as_slice() };
        assert_eq!(Patch::parse(bytes), Some(patch));
    }
}

/// Groups of a patch for a segment: two bytes of its length, eight of the first place, groups.
pub fn patch(bytes: &[u8]) {
    let Some((len, rest)) = bytes.split_first_chunk() else { return };
    let Some((first, groups)) = rest.split_first_chunk() else { return };
    let len = usize::from(u16::from_le_bytes(*len) & 0x0fff) + 1;
    let memory = Memory::of_bytes(&Arc::new(HeapBytes::new(vec![0; len])));
    let is_right = apply(&memory, u64::from_le_bytes(*first), groups);
    let mut stored = vec![0; len];
    assert!(memory.copy_out(0, &mut stored));
    assert!(is_right || stored.iter().all(|byte| *byte == 0), "a patch that is refused has stored something");
}

/// A question for a name, and an answer to one.
pub fn names(bytes: &[u8]) {
    if let Some(question) = Question::parse(bytes) {
        assert!(Answer::HERE.emit(question.cookie).is_some());
    }
    let cookie = bytes.get(8..16).and_then(|cookie| cookie.try_into().ok()).map_or(0, u64::from_le_bytes);
    let question = Question { cookie, node: 4, what: Some(Named::Segment(7)) };
    let _ = question.read(bytes, Owner::parse);
    let _ = question.read(bytes, Membership::parse);
    for skipped in 0..bytes.len().min(32) {
        let _ = Owner::parse(&bytes[skipped..]).map(|owner| assert_eq!(owner.emit(), bytes[skipped..]));
        let _ = Membership::parse(&bytes[skipped..]);
    }
}

/// A node table.
pub fn nodes(bytes: &[u8]) {
    // Each line that names a host has the interfaces of this one looked at.
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(512)]);
    let Ok(nodes) = Nodes::parse(&text) else { return };
    assert_eq!(nodes.is_here(nodes.own()), Some(true));
    let _ = (nodes.others(), nodes.served_port());
}
