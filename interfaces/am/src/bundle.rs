//! Endpoints that are polled and waited for as one.

use crate::cci_mapping::CciMapping;
use crate::endpoint::Endpoint;
use crate::engine::Turn;
use crate::errors::RequestError;
use crate::mapping::Mapping;
use cci_slab::Slab;
use std::fmt;
use std::time::{Duration, Instant};

/// The place of an endpoint in a [`Bundle`]. It is stale once the endpoint has been taken out, and
/// never names a later one.
///
/// # Example
///
/// ```
/// fn same(a: cci_am::Member, b: cci_am::Member) -> bool {
///     a == b
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Member(u64);

/// A set of endpoints, which one poll takes from, and one wait sleeps for. It owns them; each may
/// be taken out again. Like an endpoint, it is used by one thread at a time.
///
/// A request that waits for a credit polls its own endpoint only. A program whose endpoints send
/// requests to each other from one thread uses the immediate forms ([`Endpoint::now`]) and polls
/// the bundle.
///
/// # Example
///
/// ```
/// use cci_am::{Bundle, Endpoint, Handlers, Options, Request, TAG_ALL};
///
/// fn count(requests: &mut u32, _: Request<'_>) {
///     *requests += 1;
/// }
///
/// let device = cci::Context::new()?.default_device()?.clone();
/// let open = || Endpoint::open(&device, &Options::new(), Handlers::new().request(1, count), 0);
/// let mut bundle = Bundle::new();
/// let (server, mut client) = (open()?, open()?);
/// let peer = client.map(server.name(), TAG_ALL)?;
/// let (server, client) = (bundle.add(server), bundle.add(client));
/// while bundle.get(client).expect("added").now().request(peer, 1, &[]).is_err() {
///     bundle.wait(None)?;
/// }
/// while *bundle.get(server).expect("added").state() == 0 {
///     bundle.wait(None)?;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Bundle<S, M: Mapping = CciMapping> {
    endpoints: Slab<Box<Endpoint<S, M>>, u64, 32, 32>,
}

impl<S, M: Mapping> Bundle<S, M> {
    /// A bundle without endpoints.
    #[must_use]
    pub const fn new() -> Self {
        Self { endpoints: Slab::new(0, u32::MAX) }
    }

    /// Puts an endpoint in.
    pub fn add(&mut self, endpoint: Endpoint<S, M>) -> Member {
        Member(self.endpoints.insert_with(|_| Box::new(endpoint)))
    }

    /// Takes an endpoint out, with all that it has open.
    pub fn remove(&mut self, member: Member) -> Option<Endpoint<S, M>> {
        self.endpoints.remove(member.0).map(|endpoint| *endpoint)
    }

    /// Returns an endpoint of the bundle.
    #[inline]
    pub fn get(&mut self, member: Member) -> Option<&mut Endpoint<S, M>> {
        self.endpoints.get_mut(member.0).map(|endpoint| &mut **endpoint)
    }

    /// Returns the endpoints of the bundle.
    pub fn members(&self) -> impl Iterator<Item = Member> + '_ {
        self.endpoints.iter().map(|(key, _)| Member(key))
    }

    /// Takes what has come at each endpoint and runs its handlers; returns how many messages and
    /// other events there were. Never waits.
    ///
    /// # Errors
    ///
    /// The endpoints cannot be used here: they were inherited by a fork.
    #[inline]
    pub fn poll(&mut self) -> Result<usize, RequestError> {
        let mut found = 0;
        for endpoint in self.endpoints.values_mut() {
            found += endpoint.poll()?;
        }
        Ok(found)
    }

    /// As [`Bundle::poll`], and sleeps until something has come at one of the endpoints, at most
    /// for `limit`. Returns 0 when the time is over, when the waker of an endpoint
    /// ([`Endpoint::waker`]) has ended the wait, and at once without endpoints.
    ///
    /// # Errors
    ///
    /// As [`Bundle::poll`].
    pub fn wait(&mut self, limit: Option<Duration>) -> Result<usize, RequestError> {
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        loop {
            let found = self.poll()?;
            if found > 0 || self.members().next().is_none() || self.take_wakes() {
                return Ok(found);
            }
            let left = deadline.map_or(Duration::MAX, |deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Ok(0);
            }
            let found = self.sleep(left)?;
            if found > 0 {
                return Ok(found);
            }
        }
    }

    /// Takes the wake-ups of all endpoints: whether there was any.
    fn take_wakes(&mut self) -> bool {
        self.endpoints.values_mut().map(|endpoint| endpoint.turn().mapping.take_wake()).filter(|woken| *woken).count()
            > 0
    }

    /// Sleeps, and returns what was found. Each endpoint may have something to do before `limit`.
    fn sleep(&mut self, limit: Duration) -> Result<usize, RequestError> {
        let mut turns: Vec<Turn<'_, S, M>> = self.endpoints.values_mut().map(|endpoint| endpoint.turn()).collect();
        let limit = turns.iter_mut().fold(limit, |limit, turn| turn.before_sleep(limit));
        let mappings: Vec<&M> = turns.iter().map(|turn| turn.mapping).collect();
        let mut from = 0;
        let take = |at: usize, incoming: crate::mapping::Incoming<'_, M::Channel, M::Asking<'_>>| {
            from = at;
            turns[at].take(incoming);
        };
        let found = M::wait_any(&mappings, limit, take).map_err(|_| RequestError::Unusable)?;
        for (at, turn) in turns.iter_mut().enumerate() {
            turn.after_sleep(if at == from { found } else { 0 });
        }
        Ok(found)
    }
}

impl<S, M: Mapping> Default for Bundle<S, M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S, M: Mapping> fmt::Debug for Bundle<S, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.endpoints.iter().map(|(_, endpoint)| endpoint)).finish()
    }
}
