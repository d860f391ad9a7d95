//! An end of Myrinet Express.

use super::shots::{LONGEST, Load, Order, WINDOW};
use crate::measure::driver::DriverOptions;
use crate::measure::facade::device;
use cci::__binding::Source;
use cci::{Memory, SharedMemory, View};
use cci_mx::{Address, Buffer, Code, Endpoint, Match, Options, Place, Request, Segments, Status, endpoint_options};
use cci_peers::{Name, Table};
use cci_report::{UserError, while_doing};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

const NIC: u64 = 1;
const KEY: u32 = 7;
/// What a message is for: the uppermost bits.
const CLASS: u64 = 0xf << 60;
const ECHO: u64 = 0;
const SINK: u64 = 1 << 60;
const TURN: u64 = 2 << 60;
/// Messages one at a time, all into the same memory, as RMA does beside them.
const ALONE: u64 = 3 << 60;
/// How often another thread uses an endpoint.
const BESIDE: Duration = Duration::from_millis(1);

/// Memory of a segment: a word that lives as long as the program, or shared memory. As long as a
/// segment of C.
#[derive(Clone)]
pub(super) enum Piece {
    Word(&'static AtomicU64),
    Memory(Arc<Memory>),
}

const _: () = assert!(size_of::<Piece>() == 16);

impl Buffer for Piece {
    #[inline]
    fn len(&self) -> usize {
        match self {
            Self::Word(_) => 8,
            Self::Memory(memory) => Buffer::len(&**memory),
        }
    }

    #[inline]
    fn copy_out(&self, offset: usize, target: &mut [u8]) -> bool {
        match self {
            Self::Word(word) => {
                let word = word.load(Ordering::Relaxed).to_ne_bytes();
                let bytes = word.get(offset..).and_then(|bytes| bytes.get(..target.len()));
                bytes.is_some_and(|bytes| {
                    target.copy_from_slice(bytes);
                    true
                })
            }
            Self::Memory(memory) => Buffer::copy_out(&**memory, offset, target),
        }
    }

    #[inline]
    fn copy_in(&self, offset: usize, bytes: &[u8]) -> bool {
        match self {
            Self::Word(word) => {
                // Whole: nothing here is shorter.
                let whole = <[u8; 8]>::try_from(bytes).ok().filter(|_| offset == 0);
                whole.is_some_and(|bytes| {
                    word.store(u64::from_ne_bytes(bytes), Ordering::Relaxed);
                    true
                })
            }
            Self::Memory(memory) => Buffer::copy_in(&**memory, offset, bytes),
        }
    }

    fn copy_view(&self, offset: usize, view: &View<'_>, from: usize, len: usize) -> bool {
        match self {
            Self::Word(_) => {
                let mut bytes = [0; 8];
                let bytes = &mut bytes[..len.min(8)];
                view.copy_to(from, bytes) == len && self.copy_in(offset, bytes)
            }
            Self::Memory(memory) => Buffer::copy_view(&**memory, offset, view, from, len),
        }
    }

    #[inline]
    fn source(&self) -> Option<Source<'_>> {
        if let Self::Memory(memory) = self { Buffer::source(&**memory) } else { None }
    }

    fn memory(&self) -> Memory {
        match self {
            // Words are eager.
            Self::Word(_) => Memory::none(),
            Self::Memory(memory) => Memory::clone(memory),
        }
    }
}

/// What the server is to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    End,
    Mx,
    /// The same, while another thread uses the endpoint too.
    Shared,
    /// Answer by the way of CCI's own with this number.
    Own(u8),
    /// Answer by CCI over MX.
    Over,
    /// Sleep until something else is to be done.
    Sleep,
}

impl Turn {
    fn word(self) -> u64 {
        match self {
            Self::End => 0,
            Self::Mx => 1,
            Self::Shared => 2,
            Self::Own(way) => 3 | u64::from(way) << 8,
            Self::Over => 4,
            Self::Sleep => 5,
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "a byte")]
    fn of(word: u64) -> Self {
        match word & 0xff {
            1 => Self::Mx,
            2 => Self::Shared,
            3 => Self::Own((word >> 8) as u8),
            4 => Self::Over,
            5 => Self::Sleep,
            _ => Self::End,
        }
    }
}

