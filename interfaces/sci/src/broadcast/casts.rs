//! Members of other hosts, and what they are sent.

use super::group::{Lane, Member};
use crate::claims::introduction_of_member;
use crate::mirror::{Groups, MOST_BYTES, apply};
use crate::objects::Target;
use crate::partner::{Key, Partner};
use crate::state::State;
use crate::types::Reason;
use crate::wire::{HEADER, Message, Patch};
use cci::Endpoint;
use cci_peers::Peer;
use rustix::fd::BorrowedFd;
use std::collections::{BTreeSet, VecDeque};

/// Patches that a host was sent since it was last asked to confirm.
const MANY: u64 = 8;
/// Patches that a host may leave unconfirmed before nothing more is sent.
const MOST_UNCONFIRMED: usize = 64;

impl State {
    /// A member of another host, or its answer.
    pub(crate) fn on_join(
        &mut self,
        endpoint: &Endpoint,
        key: Key,
        (id, len, memory): (u32, u64, u64),
        (is_answer, is_published): (bool, bool),
    ) {
        let Some(peer) = key.0 else { return };
        self.waits.has_changed = true;
        let known = self.connectors.get(&key).copied();
        let is_group = self.groups.get(&id).is_some_and(|group| group.commons.len as u64 == len);
        let is_other = self.groups.get(&id).is_some_and(|group| group.commons.key != memory);
        // A member keeps its memory: its lane would stay behind.
        let member = self.groups.get(&id).and_then(|group| group.members.get(&key));
        let has_moved = member.is_some_and(|member| member.memory != memory);
        if has_moved || known.is_some_and(|target| target != Target::Member(id)) {
            return self.break_link(endpoint, peer);
        }
        if is_group && is_other && known.is_none() {
            if !self.admits(endpoint, key) {
                return;
            }
            self.connectors.insert(key, Target::Member(id));
        }
        let Some(group) = self.groups.get_mut(&id) else {
            // Also to an answer: what this process sent when it left may not have arrived.
            if len > 0 {
                let (token, group) = (0, id);
                let none = Message::Join { token, group, len: 0, memory: 0, is_answer: true, is_published: false };
                self.send(endpoint, key.0, none);
            }
            return;
        };
        if len == 0 {
            group.asked.remove(&peer);
            let former: Vec<_> = group.members.keys().filter(|of| of.0 == key.0).copied().collect();
            former.into_iter().for_each(|of| self.forget_connector(endpoint, of, Reason::Lost));
            return;
        }
        if is_answer {
            group.asked.remove(&peer);
        }
        let mut former = None;
        if is_group && is_other {
            former = group.members.keys().find(|of| of.0 == key.0 && **of != key).copied();
            group.members.insert(key, Member { memory, is_published });
            let (asked, confirmed) = (group.sent, group.sent);
            let lane = Lane { to: key, asked, confirmed, unconfirmed: VecDeque::new() };
            group.lanes.entry(memory).or_insert(lane);
        }
        let own = (!is_answer).then(|| group.join_message(id, true));
        // One that only receives sends nothing by itself.
        self.links.enter_far(peer);
        if let Some(former) = former {
            // A process is one member. So a peer has no more lanes than this process has groups.
            self.forget_connector(endpoint, former, Reason::Lost);
        }
        if let Some(own) = own {
            self.send(endpoint, key.0, own);
        }
    }

    /// A member of another host is no more. Another one of that host gets what it did not confirm.
    pub(crate) fn lose_member(&mut self, endpoint: &Endpoint, id: u32, key: Key) {
        let Some(group) = self.groups.get_mut(&id) else { return };
        let Some(Member { memory, .. }) = group.members.remove(&key) else { return };
        let Some(lane) = group.lanes.get_mut(&memory).filter(|lane| lane.to == key) else { return };
        let next = group.members.iter().find(|(_, member)| member.memory == memory).map(|(key, _)| *key);
        let Some(next) = next else {
            group.lanes.remove(&memory);
            return self.settle_casts(endpoint, id);
        };
        (lane.to, lane.asked) = (next, group.sent);
        let (token, last) = (group.token, group.sent);
        let again = lane.unconfirmed.iter().map(|(number, groups)| Message::Patch {
            token,
            number: *number as u32,
            is_asking: *number == last,
            groups: groups.clone(),
        });
        for message in again.collect::<Vec<_>>() {
            self.send(endpoint, next.0, message);
        }
    }

    /// A link could not be made.
    pub(crate) fn give_up_members(&mut self, peer: Peer) {
        for group in self.groups.values_mut() {
            self.waits.has_changed |= group.asked.remove(&peer);
        }
    }

    /// Applies bytes of a member of another host.
    pub(crate) fn on_cast(&mut self, id: u32, patch: &Patch<'_>) -> bool {
        self.groups.get(&id).is_none_or(|group| apply(&group.commons.memory(), patch.first, patch.groups))
    }

    /// Whether all hosts of a group take more of a window.
    pub(crate) fn may_cast(&self, id: u32) -> bool {
        self.has_room_below(id, MOST_UNCONFIRMED)
    }

    /// The same for a transfer, which leaves room to windows.
    pub(super) fn may_cast_transfer(&self, id: u32) -> bool {
        self.has_room_below(id, MOST_UNCONFIRMED / 2)
    }

    fn has_room_below(&self, id: u32, most: usize) -> bool {
        let has_room =
            |lane: &Lane| lane.unconfirmed.len() < most && !lane.to.0.is_some_and(|peer| self.links.is_backed_up(peer));
        self.groups.get(&id).is_none_or(|group| group.lanes.values().all(has_room))
    }

