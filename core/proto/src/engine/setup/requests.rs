//! Connection requests at the server. No state is kept for a client before it has proved that it
//! receives at its address. A repeated CONNECT is no second request to the program.

use super::offer::take_offer;
use crate::engine::connection::conn::{Conn, State, bit};
use crate::engine::connection::exchange::Exchange;
use crate::engine::host::{Event, Host, Index};
use crate::engine::random::keyed;
use crate::engine::sealer::Security;
use crate::engine::state::Engine;
use crate::engine::strangers::admission::{self, COOKIE_LIFE, Key, RequestState};
use crate::engine::strangers::reply::{ReplyFrame, back};
use crate::wire::{Connect, Header, Kind, MAX_PAYLOAD, Reason, Reject, Retry, Share};
use crate::{Address, Time};
use alloc::borrow::Cow;
use alloc::vec;
use alloc::vec::Vec;

impl Engine {
    /// Handles a CONNECT.
    pub(super) fn on_connect<H: Host>(
        &mut self,
        now: Time,
        from: &Address,
        connect: &Connect<'_>,
        frame: &[u8],
        host: &mut H,
    ) {
        let key = self.key(connect.header.from, from);
        let reject = |from, tag| {
            let header = Header { from, ..back(&connect.header, Kind::Reject) };
            ReplyFrame::Reject(Reject { header, reason: Reason::Program, cookie: connect.cookie, tag })
        };
        // Cookies up to this time are void.
        let mut void = self.admission.void(from.network());
        let answer = match self.admission.get(key) {
            Some(RequestState::Here { index, id }) => {
                let (index, id) = (*index, *id);
                if self.table.find(id) == Some(index) {
                    return self.repeat_accept(index, connect.cookie);
                }
                // Closed before the client heard that it was accepted.
                Some(reject(id, None))
            }
            Some(RequestState::Rejected { from }) => Some(reject(*from, None)),
            Some(RequestState::Denied(denial)) => Some(reject(denial.from, Some(denial.tag))),
            Some(RequestState::Redirected(there)) if connect.token == 0 || connect.token != there.token => {
                let header = Header { from: there.from, ..back(&connect.header, Kind::Redirect) };
                Some(ReplyFrame::Redirect {
                    header,
                    cookie: connect.cookie,
                    token: there.token,
                    uri: there.uri.clone(),
                    tag: there.tag,
                })
            }
            Some(RequestState::GivenUp) => {
                void = void.max(self.admission.answered(key).unwrap_or(void));
                None
            }
            Some(RequestState::Redirected(_)) | None => None,
        };
        if let Some(answer) = answer {
            return self.reply(*from, answer);
        }
        let is_proven = self.is_proven(now, void, from, connect);
        if is_proven && let Some(reason) = disagreement(connect, host) {
            return self.reply(*from, turn_down(connect, reason));
        }
        let is_admitted = is_proven
            && self.admission.has_room(now, from.network(), host.strangers())
            && (!is_sealed(connect, host) || self.handshake_limit.take(now, self.cookie_key, from.network()));
        if !is_admitted {
            // No state is kept for a client that is not admitted now. It repeats its CONNECT with
            // the new cookie.
            let cookie_time = now.micros();
            let cookie = self.cookie(now, from, connect.header.from, cookie_time);
            return self.reply(
                *from,
                ReplyFrame::Retry(Retry { header: back(&connect.header, Kind::Retry), cookie, cookie_time }),
            );
        }
        self.admit(now, from, connect, frame, host);
    }

    /// Repeats the ACCEPT for a client that has received no answer.
    fn repeat_accept(&mut self, index: u32, cookie: u64) {
        let state = self.table.get(index).map(|conn| conn.state);
        if let (Some(exchange), Some(State::Requested | State::Accepting)) = (self.exchanges.get_mut(&index), state) {
            exchange.on_request(cookie);
            self.mark_ready(index);
        }
    }

    /// Returns the key of a client's request.
    pub(crate) fn key(&self, id: u64, address: &Address) -> Key {
        admission::key(self.cookie_key, id, address)
    }

    /// Returns whether the client has proved its address by a cookie newer than `void`.
    fn is_proven(&self, now: Time, void: Time, from: &Address, connect: &Connect<'_>) -> bool {
        let age = u64::from(now.micros().wrapping_sub(connect.cookie_time));
        age <= COOKIE_LIFE
            && (now.0 / 1000).checked_sub(age).is_some_and(|time| time > void.0 / 1000 || void == Time(0))
            && connect.cookie == self.cookie(now, from, connect.header.from, connect.cookie_time)
    }

