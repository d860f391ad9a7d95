//! Output of sealed connections: which number and key a frame gets. The driver seals it.

use super::frame::{header, plain};
use crate::engine::api::Transmit;
use crate::engine::connection::conn::{Conn, State, bit};
use crate::engine::connection::sealed::SealedConns;
use crate::engine::host::{Host, Index};
use crate::engine::sealer::Seal;
use crate::engine::state::{Engine, mark_conn_ready};
use crate::engine::strangers::reply::{Reply, ReplyFrame};
use crate::wire::{Close, Kind, SealedConfirm};
use crate::{Failure, Time};

impl Engine {
    /// Has a frame of a connection sealed, if the connection is. Returns false if the frame must not
    /// be sent: the connection has broken, since its peer has acknowledged nothing for too long.
    pub(super) fn seal<H: Host>(
        &mut self,
        now: Time,
        index: u32,
        transmit: &mut Transmit<H::Piece>,
        host: &mut H,
    ) -> bool {
        let Some(conn) = self.table.get_mut(index) else { return true };
        // Frames of the handshake are in clear.
        if !conn.has(bit::SEALED) || matches!(conn.state, State::Asking | State::Requested | State::Accepting) {
            return true;
        }
        let number = conn.number.wrapping_sub(1);
        transmit.seal = next_seal(&mut self.sealed, now, index, conn, number, host);
        if transmit.seal.is_none() {
            self.break_connection(now, index, Failure::TimedOut, host);
        }
        transmit.seal.is_some()
    }

    /// Writes an answer that a sealed connection gives at once: CONFIRM, or an answer to CLOSE.
    #[cold]
    pub(super) fn emit_sealed_reply<H: Host>(
        &mut self,
        now: Time,
        reply: &Reply,
        buffer: &mut [u8],
        host: &mut H,
    ) -> Option<Transmit<H::Piece>> {
        let ReplyFrame::Sealed { index, id, kind } = reply.frame else { return None };
        let conn = self.table.get_mut(index).filter(|conn| conn.id == id && conn.has(bit::SEALED))?;
        let header = header(conn, kind, now);
        let len = if kind == Kind::Confirm {
            conn.clear(bit::CONFIRM);
            SealedConfirm { header, token: host.sealer()?.reset_token(id) }.emit(buffer)
        } else {
            Close::answer(header).emit(&[], buffer)
        };
        let transmit = plain(conn, len);
        let seal = next_seal(&mut self.sealed, now, index, conn, header.number, host)?;
        if conn.has(bit::PING) {
            mark_conn_ready(conn, index, &mut self.ready);
        }
        Some(Transmit { seal: Some(seal), ..transmit })
    }
}

/// Returns how the frame of a sealed connection with this number is sealed, and derives a new key if
/// it is time. Has the peer asked for the acknowledgement that a new key needs. `None`: the frame
/// must not be sent.
pub(super) fn next_seal<H: Host>(
    sealed: &mut SealedConns,
    now: Time,
    index: u32,
    conn: &mut Conn,
    number: u32,
    host: &mut H,
) -> Option<Seal> {
    let sealer = host.sealer()?;
    let next = sealed.get_mut(index)?.next(now, number, sealer.frames_per_key())?;
    if next.is_new_phase {
        sealer.advance_send(Index(index));
    }
    if next.asks {
        conn.set(bit::PING);
    }
    Some(Seal { index: Index(index), number: next.number, phase: next.phase })
}
