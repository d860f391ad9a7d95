//! The measured loops. Nothing here allocates, reads a clock or writes to a terminal; every event
//! is given back at once.
//!
//! A loop that sends says how many SEND events it leaves for [`super::control::Link::settle`]: over
//! a network they may come after what the other end says next, which a loop would take for a
//! message of its own and lose.

use super::driver::{Completion, Driver, DriverError, PostError, SILENCE_IN_BLOCK, Transfer};
use hdrhistogram::Histogram;
use std::time::Duration;

/// RMA operations in flight where there may be many, unless asked otherwise.
pub(crate) const WINDOW: u64 = 16;

/// After how many looks that found nothing a loop that never sleeps reads the clock.
const LOOKS: u32 = 1 << 16;

/// Bounds a wait. What comes does not touch it, and looks that find nothing seldom read the clock.
#[derive(Default)]
pub(crate) struct Silence {
    looks: u32,
    since: Option<Duration>,
}

impl Silence {
    /// Waits once; fails after [`SILENCE_IN_BLOCK`].
    #[inline(always)]
    pub(crate) fn rest<P: Driver>(&mut self, driver: &P) -> Result<(), DriverError> {
        self.looks = self.looks.wrapping_add(1);
        // Before it sleeps, so that who is woken looks at once.
        if driver.handle().is_some() || self.looks.is_multiple_of(LOOKS) {
            self.check(driver.now())?;
        }
        driver.wait();
        Ok(())
    }

    #[cold]
    fn check(&mut self, now: Duration) -> Result<(), DriverError> {
        let since = *self.since.get_or_insert(now);
        if now.saturating_sub(since) < SILENCE_IN_BLOCK { Ok(()) } else { Err(DriverError::Silent) }
    }

    /// Something has come, or an operation has completed.
    #[inline(always)]
    pub(crate) fn end(&mut self) {
        self.since = None;
    }
}

/// What is sent, and how its end is told.
#[derive(Clone, Copy)]
pub(crate) enum Act<'a> {
    /// A message.
    Message(&'a [u8]),
    /// An RMA.
    Transfer(Transfer<'a>),
}

/// One end of a connection in a loop.
#[derive(Clone, Copy)]
pub(crate) struct Lane<'a, P: Driver> {
    pub(crate) driver: &'a P,
    pub(crate) connection: P::Connection,
    pub(crate) silent: bool,
}

impl<P: Driver> Lane<'_, P> {
    /// Starts an operation, waiting for room; `open` counts operations whose SEND event has not
    /// come.
    #[inline(always)]
    fn post(&self, act: &Act<'_>, silent: bool, open: &mut u64) -> Result<(), DriverError> {
        let mut silence = Silence::default();
        while !self.try_post(act, silent, open)? {
            match self.reap(open)? {
                true => silence.end(),
                false => silence.rest(self.driver)?,
            }
        }
        Ok(())
    }

    /// Starts an operation, if there is room for it; whether there was.
    #[inline(always)]
    fn try_post(&self, act: &Act<'_>, silent: bool, open: &mut u64) -> Result<bool, DriverError> {
        let posted = match act {
            Act::Message(bytes) => self.driver.send(self.connection, bytes, silent),
            Act::Transfer(transfer) => self.driver.rma(self.connection, transfer, silent),
        };
        match posted {
            Ok(()) => {
                *open += u64::from(!silent);
                Ok(true)
            }
            Err(PostError::Full) => Ok(false),
            Err(PostError::Driver(error)) => Err(error),
        }
    }

    /// Looks once, for SEND events; whether there was one. A message may be a stranger's, and is no
    /// sign of the peer.
    #[inline(always)]
    fn reap(&self, open: &mut u64) -> Result<bool, DriverError> {
        match self.driver.poll::<false>()? {
            Completion::Sent => {
                *open = open.saturating_sub(1);
                Ok(true)
            }
            Completion::Nothing | Completion::Received(_) | Completion::Other => Ok(false),
        }
    }

    /// Waits until at most `most` operations are open.
    #[inline(always)]
    fn drain(&self, open: &mut u64, most: u64) -> Result<(), DriverError> {
        let mut silence = Silence::default();
        while *open > most {
            match self.reap(open)? {
                true => silence.end(),
                false => silence.rest(self.driver)?,
            }
        }
        Ok(())
    }

    /// Waits for a message; its length.
    #[inline(always)]
    fn receive<const TOUCH: bool>(&self, open: &mut u64) -> Result<usize, DriverError> {
        let mut silence = Silence::default();
        loop {
            match self.driver.poll::<TOUCH>()? {
                Completion::Received(len) => return Ok(len),
                Completion::Sent => {
                    *open = open.saturating_sub(1);
                    silence.end();
                }
                Completion::Nothing | Completion::Other => silence.rest(self.driver)?,
            }
        }
    }
}

/// The end that begins: one operation there, a message back, `count` times.
#[inline(never)]
pub(crate) fn ping<P: Driver, const TOUCH: bool>(
    lane: &Lane<'_, P>,
    act: &Act<'_>,
    count: u64,
) -> Result<u64, DriverError> {
    let mut open = 0;
    for _ in 0..count {
        lane.post(act, lane.silent, &mut open)?;
        lane.receive::<TOUCH>(&mut open)?;
    }
    Ok(open)
}

