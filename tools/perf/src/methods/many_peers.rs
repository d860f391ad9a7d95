//! What many peers of one endpoint cost: those that are idle, and those that send in turn. The
//! endpoint is in one process, each peer an endpoint of another one; each process stays on a
//! processor of its own.

use super::exchange::{
    EXCHANGES, LIMIT, accept, await_message, await_until, both, echo, empty_calls, exchange, idle_for, send,
};
use super::middle;
use super::other_process::{OtherProcess, obey};
use crate::machine::{pin, two_processors};
use crate::measure::driver::{Completion, Driver, DriverEvent, DriverOptions};
use crate::measure::facade::Facade;
use crate::measure::usage::Usage;
use crate::reach::scope;
use crate::task;
use crate::task::Task;
use cci::{Attribute, Connection, Scope};
use cci_mem::meminfo;
use cci_report::{UserError, while_doing};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Messages in turn of a block, and blocks.
const MESSAGES: u64 = 100_000;
const TURNS: usize = 7;
/// Peers that connect at once.
const AT_ONCE: usize = 64;

/// What was measured with so many peers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Half a round trip with one of them, over that with the only peer of another endpoint.
    pub exchange: f64,
    /// Messages in turn; none over a network.
    pub turns: Option<Turns>,
    /// An empty call, over that of an endpoint with one peer.
    pub empty: f64,
    /// Each peer's share of descriptors.
    pub descriptors: f64,
    /// Microseconds to connect a peer.
    pub micros: f64,
    /// Bytes for each peer that are shared with nobody.
    pub private: f64,
    /// Bytes for each peer that are shared with it.
    pub shared: f64,
}

/// Messages in turn by all peers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turns {
    /// Over those of a bare probe.
    pub to_bare: f64,
    /// Over those by one of the peers.
    pub to_one: f64,
}

/// Which end, with how many peers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ManyPeersTask {
    transport: String,
    peers: u32,
    /// Processor of the peers.
    cpu: Option<usize>,
    /// Endpoints to connect to: the one with one peer, the one with all; without them this end
    /// measures.
    uris: Option<[String; 2]>,
}

/// Measures with so many peers, in processes of their own.
///
/// # Errors
///
/// A process cannot be started, or fails.
pub fn in_a_child(transport: &str, peers: u32) -> Result<Figures, UserError> {
    let task = ManyPeersTask { transport: transport.to_owned(), peers, cpu: None, uris: None };
    super::footprint::figures(task::command(&task)?)
}

impl Task for ManyPeersTask {
    const NAME: &'static str = "many-peers";

    fn run(&self) -> Result<(), Option<UserError>> {
        many_peers(self).map_err(Some)
    }
}

/// Measures, or plays the peers, in the child process.
fn many_peers(task: &ManyPeersTask) -> Result<(), UserError> {
    raise_limit();
    let opening = DriverOptions::on_loopback(&task.transport);
    let [here, there] = two_processors();
    let stay = |cpu| pin(cpu).map_err(while_doing("cannot pin this process to its processor"));
    if let Some([one, many]) = &task.uris {
        // The other process has told: this one sees only the processor that it has inherited.
        stay(task.cpu.unwrap_or(there))?;
        return ManyPeers::open(&opening, task.peers as usize)?.serve(one, many);
    }
    stay(here)?;
    let figures = measure(&opening, task, there)?;
    let text = serde_json::to_string(&figures).map_err(while_doing("cannot write the figures"))?;
    writeln!(std::io::stdout(), "{text}").map_err(while_doing("cannot write the figures"))
}

/// As many descriptors as the system allows: each peer is an endpoint.
fn raise_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

