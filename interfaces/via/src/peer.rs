//! Connecting step by step: in the peer-to-peer model, where both sides ask and the addresses tell
//! who listens; and by client and server, for programs that do not wait.

use crate::attributes::ViAttributes;
use crate::connect::agree;
use crate::engine::{Core, NO_VI};
use crate::errors::Error;
use crate::pending::{Invited, Listening, PeerConnect, Role};
use crate::question::{NO_DESCRIPTOR, Question};
use crate::rendezvous::{Address, Answer, Asking};
use crate::state::ViState;
use crate::task::Token;
use cci_ground::Drive;
use std::time::{Duration, Instant};

/// Between two questions to a host where nobody listens yet: nothing tells when somebody does.
const AGAIN: Duration = Duration::from_millis(20);

/// What is to be slept for.
enum Progress {
    Connected(ViAttributes),
    Waits,
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
        self.begin_connect(number)?;
        let role = if local.discriminator < remote.discriminator {
            let listening = self.listener(local).and_then(Listening::new);
            listening.map(|(listening, signal)| (Role::Listens(listening), Some(signal)))
        } else {
            Ok((Role::Asks { question: None, not_before: Instant::now() }, None))
        };
        self.with(|state| {
            let (role, end_signal) = role.inspect_err(|_| state.abandon(number))?;
            let vi = state.vis.get_mut(number).ok_or(NO_VI)?;
            vi.end_signal = end_signal;
            let (local, remote) = (local.clone(), remote.clone());
            vi.peer =
                Some(Box::new(PeerConnect { local, remote, deadline, role, is_peer: true, late: Error::Timeout }));
            Ok(())
        })
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
        self.begin_connect(number)?;
        let deadline = Instant::now().checked_add(limit);
        let role = Role::Asks { question: None, not_before: Instant::now() };
        let (local, remote) = (local.clone(), remote.clone());
        self.wait_for_peer(number, PeerConnect { local, remote, deadline, role, is_peer: false, late: Error::Timeout })
    }

    /// Begins to accept a client with an idle VI; as [`Core::accept`], and [`Core::peer_done`] goes
    /// on with it.
    ///
    /// # Errors
    ///
    /// As [`Core::accept`].
    pub fn begin_accept(&self, asking: &mut Asking, number: u32, limit: Duration) -> Result<(), Error> {
        self.invite(asking, number)?;
        let (deadline, role) = (Instant::now().checked_add(limit), Role::Connects);
        let (local, remote) = (asking.address.clone(), asking.address.clone());
        self.wait_for_peer(number, PeerConnect { local, remote, deadline, role, is_peer: false, late: Error::Timeout })
    }

    fn wait_for_peer(&self, number: u32, peer: PeerConnect) -> Result<(), Error> {
        self.with(|state| {
            state.vis.get_mut(number).ok_or(NO_VI)?.peer = Some(Box::new(peer));
            Ok(())
        })
    }

    /// Goes on with a connect that has been begun; `None`: not yet. Returns the attributes of
    /// the peer's VI.
    ///
    /// # Errors
    ///
    /// [`Error::State`]: none is under way. Any other ends it: [`Error::Timeout`],
    /// [`Error::NotReachable`], or the attribute that differs.
    pub fn peer_done(&self, number: u32) -> Result<Option<ViAttributes>, Error> {
        Ok(match self.peer_step(number)? {
            Progress::Connected(attributes) => Some(attributes),
            Progress::Waits => None,
        })
    }

    /// As [`Core::peer_done`], and sleeps until the end.
    ///
    /// # Errors
    ///
    /// As [`Core::peer_done`].
    pub fn peer_wait(&self, number: u32) -> Result<ViAttributes, Error> {
        loop {
            if let Progress::Connected(attributes) = self.peer_step(number)? {
                return Ok(attributes);
            }
            let Some(peer) = self.with(|state| state.vis.get_mut(number).and_then(|vi| vi.peer.take())) else {
                continue;
            };
            let left = peer.left();
            if peer.is_in_flight() {
                self.keep(number, peer);
                self.wait_in_flight(number, left);
                continue;
            }
            // No event ends it.
            self.driven.sleep_with(peer.descriptors().into_iter(), left);
            self.keep(number, peer);
        }
    }

    fn keep(&self, number: u32, peer: Box<PeerConnect>) {
        self.with(|state| {
            let vi = state.vis.get_mut(number).filter(|vi| vi.state == ViState::ConnectPending);
            // Another thread may have disconnected the VI, and begun again.
            if let Some(vi) = vi.filter(|vi| vi.peer.is_none()) {
                vi.peer = Some(peer);
            }
        });
    }

    fn peer_step(&self, number: u32) -> Result<Progress, Error> {
        let found = self.with(|state| {
            let was_under_way = state.vis.get(number).ok_or(NO_VI)?.peer.is_some();
            state.progress(self.endpoint());
            let has_failed = state.has_failed;
            let vi = state.vis.get_mut(number).ok_or(NO_VI)?;
            match (vi.state, vi.peer_attributes) {
                (ViState::Connected | ViState::Error, Some(attributes)) => {
                    vi.peer = None;
                    Ok(Err(attributes))
                }
                _ if was_under_way && vi.peer.is_none() => Err(Error::NotReachable),
                _ => vi
                    .peer
                    .take()
                    .map(|peer| Ok((peer, vi.attributes, has_failed)))
                    .ok_or(Error::State("no connect with a peer is under way; request it first")),
            }
        })?;
        let (mut peer, attributes, has_failed) = match found {
            Ok(found) => found,
            Err(attributes) => return Ok(Progress::Connected(attributes)),
        };
        let is_late = peer.deadline.is_some_and(|deadline| deadline <= Instant::now());
        let is_over = is_late || (has_failed && peer.is_in_flight());
        let stepped = if is_over { Err(peer.late) } else { self.step(number, &mut peer, &attributes) };
        match stepped {
            Ok(()) => {
                self.keep(number, peer);
                Ok(Progress::Waits)
            }
            Err(why) => {
                self.with(|state| state.abandon(number));
                Err(why)
            }
        }
    }

    fn step(&self, number: u32, peer: &mut PeerConnect, attributes: &ViAttributes) -> Result<(), Error> {
        match &mut peer.role {
            Role::Connects => {}
            Role::Listens(listening) => {
                if let Some(invited) = &listening.invited {
                    if !invited.is_in_vain() || !self.with(|state| state.withdraw_ticket(number)) {
                        return Ok(());
                    }
                    listening.invited = None;
                }
                while let Some(mut asking) = listening.listener.poll() {
                    // Answers that nobody takes end nothing here.
                    if !asking.is_peer || asking.address.discriminator != peer.remote.discriminator {
                        let _ = asking.answer(&Answer::Other);
                    } else if let Err(why) = agree(attributes, &asking.attributes) {
                        let _ = asking.answer(&Answer::Mismatch(why));
                        return Err(why);
                    } else if !asking.is_gone() {
                        match self.invite(&mut asking, number) {
                            Ok(()) => {
                                listening.invited = Some(Invited::new(asking));
                                break;
                            }
                            // It has hung up, and ends nothing here.
                            Err(Error::Timeout) => {}
                            Err(why) => return Err(why),
                        }
                    }
                }
            }
            Role::Asks { question, not_before } => {
                if question.is_none() && *not_before > Instant::now() {
                    return Ok(());
                }
                let asked =
                    question.get_or_insert_with(|| Question::new(&peer.remote, &peer.local, attributes, peer.is_peer));
                match self.go_on_asking(number, asked, peer.deadline) {
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
