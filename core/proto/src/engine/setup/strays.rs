//! Frames for unknown connections, and the replies to them.

use crate::engine::sealer::Sealer;
use crate::engine::state::Engine;
use crate::engine::strangers::reply::{MAX_REPLIES, Reply, ReplyFrame, back};
use crate::wire::{Close, Header, Kind, Reset, SealedReset};
use crate::{Address, Time};

/// Bytes of a RESET.
const SHORTEST: usize = 36;

impl Engine {
    /// Answers, unless too many answers wait.
    pub(crate) fn reply(&mut self, to: Address, frame: ReplyFrame) {
        if self.replies.len() < MAX_REPLIES {
            self.replies.push_back(Reply { to, frame });
        }
    }

    /// As [`Engine::stray`]; an answer to a farewell is not answered, or two ends that have both
    /// forgotten would go on for ever.
    pub(super) fn stray_control(&mut self, now: Time, from: &Address, header: &Header, frame: &[u8]) {
        if header.kind == Kind::Close && Close::parse_after(*header, frame).is_none_or(|(close, ..)| close.is_answer) {
            self.stats.strays += 1;
            return;
        }
        self.stray(now, from, header, frame.len());
    }

    /// Handles a frame for an unknown connection. The reply is not longer than the frame, and
    /// limited in rate.
    pub(crate) fn stray(&mut self, now: Time, from: &Address, header: &Header, len: usize) {
        self.stats.strays += 1;
        let frame = match header.kind {
            _ if len < SHORTEST => return,
            Kind::Data | Kind::Accept => {
                ReplyFrame::Reset(Reset { header: back(header, Kind::Reset), number: header.number })
            }
            Kind::Close => ReplyFrame::Close(Close::answer(back(header, Kind::Close))),
            _ => return,
        };
        if self.reply_limit.take(now, self.cookie_key, from.network()) {
            self.reply(*from, frame);
        }
    }

    /// As [`Engine::stray`], for a sealed frame: its sender gets the token of a connection that
    /// this endpoint may have had before a restart.
    pub(crate) fn stray_sealed(&mut self, now: Time, from: &Address, header: &Header, len: usize, sealer: &dyn Sealer) {
        self.stats.strays += 1;
        if header.kind == Kind::Reset || len < SealedReset::LEN {
            return;
        }
        if self.reply_limit.take(now, self.cookie_key, from.network()) {
            let token = sealer.reset_token(header.to);
            let reset = SealedReset { header: back(header, Kind::Reset), number: header.number, token };
            self.reply(*from, ReplyFrame::SealedReset(reset));
        }
    }
}
