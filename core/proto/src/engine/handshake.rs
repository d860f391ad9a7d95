//! Opens and closes connections. A server keeps no state for a client until the client has returned
//! a cookie, which proves that it receives at its address. An answer is never longer than the frame
//! that it answers.

use super::admission::{Redirection, RequestState};
use super::conn::{Conn, State, bit};
use super::frame::{header, plain};
use super::host::{Event, Host, Index};
use super::reply::{Answer, back};
use super::{Engine, Open, Transmit, get_ready};
use crate::wire::{
    Accept, Close, Connect, HEADER, Header, Kind, Offer, Reason, Redirect, Reject, Reset, Retry, features,
};
use crate::{Address, ConnectError, Failure, RequestError, Time};
use alloc::boxed::Box;

/// Time after which the first frame of a handshake is retransmitted, microseconds. Doubled each
/// time, up to the longest.
const FIRST: u64 = 20_000;
const LONGEST: u64 = 1_000_000;
/// Default time limit of a handshake, microseconds.
const PATIENCE: u64 = 30_000_000;
/// Time for an accepted client to confirm, microseconds: 5 s, and at least three timeouts.
const CONFIRMATION: u64 = if 3 * LONGEST > 5_000_000 { 3 * LONGEST } else { 5_000_000 };
/// The longest time until an ACCEPT is repeated, microseconds. The client's address is proved, and
/// the time to confirm is short: with 30 % of frames lost, one of some million clients fails.
const LONGEST_ACCEPT: u64 = 250_000;
/// Time after which an event for which the host had no room is reported again, microseconds.
const HOST_AGAIN: u64 = 10_000;
/// CLOSE frames to a peer that does not answer, before the connection is removed.
const FAREWELLS: u32 = 4;
/// Longest URI of a redirection, bytes.
const MAX_URI: usize = 512;
/// RETRYs that are answered at once.
const MOST_RETRIES: u32 = 4;
/// Cookies that a client has shown before the one that it shows now, and by which it knows an
/// answer: as many as it shows at once.
const EARLIER: usize = MOST_RETRIES as usize;
/// Transmission numbers back to which a RESET may answer a frame.
const RECENT: u32 = 1 << 16;

/// A connection that is being opened or closed.
pub(super) struct Opening {
    /// Payload of a CONNECT, or the body of a CLOSE.
    payload: Box<[u8]>,
    token: u64,
    cookie: u64,
    cookie_time: u32,
    /// Those of a client's CONNECTs that are on their way perhaps, the newest first; 0 = none.
    earlier: [u64; EARLIER],
    since: Time,
    deadline: Time,
    next_at: Time,
    /// The longest time until a frame is repeated, microseconds.
    longest: u64,
    tries: u32,
    /// Whether a frame is due now.
    due: bool,
    /// Whether it was redirected and the host has not called `follow` yet.
    elsewhere: bool,
    first_seq: u32,
    /// RETRYs that were answered at once.
    retries: u32,
    /// Whether the client has confirmed while the host has no room for the event.
    is_confirmed: bool,
}

impl Opening {
    pub(super) fn new(now: Time, patience: u64) -> Self {
        Self {
            payload: Box::default(),
            token: 0,
            cookie: 0,
            cookie_time: 0,
            earlier: [0; EARLIER],
            since: now,
            deadline: now.plus_micros(patience),
            next_at: now,
            longest: LONGEST,
            tries: 0,
            due: true,
            elsewhere: false,
            first_seq: 0,
            retries: 0,
            is_confirmed: false,
        }
    }

    /// That of a request that its program has not answered: it waits for nothing else.
    pub(super) fn of_request(cookie: u64) -> Self {
        let mut opening = Self::new(Time(u64::MAX), 0);
        opening.cookie = cookie;
        opening
    }

    /// The client has asked again, with this cookie: the answer shows it, and an ACCEPT is to be
    /// sent now.
    pub(super) fn on_asked(&mut self, cookie: u64) {
        self.due = true;
        if cookie != 0 {
            self.cookie = cookie;
        }
    }

    /// The server has sent a client a cookie. One that was sent before may have reached it
    /// meanwhile: its answer shows that.
    fn on_cookie(&mut self, cookie: u64, time: u32) {
        if cookie != self.cookie {
            self.earlier.rotate_right(1);
            self.earlier[0] = self.cookie;
        }
        (self.cookie, self.cookie_time) = (cookie, time);
    }