/// Another thread that uses an endpoint.
struct Neighbour {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// The end.
pub(super) struct Side {
    endpoint: Arc<Endpoint<Piece>>,
    peer: Option<Address>,
    word: &'static AtomicU64,
    memory: Memory,
    target: Memory,
    /// The beginnings of the memory, by their lengths.
    parts: Vec<(u64, Arc<Memory>)>,
    /// Receives that wait for echoes, by their bits.
    posted: Vec<Request>,
    others: Vec<Request>,
    neighbour: Option<Neighbour>,
    random: fastrand::Rng,
}

/// What an end sends, and what the server receives into: the same for messages and for RMA, since
/// the speed of a copy may depend on where its pages lie.
pub(super) struct Buffers {
    pub(super) source: Memory,
    pub(super) target: Memory,
}

impl Buffers {
    pub(super) fn new() -> Result<Self, UserError> {
        let memory = |len| SharedMemory::new(len).map_err(while_doing("cannot allocate memory"));
        Ok(Self { source: memory(LONGEST)?.memory(), target: memory(LONGEST * (WINDOW as usize + 1))?.memory() })
    }
}

fn failed(what: &'static str) -> impl Fn(cci_mx::Error) -> UserError {
    move |why| while_doing(what)(why)
}

impl Side {
    /// Number 0 answers; number 1 finds it at this URI.
    pub(super) fn open(
        opening: &DriverOptions,
        number: u32,
        uri: Option<&str>,
        Buffers { source, target }: Buffers,
    ) -> Result<Self, UserError> {
        let endpoint = cci::Endpoint::open(&device(opening)?, &endpoint_options());
        let endpoint = endpoint.map_err(while_doing("cannot open an endpoint of Myrinet Express"))?;
        let mut table = Table::new();
        if let Some(uri) = uri {
            table.insert(Name::Number(NIC << 32), uri);
        }
        let place = Place::of(endpoint, NIC, number, Box::new(table));
        let endpoint = Endpoint::open(place, KEY, &Options::new())
            .map_err(while_doing("cannot open an endpoint of Myrinet Express"))?;
        let (word, random) = (Box::leak(Box::new(AtomicU64::new(1))), fastrand::Rng::with_seed(1));
        let endpoint = Arc::new(endpoint);
        Ok(Self {
            endpoint,
            peer: None,
            word,
            memory: source,
            target,
            parts: Vec::new(),
            posted: Vec::new(),
            others: Vec::new(),
            neighbour: None,
            random,
        })
    }

    pub(super) fn uri(&self) -> &str {
        self.endpoint.uri()
    }

    pub(super) fn connect(&mut self) -> Result<(), UserError> {
        let found = self.endpoint.connect((NIC, 0), KEY, Some(Duration::from_secs(60)));
        self.peer = Some(found.map_err(failed("the ends of the run cannot connect"))?);
        Ok(())
    }

    #[inline]
    fn piece(&self, bytes: u64) -> Result<Segments<Piece>, UserError> {
        match bytes {
            0 => Ok(Segments::None),
            8 => Ok(Segments::One(Piece::Word(self.word))),
            bytes => {
                let known = self.parts.iter().find(|(len, _)| *len == bytes);
                let (_, part) = known.ok_or_else(|| UserError::new("a message is too long"))?;
                Ok(Segments::One(Piece::Memory(Arc::clone(part))))
            }
        }
    }

    #[inline]
    fn send(&self, to: Address, bytes: u64, bits: u64) -> Result<Request, UserError> {
        self.endpoint.send(self.piece(bytes)?, to, bits, 0).map_err(failed("cannot send"))
    }

    #[inline]
    fn receive(&self, bytes: u64, wanted: Match, context: u64) -> Result<Request, UserError> {
        self.endpoint.receive(self.piece(bytes)?, wanted, context).map_err(failed("cannot receive"))
    }

    /// Polls until a request has ended.
    #[inline]
    fn end(&self, request: Request) -> Result<Status, UserError> {
        loop {
            if let Some(status) = self.endpoint.test(request).map_err(failed("cannot test"))? {
                return checked(status);
            }
        }
    }

