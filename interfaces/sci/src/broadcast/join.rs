//! How a process becomes a member of a group: first on its host, then with the other hosts.

use super::{Commons, Group};
use crate::claims::{self, Membership, Named};
use crate::errors::Error;
use crate::mapped::Mapped;
use crate::names;
use crate::nodes::{EVERY_NODE, Place};
use crate::segment::{LocalSegment, RemoteSegment, available};
use crate::shared::Shared;
use crate::state::{Notices, Remote, State};
use cci_mem::random::random;
use rustix::fd::OwnedFd;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long others who join on this host are waited for, and the pause between two tries.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(1);
/// How long a member of this host, or another host, is asked.
const REACH: Duration = Duration::from_secs(1);

/// The right to join on this host: one process at a time.
fn turn(id: u32) -> Result<OwnedFd, Error> {
    let begun = Instant::now();
    loop {
        match claims::claim(0, Named::Joining(id)) {
            Err(Error::SegmentIdUsed) if begun.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
            Err(Error::SegmentIdUsed) => return Err(Error::Timeout),
            other => return other,
        }
    }
}

/// What a process has once it has joined on its host.
struct Joined {
    commons: Commons,
    claim: OwnedFd,
    place: u32,
    is_published: bool,
}

/// Joins on this host: takes the memory from a member, or makes it.
fn join_here(id: u32, len: Option<usize>) -> Result<Joined, Error> {
    let _turn = turn(id)?;
    let (mut free, mut found, mut is_published, mut is_mute) = (None, None, false, false);
    for place in 0..claims::MOST_MEMBERS {
        match claims::find_member(id, place, Instant::now().checked_add(REACH)) {
            Ok(None) => free = free.or(Some(place)),
            Ok(Some((member, file))) => {
                is_published |= member.is_published;
                found = found.or(Some((member, file)));
            }
            // It is stopped: another member has the memory too.
            Err(Error::Timeout) => is_mute = true,
            Err(why) => return Err(why),
        }
    }
    let commons = match found {
        Some((member, file)) => Commons::attach(file, member.len, member.memory)?,
        None if is_mute => return Err(Error::Timeout),
        None => {
            let len = len.ok_or(Error::NoSuchSegment)?;
            if available().is_some_and(|bytes| len as u64 > bytes) {
                return Err(Error::NoSpace);
            }
            let [key] = random().map_err(|_| Error::System)?;
            Commons::create(len, key)?
        }
    };
    if len.is_some_and(|len| len != commons.len()) {
        return Err(Error::SegmentIdUsed);
    }
    let place = free.ok_or(Error::NoSpace)?;
    let claim = claims::claim(0, Named::Member(id, place))?;
    Ok(Joined { commons, claim, place, is_published })
}

/// Whether a member of this host has a segment that is available.
fn is_published_here(id: u32) -> bool {
    let mut from = 0;
    while let Ok(Some(member)) = claims::next_member(id, from, Instant::now().checked_add(REACH)) {
        if member.is_published {
            return true;
        }
        from = member.place + 1;
    }
    false
}

/// Members of a group on another host. A host that does not answer has none.
fn members_of(place: &Place, id: u32) -> Vec<Membership> {
    let deadline = Instant::now().checked_add(REACH);
    let mut members = Vec::new();
    let mut from = 0;
    while let Ok(Some(member)) = names::find_member(place, (id, from), deadline) {
        if member.place < from || member.place >= claims::MOST_MEMBERS {
            break;
        }
        from = member.place + 1;
        members.push(member);
    }
    members
}

fn members_elsewhere(shared: &Shared, id: u32) -> Vec<Membership> {
    if !shared.is_networked() {
        return Vec::new();
    }
    let others = shared.nodes.others();
    std::thread::scope(|scope| {
        let asking: Vec<_> = others.iter().map(|place| scope.spawn(|| members_of(place, id))).collect();
        asking.into_iter().flat_map(|one| one.join().unwrap_or_default()).collect()
    })
}

