//! Operations per second of 1 to n threads, all on one endpoint, and each on an endpoint of its
//! own. Both ends are in this process: the sending threads, and for each receiving endpoint a
//! thread that polls it.

use crate::device::{Device, keys_of_loopback, real_transport, with_keys};
use crate::interrupt;
use crate::machine;
use crate::machine::allowed;
use crate::measure::driver::{Completion, Driver, DriverOptions, PostError, Transfer, join};
use crate::measure::ends;
use crate::measure::ends::Area;
use crate::measure::facade::Facade;
use crate::methods::Found;
use cci::{Connection, RmaHandle};
use cci_report::environment::Environment;
use cci_report::finding::{Finding, Threads, ThreadsPoint};
use cci_report::names::{AttributeName, MemoryOrigin, Mode, Operation, Threads as ThreadsOfEndpoint};
use cci_report::statistics::median;
use cci_report::{UserError, while_doing};
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// How often each number of threads is measured, in turn with the others.
const ROUNDS: u32 = 7;
/// Operations between two looks at the clock.
const BETWEEN: u32 = 64;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct ThreadsOptions {
    /// Threads, at most; when absent as many as there are processors, and 2 at least.
    pub upto: Option<u32>,
    /// The operation.
    pub operation: Operation,
    /// What the connections promise.
    pub attribute: AttributeName,
    /// Bytes of an operation.
    pub size: u64,
    /// The device of all endpoints.
    pub device: Device,
    /// Time for each number of threads.
    pub time: Duration,
}

/// Measures, with all threads in this process.
///
/// # Errors
///
/// There is no such device, the options contradict each other, or one thread could not be measured.
/// What ends the run later is told with what was found.
pub fn measure(options: &ThreadsOptions) -> Result<Found, UserError> {
    let size = options.size;
    if options.operation != Operation::Send && (options.attribute == AttributeName::Uu || size == 0) {
        return Err(UserError::new("RMA needs a reliable connection, and moves at least one byte"));
    }
    let transport = real_transport(options.device.transport.as_deref())?;
    let most = options.upto.unwrap_or_else(|| u32::try_from(allowed().len()).unwrap_or(2).max(2));
    let opening = DriverOptions {
        transport: Some(transport.clone()),
        threads: ThreadsOfEndpoint::Many,
        mode: Mode::Polling,
        keys: with_keys(&keys_of_loopback(&transport), &options.device.keys),
        library: None,
        ends: 2 + 2 * most,
    };
    let what = What { operation: options.operation, attribute: options.attribute, size };
    let environment = Environment { settings: opening.keys.clone(), ..machine::here(None) };
    let slice = options.time / (2 * ROUNDS);
    let (mut points, mut interrupted) = (Vec::new(), None);
    for threads in 1..=most {
        if interrupt::is_asked() && !points.is_empty() {
            break;
        }
        match point(&opening, what, threads, slice) {
            Ok(point) => points.push(point),
            Err(why) if points.is_empty() => return Err(why),
            Err(why) => {
                interrupted = Some(why.0);
                break;
            }
        }
    }
    let interrupted = interrupted.or_else(interrupt::why);
    let operation = what.operation.name().into();
    let finding = Finding::Threads(Threads { transport, operation, size, points });
    Ok(Found { environment, finding, interrupted })
}

/// What each thread does.
#[derive(Clone, Copy)]
struct What {
    operation: Operation,
    attribute: AttributeName,
    size: u64,
}

/// One number of threads: slices with one endpoint and with one each, in turn.
fn point(opening: &DriverOptions, what: What, threads: u32, slice: Duration) -> Result<ThreadsPoint, UserError> {
    let shared = Stage::new(opening, what, 1, threads)?;
    // One thread has one endpoint either way: two pairs of endpoints would differ by where their
    // memory lies.
    let own = if threads > 1 { Some(Stage::new(opening, what, threads, threads)?) } else { None };
    let stages: Vec<&Stage> = std::iter::once(&shared).chain(&own).collect();
    let mut rates = vec![Vec::new(); stages.len()];
    for stage in &stages {
        stage.play(what, slice / 4)?;
    }
    for round in 0..ROUNDS {
        if interrupt::is_asked() {
            break;
        }
        for (stage, rates) in stages.iter().zip(&mut rates) {
            // What a signal cut short counts only where there is nothing else.
            let rate = stage.play(what, slice)?;
            if round == 0 || !interrupt::is_asked() {
                rates.push(rate);
            }
        }
    }
    if rates.iter().any(Vec::is_empty) {
        return Err(UserError::new(interrupt::ENDED));
    }
    let medians: Vec<f64> = rates.iter().map(|rates| median(rates)).collect();
    let shared_per_second = medians.first().copied().unwrap_or(0.0);
    let own_per_second = medians.get(1).copied().unwrap_or(shared_per_second);
    Ok(ThreadsPoint { threads: threads.into(), shared_per_second, own_per_second })
}

