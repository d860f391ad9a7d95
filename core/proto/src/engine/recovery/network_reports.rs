//! Reports of the network: a path carries smaller frames only, or a peer is unreachable.
//!
//! For an open connection, "unreachable" from this host is final: no socket listens there any more.
//! A router or the peer's host may report it for a moment only, while a firewall is loaded. So the
//! peer is probed, and the connection ends when nothing but "unreachable" has arrived for a time.

use super::mtu;
use super::timeout::is_overdue;
use crate::engine::connection::conn::{State, bit};
use crate::engine::connection::sealed::OVERHEAD;
use crate::engine::connection::unreachable::Unreachable;
use crate::engine::host::Host;
use crate::engine::state::{Engine, mark_conn_ready};
use crate::wire::{Header, SealedHeader};
use crate::{Address, Failure, Time};

impl Engine {
    /// Handles a report that `to` is unreachable, which quotes one of our frames. It counts only if
    /// it quotes both identifiers of a connection to that address. `is_own`: an address of this
    /// host reports it, and an open connection ends at once. Otherwise the peer is probed for a
    /// while.
    pub fn handle_unreachable<H: Host>(&mut self, now: Time, to: &Address, quoted: &[u8], is_own: bool, host: &mut H) {
        let Some(index) = self.quoted(to, quoted) else { return };
        if self.table.get(index).is_some_and(|conn| conn.has(bit::SEALED)) {
            return self.probe_sealed(now, index, host);
        }
        match self.table.get(index).map(|conn| conn.state) {
            Some(State::Asking) => self.leave_address(now, index, to, host),
            Some(State::Open) if !is_own => self.note_unreachable(now, index, host),
            Some(State::Open | State::Accepting) => self.break_connection(now, index, Failure::Disconnected, host),
            Some(State::Closing) => self.remove(now, index, host),
            _ => {}
        }
    }

    /// Probes the peer of a sealed connection that somebody calls unreachable. Nothing else
    /// follows, as anybody can say so, but in a patient engine, to which no other word of its end
    /// comes: there it counts once the peer has been silent for as long as others wait.
    fn probe_sealed<H: Host>(&mut self, now: Time, index: u32, host: &mut H) {
        let Some(conn) = self.table.get_mut(index).filter(|conn| conn.state == State::Open) else { return };
        let patient = self.config.patient;
        if patient && self.flows.get(conn.flow).is_some_and(|flow| is_overdue(now, conn, flow)) {
            return self.break_connection(now, index, Failure::TimedOut, host);
        }
        conn.set(bit::PING);
        mark_conn_ready(conn, index, &mut self.ready);
    }

    /// Ends what can never end otherwise, because no frame leaves or arrives any more for the
    /// addresses that this `concerns`: connects are refused, and connections break. Requests wait
    /// for the program's answer.
    pub fn handle_down<H: Host>(&mut self, now: Time, concerns: fn(&Address) -> bool, host: &mut H) {
        for index in 0..self.table.end() {
            match self.table.get(index).filter(|conn| concerns(&conn.to)).map(|conn| conn.state) {
                Some(State::Asking) => self.refuse(now, index, Failure::Refused, host),
                Some(State::Open | State::Accepting) => {
                    self.break_connection(now, index, Failure::Disconnected, host);
                }
                Some(State::Closing) => self.remove(now, index, host),
                _ => {}
            }
        }
    }

    /// Handles a report that the path to `to` carries frames of at most `limit` bytes, with a
    /// quoted frame of ours. Limits below the base of that path count as the base.
    pub fn handle_too_big(&mut self, to: &Address, quoted: &[u8], limit: u16) {
        if let Some(index) = self.quoted(to, quoted)
            && let Some(conn) = self.table.get_mut(index).filter(|conn| conn.to == *to)
        {
            let overhead = if conn.has(bit::SEALED) { OVERHEAD } else { 0 };
            let limit = limit.saturating_sub(overhead).max(conn.base_mtu);
            mtu::shrink(conn, self.flows.get_mut(conn.flow), limit);
        }
    }

    /// Returns the connection whose frame the network quotes.
    fn quoted(&self, to: &Address, quoted: &[u8]) -> Option<u32> {
        let sealed = || SealedHeader::parse(quoted).map(|sealed| sealed.header);
        let header = Header::parse(quoted).or_else(sealed)?;
        let index = self.table.find(header.from)?;
        let conn = self.table.get(index)?;
        let is_peer = conn.to == *to || self.may_answer(index, to);
        (is_peer && conn.peer == header.to).then_some(index)
    }

    /// Has a connect ask at the other addresses of its host: nobody listens at this one.
    fn leave_address<H: Host>(&mut self, now: Time, index: u32, to: &Address, host: &mut H) {
        let (Some(conn), Some(exchange)) = (self.table.get_mut(index), self.exchanges.get_mut(&index)) else { return };
        if exchange.leave_address(conn, to) {
            self.mark_ready(index);
        } else {
            self.refuse(now, index, Failure::Refused, host);
        }
    }

    /// Notes that the peer of an open connection was reported from elsewhere as unreachable.
    fn note_unreachable<H: Host>(&mut self, now: Time, index: u32, host: &mut H) {
        let reports = self.unreachable.entry(index).or_insert_with(|| Unreachable::new(now));
        if reports.on_report(now) {
            return self.break_connection(now, index, Failure::Disconnected, host);
        }
        self.arm(now, index);
    }

    /// Probes a peer that is reported as unreachable when it is time. Returns whether it was for
    /// long enough, so that the connection ends.
    pub(super) fn check_unreachable(&mut self, now: Time, index: u32) -> bool {
        let Some(reports) = self.unreachable.get_mut(&index) else { return false };
        if reports.is_over(now) {
            self.unreachable.remove(&index);
            return false;
        }
        if reports.is_final(now) {
            return true;
        }
        let Some(conn) = self.table.get_mut(index).filter(|conn| conn.state == State::Open) else { return false };
        if reports.take_probe(now) {
            conn.set(bit::PING);
        }
        false
    }
}
