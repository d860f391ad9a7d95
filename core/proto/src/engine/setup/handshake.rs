//! Opens and closes connections. A server keeps no state for a client until the client has returned
//! a cookie, which proves that it receives at its address. An answer is never longer than the frame
//! that it answers.

use super::offer::offered;
use crate::engine::api::{Open, PathMtu, Transmit};
use crate::engine::connection::conn::{Conn, State, bit};
use crate::engine::connection::exchange::Exchange;
use crate::engine::host::{Host, Index};
use crate::engine::send::frame::{header, plain};
use crate::engine::state::{Engine, mark_conn_ready};
use crate::engine::strangers::admission::{Redirection, RequestState};
use crate::engine::strangers::reply::ReplyFrame;
use crate::wire::{Accept, Connect, HEADER, Header, Kind, MAX_URI, Offer, Reason, Reject};
use crate::{Address, ConnectError, Failure, RequestError, Time};
use alloc::boxed::Box;

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
    pub fn reject(&mut self, now: Time, index: Index) -> Result<(), RequestError> {
        let from = self.table.get(index.0).map_or(0, |conn| conn.id);
        let (to, header, cookie) = self.take_request(now, index, RequestState::Rejected { from })?;
        let reject = Reject { header: Header { kind: Kind::Reject, ..header }, reason: Reason::Program, cookie };
        self.reply(to, ReplyFrame::Reject(reject));
        Ok(())
    }

    /// Answers a request by redirecting the client to the endpoint at `uri`, which expects `token`.
    /// The index is free.
    ///
    /// # Errors
    ///
    /// Not an unanswered request, or a URI of no bytes or more than [`MAX_URI`].
    pub fn redirect(&mut self, now: Time, index: Index, uri: &[u8], token: u64) -> Result<(), RequestError> {
        if uri.is_empty() || uri.len() > MAX_URI {
            return Err(RequestError::OtherDevice);
        }
        let from = self.table.get(index.0).map_or(0, |conn| conn.id);
        let state = RequestState::Redirected(Box::new(Redirection { from, token, uri: uri.into() }));
        let (to, header, cookie) = self.take_request(now, index, state)?;
        let header = Header { kind: Kind::Redirect, ..header };
        self.reply(to, ReplyFrame::Redirect { header, cookie, token, uri: uri.into() });
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
        let cookie = self.exchanges.get(&index.0).map_or(0, |exchange| exchange.cookie);
        self.mark_answered(now, index.0, Some(request_state));
        self.remove(now, index.0);
        Ok((to, header, cookie))
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
    pub(crate) fn transmit_exchange<P>(&mut self, now: Time, index: u32, buffer: &mut [u8]) -> Option<Transmit<P>> {
        let conn = self.table.get_mut(index)?;
        let exchange = self.exchanges.get_mut(&index).filter(|exchange| exchange.due && !exchange.elsewhere)?;
        if conn.state == State::Asking {
            exchange.choose_address(conn);
        }
        exchange.on_sent(now);
        let offer = Offer {
            features: offered(&self.config)
                & if conn.state == State::Asking || conn.has(bit::UNCHECKED) { !0 } else { 0 },
            first_seq: exchange.first_seq,
            attribute: conn.attribute(),
            mtu: self.config.mtu,
            max_send_size: self.config.max_send_size,
            recv_buffer: self.config.recv_buffer,
            credit: u32::from(u16::MAX),
            host: self.config.machine,
        };
        let len = match conn.state {
            State::Asking => Connect {
                header: header(conn, Kind::Connect, now),
                offer,
                token: exchange.token,
                cookie: exchange.cookie,
                cookie_time: exchange.cookie_time,
                payload: &exchange.payload,
            }
            .emit(buffer),
            State::Accepting => {
                Accept { header: header(conn, Kind::Accept, now), offer, cookie: exchange.cookie }.emit(buffer)
            }
            _ => {
                header(conn, Kind::Close, now).emit(buffer);
                let end = HEADER + exchange.payload.len();
                buffer[HEADER..end].copy_from_slice(&exchange.payload);
                end
            }
        };
        Some(plain(conn, len))
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
                State::Closing => self.remove(now, index),
                _ => {}
            }
        } else if exchange.next_at <= now && !exchange.elsewhere {
            if exchange.is_confirmed {
                self.confirm(now, index, host);
            } else if state == State::Closing && exchange.tries >= FAREWELLS {
                self.remove(now, index);
            } else if state != State::Requested {
                exchange.due = true;
            }
        }
    }
}
