//! How a process becomes a member of a group: first on its host, then with the other hosts.

use super::{Commons, Group};
use crate::claims::{self, Membership, Named};
use crate::errors::Error;
use crate::mapped::Mapped;
use crate::names;
use crate::nodes::{EVERY_NODE, Place};
use crate::notices::Notices;
use crate::objects::Remote;
use crate::remote::RemoteSegment;
use crate::segment::LocalSegment;
use crate::shared::Shared;
use crate::state::State;
use cci_mem::meminfo::available;
use cci_mem::quiet_thread;
use cci_mem::random::random;
use rustix::fd::OwnedFd;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long others who join on this host are waited for, and the pause between two tries.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(1);
/// The pause before members that are mute are asked again.
const MUTE_PAUSE: Duration = Duration::from_millis(100);
/// How long a member of this host, or another host, is asked.
const REACH: Duration = Duration::from_secs(1);

/// When a part of a join is over that lasts so long at most, and not beyond the limit of the whole.
fn until(lasts: Duration, limit: Option<Instant>) -> Option<Instant> {
    [Instant::now().checked_add(lasts), limit].into_iter().flatten().min()
}

/// The right to join on this host: one process at a time.
fn turn(id: u32, limit: Option<Instant>) -> Result<OwnedFd, Error> {
    let end = until(PATIENCE, limit);
    loop {
        match claims::claim(0, Named::Joining(id)) {
            Err(Error::SegmentIdUsed) if end.is_none_or(|end| Instant::now() < end) => std::thread::sleep(PAUSE),
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
fn join_here(id: u32, len: Option<usize>, limit: Option<Instant>) -> Result<Joined, Error> {
    let _turn = turn(id, limit)?;
    let members = claims::members(id, 0, REACH, limit)?;
    let is_published = members.found.iter().any(|(member, _)| member.is_published);
    let free = members.free;
    // Of those that are stopped another member has the memory too.
    let is_mute = !members.mute.is_empty();
    let found = members.found.into_iter().next();
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
fn is_published_here(id: u32, limit: Option<Instant>) -> bool {
    let members = claims::members(id, 0, REACH, limit);
    members.is_ok_and(|members| members.found.iter().any(|(member, _)| member.is_published))
}

/// How long members of other hosts that are mute are asked again.
#[derive(Clone, Copy)]
enum Patience {
    /// Without them the segment misses what they store.
    Short,
    /// Until the limit of the connect, if it has one.
    Long(Option<Instant>),
}

/// Members of a group on another host. Those that are mute are asked again. A host that does not
/// answer has none. [`Error::Timeout`]: who connects has not found all.
fn members_of(shared: &Shared, place: &Place, id: u32, patience: Patience) -> Result<Vec<Membership>, Error> {
    let limit = if let Patience::Long(limit) = patience { limit } else { None };
    let (mut members, mut asked) = (BTreeMap::new(), Duration::ZERO);
    let mut was_mute = false;
    loop {
        let (mut from, mut is_mute) = (0, false);
        loop {
            let (found, skipped) = match (names::find_member(place, (id, from), limit), patience) {
                (Ok(answer), _) => answer,
                (Err(Error::Timeout), Patience::Long(_)) if was_mute => return Err(Error::Timeout),
                (Err(_), _) => return Ok(members.into_values().collect()),
            };
            is_mute |= skipped > 0;
            was_mute |= is_mute;
            let Some(member) = found.filter(|of| of.place >= from && of.place < claims::MOST_MEMBERS) else { break };
            from = member.place + 1;
            members.insert(member.place, member);
        }
        let is_over = match patience {
            Patience::Short => asked >= REACH,
            Patience::Long(Some(limit)) if Instant::now() >= limit => return Err(Error::Timeout),
            Patience::Long(_) => shared.is_closed(),
        };
        if !is_mute || is_over {
            return Ok(members.into_values().collect());
        }
        std::thread::sleep(MUTE_PAUSE);
        asked += MUTE_PAUSE;
    }
}

/// Members of a group on all other hosts, which are asked at once; one after the other where there
/// are no threads.
fn members_elsewhere(shared: &Shared, id: u32, patience: Patience) -> Result<Vec<Membership>, Error> {
    if !shared.is_networked() {
        return Ok(Vec::new());
    }
    let asked = ask_all(&shared.nodes.others(), |place| vec![members_of(shared, place, id, patience)]);
    Ok(asked.into_iter().collect::<Result<Vec<_>, _>>()?.concat())
}

fn ask_all<P: Sync, M: Send>(places: &[P], ask: impl Fn(&P) -> Vec<M> + Sync) -> Vec<M> {
    let ask = &ask;
    std::thread::scope(|scope| {
        let start = |place| {
            let run = move || ask(place);
            quiet_thread::spawn_scoped(scope, "cci-sci-ask", quiet_thread::STACK, run).map_err(|_| place)
        };
        let asking: Vec<_> = places.iter().map(start).collect();
        asking.into_iter().flat_map(|one| one.map_or_else(ask, |one| one.join().unwrap_or_default())).collect()
    })
}

/// Makes this process a member, once for each of its objects. `len`: of a segment; a connection
/// takes that of the group. Whether a segment of the group is available.
fn join(shared: &Arc<Shared>, id: u32, len: Option<usize>, deadline: Option<Instant>) -> Result<bool, Error> {
    let again = |state: &mut State| match state.groups.get_mut(&id) {
        Some(group) if len.is_some_and(|len| len != group.commons.len()) => Err(Error::SegmentIdUsed),
        Some(group) => {
            group.uses += 1;
            Ok(true)
        }
        None => Ok(false),
    };
    // A segment waits for answers of members alone: `deadline` is of those.
    let limit = deadline.filter(|_| len.is_none());
    let patience = if len.is_some() { Patience::Short } else { Patience::Long(deadline) };
    let mut elsewhere = members_elsewhere(shared, id, patience)?;
    let first = elsewhere.first().and_then(|member| usize::try_from(member.len).ok());
    let is_there = elsewhere.iter().any(|member| member.is_published);
    if len.is_some_and(|len| first.is_some_and(|first| first != len)) {
        return Err(Error::SegmentIdUsed);
    }
    let mut is_published = is_there;
    if shared.with(again)? {
        is_published |= len.is_none() && is_published_here(id, limit);
    } else {
        let Joined { commons, claim, place, is_published: is_here } = join_here(id, len.or(first), limit)?;
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
        elsewhere = match members_elsewhere(shared, id, patience) {
            Ok(members) => members,
            Err(why) => {
                leave(shared, id);
                return Err(why);
            }
        };
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
            let Some(peer) = state.links.peer_of(member.owner.number, &member.owner.uri) else { continue };
            if let Some(group) = state.groups.get_mut(&id) {
                group.asked.insert(peer);
            }
            state.begin(shared.endpoint(), Some(peer), message)?;
        }
        Ok(())
    })?;
    shared.wait_or_progress(deadline, |state| {
        state.groups.get(&id).is_none_or(|group| group.asked.is_empty()).then_some(Ok(()))
    })
}

fn leave(shared: &Shared, id: u32) {
    // Refused where the host has ended: then the membership has, too.
    let _ = shared.with(|state| {
        if let Some(claim) = state.leave_group(shared.endpoint(), id) {
            shared.free_claim(state, claim);
        }
        Ok(())
    });
}

/// Connects to all segments of a group.
pub(crate) fn connect(shared: &Arc<Shared>, id: u32, deadline: Option<Instant>) -> Result<RemoteSegment, Error> {
    // Its limit may be none; that of a segment is a second.
    shared.check_wait()?;
    if !join(shared, id, None, deadline)? {
        leave(shared, id);
        return Err(Error::NoSuchSegment);
    }
    let entered = shared.with(|state| {
        let commons = Arc::clone(&state.groups.get(&id).ok_or(Error::NoSuchSegment)?.commons);
        let token = state.next();
        let mapped = if shared.is_networked() {
            Mapped::mirror(state.mirrors.enter_group(shared.endpoint(), token, (id, commons.len() as u64))?, state.mark)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;
    use crate::liars::Liar;
    use crate::options::Options;
    use crate::wire::Message;
    use cci_conformance::sm_device;

    /// A host with a member of a group, and a peer of it.
    fn group() -> (Host, LocalSegment, LocalSegment, Liar) {
        let host = Host::open(&Options::new().device(sm_device())).expect("a host");
        let id = fastrand::u32(..) << 1;
        let segment = host.create(id, 64).expect("memory");
        segment.prepare().and_then(|()| segment.publish()).expect("room");
        let member = host.create_broadcast(id | 1, 64).expect("memory");
        let liar = Liar::new(id);
        (host, segment, member, liar)
    }

    /// Asks a peer that takes part in a group, and does not answer.
    fn meet_mute(host: &Host, id: u32, liar: &mut Liar, is_published: bool) {
        let mute = Membership { memory: 1, len: 64, is_published, place: 0, owner: liar.owner() };
        let limit = Instant::now().checked_add(Duration::from_millis(50));
        let met = std::thread::scope(|scope| {
            let meeting = scope.spawn(|| meet(&host.shared, id, &[mute], limit));
            while !meeting.is_finished() {
                liar.progress();
            }
            meeting.join().expect("no panic")
        });
        assert_eq!(met, Err(Error::Timeout));
    }

    #[test]
    fn a_peer_is_one_member_of_a_group() {
        let (host, _segment, member, mut liar) = group();
        for token in 1..=100 {
            let (group, memory) = (member.id(), 1000 + token);
            let join = Message::Join { token, group, len: 64, memory, is_answer: false, is_published: true };
            liar.say(join.emit());
        }
        liar.until("all are answered", |liar| liar.heard.len() == 100);
        let kept = host.shared.with(|state| {
            let group = &state.groups[&member.id()];
            let memories: Vec<_> = group.lanes.keys().copied().collect();
            Ok((memories, group.members.len(), state.connectors.len()))
        });
        assert_eq!(kept, Ok((vec![1100], 1, 1)), "the last one");
    }

    #[test]
    fn a_member_that_has_not_answered_is_told_of_a_leave() {
        let (host, _segment, member, mut liar) = group();
        meet_mute(&host, member.id(), &mut liar, true);
        let joined = |liar: &Liar| {
            liar.heard.iter().find_map(|message| match message {
                Message::Join { token, is_answer: false, .. } => Some(*token),
                _ => None,
            })
        };
        liar.until("it was asked", |liar| joined(liar).is_some());
        drop(member);
        let token = joined(&liar).expect("asked");
        liar.until("it was told", |liar| liar.heard.contains(&Message::Disconnect { token }));
    }

    /// It sends nothing by itself, and its end is to be noticed.
    #[test]
    fn a_member_is_probed_as_long_as_it_is_one() {
        let (host, _segment, member, mut liar) = group();
        let (group, is_answer, is_published) = (member.id(), false, true);
        liar.say(Message::Join { token: 9, group, len: 64, memory: 5, is_answer, is_published }.emit());
        liar.until("it is probed", |liar| liar.heard.contains(&Message::Taken { token: 0 }));
        liar.say(Message::Disconnect { token: 9 }.emit());
        let probes = || host.shared.with(|state| Ok(state.links.has_probes()));
        liar.until("it is left alone", |_| probes() == Ok(false));
    }

    /// It had left when the answer to its join came.
    #[test]
    fn an_answer_to_who_has_left_is_told_of_the_leave() {
        let (host, _segment, member, mut liar) = group();
        let group = member.id() ^ 0x8000_0000;
        let (token, is_answer, is_published) = (9, true, true);
        liar.say(Message::Join { token, group, len: 64, memory: 5, is_answer, is_published }.emit());
        let none = Message::Join { token: 0, group, len: 0, memory: 0, is_answer: true, is_published: false };
        liar.until("it is told", |liar| liar.heard.contains(&none));
        // And told so, a member is forgotten.
        let (group, is_answer) = (member.id(), false);
        liar.say(Message::Join { token, group, len: 64, memory: 5, is_answer, is_published }.emit());
        let count = || host.shared.with(|state| Ok(state.groups[&group].members.len()));
        liar.until("it is a member", |_| count() == Ok(1));
        liar.say(Message::Join { token: 0, group, len: 0, memory: 0, is_answer: true, is_published: false }.emit());
        liar.until("it is none", |_| count() == Ok(0));
    }

    #[test]
    fn a_member_that_has_not_answered_is_told_of_a_segment() {
        let (host, _segment, member, mut liar) = group();
        meet_mute(&host, member.id(), &mut liar, false);
        member.prepare().and_then(|()| member.publish()).expect("room");
        liar.until("it was told", |liar| {
            let is_told = |message: &Message| matches!(message, Message::Join { is_published: true, .. });
            liar.heard.iter().any(is_told)
        });
    }

    /// Nobody answers on the other host, and another process is joining on this one.
    #[test]
    fn a_limit_holds_for_all_parts_of_a_connect() {
        let (host, _segment, _member, _liar) = group();
        let id = fastrand::u32(..);
        let _joining = claims::claim(0, Named::Joining(id)).expect("free");
        let begun = Instant::now();
        let limit = Some(Duration::from_millis(100));
        assert_eq!(host.connect_broadcast(id, limit).err(), Some(Error::Timeout));
        assert!(begun.elapsed() < PATIENCE / 2, "{:?}", begun.elapsed());
    }

    /// The child may have no threads.
    #[test]
    #[expect(unsafe_code, reason = "the process is forked")]
    fn without_threads_one_host_is_asked_after_the_other() {
        use rustix::process::{Resource, Rlimit, setrlimit};
        // SAFETY: the child takes no lock but that of the allocator, which a fork leaves usable.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let none = Rlimit { current: Some(0), maximum: Some(0) };
            let is_limited = setrlimit(Resource::Nproc, none).is_ok();
            // SAFETY: the superuser has no limit. Of this process alone.
            unsafe { libc::syscall(libc::SYS_setresuid, 65534, 65534, 65534) };
            let is_refused = std::thread::Builder::new().spawn(|| ()).is_err();
            let asked = std::panic::catch_unwind(|| ask_all(&[1, 2, 3], |place| vec![*place]));
            let is_asked = asked.is_ok_and(|asked| asked == [1, 2, 3]);
            // SAFETY: ends at once.
            unsafe { libc::_exit(i32::from(!is_limited) | i32::from(!is_refused) << 1 | i32::from(!is_asked) << 2) };
        }
        let mut status = 0;
        // SAFETY: waits for the child.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0, "limited, refused, asked: 256, 512, 1024 where one is not");
    }
}