/// Endpoints, connected. Fields drop in order: endpoints before the memory that is registered with
/// them.
struct Stage {
    pairs: Vec<Pair>,
    /// What each sending thread has: the number of its pair, and its connection.
    lanes: Vec<(usize, Connection)>,
    _memory: Vec<Area>,
}

/// A sending endpoint and the receiving one that it is connected to.
struct Pair {
    sender: Facade,
    receiver: Facade,
    /// Memory of both, for RMA.
    handles: Option<[RmaHandle; 2]>,
}

impl Stage {
    fn new(opening: &DriverOptions, what: What, pairs: u32, threads: u32) -> Result<Self, UserError> {
        let mut stage = Self { pairs: Vec::new(), lanes: Vec::new(), _memory: Vec::new() };
        for _ in 0..pairs {
            let (sender, receiver) = (Facade::open(opening)?, Facade::open(opening)?);
            let mut handles = None;
            if what.operation != Operation::Send {
                let [mine, theirs] =
                    [Area::new(MemoryOrigin::Library, what.size)?, Area::new(MemoryOrigin::Library, what.size)?];
                handles = Some([sender.register(mine.memory())?, receiver.register(theirs.memory())?]);
                stage._memory.extend([mine, theirs]);
            }
            stage.pairs.push(Pair { sender, receiver, handles });
        }
        for thread in 0..threads as usize {
            let number = thread % stage.pairs.len();
            let pair = &stage.pairs[number];
            stage.lanes.push((number, join(&pair.sender, &pair.receiver, ends::attribute(what.attribute))?));
        }
        if let Some((number, connection)) = stage.lanes.first() {
            let most = stage.pairs[*number].sender.max_send_size(*connection);
            if what.operation == Operation::Send && what.size > most {
                return Err(UserError(format!(
                    "a message of this connection has at most {most} bytes: give a smaller --size"
                )));
            }
        }
        Ok(stage)
    }

    /// Has every thread do its operations for so long, or until a signal comes; how many there were
    /// in a second.
    fn play(&self, what: What, slice: Duration) -> Result<f64, UserError> {
        let start = Barrier::new(self.lanes.len() + self.pairs.len() + 1);
        let message = vec![1; usize::try_from(what.size).map_err(while_doing("the size is too large"))?];
        let (sent, received, took) = std::thread::scope(|scope| {
            let senders: Vec<_> = self
                .lanes
                .iter()
                .map(|(number, connection)| {
                    let (pair, start, message) = (&self.pairs[*number], &start, &message[..]);
                    scope.spawn(move || send(pair, *connection, what, message, start, slice))
                })
                .collect();
            let receivers: Vec<_> = self
                .pairs
                .iter()
                .map(|pair| {
                    let start = &start;
                    scope.spawn(move || receive(&pair.receiver, start, slice))
                })
                .collect();
            start.wait();
            let begin = Instant::now();
            let (sent, received) = (sum(senders), sum(receivers));
            (sent, received, if interrupt::is_asked() { begin.elapsed() } else { slice })
        });
        #[expect(clippy::cast_precision_loss, reason = "counts below 2^52")]
        // Messages count when they have arrived; RMA when started, since no more wait than there is
        // room for.
        let count = if what.operation == Operation::Send { received? } else { sent? } as f64;
        Ok(count / took.as_secs_f64())
    }
}

/// The sum of what threads counted.
fn sum(threads: Vec<std::thread::ScopedJoinHandle<'_, Result<u64, UserError>>>) -> Result<u64, UserError> {
    let ended = threads
        .into_iter()
        .map(|thread| thread.join().unwrap_or_else(|_| Err(UserError::new("a measuring thread failed"))));
    ended.collect::<Result<Vec<_>, _>>().map(|counts| counts.iter().sum())
}

/// One sending thread: operations without events, until the time is over; how many.
fn send(
    pair: &Pair,
    connection: Connection,
    what: What,
    message: &[u8],
    start: &Barrier,
    slice: Duration,
) -> Result<u64, UserError> {
    start.wait();
    let (begin, mut count) = (Instant::now(), 0);
    while begin.elapsed() < slice && !interrupt::is_asked() {
        for _ in 0..BETWEEN {
            let posted = match &pair.handles {
                None => pair.sender.send(connection, message, true),
                Some([local, remote]) => {
                    let read = what.operation == Operation::Read;
                    let transfer = Transfer { local, remote, len: what.size, read, message: false };
                    pair.sender.rma(connection, &transfer, true)
                }
            };
            match posted {
                Ok(()) => count += 1,
                Err(PostError::Full) => drop(pair.sender.poll::<false>()?),
                Err(PostError::Driver(error)) => return Err(error.into()),
            }
        }
    }
    Ok(count)
}

/// One receiving thread: as long as the senders; how many messages it took.
fn receive(endpoint: &Facade, start: &Barrier, slice: Duration) -> Result<u64, UserError> {
    start.wait();
    let (begin, mut count) = (Instant::now(), 0);
    while begin.elapsed() < slice && !interrupt::is_asked() {
        for _ in 0..BETWEEN {
            count += u64::from(matches!(endpoint.poll::<false>()?, Completion::Received(_)));
        }
    }
    Ok(count)
}
