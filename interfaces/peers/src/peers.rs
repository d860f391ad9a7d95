//! The peers of an endpoint, and the links to them.

use crate::change::{Change, Counts, Deferred, Peer};
use crate::directory::{Directory, Found};
use crate::entry::{Dial, Entry, Way};
use crate::errors::{Lost, Refused, Unreached, Why};
use crate::hello::{Hello, Welcome};
use crate::name::Name;
use crate::options::Options;
use cci::{Connect, ConnectError, Connection, EndpointFor, OpenError};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::time::{Duration, Instant};

/// The bit that marks contexts of links: those of an interface's own operations do not have it.
pub(crate) const LINK: u64 = 1 << 63;
/// The bit, beside it, of accepts.
const ACCEPT: u64 = 1 << 62;
/// How long one attempt waits for an answer.
const ATTEMPT: Duration = Duration::from_secs(5);

/// The peers of an endpoint. It has no endpoint, thread or clock of its own: the interface gives it
/// each event ([`Peers::handle_event`]) and the time ([`Peers::handle_timeout`]), and takes what
/// has become of links ([`Peers::poll_change`]).
///
/// `W` is an operation that waits for a link. The endpoint has
/// [`disconnect_events`](cci::EndpointOptions::disconnect_events). Contexts with the uppermost bit
/// are for links: an interface's own contexts do not have it.
///
/// # Example
///
/// ```
/// use cci_peers::{Name, Options, Peers, Table};
///
/// let peers: Peers<()> = Peers::new(Name::Rank(3), Box::new(Table::new()), &Options::new())?;
/// assert_eq!(peers.own_name(), &Name::Rank(3));
/// # Ok::<(), cci::OpenError>(())
/// ```
pub struct Peers<W> {
    pub(crate) own: Name,
    /// Which process this is: random.
    pub(crate) process: u64,
    pub(crate) directory: Box<dyn Directory + Send>,
    pub(crate) options: Options,
    pub(crate) entries: Vec<Entry<W>>,
    by_name: BTreeMap<Name, u32>,
    timers: BTreeSet<(Instant, u32)>,
    pub(crate) changes: VecDeque<Change<W>>,
    pub(crate) counts: Counts,
    /// The number of the last accept.
    accepts: u32,
    pub(crate) is_closed: bool,
}

impl<W> fmt::Debug for Peers<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Peers({}, {} peers)", self.own, self.entries.len())
    }
}

impl<W> Peers<W> {
    /// Of a side with this name, which finds others by the directory.
    ///
    /// # Errors
    ///
    /// The system has no random numbers, or the name is too long.
    pub fn new(own: Name, directory: Box<dyn Directory + Send>, options: &Options) -> Result<Self, OpenError> {
        if !own.is_short() {
            return Err(OpenError::new(cci::Status::Inval, Why::TooLong.to_string()));
        }
        let mut process = [0; 8];
        // So few bytes come whole.
        rustix::rand::getrandom(&mut process, rustix::rand::GetRandomFlags::empty())
            .map_err(|why| OpenError::new(cci::Status::Error, format!("no random numbers: {why}")))?;
        Ok(Self {
            own,
            process: u64::from_ne_bytes(process),
            directory,
            options: options.clone(),
            entries: Vec::new(),
            by_name: BTreeMap::new(),
            timers: BTreeSet::new(),
            changes: VecDeque::new(),
            counts: Counts::default(),
            accepts: 0,
            is_closed: false,
        })
    }

    /// This side's name.
    #[must_use]
    pub fn own_name(&self) -> &Name {
        &self.own
    }