    /// Whether an answer with this cookie is one to a CONNECT of this client.
    fn has_shown(&self, cookie: u64) -> bool {
        cookie == self.cookie || cookie != 0 && self.earlier.contains(&cookie)
    }

    /// The client goes on elsewhere, with this token.
    fn on_redirected(&mut self, now: Time, token: u64) {
        (self.cookie, self.cookie_time, self.earlier) = (0, 0, [0; EARLIER]);
        (self.token, self.elsewhere, self.due, self.tries, self.next_at) = (token, false, true, 0, now);
    }

    /// When it began.
    pub(super) fn since(&self) -> Time {
        self.since
    }

    /// Returns its next deadline.
    pub(super) fn next_at(&self) -> Time {
        if self.elsewhere { self.deadline } else { self.next_at.min(self.deadline) }
    }

    /// The client has confirmed; the host is to be asked again.
    fn on_confirmed(&mut self, now: Time) {
        (self.is_confirmed, self.due, self.deadline) = (true, false, Time(u64::MAX));
        self.next_at = now.plus_micros(HOST_AGAIN);
    }

    fn on_sent(&mut self, now: Time) {
        self.due = false;
        self.next_at = now.plus_micros((FIRST << self.tries.min(16)).min(self.longest));
        self.tries += 1;
    }
}

impl Engine {
    /// Starts a connection; `Event::Open` or `Event::Refused` comes later.
    ///
    /// # Errors
    ///
    /// Refused; the state is unchanged.
    pub fn connect(&mut self, now: Time, open: &Open<'_>) -> Result<Index, ConnectError> {
        if open.payload.len() > crate::CONN_REQ_LEN {
            return Err(ConnectError::PayloadTooLong);
        }
        if open.attribute.is_multicast() {
            return Err(ConnectError::NotImplemented);
        }
        let (index, id) = self.table.take(&mut self.random).ok_or(ConnectError::NoMemory)?;
        let mut conn = Conn::new(id, 0, open.to, open.attribute, open.host_cookie);
        let patience = open.timeout.map_or(PATIENCE, |limit| u64::try_from(limit.as_micros()).unwrap_or(u64::MAX));
        let mut opening = Opening::new(now, patience);
        opening.payload = open.payload.into();
        opening.token = open.token;
        opening.first_seq = self.first_seq(&mut conn);
        self.table.put(index, conn);
        self.openings.insert(index, opening);
        self.make_ready(index);
        Ok(Index(index))
    }

    /// Numbers begin where nobody guesses. The sequence of an unreliable connection is its window
    /// of numbers seen.
    #[expect(clippy::cast_possible_truncation, reason = "any bits do")]
    pub(super) fn first_seq(&mut self, conn: &mut Conn) -> u32 {
        let random = self.random.next();
        let seq = self.config.first_seq.unwrap_or(random as u32);
        conn.number = self.config.first_seq.unwrap_or((random >> 32) as u32);
        conn.next_seq = if conn.is_reliable() { seq } else { 0 };
        seq
    }

    /// Accepts a request; `Event::Open` comes when the client has confirmed, or `Event::Refused`.
    ///
    /// # Errors
    ///
    /// Not an unanswered request.
    pub fn accept(&mut self, now: Time, index: Index, host_cookie: u32) -> Result<(), RequestError> {
        let conn = self.table.get_mut(index.0).ok_or(RequestError::Disconnected)?;
        if conn.state != State::Requested {
            return Err(RequestError::AlreadyAnswered);
        }
        conn.state = State::Accepting;
        conn.host_cookie = host_cookie;
        let first_seq = conn.next_seq;
        let mut opening = Opening::new(now, CONFIRMATION);
        opening.first_seq = first_seq;
        opening.longest = LONGEST_ACCEPT;
        opening.cookie = self.openings.get(&index.0).map_or(0, |request| request.cookie);
        self.openings.insert(index.0, opening);
        self.make_ready(index.0);
        Ok(())
    }

    /// Rejects a request. The index is free.
    ///
    /// # Errors
    ///
    /// Not an unanswered request.
    pub fn reject(&mut self, now: Time, index: Index) -> Result<(), RequestError> {
        let from = self.table.get(index.0).map_or(0, |conn| conn.id);
        let (to, header, cookie) = self.take_request(now, index, RequestState::Rejected { from })?;
        let reject = Reject { header: Header { kind: Kind::Reject, ..header }, reason: Reason::Program, cookie };
        self.reply(to, Answer::Reject(reject));
        Ok(())
    }

