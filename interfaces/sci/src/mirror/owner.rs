//! The side of the owner: a mirror is sent what the program stores to its segment
//! (`docs/design/sci-mirror.md`, What the owner stores).

use crate::mirror::changes::Change;
use crate::mirror::pass::MOST_BYTES;
use crate::mirror::patch::emit;
use crate::mirror::shadow::Shadow;
use crate::objects::Target;
use crate::partner::Key;
use crate::state::State;
use crate::wire::{HEADER, Message};
use cci::{Endpoint, Memory};
use cci_peers::Peer;

/// Blocks that are watched for the mirrors of a peer, at most. Of more it is sent what they have,
/// and no more.
const MOST_WATCHED: usize = 1024;

impl State {
    /// The memory that a connection of a peer is to. `None`: it is to no segment of one owner.
    pub(crate) fn memory_of(&self, key: Key) -> Option<Memory> {
        let segment = match self.connectors.get(&key)? {
            Target::Segment(id, _) => self.segments.get(id),
            Target::Released(life) => self.released.get(life),
            Target::Interrupt(_) | Target::Member(_) => None,
        };
        segment?.mapped.memory()
    }

    /// Runs something on what the mirror of a connection has. `None`: there is none.
    fn with_shadow<R>(&mut self, key: Key, act: impl FnOnce(&mut Self, &mut Shadow, &Memory) -> R) -> Option<R> {
        let memory = self.memory_of(key)?;
        let mut shadow = self.shadows.remove(&key).unwrap_or_default();
        let result = act(self, &mut shadow, &memory);
        // The link may have ended meanwhile.
        if self.connectors.contains_key(&key) {
            self.shadows.insert(key, shadow);
        }
        Some(result)
    }

    /// A mirror asks for a block.
    pub(crate) fn on_watch(&mut self, endpoint: &Endpoint, key: Key, block: u32, sums: Vec<u64>) {
        let Some(peer) = key.0 else { return };
        let is_right = self.with_shadow(key, |state, shadow, memory| {
            if state.links.is_backed_up(peer) {
                return shadow.delay(memory, block, sums);
            }
            state.answer_watch(endpoint, key, (shadow, memory), (block, &sums))
        });
        if is_right == Some(false) {
            self.break_link(endpoint, peer);
        }
    }

    pub(crate) fn on_unwatch(&mut self, key: Key, block: u32) {
        if let Some(shadow) = self.shadows.get_mut(&key) {
            shadow.unwatch(block);
        }
    }

    /// False: there is no such block.
    fn answer_watch(
        &mut self,
        endpoint: &Endpoint,
        key: Key,
        (shadow, memory): (&mut Shadow, &Memory),
        (block, sums): (u32, &[u64]),
    ) -> bool {
        let of_peer = self.shadows.range((key.0, 0)..=(key.0, u64::MAX));
        let watched = of_peer.map(|(_, shadow)| shadow.blocks()).sum::<usize>() + shadow.blocks();
        let Some(changes) = shadow.watch(memory, block, sums, watched < MOST_WATCHED) else { return false };
        self.send_changed(endpoint, key, shadow.applied, &changes);
        self.send(endpoint, key.0, Message::Watched { token: key.1, block });
        true
    }

    fn send_changed(&mut self, endpoint: &Endpoint, key: Key, number: u32, changes: &[Change]) {
        let connection = key.0.and_then(|peer| self.links.peers.connection(peer));
        let Some(most) = connection.and_then(|connection| connection.max_send_size()) else { return };
        for (groups, _) in emit(changes, (most as usize).saturating_sub(HEADER).min(MOST_BYTES)) {
            self.send(endpoint, key.0, Message::Changed { token: key.1, number, groups });
        }
    }

    /// Sends a peer what has changed in segments that its mirrors watch, before a message by which
    /// its program learns of it.
    pub(crate) fn tell_changes(&mut self, endpoint: &Endpoint, peer: Peer) {
        let of_peer = self.shadows.range((Some(peer), 0)..=(Some(peer), u64::MAX));
        let keys: Vec<_> = of_peer.filter(|(_, shadow)| shadow.is_watching()).map(|(key, _)| *key).collect();
        for key in keys {
            self.with_shadow(key, |state, shadow, memory| {
                let changes = shadow.take_changes(memory);
                state.send_changed(endpoint, key, shadow.applied, &changes);
            });
        }
    }

    /// Answers mirrors for which there was no room. False: there is still none for one.
    pub(crate) fn answer_watches(&mut self, endpoint: &Endpoint) -> bool {
        let due = self.shadows.iter().filter(|(_, shadow)| !shadow.due.is_empty());
        let mut keys: Vec<_> = due.map(|(key, _)| *key).collect();
        keys.retain(|key| {
            let left = self.with_shadow(*key, |state, shadow, memory| {
                while key.0.is_some_and(|peer| !state.links.is_backed_up(peer)) {
                    let Some((block, sums)) = shadow.due.pop_first() else { return false };
                    state.answer_watch(endpoint, *key, (shadow, memory), (block, &sums));
                }
                !shadow.due.is_empty()
            });
            left == Some(true)
        });
        keys.is_empty()
    }
}
