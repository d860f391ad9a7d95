//! An end of Portals.

use super::shots::{DEPTHS, LONGEST, LONGEST_MESSAGE, Load, TABLE};
use crate::measure::driver::DriverOptions;
use crate::measure::facade::device;
use cci::{Endpoint, Memory, SharedMemory};
use cci_peers::{Name, Table};
use cci_portals::{
    Descriptor, Event, EventKind, FOREVER, Handle, Interface, Limits, Match, Place, Position, ProcessId, Target,
    Unlink, endpoint_options, options,
};
use cci_report::{UserError, while_doing};
use std::time::{Duration, Instant};

const NODE: u32 = 1;
/// The number of a process that nobody puts to.
const UNUSED: u32 = 2;
/// Portal indices: what comes back, what does not, what changes a table, what turns the server to
/// something else, and what comes back by either native strategy. Those behind have lists of
/// entries that refuse.
const ECHO: u32 = 0;
const SINK: u32 = 1;
const UPDATE: u32 = 2;
const TURN: u32 = 3;
const COPIED: u32 = 4;
const BOUND: u32 = 5;
const DEEP: u32 = 8;
/// Steps of a round of computing, and such rounds between two calls: about 10 us.
const ROUND: u64 = 1_000;
const CALLS: u64 = 10;
/// Events between two reads, at most.
const EVENTS: u64 = 4096;

/// Who makes the progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Generic,
    Accelerated,
}

impl Mode {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Generic => "generic",
            Self::Accelerated => "accelerated",
        }
    }
}

/// What a process sends, and what others put into: the same for all ways, since the speed of a copy
/// may depend on where its pages lie.
pub(super) struct Buffers {
    pub(super) source: Memory,
    pub(super) target: Memory,
}

impl Buffers {
    pub(super) fn new() -> Result<Self, UserError> {
        let memory = |len| SharedMemory::new(len).map_err(while_doing("no memory for RMA"));
        Ok(Self { source: memory(LONGEST)?.memory(), target: memory(LONGEST.max(TABLE))?.memory() })
    }
}

/// The interfaces of a process.
pub(super) struct Sides {
    pub(super) generic: Side,
    pub(super) accelerated: Option<Side>,
    /// One that nobody uses, whose engine is there.
    unused: Option<Interface>,
}

impl Sides {
    /// Of the process with this number; the other one's interfaces have these URIs.
    pub(super) fn open(
        opening: &DriverOptions,
        number: u32,
        uris: &[String],
        buffers: &Buffers,
        has_engine: bool,
    ) -> Result<Self, UserError> {
        let mut uris = uris.iter().map(String::as_str);
        let generic = Side::open(opening, number, uris.next(), buffers, Mode::Generic)?;
        let open = || Side::open(opening, number, uris.next(), buffers, Mode::Accelerated);
        Ok(Self { generic, accelerated: has_engine.then(open).transpose()?, unused: None })
    }

    /// Opens an accelerated interface that nobody uses, or closes it.
    pub(super) fn have_unused(&mut self, opening: &DriverOptions, is_there: bool) -> Result<(), UserError> {
        if self.unused.is_some() == is_there {
            return Ok(());
        }
        let open = || interface(opening, ProcessId { nid: NODE, pid: UNUSED }, Table::new(), Mode::Accelerated);
        self.unused = is_there.then(open).transpose()?;
        Ok(())
    }

    pub(super) fn of(&mut self, mode: Mode) -> Result<&mut Side, UserError> {
        match mode {
            Mode::Generic => Ok(&mut self.generic),
            Mode::Accelerated => {
                self.accelerated.as_mut().ok_or_else(|| UserError::new("there is no accelerated interface"))
            }
        }
    }

    pub(super) fn uris(&self) -> Vec<String> {
        [Some(&self.generic), self.accelerated.as_ref()].into_iter().flatten().map(|side| side.uri().into()).collect()
    }
}

/// What the server is to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    End,
    /// Answer by this interface.
    Portals(Mode),
    /// Answer by the way of CCI's own with this number.
    Own(u8),
    /// Make no calls for so many milliseconds.
    Away(u32),
    /// Sleep until the next turn.
    Sleep,
    /// Answer by CCI over Portals.
    Over,
    /// Answer so many times by bare futexes.
    Bare(u32),
    /// Compute for so many milliseconds, and say how much.
    Compute(u32),
    /// Have an accelerated interface that nobody uses, or have none, and answer by the generic one.
    Unused(bool),
}

