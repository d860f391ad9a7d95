//! Opens and closes connections. A server keeps no state for a client until the client has returned
//! a cookie, which proves that it receives at its address. An answer is never longer than the frame
//! that it answers.

use super::offer::offered;
use crate::engine::api::{Open, PathMtu, Transmit};
use crate::engine::connection::conn::{Conn, State, bit};
use crate::engine::connection::exchange::Exchange;
use crate::engine::host::{Host, Index};
use crate::engine::sealer::Security;
use crate::engine::send::frame::{header, plain};
use crate::engine::state::{Engine, mark_conn_ready};
use crate::engine::strangers::admission::{Denial, Redirection, RequestState};
use crate::engine::strangers::reply::ReplyFrame;
use crate::wire::{
    Accept, CONNECT_SEALED_MIN, Connect, Fields, HEADER, Header, Kind, MAX_SHARE, MAX_URI, Offer, Reason, Redirect,
    Reject, SHARE, Share, TAG, features,
};
use crate::{Address, ConnectError, Failure, RequestError, Time};
use alloc::boxed::Box;
use alloc::vec;

/// Default time limit of a handshake, microseconds.
const HANDSHAKE_TIMEOUT: u64 = 30_000_000;
/// Time for an accepted client to confirm, microseconds.
const CONFIRMATION: u64 = 5_000_000;
/// The longest time until an ACCEPT is repeated, microseconds. The client's address is proved, and
/// the time to confirm is short: with 30 % of frames lost, one of some million clients fails.
const LONGEST_ACCEPT: u64 = 250_000;
const _: () = assert!(CONFIRMATION >= 3 * LONGEST_ACCEPT, "a client has at least three timeouts of the ACCEPT");
/// CLOSE frames to a peer that does not answer, before the connection is removed.
const FAREWELLS: u32 = 4;

impl Engine {
    /// Starts a connection; `Event::Open` or `Event::Refused` comes later.
    ///
    /// # Errors
    ///
    /// Refused; the state is unchanged.
    pub fn connect(&mut self, now: Time, open: &Open<'_>) -> Result<Index, ConnectError> {
        if open.payload.len() > crate::MAX_REQUEST {
            return Err(ConnectError::PayloadTooLong);
        }
        if open.attribute.is_multicast() {
            return Err(ConnectError::NotImplemented);
        }
        let (index, id) = self.table.take(&mut self.random).ok_or(ConnectError::NoMemory)?;
        let mut conn = Conn::new(id, 0, open.to, open.attribute, open.host_cookie);
        conn.set_path(self.config.path());
        let timeout =
            open.timeout.map_or(HANDSHAKE_TIMEOUT, |limit| u64::try_from(limit.as_micros()).unwrap_or(u64::MAX));
        let mut exchange = Exchange::new(now, timeout);
        exchange.payload = open.payload.into();
        exchange.token = open.token;
        exchange.first_seq = self.first_seq(&mut conn);
        self.table.put(index, conn);
        self.exchanges.insert(index, exchange);
        self.mark_ready(index);
        Ok(Index(index))
    }

    /// Notes what the path to the peer of a connect carries, of which the answer has not come. Does
    /// nothing later.
    pub fn set_path(&mut self, index: Index, path: PathMtu) {
        let largest = path.largest.min(self.config.mtu);
        if let Some(conn) = self.table.get_mut(index.0).filter(|conn| conn.state == State::Asking) {
            conn.set_path(PathMtu { largest, ..path });
        }
    }

    /// Adds an address of the host that a connect asks, and what the path to it carries. Does
    /// nothing after the first answer. CONNECTs go to one address after the other; the connection
    /// stays with the first that answers. It is refused if nobody listens at any of them.
    pub fn add_address(&mut self, index: Index, to: Address, path: PathMtu) {
        let largest = path.largest.min(self.config.mtu);
        if let Some(conn) = self.table.get(index.0).filter(|conn| conn.state == State::Asking)
            && let Some(exchange) = self.exchanges.get_mut(&index.0).filter(|exchange| exchange.cookie == 0)
        {
            exchange.add_address(conn, to, PathMtu { largest, ..path });
        }
    }

    /// Returns whether a connect has asked at this address of its host, which is not the one that
    /// it asks now, and nobody has answered.
    pub(crate) fn may_answer(&self, index: u32, from: &Address) -> bool {
        self.exchanges.get(&index).is_some_and(|exchange| exchange.may_answer(from))
    }

    /// Numbers begin where nobody guesses. The sequence of an unreliable connection is its window
    /// of numbers seen.
    #[expect(clippy::cast_possible_truncation, reason = "any bits do")]
    pub(crate) fn first_seq(&mut self, conn: &mut Conn) -> u32 {
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
        let mut exchange = Exchange::new(now, CONFIRMATION);
        exchange.first_seq = first_seq;
        exchange.longest = LONGEST_ACCEPT;
        exchange.cookie = self.exchanges.get(&index.0).map_or(0, |request| request.cookie);
        self.exchanges.insert(index.0, exchange);
        self.mark_ready(index.0);
        Ok(())
    }

