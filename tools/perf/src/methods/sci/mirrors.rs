//! What mirror windows are beside: RMA writes of CCI that are polled as they are; and blocks that
//! only mirror windows have.

use super::end::{End, LONG, Order, Watch, failed};
use super::loops::{Lane, Windows};
use crate::machine;
use crate::probe::Stores;
use cci::{Connection, Event, Notify, Rma, RmaError, RmaHandle};
use cci_report::{UserError, while_doing};
use cci_sci::SequenceStatus;
use rustix::time::{ClockId, clock_gettime};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// Where a word waits that is written by RMA: the other end writes before it.
const SOURCE: usize = LONG / 2;
/// Where a window has the word of these blocks: in a line of its own.
pub(super) const WORD: usize = 64;
/// The windows of messages to an owner that makes no call: the smaller ones.
const WATCHED: usize = 1;
/// The pause before each message to an owner that makes no call: its library is quiet then.
const PAUSE: Duration = Duration::from_millis(1);
/// The pause between two looks for its acknowledgement, which leaves the processor to others.
const LOOK: Duration = Duration::from_micros(50);

/// Memory of both ends, by RMA writes of single words.
pub(super) struct Writes<'a> {
    end: &'a End,
    to: Connection,
    remote: &'a RmaHandle,
    under_way: Cell<u64>,
}

impl Writes<'_> {
    fn poll(&self) {
        // Where the other end is lost, this process is ended.
        let ended = self.end.progress().unwrap_or(0);
        self.under_way.set(self.under_way.get().saturating_sub(ended));
    }
}

impl Lane for Writes<'_> {
    fn store<const WIDTH: usize>(&self, at: usize, value: u64) {
        debug_assert_eq!(WIDTH, 8, "words alone are written");
        self.end.memory.write(SOURCE, &value.to_ne_bytes());
        let rma = Rma::new(self.end.own.memory.handle(), self.remote, 8);
        let rma = rma.local_offset(SOURCE as u64).remote_offset(at as u64);
        loop {
            match self.end.own.endpoint.write(self.to, &rma, 1) {
                Ok(()) => break self.under_way.set(self.under_way.get() + 1),
                Err(RmaError::NoBuffers) => self.poll(),
                Err(why) => break debug_assert!(false, "{why:?}"),
            }
        }
    }

    fn load<const WIDTH: usize>(&self, at: usize) -> u64 {
        let mut word = [0; 8];
        self.end.memory.read(at, &mut word);
        u64::from_ne_bytes(word)
    }

    fn copy(&self, _: usize, _: &[u8]) {
        debug_assert!(false, "words alone are written");
    }

    fn flush(&self) {
        while self.under_way.get() > 0 {
            self.poll();
        }
    }

    fn drive(&self) {
        self.poll();
    }
}

/// How a mirror window is brought to its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Brought {
    /// Flushed after each message; the last one is confirmed.
    Flushed,
    /// Each message is confirmed.
    Confirmed,
}

/// Bytes of a message that has a changed word.
const PATCH: usize = 48;

fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

fn confirm(windows: &Windows, sequence: &cci_sci::Sequence) -> Result<(), UserError> {
    match sequence.check() {
        SequenceStatus::Ok => Ok(()),
        other => {
            Err(UserError(format!("a mirror window of {} bytes cannot be confirmed: {other:?}", windows.far.len())))
        }
    }
}

