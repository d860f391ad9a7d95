//! Eager messages that a posted receive takes, in one pass.

use crate::requests::Outcome;
use crate::state::{State, received};
use crate::types::Buffer;
use crate::wire::{self, HEADER, Head};
use cci::{Endpoint, Received};
use cci_matching::Envelope;
use cci_rendezvous::{Header, Source, cost_of_bytes};

/// What has become of a message in [`State::take_at_once`].
pub(crate) enum AtOnce {
    Taken,
    /// It has this header, is of this partner, and was charged so much.
    Unmatched(Header, u32, u32),
    /// Nothing: it is for [`State::take_any`].
    Other,
}

impl<B: Buffer> State<B> {
    /// The usual work in one pass: a short eager message, which a posted receive takes, by a link
    /// on which nothing waits.
    #[inline(always)]
    pub(crate) fn take_at_once(&mut self, endpoint: &Endpoint, message: &Received<'_>) -> AtOnce {
        let Some((header, data)) = message.bytes().and_then(wire::parse_eager) else { return AtOnce::Other };
        let peer = message.connection().and_then(|connection| self.peers.peer_of(connection));
        let Some(peer) = peer.filter(|_| !self.peers.has_changes()) else { return AtOnce::Other };
        let Self { requests, posted, partners, counts, .. } = self;
        let Some(Some(partner)) = partners.get_mut(peer.index()) else { return AtOnce::Other };
        let (number, cost) = (peer.index() as u32, cost_of_bytes(data.len()));
        if !partner.takes_at_once(header.credit, cost) {
            return AtOnce::Other;
        }
        let Some(index) = posted.take(&Envelope { source: u64::from(number), bits: header.long }) else {
            return AtOnce::Unmatched(header, number, cost);
        };
        counts.expected += 1;
        requests.deliver(index, header.long, |segments| {
            let copied = segments.len().min(data.len());
            let is_in = copied == 0 || segments.copy_in(0, &data[..copied]);
            Outcome { peer: number, session: partner.session, ..received(header.word, copied, is_in) }
        });
        if partner.window.owe(cost) {
            self.pump(endpoint, number);
        }
        AtOnce::Taken
    }

    /// Keeps a message that [`State::take_at_once`] has taken as far as that.
    #[inline(never)]
    pub(crate) fn keep_at_once(
        &mut self,
        endpoint: &Endpoint,
        message: &Received<'_>,
        (header, number, cost): (Header, u32, u32),
    ) {
        let link = self.partner(number).map_or(0, |partner| partner.link);
        let head = Head { header, number: None, from: HEADER };
        let source = Source::Bytes(message.bytes().unwrap_or_default());
        self.keep(endpoint, (number, link, cost), &head, &source);
    }
}
