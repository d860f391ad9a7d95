//! HPCC RandomAccess. `docs/design/perf-logp.md` says which updates could be lost, and why none is.

mod active;
mod carrier;
mod role;
mod stream;
mod table;

use crate::device::{Device, device_of_ends};
use crate::interrupt;
use crate::machine;
use crate::measure::driver::{Driver, DriverOptions};
use crate::measure::facade::Facade;
use crate::methods::{Found, warn_of_one_processor};
use crate::reach::scope;
use crate::workers::{Channel, Work, Workers};
use carrier::{Carrier, Mailbox, Peer};

pub use carrier::Way;
pub(crate) use role::Role;

use cci::{Connect, Connection, Endpoint, Event, EventKind, RmaHandle, Scope};
use cci_report::finding::{Finding, Gups};
use cci_report::names::{Mode, Threads};
use cci_report::{UserError, while_doing};
use role::{ARRIVAL, BETWEEN, Card, PROBE, Span, now};
use std::time::Instant;
use table::{Layout, UpdateTable};

/// Updates for each word of the table, unless asked otherwise: as the benchmark's rules say.
const UPDATES_PER_WORD: u64 = 4;
/// Bytes of a word.
const WORD: u64 = 8;
/// What is asked for.
#[derive(Clone, Debug)]
pub struct GupsOptions {
    /// Processes that share the table, at least 2.
    pub processes: u64,
    /// Bytes of the whole table: a power of two.
    pub table: u64,
    /// Updates over all processes; four for each word of the table when absent.
    pub updates: Option<u64>,
    /// How updates travel.
    pub way: Way,
    /// The device of all.
    pub device: Device,
}

/// Measures, with all processes on this host. `warn` hears what the user should know before it
/// begins.
///
/// # Errors
///
/// There is no such device, the table is too small, or a process failed. A table that is wrong in
/// the end is no error: it is told.
pub fn measure(options: &GupsOptions, warn: &dyn Fn(&str)) -> Result<Found, UserError> {
    let (name, keys) = device_of_ends(&options.device, None)?;
    if scope(&name) == Some(Scope::Process) {
        return Err(UserError(format!(
            "gups runs in several processes, and {name} is in one: use --transport sm or sock"
        )));
    }
    warn_of_one_processor(warn);
    let bits = (options.table / WORD).trailing_zeros();
    let updates = options.updates.unwrap_or(UPDATES_PER_WORD << bits);
    let layout = Layout { bits, workers: options.processes, updates };
    if options.table / WORD < options.processes {
        return Err(UserError::new("the table has fewer words than there are processes: use a larger --table"));
    }
    let role = |number| {
        let (transport, keys) = (options.device.transport.clone(), keys.clone());
        Role { number, layout, way: options.way, transport, keys }
    };
    let mut workers = Workers::start(&(0..options.processes).map(role).collect::<Vec<_>>())?;
    let mut environment = machine::here(None);
    if let Some([first, second]) = workers.processors.as_deref() {
        environment.pinned = Some([*first, *second]);
    }
    let found = run(&mut workers, layout, options.way)?;
    let interrupted = (found.updates < updates).then(|| interrupt::ENDED.into());
    Ok(Found { environment, finding: Finding::Gups(found), interrupted })
}

/// Leads the processes through their parts.
fn run(workers: &mut Workers, layout: Layout, way: Way) -> Result<Gups, UserError> {
    let cards: Vec<Card> = workers.recv_all()?;
    workers.send_all(&cards)?;
    workers.recv_all::<()>()?;
    workers.send_all(&())?;
    let seconds: Vec<f64> = workers.recv_all()?;
    workers.send_all(&())?;
    let spans: Vec<Span> = workers.recv_all()?;
    let made: Vec<u64> = spans.iter().map(|span| span.made).collect();
    workers.send_all(&made)?;
    let errors: Vec<u64> = workers.recv_all()?;
    let updates: u64 = made.iter().sum();
    if updates == 0 {
        return Err(UserError::new(interrupt::ENDED));
    }
    let begin = spans.iter().map(|span| span.begin).min().unwrap_or(0);
    let end = spans.iter().map(|span| span.end).max().unwrap_or(0);
    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
    let (took, gups) = (end.saturating_sub(begin).max(1) as f64 / 1e9, updates as f64);
    Ok(Gups {
        transport: cards.first().map(|card| card.transport.clone()).unwrap_or_default(),
        operation: way.name().into(),
        table_bytes: layout.words() * WORD,
        updates,
        seconds: took,
        gups: gups / took / 1e9,
        processes: layout.workers,
        probe_gups: seconds.iter().map(|each| 1.0 / each.max(f64::MIN_POSITIVE)).sum::<f64>() / 1e9,
        errors: errors.iter().sum(),
    })
}