/// The same, each round trip timed: from the end of the one before it, so that one reading of the
/// clock is in each.
#[inline(never)]
pub(crate) fn ping_each<P: Driver, const TOUCH: bool>(
    lane: &Lane<'_, P>,
    act: &Act<'_>,
    count: u64,
    times: &mut Histogram<u64>,
) -> Result<u64, DriverError> {
    let (mut open, mut begin) = (0, lane.driver.now());
    for _ in 0..count {
        lane.post(act, lane.silent, &mut open)?;
        lane.receive::<TOUCH>(&mut open)?;
        let end = lane.driver.now();
        times.saturating_record(u64::try_from((end - begin).as_nanos()).unwrap_or(u64::MAX));
        begin = end;
    }
    Ok(open)
}

/// The end that answers.
#[inline(never)]
pub(crate) fn pong<P: Driver, const TOUCH: bool>(
    lane: &Lane<'_, P>,
    act: &Act<'_>,
    count: u64,
) -> Result<u64, DriverError> {
    let mut open = 0;
    for _ in 0..count {
        lane.receive::<TOUCH>(&mut open)?;
        lane.post(act, lane.silent, &mut open)?;
    }
    Ok(open)
}

/// Sends without waiting for each; reaps as it goes. With a window reaps when that is full, until
/// half of it is free.
#[inline(never)]
pub(crate) fn stream<P: Driver>(
    lane: &Lane<'_, P>,
    act: &Act<'_>,
    count: u64,
    window: Option<u64>,
) -> Result<u64, DriverError> {
    let mut open = 0;
    for _ in 0..count {
        match window {
            Some(window) if open >= window => lane.drain(&mut open, window / 2)?,
            None if !lane.silent => {
                lane.reap(&mut open)?;
            }
            _ => {}
        }
        lane.post(act, lane.silent, &mut open)?;
    }
    Ok(open)
}

/// As many in flight as the window says; with one, each is waited for. Silent operations end with
/// one that is not, so that all have ended when it has.
#[inline(never)]
pub(crate) fn transfer<P: Driver>(
    lane: &Lane<'_, P>,
    act: &Act<'_>,
    count: u64,
    window: Option<u64>,
) -> Result<u64, DriverError> {
    let most = window.unwrap_or(WINDOW).saturating_sub(1);
    let mut open = 0;
    for left in (0..count).rev() {
        lane.drain(&mut open, most)?;
        lane.post(act, lane.silent && left > 0, &mut open)?;
    }
    Ok(open)
}

/// One operation at a time, and work between its start and waiting for its end.
#[inline(never)]
pub(crate) fn transfer_working<P: Driver>(
    lane: &Lane<'_, P>,
    act: &Act<'_>,
    count: u64,
    work: u64,
) -> Result<u64, DriverError> {
    let mut open = 0;
    for _ in 0..count {
        lane.drain(&mut open, 0)?;
        lane.post(act, false, &mut open)?;
        compute(work);
    }
    Ok(open)
}

/// Work that needs nothing but the processor: so many steps, each of which needs the one before it.
#[inline(never)]
pub(crate) fn compute(steps: u64) {
    let mut value = steps;
    for _ in 0..steps {
        value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    }
    std::hint::black_box(value);
}

