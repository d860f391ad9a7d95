//! Questions of other hosts that wait for owners on this one. All wait at the same time, so that an
//! owner that is stopped delays no answer about others.

use crate::claims::{AskedMembers, AskedOwner, Named};
use crate::errors::Error;
use crate::question::{Answer, LEN, Question};
use cci_admission::{Admission, Arrival, Limits, Origin};
use cci_ground::{readable, sleep_until_ready};
use rustix::fd::{AsFd, OwnedFd};
use std::collections::VecDeque;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// How long an owner is waited for after the last question about it.
const PATIENCE: Duration = Duration::from_millis(200);
/// How long members of a group are waited for: an answer comes before the question is asked again.
const GROUP_PATIENCE: Duration = Duration::from_millis(25);
/// Lookups at a time, and who waits for one. What is more is asked again.
const MOST: usize = 64;
const MOST_ASKING: usize = 64;
/// Questions that are taken before answers are looked for.
const BURST: usize = 64;

enum Asked {
    Owner(AskedOwner),
    Members(AskedMembers),
}

/// Lookups by the address that asked first: those of one address leave places to others. Bytes need
/// no count, and each lookup has a time of its own.
const PLACES: Limits = Limits { places: MOST, patience: PATIENCE, bytes: usize::MAX };

/// A name that is looked up, for all who ask for it.
struct Lookup {
    number: u64,
    node: u32,
    what: Named,
    asked: Asked,
    /// The address that asked first.
    origin: Origin,
    until: Instant,
    /// The cookies of questions, and where they came from. The oldest have been asked again.
    asking: VecDeque<(u64, SocketAddr)>,
}

impl Lookup {
    /// The answer, once there is one. `Err`: there will be none.
    fn advance(&mut self, now: Instant) -> Result<Option<Answer>, ()> {
        let is_late = now >= self.until;
        match &mut self.asked {
            Asked::Owner(asked) => match asked.take() {
                Err(Error::Timeout) if is_late => Err(()),
                Err(Error::Timeout) => Ok(None),
                found => Answer::of_owner(found).map(Some).ok_or(()),
            },
            Asked::Members(asked) => {
                asked.take();
                if !is_late && !asked.has_first() {
                    return Ok(None);
                }
                let asked = std::mem::replace(asked, AskedMembers::none());
                Ok(Some(Answer::of_members(&asked.end())))
            }
        }
    }
}

/// All lookups.
struct Lookups {
    all: Vec<Lookup>,
    admission: Admission<u64>,
    last: u64,
    begun: Instant,
}

impl Lookups {
    fn new() -> Self {
        Self { all: Vec::new(), admission: Admission::new(PLACES), last: 0, begun: Instant::now() }
    }

    /// Takes a question. The answer, if there is one at once.
    fn ask(&mut self, question: Question, from: SocketAddr, now: Instant) -> Option<Answer> {
        let Question { cookie, node, what } = question;
        let Some(what) = what else { return Some(Answer::HERE) };
        let is_group = matches!(what, Named::Member(..));
        let equal = |lookup: &&mut Lookup| lookup.what == what && (is_group || lookup.node == node);
        if let Some(lookup) = self.all.iter_mut().find(equal) {
            if lookup.asking.len() >= MOST_ASKING {
                lookup.asking.pop_front();
            }
            lookup.asking.push_back((cookie, from));
            if !is_group {
                // So who asks again and again takes one place in the backlog of a stopped owner.
                lookup.until = now + PATIENCE;
            }
            return None;
        }
        self.last += 1;
        let number = self.last;
        let (age, origin) = (now.saturating_duration_since(self.begun), Origin::of(from.ip()));
        let other = match self.admission.handle_arrival(age, number, origin) {
            Arrival::Admitted => None,
            Arrival::Replaces(other) => Some(other),
            Arrival::Refused => return None,
        };
        match begin(node, what, now) {
            Ok((asked, patience)) => {
                // Who waits for it asks again.
                self.all.retain(|lookup| Some(lookup.number) != other);
                let asking = VecDeque::from([(cookie, from)]);
                self.all.push(Lookup { number, node, what, asked, origin, until: now + patience, asking });
                None
            }
            Err(at_once) => {
                self.admission.remove(&number);
                if let Some(lookup) = self.all.iter().find(|lookup| Some(lookup.number) == other) {
                    // It has its place back, since none was needed.
                    let _ = self.admission.handle_arrival(age, lookup.number, lookup.origin);
                }
                at_once
            }
        }
    }

