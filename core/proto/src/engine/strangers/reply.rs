//! Stateless replies: to strangers, to clients with an unproven address, and to teardowns.

use crate::engine::api::Transmit;
use crate::wire::{Close, Header, Kind, Redirect, Reject, Reset, Retry, SealedReset, TAG};
use crate::{Address, Time};
use alloc::boxed::Box;

/// Most replies that wait. Further frames get none.
pub(crate) const MAX_REPLIES: usize = 64;

/// A stateless reply.
pub(crate) struct Reply {
    pub(crate) to: Address,
    pub(crate) frame: ReplyFrame,
}

/// What a reply sends.
pub(crate) enum ReplyFrame {
    Retry(Retry),
    Reject(Reject),
    Redirect {
        header: Header,
        cookie: u64,
        token: u64,
        uri: Box<[u8]>,
        tag: Option<[u8; TAG]>,
    },
    Close(Close),
    Reset(Reset),
    SealedReset(SealedReset),
    /// A frame of a sealed connection, if there still is this one: CONFIRM, or an answer to CLOSE.
    Sealed {
        index: u32,
        id: u64,
        kind: Kind,
    },
}

impl Reply {
    /// Writes the frame. `None`: it is one of a connection.
    pub(crate) fn emit<P>(&self, now: Time, buffer: &mut [u8]) -> Option<Transmit<P>> {
        let stamp = |header: Header| Header { time: now.micros(), ..header };
        let len = match &self.frame {
            ReplyFrame::Retry(retry) => Retry { header: stamp(retry.header), ..*retry }.emit(buffer),
            ReplyFrame::Reject(reject) => Reject { header: stamp(reject.header), ..*reject }.emit(buffer),
            ReplyFrame::Close(close) => Close { header: stamp(close.header), ..*close }.emit(&[], buffer),
            ReplyFrame::Reset(reset) => Reset { header: stamp(reset.header), ..*reset }.emit(buffer),
            ReplyFrame::Redirect { header, cookie, token, uri, tag } => {
                Redirect { header: stamp(*header), cookie: *cookie, token: *token, uri, tag: *tag }.emit(buffer)
            }
            ReplyFrame::SealedReset(reset) => SealedReset { header: stamp(reset.header), ..*reset }.emit(buffer),
            ReplyFrame::Sealed { .. } => return None,
        };
        Some(Transmit { to: self.to, len, piece: None, piece_len: 0, checked: true, probe: false, seal: None })
    }
}

/// Returns the header of a reply to a frame with this one.
pub(crate) fn back(header: &Header, kind: Kind) -> Header {
    Header { kind, to: header.from, from: header.to, number: 0, time: 0 }
}
