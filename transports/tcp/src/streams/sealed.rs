//! Further streams that are sealed: their handshake, and receiving parts by records.

use super::collect::wanted_head;
use crate::frame::HELLO;
use crate::lane::Lane;
use crate::lane::further::StreamPhase;
use crate::lane::shared::Shared;
use crate::seal::SHARE;
use crate::sys;
use cci_transport::Core;
use rustix::io::Errno;

impl Lane {
    /// Reads the answer to the handshake of a further stream, behind the peer's HELLO.
    pub(super) fn finish_stream(&mut self, s: &mut Shared, index: usize) {
        let Some(stream) = self.stream(index) else { return };
        let (Some(socket), Some(seal)) = (&stream.socket, &mut stream.seal) else { return };
        let mut share = [0; SHARE];
        let had = seal.kept().len();
        share[..had].copy_from_slice(seal.kept());
        let received = sys::receive(socket, &mut share[had..]);
        match received {
            Ok(count @ 1..) => seal.keep(s, &share[..had + count]),
            Err(Errno::AGAIN | Errno::INTR) => return,
            Ok(0) => return self.on_stream_failed(s, index, "the peer closes it"),
            Err(error) => return self.on_stream_failed(s, index, &std::io::Error::from(error).to_string()),
        }
        if seal.kept().len() < SHARE {
            return;
        }
        seal.keep(s, &[]);
        let hello = stream.head.first_chunk::<HELLO>();
        let finished = hello.and_then(|hello| s.sealing.as_mut()?.finish(seal, hello, &share).ok());
        let Some(open) = finished else {
            return self.on_stream_failed(s, index, "the answer to its handshake is forged");
        };
        (stream.phase, stream.head_len, stream.seal) = (StreamPhase::Open, 0, Some(Box::new(open)));
        self.activate(s);
    }

    /// Reads records of a further stream. Returns how many bytes there were.
    pub(super) fn receive_sealed_parts(
        &mut self,
        s: &mut Shared,
        core: &mut Core,
        index: usize,
    ) -> Result<usize, Errno> {
        let stream = self.stream(index).ok_or(Errno::PIPE)?;
        let (Some(socket), Some(seal)) = (&stream.socket, &stream.seal) else { return Err(Errno::PIPE) };
        let mut cipher = s.take_cipher().ok_or(Errno::AGAIN)?;
        let had = seal.kept().len();
        let received = sys::receive(socket, &mut cipher[had..]);
        let mut handled = Ok(());
        if let Ok(count @ 1..) = received
            && let Some(mut scratch) = s.take_scratch()
        {
            cipher[..had].copy_from_slice(seal.kept());
            handled = self.open_parts(s, core, index, &cipher[..had + count], &mut scratch);
            s.put_scratch(scratch);
        }
        s.put_cipher(cipher);
        handled?;
        received
    }

    /// Opens records of a further stream, and handles their parts.
    fn open_parts(
        &mut self,
        s: &mut Shared,
        core: &mut Core,
        index: usize,
        bytes: &[u8],
        scratch: &mut [u8],
    ) -> Result<(), Errno> {
        let mut at = 0;
        while let Some(seal) = self.stream(index).and_then(|stream| stream.seal.as_mut()) {
            match seal.open_next(s, &bytes[at..], scratch) {
                Ok(Some((used, len))) => {
                    at += used;
                    self.on_part_text(s, core, index, &scratch[..len])?;
                }
                Ok(None) => {
                    seal.keep(s, &bytes[at..]);
                    return Ok(());
                }
                Err(refused) => {
                    self.on_refused(s, refused);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Handles text of a further stream.
    fn on_part_text(&mut self, s: &mut Shared, core: &mut Core, index: usize, mut text: &[u8]) -> Result<(), Errno> {
        while !text.is_empty() {
            let stream = self.stream(index).ok_or(Errno::PIPE)?;
            if stream.left > 0 {
                let part = stream.part.ok_or(Errno::PROTO)?;
                let (bytes, rest) = text.split_at(text.len().min(stream.left));
                let mut sum = stream.sum.take();
                self.store_part(s, core, part, bytes, sum.as_mut());
                self.on_part_bytes(s, core, index, (part, bytes.len(), sum));
                text = rest;
            } else {
                let wanted = wanted_head(stream, s.max_send_size)? - stream.head_len;
                let (bytes, rest) = text.split_at(text.len().min(wanted));
                stream.head[stream.head_len..][..bytes.len()].copy_from_slice(bytes);
                stream.head_len += bytes.len();
                self.on_part_head(s, index)?;
                text = rest;
            }
        }
        Ok(())
    }
}