    /// Answers what can be answered, and ends what has waited long enough.
    fn advance(&mut self, now: Instant, mut send: impl FnMut(&Answer, (u64, SocketAddr))) {
        let admission = &mut self.admission;
        self.all.retain_mut(|lookup| {
            match lookup.advance(now) {
                Ok(None) => return true,
                Ok(Some(answer)) => lookup.asking.drain(..).for_each(|asking| send(&answer, asking)),
                Err(()) => {}
            }
            admission.remove(&lookup.number);
            false
        });
    }

    fn sockets(&self) -> impl Iterator<Item = &OwnedFd> {
        self.all.iter().flat_map(|lookup| -> Box<dyn Iterator<Item = &OwnedFd> + '_> {
            match &lookup.asked {
                Asked::Owner(asked) => Box::new(std::iter::once(&asked.socket)),
                Asked::Members(asked) => Box::new(asked.waiting()),
            }
        })
    }
}

/// Begins to ask for a name, and for how long. `Err`: the answer, if there is one, is there at
/// once.
fn begin(node: u32, what: Named, now: Instant) -> Result<(Asked, Duration), Option<Answer>> {
    match what {
        Named::Member(group, place) => {
            let asked = AskedMembers::begin(group, place).map_err(|_| None)?;
            // Nobody is there to wait for.
            if asked.waiting().next().is_none() {
                return Err(Some(Answer::of_members(&asked.end())));
            }
            Ok((Asked::Members(asked), GROUP_PATIENCE))
        }
        what => match AskedOwner::begin(node, what, &now.into()) {
            Ok(Some(asked)) => Ok((Asked::Owner(asked), PATIENCE)),
            Ok(None) => Err(Answer::of_owner(Ok(None))),
            Err(why) => Err(Answer::of_owner(Err(why))),
        },
    }
}

