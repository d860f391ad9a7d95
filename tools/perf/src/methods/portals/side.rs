//! An end of Portals.

use super::shots::{DEPTHS, LONGEST, LONGEST_MESSAGE, Load, TABLE};
use crate::measure::driver::{DriverOptions, device};
use cci::{Endpoint, Memory, SharedMemory};
use cci_peers::{Name, Table};
use cci_portals::{
    Descriptor, Event, EventKind, FOREVER, Handle, Interface, Limits, Match, Place, Position, ProcessId, Target,
    Unlink, endpoint_options, options,
};
use cci_report::{UserError, while_doing};
use std::time::{Duration, Instant};

const NODE: u32 = 1;
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

/// The interfaces of a process.
pub(super) struct Sides {
    pub(super) generic: Side,
    pub(super) accelerated: Option<Side>,
}

impl Sides {
    /// Of the process with this number; the other one's interfaces have these URIs.
    pub(super) fn open(
        opening: &DriverOptions,
        number: u32,
        uris: &[String],
        has_engine: bool,
    ) -> Result<Self, UserError> {
        let mut uris = uris.iter().map(String::as_str);
        let generic = Side::open(opening, number, uris.next(), Mode::Generic)?;
        let open = || Side::open(opening, number, uris.next(), Mode::Accelerated);
        Ok(Self { generic, accelerated: has_engine.then(open).transpose()? })
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

fn failed(what: &'static str) -> impl Fn(cci_portals::Error) -> UserError {
    move |why| while_doing(what)(why)
}

impl Side {
    /// Number 0 answers; number 1 finds it at this URI.
    fn open(opening: &DriverOptions, number: u32, uri: Option<&str>, mode: Mode) -> Result<Self, UserError> {
        let endpoint = Endpoint::open(&device(opening)?, &endpoint_options());
        let endpoint = endpoint.map_err(while_doing("cannot open an endpoint of Portals"))?;
        let mut table = Table::new();
        if let Some(uri) = uri {
            table.insert(Name::Number(u64::from(NODE) << 32), uri);
        }
        let place = Place::of(endpoint, ProcessId { nid: NODE, pid: number }, Box::new(table));
        let limits = Limits { max_mes: 8_192, max_me_list: 8_192, max_mds: 16_384, ..Limits::default() };
        let open = if mode == Mode::Generic { Interface::new } else { Interface::accelerated };
        let ni = open(place, 0, limits).map_err(while_doing("cannot open a network interface"))?;
        Self::with_entries(ni, number).map_err(failed("cannot make the match lists"))
    }

    fn with_entries(ni: Interface, number: u32) -> Result<Self, cci_portals::Error> {
        let queue = ni.queue(EVENTS, false)?;
        let memory = SharedMemory::new(LONGEST.max(TABLE)).map_err(|_| cci_portals::Error::NoSpace)?.memory();
        let anything = Match { source: ProcessId::ANY, bits: 0, ignore: !0 };
        let post = |portal, bits, queue| {
            let entry = ni.attach(portal, anything, Unlink::Retain, Position::After)?;
            let quiet = options::EVENT_START_DISABLE | options::MANAGE_REMOTE;
            let descriptor = Descriptor::new(&memory).options(bits | quiet).threshold(FOREVER).events(queue);
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
        let source = SharedMemory::new(LONGEST).map_err(|_| cci_portals::Error::NoSpace)?.memory();
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

    /// Waits asleep for so long: nothing comes.
    pub(super) fn idle(&self, time: Duration) -> Result<(), UserError> {
        match self.ni.poll(&[self.queue], Some(time)) {
            Err(cci_portals::Error::QueueEmpty) | Ok(_) => Ok(()),
            Err(why) => Err(failed("cannot wait")(why)),
        }
    }
}