/// Both directions at once: starts `count` operations, the last of which is `last`, and receives
/// `expected` messages.
#[inline(never)]
pub(crate) fn duplex<P: Driver, const TOUCH: bool>(
    lane: &Lane<'_, P>,
    [act, last]: [&Act<'_>; 2],
    count: u64,
    expected: u64,
    window: Option<u64>,
) -> Result<u64, DriverError> {
    let (mut open, mut posted, mut received, mut silence) = (0, 0, 0, Silence::default());
    while posted < count || received < expected {
        let may_post = posted < count && window.is_none_or(|most| open < most);
        let next = if posted + 1 == count { last } else { act };
        let is_posted = may_post && lane.try_post(next, false, &mut open)?;
        posted += u64::from(is_posted);
        match lane.driver.poll::<TOUCH>()? {
            Completion::Received(_) => {
                received += 1;
                silence.end();
            }
            Completion::Sent => {
                open = open.saturating_sub(1);
                silence.end();
            }
            // What others do is no sign of the peer.
            Completion::Nothing | Completion::Other if !is_posted => silence.rest(lane.driver)?,
            Completion::Nothing | Completion::Other => {}
        }
    }
    Ok(open)
}

/// Receives `count` messages, or, where some may be lost, until one of `marker` bytes; how many
/// there were without the marker.
#[inline(never)]
pub(crate) fn sink<P: Driver, const TOUCH: bool>(
    lane: &Lane<'_, P>,
    count: u64,
    marker: Option<usize>,
) -> Result<u64, DriverError> {
    let mut open = 0;
    let mut received = 0;
    while marker.is_some() || received < count {
        if Some(lane.receive::<TOUCH>(&mut open)?) == marker {
            break;
        }
        received += 1;
    }
    Ok(received)
}

/// Length of the message that ends a stream in which some may be lost: one that no message of the
/// stream has.
pub(crate) fn marker(size: u64) -> usize {
    usize::from(size == 0)
}

#[cfg(test)]
mod tests {
    use super::super::control::{Command, Link, offer, send};
    use super::super::driver::{Asking, DriverEvent};
    use super::super::scripted::{Script, Scripted};
    use super::*;

    #[test]
    fn a_wait_ends_after_a_silence_and_begins_anew_with_what_comes() {
        let (mut silence, second) = (Silence::default(), Duration::from_secs(1));
        let at = |seconds: u32| 1000 * second + seconds * second;
        assert_eq!([0, 59].map(|seconds| silence.check(at(seconds))), [Ok(()); 2]);
        silence.end();
        assert_eq!([59, 118].map(|seconds| silence.check(at(seconds))), [Ok(()); 2]);
        assert_eq!(silence.check(at(119)), Err(DriverError::Silent));
    }

    /// An endpoint without room, to which strangers do something all the time: 0.1 ms between two
    /// looks.
    struct Beset {
        seen: Completion,
        looks: std::cell::Cell<u32>,
    }

    impl Script for Beset {
        fn next(
            &self,
            _: &mut Vec<u8>,
            _: &mut dyn FnMut(&Asking<'_>) -> u64,
        ) -> Result<DriverEvent<u32>, DriverError> {
            Ok(DriverEvent::Other)
        }

        fn poll(&self) -> Completion {
            self.looks.set(self.looks.get() + 1);
            self.seen
        }

        fn send(&self) -> Result<(), PostError> {
            Err(PostError::Full)
        }

        fn now(&self) -> Duration {
            let now = Duration::from_micros(100) * self.looks.get();
            assert!(now < 20 * SILENCE_IN_BLOCK, "a peer that is silent holds this end");
            now
        }
    }

    fn beset(seen: Completion) -> Scripted<Beset> {
        Scripted(Beset { seen, looks: std::cell::Cell::new(0) })
    }

    #[test]
    fn what_strangers_do_hides_no_silence_of_the_peer() {
        let driver = beset(Completion::Other);
        let lane = Lane { driver: &driver, connection: 0, silent: false };
        assert_eq!(duplex::<_, false>(&lane, [&Act::Message(&[]); 2], 1, 1, None), Err(DriverError::Silent));
        for seen in [Completion::Other, Completion::Received(8)] {
            let sent = send(&beset(seen), 0, &Command::End);
            assert_eq!(sent, Err(DriverError::Silent.into()), "{seen:?}");
        }
    }

    #[test]
    fn an_answer_for_which_there_is_no_room_waits_for_none() {
        let driver = beset(Completion::Other);
        assert!(offer(&driver, 0, &Command::End).is_err());
        assert_eq!(driver.0.looks.get(), 0, "a look would lose what has come");
    }

    /// An endpoint whose operations complete one at a time, 40 s after each other, and a message
    /// after the fourth.
    #[derive(Default)]
    struct Slow {
        looks: std::cell::Cell<u32>,
    }

    /// How many looks lie between two of its events.
    const LOOKS_EACH: u32 = 2 * LOOKS;

    impl Script for Slow {
        fn next(
            &self,
            _: &mut Vec<u8>,
            _: &mut dyn FnMut(&Asking<'_>) -> u64,
        ) -> Result<DriverEvent<u32>, DriverError> {
            let is_sent = self.poll() == Completion::Sent;
            Ok(if is_sent { DriverEvent::Sent } else { DriverEvent::Nothing })
        }

        fn poll(&self) -> Completion {
            let looks = self.looks.replace(self.looks.get() + 1) + 1;
            match looks / LOOKS_EACH {
                _ if !looks.is_multiple_of(LOOKS_EACH) => Completion::Nothing,
                ..=4 => Completion::Sent,
                _ => Completion::Received(0),
            }
        }

        fn now(&self) -> Duration {
            Duration::from_secs(40).mul_f64(f64::from(self.looks.get()) / f64::from(LOOKS_EACH))
        }
    }

    fn slow() -> Scripted<Slow> {
        Scripted(Slow::default())
    }

    #[test]
    fn operations_that_complete_one_after_the_other_are_no_silence() {
        let [draining, duplexing] = [(); 2].map(|()| slow());
        let lane = Lane { driver: &draining, connection: 0, silent: false };
        assert_eq!(lane.drain(&mut 4, 0), Ok(()));
        let receiving = Lane { driver: &slow(), connection: 0, silent: false };
        assert_eq!(receiving.receive::<false>(&mut 4), Ok(0));
        let lane = Lane { driver: &duplexing, connection: 0, silent: false };
        assert_eq!(duplex::<_, false>(&lane, [&Act::Message(&[]); 2], 4, 1, None), Ok(0));
        assert_eq!(Link::new(slow(), 0, 0).settle(4), Ok(()));
        // Nothing follows the fourth completion.
        assert_eq!(Link::new(slow(), 0, 0).settle(5), Err(DriverError::Silent));
    }
}
