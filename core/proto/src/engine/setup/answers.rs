//! Frames of handshakes and teardowns that arrive.

use super::offer::take_offer;
use crate::engine::connection::conn::{State, bit};
use crate::engine::connection::exchange::MOST_RETRIES;
use crate::engine::host::{Event, Host, Index};
use crate::engine::sealer::Security;
use crate::engine::state::{Engine, mark_conn_ready};
use crate::engine::strangers::reply::{ReplyFrame, back};
use crate::wire::{
    Accept, Close, Connect, Fields, Header, Kind, Reason, Redirect, Reject, Reset, Retry, SealedReset, TAG,
};
use crate::{Address, Failure, Time};

/// Transmission numbers back to which a RESET may answer a frame.
const RECENT: u32 = 1 << 16;
/// Shares of ACCEPTs that a client examines for each CONNECT that it sends: each takes a
/// Diffie-Hellman.
const MOST_EXAMINED: u32 = 8;

impl Engine {
    /// Handles a frame that is not DATA.
    pub(crate) fn handle_control<H: Host>(
        &mut self,
        now: Time,
        from: &Address,
        header: &Header,
        frame: &[u8],
        host: &mut H,
    ) {
        match header.kind {
            Kind::Connect => {
                return match Connect::parse_after(*header, frame) {
                    Some(connect) => self.on_connect(now, from, &connect, frame, host),
                    None => self.stats.malformed += 1,
                };
            }
            Kind::Reset => {
                return match Reset::parse_after(*header, frame) {
                    Some(reset) => self.on_reset(now, from, &reset, host),
                    None => self.stats.malformed += 1,
                };
            }
            _ => {}
        }
        let Some(index) = self.table.find(header.to) else { return self.stray_control(now, from, header, frame) };
        let Some(conn) = self.table.get_mut(index).filter(|conn| conn.to == *from) else {
            if header.kind == Kind::Retry && self.may_answer(index, from) {
                return self.on_answer(now, index, (from, header), frame, host);
            }
            self.stats.strays += 1;
            self.note_moved(index, from, header);
            return;
        };
        if conn.state == State::Asking {
            return self.on_answer(now, index, (from, header), frame, host);
        }
        if conn.peer != header.from {
            self.stats.strays += 1;
            return;
        }
        if conn.has(bit::SEALED) {
            return self.handle_clear(index, header.kind);
        }
        match header.kind {
            Kind::Accept if conn.state == State::Open => {
                conn.set(bit::CONFIRM);
                mark_conn_ready(conn, index, &mut self.ready);
            }
            Kind::Confirm if conn.state == State::Accepting => {
                conn.track_number(header.number, header.time, now.micros());
                self.confirm(now, index, host);
            }
            Kind::Close => self.handle_close(now, index, header, frame, host),
            _ => {}
        }
    }

    /// Opens the connection of a client that has received the ACCEPT. Without room for the event
    /// the host is asked again. Frames of the client are dropped meanwhile, and retransmitted.
    pub(crate) fn confirm<H: Host>(&mut self, now: Time, index: u32, host: &mut H) {
        self.mark_answered(now, index, None);
        let Some(conn) = self.table.get_mut(index) else { return };
        let max_send_size = self.small_peers.largest(conn, index, self.config.max_send_size);
        let (host_cookie, peer) = (conn.host_cookie, conn.to);
        if host.event(Index(index), host_cookie, Event::Open { max_send_size, peer }) {
            conn.state = State::Open;
            self.exchanges.remove(&index);
        } else if let Some(exchange) = self.exchanges.get_mut(&index) {
            exchange.on_confirmed(now);
        }
        self.arm(now, index);
    }

