//! Peers that wait until the program has received what they have sent.

use super::state::{Keep, State};
use cci::Endpoint;

impl State {
    /// Pauses a peer that has sent more than its share, unless this side awaits something of it.
    #[cold]
    pub(super) fn pause(&mut self, endpoint: &Endpoint, number: u64) {
        if self.awaits_answer_of(number) {
            return;
        }
        let Some(peer) = self.peers.get_mut(&number).filter(|peer| peer.lost.is_none() && !peer.is_unpausable) else {
            return;
        };
        let paused = peer.connection.map(|connection| endpoint.pause(connection));
        peer.is_paused = matches!(paused, Some(Ok(())));
        peer.is_unpausable = !peer.is_paused;
    }

    /// Lets a peer go on, if it was paused.
    pub(super) fn resume(&mut self, endpoint: &Endpoint, number: u64) {
        let Some(peer) = self.peers.get_mut(&number).filter(|peer| peer.is_paused) else { return };
        peer.is_paused = false;
        // It may have ended by itself.
        let _ = peer.connection.map(|connection| endpoint.resume(connection));
    }

    /// Lets all peers go on: the answer to a connect may stand in line behind their messages.
    pub(super) fn resume_all(&mut self, endpoint: &Endpoint) {
        let paused: Vec<u64> =
            self.peers.iter().filter(|(_, peer)| peer.is_paused).map(|(number, _)| *number).collect();
        paused.into_iter().for_each(|number| self.resume(endpoint, number));
    }

    /// Whether this side has asked a peer for something whose answer may stand in line behind the
    /// peer's messages: RMA, memory for a long message, or a connection, whoever is asked.
    fn awaits_answer_of(&self, peer: u64) -> bool {
        self.operations.iter().any(|(number, operation)| {
            let is_asked = operation.peer == peer && !matches!(operation.keep, Keep::Nothing);
            operation.outcome.is_none() && (is_asked || operation.peer == *number)
        })
    }
}