    /// The peer of this name. Nothing is sent.
    ///
    /// # Errors
    ///
    /// It is this side's own name, it is too long, or there are too many peers.
    pub fn peer(&mut self, name: &Name) -> Result<Peer, Why> {
        if *name == self.own {
            return Err(Why::Own);
        }
        if let Some(index) = self.by_name.get(name) {
            return Ok(Peer(*index));
        }
        if !name.is_short() {
            return Err(Why::TooLong);
        }
        let index = u32::try_from(self.entries.len()).ok().filter(|count| *count < self.options.most_peers);
        let index = index.ok_or(Why::TooMany)?;
        self.entries.push(Entry::new(name.clone()));
        self.by_name.insert(name.clone(), index);
        Ok(Peer(index))
    }

    /// The name of a peer.
    #[must_use]
    pub fn name(&self, peer: Peer) -> Option<&Name> {
        self.entries.get(peer.0 as usize).map(|entry| &entry.name)
    }

    /// The link to a peer, if it is up.
    #[inline]
    #[must_use]
    pub fn connection(&self, peer: Peer) -> Option<Connection> {
        match self.entries.get(peer.0 as usize)?.way {
            Way::Up { connection, .. } => Some(connection),
            _ => None,
        }
    }

    /// The peer whose link this connection is.
    #[inline]
    #[must_use]
    pub fn peer_of(&self, connection: Connection) -> Option<Peer> {
        let peer = peer_of_context(connection.context()?)?;
        (self.connection(peer) == Some(connection)).then_some(peer)
    }

    /// What has happened so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Gives an operation back at once if the link is up; otherwise it waits, and this side
    /// connects.
    ///
    /// # Errors
    ///
    /// Too many wait for this peer, or this side has closed.
    ///
    /// # Panics
    ///
    /// The peer is of another `Peers`.
    pub fn defer<T>(
        &mut self,
        endpoint: &EndpointFor<T>,
        peer: Peer,
        operation: W,
        now: Instant,
    ) -> Result<Deferred<W>, Refused<W>> {
        if let Some(connection) = self.connection(peer) {
            return Ok(Deferred::Now(connection, operation));
        }
        if self.is_closed {
            return Err(Refused { operation, why: Why::Closed });
        }
        let entry = &mut self.entries[peer.0 as usize];
        if entry.waiting.len() >= self.options.most_waiting {
            return Err(Refused { operation, why: Why::Full });
        }
        entry.waiting.push_back(operation);
        self.want(endpoint, peer, now);
        Ok(Deferred::Waits)
    }

    /// Begins to connect to a peer, though nothing waits for it.
    ///
    /// # Panics
    ///
    /// The peer is of another `Peers`.
    pub fn open<T>(&mut self, endpoint: &EndpointFor<T>, peer: Peer, now: Instant) {
        if !self.is_closed && self.connection(peer).is_none() {
            self.want(endpoint, peer, now);
        }
    }

    fn want<T>(&mut self, endpoint: &EndpointFor<T>, peer: Peer, now: Instant) {
        let entry = &mut self.entries[peer.0 as usize];
        if entry.wanted.is_some() {
            return;
        }
        entry.wanted = Some(now);
        if entry.way == Way::Idle {
            self.dial(endpoint, peer, now);
        }
        self.set_timer(peer);
    }

    /// When what waits for a peer is given back.
    fn deadline(&self, peer: Peer) -> Option<Instant> {
        let entry = &self.entries[peer.0 as usize];
        let limit = if entry.process.is_some() { self.options.return_limit } else { self.options.limit };
        let over = entry.wanted?.checked_add(limit);
        let refused = entry.refused.and_then(|since| since.checked_add(self.options.refusal_limit));
        // A limit that the clock does not reach is none; a refusal has one of its own.
        over.into_iter().chain(refused).min()
    }