    /// Rejects a request. The index is free.
    ///
    /// # Errors
    ///
    /// Not an unanswered request.
    pub fn reject<H: Host>(&mut self, now: Time, index: Index, host: &mut H) -> Result<(), RequestError> {
        let (to, header, cookie) = self.request(index, Kind::Reject)?;
        let mut reject = Reject { header, reason: Reason::Program, cookie, tag: None };
        reject.tag = self.deny(index, host, |frame| {
            reject.emit(frame);
            Reject::fields(frame)
        });
        let from = header.from;
        let state = match reject.tag {
            Some(tag) => RequestState::Denied(Box::new(Denial { from, tag })),
            None => RequestState::Rejected { from },
        };
        self.mark_answered(now, index.0, Some(state));
        self.remove(now, index.0, host);
        self.reply(to, ReplyFrame::Reject(reject));
        Ok(())
    }

    /// Answers a request by redirecting the client to the endpoint at `uri`, which expects `token`.
    /// The index is free.
    ///
    /// # Errors
    ///
    /// Not an unanswered request, or a URI of no bytes or more than [`MAX_URI`].
    pub fn redirect<H: Host>(
        &mut self,
        now: Time,
        index: Index,
        uri: &[u8],
        token: u64,
        host: &mut H,
    ) -> Result<(), RequestError> {
        if uri.is_empty() || uri.len() > MAX_URI {
            return Err(RequestError::OtherDevice);
        }
        let (to, header, cookie) = self.request(index, Kind::Redirect)?;
        let tag = self.deny(index, host, |frame| {
            Redirect { header, cookie, token, uri, tag: None }.emit(frame);
            Redirect::fields(frame)
        });
        let there = Redirection { from: header.from, token, uri: uri.into(), tag };
        self.mark_answered(now, index.0, Some(RequestState::Redirected(Box::new(there))));
        self.remove(now, index.0, host);
        self.reply(to, ReplyFrame::Redirect { header, cookie, token, uri: uri.into(), tag });
        Ok(())
    }

    /// Returns the address of the client of an unanswered request, the header of an answer of this
    /// kind, and the client's cookie.
    fn request(&self, index: Index, kind: Kind) -> Result<(Address, Header, u64), RequestError> {
        let conn = self.table.get(index.0).ok_or(RequestError::Disconnected)?;
        if conn.state != State::Requested {
            return Err(RequestError::AlreadyAnswered);
        }
        let header = Header { kind, to: conn.peer, from: conn.id, number: conn.number, time: 0 };
        Ok((conn.to, header, self.exchanges.get(&index.0).map_or(0, |exchange| exchange.cookie)))
    }

    /// Returns the tag of the answer that turns a sealed request away; `fields` writes the answer.
    fn deny<H: Host>(&self, index: Index, host: &mut H, fields: impl Fn(&mut [u8]) -> Fields) -> Option<[u8; TAG]> {
        self.table.get(index.0).filter(|conn| conn.has(bit::SEALED))?;
        let fields = fields(&mut [0; CONNECT_SEALED_MIN]);
        host.sealer()?.deny(index, fields.bytes())
    }