impl Work for Role {
    const NAME: &'static str = "gups";

    fn work(&self, channel: &mut Channel) -> Result<(), UserError> {
        play(self, channel)
    }
}

/// Plays one process.
fn play(role: &Role, channel: &Channel) -> Result<(), UserError> {
    let opening = DriverOptions {
        transport: role.transport.clone(),
        threads: Threads::Many,
        mode: Mode::Polling,
        keys: role.keys.clone(),
        library: None,
        ends: u32::try_from(role.layout.workers).unwrap_or(u32::MAX),
    };
    if role.way == Way::Am {
        return active::play(role, &opening, channel);
    }
    let driver = Facade::open(&opening)?;
    let transport = driver.transport().to_owned();
    let endpoint = driver.into_endpoint();
    let workers = usize::try_from(role.layout.workers).map_err(while_doing("too many processes"))?;
    let number = usize::try_from(role.number).map_err(while_doing("too many processes"))?;
    let mailbox = (role.way == Way::Write).then(|| Mailbox::new(&endpoint, workers)).transpose()?;
    let handle = mailbox.as_ref().map(|mailbox| mailbox.handle.words());
    channel.send(&Card { uri: endpoint.uri().to_owned(), handle, transport })?;
    let cards: Vec<Card> = channel.recv()?;
    let peers = connect_all(&endpoint, number, &cards)?;
    channel.send(&())?;
    channel.recv::<()>()?;
    let mut table = UpdateTable::new(role.layout, role.number);
    channel.send(&table.probe(PROBE.min(role.layout.updates)))?;
    let mut carrier = Carrier::new(endpoint, number, peers, mailbox);
    channel.recv::<()>()?;
    let (begin, mut made) = (now(), 0_u64);
    for word in role.layout.share(role.number) {
        if made.is_multiple_of(BETWEEN) && interrupt::is_asked() {
            break;
        }
        made += 1;
        if !table.update(word) {
            #[expect(clippy::cast_possible_truncation, reason = "at most 64 processes")]
            let owner = role.layout.owner(word) as usize;
            carrier.hand_over(&mut table, owner, word)?;
        }
    }
    carrier.finish(&mut table)?;
    channel.send(&Span { begin, end: now(), made })?;
    // Nobody leaves while another may still need an answer.
    let made: Vec<u64> = channel.recv()?;
    channel.send(&table.verify(&made))
}

/// Connects to every process before this one, and waits for those after it.
fn connect_all(endpoint: &Endpoint, number: usize, cards: &[Card]) -> Result<Vec<Option<Peer>>, UserError> {
    for (other, card) in cards.iter().enumerate().take(number) {
        let payload = (number as u64).to_le_bytes();
        endpoint
            .connect(&Connect::to(&card.uri).payload(&payload).context(other as u64).timeout(ARRIVAL))
            .map_err(while_doing("the processes of the run cannot connect"))?;
    }
    let mut found: Vec<Option<Connection>> = vec![None; cards.len()];
    let begin = Instant::now();
    while found.iter().flatten().count() + 1 < cards.len() {
        let Some(event) = endpoint.get_event().map_err(while_doing("the processes of the run cannot connect"))? else {
            if begin.elapsed() > ARRIVAL {
                return Err(UserError::new("the processes of the run did not connect to each other in time"));
            }
            std::thread::yield_now();
            continue;
        };
        if matches!(event.kind(), EventKind::Connect | EventKind::Accept) {
            event.outcome().map_err(while_doing("the processes of the run cannot connect"))?;
            let at = usize::try_from(event.context()).ok();
            if let Some(place) = at.and_then(|at| found.get_mut(at)) {
                *place = event.connection();
            }
        } else if let Event::Request(request) = event {
            let from = request.payload().try_into().map_or(u64::MAX, u64::from_le_bytes);
            request.accept(from).map_err(while_doing("the processes of the run cannot connect"))?;
        }
    }
    let peer = |(connection, card): (Option<Connection>, &Card)| {
        connection.map(|connection| Peer::new(connection, card.handle.map(RmaHandle::from_words)))
    };
    Ok(found.into_iter().zip(cards).map(peer).collect())
}