    /// Makes an attempt to connect.
    pub(crate) fn dial<T>(&mut self, endpoint: &EndpointFor<T>, peer: Peer, now: Instant) {
        let deadline = self.deadline(peer);
        let entry = &mut self.entries[peer.0 as usize];
        (entry.way, entry.next_at) = (Way::Opening { dial: Dial::None, accepting: None }, None);
        let uri = match self.directory.find(&entry.name) {
            Found::Uri(uri) => uri,
            Found::NotYet => return self.try_again(peer, "its URI is not known yet".into(), now),
            Found::Unknown => {
                let name = entry.name.clone();
                return self.give_up(endpoint, peer, Unreached::Unknown(name));
            }
        };
        entry.serial = entry.serial.wrapping_add(1);
        let hello = Hello {
            process: self.process,
            serial: entry.serial,
            links: entry.links,
            target: entry.name.clone(),
            own: self.own.clone(),
        };
        let left = deadline.map_or(ATTEMPT, |deadline| deadline.saturating_duration_since(now).min(ATTEMPT));
        let payload = hello.emit();
        let connect = Connect::to(&uri).payload(&payload).context(context(peer, entry.serial)).timeout(left);
        self.counts.attempts += 1;
        match endpoint.connect(&connect) {
            Ok(()) => self.entries[peer.0 as usize].way = Way::Opening { dial: Dial::Asked, accepting: None },
            Err(why @ (ConnectError::NoBuffers | ConnectError::NoMemory | ConnectError::NoThread)) => {
                self.try_again(peer, why.to_string(), now);
            }
            Err(why) => {
                let name = self.entries[peer.0 as usize].name.clone();
                self.give_up(endpoint, peer, Unreached::Refused { name, why });
            }
        }
    }

    /// An attempt has failed: there is another one after a pause, if anybody wants it.
    pub(crate) fn try_again(&mut self, peer: Peer, last: String, now: Instant) {
        let entry = &mut self.entries[peer.0 as usize];
        entry.last = last;
        if entry.wanted.is_none() {
            entry.way = Way::Idle;
            return;
        }
        entry.way = Way::Opening { dial: Dial::None, accepting: None };
        entry.next_at = Some(now + entry.pause());
        self.set_timer(peer);
    }

    /// The time is over.
    fn fail_for_want_of_time<T>(&mut self, endpoint: &EndpointFor<T>, peer: Peer, now: Instant) {
        let entry = &mut self.entries[peer.0 as usize];
        let (name, last) = (entry.name.clone(), std::mem::take(&mut entry.last));
        let last = if last.is_empty() { "it does not answer".into() } else { last };
        let waited = entry.wanted.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        let why = if entry.process.is_some() {
            Unreached::Went { name, last }
        } else {
            Unreached::NeverCame { name, waited, last }
        };
        self.give_up(endpoint, peer, why);
    }

    /// Ends the wish for a link, and what this side has done for it.
    fn give_up<T>(&mut self, endpoint: &EndpointFor<T>, peer: Peer, why: Unreached) {
        if let Way::Opening { dial: Dial::Open(connection), .. } = self.entries[peer.0 as usize].way {
            // Refused where it is closed already.
            let _ = endpoint.disconnect(connection);
        }
        let entry = &mut self.entries[peer.0 as usize];
        entry.settle();
        // The peer's own attempt goes on.
        entry.way = match entry.way {
            Way::Opening { accepting: accepting @ Some(_), .. } => Way::Opening { dial: Dial::None, accepting },
            _ => Way::Idle,
        };
        let waiting = std::mem::take(&mut entry.waiting);
        self.changes.push_back(Change::Failed { peer, why, waiting });
        self.set_timer(peer);
    }

    /// The context of a new accept.
    pub(crate) fn accept_context(&mut self, peer: Peer) -> u64 {
        self.accepts = self.accepts.wrapping_add(1);
        ACCEPT | context(peer, self.accepts)
    }

    /// The link is up. `with`: the peer's process, and the number of the link. `serial`: of the
    /// peer's attempt, if that has made it.
    pub(crate) fn on_up(&mut self, peer: Peer, connection: Connection, with: Welcome, serial: Option<u32>) {
        let entry = &mut self.entries[peer.0 as usize];
        entry.way = Way::Up { connection, serial };
        entry.settle();
        let is_new = entry.process.replace(with.process) != Some(with.process);
        entry.links = with.links;
        let waiting = std::mem::take(&mut entry.waiting);
        self.changes.push_back(Change::Up { peer, connection, is_new, waiting });
        self.set_timer(peer);
    }

