//! Events of links: whose connect counts when both sides connect at once
//! (`docs/design/peers-by-name.md`, Both at once).

use crate::change::Peer;
use crate::entry::{Accepting, Dial, Way};
use crate::errors::Lost;
use crate::hello::{Hello, Welcome};
use crate::peers::{LINK, Peers, context, is_accept, peer_of_context};
use cci::{Attribute, Connection, EndpointFor, Event, Failure, Notify, Received, Request};
use std::time::Instant;

/// What becomes of a request.
enum Answer {
    Accept,
    /// The link is there, or is coming.
    Surplus,
    /// Accepted in place of a link that is no more.
    Replace(Connection, Lost),
}

impl<W> Peers<W> {
    /// Takes an event of the endpoint. Those that are not about opening and closing links are given
    /// back: messages of links that are up, ends of the interface's own operations, and requests
    /// that are not from peers.
    #[inline]
    pub fn handle_event<'e, T>(
        &mut self,
        endpoint: &EndpointFor<T>,
        event: Event<'e>,
        now: Instant,
    ) -> Option<Event<'e>> {
        match event {
            Event::Received(message) => {
                let connection = message.connection()?;
                let Some(peer) = connection.context().and_then(peer_of_context) else {
                    return Some(Event::Received(message));
                };
                if self.connection(peer) == Some(connection) {
                    return Some(Event::Received(message));
                }
                self.on_first_message(endpoint, peer, connection, &message, now);
                None
            }
            // The end of a first message: its connection tells what has become of it.
            Event::Completed(ended) => (ended.context() & LINK == 0).then_some(Event::Completed(ended)),
            event => self.handle_control(endpoint, event, now),
        }
    }

    #[inline(never)]
    fn handle_control<'e, T>(
        &mut self,
        endpoint: &EndpointFor<T>,
        event: Event<'e>,
        now: Instant,
    ) -> Option<Event<'e>> {
        if let Event::Request(request) = event {
            return self.on_request(endpoint, request, now).map(Event::Request);
        }
        let connection = event.connection();
        let of = match &event {
            Event::Connected(_) | Event::ConnectFailed(_) | Event::Accepted(_) | Event::AcceptFailed(_) => {
                event.context()
            }
            Event::Disconnected(_) | Event::Keepalive(_) => connection?.context()?,
            _ => return Some(event),
        };
        let Some(peer) = peer_of_context(of).filter(|peer| self.name(*peer).is_some()) else { return Some(event) };
        match event {
            Event::Connected(_) => self.on_connected(endpoint, peer, (of, connection?)),
            Event::ConnectFailed(failed) => {
                let entry = &mut self.entries[peer.index()];
                // What is slow is there.
                entry.refused = match failed.failure() {
                    Failure::Refused => entry.refused.or(entry.wanted.and(Some(now))),
                    _ => None,
                };
                let why = failed.reason().unwrap_or_else(|| failed.failure().to_string());
                self.on_attempt_failed(peer, of, why, now);
            }
            Event::Accepted(_) => self.on_accepted(endpoint, peer, (of, connection?), now),
            Event::AcceptFailed(failed) => {
                let why = failed.failure().to_string();
                self.on_attempt_failed(peer, of, why, now);
            }
            Event::Disconnected(_) => self.on_closed(endpoint, peer, connection?, Lost::Closed, now),
            _ => self.on_closed(endpoint, peer, connection?, Lost::Silent, now),
        }
        None
    }

    /// A request: it comes back if it is not from a peer.
    fn on_request<'e, T>(
        &mut self,
        endpoint: &EndpointFor<T>,
        request: Request<'e>,
        now: Instant,
    ) -> Option<Request<'e>> {
        let Some(hello) = Hello::parse(&request.payload()) else { return Some(request) };
        let is_for_us = hello.target == self.own && !self.is_closed;
        let is_right = is_for_us && request.attribute() == Attribute::ReliableOrdered;
        let peer = if is_right && self.directory.admits(&hello.own) { self.peer(&hello.own).ok() } else { None };
        let Some(peer) = peer else {
            self.counts.strangers += 1;
            reject(request);
            return None;
        };
        match self.answer(peer, &hello) {
            Answer::Accept => self.accept(peer, &hello, request, now),
            Answer::Surplus => {
                self.counts.surplus += 1;
                reject(request);
            }
            Answer::Replace(connection, why) => {
                // Refused where it is closed already.
                let _ = endpoint.disconnect(connection);
                self.on_down(peer, why);
                self.accept(peer, &hello, request, now);
            }
        }
        None
    }

    fn answer(&self, peer: Peer, hello: &Hello) -> Answer {
        let entry = &self.entries[peer.0 as usize];
        match entry.way {
            Way::Idle => Answer::Accept,
            // The peer has accepted this side's connect.
            Way::Opening { dial: Dial::Open(_), .. } => Answer::Surplus,
            // Of two connects at once that of the lower name counts.
            Way::Opening { dial: Dial::Asked, .. } if self.own < hello.own => Answer::Surplus,
            Way::Opening { accepting: Some(_), .. } => Answer::Surplus,
            Way::Opening { .. } => Answer::Accept,
            Way::Up { connection, .. } if entry.process != Some(hello.process) => {
                Answer::Replace(connection, Lost::Replaced)
            }
            // It asked before the link was up, or it has noticed first that the link is no more.
            Way::Up { connection, serial } => {
                let is_later = serial.map_or(hello.links >= entry.links, |serial| hello.serial > serial);
                if is_later { Answer::Replace(connection, Lost::Closed) } else { Answer::Surplus }
            }
        }
    }

    fn accept(&mut self, peer: Peer, hello: &Hello, request: Request<'_>, now: Instant) {
        let context = self.accept_context(peer);
        if let Err(unanswered) = request.accept(context) {
            // Its drop rejects it, and the peer asks again.
            let why = unanswered.why.to_string();
            drop(unanswered);
            if self.entries[peer.0 as usize].way == Way::Idle {
                self.try_again(peer, why, now);
            }
            return;
        }
        self.counts.accepted += 1;
        let entry = &mut self.entries[peer.0 as usize];
        let dial = if let Way::Opening { dial, .. } = entry.way { dial } else { Dial::None };
        let accepting = Accepting { context, process: hello.process, serial: hello.serial };
        entry.next_at = None;
        entry.way = Way::Opening { dial, accepting: Some(accepting) };
        self.set_timer(peer);
    }

    /// This side's connect is accepted: the first message tells by which process.
    fn on_connected<T>(&mut self, endpoint: &EndpointFor<T>, peer: Peer, (of, connection): (u64, Connection)) {
        let entry = &mut self.entries[peer.0 as usize];
        match entry.way {
            Way::Opening { dial: Dial::Asked, accepting } if of == context(peer, entry.serial) => {
                entry.way = Way::Opening { dial: Dial::Open(connection), accepting };
            }
            // Nobody wants it any more.
            _ => {
                let _ = endpoint.disconnect(connection);
            }
        }
    }

    /// The first message on a connection that this side has asked for.
    fn on_first_message<T>(
        &mut self,
        endpoint: &EndpointFor<T>,
        peer: Peer,
        connection: Connection,
        message: &Received<'_>,
        now: Instant,
    ) {
        let Some(entry) = self.entries.get(peer.0 as usize) else { return };
        // What comes late, of a connection that is closed, is nobody's.
        let Way::Opening { dial: Dial::Open(open), .. } = entry.way else { return };
        if open != connection {
            return;
        }
        if let Some(welcome) = Welcome::parse(&message.to_vec()) {
            return self.on_up(peer, connection, welcome, None);
        }
        self.counts.malformed += 1;
        self.on_closed(endpoint, peer, connection, Lost::Closed, now);
    }

    /// The peer's connect is open: this side tells which process it is.
    fn on_accepted<T>(
        &mut self,
        endpoint: &EndpointFor<T>,
        peer: Peer,
        (of, connection): (u64, Connection),
        now: Instant,
    ) {
        let entry = &mut self.entries[peer.0 as usize];
        let accepted = match entry.way {
            Way::Opening { dial: Dial::None | Dial::Asked, accepting } => {
                accepting.filter(|accepting| accepting.context == of && !self.is_closed)
            }
            _ => None,
        };
        let Some(Accepting { process, serial, .. }) = accepted else {
            let _ = endpoint.disconnect(connection);
            return self.on_attempt_failed(peer, of, "both sides have connected".into(), now);
        };
        let links = entry.next_link(process);
        let welcome = Welcome { process: self.process, links }.emit();
        if let Err(why) = endpoint.send(connection, &welcome, Notify::OnFailure(LINK | of)) {
            // Without room for so short a message the peer tries again.
            let _ = endpoint.disconnect(connection);
            return self.on_attempt_failed(peer, of, why.to_string(), now);
        }
        self.on_up(peer, connection, Welcome { process, links }, Some(serial));
    }

    /// A connect of either side has failed.
    fn on_attempt_failed(&mut self, peer: Peer, of: u64, why: String, now: Instant) {
        let entry = &mut self.entries[peer.0 as usize];
        let Way::Opening { dial, accepting } = entry.way else { return };
        let (dial, accepting) = if is_accept(of) {
            (dial, accepting.filter(|accepting| accepting.context != of))
        } else if dial == Dial::Asked && of == context(peer, entry.serial) {
            (Dial::None, accepting)
        } else {
            return;
        };
        entry.way = Way::Opening { dial, accepting };
        if dial == Dial::None && accepting.is_none() {
            self.try_again(peer, why, now);
        }
    }

    /// A connection is no more.
    fn on_closed<T>(&mut self, endpoint: &EndpointFor<T>, peer: Peer, connection: Connection, why: Lost, now: Instant) {
        // Refused where it is closed already.
        let _ = endpoint.disconnect(connection);
        match self.entries[peer.0 as usize].way {
            Way::Up { connection: up, .. } if up == connection => self.on_down(peer, why),
            Way::Opening { dial: Dial::Open(open), accepting } if open == connection => {
                self.entries[peer.0 as usize].way = Way::Opening { dial: Dial::None, accepting };
                if accepting.is_none() {
                    self.try_again(peer, why.to_string(), now);
                }
            }
            _ => (),
        }
    }
}

/// Turns a request away; its client is gone if that is refused.
fn reject(request: Request<'_>) {
    let _ = request.reject();
}