    /// Continues a redirected connection at another address.
    pub fn follow(&mut self, now: Time, index: Index, to: Address, token: u64) {
        let Some(conn) = self.table.get_mut(index.0).filter(|conn| conn.state == State::Asking) else { return };
        conn.to = to;
        if let Some(exchange) = self.exchanges.get_mut(&index.0) {
            exchange.on_redirected(now, token);
        }
        self.mark_ready(index.0);
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
    pub(crate) fn begin_closing(&mut self, now: Time, index: u32, body: Box<[u8]>) {
        if let Some(conn) = self.table.get_mut(index) {
            conn.state = State::Closing;
            let mut exchange = Exchange::new(now, HANDSHAKE_TIMEOUT);
            exchange.payload = body;
            self.exchanges.insert(index, exchange);
            mark_conn_ready(conn, index, &mut self.ready);
        }
    }

    /// Writes the next frame of a handshake or a teardown.
    pub(crate) fn transmit_exchange<H: Host>(
        &mut self,
        now: Time,
        index: u32,
        buffer: &mut [u8],
        host: &mut H,
    ) -> Option<Transmit<H::Piece>> {
        let conn = self.table.get_mut(index)?;
        let exchange = self.exchanges.get_mut(&index).filter(|exchange| exchange.due && !exchange.elsewhere)?;
        let state = conn.state;
        if state == State::Asking {
            exchange.choose_address(conn);
        }
        exchange.on_sent(now);
        let len = match state {
            State::Asking => self.emit_connect(now, index, buffer, host),
            State::Accepting => self.emit_accept(now, index, buffer, host),
            _ => {
                header(conn, Kind::Close, now).emit(buffer);
                let end = HEADER + exchange.payload.len();
                buffer[HEADER..end].copy_from_slice(&exchange.payload);
                Some(end)
            }
        };
        let Some(len) = len else {
            // The host refuses to seal.
            if state == State::Asking {
                self.refuse(now, index, Failure::NoMemory, host);
            } else {
                self.break_connection(now, index, Failure::NoMemory, host);
            }
            return None;
        };
        self.table.get(index).map(|conn| plain(conn, len))
    }

    /// What this side offers on a connection.
    fn offer(&self, conn: &Conn, exchange: &Exchange, is_sealed: bool) -> Offer {
        let plain =
            offered(&self.config) & if conn.state == State::Asking || conn.has(bit::UNCHECKED) { !0 } else { 0 };
        Offer {
            features: plain | if is_sealed { features::SEALED } else { 0 },
            first_seq: exchange.first_seq,
            attribute: conn.attribute(),
            mtu: self.config.mtu,
            max_send_size: self.config.max_send_size,
            recv_buffer: self.config.recv_buffer,
            credit: u32::from(u16::MAX),
            host: self.config.machine,
        }
    }

    /// Writes a CONNECT. A sealed one has no payload and no share before the server has shown that
    /// it is there. `None`: the host refuses to seal.
    fn emit_connect<H: Host>(&mut self, now: Time, index: u32, buffer: &mut [u8], host: &mut H) -> Option<usize> {
        let security = host.sealer().map_or(Security::Plain, |sealer| sealer.security());
        let (conn, exchange) = (self.table.get(index)?, self.exchanges.get(&index)?);
        let offer = self.offer(conn, exchange, security != Security::Plain);
        let is_inside = security == Security::Sealed;
        let host_cookie = conn.host_cookie;
        let conn = self.table.get_mut(index)?;
        let exchange = self.exchanges.get_mut(&index)?;
        let mut connect = Connect {
            header: Header { kind: Kind::Connect, to: 0, from: conn.id, number: 0, time: 0 },
            offer,
            token: exchange.token,
            cookie: exchange.cookie,
            cookie_time: exchange.cookie_time,
            payload: if is_inside { &[] } else { &exchange.payload },
            share: Share::None,
        };
        if security != Security::Plain {
            connect.share = Share::Beside(&[0; SHARE]);
            if exchange.cookie != 0 && exchange.share.is_empty() {
                connect.emit(buffer);
                let inside = if is_inside { &exchange.payload[..] } else { &[] };
                let mut share = vec![0; SHARE + inside.len()];
                let fields = Connect::fields(buffer);
                let len = host.sealer()?.begin(Index(index), host_cookie, fields.bytes(), inside, &mut share)?;
                share.truncate(len);
                exchange.share = share.into_boxed_slice();
            }
            if exchange.cookie != 0 {
                connect.share = if is_inside { Share::Inside(&exchange.share) } else { Share::Beside(&exchange.share) };
            }
        }
        connect.header = header(conn, Kind::Connect, now);
        Some(connect.emit(buffer))
    }

    /// Writes an ACCEPT. `None`: the host refuses to seal.
    fn emit_accept<H: Host>(&mut self, now: Time, index: u32, buffer: &mut [u8], host: &mut H) -> Option<usize> {
        let (conn, exchange) = (self.table.get(index)?, self.exchanges.get(&index)?);
        let is_sealed = conn.has(bit::SEALED);
        let offer = self.offer(conn, exchange, is_sealed);
        let conn = self.table.get_mut(index)?;
        let exchange = self.exchanges.get_mut(&index)?;
        let header = header(conn, Kind::Accept, now);
        if is_sealed && exchange.share.is_empty() {
            Accept { header, offer, cookie: 0, share: &[] }.emit(buffer);
            let fields = Accept::fields(buffer);
            let mut share = [0; MAX_SHARE];
            let sealer = host.sealer()?;
            let token = sealer.reset_token(conn.id);
            let len = sealer.answer(Index(index), fields.bytes(), &token, &mut share)?;
            exchange.share = share[..len].into();
        }
        Some(Accept { header, offer, cookie: exchange.cookie, share: &exchange.share }.emit(buffer))
    }

    /// Handles the timers of a connection that is not open.
    pub(crate) fn look_at_exchange<H: Host>(&mut self, now: Time, index: u32, host: &mut H) {
        let Some(state) = self.table.get(index).map(|conn| conn.state) else { return };
        let Some(exchange) = self.exchanges.get_mut(&index) else { return };
        if exchange.deadline <= now {
            match state {
                State::Asking => self.refuse(now, index, Failure::TimedOut, host),
                State::Accepting => {
                    self.mark_answered(now, index, Some(RequestState::GivenUp));
                    self.break_connection(now, index, Failure::TimedOut, host);
                }
                State::Closing => self.remove(now, index, host),
                _ => {}
            }
        } else if exchange.next_at <= now && !exchange.elsewhere {
            if exchange.is_confirmed {
                self.confirm(now, index, host);
            } else if state == State::Closing && exchange.tries >= FAREWELLS {
                self.remove(now, index, host);
            } else if state != State::Requested {
                exchange.due = true;
            }
        }
    }
}
