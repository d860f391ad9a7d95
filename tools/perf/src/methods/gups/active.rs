//! Updates as active messages: a batch is a medium request, whose handler makes the updates at
//! their owner. Credits bound what is under way, and no slot has to be given back.

use super::role::{ARRIVAL, BETWEEN, Card, PROBE, Role, Span, now};
use super::table::UpdateTable;
use crate::interrupt;
use crate::measure::driver::DriverOptions;
use crate::measure::facade::device;
use crate::workers::Channel;
use cci_am::{Endpoint, Handlers, Options, Peer, Request, Returned, TAG_ALL};
use cci_report::finding::LOOK_AHEAD;
use cci_report::{UserError, while_doing};
use std::time::Instant;

const HELLO: u8 = 1;
const UPDATE: u8 = 2;
const OVER: u8 = 3;
/// Bytes of an update.
const WORD: usize = 8;
/// Bytes of the longest batch.
const LONGEST: usize = LOOK_AHEAD * WORD;

/// What handlers change.
struct Part {
    table: UpdateTable,
    /// Processes that have come.
    here: usize,
    /// Processes that have nothing more to send.
    over: usize,
    /// Why a request came back.
    failed: Option<cci_am::Status>,
    batch: Vec<u8>,
}

fn hello(part: &mut Part, _: Request<'_>) {
    part.here += 1;
}

fn update(part: &mut Part, request: Request<'_>) {
    let len = request.payload().copy_to(0, &mut part.batch);
    for word in part.batch[..len].chunks_exact(WORD) {
        let mut update = [0; WORD];
        update.copy_from_slice(word);
        part.table.update(u64::from_ne_bytes(update));
    }
}

fn over(part: &mut Part, _: Request<'_>) {
    part.over += 1;
}

fn failed(part: &mut Part, returned: Returned<'_>) {
    part.failed = Some(returned.status());
}

/// The process's end of everything.
struct ActiveCarrier {
    endpoint: Endpoint<Part>,
    /// By number, with the updates that are not sent yet; none for this process itself.
    peers: Vec<Option<(Peer, Vec<u8>)>>,
    /// Bytes of a full batch.
    full: usize,
}

/// Plays one process.
pub(super) fn play(role: &Role, opening: &DriverOptions, channel: &Channel) -> Result<(), UserError> {
    let device = device(opening)?;
    let table = UpdateTable::new(role.layout, role.number);
    let part = Part { table, here: 0, over: 0, failed: None, batch: vec![0; LONGEST] };
    let handlers = Handlers::new().request(HELLO, hello).request(UPDATE, update).request(OVER, over).returned(failed);
    let endpoint = Endpoint::open(&device, &Options::new(), handlers, part)
        .map_err(while_doing("cannot open an endpoint of Active Messages"))?;
    channel.send(&Card { uri: endpoint.name().to_owned(), handle: None, transport: device.transport.clone() })?;
    let cards: Vec<Card> = channel.recv()?;
    let mut carrier = ActiveCarrier::new(endpoint, role.number, &cards)?;
    carrier.meet()?;
    channel.send(&())?;
    channel.recv::<()>()?;
    channel.send(&carrier.endpoint.state().table.probe(PROBE.min(role.layout.updates)))?;
    channel.recv::<()>()?;
    let (begin, mut made) = (now(), 0_u64);
    for word in role.layout.share(role.number) {
        if made.is_multiple_of(BETWEEN) && interrupt::is_asked() {
            break;
        }
        made += 1;
        if !carrier.endpoint.state().table.update(word) {
            #[expect(clippy::cast_possible_truncation, reason = "at most 64 processes")]
            let owner = role.layout.owner(word) as usize;
            carrier.hand_over(owner, word)?;
        }
    }
    carrier.finish()?;
    channel.send(&Span { begin, end: now(), made })?;
    let made: Vec<u64> = channel.recv()?;
    channel.send(&carrier.endpoint.into_state().table.verify(&made))
}

impl ActiveCarrier {
    fn new(mut endpoint: Endpoint<Part>, number: u64, cards: &[Card]) -> Result<Self, UserError> {
        let map = |(other, card): (u64, &Card)| -> Result<_, UserError> {
            if other == number {
                return Ok(None);
            }
            let peer = endpoint.map(&card.uri, TAG_ALL).map_err(while_doing("cannot map another process"))?;
            Ok(Some((peer, Vec::with_capacity(LONGEST))))
        };
        let peers = (0..).zip(cards).map(map).collect::<Result<_, _>>()?;
        Ok(Self { endpoint, peers, full: LOOK_AHEAD / (cards.len() - 1) * WORD })
    }

    /// Waits until every other process has the way to this one open.
    fn meet(&mut self) -> Result<(), UserError> {
        self.tell_all(HELLO)?;
        let (others, begin) = (self.others(), Instant::now());
        self.poll_while(|part| {
            if begin.elapsed() > ARRIVAL {
                return Err(UserError::new("the processes of the run did not connect to each other in time"));
            }
            Ok(part.here < others)
        })
    }

    fn others(&self) -> usize {
        self.peers.iter().flatten().count()
    }

    fn tell_all(&mut self, what: u8) -> Result<(), UserError> {
        for (peer, _) in self.peers.iter().flatten() {
            self.endpoint.request(*peer, what, &[]).map_err(while_doing("cannot send updates"))?;
        }
        Ok(())
    }

    fn poll_while(&mut self, goes_on: impl Fn(&Part) -> Result<bool, UserError>) -> Result<(), UserError> {
        while goes_on(self.endpoint.state())? {
            let found = self.endpoint.poll().map_err(while_doing("cannot receive updates"))?;
            if let Some(status) = self.endpoint.state().failed {
                return Err(UserError(format!("updates did not arrive: {status}")));
            }
            if found == 0 {
                // There may be more processes than processors.
                std::thread::yield_now();
            }
        }
        Ok(())
    }

    /// Hands an update to the process that has its part.
    #[inline(always)]
    fn hand_over(&mut self, owner: usize, word: u64) -> Result<(), UserError> {
        let Some(Some((_, batch))) = self.peers.get_mut(owner) else { return Ok(()) };
        batch.extend_from_slice(&word.to_ne_bytes());
        if batch.len() >= self.full { self.flush(owner) } else { Ok(()) }
    }

    fn flush(&mut self, owner: usize) -> Result<(), UserError> {
        let Some(Some((peer, batch))) = self.peers.get_mut(owner) else { return Ok(()) };
        if batch.is_empty() {
            return Ok(());
        }
        let sent = self.endpoint.request_medium(*peer, UPDATE, &[], batch);
        batch.clear();
        sent.map_err(while_doing("cannot send updates"))?;
        // What has come meanwhile, so that nobody waits for long.
        self.endpoint.poll().map(drop).map_err(while_doing("cannot receive updates"))
    }

    /// Sends what is left, says that it was the last, and makes the others' updates until they have
    /// said so too.
    fn finish(&mut self) -> Result<(), UserError> {
        (0..self.peers.len()).try_for_each(|owner| self.flush(owner))?;
        self.tell_all(OVER)?;
        let others = self.others();
        self.poll_while(|part| Ok(part.over < others))?;
        // The ends of this process's requests let the others go.
        let peers: Vec<_> = self.peers.iter().flatten().map(|(peer, _)| *peer).collect();
        while peers.iter().any(|peer| self.endpoint.outstanding(*peer) > 0) {
            let found = self.endpoint.poll().map_err(while_doing("cannot receive updates"))?;
            if found == 0 {
                std::thread::yield_now();
            }
        }
        Ok(())
    }
}
