//! An end of CCI's own messages and RMA.

use super::shot::{ACKNOWLEDGE, AREA, ECHO, HEADER, Load, SWITCH, Shot, Way};
use crate::measure::driver::DriverOptions;
use crate::methods::own_end::{BURST, OwnEnd};
use cci::{Connection, Event, Memory, Notify, Received, Rma, RmaError, SendError, SharedMemory};
use cci_report::{UserError, while_doing};

/// The longest message that comes back as it came.
const LONGEST_ECHO: usize = HEADER + 4096;

/// The end.
pub(in crate::methods) struct Own {
    pub(in crate::methods) end: OwnEnd,
    /// Words read from messages, so that they are read.
    sum: u64,
}

/// What a poll has found.
#[derive(Default)]
struct Seen {
    answers: u64,
    turn: Option<u8>,
    failed: Option<UserError>,
}

impl Own {
    pub(in crate::methods) fn open(opening: &DriverOptions) -> Result<Self, UserError> {
        let memory = SharedMemory::new(AREA).map_err(while_doing("no memory for RMA"))?.memory();
        Self::with_memory(opening, memory)
    }

    /// With memory that something else uses too.
    pub(in crate::methods) fn with_memory(opening: &DriverOptions, memory: Memory) -> Result<Self, UserError> {
        Ok(Self { end: OwnEnd::open(opening, memory)?, sum: 0 })
    }

    /// Sends a message. False: no room now.
    #[inline(always)]
    fn send(&self, way: Way, to: Connection, message: &[u8]) -> Result<bool, UserError> {
        let sent = if way == Way::Reserve {
            self.end.endpoint.reserve(to, message.len()).and_then(|mut room| {
                let is_written = room.write_at(0, message);
                debug_assert!(is_written, "a room for the message");
                room.send(Notify::OnFailure(0)).map_err(SendError::from)
            })
        } else {
            self.end.endpoint.send(to, message, Notify::OnFailure(0))
        };
        match sent {
            Ok(()) => Ok(true),
            Err(SendError::NoBuffers) => Ok(false),
            Err(why) => Err(UserError(format!("cannot send a message: {why}"))),
        }
    }

    /// Answers until the requester turns to another way; `None`: it is done.
    pub(in crate::methods) fn serve(&mut self, way: Way) -> Result<Option<Way>, UserError> {
        loop {
            let seen = self.poll(|own, message| own.answer(way, message))?;
            if let Some(number) = seen.turn {
                return Ok(Way::of(number));
            }
        }
    }

    /// Answers one message; the number of the next way, where it names one.
    #[inline(always)]
    fn answer(&self, way: Way, message: &Received<'_>) -> Result<(u64, Option<u8>), UserError> {
        let (view, len) = (message.view(), message.len());
        let [kind, next] = view.array(0).unwrap_or([ACKNOWLEDGE, 0]);
        // Its last word, as the handlers of Active Messages do.
        let last =
            if kind == ACKNOWLEDGE { view.array(len.saturating_sub(8)).map_or(0, u64::from_ne_bytes) } else { 0 };
        let len = if kind == ECHO { len.min(LONGEST_ECHO) } else { HEADER };
        let connection = message.connection().ok_or_else(|| UserError::new("the other end is gone"))?;
        if !self.send(way, connection, &[ECHO; LONGEST_ECHO][..len])? {
            return Err(UserError::new("there is no room for an answer"));
        }
        Ok((last, (kind == SWITCH).then_some(next)))
    }

    #[inline(always)]
    fn poll(
        &mut self,
        act: impl Fn(&Self, &Received<'_>) -> Result<(u64, Option<u8>), UserError>,
    ) -> Result<Seen, UserError> {
        let (mut seen, mut sum) = (Seen::default(), 0_u64);
        let this = &*self;
        let polled = this.end.endpoint.poll(BURST, |event| match event {
            Event::Received(message) => match act(this, &message) {
                Ok((word, turn)) => {
                    seen.answers += 1;
                    sum = sum.wrapping_add(word);
                    seen.turn = seen.turn.or(turn);
                }
                Err(why) => seen.failed = Some(why),
            },
            other => seen.failed = failure(&other),
        });
        polled.map_err(while_doing("cannot take messages"))?;
        self.sum = self.sum.wrapping_add(sum);
        seen.failed.take().map_or(Ok(seen), Err)
    }

    /// Has the other end go on by this way, or end. It goes by `now` until it has answered.
    pub(in crate::methods) fn turn_to(&mut self, now: Way, next: Option<Way>) -> Result<(), UserError> {
        let (to, number) = (self.end.to()?, next.map_or(0, |way| way as u8));
        let mut message = [0; HEADER];
        (message[0], message[1]) = (SWITCH, number);
        while !self.send(now, to, &message)? {}
        while self.poll(|_, _| Ok((0, None)))?.answers == 0 {}
        Ok(())
    }

    /// So many exchanges.
    pub(in crate::methods) fn run(&mut self, shot: &Shot, way: Way, count: u64) -> Result<(), UserError> {
        let (to, message) = (self.end.to()?, vec![shot.kind(); shot.message()]);
        match shot.load {
            Load::Bulk(bytes) => self.exchanges(shot, count, |own, _| own.write(to, (0, bytes), &message)),
            Load::Spread(bytes) => self.exchanges(shot, count, |own, number| {
                own.write(to, (AREA as u64 * (1 + number % shot.window), bytes), &message)
            }),
            _ if way == Way::Reserve => self.exchanges(shot, count, |own, _| own.send(Way::Reserve, to, &message)),
            _ => self.exchanges(shot, count, |own, _| own.send(Way::Send, to, &message)),
        }
    }

    /// Writes, and tells by a message. False: no room now.
    #[inline(always)]
    fn write(&self, to: Connection, (offset, bytes): (u64, u64), message: &[u8]) -> Result<bool, UserError> {
        let remote = self.end.remote()?;
        let rma = Rma::new(self.end.memory.handle(), remote, bytes).remote_offset(offset).message(message);
        match self.end.endpoint.write(to, &rma, Notify::OnFailure(0)) {
            Ok(()) => Ok(true),
            Err(RmaError::NoBuffers) => Ok(false),
            Err(why) => Err(UserError(format!("cannot write: {why}"))),
        }
    }

    #[inline(always)]
    fn exchanges(
        &mut self,
        shot: &Shot,
        count: u64,
        start: impl Fn(&Self, u64) -> Result<bool, UserError>,
    ) -> Result<(), UserError> {
        let (mut sent, mut answered) = (0, 0);
        while answered < count {
            while sent < count && sent - answered < shot.window && start(self, sent)? {
                sent += 1;
            }
            answered += self.poll(|_, _| Ok((0, None)))?.answers;
        }
        Ok(())
    }
}

/// What an event that is no message says of the run.
#[cold]
fn failure(event: &Event<'_>) -> Option<UserError> {
    match event {
        Event::Completed(ended) => ended.outcome().err().map(while_doing("a message did not arrive")),
        Event::Disconnected(_) => Some(UserError::new("the other end is gone")),
        _ => None,
    }
}
