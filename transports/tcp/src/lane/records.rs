//! Receiving records: from the stream into the endpoint's buffer for records, opened into its
//! buffer for frames, and handled there.

use super::shared::{Cause, Shared};
use super::{Lane, Phase};
use crate::seal::whole;
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
        let mut cipher = s.take_cipher().ok_or(Errno::AGAIN)?;
        let received = self.fill(&mut cipher);
        if let Ok((end, _, _)) = received
            && let Some(mut scratch) = s.take_scratch()
        {
            self.open_records(s, core, &cipher[..end], &mut scratch);
            s.put_scratch(scratch);
        }
        s.put_cipher(cipher);
        received.map(|(_, count, is_all)| (count, is_all))
    }

    /// Reads sealed bytes behind those that were kept. Returns where they end, how many are new,
    /// and whether the stream has no more. Whole records that a message without a slot has held
    /// back come before anything new.
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
        while let Some(seal) = &mut self.seal {
            let next = seal.open_next(&mut s.sealing, &bytes[at..], &mut scratch[end..]);
            if let Ok(Some((used, len))) = next {
                (at, end) = (at + used, end + len);
                continue;
            }
            // Nothing more is whole, or no room is left for it.
            let handled = self.handle_text(s, core, scratch, &mut end);
            if let Err(refused) = next {
                self.on_refused(s, refused);
            }
            if handled == 0 || self.phase != Phase::Open || self.is_stalled() {
                break;
            }
        }
        self.keep(s, &scratch[..end]);
        if let Some(seal) = &mut self.seal {
            seal.keep(&mut s.sealing, &bytes[at..]);
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

    /// A record was not opened: the lane ends.
    #[cold]
    pub(crate) fn on_refused(&mut self, s: &mut Shared, refused: Refused) {
        match refused {
            Refused::Forged | Refused::Length => {
                if let Some(sealing) = &mut s.sealing {
                    sealing.forged += 1;
                }
                self.end(s, Cause::Forged);
            }
            refused => {
                let peer = self.peer_uri();
                self.end(s, Cause::System(format!("no record of {peer} can be opened any more: {refused}")));
            }
        }
    }
}
