//! Between two endpoints that poll: messages there and back, calls that find nothing, and blocks of
//! both kinds in turn.

use super::middle;
use crate::measure::driver::{Completion, Driver, DriverEvent, PostError};
use crate::measure::facade::Facade;
use cci::Connection;
use cci_report::UserError;
use std::time::{Duration, Instant};

/// Exchanges of a block, and blocks of either kind.
pub(super) const EXCHANGES: u64 = 20_000;
const BLOCKS: usize = 15;
/// Empty calls of a block.
pub(super) const CALLS: u32 = 20_000;
/// How long a step may take.
pub(super) const LIMIT: Duration = Duration::from_secs(60);

/// The middle times of two kinds of blocks, in turn.
pub(super) fn both(mut time: impl FnMut(bool) -> Result<f64, UserError>) -> Result<[f64; 2], UserError> {
    let mut times = [Vec::new(), Vec::new()];
    for block in 0..2 * BLOCKS {
        times[block % 2].push(time(block % 2 == 1)?);
    }
    Ok(times.map(middle))
}

/// The time of a block of empty calls, seconds.
pub(super) fn empty_calls(endpoint: &Facade) -> Result<f64, UserError> {
    let begin = Instant::now();
    for _ in 0..CALLS {
        if endpoint.poll::<false>()? != Completion::Nothing {
            return Err(UserError::new("an idle peer was not idle"));
        }
    }
    Ok(begin.elapsed().as_secs_f64())
}

/// Calls for this time.
pub(super) fn idle_for(endpoint: &Facade, time: Duration) -> Result<(), UserError> {
    let begin = Instant::now();
    while begin.elapsed() < time {
        endpoint.poll::<false>()?;
    }
    Ok(())
}

/// The time of a block of exchanges from its first tenth on, seconds.
pub(super) fn exchange(endpoint: &Facade, connection: Connection) -> Result<f64, UserError> {
    let mut begin = Instant::now();
    for round in 0..EXCHANGES {
        if round == EXCHANGES / 10 {
            begin = Instant::now();
        }
        send(endpoint, connection, &[0; 8])?;
        await_message(endpoint)?;
    }
    Ok(begin.elapsed().as_secs_f64())
}

/// The other side of so many exchanges.
pub(super) fn echo(endpoint: &Facade, connection: Connection, count: u64) -> Result<(), UserError> {
    for _ in 0..count {
        await_message(endpoint)?;
        send(endpoint, connection, &[0; 8])?;
    }
    Ok(())
}

pub(super) fn send(endpoint: &Facade, connection: Connection, message: &[u8]) -> Result<(), UserError> {
    loop {
        match endpoint.send(connection, message, true) {
            Ok(()) => return Ok(()),
            Err(PostError::Full) => drop(endpoint.poll::<false>()?),
            Err(PostError::Driver(error)) => return Err(error.into()),
        }
    }
}

pub(super) fn await_message(endpoint: &Facade) -> Result<(), UserError> {
    await_until(LIMIT, || Ok(matches!(endpoint.poll::<false>()?, Completion::Received(_))))
}

/// Asks until there is an answer or the time is over; looks at the clock seldom, as it is part of
/// what is measured.
pub(super) fn await_until(
    limit: Duration,
    mut answer: impl FnMut() -> Result<bool, UserError>,
) -> Result<(), UserError> {
    let mut begin = None;
    loop {
        for _ in 0..1 << 20 {
            if answer()? {
                return Ok(());
            }
        }
        if begin.get_or_insert_with(Instant::now).elapsed() > limit {
            return Err(UserError::new("messages do not arrive"));
        }
    }
}

/// Accepts connections until there are so many more.
pub(super) fn accept(endpoint: &Facade, count: usize) -> Result<Vec<Connection>, UserError> {
    let (mut open, mut bytes, begin) = (Vec::new(), Vec::new(), Instant::now());
    while open.len() < count {
        match endpoint.poll_event(&mut bytes, |_| 0)? {
            DriverEvent::Open(connection, _) => open.push(connection),
            DriverEvent::NotOpen(status, _) => return Err(UserError(format!("a connection failed: {status}"))),
            _ if begin.elapsed() > LIMIT => {
                return Err(UserError(format!("only {} of {count} peers connected", open.len())));
            }
            _ => {}
        }
    }
    Ok(open)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_for_messages_has_an_end() {
        let mut asked = 0_u32;
        let third = await_until(LIMIT, || {
            asked += 1;
            Ok(asked == 3)
        });
        assert_eq!((third, asked), (Ok(()), 3));
        let why = await_until(Duration::ZERO, || Ok(false)).unwrap_err();
        assert_eq!(why.0, "messages do not arrive");
    }

    #[test]
    fn blocks_of_both_kinds_alternate() {
        let mut seen = Vec::new();
        let times = both(|second| {
            seen.push(second);
            Ok(if second { 2.0 } else { 1.0 })
        });
        assert_eq!(times, Ok([1.0, 2.0]));
        assert!(seen.len() == 2 * BLOCKS && seen.chunks(2).all(|pair| pair == [false, true]));
    }
}