fn measure(opening: &DriverOptions, task: &ManyPeersTask, there: usize) -> Result<Figures, UserError> {
    let (one, many) = (Facade::open(opening)?, Facade::open(opening)?);
    let peers = task.peers as usize;
    let there_task = ManyPeersTask { cpu: Some(there), uris: Some([one.uri(), many.uri()]), ..task.clone() };
    let mut other = OtherProcess::start(task::command(&there_task)?)?;
    other.tell("connect 0 1")?;
    let only = accept(&one, 1)?[0];
    other.answer()?;
    // The first peer pays for what all share.
    other.tell("connect 1 2")?;
    let mut connections = accept(&many, 1)?;
    other.answer()?;
    let others = peers.saturating_sub(1);
    Usage::now()?;
    let (usage, shared, descriptors, begin) = (Usage::now()?, shared_memory()?, open_descriptors()?, Instant::now());
    other.tell(&format!("connect 2 {}", peers + 1))?;
    connections.extend(accept(&many, others)?);
    other.answer()?;
    let each = |total: f64| total / f64::from(u32::try_from(others.max(1)).unwrap_or(1));
    let micros = each(begin.elapsed().as_secs_f64() * 1e6);
    let added = Usage::now()?.since(usage);
    let mut figures = Figures {
        micros,
        private: each(added.private),
        shared: each(shared_memory()? - shared),
        descriptors: each(open_descriptors()? - descriptors),
        ..Figures::default()
    };
    // Lanes that have just been made are still polled.
    idle_for(&many, Duration::from_millis(100))?;
    figures.empty = ratio(both(|many_turn| empty_calls(if many_turn { &many } else { &one }))?);
    figures.exchange = ratio(both(|many_turn| {
        let (endpoint, connection) = if many_turn { (&many, connections[0]) } else { (&one, only) };
        other.tell(&format!("echo {} {EXCHANGES}", usize::from(many_turn)))?;
        let time = exchange(endpoint, connection)?;
        other.answer()?;
        Ok(time)
    })?);
    if scope(&task.transport) != Some(Scope::Host) {
        return Ok(figures);
    }
    let [mut to_bare, mut to_one] = [Vec::new(), Vec::new()];
    for _ in 0..TURNS {
        let bare = bare_turns(peers, there)?;
        let mut time = |senders: usize| {
            other.tell(&format!("turns {senders} {MESSAGES}"))?;
            let time = receive(&many)?;
            send(&many, connections[0], &[0; 8])?;
            other.answer()?;
            Ok::<_, UserError>(time)
        };
        let (one, all) = (time(1)?, time(peers)?);
        to_bare.push(bare / all);
        to_one.push(one / all);
    }
    figures.turns = Some(Turns { to_bare: middle(to_bare), to_one: middle(to_one) });
    Ok(figures)
}

/// The time with many, over that with one.
fn ratio([one, many]: [f64; 2]) -> f64 {
    many / one
}

/// Takes the messages of a block; the time from the first tenth on.
fn receive(endpoint: &Facade) -> Result<f64, UserError> {
    let mut begin = Instant::now();
    for message in 0..MESSAGES {
        if message == MESSAGES / 10 {
            begin = Instant::now();
        }
        await_message(endpoint)?;
    }
    Ok(begin.elapsed().as_secs_f64())
}

/// A line of the bare probe, and its ring: as many lines in turn as the library's entries, and
/// nothing else.
#[repr(align(64))]
#[derive(Default)]
struct BareLine([AtomicU64; 8]);

const RING: usize = 256;

#[derive(Default)]
struct BareRing {
    taken: BareLine,
    lines: Vec<BareLine>,
}

/// The time of a block of messages through bare rings: two threads on the processors of the two
/// processes.
fn bare_turns(senders: usize, there: usize) -> Result<f64, UserError> {
    let ring = || BareRing { lines: (0..RING).map(|_| BareLine::default()).collect(), ..BareRing::default() };
    let rings: Vec<BareRing> = (0..senders).map(|_| ring()).collect();
    let lap = |at: u64| at / RING as u64 + 1;
    let place = |message: u64| (message % senders as u64, message / senders as u64);
    std::thread::scope(|threads| {
        let producer = threads.spawn(|| {
            pin(there).map_err(while_doing("cannot pin this process to its processor"))?;
            for message in 0..MESSAGES {
                let (ring, at) = place(message);
                let ring = &rings[usize::try_from(ring).unwrap_or(0)];
                while at >= ring.taken.0[0].load(Ordering::Acquire) + RING as u64 {
                    std::hint::spin_loop();
                }
                let line = &ring.lines[usize::try_from(at).unwrap_or(0) % RING];
                line.0[1].store(message, Ordering::Relaxed);
                line.0[0].store(lap(at), Ordering::Release);
            }
            Ok::<_, UserError>(())
        });
        let (mut begin, mut sum) = (Instant::now(), 0);
        for message in 0..MESSAGES {
            if message == MESSAGES / 10 {
                begin = Instant::now();
            }
            let (ring, at) = place(message);
            let ring = &rings[usize::try_from(ring).unwrap_or(0)];
            let line = &ring.lines[usize::try_from(at).unwrap_or(0) % RING];
            while line.0[0].load(Ordering::Acquire) != lap(at) {
                if producer.is_finished() && line.0[0].load(Ordering::Acquire) != lap(at) {
                    return Err(UserError::new("the bare producer ended early"));
                }
                std::hint::spin_loop();
            }
            sum += line.0[1].load(Ordering::Relaxed);
            if (at + 1).is_multiple_of(RING as u64 / 4) {
                ring.taken.0[0].store(at + 1, Ordering::Release);
            }
        }
        let time = begin.elapsed().as_secs_f64();
        std::hint::black_box(sum);
        producer.join().unwrap_or_else(|_| Err(UserError::new("the bare producer failed")))?;
        Ok(time)
    })
}