    /// Answers a request by redirecting the client to the endpoint at `uri`, which expects `token`.
    /// The index is free.
    ///
    /// # Errors
    ///
    /// Not an unanswered request, or a URI of no bytes or more than 512.
    pub fn redirect(&mut self, now: Time, index: Index, uri: &[u8], token: u64) -> Result<(), RequestError> {
        if uri.is_empty() || uri.len() > MAX_URI {
            return Err(RequestError::OtherDevice);
        }
        let from = self.table.get(index.0).map_or(0, |conn| conn.id);
        let state = RequestState::Redirected(Box::new(Redirection { from, token, uri: uri.into() }));
        let (to, header, cookie) = self.take_request(now, index, state)?;
        let header = Header { kind: Kind::Redirect, ..header };
        self.reply(to, Answer::Redirect { header, cookie, token, uri: uri.into() });
        Ok(())
    }

    /// Removes an unanswered request. Returns its client's address, the header of an answer, and
    /// its cookie.
    fn take_request(
        &mut self,
        now: Time,
        index: Index,
        request_state: RequestState,
    ) -> Result<(Address, Header, u64), RequestError> {
        let conn = self.table.get(index.0).ok_or(RequestError::Disconnected)?;
        if conn.state != State::Requested {
            return Err(RequestError::AlreadyAnswered);
        }
        let header = Header { kind: Kind::Reject, to: conn.peer, from: conn.id, number: conn.number, time: 0 };
        let to = conn.to;
        let cookie = self.openings.get(&index.0).map_or(0, |opening| opening.cookie);
        self.mark_answered(now, index.0, Some(request_state));
        self.remove(now, index.0);
        Ok((to, header, cookie))
    }

    /// Continues a redirected connection at another address.
    pub fn follow(&mut self, now: Time, index: Index, to: Address, token: u64) {
        let Some(conn) = self.table.get_mut(index.0).filter(|conn| conn.state == State::Asking) else { return };
        conn.to = to;
        if let Some(opening) = self.openings.get_mut(&index.0) {
            opening.on_redirected(now, token);
        }
        self.make_ready(index.0);
    }

    /// Announces a client: a request with this token is reported as `Event::Expected`.
    pub fn expect(&mut self, token: u64) {
        self.expected.push(token);
    }

    /// Ends an expectation.
    pub fn forget(&mut self, token: u64) {
        self.expected.retain(|expected| *expected != token);
    }

    /// Sends CLOSE with this body to the peer of a connection without a flow.
    pub(super) fn begin_closing(&mut self, now: Time, index: u32, body: Box<[u8]>) {
        if let Some(conn) = self.table.get_mut(index) {
            conn.state = State::Closing;
            let mut opening = Opening::new(now, PATIENCE);
            opening.payload = body;
            self.openings.insert(index, opening);
            get_ready(conn, index, &mut self.ready);
        }
    }

    /// Writes the next frame of a handshake or a teardown.
    pub(super) fn transmit_opening<P>(&mut self, now: Time, index: u32, buffer: &mut [u8]) -> Option<Transmit<P>> {
        let conn = self.table.get_mut(index)?;
        let opening = self.openings.get_mut(&index).filter(|opening| opening.due && !opening.elsewhere)?;
        opening.on_sent(now);
        let offer = Offer {
            features: offered(&self.config)
                & if conn.state == State::Asking || conn.has(bit::UNCHECKED) { !0 } else { 0 },
            first_seq: opening.first_seq,
            attribute: conn.attribute(),
            mtu: self.config.mtu,
            max_send_size: self.config.max_send_size,
            recv_buffer: self.config.recv_buffer,
            credit: u32::from(u16::MAX),
            host: self.config.host,
        };
        let len = match conn.state {
            State::Asking => Connect {
                header: header(conn, Kind::Connect, now),
                offer,
                token: opening.token,
                cookie: opening.cookie,
                cookie_time: opening.cookie_time,
                payload: &opening.payload,
            }
            .emit(buffer),
            State::Accepting => {
                Accept { header: header(conn, Kind::Accept, now), offer, cookie: opening.cookie }.emit(buffer)
            }
            _ => {
                header(conn, Kind::Close, now).emit(buffer);
                let end = HEADER + opening.payload.len();
                buffer[HEADER..end].copy_from_slice(&opening.payload);
                end
            }
        };
        Some(plain(conn, len))
    }