/// Makes this process a member, once for each of its objects. `len`: of a segment; a connection
/// takes that of the group. Whether a segment of the group is available.
fn join(shared: &Arc<Shared>, id: u32, len: Option<usize>, deadline: Option<Instant>) -> Result<bool, Error> {
    shared.check_wait()?;
    let again = |state: &mut State| match state.groups.get_mut(&id) {
        Some(group) if len.is_some_and(|len| len != group.commons.len()) => Err(Error::SegmentIdUsed),
        Some(group) => {
            group.uses += 1;
            Ok(true)
        }
        None => Ok(false),
    };
    let mut elsewhere = members_elsewhere(shared, id);
    let first = elsewhere.first().and_then(|member| usize::try_from(member.len).ok());
    let is_there = elsewhere.iter().any(|member| member.is_published);
    if len.is_some_and(|len| first.is_some_and(|first| first != len)) {
        return Err(Error::SegmentIdUsed);
    }
    let mut is_published = is_there;
    if shared.with(again)? {
        is_published |= len.is_none() && is_published_here(id);
    } else {
        let Joined { commons, claim, place, is_published: is_here } = join_here(id, len.or(first))?;
        is_published |= is_here;
        shared.with(|state| {
            // Another thread may have joined meanwhile.
            if again(state)? {
                return Ok(());
            }
            let (token, claim) = (state.next(), shared.enter_claim(state, claim)?);
            let group = Group {
                commons: Arc::new(commons),
                claim,
                place,
                token,
                uses: 1,
                is_published: false,
                members: BTreeMap::new(),
                asked: BTreeSet::new(),
                lanes: BTreeMap::new(),
                sent: 0,
                waits: VecDeque::new(),
            };
            state.groups.insert(id, group);
            Ok(())
        })?;
        // A host that joined meanwhile has found nobody here. Both have their claims by now, so one
        // of the two finds the other.
        elsewhere = members_elsewhere(shared, id);
        is_published |= elsewhere.iter().any(|member| member.is_published);
        let len = shared.with(|state| Ok(state.groups.get(&id).map(|group| group.commons.len() as u64)))?;
        if elsewhere.iter().any(|member| Some(member.len) != len) {
            leave(shared, id);
            return Err(Error::SegmentIdUsed);
        }
    }
    match meet(shared, id, &elsewhere, deadline) {
        // A member that does not answer is told of a segment once it goes on.
        Ok(()) => {}
        Err(Error::Timeout) if len.is_some() => {}
        Err(why) => {
            leave(shared, id);
            return Err(why);
        }
    }
    shared.with(|state| Ok(is_published || state.groups.get(&id).is_some_and(Group::has_published)))
}

/// Tells members of other hosts, and waits for their answers.
fn meet(shared: &Arc<Shared>, id: u32, members: &[Membership], deadline: Option<Instant>) -> Result<(), Error> {
    shared.with(|state| {
        for member in members {
            let Some(group) = state.groups.get(&id).filter(|group| group.commons.key != member.memory) else {
                continue;
            };
            let message = group.join_message(id, false);
            let Some(peer) = state.peer_of(member.owner.number, &member.owner.uri) else { continue };
            if let Some(group) = state.groups.get_mut(&id) {
                group.asked.insert(peer);
            }
            state.begin(&shared.endpoint, Some(peer), message)?;
        }
        Ok(())
    })?;
    shared.wait_until(deadline, false, |state| {
        state.groups.get(&id).is_none_or(|group| group.asked.is_empty()).then_some(Ok(()))
    })
}

fn leave(shared: &Shared, id: u32) {
    // Refused where the host has ended: then the membership has, too.
    let _ = shared.with(|state| {
        if let Some(claim) = state.leave_group(&shared.endpoint, id) {
            shared.free_claim(state, claim);
        }
        Ok(())
    });
}

/// Connects to all segments of a group.
pub(crate) fn connect(shared: &Arc<Shared>, id: u32, deadline: Option<Instant>) -> Result<RemoteSegment, Error> {
    if !join(shared, id, None, deadline)? {
        leave(shared, id);
        return Err(Error::NoSuchSegment);
    }
    let entered = shared.with(|state| {
        let commons = Arc::clone(&state.groups.get(&id).ok_or(Error::NoSuchSegment)?.commons);
        let token = state.next();
        let mapped = if shared.is_networked() {
            Mapped::mirror(state.mirrors.enter_group(&shared.endpoint, token, (id, commons.len() as u64))?, state.mark)
        } else {
            Mapped::common(&commons, state.mark)
        };
        let (mapped, notices) = (Arc::new(mapped), Notices::new());
        let (partner, node, segment, handle, is_lost) = (None, EVERY_NODE, id, None, false);
        state.remotes.insert(token, Remote { partner, node, segment, mapped, handle, is_lost, notices });
        Ok(token)
    });
    match entered {
        Ok(token) => RemoteSegment::new(shared, token),
        Err(why) => {
            leave(shared, id);
            Err(why)
        }
    }
}

/// Creates the segment of this process in a group.
pub(crate) fn create(shared: &Arc<Shared>, id: u32, len: usize) -> Result<LocalSegment, Error> {
    if len == 0 {
        return Err(Error::IllegalParameter);
    }
    if shared.with(|state| Ok(state.segments.contains_key(&id)))? {
        return Err(Error::SegmentIdUsed);
    }
    join(shared, id, Some(len), Instant::now().checked_add(REACH))?;
    let created = LocalSegment::of_group(shared, id);
    if created.is_err() {
        leave(shared, id);
    }
    created
}
