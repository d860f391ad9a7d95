//! Who listens at a port of a host: how these two become an address (`docs/design/fabric.md`, A
//! host and a port).

use crate::record::Record;
use cci::{Connect, Connection, Device, Endpoint, EndpointOptions, Event};
use cci_ground::{readable, sleep_until_ready};
use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// The payload of a request that wants the record alone.
pub(crate) const QUESTION: &[u8] = b"ccifabwho1";
/// The connections of those who have asked.
#[derive(Default)]
pub(crate) struct Askers(pub(crate) VecDeque<Connection>);

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