#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
fn open_descriptors() -> Result<f64, UserError> {
    let open = fs::read_dir("/proc/self/fd").map_err(while_doing("cannot count descriptors"))?;
    Ok(open.count() as f64)
}

/// Shared memory of this machine.
#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
fn shared_memory() -> Result<f64, UserError> {
    let bytes = meminfo::counted("Shmem").ok_or_else(|| UserError::new("the kernel does not report shared memory"))?;
    Ok(bytes as f64)
}

/// The endpoints of the other process: the first for the endpoint with one peer.
struct ManyPeers {
    ends: Vec<(Facade, Option<Connection>)>,
}

impl ManyPeers {
    fn open(opening: &DriverOptions, peers: usize) -> Result<Self, UserError> {
        let ends = (0..=peers).map(|_| Ok((Facade::open(opening)?, None)));
        Ok(Self { ends: ends.collect::<Result<_, UserError>>()? })
    }

    /// Does what it is told until there is nobody to tell.
    fn serve(mut self, one: &str, many: &str) -> Result<(), UserError> {
        let place = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        obey(|order, numbers| match (order, numbers) {
            ("connect", [from, to]) => self.connect(place(*from), place(*to), one, many),
            ("echo", [at, count]) => {
                let (end, connection) = self.end(place(*at))?;
                echo(end, connection, *count)
            }
            ("turns", [peers, count]) => self.turns(place(*peers), *count),
            _ => Err(UserError(format!("there is no order {order}"))),
        })
    }

    fn connect(&mut self, from: usize, to: usize, one: &str, many: &str) -> Result<(), UserError> {
        let (begin, mut bytes) = (Instant::now(), Vec::new());
        for at in (from..to).step_by(AT_ONCE) {
            let batch = &mut self.ends[at..(at + AT_ONCE).min(to)];
            for (place, (end, _)) in batch.iter().enumerate() {
                let uri = if at + place == 0 { one } else { many };
                end.connect(uri, &[], Attribute::ReliableOrdered, 0, LIMIT)?;
            }
            while let Some((end, open)) = batch.iter_mut().find(|(_, open)| open.is_none()) {
                match end.poll_event(&mut bytes, |_| 0)? {
                    DriverEvent::Open(connection, _) => *open = Some(connection),
                    DriverEvent::NotOpen(status, _) => return Err(UserError(format!("a connection failed: {status}"))),
                    _ if begin.elapsed() > LIMIT => return Err(UserError::new("no peer answers")),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn end(&self, at: usize) -> Result<(&Facade, Connection), UserError> {
        let (end, connection) = &self.ends[at];
        Ok((end, connection.ok_or_else(|| UserError::new("this peer is not connected"))?))
    }

    /// So many peers, without that of the first endpoint, send in turn.
    fn turns(&self, peers: usize, count: u64) -> Result<(), UserError> {
        for message in 0..count {
            let (end, connection) = self.end(1 + usize::try_from(message).unwrap_or(0) % peers)?;
            send(end, connection, &message.to_ne_bytes())?;
        }
        // What found no room waits in its endpoint, until the other side has everything and says
        // so.
        let mut ends = self.ends.iter().cycle();
        await_until(LIMIT, || match ends.next() {
            Some((end, _)) => Ok(matches!(end.poll::<false>()?, Completion::Received(_))),
            None => Err(UserError::new("there are no peers")),
        })
    }
}
