//! A program of a node: its interface, of this process or at an engine that is another process.

use super::shots::{TABLE, WINDOW};
use cci::{Memory, SharedMemory};
use cci_portals::shared::Client;
use cci_portals::{
    Described, Descriptor, Error, Event, EventKind, Handle, Interface, Match, Position, ProcessId, Target, Unlink,
    buffer, options,
};
use cci_report::{UserError, while_doing};
use std::time::{Duration, Instant};

/// Portal indices: what changes the table, and what ends a program's turn.
const UPDATE: u32 = 0;
const END: u32 = 1;
/// Events between two reads, at most.
const EVENTS: u64 = 256;
/// Updates between two looks at the clock.
const BETWEEN: u64 = 64;
/// Bytes of an update.
const WORD: u64 = 8;
/// How long the other program may take to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where the interface is.
pub(super) enum Network {
    /// In this process: progress by calls, or by an engine that is a thread.
    Here(Interface),
    /// At an engine that is another process.
    There(Box<Client>),
}

impl Network {
    fn id(&self) -> ProcessId {
        match self {
            Self::Here(ni) => ni.id(),
            Self::There(client) => client.id(),
        }
    }

    fn queue(&mut self) -> Result<Handle, Error> {
        match self {
            Self::Here(ni) => ni.queue(EVENTS, false),
            Self::There(client) => client.queue(EVENTS),
        }
    }

    /// An entry for everybody, with memory.
    fn post(&mut self, portal: u32, memory: &Memory, described: Described) -> Result<(), Error> {
        let anybody = Match { source: ProcessId::ANY, bits: 0, ignore: !0 };
        match self {
            Self::Here(ni) => {
                let entry = ni.attach(portal, anybody, Unlink::Retain, Position::After)?;
                ni.attach_memory(entry, Descriptor::of(vec![memory.clone()], described), Unlink::Retain)?;
            }
            Self::There(client) => {
                let entry = client.attach(portal, anybody, Unlink::Retain, Position::After)?;
                client.attach_memory(entry, described, Unlink::Retain)?;
            }
        }
        Ok(())
    }

    fn bind(&mut self, memory: &Memory, described: Described) -> Result<Handle, Error> {
        match self {
            Self::Here(ni) => ni.bind(Descriptor::of(vec![memory.clone()], described), Unlink::Retain),
            Self::There(client) => client.bind(described, Unlink::Retain),
        }
    }

    #[inline]
    fn put(&mut self, from: Handle, to: &Target) -> Result<(), Error> {
        match self {
            Self::Here(ni) => ni.put(from, None, true, to),
            Self::There(client) => client.put(from, None, true, to),
        }
    }

    #[inline]
    fn event(&mut self, queue: Handle) -> Result<(Event, bool), Error> {
        match self {
            Self::Here(ni) => ni.event(queue),
            Self::There(client) => client.event(queue),
        }
    }

    #[inline]
    fn wait(&mut self, queue: Handle) -> Result<(Event, bool), Error> {
        match self {
            Self::Here(ni) => ni.poll(&[queue], Some(PATIENCE)).map(|(_, event, is_lost)| (event, is_lost)),
            Self::There(client) => client.wait(queue, Some(PATIENCE)),
        }
    }
}

/// The program.
pub(super) struct Program {
    network: Network,
    queue: Handle,
    /// Of 8 bytes.
    source: Handle,
    acks: u64,
    has_ended: bool,
    random: fastrand::Rng,
}

fn failed(what: &'static str) -> impl Fn(Error) -> UserError {
    move |why| while_doing(what)(why)
}

/// Bytes that a program needs of an engine that is another process.
pub(super) const AREA: usize = TABLE + 4096;

impl Program {
    pub(super) fn new(mut network: Network) -> Result<Self, UserError> {
        let table = match &network {
            Network::Here(_) => SharedMemory::new(TABLE).map_err(while_doing("no memory for a table"))?.memory(),
            Network::There(client) => client.memory().clone(),
        };
        let made = Self::objects(&mut network, &table).map_err(failed("cannot make the match lists"))?;
        let ((queue, source), random) = (made, fastrand::Rng::with_seed(1));
        Ok(Self { network, queue, source, acks: 0, has_ended: false, random })
    }

    fn objects(network: &mut Network, table: &Memory) -> Result<(Handle, Handle), Error> {
        let queue = network.queue()?;
        let quiet = options::EVENT_START_DISABLE;
        let bits = options::OP_PUT | options::MANAGE_REMOTE | quiet;
        let of_table = Described { length: TABLE as u64, options: bits, ..Described::default() };
        network.post(UPDATE, table, of_table)?;
        network.post(END, table, Described { queue, ..of_table })?;
        // Behind the table, of an engine that is another process.
        let described = Described { start: TABLE as u64, length: WORD, options: quiet, queue, ..Described::default() };
        Ok((queue, network.bind(&buffer(vec![7; WORD as usize]), described)?))
    }

    pub(super) fn id(&self) -> ProcessId {
        self.network.id()
    }

    fn count(&mut self, event: &Event) -> Result<(), UserError> {
        if event.failure != 0 {
            return Err(UserError::new("the other program is gone"));
        }
        self.acks += u64::from(event.kind == EventKind::Ack);
        self.has_ended |= event.kind == EventKind::PutEnd;
        Ok(())
    }

    fn wait(&mut self) -> Result<(), UserError> {
        let (event, _) = self.network.wait(self.queue).map_err(failed("cannot wait for events"))?;
        self.count(&event)
    }

    fn put(&mut self, portal: u32, offset: u64, to: ProcessId) -> Result<(), UserError> {
        let to = Target { offset, ..Target::at(to, portal) };
        self.network.put(self.source, &to).map_err(failed("cannot put"))
    }

    /// Updates random places of a program's table for so long, and goes on to serve the other
    /// program until that has ended too. Returns updates per second.
    pub(super) fn update(&mut self, to: ProcessId, time: Duration) -> Result<f64, UserError> {
        let places = TABLE as u64 / WORD;
        let (begin, before, mut begun) = (Instant::now(), self.acks, 0_u64);
        while !begun.is_multiple_of(BETWEEN) || begin.elapsed() < time {
            while begun - (self.acks - before) >= WINDOW {
                self.wait()?;
            }
            let offset = WORD * self.random.u64(0..places);
            self.put(UPDATE, offset, to)?;
            begun += 1;
        }
        while self.acks - before < begun {
            self.wait()?;
        }
        let took = begin.elapsed();
        self.put(END, 0, to)?;
        while !self.has_ended || self.acks - before < begun + 1 {
            self.wait()?;
        }
        self.has_ended = false;
        #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
        Ok(begun as f64 / took.as_secs_f64())
    }

    /// Puts to this process itself for so long, one at a time, and polls for each ack. Returns the
    /// time of one, and that of the call that begins it.
    pub(super) fn hand_over(&mut self, time: Duration) -> Result<[Duration; 2], UserError> {
        let own = self.id();
        let (begin, mut calls, mut count) = (Instant::now(), Duration::ZERO, 0);
        while count == 0 || begin.elapsed() < time {
            let put = Instant::now();
            self.put(UPDATE, 0, own)?;
            calls += put.elapsed();
            let acks = self.acks + 1;
            while self.acks < acks {
                match self.network.event(self.queue) {
                    Ok((event, _)) => self.count(&event)?,
                    Err(Error::QueueEmpty) => {}
                    Err(why) => return Err(failed("cannot take events")(why)),
                }
            }
            count += 1;
        }
        Ok([begin.elapsed() / count, calls / count])
    }
}
