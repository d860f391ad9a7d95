//! A process of peers: endpoints that connect to the measured one when they are told.

use super::population::SILENCE;
use super::subject::OtherEnd;
use crate::measure::driver::{Driver, DriverEvent, DriverOptions};
use crate::measure::facade::Facade;
use crate::methods::connections::connect;
use crate::methods::other_process::obey_and_rest;
use crate::reach::scope;
use cci::{Attribute, Scope};
use cci_report::UserError;
use std::time::{Duration, Instant};

/// Peers that ask at once.
const AT_ONCE: usize = 64;
/// Peers that make progress for each call of all that ask.
const IN_TURN: usize = 64;
/// How long one connection may take.
const LIMIT: Duration = Duration::from_secs(60);

/// The endpoints of this process.
struct Peers {
    opening: DriverOptions,
    to: [String; 2],
    ends: Vec<Facade>,
    /// The endpoint that made progress last.
    turn: usize,
}

/// Obeys until there is nobody to obey. The endpoints make progress meanwhile: the measured one has
/// fewer receive slots than peers, and asks these to give theirs back.
pub(super) fn obey_as_peers(transport: &str, other: &OtherEnd) -> Result<(), UserError> {
    let peers = Peers { opening: opening(transport, other.number), to: other.to.clone(), ends: Vec::new(), turn: 0 };
    obey_and_rest(peers, Peers::act, |peers| progress(&peers.ends, &mut peers.turn))
}

impl Peers {
    fn act(&mut self, order: &str, numbers: &[u64]) -> Result<(), UserError> {
        let [first, measured] = &self.to;
        match (order, numbers) {
            ("first", []) => {
                self.ends.push(Facade::open(&self.opening)?);
                connect(&self.ends[0], first, 1)
            }
            ("open", [count]) => {
                for _ in 0..*count {
                    self.ends.push(Facade::open(&self.opening)?);
                }
                Ok(())
            }
            ("connect", [count]) => {
                let count = usize::try_from(*count).unwrap_or(usize::MAX).min(self.ends.len());
                let from = self.ends.len() - count;
                (from..self.ends.len()).step_by(AT_ONCE).try_for_each(|from| {
                    let (open, new) = self.ends.split_at(from);
                    connect_each(&new[..AT_ONCE.min(new.len())], open, measured, &mut self.turn)
                })
            }
            ("connect-again", [count]) => {
                let count = u32::try_from(*count).unwrap_or(u32::MAX);
                self.ends.last().map_or(Ok(()), |end| connect(end, measured, count))
            }
            _ => Err(UserError(format!("there is no order {order}"))),
        }
    }
}

/// On an address of this process alone, where the transport has addresses of a network: the ports
/// of one address are too few for many peers.
fn opening(transport: &str, number: u8) -> DriverOptions {
    let mut opening = DriverOptions::on_loopback(transport);
    if scope(transport) == Some(Scope::Network) {
        opening.keys = vec![("ip".into(), format!("127.0.1.{}", number.saturating_add(1)))];
    }
    opening
}

/// Connects each of the new endpoints once, while those that are connected make progress in turn.
fn connect_each(new: &[Facade], open: &[Facade], uri: &str, turn: &mut usize) -> Result<(), UserError> {
    for end in new {
        end.connect(uri, &[], Attribute::ReliableOrdered, 0, LIMIT)?;
    }
    let (mut connected, mut bytes, mut since) = (0, Vec::new(), Instant::now());
    while connected < new.len() {
        for end in new {
            match end.poll_event(&mut bytes, |_| 0)? {
                DriverEvent::Open(..) => (connected, since) = (connected + 1, Instant::now()),
                DriverEvent::NotOpen(status, _) => return Err(UserError(format!("a connection failed: {status}"))),
                _ => {}
            }
        }
        if since.elapsed() > SILENCE {
            return Err(UserError::new("no peer answers any more"));
        }
        progress(open, turn)?;
    }
    Ok(())
}

/// Calls the next few.
fn progress(open: &[Facade], turn: &mut usize) -> Result<(), UserError> {
    for _ in 0..IN_TURN.min(open.len()) {
        *turn = (*turn + 1) % open.len();
        open[*turn].poll::<false>()?;
    }
    Ok(())
}