    /// Answers until the client turns to something else.
    pub(super) fn serve(&mut self) -> Result<Turn, UserError> {
        // Messages of each class find their receive by its mask, streams each a place of its own.
        let place = |at: u64| self.target.part(at * LONGEST as u64, LONGEST as u64).map(Arc::new);
        let places: Option<Vec<_>> = (0..=WINDOW).map(place).collect();
        let places = places.ok_or_else(|| UserError::new("a message is too long"))?;
        let endpoint = Arc::clone(&self.endpoint);
        let post = |class: u64, at: u64| {
            let wanted = Match { bits: class, mask: CLASS };
            let place = Piece::Memory(Arc::clone(&places[at as usize]));
            endpoint.receive(place, wanted, at).map_err(failed("cannot receive"))
        };
        let mut receives = vec![(ECHO, post(ECHO, 0)?), (TURN, post(TURN, 0)?), (ALONE, post(ALONE, 0)?)];
        for at in 1..=WINDOW {
            receives.push((SINK, post(SINK, at)?));
        }
        let turn = loop {
            let Some(status) = self.endpoint.test_any(Match::ANY).map_err(failed("cannot test"))? else { continue };
            let status = checked(status)?;
            match status.bits & CLASS {
                ECHO => {
                    self.prepare(status.length.into())?;
                    let sent = self.send(status.source, status.length.into(), status.bits)?;
                    self.endpoint.forget(sent).map_err(failed("cannot send"))?;
                    receives[0].1 = post(ECHO, 0)?;
                }
                SINK => receives[2 + status.context as usize].1 = post(SINK, status.context)?,
                ALONE => receives[2].1 = post(ALONE, 0)?,
                _ => break Turn::of(status.bits & !CLASS),
            }
        };
        for (class, request) in receives {
            if class != TURN {
                self.endpoint.cancel(request).map_err(failed("cannot end receives"))?;
            }
        }
        self.share(turn == Turn::Shared);
        Ok(turn)
    }

    /// Sleeps until the client turns to something else.
    pub(super) fn sleep(&mut self) -> Result<Turn, UserError> {
        let word = self.word_receive()?;
        loop {
            let found = self.endpoint.wait(word, None).map_err(failed("cannot wait"))?;
            if let Some(status) = found {
                let turn = Turn::of(checked(status)?.bits & !CLASS);
                self.share(turn == Turn::Shared);
                return Ok(turn);
            }
        }
    }

    fn word_receive(&self) -> Result<Request, UserError> {
        self.receive(8, Match { bits: TURN, mask: CLASS }, 0)
    }

    /// Has the server go on with something else, and waits until it has taken that.
    pub(super) fn turn_to(&mut self, turn: Turn) -> Result<(), UserError> {
        let to = self.to()?;
        let sent = self.endpoint.send_sync(Segments::None, to, TURN | turn.word(), 0).map_err(failed("cannot send"))?;
        self.end(sent)?;
        self.share(turn == Turn::Shared);
        Ok(())
    }

    /// Has messages of so many bytes ready.
    fn prepare(&mut self, bytes: u64) -> Result<(), UserError> {
        if self.parts.iter().all(|(len, _)| *len != bytes) {
            let part = self.memory.part(0, bytes).ok_or_else(|| UserError::new("a message is too long"))?;
            self.parts.push((bytes, Arc::new(part)));
        }
        Ok(())
    }

    fn to(&self) -> Result<Address, UserError> {
        self.peer.ok_or_else(|| UserError::new("there is no connection"))
    }

    /// Begins or ends the use by another thread.
    fn share(&mut self, is_shared: bool) {
        if is_shared == self.neighbour.is_some() {
            return;
        }
        if let Some(neighbour) = self.neighbour.take() {
            neighbour.is_over.store(true, Ordering::Relaxed);
            // It has not panicked, or that is told already.
            let _ = neighbour.thread.join();
            return;
        }
        let is_over = Arc::new(AtomicBool::new(false));
        let (endpoint, watched) = (Arc::clone(&self.endpoint), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            while !watched.load(Ordering::Relaxed) {
                // What it finds is found by the other thread as well.
                let _ = endpoint.progress();
                std::thread::sleep(BESIDE);
            }
        });
        self.neighbour = Some(Neighbour { is_over, thread });
    }

