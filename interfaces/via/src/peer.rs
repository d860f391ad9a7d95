//! Connecting step by step: in the peer-to-peer model, where both sides ask and the addresses tell
//! who listens; and by client and server, for programs that do not wait.

use crate::attributes::ViAttributes;
use crate::connect::{DISCONNECTED, agree};
use crate::engine::{Core, NO_VI};
use crate::errors::Error;
use crate::pending::{EndSignal, PeerConnect, PeerListener, Role, Steps, TicketHolder};
use crate::question::{NO_DESCRIPTOR, Question};
use crate::rendezvous::{Address, Answer, Asking};
use crate::state::ViState;
use crate::task::Token;
use cci_ground::Drive;
use std::time::{Duration, Instant};

/// Between two questions to a host where nobody listens yet: nothing tells when somebody does.
const AGAIN: Duration = Duration::from_millis(20);

/// What a step has led to.
enum Progress {
    Connected(ViAttributes),
    /// It is to be slept for. Other threads leave the connect alone until it is put back.
    Waits(Box<PeerConnect>),
    /// Another thread goes on with the connect.
    Elsewhere,
}

/// A thread goes on with a connect. Dropped: it has panicked, and nobody else would go on.
struct Turn<'c, T: Token> {
    core: &'c Core<T>,
    number: u32,
    connect: u32,
}

impl<T: Token> Drop for Turn<'_, T> {
    fn drop(&mut self) {
        const BROKEN: Error = Error::Resource("a call that went on with this connect has panicked; disconnect the VI");
        // All who wait for it get that.
        let _ = self.core.end_connect(self.number, self.connect, BROKEN);
    }
}

impl<T: Token> Core<T> {
    /// Begins to connect an idle VI with a peer that does the same, with both addresses exchanged,
    /// within `limit`. The side with the smaller discriminator listens.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`], also for equal discriminators; [`Error::State`]; [`Error::Resource`].
    pub fn peer_request(
        &self,
        number: u32,
        local: &Address,
        remote: &Address,
        limit: Option<Duration>,
    ) -> Result<(), Error> {
        self.check_local(local)?;
        remote.check()?;
        if local.discriminator == remote.discriminator {
            return Err(Error::Parameter("both peers have one discriminator; choose two"));
        }
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        let (connect, _) = self.begin_connect(number)?;
        let role = if local.discriminator < remote.discriminator {
            let listener = self.listener(local).and_then(PeerListener::new);
            listener.map(|(listener, signal)| (Role::Listens(listener), Some(signal)))
        } else {
            Ok((Role::Asks { question: None, not_before: Instant::now() }, None))
        };
        let (role, end_signal) = role.or_else(|why| self.end_connect(number, connect, why).and(Err(why)))?;
        let (local, remote) = (local.clone(), remote.clone());
        let peer = PeerConnect { connect, local, remote, deadline, role, is_peer: true, late: Error::Timeout };
        self.begin_steps(number, peer, end_signal)
    }

    /// Begins to connect an idle VI to whoever listens for the remote discriminator, within
    /// `limit`; as [`Core::request`], and [`Core::peer_done`] goes on with it and never waits.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`]; [`Error::State`].
    pub fn begin_request(&self, number: u32, local: &Address, remote: &Address, limit: Duration) -> Result<(), Error> {
        local.check()?;
        remote.check()?;
        let (connect, _) = self.begin_connect(number)?;
        let deadline = Instant::now().checked_add(limit);
        let role = Role::Asks { question: None, not_before: Instant::now() };
        let (local, remote) = (local.clone(), remote.clone());
        let peer = PeerConnect { connect, local, remote, deadline, role, is_peer: false, late: Error::Timeout };
        self.begin_steps(number, peer, None)
    }

    /// Begins to accept a client with an idle VI; as [`Core::accept`], and [`Core::peer_done`] goes
    /// on with it.
    ///
    /// # Errors
    ///
    /// As [`Core::accept`].
    pub fn begin_accept(&self, asking: &mut Asking, number: u32, limit: Duration) -> Result<(), Error> {
        let connect = self.invite(asking, number)?;
        let (deadline, role) = (Instant::now().checked_add(limit), Role::Connects);
        let (local, remote) = (asking.address.clone(), asking.address.clone());
        let peer = PeerConnect { connect, local, remote, deadline, role, is_peer: false, late: Error::Timeout };
        self.begin_steps(number, peer, None)
    }

    /// Gives a VI the connect that goes on step by step, unless another thread has ended it.
    fn begin_steps(&self, number: u32, peer: PeerConnect, end_signal: Option<EndSignal>) -> Result<(), Error> {
        self.with(|state| match state.pending(number, peer.connect) {
            Some(vi) => {
                (vi.steps, vi.end_signal) = (Steps::Ready(Box::new(peer)), end_signal);
                Ok(())
            }
            // A client that is accepted may be connected by now.
            None => match state.outcome(number, peer.connect) {
                Ok(Some(_)) => Ok(()),
                _ => Err(DISCONNECTED),
            },
        })
    }

    /// Goes on with a connect that has been begun; `None`: not yet, also while another thread goes
    /// on with it. Returns the attributes of the peer's VI.
    ///
    /// # Errors
    ///
    /// [`Error::State`]: none has been begun since the VI was disconnected. Any other has ended it:
    /// [`Error::Timeout`], [`Error::NotReachable`], the attribute that differs, or
    /// [`Error::Resource`]: the endpoint has failed, or no descriptor is left.
    pub fn peer_done(&self, number: u32) -> Result<Option<ViAttributes>, Error> {
        let connect = self.last_connect(number)?;
        Ok(match self.peer_step(number, connect)? {
            Progress::Connected(attributes) => Some(attributes),
            Progress::Waits(peer) => {
                self.put_back(number, peer);
                None
            }
            Progress::Elsewhere => None,
        })
    }