    /// Handles the timers of a connection that is not open.
    pub(super) fn look_opening<H: Host>(&mut self, now: Time, index: u32, host: &mut H) {
        let Some(state) = self.table.get(index).map(|conn| conn.state) else { return };
        let Some(opening) = self.openings.get_mut(&index) else { return };
        if opening.deadline <= now {
            match state {
                State::Asking => self.refuse(now, index, Failure::TimedOut, host),
                State::Accepting => {
                    self.mark_answered(now, index, Some(RequestState::GivenUp));
                    self.break_connection(now, index, Failure::TimedOut, host);
                }
                State::Closing => self.remove(now, index),
                _ => {}
            }
        } else if opening.next_at <= now && !opening.elsewhere {
            if opening.is_confirmed {
                self.confirm(now, index, host);
            } else if state == State::Closing && opening.tries >= FAREWELLS {
                self.remove(now, index);
            } else if state != State::Requested {
                opening.due = true;
            }
        }
    }

    /// Handles a frame that is not DATA.
    pub(super) fn handle_opening<H: Host>(
        &mut self,
        now: Time,
        from: &Address,
        header: &Header,
        frame: &[u8],
        host: &mut H,
    ) {
        match header.kind {
            Kind::Connect => match Connect::parse(frame) {
                Some(connect) => return self.on_connect(now, from, &connect, host),
                None => self.stats.malformed += 1,
            },
            Kind::Reset => match Reset::parse(frame) {
                Some(reset) => return self.on_reset(now, from, &reset, host),
                None => self.stats.malformed += 1,
            },
            _ => {}
        }
        let Some(index) = self.table.find(header.to) else { return self.stray_opening(now, from, header, frame) };
        let Some(conn) = self.table.get_mut(index).filter(|conn| conn.to == *from) else {
            self.stats.strays += 1;
            return;
        };
        if conn.state == State::Asking {
            return self.on_answer(now, index, header, frame, host);
        }
        if conn.peer != header.from {
            self.stats.strays += 1;
            return;
        }
        match header.kind {
            Kind::Accept if conn.state == State::Open => {
                conn.set(bit::CONFIRM);
                get_ready(conn, index, &mut self.ready);
            }
            Kind::Confirm if conn.state == State::Accepting => {
                conn.note_number(header.number, header.time, now.micros());
                self.confirm(now, index, host);
            }
            Kind::Close => self.on_close(now, index, frame, host),
            _ => {}
        }
    }

    /// Opens the connection of a client that has received the ACCEPT. Without room for the event
    /// the host is asked again. Frames of the client are dropped meanwhile, and retransmitted.
    pub(super) fn confirm<H: Host>(&mut self, now: Time, index: u32, host: &mut H) {
        self.mark_answered(now, index, None);
        let Some(conn) = self.table.get_mut(index) else { return };
        let max_send_size = self.small_peers.largest(conn, index, self.config.max_send_size);
        let (host_cookie, peer) = (conn.host_cookie, conn.to);
        if host.event(Index(index), host_cookie, Event::Open { max_send_size, peer }) {
            conn.state = State::Open;
            self.openings.remove(&index);
        } else if let Some(opening) = self.openings.get_mut(&index) {
            opening.on_confirmed(now);
        }
        self.arm(now, index);
    }