    /// Bytes of groups of words, in a message that every host takes.
    pub(crate) fn most_of_cast(&self, id: u32) -> usize {
        let most = |lane: &Lane| Some(self.links.peers.connection(lane.to.0?)?.max_send_size()? as usize);
        let lanes = self.groups.get(&id).into_iter().flat_map(|group| group.lanes.values());
        lanes.filter_map(most).min().map_or(MOST_BYTES, |most| most.saturating_sub(HEADER).min(MOST_BYTES))
    }

    /// Stores what has changed into the memory of this host, and sends it to all others. `number`
    /// is that of the connection or the queue with this token, which is told of the confirmation if
    /// it asks. True: everybody has it already.
    pub(crate) fn cast(
        &mut self,
        endpoint: &Endpoint,
        id: u32,
        (token, number, is_asking): (u64, u64, bool),
        groups: Groups,
    ) -> bool {
        let Some(group) = self.groups.get_mut(&id) else { return true };
        // Inside: a mirror of the same length has found it, or the range was checked.
        apply(&group.commons.memory(), groups.first, &groups.bytes);
        if group.lanes.is_empty() {
            return true;
        }
        group.sent += 1;
        let (sent, own) = (group.sent, group.token);
        if is_asking {
            group.waits.push_back((sent, token, number));
        }
        let messages = group.lanes.values_mut().map(|lane| {
            let is_asking = is_asking || sent - lane.asked >= MANY;
            if is_asking {
                lane.asked = sent;
            }
            lane.unconfirmed.push_back((sent, groups.clone()));
            (lane.to.0, Message::Patch { token: own, number: sent as u32, is_asking, groups: groups.clone() })
        });
        for (partner, message) in messages.collect::<Vec<_>>() {
            self.send(endpoint, partner, message);
        }
        false
    }

    /// A host has confirmed a patch. False: the token is of no group.
    pub(crate) fn on_cast_applied(&mut self, endpoint: &Endpoint, from: Partner, token: u64, number: u32) -> bool {
        let Some((id, group)) = self.groups.iter_mut().find(|(_, group)| group.token == token) else { return false };
        let (id, sent) = (*id, group.sent);
        let Some(lane) = group.lanes.values_mut().find(|lane| lane.to.0 == from) else { return true };
        let before = u64::from((sent as u32).wrapping_sub(number));
        lane.confirmed = lane.confirmed.max(sent.saturating_sub(before));
        while lane.unconfirmed.front().is_some_and(|(number, _)| *number <= lane.confirmed) {
            lane.unconfirmed.pop_front();
        }
        self.settle_casts(endpoint, id);
        true
    }

    /// Tells connections and queues of what all hosts have confirmed.
    fn settle_casts(&mut self, endpoint: &Endpoint, id: u32) {
        let Some(group) = self.groups.get_mut(&id) else { return };
        let least = group.lanes.values().map(|lane| lane.confirmed).min().unwrap_or(group.sent);
        let count = group.waits.iter().take_while(|(number, ..)| *number <= least).count();
        for (_, token, number) in group.waits.drain(..count).collect::<Vec<_>>() {
            self.on_applied(None, token, number as u32);
            self.on_transfer_ended(endpoint, token, true);
        }
        // A pass may wait for room.
        self.mirrors.ended += 1;
        self.waits.has_changed = true;
    }

    /// This process has a segment of the group that is available, or has none any more.
    pub(crate) fn publish_member(&mut self, endpoint: &Endpoint, id: u32, is_published: bool) {
        let Some(group) = self.groups.get_mut(&id) else { return };
        group.is_published = is_published;
        let message = group.join_message(id, true);
        let partners: BTreeSet<_> = group.members.keys().map(|key| key.0).collect();
        // Those that have not answered yet have the join before it, or will have it.
        let asked: Vec<_> = group.asked.iter().map(|peer| Some(*peer)).filter(|of| !partners.contains(of)).collect();
        partners.into_iter().for_each(|partner| self.send(endpoint, partner, message.clone()));
        for partner in asked {
            // Refused only where the join was refused, too.
            let _ = self.begin(endpoint, partner, message.clone());
        }
    }

    /// An object of this process leaves a group. The last one ends the membership; its claim.
    pub(crate) fn leave_group(&mut self, endpoint: &Endpoint, id: u32) -> Option<u64> {
        let group = self.groups.get_mut(&id)?;
        group.uses -= 1;
        if group.uses > 0 {
            return None;
        }
        let group = self.groups.remove(&id)?;
        for (_, token, _) in group.waits {
            self.on_transfer_ended(endpoint, token, false);
        }
        for (key, _) in group.members {
            self.connectors.remove(&key);
            self.send(endpoint, key.0, Message::Disconnect { token: group.token });
        }
        // Those that have not answered yet have the join before them, or will have it.
        for peer in group.asked {
            // Refused only where the join was refused, too.
            let _ = self.begin(endpoint, Some(peer), Message::Disconnect { token: group.token });
        }
        self.waits.has_changed = true;
        Some(group.claim)
    }

    /// The introduction of a member and the memory it hands over, by the claim of its name. `host`
    /// is the introduction of this host.
    pub(crate) fn member_of_claim(&self, claim: u64, host: &[u8]) -> Option<(Vec<u8>, BorrowedFd<'_>)> {
        let group = self.groups.values().find(|group| group.claim == claim)?;
        let (commons, member) = (&group.commons, (group.is_published, group.place));
        let words = introduction_of_member((commons.key, commons.len as u64), member, host);
        Some((words, commons.file()?))
    }
}