/// What a program does with a message before it puts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strategy {
    /// Copies it to memory that is bound once.
    Copy,
    /// Binds it, puts it, and has it unlinked.
    Bind,
}

impl Strategy {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Bind => "bind",
        }
    }

    fn portal(self) -> u32 {
        match self {
            Self::Copy => COPIED,
            Self::Bind => BOUND,
        }
    }
}

impl Turn {
    fn word(self) -> u64 {
        match self {
            Self::End => 0,
            Self::Own(way) => 1 << 32 | u64::from(way),
            Self::Away(milliseconds) => 2 << 32 | u64::from(milliseconds),
            Self::Sleep => 3 << 32,
            Self::Portals(Mode::Generic) => 4 << 32,
            Self::Portals(Mode::Accelerated) => 5 << 32,
            Self::Over => 6 << 32,
            Self::Bare(count) => 7 << 32 | u64::from(count),
            Self::Compute(milliseconds) => 9 << 32 | u64::from(milliseconds),
            Self::Unused(is_there) => 8 << 32 | u64::from(is_there),
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "the halves")]
    fn of(word: u64) -> Self {
        match word >> 32 {
            1 => Self::Own(word as u8),
            2 => Self::Away(word as u32),
            3 => Self::Sleep,
            4 => Self::Portals(Mode::Generic),
            5 => Self::Portals(Mode::Accelerated),
            6 => Self::Over,
            7 => Self::Bare(word as u32),
            8 => Self::Unused(word as u32 != 0),
            9 => Self::Compute(word as u32),
            _ => Self::End,
        }
    }
}

/// The end.
pub(super) struct Side {
    ni: Interface,
    queue: Handle,
    /// Memory descriptors of what is sent: without events, and with those of the end and the ack.
    quiet: Handle,
    told: Handle,
    /// What they send, and what a program has to send.
    source: Memory,
    bytes: Vec<u8>,
    target: ProcessId,
    /// Acks that have come.
    acks: u64,
    random: fastrand::Rng,
}

fn interface(opening: &DriverOptions, own: ProcessId, table: Table, mode: Mode) -> Result<Interface, UserError> {
    let endpoint = Endpoint::open(&device(opening)?, &endpoint_options());
    let place = Place::of(endpoint.map_err(while_doing("cannot open an endpoint of Portals"))?, own, Box::new(table));
    let limits = Limits { max_mes: 8_192, max_me_list: 8_192, max_mds: 16_384, ..Limits::default() };
    let open = if mode == Mode::Generic { Interface::new } else { Interface::accelerated };
    open(place, 0, limits).map_err(while_doing("cannot open a network interface"))
}

fn failed(what: &'static str) -> impl Fn(cci_portals::Error) -> UserError {
    move |why| while_doing(what)(why)
}

impl Side {
    /// Number 0 answers; number 1 finds it at this URI.
    fn open(
        opening: &DriverOptions,
        number: u32,
        uri: Option<&str>,
        buffers: &Buffers,
        mode: Mode,
    ) -> Result<Self, UserError> {
        let mut table = Table::new();
        if let Some(uri) = uri {
            table.insert(Name::Number(u64::from(NODE) << 32), uri);
        }
        let ni = interface(opening, ProcessId { nid: NODE, pid: number }, table, mode)?;
        Self::with_entries(ni, number, buffers).map_err(failed("cannot make the match lists"))
    }

    fn with_entries(ni: Interface, number: u32, buffers: &Buffers) -> Result<Self, cci_portals::Error> {
        let queue = ni.queue(EVENTS, false)?;
        let (source, memory) = (buffers.source.clone(), &buffers.target);
        let anything = Match { source: ProcessId::ANY, bits: 0, ignore: !0 };
        let post = |portal, bits, queue| {
            let entry = ni.attach(portal, anything, Unlink::Retain, Position::After)?;
            let quiet = options::EVENT_START_DISABLE | options::MANAGE_REMOTE;
            let descriptor = Descriptor::new(memory).options(bits | quiet).threshold(FOREVER).events(queue);
            ni.attach_memory(entry, descriptor, Unlink::Retain)
        };
        let nowhere = Handle::NO_QUEUE;
        let portals =
            [(ECHO, queue), (SINK, nowhere), (UPDATE, nowhere), (TURN, queue), (COPIED, queue), (BOUND, queue)];
        for (portal, queue) in portals {
            post(portal, options::OP_PUT, queue)?;
        }
        for (portal, depth) in (DEEP..).zip(DEPTHS) {
            for _ in 0..depth {
                post(portal, options::OP_GET, Handle::NO_QUEUE)?;
            }
            post(portal, options::OP_PUT, queue)?;
        }
        let quiet = ni.bind(Descriptor::new(&source), Unlink::Retain)?;
        let told = Descriptor::new(&source).options(options::EVENT_START_DISABLE).events(queue);
        let told = ni.bind(told, Unlink::Retain)?;
        let target = ProcessId { nid: NODE, pid: 1 - number };
        let (bytes, random) = (vec![7; LONGEST_MESSAGE], fastrand::Rng::with_seed(1));
        Ok(Self { ni, queue, quiet, told, source, bytes, target, acks: 0, random })
    }

