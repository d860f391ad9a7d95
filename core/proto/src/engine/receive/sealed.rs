//! Input: sealed frames. Each is opened as a whole into the scratch buffer before anything of it is
//! used, so that nothing of a forged frame is.

use super::data::DataFrame;
use crate::engine::connection::conn::{State, bit};
use crate::engine::connection::sealed::Seen;
use crate::engine::host::{Host, Index};
use crate::engine::sealer::Phase;
use crate::engine::state::Engine;
use crate::wire::{Data, HEADER, Kind, Malformed, SealedConfirm, SealedHeader, TAG, flags};
use crate::{Address, Time};
use core::mem::take;

/// Transmissions back to which an acknowledgement may echo. An older one is what the peer knows from
/// the handshake, whose numbers are not authenticated.
const OLDEST_ECHO: u32 = 1 << 24;

impl Engine {
    /// Handles a frame of a kind that is not one of a plain frame.
    pub(super) fn handle_sealed<H: Host>(
        &mut self,
        now: Time,
        from: &Address,
        frame: &[u8],
        congested: bool,
        host: &mut H,
    ) -> Result<(), Malformed> {
        let Some(sealer) = host.sealer() else { return Err(Malformed::Kind) };
        let sealed = SealedHeader::verify(frame)?;
        let header = sealed.header;
        let Some(index) = self.table.find(header.to) else {
            self.stray_sealed(now, from, &header, frame.len(), sealer);
            return Ok(());
        };
        let Some(conn) = self.table.get(index) else { return Ok(()) };
        if conn.peer != header.from || conn.to != *from || !conn.has(bit::SEALED) {
            self.stats.strays += 1;
            self.note_moved(index, from, &header);
            return Ok(());
        }
        if header.kind == Kind::Reset {
            self.handle_sealed_reset(now, index, header, frame, host);
            return Ok(());
        }
        let mut scratch = take(&mut self.scratch);
        let opened = self.open(now, index, &sealed, frame, &mut scratch, host);
        if let Ok(Some(seen)) = opened {
            let body = &scratch[..frame.len() - TAG];
            self.handle_opened(now, index, (&sealed, seen), body, congested, host);
        }
        self.scratch = scratch;
        opened.map(|_| ())
    }

    /// Opens a frame into the scratch buffer. Returns what is known of its number; `None`: it has
    /// come before.
    fn open<H: Host>(
        &mut self,
        now: Time,
        index: u32,
        sealed: &SealedHeader,
        frame: &[u8],
        scratch: &mut alloc::vec::Vec<u8>,
        host: &mut H,
    ) -> Result<Option<(Seen, Phase)>, Malformed> {
        let (seen, phase) = self.sealed.examine(index, sealed.number, sealed.phase);
        if seen == Seen::Before {
            self.stats.replayed += 1;
            return Ok(None);
        }
        let Some(sealer) = host.sealer() else { return Err(Malformed::Kind) };
        if self.sealed.get_mut(index).is_some_and(|conn| conn.take_previous(now)) {
            sealer.forget_previous(Index(index));
            if phase == Phase::Previous {
                self.stats.replayed += 1;
                return Ok(None);
            }
        }
        let len = frame.len() - TAG;
        if scratch.len() < len {
            let more = usize::from(self.config.mtu).max(len) - scratch.len();
            scratch.try_reserve_exact(more).map_err(|_| Malformed::Check)?;
            scratch.resize(scratch.len() + more, 0);
        }
        let Some((head, rest)) = frame.split_first_chunk::<HEADER>() else { return Err(Malformed::Short) };
        if !sealer.open(Index(index), sealed.number, phase, head, rest, &mut scratch[HEADER..len]) {
            self.stats.forged += 1;
            return Err(Malformed::Check);
        }
        scratch[..HEADER].copy_from_slice(head);
        Ok(Some((seen, phase)))
    }

    /// Handles a frame that was opened: its bytes without the tag.
    fn handle_opened<H: Host>(
        &mut self,
        now: Time,
        index: u32,
        (sealed, (seen, phase)): (&SealedHeader, (Seen, Phase)),
        frame: &[u8],
        congested: bool,
        host: &mut H,
    ) {
        let header = sealed.header;
        let data = if header.kind == Kind::Data { Data::parse_after(header, frame) } else { None };
        // The sequence number protects a sequenced frame, however late it comes.
        let is_sequenced = data.as_ref().is_some_and(|(data, ..)| data.flags & flags::SEQUENCED != 0);
        if seen == Seen::Unknown && !is_sequenced {
            self.stats.replayed += 1;
            return;
        }
        self.on_authentic(now, index, sealed, phase, host);
        match (header.kind, data) {
            (Kind::Data, Some((data, sack, records))) => {
                let mut frame = DataFrame { index, data, sack, records, len: frame.len() };
                self.examine_echo(&mut frame);
                self.handle_data(now, &frame, congested, host);
            }
            (Kind::Confirm, _) => {
                let Some(confirm) = SealedConfirm::parse_after(header, frame) else {
                    self.stats.malformed += 1;
                    return;
                };
                if let Some(conn) = self.sealed.get_mut(index) {
                    conn.set_token(confirm.token);
                }
                if let Some(conn) = self.table.get_mut(index).filter(|conn| conn.state == State::Accepting) {
                    conn.track_number(header.number, header.time, now.micros());
                    self.confirm(now, index, host);
                }
            }
            (Kind::Close, _) => self.handle_close(now, index, &header, frame, host),
            _ => self.stats.malformed += 1,
        }
    }

    /// Notes that a frame is the peer's.
    fn on_authentic<H: Host>(&mut self, now: Time, index: u32, sealed: &SealedHeader, phase: Phase, host: &mut H) {
        if phase == Phase::Next
            && let Some(sealer) = host.sealer()
        {
            sealer.advance_receive(Index(index));
        }
        let is_first = self.sealed.get(index).is_some_and(|conn| !conn.has_received());
        if is_first && let Some(conn) = self.table.get_mut(index) {
            conn.forget_numbers();
        }
        self.sealed.note(now, index, sealed.number, phase);
    }

    /// Notes what a frame acknowledges for the phase of what is sent. An acknowledgement that echoes
    /// a number of the handshake counts as one of nothing.
    fn examine_echo(&mut self, frame: &mut DataFrame<'_>) {
        let Some(conn) = self.table.get(frame.index) else { return };
        let echo = &mut frame.data.ack.echo_number;
        let age = conn.number.wrapping_sub(*echo);
        if age == 0 || age > OLDEST_ECHO {
            *echo = conn.number;
        } else if let Some(sealed) = self.sealed.get_mut(frame.index) {
            sealed.on_ack(*echo);
        }
    }
}
