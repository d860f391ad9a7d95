//! A connect step by step, from its begin to its end.

use crate::errors::Error;
use crate::question::Question;
use crate::rendezvous::{Address, Asking, Listener};
use cci_ground::readable;
use cci_mem::boundary::uncancelled;
use cci_mem::descriptors;
use cci_mem::fork::{Mark, PerProcess};
use rustix::event::PollFd;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long an invited client may take to connect.
pub(crate) const INVITED_LIMIT: Duration = Duration::from_secs(10);
/// How often a wait checks whether an invited client has hung up: while it waits for the
/// connection, it sleeps on no stream.
pub(crate) const HANG_UP_PERIOD: Duration = Duration::from_millis(10);
/// The shortest sleep before the host is asked again.
const SHORTEST: Duration = Duration::from_millis(1);

/// The connect step by step of a VI, and which thread has it.
#[derive(Default)]
pub(crate) enum Steps {
    /// None has been begun.
    #[default]
    None,
    /// Any thread may go on with it.
    Ready(Box<PeerConnect>),
    /// A thread goes on with it, or sleeps for it. `is_awaited`: another thread sleeps until it is
    /// ready again.
    Running { is_awaited: bool },
    /// It has ended without a connection.
    Failed(Error),
}

pub(crate) struct PeerConnect {
    /// Which connect of the VI it is.
    pub(crate) connect: u32,
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
    Listens(PeerListener),
    Asks { question: Option<Question>, not_before: Instant },
    Connects,
}

impl PeerConnect {
    /// Whether an event of CCI may end it, which any thread may take.
    pub(crate) fn is_in_flight(&self) -> bool {
        match &self.role {
            Role::Listens(listener) => listener.holder.is_some(),
            Role::Asks { question, .. } => question.as_ref().is_some_and(Question::is_following),
            Role::Connects => true,
        }
    }

    /// For how long a sleep may last; `None`: for ever.
    pub(crate) fn left(&self) -> Option<Duration> {
        let now = Instant::now();
        let until = |at: Instant| at.saturating_duration_since(now);
        let of_role = match &self.role {
            Role::Listens(PeerListener { holder: Some(holder), .. }) => Some(holder.left(now)),
            Role::Listens(listener) => listener.clients.left(),
            Role::Asks { question: Some(question), .. } => Some(question.left()),
            Role::Asks { question: None, not_before } => Some(until(*not_before).max(SHORTEST)),
            Role::Connects => None,
        };
        self.deadline.map(until).into_iter().chain(of_role).min()
    }

    /// What is ready when it can go on that is not in flight.
    pub(crate) fn descriptors(&self) -> Vec<PollFd<'_>> {
        match &self.role {
            Role::Listens(listener) => {
                let streams = listener.clients.descriptors();
                streams.chain([listener.ended.as_fd()]).map(readable).collect()
            }
            Role::Asks { question, .. } => question.iter().flat_map(Question::descriptors).collect(),
            Role::Connects => Vec::new(),
        }
    }
}

impl Drop for PeerConnect {
    fn drop(&mut self) {
        // A poll of the program may end it, and closing a descriptor is a cancellation point.
        let role = std::mem::replace(&mut self.role, Role::Connects);
        uncancelled(|| drop(role));
    }
}

/// The side that peers ask. It goes on listening if an invited one does not connect.
pub(crate) struct PeerListener {
    pub(crate) clients: Listener,
    /// Readable once another thread has ended the connect.
    ended: Arc<OwnedFd>,
    pub(crate) holder: Option<TicketHolder>,
}

/// An invited peer, and until when its ticket is good.
pub(crate) struct TicketHolder {
    asking: Asking,
    until: Instant,
}

impl TicketHolder {
    pub(crate) fn new(asking: Asking) -> Self {
        Self { asking, until: Instant::now() + INVITED_LIMIT }
    }

    /// Whether it has hung up, or its time is over.
    pub(crate) fn is_in_vain(&self) -> bool {
        self.until <= Instant::now() || self.asking.is_gone()
    }

    /// For how long a sleep may last. One that has used its ticket outlives its time: an event ends
    /// the connect then.
    fn left(&self, now: Instant) -> Duration {
        let left = self.until.saturating_duration_since(now);
        if left.is_zero() { HANG_UP_PERIOD } else { left.min(HANG_UP_PERIOD) }
    }
}

impl PeerListener {
    /// The second part is the VI's.
    pub(crate) fn new(clients: Listener) -> Result<(Self, EndSignal), Error> {
        static HERE: PerProcess<()> = PerProcess::new();
        let (here, ()) = HERE.get(|| ()).map_err(|_| Error::Resource("no memory is left for listening to peers"))?;
        let why = "no descriptor is left for listening to peers; raise the limit (ulimit -n)";
        let ended = descriptors::eventfd(0).map_err(|_| Error::Resource(why))?;
        let ended = Arc::new(ended);
        let signal = EndSignal { ended: Some(Arc::clone(&ended)), here: *here };
        Ok((Self { clients, ended, holder: None }, signal))
    }
}

/// Wakes the thread that sleeps until a peer asks, when it is dropped: another thread has
/// disconnected or destroyed the VI.
pub(crate) struct EndSignal {
    ended: Option<Arc<OwnedFd>>,
    here: Mark,
}

impl Drop for EndSignal {
    fn drop(&mut self) {
        let ended = self.ended.take();
        // In a forked child it is the eventfd of the parent, which goes on listening.
        if let Some(ended) = ended.as_ref().filter(|_| self.here.is_here()) {
            // It is written once, so that it has room.
            let _ = rustix::io::write(ended, &1_u64.to_ne_bytes());
        }
        // As in `PeerConnect`.
        uncancelled(|| drop(ended));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rendezvous::{ask_frame, ports, write_frame};
    use cci_conformance::LIMIT;
    use std::net::{IpAddr, Ipv4Addr, TcpStream};

    /// Such a wait would not sleep at all until the end of the connect, seconds later.
    #[test]
    fn a_wait_sleeps_for_a_peer_that_has_used_its_ticket_and_is_late() {
        let discriminator = format!("{}.late", std::process::id()).into_bytes();
        let at = Address::new(Ipv4Addr::LOCALHOST, &discriminator);
        let mut clients = Listener::bind(IpAddr::from(Ipv4Addr::LOCALHOST), &discriminator).expect("a port");
        let connect = |port| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok();
        let mut streams: Vec<_> = ports(&discriminator).into_iter().filter_map(connect).collect();
        let frame = ask_frame(&at, &at, &crate::ViAttributes::default(), true);
        streams.iter_mut().for_each(|stream| write_frame(stream, &frame).expect("room"));
        let begun = Instant::now();
        let asking = loop {
            assert!(begun.elapsed() < LIMIT, "no question");
            if let Some(asking) = clients.poll() {
                break asking;
            }
        };
        let (mut listener, _signal) = PeerListener::new(clients).expect("a descriptor");
        listener.holder = Some(TicketHolder { asking, until: Instant::now() });
        let peer = PeerConnect {
            connect: 1,
            local: at.clone(),
            remote: at,
            deadline: None,
            role: Role::Listens(listener),
            is_peer: true,
            late: Error::Timeout,
        };
        assert_eq!(peer.left(), Some(HANG_UP_PERIOD));
    }
}
