//! Stateless replies: to strangers, to clients with an unproven address, and to teardowns.

use super::{Engine, Transmit};
use crate::wire::{Close, Header, Kind, Redirect, Reject, Reset, Retry};
use crate::{Address, Time};
use alloc::boxed::Box;

/// Most replies that wait. Further frames get none.
pub(super) const MAX_REPLIES: usize = 64;
/// Bytes of a RESET.
const SHORTEST: usize = 36;

/// A stateless reply.
pub(super) struct Reply {
    to: Address,
    what: Answer,
}

pub(super) enum Answer {
    Retry(Retry),
    Reject(Reject),
    Redirect { header: Header, cookie: u64, token: u64, uri: Box<[u8]> },
    Close(Close),
    Reset(Reset),
}

impl Reply {
    pub(super) fn emit<P>(&self, now: Time, buffer: &mut [u8]) -> Transmit<P> {
        let stamp = |header: Header| Header { time: now.micros(), ..header };
        let len = match &self.what {
            Answer::Retry(retry) => Retry { header: stamp(retry.header), ..*retry }.emit(buffer),
            Answer::Reject(reject) => Reject { header: stamp(reject.header), ..*reject }.emit(buffer),
            Answer::Close(close) => Close { header: stamp(close.header), ..*close }.emit(&[], buffer),
            Answer::Reset(reset) => Reset { header: stamp(reset.header), ..*reset }.emit(buffer),
            Answer::Redirect { header, cookie, token, uri } => {
                Redirect { header: stamp(*header), cookie: *cookie, token: *token, uri }.emit(buffer)
            }
        };
        Transmit { to: self.to, len, piece: None, piece_len: 0, checked: true, probe: false }
    }
}

/// The header of an answer to this one.
pub(super) fn back(header: &Header, kind: Kind) -> Header {
    Header { kind, to: header.from, from: header.to, number: 0, time: 0 }
}

impl Engine {
    /// Answers, unless too many answers wait.
    pub(super) fn reply(&mut self, to: Address, what: Answer) {
        if self.replies.len() < MAX_REPLIES {
            self.replies.push_back(Reply { to, what });
        }
    }

    /// As [`Engine::stray`]; an answer to a farewell is not answered, or two ends that have both
    /// forgotten would go on for ever.
    pub(super) fn stray_opening(&mut self, now: Time, from: &Address, header: &Header, frame: &[u8]) {
        if header.kind == Kind::Close && Close::parse(frame).is_none_or(|(close, ..)| close.is_answer) {
            self.stats.strays += 1;
            return;
        }
        self.stray(now, from, header, frame.len());
    }

    /// Handles a frame for an unknown connection. The reply is not longer than the frame, and
    /// limited in rate.
    pub(super) fn stray(&mut self, now: Time, from: &Address, header: &Header, len: usize) {
        self.stats.strays += 1;
        let answer = match header.kind {
            _ if len < SHORTEST => return,
            Kind::Data | Kind::Accept => {
                Answer::Reset(Reset { header: back(header, Kind::Reset), number: header.number })
            }
            Kind::Close => Answer::Close(Close::answer(back(header, Kind::Close))),
            _ => return,
        };
        if self.reply_limit.take(now, self.cookie_key, from.network()) {
            self.reply(*from, answer);
        }
    }
}
