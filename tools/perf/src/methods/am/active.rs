//! An end of Active Messages.

use super::shot::{AREA, Load, Shot, Way};
use crate::measure::driver::DriverOptions;
use crate::measure::facade::device;
use cci::SharedMemory;
use cci_am::{CciMapping, Endpoint, Handlers, Mapping, Options, Peer, Reply, Request, RequestError, Returned, TAG_ALL};
use cci_report::{UserError, while_doing};

const ECHO: u8 = 1;
const TAKE: u8 = 2;
const TURN: u8 = 3;
const ANSWER: u8 = 4;
const RETURN: u8 = 5;
const STORE: u8 = 6;
/// The longest payload that comes back.
const LONGEST: usize = 16 << 10;

/// What handlers change.
#[derive(Debug, Default)]
pub(in crate::methods) struct Tally {
    /// Replies that have come.
    replies: u64,
    /// Requests that came back.
    returned: Option<cci_am::Status>,
    /// Words read from payloads, so that they are read.
    sum: u64,
    /// The number of the next way, once the requester has named it.
    turn: Option<u8>,
    /// What goes back.
    bytes: Vec<u8>,
}

fn echo(_: &mut Tally, request: Request<'_>) {
    let arguments = request.arguments();
    // As many as came.
    let _ = request.reply(ANSWER, arguments);
}

fn take(tally: &mut Tally, request: Request<'_>) {
    let payload = request.payload();
    let (mut first, mut last) = ([0; 8], [0; 8]);
    payload.copy_to(0, &mut first);
    payload.copy_to(payload.len().saturating_sub(8), &mut last);
    tally.sum = tally.sum.wrapping_add(u64::from_ne_bytes(first) ^ u64::from_ne_bytes(last));
    let _ = request.reply(ANSWER, &[]);
}

fn give_back(tally: &mut Tally, request: Request<'_>) {
    let len = request.payload().len();
    // Longer ones are not sent.
    let _ = request.reply_medium(ANSWER, &[], &tally.bytes[..len.min(LONGEST)]);
}

fn turn(tally: &mut Tally, request: Request<'_>) {
    tally.turn = request.arguments().first().and_then(|number| u8::try_from(*number).ok());
    let _ = request.reply(ANSWER, &[]);
}

fn store(tally: &mut Tally, request: Request<'_>) {
    tally.sum = tally.sum.wrapping_add(request.arguments().first().copied().unwrap_or_default().into());
}

fn answer(tally: &mut Tally, _: Reply<'_>) {
    tally.replies += 1;
}

/// Where payloads begin in the bytes of an end, whose first ones begin a page as a slot does. A
/// processor that compares twelve bits of addresses takes the loads of a copy from there for later
/// than the stores before them, which costs 25 ns of 4 KiB.
const AWAY: usize = 1024;

/// A payload, of at most [`LONGEST`] bytes.
fn payload(bytes: &[u8], len: usize) -> &[u8] {
    &bytes[AWAY..][..len.min(LONGEST)]
}

fn returned(tally: &mut Tally, returned: Returned<'_>) {
    tally.returned = Some(returned.status());
}

/// The end.
pub(in crate::methods) struct Active<M: Mapping = CciMapping> {
    endpoint: Endpoint<Tally, M>,
    target: Option<Peer>,
    bytes: Vec<u8>,
    /// Replies that [`Active::replies`] has told.
    seen: u64,
}

fn handlers() -> Handlers<Tally> {
    Handlers::new()
        .request(ECHO, echo)
        .request(TAKE, take)
        .request(TURN, turn)
        .request(RETURN, give_back)
        .request(STORE, store)
        .reply(ANSWER, answer)
        .returned(returned)
}

fn tally() -> Tally {
    Tally { bytes: vec![1; LONGEST], ..Tally::default() }
}

impl Active {
    pub(in crate::methods) fn open(opening: &DriverOptions) -> Result<Self, UserError> {
        let endpoint = Endpoint::open(&device(opening)?, &Options::new(), handlers(), tally());
        Self::with_segment(endpoint.map_err(while_doing("cannot open an endpoint of Active Messages"))?)
    }
}

impl<M: Mapping> Active<M> {
    /// Over a mapping.
    pub(in crate::methods) fn over(mapping: M) -> Result<Self, UserError> {
        let endpoint = Endpoint::over(mapping, &Options::new(), handlers(), tally());
        Self::with_segment(endpoint.map_err(while_doing("cannot open an endpoint of Active Messages"))?)
    }

    fn with_segment(mut endpoint: Endpoint<Tally, M>) -> Result<Self, UserError> {
        let segment = SharedMemory::new(AREA).map_err(while_doing("no memory for a segment"))?;
        endpoint.set_segment(Some(segment.memory())).map_err(while_doing("cannot register memory"))?;
        Ok(Self { endpoint, target: None, bytes: vec![1; AREA], seen: 0 })
    }

    pub(in crate::methods) fn name(&self) -> &str {
        self.endpoint.name()
    }

    pub(in crate::methods) fn map(&mut self, name: &str) -> Result<(), UserError> {
        self.target = Some(self.endpoint.map(name, TAG_ALL).map_err(while_doing("cannot map the other end"))?);
        Ok(())
    }

    /// Answers until the requester turns to another way; `None`: it is done.
    pub(in crate::methods) fn serve(&mut self) -> Result<Option<Way>, UserError> {
        loop {
            self.poll()?;
            if let Some(number) = self.endpoint.state().turn.take() {
                return Ok(Way::of(number));
            }
        }
    }