    /// As [`Core::peer_done`], and sleeps until the end. Several threads may wait for one VI.
    ///
    /// # Errors
    ///
    /// As [`Core::peer_done`].
    pub fn peer_wait(&self, number: u32) -> Result<ViAttributes, Error> {
        let connect = self.last_connect(number)?;
        loop {
            match self.peer_step(number, connect)? {
                Progress::Connected(attributes) => return Ok(attributes),
                Progress::Waits(peer) if peer.is_in_flight() => {
                    let left = peer.left();
                    self.put_back(number, peer);
                    self.wait_in_flight(number, connect, left);
                }
                Progress::Waits(peer) => {
                    // No event ends it.
                    self.driven.sleep_with(peer.descriptors().into_iter(), peer.left());
                    self.put_back(number, peer);
                }
                Progress::Elsewhere => self.wait_for_steps(number, connect),
            }
        }
    }

    fn last_connect(&self, number: u32) -> Result<u32, Error> {
        self.with(|state| state.vis.get(number).map(|vi| vi.connect).ok_or(NO_VI))
    }

    /// Lets other threads go on with a connect, unless it has ended.
    fn put_back(&self, number: u32, peer: Box<PeerConnect>) {
        self.with(|state| {
            let Some(vi) = state.pending(number, peer.connect) else { return };
            if let Steps::Running { is_awaited } = std::mem::replace(&mut vi.steps, Steps::Ready(peer)) {
                state.changes += u64::from(is_awaited);
            }
        });
    }

    /// Sleeps until no other thread goes on with a connect, or until it ends.
    fn wait_for_steps(&self, number: u32, connect: u32) {
        self.driven.wait_for(None, |state| match state.pending(number, connect).map(|vi| &mut vi.steps) {
            Some(Steps::Running { is_awaited }) => {
                *is_awaited = true;
                None
            }
            _ => Some(()),
        });
    }

    fn peer_step(&self, number: u32, connect: u32) -> Result<Progress, Error> {
        const NONE: Error = Error::State("no connect with a peer is under way; request it first");
        let found = self.with(|state| {
            state.progress(self.endpoint());
            let usable = state.check_endpoint();
            let vi = state.vis.get_mut(number).ok_or(NO_VI)?;
            if vi.connect != connect {
                return Err(DISCONNECTED);
            }
            if let (ViState::Connected | ViState::Error, Some(attributes)) = (vi.state, vi.peer_attributes) {
                return Ok(Err(Progress::Connected(attributes)));
            }
            match std::mem::replace(&mut vi.steps, Steps::Running { is_awaited: false }) {
                Steps::Ready(peer) => Ok(Ok((peer, vi.attributes, usable))),
                steps => {
                    vi.steps = steps;
                    match vi.steps {
                        Steps::Failed(why) => Err(why),
                        Steps::None => Err(NONE),
                        _ => Ok(Err(Progress::Elsewhere)),
                    }
                }
            }
        })?;
        let (mut peer, attributes, usable) = match found {
            Ok(found) => found,
            Err(progress) => return Ok(progress),
        };
        let turn = Turn { core: self, number, connect };
        let is_late = peer.deadline.is_some_and(|deadline| deadline <= Instant::now());
        let in_time = if is_late { Err(peer.late) } else { Ok(()) };
        let stepped = usable.and(in_time).and_then(|()| self.step(number, &mut peer, &attributes));
        std::mem::forget(turn);
        match stepped {
            Ok(()) => Ok(Progress::Waits(peer)),
            Err(why) => self.end_connect(number, connect, why).map(Progress::Connected),
        }
    }

    fn step(&self, number: u32, peer: &mut PeerConnect, attributes: &ViAttributes) -> Result<(), Error> {
        let connect = peer.connect;
        match &mut peer.role {
            Role::Connects => {}
            Role::Listens(listener) => {
                if let Some(holder) = &listener.holder {
                    let is_over = self.take_failed_invitation(number, connect)
                        || holder.is_in_vain() && self.with(|state| state.withdraw_ticket(number, connect));
                    if !is_over {
                        return Ok(());
                    }
                    listener.holder = None;
                }
                while let Some(mut asking) = listener.clients.poll() {
                    // Answers that nobody takes end nothing here.
                    if !asking.is_peer || asking.address.discriminator != peer.remote.discriminator {
                        let _ = asking.answer(&Answer::Other);
                    } else if let Err(why) = agree(attributes, &asking.attributes) {
                        let _ = asking.answer(&Answer::Mismatch(why));
                        return Err(why);
                    } else if self.invite_peer(&mut asking, number, connect)? {
                        listener.holder = Some(TicketHolder::new(asking));
                        break;
                    }
                }
            }
            Role::Asks { question, not_before } => {
                if question.is_none() && *not_before > Instant::now() {
                    return Ok(());
                }
                let asked =
                    question.get_or_insert_with(|| Question::new(&peer.remote, &peer.local, attributes, peer.is_peer));
                match self.go_on_asking(number, connect, asked, peer.deadline) {
                    Ok(()) => peer.late = asked.late(),
                    Err(why)
                        if peer.is_peer
                            && (matches!(why, Error::NoMatch | Error::Timeout | NO_DESCRIPTOR)
                                || (why == Error::NotReachable && asked.has_led_nowhere())) =>
                    {
                        peer.late = if why == NO_DESCRIPTOR { why } else { Error::Timeout };
                        *question = None;
                        *not_before = Instant::now() + AGAIN;
                    }
                    Err(why) => return Err(why),
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