    /// So many exchanges.
    pub(super) fn run(&mut self, load: Load, count: u64) -> Result<(), UserError> {
        if let Load::Echo(bytes) | Load::Shared(bytes) | Load::Stream { bytes, .. } = load {
            self.prepare(bytes)?;
        }
        match load {
            Load::Echo(bytes) | Load::Shared(bytes) => self.echoes(bytes, count),
            Load::Deep(depth, order) => self.deep(depth, order, count),
            Load::Wildcards(wildcards) => self.with_wildcards(wildcards, count),
            Load::Stream { bytes, window } => self.stream(bytes, window, count),
        }
    }

    #[inline]
    fn echo(&self, to: Address, bytes: u64) -> Result<(), UserError> {
        let receive = self.receive(bytes, Match::exact(5), 0)?;
        let sent = self.send(to, bytes, 5)?;
        self.endpoint.forget(sent).map_err(failed("cannot send"))?;
        self.end(receive).map(|_| ())
    }

    fn echoes(&self, bytes: u64, count: u64) -> Result<(), UserError> {
        let to = self.to()?;
        (0..count).try_for_each(|_| self.echo(to, bytes))
    }

    /// Posts receives until there are so many, by their bits.
    pub(super) fn deepen(&mut self, depth: u64) -> Result<(), UserError> {
        while self.posted.len() as u64 > depth {
            if let Some(request) = self.posted.pop() {
                self.endpoint.cancel(request).map_err(failed("cannot end receives"))?;
            }
        }
        while (self.posted.len() as u64) < depth {
            let bits = self.posted.len() as u64;
            self.posted.push(self.receive(8, Match::exact(bits), 0)?);
        }
        Ok(())
    }

    fn deep(&mut self, depth: u64, order: Order, count: u64) -> Result<(), UserError> {
        let to = self.to()?;
        self.deepen(depth)?;
        for number in 0..count {
            let bits = match order {
                Order::Again => 0,
                Order::Posting => number % depth,
                Order::Random => self.random.u64(0..depth),
            };
            let sent = self.send(to, 8, bits)?;
            self.endpoint.forget(sent).map_err(failed("cannot send"))?;
            let place = bits as usize;
            self.end(self.posted[place])?;
            self.posted[place] = self.receive(8, Match::exact(bits), 0)?;
        }
        Ok(())
    }

    fn with_wildcards(&mut self, wildcards: u64, count: u64) -> Result<(), UserError> {
        self.deepen(0)?;
        while self.others.len() as u64 > wildcards {
            if let Some(request) = self.others.pop() {
                self.endpoint.cancel(request).map_err(failed("cannot end receives"))?;
            }
        }
        while (self.others.len() as u64) < wildcards {
            let wanted = Match { bits: 9 << 8, mask: 0xff << 8 };
            self.others.push(self.receive(8, wanted, 0)?);
        }
        self.echoes(8, count)
    }

    fn stream(&mut self, bytes: u64, window: u64, count: u64) -> Result<(), UserError> {
        let to = self.to()?;
        let class = if window == 1 { ALONE } else { SINK };
        self.with_wildcards(0, 0)?;
        let mut open = std::collections::VecDeque::new();
        for _ in 0..count {
            if open.len() as u64 == window
                && let Some(oldest) = open.pop_front()
            {
                self.end(oldest)?;
            }
            let sent = self.endpoint.send_sync(self.piece(bytes)?, to, class, 0).map_err(failed("cannot send"))?;
            open.push_back(sent);
        }
        open.into_iter().try_for_each(|sent| self.end(sent).map(|_| ()))
    }
}

/// A status that is not that of a success ends the run.
#[inline]
fn checked(status: Status) -> Result<Status, UserError> {
    if status.code == Code::Success { Ok(status) } else { Err(UserError::new("the other end is gone")) }
}
