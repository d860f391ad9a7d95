//! Receiving records: from the stream into the endpoint's buffer for records, opened into its
//! buffer for frames, and handled there.

use super::Sealed;
use super::record::{LEN, OVERHEAD, whole};
use crate::lane::shared::{Cause, Shared};
use crate::lane::{Lane, Phase};
use crate::sys;
use cci_mem::pages::Pages;
use cci_seal::Refused;
use cci_transport::Core;
use rustix::io::{Errno, Result};

impl Lane {
    /// Whether what comes on the stream now are records.
    #[inline]
    pub(crate) fn is_sealed(&self) -> bool {
        self.seal.as_ref().is_some_and(|seal| seal.is_open())
    }

    /// Reads records. Returns the number of bytes, and whether the stream has no more.
    pub(crate) fn receive_records(&mut self, s: &mut Shared, core: &mut Core) -> Result<(usize, bool)> {
        let Some(mut cipher) = s.sealing.as_mut().and_then(|sealing| sealing.cipher.take()) else {
            return Err(Errno::AGAIN);
        };
        let received = self.fill(&mut cipher);
        if let Ok((end, _, _)) = received
            && let Some(mut scratch) = s.take_scratch()
        {
            self.open_records(s, core, &cipher[..end], &mut scratch);
            s.put_scratch(scratch);
        }
        if let Some(sealing) = &mut s.sealing {
            sealing.cipher = Some(cipher);
        }
        received.map(|(_, count, is_all)| (count, is_all))
    }

    /// Reads sealed bytes behind those that were kept. Returns where they end, how many are new, and
    /// whether the stream has no more. Whole records that a message without a slot has held back
    /// come before anything new.
    fn fill(&mut self, cipher: &mut Pages) -> Result<(usize, usize, bool)> {
        let (Some(socket), Some(seal)) = (&self.socket, &self.seal) else { return Err(Errno::PIPE) };
        let kept = seal.kept();
        if !matches!(whole(kept), Ok(None)) {
            cipher[..kept.len()].copy_from_slice(kept);
            return Ok((kept.len(), kept.len(), false));
        }
        let room = cipher.len() - kept.len();
        let count = sys::receive(socket, &mut cipher[kept.len()..])?;
        if count == 0 {
            return Ok((0, 0, true));
        }
        cipher[..kept.len()].copy_from_slice(kept);
        Ok((kept.len() + count, count, count < room))
    }

    /// Opens records, and handles what is in them.
    fn open_records(&mut self, s: &mut Shared, core: &mut Core, bytes: &[u8], scratch: &mut Pages) {
        if bytes.is_empty() {
            return;
        }
        let mut end = self.take_carry(scratch);
        let mut at = 0;
        loop {
            let next = whole(&bytes[at..]);
            if let (Ok(Some(len)), Some(seal)) = (next, &mut self.seal)
                && end + len <= scratch.len()
            {
                let record = &bytes[at..at + len + OVERHEAD];
                let opened = open(seal, s, record, &mut scratch[end..end + len]);
                if opened.is_ok() {
                    (at, end) = (at + record.len(), end + len);
                    continue;
                }
                self.handle_text(s, core, scratch, &mut end);
                self.on_refused(s, opened);
                break;
            }
            let handled = self.handle_text(s, core, scratch, &mut end);
            if let Err(refused) = next {
                self.on_refused(s, Err(refused));
            }
            let goes_on = self.phase == Phase::Open && !self.is_stalled() && handled > 0;
            if next == Ok(None) || !goes_on {
                break;
            }
        }
        self.keep(s, &scratch[..end]);
        if let Some(seal) = &mut self.seal {
            seal.keep(s, &bytes[at..]);
        }
    }

    /// Handles text, and moves what is the beginning of a frame to the front. Returns how much was
    /// handled.
    fn handle_text(&mut self, s: &mut Shared, core: &mut Core, scratch: &mut Pages, end: &mut usize) -> usize {
        let used = self.handle_bytes(s, core, &scratch[..*end]);
        scratch.copy_within(used..*end, 0);
        *end -= used;
        used
    }

    /// A record was not opened: the stream ends.
    #[cold]
    fn on_refused(&mut self, s: &mut Shared, opened: std::result::Result<(), Refused>) {
        let Err(refused) = opened else { return };
        match refused {
            Refused::Forged | Refused::Length => self.on_forged(s),
            refused => {
                let peer = self.peer_uri();
                self.end(s, Cause::System(format!("no record of {peer} can be opened any more: {refused}")));
            }
        }
    }

    /// Something on the stream is forged: it ends.
    #[cold]
    pub(super) fn on_forged(&mut self, s: &mut Shared) {
        if let Some(sealing) = &mut s.sealing {
            sealing.forged += 1;
        }
        self.end(s, Cause::Forged);
    }
}

fn open(seal: &mut Sealed, s: &mut Shared, record: &[u8], text: &mut [u8]) -> std::result::Result<(), Refused> {
    let (head, sealed) = record.split_first_chunk::<LEN>().ok_or(Refused::Length)?;
    seal.open(s, *head, sealed, text)
}