    /// The link that was up is no more.
    pub(crate) fn on_down(&mut self, peer: Peer, why: Lost) {
        self.entries[peer.0 as usize].way = Way::Idle;
        self.changes.push_back(Change::Down { peer, why });
    }

    /// What has become of a link, oldest first.
    pub fn poll_change(&mut self) -> Option<Change<W>> {
        self.changes.pop_front()
    }

    /// Whether [`Peers::poll_change`] would return a change.
    #[inline]
    #[must_use]
    pub fn has_changes(&self) -> bool {
        !self.changes.is_empty()
    }

    /// Whether [`Peers::handle_timeout`] is to be called some time.
    #[inline]
    #[must_use]
    pub fn has_timeout(&self) -> bool {
        !self.timers.is_empty()
    }

    /// When [`Peers::handle_timeout`] is to be called next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Makes the attempts that are due, and gives back what has waited too long. To be called when
    /// the time of [`Peers::poll_timeout`] has come; earlier it does nothing.
    pub fn handle_timeout<T>(&mut self, endpoint: &EndpointFor<T>, now: Instant) {
        while let Some((at, index)) = self.timers.first().copied().filter(|(at, _)| *at <= now) {
            let peer = Peer(index);
            self.timers.remove(&(at, index));
            self.entries[index as usize].timer = None;
            if self.deadline(peer).is_some_and(|deadline| deadline <= now) {
                self.fail_for_want_of_time(endpoint, peer, now);
                continue;
            }
            if self.entries[index as usize].next_at.is_some_and(|next| next <= now) {
                self.dial(endpoint, peer, now);
            }
            self.set_timer(peer);
        }
    }

    /// Sets the timer of a peer to what is due next.
    pub(crate) fn set_timer(&mut self, peer: Peer) {
        let deadline = self.deadline(peer);
        let entry = &mut self.entries[peer.0 as usize];
        let at = deadline.into_iter().chain(entry.next_at).min();
        if entry.timer == at {
            return;
        }
        if let Some(before) = std::mem::replace(&mut entry.timer, at) {
            self.timers.remove(&(before, peer.0));
        }
        self.timers.extend(at.map(|at| (at, peer.0)));
    }

    /// Ends the link to a peer, and the wish for one: what waits is given back. The peer may
    /// connect again.
    pub fn hang_up<T>(&mut self, endpoint: &EndpointFor<T>, peer: Peer) {
        let Some(entry) = self.entries.get(peer.0 as usize) else { return };
        if let Way::Up { connection, .. } = entry.way {
            // Refused where it is closed already.
            let _ = endpoint.disconnect(connection);
            self.entries[peer.0 as usize].way = Way::Idle;
        } else if entry.wanted.is_some() {
            self.give_up(endpoint, peer, Unreached::Closed);
        }
    }

    /// Ends all links, gives back what waits, and rejects all requests from now on.
    pub fn close<T>(&mut self, endpoint: &EndpointFor<T>) {
        self.is_closed = true;
        for index in 0..u32::try_from(self.entries.len()).unwrap_or(u32::MAX) {
            self.hang_up(endpoint, Peer(index));
        }
    }
}

/// The context of a link's attempt, and of its connection then.
pub(crate) fn context(peer: Peer, number: u32) -> u64 {
    LINK | (u64::from(number) << 32 & !(LINK | ACCEPT)) | u64::from(peer.0)
}

/// Whether the context is that of an accept.
pub(crate) fn is_accept(context: u64) -> bool {
    context & ACCEPT != 0
}

/// The peer of a link's context.
#[inline]
pub(crate) fn peer_of_context(context: u64) -> Option<Peer> {
    #[expect(clippy::cast_possible_truncation, reason = "the lower half is the peer")]
    (context & LINK != 0).then_some(Peer(context as u32))
}
