//! Who listens at a port of a host: how these two become an address (`docs/design/fabric.md`, A
//! host and a port).

use crate::record::{RECORD, Record};
use crate::state::State;
use cci::{Connect, Connection, Device, Endpoint, EndpointOptions, Event, Notify};
use cci_ground::{readable, sleep_until_ready};
use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// The payload of a request that wants the record alone.
const QUESTION: &[u8] = b"ccifabwho1";
/// The context of the connections by which it is asked for.
const ASKED: u64 = 4 << 32;
/// So many of them are open at a time; the oldest is closed for a further one.
const MOST: usize = 16;

/// The connections of those who have asked.
#[derive(Default)]
pub(crate) struct Askers(VecDeque<Connection>);

/// Returns the record of the endpoint that listens at this URI now, `cci://HOST:PORT`. Its program
/// has to make progress meanwhile.
///
/// # Errors
///
/// A sentence: nobody listens there, or who does is no endpoint of ours, has a secret, or has not
/// answered within `limit`; or the endpoint that asks cannot be opened.
pub(crate) fn ask(device: &Device, uri: &str, limit: Duration) -> Result<Record, String> {
    let begun = Instant::now();
    let options = EndpointOptions::new().disconnect_events(true);
    let endpoint = Endpoint::open(device, &options).map_err(|why| why.to_string())?;
    endpoint.connect(&Connect::to(uri).payload(QUESTION).timeout(limit)).map_err(|why| why.to_string())?;
    loop {
        match endpoint.get_event().map_err(|why| why.to_string())? {
            Some(Event::Received(message)) => {
                return Record::from_bytes(&message.to_vec()).ok_or_else(|| "what it says is no address".into());
            }
            Some(Event::ConnectFailed(failed)) => {
                return Err(failed.reason().unwrap_or_else(|| failed.failure().to_string()));
            }
            Some(Event::Disconnected(_)) => return Err("it has hung up".into()),
            Some(_) => {}
            None => {
                let left = limit.saturating_sub(begun.elapsed());
                if left.is_zero() {
                    return Err(format!("it has not answered within {} s", limit.as_secs()));
                }
                let sleeper = endpoint.sleeper().map_err(|why| why.to_string())?;
                sleep_until_ready(&mut [readable(sleeper.as_fd())], Some(left));
            }
        }
    }
}

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
