//! Frames of handshakes and teardowns that arrive.

use super::offer::take_offer;
use crate::engine::connection::conn::{State, bit};
use crate::engine::connection::exchange::MOST_RETRIES;
use crate::engine::host::{Event, Host, Index};
use crate::engine::state::{Engine, mark_conn_ready};
use crate::engine::strangers::reply::{ReplyFrame, back};
use crate::wire::{Accept, Close, Connect, Header, Kind, Reason, Redirect, Reject, Reset, Retry};
use crate::{Address, Failure, Time};

/// Transmission numbers back to which a RESET may answer a frame.
const RECENT: u32 = 1 << 16;

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
                    Some(connect) => self.on_connect(now, from, &connect, host),
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
        match header.kind {
            Kind::Accept if conn.state == State::Open => {
                conn.set(bit::CONFIRM);
                mark_conn_ready(conn, index, &mut self.ready);
            }
            Kind::Confirm if conn.state == State::Accepting => {
                conn.track_number(header.number, header.time, now.micros());
                self.confirm(now, index, host);
            }
            Kind::Close => self.on_close(now, index, header, frame, host),
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
                conn.peer = header.from;
                conn.state = State::Open;
                conn.track_number(header.number, header.time, now.micros());
                take_offer(conn, &accept.offer, &self.config);
                let own = self.config.max_send_size;
                self.small_peers.note(conn, index, accept.offer.max_send_size, own);
                conn.set(bit::CONFIRM);
                mark_conn_ready(conn, index, &mut self.ready);
                let max_send_size = self.small_peers.largest(conn, index, own);
                let (host_cookie, peer) = (conn.host_cookie, conn.to);
                self.exchanges.remove(&index);
                host.event(Index(index), host_cookie, Event::Open { max_send_size, peer });
                self.arm(now, index);
            }
            Kind::Reject => {
                if let Some(reject) =
                    Reject::parse_after(*header, frame).filter(|reject| exchange.has_shown(reject.cookie))
                {
                    let failure = match reject.reason {
                        Reason::Program | Reason::Attribute => Failure::Refused,
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
                    exchange.elsewhere = true;
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

    fn on_close<H: Host>(&mut self, now: Time, index: u32, header: &Header, frame: &[u8], host: &mut H) {
        let Some((close, sack, records)) = Close::parse_after(*header, frame) else {
            self.stats.malformed += 1;
            return;
        };
        let Some(conn) = self.table.get(index) else { return };
        let (state, to) = (conn.state, conn.to);
        if !close.is_answer {
            let frame = ReplyFrame::Close(Close::answer(back(header, Kind::Close)));
            self.reply(to, frame);
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