    /// The whole time goes into it: what travels wraps after 71 minutes.
    fn cookie(&self, now: Time, from: &Address, id: u64, time: u32) -> u64 {
        let age = u64::from(now.micros().wrapping_sub(time));
        keyed(self.cookie_key, &[id, (now.0 / 1000).wrapping_sub(age)], &from.0)
    }

    /// Admits a new request of a client whose address is proven.
    fn admit<H: Host>(&mut self, now: Time, from: &Address, connect: &Connect<'_>, frame: &[u8], host: &mut H) {
        let key = self.key(connect.header.from, from);
        let Some((index, id)) = self.table.take(&mut self.random) else {
            return self.reply(*from, turn_down(connect, Reason::Resources));
        };
        let is_sealed = is_sealed(connect, host);
        let mut payload = Cow::Borrowed(connect.payload);
        if is_sealed {
            match read_share(index, connect, frame, host) {
                Some(inside) => payload = if inside.is_empty() { payload } else { Cow::Owned(inside) },
                None => {
                    self.stats.forged += 1;
                    self.handshake_limit.on_wrong(now, self.cookie_key, from.network());
                    return self.reply(*from, turn_down(connect, Reason::Security));
                }
            }
        }
        let mut conn = Conn::new(id, connect.header.from, *from, connect.offer.attribute, 0);
        conn.set_path(self.config.path());
        self.first_seq(&mut conn);
        conn.state = State::Requested;
        conn.track_number(connect.header.number, connect.header.time, now.micros());
        if is_sealed {
            conn.set(bit::SEALED);
        }
        take_offer(&mut conn, &connect.offer, &self.config);
        self.small_peers.note(&mut conn, index, connect.offer.max_send_size, self.config.max_send_size);
        self.table.put(index, conn);
        self.exchanges.insert(index, Exchange::of_request(connect.cookie));
        if is_sealed && !self.sealed.begin(index) || !self.admission.insert(key, from.network(), index, id) {
            // Without memory nothing is kept: the client asks again.
            return self.remove(now, index, host);
        }
        let attribute = connect.offer.attribute;
        let expected = self.expected.iter().position(|token| *token == connect.token).filter(|_| connect.token != 0);
        let event = match expected {
            Some(_) => Event::Expected { attribute, token: connect.token },
            None => Event::Request { attribute, payload: &payload },
        };
        if !host.event(Index(index), 0, event) {
            self.remove(now, index, host);
            return self.admission.remove(key);
        }
        if let Some(at) = expected {
            self.expected.swap_remove(at);
        }
    }

    /// Notes that a client is no stranger any more: it has confirmed, or its connection is gone.
    /// `state`: how to answer a repeated request.
    pub(crate) fn mark_answered(&mut self, now: Time, index: u32, state: Option<RequestState>) {
        let Some(conn) = self.table.get(index) else { return };
        if matches!(conn.state, State::Requested | State::Accepting) {
            let key = self.key(conn.peer, &conn.to);
            self.admission.answer(now, key, state);
        }
    }
}

/// The security of an endpoint.
fn security<H: Host>(host: &mut H) -> Security {
    host.sealer().map_or(Security::Plain, |sealer| sealer.security())
}

/// Returns whether this request makes a sealed connection.
fn is_sealed<H: Host>(connect: &Connect<'_>, host: &mut H) -> bool {
    connect.share != Share::None && security(host) != Security::Plain
}

/// Returns why a request is turned down, if client and server do not agree on security. A client
/// that knows nothing of it gets a reason that it knows.
fn disagreement<H: Host>(connect: &Connect<'_>, host: &mut H) -> Option<Reason> {
    match (connect.share, security(host)) {
        (Share::None, Security::Sealed) => Some(Reason::Attribute),
        (Share::Inside(_), Security::Plain) => Some(Reason::Security),
        _ => None,
    }
}

/// A rejection in clear. Nothing is kept of the client.
fn turn_down(connect: &Connect<'_>, reason: Reason) -> ReplyFrame {
    let header = back(&connect.header, Kind::Reject);
    ReplyFrame::Reject(Reject { header, reason, cookie: connect.cookie, tag: None })
}

/// Checks the share of a client by the secret, and returns the payload in it. `None`: it is wrong.
fn read_share<H: Host>(index: u32, connect: &Connect<'_>, frame: &[u8], host: &mut H) -> Option<Vec<u8>> {
    let (Share::Beside(share) | Share::Inside(share)) = connect.share else { return None };
    let mut payload = vec![0; MAX_PAYLOAD];
    let fields = Connect::fields(frame);
    let len = host.sealer()?.read(Index(index), fields.bytes(), share, &mut payload)?;
    let is_sound = len <= MAX_PAYLOAD && (len == 0 || connect.payload.is_empty());
    payload.truncate(len);
    if !is_sound {
        host.sealer()?.forget(Index(index));
    }
    is_sound.then_some(payload)
}