    /// Handles an answer to this side's CONNECT.
    fn on_answer<H: Host>(&mut self, now: Time, index: u32, header: &Header, frame: &[u8], host: &mut H) {
        let Some(conn) = self.table.get_mut(index) else { return };
        let Some(opening) = self.openings.get_mut(&index) else { return };
        match header.kind {
            Kind::Retry => {
                if let Some(retry) = Retry::parse(frame) {
                    opening.on_cookie(retry.cookie, retry.cookie_time);
                    opening.retries += 1;
                    // Nobody makes this side send more than a few: the next goes in its time.
                    if opening.retries <= MOST_RETRIES {
                        opening.due = true;
                        get_ready(conn, index, &mut self.ready);
                    }
                }
            }
            Kind::Accept => {
                let Some(accept) = Accept::parse(frame).filter(|accept| accept.offer.attribute == conn.attribute())
                else {
                    self.stats.malformed += 1;
                    return;
                };
                if !opening.has_shown(accept.cookie) {
                    self.stats.strays += 1;
                    return;
                }
                conn.peer = header.from;
                conn.state = State::Open;
                conn.note_number(header.number, header.time, now.micros());
                take_offer(conn, &accept.offer, &self.config);
                let own = self.config.max_send_size;
                self.small_peers.note(conn, index, accept.offer.max_send_size, own);
                conn.set(bit::CONFIRM);
                get_ready(conn, index, &mut self.ready);
                let max_send_size = self.small_peers.largest(conn, index, own);
                let (host_cookie, peer) = (conn.host_cookie, conn.to);
                self.openings.remove(&index);
                host.event(Index(index), host_cookie, Event::Open { max_send_size, peer });
                self.arm(now, index);
            }
            Kind::Reject => {
                if let Some(reject) = Reject::parse(frame).filter(|reject| opening.has_shown(reject.cookie)) {
                    let failure = match reject.reason {
                        Reason::Program | Reason::Attribute => Failure::Refused,
                        Reason::Version => Failure::Protocol,
                        Reason::Resources => Failure::NoMemory,
                    };
                    self.refuse(now, index, failure, host);
                }
            }
            Kind::Redirect => {
                if let Some(redirect) = Redirect::parse(frame).filter(|redirect| opening.has_shown(redirect.cookie))
                    && !opening.elsewhere
                {
                    opening.elsewhere = true;
                    let host_cookie = conn.host_cookie;
                    host.event(
                        Index(index),
                        host_cookie,
                        Event::Redirected { uri: redirect.uri, token: redirect.token },
                    );
                }
            }
            _ => {}
        }
    }

    fn on_close<H: Host>(&mut self, now: Time, index: u32, frame: &[u8], host: &mut H) {
        let Some((close, sack, records)) = Close::parse(frame) else {
            self.stats.malformed += 1;
            return;
        };
        let Some(conn) = self.table.get(index) else { return };
        let (state, to) = (conn.state, conn.to);
        if !close.is_answer {
            let header = Header { kind: Kind::Close, ..back(&close.header, Kind::Close) };
            self.reply(to, Answer::Close(Close::answer(header)));
        }
        match state {
            State::Closing => self.remove(now, index),
            State::Open | State::Accepting => {
                if !close.is_answer {
                    self.take_farewell(index, &close, &sack, records, host);
                }
                self.break_connection(now, index, Failure::Disconnected, host);
            }
            _ => {}
        }
    }

    /// Handles a RESET: the peer has closed the connection or restarted. It counts only from a
    /// sender that received our frame.
    fn on_reset<H: Host>(&mut self, now: Time, from: &Address, reset: &Reset, host: &mut H) {
        let Some(index) = self.table.find(reset.header.to) else { return };
        let Some(conn) = self.table.get(index) else { return };
        let age = conn.number.wrapping_sub(reset.number);
        if conn.to != *from || conn.peer != reset.header.from || age == 0 || age > RECENT {
            self.stats.strays += 1;
            return;
        }
        match conn.state {
            State::Open | State::Accepting => self.break_connection(now, index, Failure::Disconnected, host),
            State::Closing => self.remove(now, index),
            _ => {}
        }
    }
}

/// Features of this side.
fn offered(config: &super::Config) -> u32 {
    if config.unchecked_on_host && config.host != 0 { features::UNCHECKED } else { 0 }
}

/// Applies the features that the peer offers.
pub(super) fn take_offer(conn: &mut Conn, offer: &Offer, config: &super::Config) {
    conn.recv_next = if conn.is_reliable() { offer.first_seq } else { 0 };
    // Nobody is sent frames in which nothing fits.
    conn.peer_mtu = offer.mtu.clamp(config.base_mtu.min(config.mtu), config.mtu);
    conn.mtu = config.base_mtu.min(conn.peer_mtu);
    conn.peer_buffer = offer.recv_buffer.max(u32::from(conn.mtu));
    conn.credit = u16::try_from(offer.credit).unwrap_or(u16::MAX);
    let same_host = config.host != 0 && offer.host == config.host;
    if same_host && offered(config) & offer.features & features::UNCHECKED != 0 {
        conn.set(bit::UNCHECKED);
    }
}