    /// Sleeps until the requester turns to another way; `None`: it is done.
    pub(super) fn sleep(&mut self) -> Result<Option<Way>, UserError> {
        loop {
            self.endpoint.wait(None).map_err(while_doing("cannot take active messages"))?;
            if let Some(number) = self.endpoint.state().turn.take() {
                return Ok(Way::of(number));
            }
        }
    }

    #[inline]
    fn poll(&mut self) -> Result<(), UserError> {
        self.endpoint.poll().map(drop).map_err(while_doing("cannot take active messages"))
    }

    /// Has the other end go on by this way, or end.
    pub(in crate::methods) fn turn_to(&mut self, way: Option<Way>) -> Result<(), UserError> {
        let number = way.map_or(0, |way| way as u32);
        let before = self.endpoint.state().replies;
        self.start(|endpoint, to, _| endpoint.request(to, TURN, &[number]))?;
        while self.endpoint.state().replies == before {
            self.poll()?;
            self.check()?;
        }
        self.seen = self.endpoint.state().replies;
        Ok(())
    }

    fn check(&mut self) -> Result<(), UserError> {
        let returned = self.endpoint.state().returned;
        returned.map_or(Ok(()), |status| Err(UserError(format!("an active message came back: {status}"))))
    }

    #[inline(always)]
    fn start(
        &mut self,
        request: impl FnOnce(&mut Endpoint<Tally, M>, Peer, &[u8]) -> Result<(), RequestError>,
    ) -> Result<(), UserError> {
        let target = self.target.ok_or_else(|| UserError::new("the other end is not mapped"))?;
        request(&mut self.endpoint, target, &self.bytes).map_err(while_doing("cannot send an active message"))
    }

    /// Sends a request whose bytes come back. False: no credit or no room now.
    #[inline(always)]
    pub(in crate::methods) fn try_request(&mut self, bytes: &[u8]) -> Result<bool, UserError> {
        let target = self.target.ok_or_else(|| UserError::new("the other end is not mapped"))?;
        match self.endpoint.now().request_medium(target, RETURN, &[], bytes) {
            Ok(()) => Ok(true),
            Err(RequestError::WouldBlock) => Ok(false),
            Err(why) => Err(while_doing("cannot send an active message")(why)),
        }
    }

    /// Polls once; how many replies have come since the last call.
    #[inline(always)]
    pub(in crate::methods) fn replies(&mut self) -> Result<u64, UserError> {
        self.poll()?;
        self.check()?;
        let replies = self.endpoint.state().replies;
        Ok(replies - std::mem::replace(&mut self.seen, replies))
    }

    /// Bytes of the longest request that comes back.
    pub(in crate::methods) fn longest(&mut self) -> u64 {
        let longest = self.target.and_then(|target| self.endpoint.longest_in_place(target)).unwrap_or(0);
        longest.min(LONGEST) as u64
    }

    /// So many bulk requests of so many bytes, with `window` of them under way.
    pub(in crate::methods) fn stream(&mut self, bytes: u64, window: u64, count: u64) -> Result<(), UserError> {
        self.run(&Shot { name: "", load: Load::Bulk(bytes), window }, count)
    }

    /// So many short requests with four arguments that have no reply, until all have ended.
    pub(in crate::methods) fn stores(&mut self, count: u64) -> Result<(), UserError> {
        for _ in 0..count {
            self.start(|endpoint, to, _| endpoint.request(to, STORE, &[1; 4]))?;
        }
        let target = self.target.ok_or_else(|| UserError::new("the other end is not mapped"))?;
        while self.endpoint.outstanding(target) > 0 {
            self.poll()?;
        }
        self.check()
    }

    /// So many short requests with four arguments, each answered by a reply with as many.
    pub(in crate::methods) fn short(&mut self, count: u64) -> Result<(), UserError> {
        self.run(&Shot { name: "", load: Load::Short(4), window: 1 }, count)
    }

    /// So many exchanges.
    pub(super) fn run(&mut self, shot: &Shot, count: u64) -> Result<(), UserError> {
        let arguments = [7; 16];
        match shot.load {
            Load::Short(some) => {
                let arguments = &arguments[..some.min(16)];
                self.exchanges(shot, count, |endpoint, to, _| endpoint.request(to, ECHO, arguments))
            }
            Load::Medium(len) => self.exchanges(shot, count, |endpoint, to, bytes| {
                endpoint.request_medium(to, TAKE, &[], payload(bytes, len))
            }),
            Load::Echo(len) => self.exchanges(shot, count, |endpoint, to, bytes| {
                endpoint.request_medium(to, RETURN, &[], payload(bytes, len))
            }),
            Load::Bulk(len) | Load::Spread(len) => {
                self.exchanges(shot, count, |endpoint, to, _| endpoint.request_bulk_from(to, TAKE, &[], 0..len, 0))
            }
        }
    }

    #[inline(always)]
    fn exchanges(
        &mut self,
        shot: &Shot,
        count: u64,
        request: impl Fn(&mut Endpoint<Tally, M>, Peer, &[u8]) -> Result<(), RequestError>,
    ) -> Result<(), UserError> {
        let before = self.endpoint.state().replies;
        let (mut sent, mut answered) = (0, 0);
        while answered < count {
            while sent < count && sent - answered < shot.window {
                self.start(&request)?;
                sent += 1;
            }
            self.poll()?;
            answered = self.endpoint.state().replies - before;
            if self.endpoint.state().returned.is_some() {
                self.check()?;
            }
        }
        Ok(())
    }
}