impl End {
    pub(super) fn writes(&self) -> Result<Writes<'_>, UserError> {
        Ok(Writes { end: self, to: self.own.to()?, remote: self.own.remote()?, under_way: Cell::new(0) })
    }

    /// So many times a word is stored and confirmed. Values go on from `number`, which is new.
    pub(super) fn confirm_words(&self, windows: usize, number: u64, count: u64) -> Result<Duration, UserError> {
        let windows = &self.windows[windows];
        let sequence = windows.far.sequence();
        self.order(Order::Drive)?;
        let turn = |turn: u64| {
            windows.far.store(WORD, number << 32 | turn).map_err(failed)?;
            confirm(windows, &sequence)
        };
        let warm = count.div_ceil(10);
        (0..warm).try_for_each(turn)?;
        let begin = Instant::now();
        (warm..warm + count).try_for_each(turn)?;
        Ok(begin.elapsed())
    }

    /// So many times all bytes of a window are changed by a copy into it.
    pub(super) fn change_all(&self, windows: usize, count: u64, brought: Brought) -> Result<Duration, UserError> {
        let windows = &self.windows[windows];
        let sequence = windows.far.sequence();
        self.order(Order::Drive)?;
        let patterns = [0x11_u8, 0x22].map(|byte| vec![byte; windows.far.len()]);
        let turn = |turn: u64| {
            windows.far.write(0, &patterns[usize::from(turn % 2 == 1)]).map_err(failed)?;
            match brought {
                Brought::Flushed => {
                    windows.far.flush();
                    Ok(())
                }
                Brought::Confirmed => confirm(windows, &sequence),
            }
        };
        let warm = count.div_ceil(10);
        (0..warm).try_for_each(turn)?;
        confirm(windows, &sequence)?;
        let begin = Instant::now();
        (warm..warm + count).try_for_each(turn)?;
        confirm(windows, &sequence)?;
        Ok(begin.elapsed())
    }

    /// So many RMA writes of `len` bytes, one after the other.
    pub(super) fn write_alone(&self, len: usize, count: u64) -> Result<Duration, UserError> {
        self.order(Order::Rma)?;
        self.write(len, count.div_ceil(10), 1)?;
        let begin = Instant::now();
        self.write(len, count, 1)?;
        Ok(begin.elapsed())
    }

    /// So many messages of CCI of a patch's length, each with an answer of a confirmation's.
    pub(super) fn answer_messages(&self, count: u64) -> Result<Duration, UserError> {
        self.order(Order::Answers)?;
        let turn = |_: u64| {
            self.send(PATCH)?;
            while !self.exchange(None)? {}
            Ok::<_, UserError>(())
        };
        let warm = count.div_ceil(10);
        (0..warm).try_for_each(turn)?;
        let begin = Instant::now();
        (0..count).try_for_each(turn)?;
        Ok(begin.elapsed())
    }

    fn send(&self, len: usize) -> Result<(), UserError> {
        let sent = self.own.endpoint.send(self.own.to()?, &[0x5a; PATCH][..len], Notify::OnFailure(1));
        sent.map_err(while_doing("cannot send"))
    }

    /// Takes events of CCI's own until there are none, and answers each message with so many bytes.
    /// Whether there was one.
    pub(super) fn exchange(&self, answer: Option<usize>) -> Result<bool, UserError> {
        let mut any = false;
        while let Some(event) = self.own.endpoint.get_event().map_err(while_doing("cannot take events"))? {
            match event {
                Event::Received(message) => {
                    drop(message);
                    any = true;
                    answer.map_or(Ok(()), |len| self.send(len))?;
                }
                Event::Completed(done) => done.outcome().map_err(while_doing("an operation failed"))?,
                Event::Disconnected(_) => return Err(UserError::new("the other end is gone")),
                _ => {}
            }
        }
        Ok(any)
    }

    /// Sends messages to an owner that makes no call: the median of their times and the 99th
    /// percentile, ns. A message is the time when it was stored.
    pub(super) fn send_watched(&self, count: u64, is_free: bool, bare: &Stores<'_>) -> Result<[f64; 2], UserError> {
        let far = &self.windows[WATCHED].far;
        let before = far.load(WORD).map_err(failed)?;
        self.order(Order::Watch(Watch { count, is_free, before }))?;
        for number in 1..=count {
            std::thread::sleep(PAUSE);
            far.store(WORD, now_ns()).map_err(failed)?;
            far.flush();
            while bare.load::<8>(WORD) != number {
                std::thread::sleep(LOOK);
            }
        }
        let figures = self.await_bytes()?;
        serde_json::from_slice(&figures).map_err(while_doing("cannot read the times of messages"))
    }

    /// The owner's part. It acknowledges by bare memory.
    pub(super) fn watch(&self, watch: Watch, bare: &Stores<'_>) -> Result<(), UserError> {
        let own = &self.windows[WATCHED].own;
        let load = || own.load::<u64>(WORD).map_err(failed);
        let mut seen = watch.before;
        let mut times = Vec::new();
        let mut take = || -> Result<(), UserError> {
            for number in 1..=watch.count {
                let mut now = load()?;
                while now == seen {
                    now = load()?;
                }
                #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
                times.push(now_ns().saturating_sub(now) as f64);
                seen = now;
                bare.store::<8>(WORD, number);
            }
            Ok(())
        };
        if watch.is_free { machine::with_others_free(take) } else { take() }?;
        times.sort_by(f64::total_cmp);
        let at = |part: usize| times[(times.len() * part / 100).min(times.len() - 1)];
        let figures = serde_json::to_vec(&[at(50), at(99)]).map_err(while_doing("cannot write times"))?;
        self.answer_with(&figures)
    }
}
