//! A connect step by step, from its begin to its end.

use crate::errors::Error;
use crate::question::Question;
use crate::rendezvous::{Address, Asking, Listener};
use cci_ground::readable;
use cci_mem::descriptors;
use rustix::event::PollFd;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long an invited client may take to connect.
pub(crate) const INVITED_LIMIT: Duration = Duration::from_secs(10);
/// Between two looks whether an invited client has hung up: the wait for its connection sleeps on
/// no stream.
pub(crate) const HANG_UP_LOOK: Duration = Duration::from_millis(10);
/// The shortest sleep before the host is asked again.
const SHORTEST: Duration = Duration::from_millis(1);

pub(crate) struct PeerConnect {
    pub(crate) local: Address,
    pub(crate) remote: Address,
    pub(crate) deadline: Option<Instant>,
    pub(crate) role: Role,
    /// In the peer-to-peer model; otherwise a host where nobody listens ends it.
    pub(crate) is_peer: bool,
    /// Why it ends once the time is over.
    pub(crate) late: Error,
}

pub(crate) enum Role {
    Listens(Listening),
    Asks { question: Option<Question>, not_before: Instant },
    Connects,
}

impl PeerConnect {
    /// Whether an event of CCI may end it, which any thread may take.
    pub(crate) fn is_in_flight(&self) -> bool {
        match &self.role {
            Role::Listens(listening) => listening.invited.is_some(),
            Role::Asks { question, .. } => question.as_ref().is_some_and(Question::is_following),
            Role::Connects => true,
        }
    }

    /// For how long a sleep may last; `None`: for ever.
    pub(crate) fn left(&self) -> Option<Duration> {
        let now = Instant::now();
        let until = |at: Instant| at.saturating_duration_since(now);
        let of_role = match &self.role {
            Role::Listens(Listening { invited: Some(invited), .. }) => Some(until(invited.until).min(HANG_UP_LOOK)),
            Role::Listens(listening) => listening.listener.left(),
            Role::Asks { question: Some(question), .. } => Some(question.left()),
            Role::Asks { question: None, not_before } => Some(until(*not_before).max(SHORTEST)),
            Role::Connects => None,
        };
        self.deadline.map(until).into_iter().chain(of_role).min()
    }

    /// What is ready when it can go on that is not in flight.
    pub(crate) fn descriptors(&self) -> Vec<PollFd<'_>> {
        match &self.role {
            Role::Listens(listening) => {
                let streams = listening.listener.descriptors();
                streams.chain([listening.ended.as_fd()]).map(readable).collect()
            }
            Role::Asks { question, .. } => question.iter().flat_map(Question::descriptors).collect(),
            Role::Connects => Vec::new(),
        }
    }
}

/// The side that peers ask. It goes on listening if an invited one does not connect.
pub(crate) struct Listening {
    pub(crate) listener: Listener,
    /// Readable once another thread has ended the connect.
    ended: Arc<OwnedFd>,
    pub(crate) invited: Option<Invited>,
}

/// Who has a ticket, and until when it is good.
pub(crate) struct Invited {
    pub(crate) asking: Asking,
    until: Instant,
}

impl Invited {
    pub(crate) fn new(asking: Asking) -> Self {
        Self { asking, until: Instant::now() + INVITED_LIMIT }
    }

    /// Whether the one that is invited has hung up, or its time is over.
    pub(crate) fn is_in_vain(&self) -> bool {
        self.until <= Instant::now() || self.asking.is_gone()
    }
}

impl Listening {
    /// The second part is the VI's.
    pub(crate) fn new(listener: Listener) -> Result<(Self, EndSignal), Error> {
        let why = "no descriptor is left for listening to peers; raise the limit (ulimit -n)";
        let ended = descriptors::eventfd(0).map_err(|_| Error::Resource(why))?;
        let ended = Arc::new(ended);
        let signal = EndSignal(Arc::clone(&ended));
        Ok((Self { listener, ended, invited: None }, signal))
    }
}

/// Wakes the thread that sleeps until a peer asks, when it is dropped: another thread has
/// disconnected or destroyed the VI.
pub(crate) struct EndSignal(Arc<OwnedFd>);

impl Drop for EndSignal {
    fn drop(&mut self) {
        // It is written once, so that it has room.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }
}