    fn uri(&self) -> &str {
        self.ni.uri()
    }

    #[inline]
    fn next(&self) -> Result<Option<Event>, UserError> {
        match self.ni.event(self.queue) {
            Ok((event, false)) => Ok(Some(event)),
            Err(cci_portals::Error::QueueEmpty) => Ok(None),
            Ok((_, true)) => Err(UserError::new("events were lost")),
            Err(why) => Err(failed("cannot take events")(why)),
        }
    }

    /// What the event is for the one that waits for a put.
    fn failure(event: &Event) -> Result<(), UserError> {
        if event.failure == 0 { Ok(()) } else { Err(UserError::new("the other end is gone")) }
    }

    #[inline]
    fn put(&self, from: Handle, bytes: u64, wants_ack: bool, portal: u32, offset: u64) -> Result<(), UserError> {
        let to = Target { offset, ..Target::at(self.target, portal) };
        self.ni.put(from, Some((0, bytes)), wants_ack, &to).map_err(failed("cannot put"))
    }

    /// Puts a message by this strategy.
    #[inline]
    fn put_by(&self, strategy: Strategy, bytes: u64) -> Result<(), UserError> {
        let from = match strategy {
            Strategy::Copy => {
                if !self.source.copy_in(0, &self.bytes[..bytes as usize]) {
                    return Err(UserError::new("a message is longer than its memory"));
                }
                self.quiet
            }
            Strategy::Bind => {
                let descriptor = Descriptor::new(&self.source).threshold(1);
                self.ni.bind(descriptor, Unlink::Unlink).map_err(failed("cannot bind memory"))?
            }
        };
        self.put(from, bytes, false, strategy.portal(), 0)
    }

    /// So many messages there and back by this strategy.
    pub(super) fn echo_by(&self, strategy: Strategy, bytes: u64, count: u64) -> Result<(), UserError> {
        for _ in 0..count {
            self.put_by(strategy, bytes)?;
            self.until_back()?;
        }
        Ok(())
    }

    #[inline]
    fn until_back(&self) -> Result<(), UserError> {
        loop {
            let Some(event) = self.next()? else { continue };
            Self::failure(&event)?;
            if event.kind == EventKind::PutEnd {
                return Ok(());
            }
        }
    }

    /// So many puts with ack, one at a time. Returns the time that the calls took which begin them.
    pub(super) fn write(&mut self, bytes: u64, count: u64) -> Result<Duration, UserError> {
        let mut overhead = Duration::ZERO;
        for _ in 0..count {
            let begin = Instant::now();
            self.put(self.told, bytes, true, SINK, 0)?;
            overhead += begin.elapsed();
            self.until_acks(self.acks + 1)?;
        }
        Ok(overhead)
    }

    /// Answers until the client turns to something else. `sleeps`: waits for that alone.
    pub(super) fn serve(&mut self, sleeps: bool) -> Result<Turn, UserError> {
        loop {
            let event =
                if sleeps { Some(self.ni.wait(self.queue).map_err(failed("cannot wait"))?.0) } else { self.next()? };
            let Some(event) = event.filter(|event| event.kind == EventKind::PutEnd) else { continue };
            Self::failure(&event)?;
            match event.portal {
                TURN => return Ok(Turn::of(event.header)),
                COPIED => self.put_by(Strategy::Copy, event.mlength)?,
                BOUND => self.put_by(Strategy::Bind, event.mlength)?,
                portal => self.put(self.quiet, event.mlength, false, portal, 0)?,
            }
        }
    }

    /// Has the server go on with something else, and waits until it knows.
    pub(super) fn turn_to(&mut self, turn: Turn) -> Result<(), UserError> {
        let to = Target { header: turn.word(), ..Target::at(self.target, TURN) };
        self.ni.put(self.told, Some((0, 0)), true, &to).map_err(failed("cannot put"))?;
        self.until_acks(self.acks + 1)
    }

