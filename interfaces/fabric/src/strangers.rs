//! Events of those who are no peers: they may ask who is here.

use crate::record::RECORD;
use crate::state::State;
use crate::who::{Askers, QUESTION};
use cci::{Connection, Endpoint, Event, Notify};

/// The context of the connections by which it is asked for.
const ASKED: u64 = 4 << 32;
/// So many of them are open at a time; the oldest is closed for a further one.
const MOST: usize = 16;

impl State {
    /// An event of somebody who is no peer. A request that is dropped here is rejected so.
    pub(crate) fn take_stranger(&mut self, endpoint: &Endpoint, event: Event<'_>) {
        match event {
            Event::Request(request) if request.payload() == QUESTION => {
                // Who asked finds that it was rejected.
                let _ = request.accept(ASKED);
            }
            Event::Accepted(accepted) if accepted.context() == ASKED => {
                let Some(connection) = accepted.connection() else { return };
                let Askers(askers) = &mut self.askers;
                if askers.len() >= MOST
                    && let Some(oldest) = askers.pop_front()
                {
                    let _ = endpoint.disconnect(oldest);
                }
                askers.push_back(connection);
                // Without room for so short a message it ends without an answer.
                if endpoint.send(connection, &self.own.to_bytes(), Notify::OnFailure(0)).is_err() {
                    self.forget_asker(endpoint, connection);
                }
            }
            Event::Disconnected(gone) => {
                let gone = gone.connection().filter(|gone| gone.context() == Some(ASKED));
                gone.into_iter().for_each(|gone| self.forget_asker(endpoint, gone));
            }
            _ => {}
        }
    }

    fn forget_asker(&mut self, endpoint: &Endpoint, connection: Connection) {
        self.askers.0.retain(|asker| *asker != connection);
        // Refused where it is closed already.
        let _ = endpoint.disconnect(connection);
    }
}

const _: () = assert!(RECORD <= 64, "it fits the shortest message of every transport");