    /// Handles an answer to this side's CONNECT.
    fn on_answer<H: Host>(
        &mut self,
        now: Time,
        index: u32,
        (from, header): (&Address, &Header),
        frame: &[u8],
        host: &mut H,
    ) {
        let Some(conn) = self.table.get_mut(index) else { return };
        let Some(exchange) = self.exchanges.get_mut(&index) else { return };
        match header.kind {
            Kind::Retry => {
                if let Some(retry) = Retry::parse_after(*header, frame) {
                    exchange.on_cookie(conn, from, (retry.cookie, retry.cookie_time));
                    exchange.retries += 1;
                    // Nobody makes this side send more than a few: the next goes in its time.
                    if exchange.retries <= MOST_RETRIES {
                        exchange.due = true;
                        mark_conn_ready(conn, index, &mut self.ready);
                    }
                }
            }
            Kind::Accept => {
                let Some(accept) =
                    Accept::parse_after(*header, frame).filter(|accept| accept.offer.attribute == conn.attribute())
                else {
                    self.stats.malformed += 1;
                    return;
                };
                if !exchange.has_shown(accept.cookie) {
                    self.stats.strays += 1;
                    return;
                }
                let token = match self.examine_accept(index, &accept, frame, host) {
                    Ok(token) => token,
                    Err(()) => return,
                };
                let Some(conn) = self.table.get_mut(index) else { return };
                conn.peer = header.from;
                conn.state = State::Open;
                conn.track_number(header.number, header.time, now.micros());
                if let Some(token) = token {
                    conn.set(bit::SEALED);
                    if let Some(sealed) = self.sealed.get_mut(index) {
                        sealed.set_token(token);
                    }
                }
                take_offer(conn, &accept.offer, &self.config);
                let own = self.config.max_send_size;
                self.small_peers.note(conn, index, accept.offer.max_send_size, own);
                let (id, is_sealed) = (conn.id, conn.has(bit::SEALED));
                conn.set(bit::CONFIRM);
                mark_conn_ready(conn, index, &mut self.ready);
                let max_send_size = self.small_peers.largest(conn, index, own);
                let (host_cookie, peer) = (conn.host_cookie, conn.to);
                self.exchanges.remove(&index);
                if is_sealed {
                    self.reply(peer, ReplyFrame::Sealed { index, id, kind: Kind::Confirm });
                }
                host.event(Index(index), host_cookie, Event::Open { max_send_size, peer });
                self.arm(now, index);
            }
            Kind::Reject => {
                if let Some(reject) =
                    Reject::parse_after(*header, frame).filter(|reject| exchange.has_shown(reject.cookie))
                {
                    exchange.is_security |= matches!(reject.reason, Reason::Attribute | Reason::Security);
                    if !self.believes(index, &Reject::fields(frame), reject.tag, host) {
                        return;
                    }
                    let failure = match reject.reason {
                        Reason::Program | Reason::Attribute | Reason::Security => Failure::Refused,
                        Reason::Version => Failure::Protocol,
                        Reason::Resources => Failure::NoMemory,
                    };
                    self.refuse(now, index, failure, host);
                }
            }
            Kind::Redirect => {
                if let Some(redirect) =
                    Redirect::parse_after(*header, frame).filter(|redirect| exchange.has_shown(redirect.cookie))
                    && !exchange.elsewhere
                {
                    let host_cookie = conn.host_cookie;
                    if !self.believes(index, &Redirect::fields(frame), redirect.tag, host) {
                        return;
                    }
                    if let Some(exchange) = self.exchanges.get_mut(&index) {
                        exchange.elsewhere = true;
                    }
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

    /// Examines the share of an ACCEPT. Returns the peer's reset token, or `None` for a plain
    /// connection.
    ///
    /// # Errors
    ///
    /// The ACCEPT is not believed, and nothing has changed.
    fn examine_accept<H: Host>(
        &mut self,
        index: u32,
        accept: &Accept<'_>,
        frame: &[u8],
        host: &mut H,
    ) -> Result<Option<[u8; TAG]>, ()> {
        let exchange = self.exchanges.get_mut(&index).ok_or(())?;
        let sealer = host.sealer();
        if accept.share.is_empty() {
            if sealer.is_some_and(|sealer| sealer.security() == Security::Sealed) {
                self.stats.clear += 1;
                exchange.is_security = true;
                return Err(());
            }
            return Ok(None);
        }
        let Some(sealer) = sealer.filter(|_| !exchange.share.is_empty()) else {
            self.stats.malformed += 1;
            return Err(());
        };
        exchange.examined += 1;
        let fields = Accept::fields(frame);
        let is_excessive = exchange.examined > MOST_EXAMINED;
        let token = if is_excessive { None } else { sealer.finish(Index(index), fields.bytes(), accept.share) };
        if token.is_none() {
            self.stats.forged += 1;
            return Err(());
        }
        if !self.sealed.begin(index) {
            // As if the ACCEPT had not come: it comes again.
            return Err(());
        }
        Ok(token)
    }

    /// Returns whether a client believes that it is turned away: of a sealed request only with the
    /// tag of the server.
    fn believes<H: Host>(&mut self, index: u32, fields: &Fields, tag: Option<[u8; TAG]>, host: &mut H) -> bool {
        let Some(sealer) = host.sealer() else { return tag.is_none() };
        let Some(tag) = tag else {
            let is_plain = sealer.security() != Security::Sealed;
            self.stats.clear += u64::from(!is_plain);
            return is_plain;
        };
        let is_right = sealer.is_denied(Index(index), fields.bytes(), &tag);
        self.stats.forged += u64::from(!is_right);
        is_right
    }

    /// Drops a frame in clear for a sealed connection. An ACCEPT that comes again before the server
    /// has received anything has the client confirm again, and nothing else.
    #[cold]
    pub(crate) fn handle_clear(&mut self, index: u32, kind: Kind) {
        self.stats.clear += 1;
        let Some(conn) = self.table.get(index).filter(|conn| conn.state == State::Open) else { return };
        if kind == Kind::Accept && self.sealed.get(index).is_some_and(|sealed| !sealed.has_received()) {
            self.reply(conn.to, ReplyFrame::Sealed { index, id: conn.id, kind: Kind::Confirm });
        }
    }

    /// Handles a CLOSE of the peer.
    pub(crate) fn handle_close<H: Host>(&mut self, now: Time, index: u32, header: &Header, frame: &[u8], host: &mut H) {
        let Some((close, sack, records)) = Close::parse_after(*header, frame) else {
            self.stats.malformed += 1;
            return;
        };
        let Some(conn) = self.table.get(index) else { return };
        let (state, to) = (conn.state, conn.to);
        if !close.is_answer {
            let frame = if conn.has(bit::SEALED) {
                ReplyFrame::Sealed { index, id: conn.id, kind: Kind::Close }
            } else {
                ReplyFrame::Close(Close::answer(back(header, Kind::Close)))
            };
            self.reply(to, frame);
        }
        match state {
            State::Closing => self.remove(now, index, host),
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
        if conn.has(bit::SEALED) {
            return self.handle_clear(index, Kind::Reset);
        }
        self.on_forgotten(now, index, host);
    }

    /// Handles a sealed RESET. It counts only with the token that the peer has given under seal.
    pub(crate) fn handle_sealed_reset<H: Host>(
        &mut self,
        now: Time,
        index: u32,
        header: Header,
        frame: &[u8],
        host: &mut H,
    ) {
        let Some(reset) = SealedReset::parse_after(header, frame) else {
            self.stats.malformed += 1;
            return;
        };
        let Some(conn) = self.table.get(index) else { return };
        let age = conn.number.wrapping_sub(reset.number);
        let is_token = self.sealed_conn(index).is_some_and(|sealed| sealed.is_token(&reset.token));
        if !is_token || age == 0 || age > RECENT {
            self.stats.forged += 1;
            return;
        }
        self.on_forgotten(now, index, host);
    }

    /// The peer has no such connection any more.
    fn on_forgotten<H: Host>(&mut self, now: Time, index: u32, host: &mut H) {
        match self.table.get(index).map(|conn| conn.state) {
            Some(State::Open | State::Accepting) => {
                self.break_connection(now, index, Failure::Disconnected, host);
            }
            Some(State::Closing) => self.remove(now, index, host),
            _ => {}
        }
    }
}