    #[inline]
    fn until_acks(&mut self, count: u64) -> Result<(), UserError> {
        while self.acks < count {
            if let Some(event) = self.next()? {
                self.count(&event)?;
            }
        }
        Ok(())
    }

    #[inline]
    fn count(&mut self, event: &Event) -> Result<(), UserError> {
        Self::failure(event)?;
        self.acks += u64::from(event.kind == EventKind::Ack);
        Ok(())
    }

    /// So many puts.
    pub(super) fn run(&mut self, load: Load, count: u64) -> Result<(), UserError> {
        match load {
            Load::Echo(bytes) => self.echoes(ECHO, bytes, count),
            Load::Deep(number) => self.echoes(DEEP + number, 8, count),
            Load::Stream { bytes, window } => self.stream(SINK, bytes, window, count),
            Load::Update { window } => self.stream(UPDATE, 8, window, count),
        }
    }

    fn echoes(&mut self, portal: u32, bytes: u64, count: u64) -> Result<(), UserError> {
        for _ in 0..count {
            self.put(self.quiet, bytes, false, portal, 0)?;
            self.until_back()?;
        }
        Ok(())
    }

    fn stream(&mut self, portal: u32, bytes: u64, window: u64, count: u64) -> Result<(), UserError> {
        let (before, mut begun) = (self.acks, 0);
        while self.acks - before < count {
            while begun < count && begun - (self.acks - before) < window {
                let places = (TABLE as u64 - bytes) / 8;
                let offset = if portal == UPDATE { 8 * self.random.u64(0..places) } else { 0 };
                self.put(self.told, bytes, true, portal, offset)?;
                begun += 1;
            }
            if let Some(event) = self.next()? {
                self.count(&event)?;
            }
        }
        Ok(())
    }

    /// A put, and its ack, for which this end polls.
    pub(super) fn acknowledged(&mut self) -> Result<(), UserError> {
        self.put(self.told, 8, true, SINK, 0)?;
        self.until_acks(self.acks + 1)
    }

    /// Computes for so long, and tells the other end how much it was. What has no engine makes a
    /// call now and then: nothing would arrive otherwise.
    pub(super) fn compute(&mut self, time: Duration) -> Result<(), UserError> {
        let (begin, mut rounds, mut value) = (Instant::now(), 0, 0_u64);
        while begin.elapsed() < time {
            for round in 0..ROUND {
                value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(round);
            }
            std::hint::black_box(value);
            rounds += 1;
            if !self.ni.is_accelerated() && rounds % CALLS == 0 {
                self.next()?;
            }
        }
        let to = Target { header: rounds, ..Target::at(self.target, TURN) };
        self.ni.put(self.quiet, Some((0, 0)), false, &to).map_err(failed("cannot put"))
    }

    /// What the other end computes in so long, while it gets puts of so many bytes one after the
    /// other from this end, which sleeps meanwhile; 0: none.
    pub(super) fn computed(&mut self, time: Duration, bytes: u64) -> Result<u64, UserError> {
        self.turn_to(Turn::Compute(u32::try_from(time.as_millis()).unwrap_or(u32::MAX)))?;
        let begin = Instant::now();
        let mut found = None;
        while bytes > 0 && begin.elapsed() < time && found.is_none() {
            self.put(self.told, bytes, true, SINK, 0)?;
            let acks = self.acks + 1;
            while self.acks < acks {
                found = self.wait()?.or(found);
            }
        }
        loop {
            match found {
                Some(rounds) => return Ok(rounds),
                None => found = self.wait()?,
            }
        }
    }

    /// Sleeps until there is an event; what the other end has computed, if it says that.
    fn wait(&mut self) -> Result<Option<u64>, UserError> {
        let (event, _) = self.ni.wait(self.queue).map_err(failed("cannot wait"))?;
        self.count(&event)?;
        Ok((event.kind == EventKind::PutEnd && event.portal == TURN).then_some(event.header))
    }

    /// Waits asleep for so long: nothing comes.
    pub(super) fn idle(&self, time: Duration) -> Result<(), UserError> {
        match self.ni.poll(&[self.queue], Some(time)) {
            Err(cci_portals::Error::QueueEmpty) | Ok(_) => Ok(()),
            Err(why) => Err(failed("cannot wait")(why)),
        }
    }
}
