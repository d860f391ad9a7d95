//! RMA of memory of which another thread changes one word without pause, beside RMA of the same
//! memory while it is quiet.

use super::beside::beside;
use crate::measure::driver::{Completion, Driver, DriverOptions, PostError, Transfer, join};
use crate::measure::facade::Facade;
use crate::methods::middle;
use cci::{Attribute, Connection, Memory, SharedMemory};
use cci_report::{UserError, while_doing};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Operations of a block, and blocks of each kind. The library may need the first few to notice
/// that the memory changes.
pub const OPERATIONS: usize = 1000;
const BLOCKS: usize = 7;
const FIRST: usize = 10;
/// Changes between two polls of the thread that makes them.
const CHANGES: u64 = 50;
/// How long one operation may take.
const LIMIT: Duration = Duration::from_secs(60);

/// What was measured.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    /// Throughput to that of quiet memory.
    pub speed: f64,
    /// The longest operation to the longest that is allowed.
    pub longest: f64,
}

/// Reads, or writes, `len` bytes so many times a block. One word in the middle changes.
///
/// # Errors
///
/// An operation fails, or does not end.
pub fn measure(transport: &str, read: bool, len: usize, operations: usize) -> Result<Figures, UserError> {
    let opening = DriverOptions::on_loopback(transport);
    let (client, server) = (Facade::open(&opening)?, Facade::open(&opening)?);
    let connection = join(&client, &server, Attribute::ReliableOrdered)?;
    let no_memory = || while_doing("cannot get memory");
    let local = SharedMemory::new(len).map_err(no_memory())?;
    let remote = SharedMemory::new(len).map_err(no_memory())?;
    let (local_handle, remote_handle) = (client.register(local.memory())?, server.register(remote.memory())?);
    let transfer = Transfer { local: &local_handle, remote: &remote_handle, len: len as u64, read, message: false };
    let source = if read { remote.memory() } else { local.memory() };
    // The memory of one word has no other.
    let word = if len > 8 { (len / 2) as u64 } else { 0 };
    // The other thread is to change the word.
    let is_changing = AtomicBool::new(false);
    beside(
        |is_over| serve(&server, &source, word, &is_changing, is_over),
        || blocks(&is_changing, operations, || operation(&client, connection, &transfer)),
    )
}

/// Makes progress at the peer, and changes the word if it is to change, until all is over.
fn serve(server: &Facade, source: &Memory, word: u64, is_changing: &AtomicBool, is_over: &AtomicBool) {
    let mut number = 0_u64;
    while !is_over.load(Ordering::Relaxed) {
        let _ = server.poll::<false>();
        if is_changing.load(Ordering::Relaxed) {
            for _ in 0..CHANGES {
                number = number.wrapping_add(1);
                // The word is whole within the memory: never refused.
                let _ = source.copy_in(word, &number.to_ne_bytes());
            }
        }
    }
}

/// Operations with quiet and with changing memory, block by block in turn.
fn blocks(
    changes: &AtomicBool,
    operations: usize,
    operation: impl Fn() -> Result<Duration, UserError>,
) -> Result<Figures, UserError> {
    let (mut ratios, mut quiet, mut changing) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..BLOCKS {
        let times = [false, true].map(|is_changing| {
            changes.store(is_changing, Ordering::Relaxed);
            (0..FIRST.min(operations)).try_for_each(|_| operation().map(|_| ()))?;
            (0..operations).map(|_| operation()).collect::<Result<Vec<_>, UserError>>()
        });
        let [still, moving] = times;
        let (still, moving) = (still?, moving?);
        let total = |times: &[Duration]| times.iter().sum::<Duration>().as_secs_f64();
        ratios.push(total(&still) / total(&moving));
        quiet.extend(still.iter().map(Duration::as_secs_f64));
        changing.extend(moving.iter().map(Duration::as_secs_f64));
    }
    let longest = changing.into_iter().reduce(f64::max).unwrap_or(f64::NAN);
    Ok(Figures { speed: middle(ratios), longest: longest / (4.0 * middle(quiet) + 0.01) })
}

/// The time of one operation, from its call to its event.
fn operation(client: &Facade, connection: Connection, transfer: &Transfer<'_>) -> Result<Duration, UserError> {
    let begin = Instant::now();
    client.rma(connection, transfer, false).map_err(|refused| match refused {
        PostError::Full => UserError::new("no room for a single operation"),
        PostError::Driver(error) => error.into(),
    })?;
    while client.poll::<false>()? != Completion::Sent {
        if begin.elapsed() > LIMIT {
            return Err(UserError::new("an operation does not end"));
        }
    }
    Ok(begin.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_operation_and_the_median_of_the_blocks_are_taken() {
        use std::cell::Cell;
        let (changes, count) = (AtomicBool::new(false), Cell::new(0_u32));
        let operation = || {
            count.set(count.get() + 1);
            let is_changing = changes.load(Ordering::Relaxed);
            // The very first is slow, which does not count; and one of those that do.
            let is_slow = count.get() == 1 || count.get() == 5555;
            Ok(Duration::from_millis(match (is_slow, is_changing) {
                (true, _) => 1000,
                (false, true) => 20,
                (false, false) => 10,
            }))
        };
        let figures = blocks(&changes, OPERATIONS, operation).expect("figures");
        assert!((figures.speed - 0.5).abs() < 1e-9, "{}", figures.speed);
        assert!((figures.longest - 20.0).abs() < 1e-9, "1 s to 4 times 10 ms and 10 ms: {}", figures.longest);
    }

    #[test]
    fn both_directions_are_measured() {
        for read in [false, true] {
            for len in [8, 64 << 10] {
                let figures = measure("sock", read, len, 20).expect("figures");
                assert!(figures.speed > 0.0 && figures.longest > 0.0, "{len} bytes: {figures:?}");
            }
        }
    }
}