/// Answers questions until `stop` is ready.
pub(crate) fn serve(socket: &UdpSocket, stop: &OwnedFd) {
    let mut lookups = Lookups::new();
    let mut bytes = [0; LEN + 1];
    loop {
        let left = lookups.all.iter().map(|lookup| lookup.until.saturating_duration_since(Instant::now())).min();
        let mut descriptors = vec![readable(socket.as_fd()), readable(stop.as_fd())];
        descriptors.extend(lookups.sockets().map(|socket| readable(socket.as_fd())));
        sleep_until_ready(&mut descriptors, left);
        if !descriptors[1].revents().is_empty() {
            return;
        }
        let now = Instant::now();
        let send = |answer: &Answer, (cookie, to): (u64, SocketAddr)| {
            if let Some(bytes) = answer.emit(cookie) {
                // Who gets none asks again.
                let _ = socket.send_to(&bytes, to);
            }
        };
        // What is over leaves its place to what comes.
        lookups.advance(now, send);
        for _ in 0..BURST {
            let Ok((len, from)) = socket.recv_from(&mut bytes) else { break };
            let Some(question) = Question::parse(&bytes[..len]) else { continue };
            if let Some(answer) = lookups.ask(question, from, now) {
                send(&answer, (question.cookie, from));
            }
        }
        lookups.advance(now, send);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::{self, Limit, Owner};
    use crate::names::{Names, find};
    use crate::nodes::Place;
    use cci_conformance::LIMIT;
    use cci_mem::sync::{AtomicBool, Ordering};

    /// One owner is stopped, and many ask for it; the other one answers.
    #[test]
    fn a_stopped_owner_delays_no_answer_about_others() {
        let port = UdpSocket::bind("[::]:0").and_then(|socket| socket.local_addr()).expect("a port").port();
        let place = Place { host: "127.0.0.1".to_owned(), port, is_here: false };
        let _names = Names::serve(port).expect("a port");
        let node = 0x7200_0000 | std::process::id();
        let stopped = claims::claim(node, Named::Segment(1)).expect("free");
        let claim = claims::claim(node, Named::Segment(2)).expect("free");
        let owner = Owner { number: 7, uri: "x://y".into() };
        let is_answered = AtomicBool::new(false);
        // Publishes nothing.
        let is_over = || is_answered.load(Ordering::Relaxed);
        let ask = |id, limit: Limit<'_>| find(&place, node, Named::Segment(id), &limit);
        let deadline = || Instant::now().checked_add(LIMIT);
        let ask_mute = || ask(1, Limit { deadline: deadline(), is_over: Some(&is_over) });
        let ask_other = || ask(2, Limit::from(Instant::now() + LIMIT / 2));
        std::thread::scope(|scope| {
            let mute: Vec<_> = (0..32).map(|_| scope.spawn(ask_mute)).collect();
            // Each of them has asked by now, and asks again until the other one is answered.
            while !poll_accepts(&stopped) {}
            let asking = scope.spawn(ask_other);
            while !asking.is_finished() {
                let _ = claims::introduce(&claim, &owner.emit());
                std::thread::yield_now();
            }
            is_answered.store(true, Ordering::Relaxed);
            assert_eq!(asking.join().expect("no panic"), Ok(Some(owner.clone())));
            assert!(mute.into_iter().all(|one| one.join().expect("no panic") == Err(Error::Cancelled)));
        });
        let places = std::iter::from_fn(|| rustix::net::accept(&stopped).ok()).count();
        assert_eq!(places, 1, "places in the backlog, for equal questions");
    }

    /// One address asks for as many groups as there are places; none of their members answers.
    #[test]
    fn the_questions_of_one_address_leave_places_to_others() {
        let (mut lookups, now) = (Lookups::new(), Instant::now());
        let [flood, honest]: [SocketAddr; 2] = [([192, 0, 2, 1], 9).into(), ([192, 0, 2, 2], 9).into()];
        let question = |what| Question { cookie: 1, node: 0x7300_0000 | std::process::id(), what: Some(what) };
        let first = fastrand::u32(..1 << 30);
        let nobody = lookups.ask(question(Named::Member(first, 0)), flood, now);
        assert!(nobody.is_some() && lookups.all.is_empty(), "a group that nobody has is answered at once");
        let groups = first..=first + MOST as u32;
        let _mute: Vec<_> =
            groups.clone().map(|group| claims::claim(0, Named::Member(group, 0)).expect("free")).collect();
        for group in groups {
            lookups.ask(question(Named::Member(group, 0)), flood, now);
        }
        assert_eq!(lookups.all.len(), MOST, "one question too many");
        let stopped = claims::claim(0x7300_0000 | std::process::id(), Named::Segment(1)).expect("free");
        assert!(lookups.ask(question(Named::Segment(1)), honest, now).is_none());
        assert!(poll_accepts(&stopped) && lookups.all.iter().any(|lookup| lookup.what == Named::Segment(1)));
        assert_eq!(lookups.all.len(), MOST, "one of the other address made room");
        lookups.advance(now + LIMIT, |_, _| {});
        assert!(lookups.all.is_empty() && lookups.admission.is_empty());
    }

    #[test]
    fn a_question_that_is_answered_at_once_takes_no_place_from_one_that_waits() {
        let (mut lookups, now) = (Lookups::new(), Instant::now());
        let [flood, other]: [SocketAddr; 2] = [([192, 0, 2, 1], 9).into(), ([192, 0, 2, 2], 9).into()];
        let question = |what| Question { cookie: 1, node: 0x7400_0000 | std::process::id(), what: Some(what) };
        let first = fastrand::u32(1 << 30..1 << 31);
        let groups = first..first + MOST as u32;
        let _mute: Vec<_> =
            groups.clone().map(|group| claims::claim(0, Named::Member(group, 0)).expect("free")).collect();
        for group in groups.clone() {
            assert!(lookups.ask(question(Named::Member(group, 0)), flood, now).is_none(), "it waits");
        }
        for nobody in 0..4 {
            let answer = lookups.ask(question(Named::Member(first + MOST as u32 + nobody, 0)), other, now);
            assert!(answer.is_some(), "a group that nobody has");
        }
        let waiting: Vec<_> = lookups.all.iter().map(|lookup| lookup.what).collect();
        assert_eq!(waiting, groups.map(|group| Named::Member(group, 0)).collect::<Vec<_>>());
        // Each has its place, which a question that waits may still take.
        let more = claims::claim(0, Named::Member(first - 1, 0)).expect("free");
        assert!(lookups.ask(question(Named::Member(first - 1, 0)), other, now).is_none());
        assert!(poll_accepts(&more) && lookups.all.len() == MOST, "{} lookups", lookups.all.len());
    }

    /// Whether somebody waits for the owner.
    fn poll_accepts(claim: &OwnedFd) -> bool {
        sleep_until_ready(&mut [readable(claim.as_fd())], Some(Duration::from_millis(10)))
    }
}
