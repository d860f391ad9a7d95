//! The mapping over the VI Architecture: a pipe or two to each rank, each a VI. Requests and
//! answers are messages with credits; nothing is dispatched through handlers.

mod pipe;
mod watch;

use crate::fault::{Fault, StartError};
use crate::frame::{Ask, HEADER, Header, OnAnswer};
use crate::looks::{LONG, LOOKS, LOOKS_SHARED};
use crate::mapping::Vis;
use crate::server::Server;
use cci_job::Job;
use cci_via::engine::{Completion, sleep_on};
use cci_via::{Access, Address, Error, FaultCode, Part, Segment, Status, Tag};
use pipe::{Body, Core, Pipe, Shape, Token, Unsent};
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::time::{Duration, Instant};
pub(crate) use watch::Watch;
use watch::Watched;

/// The paper's: of a rank's one VI, and of two, that for words and that for the rest.
const ONE: Shape = Shape { credits: 8, size: 4096, is_segmented: true };
const FOR_WORDS: Shape = Shape { credits: 64, size: 64, is_segmented: false };
const FOR_BULK: Shape = Shape { credits: 8, size: 4096, is_segmented: false };

/// Completions that one poll takes at most.
const BURST: usize = 64;
/// How long a rank waits for all others to connect.
const LIMIT: Duration = Duration::from_secs(60);

/// Memory of this rank that is registered, by its addresses.
struct Registered {
    start: u64,
    len: u64,
    handle: u32,
}

/// The NIC of a rank.
pub(crate) struct VirtualInterfaces {
    core: Core,
    tag: Tag,
    queues: (u32, u32),
    shapes: &'static [Shape],
    /// Those to each rank in turn; none to this one.
    pipes: Vec<Option<Pipe>>,
    by_vi: HashMap<u32, usize>,
    registered: Vec<Registered>,
    server: Rc<Server>,
    me: u32,
    /// The bytes of an answer.
    answer: Vec<u8>,
    /// Ranks whose pipe has ended, until they are asked for.
    gone: Vec<u32>,
    /// Whether the last poll has left nothing.
    is_drained: bool,
    watched: Watched,
}

fn refused(why: impl fmt::Display) -> StartError {
    StartError(why.to_string())
}

fn failed(why: &Error) -> Fault {
    Fault::Endpoint(why.to_string())
}

/// The discriminator of a pipe's end: the same in both ranks but for their order.
fn discriminator(nonce: [u8; 8], from: u32, to: u32, index: usize) -> Vec<u8> {
    [b"splitc", &nonce[..], &from.to_le_bytes(), &to.to_le_bytes(), &[index as u8]].concat()
}

impl VirtualInterfaces {
    /// Opens the NIC, for so many VIs to each rank.
    pub(crate) fn open(job: &Job, context: &cci::Context, vis: Vis, server: Rc<Server>) -> Result<Self, StartError> {
        let device = job.device(context).map_err(refused)?;
        let core = Core::open(&device).map_err(refused)?;
        let tag = core.create_tag().map_err(refused)?;
        let shapes: &[Shape] = match vis {
            Vis::One => &[ONE],
            Vis::Two => &[FOR_WORDS, FOR_BULK],
        };
        let queue = |of: fn(Shape) -> u16| {
            let a_rank: usize = shapes.iter().map(|shape| usize::from(of(*shape))).sum();
            core.create_queue(a_rank * job.size().max(1) as usize).map_err(refused)
        };
        let queues = (queue(Shape::sends)?, queue(Shape::receives)?);
        Ok(Self {
            core,
            tag,
            queues,
            shapes,
            pipes: Vec::new(),
            by_vi: HashMap::new(),
            registered: Vec::new(),
            server,
            me: job.rank(),
            answer: Vec::new(),
            gone: Vec::new(),
            is_drained: true,
            watched: Watched::default(),
        })
    }

    /// Registers memory of this rank, from which messages take their payloads without a copy.
    pub(crate) fn register(&mut self, start: u64, memory: &cci::Memory) {
        // What is not registered is copied.
        if let Ok(handle) = self.core.register(memory.clone(), start, self.tag, Access::default()) {
            self.registered.push(Registered { start, len: memory.len(), handle });
        }
    }

    /// Connects to all other ranks. All ranks call it.
    pub(crate) fn connect(&mut self, job: &Job) -> Result<(), StartError> {
        let nonce = RandomState::new().build_hasher().finish().to_le_bytes();
        let card = [&nonce[..], self.core.host().to_string().as_bytes()].concat();
        let cards = job.exchange(&card).map_err(refused)?;
        let parse = |card: &Vec<u8>| {
            let (nonce, host) = card.split_first_chunk::<8>()?;
            Some((str::from_utf8(host).ok()?.parse::<IpAddr>().ok()?, *nonce))
        };
        let cards: Option<Vec<_>> = cards.iter().map(parse).collect();
        let cards = cards.ok_or_else(|| refused("a rank has another version of this library"))?;
        let nonce = cards[0].1;
        let deadline = Instant::now() + LIMIT;
        // Each in the order of ranks, so that of all pairs that are left the first one meets.
        for (rank, (host, _)) in (0..).zip(&cards) {
            for (index, shape) in self.shapes.iter().enumerate() {
                if rank == self.me {
                    self.pipes.push(None);
                    continue;
                }
                let cannot = |why: Error| refused(format!("cannot connect to rank {rank}: {why}"));
                let pipe = Pipe::new(&self.core, self.tag, self.queues, rank, *shape).map_err(cannot)?;
                let local = Address::new(self.core.host(), &discriminator(nonce, self.me, rank, index));
                let remote = Address::new(*host, &discriminator(nonce, rank, self.me, index));
                let left = deadline.saturating_duration_since(Instant::now());
                self.core.peer_request(pipe.vi, &local, &remote, Some(left)).map_err(cannot)?;
                self.core.peer_wait(pipe.vi).map_err(cannot)?;
                self.by_vi.insert(pipe.vi, self.pipes.len());
                self.pipes.push(Some(pipe));
            }
        }
        Ok(())
    }

    /// Tells from now on what time is spent on; None: nobody.
    pub(crate) fn watch(&mut self, watch: Option<Watch>) {
        self.watched.0 = watch;
    }

    /// The pipe for a message of so many bytes of payload, there or in its answer.
    fn pipe_of(&self, rank: u32, len: u64) -> usize {
        let fits = |shape: &Shape| len <= shape.longest() as u64;
        let index = self.shapes.iter().position(fits).unwrap_or(self.shapes.len() - 1);
        rank as usize * self.shapes.len() + index
    }

    /// The longest payload of a message.
    pub(crate) fn longest(&self) -> usize {
        self.shapes.last().map_or(0, |shape| shape.longest())
    }

    /// Registered memory at these addresses, which are all within one.
    fn registered_at(&self, address: u64, len: u64) -> Option<Segment> {
        let is_it = |area: &&Registered| {
            let offset = address.wrapping_sub(area.start);
            offset < area.len && len <= area.len - offset
        };
        let handle = self.registered.iter().find(is_it)?.handle;
        Some(Segment { address, handle, length: len as u32 })
    }

    /// Sends a request, whose payload stays as it is until its answer if `is_stable`. Serves others
    /// while there is no room.
    pub(crate) fn ask(
        &mut self,
        rank: u32,
        header: &Header,
        payload: &[u8],
        is_stable: bool,
        on_answer: OnAnswer<'_>,
    ) -> Result<(), Fault> {
        let len = if let Ask::Read(len) = header.ask { len } else { payload.len() as u64 };
        let at = self.pipe_of(rank, len);
        let is_segmented = is_stable && self.shapes[at % self.shapes.len()].is_segmented;
        let address = payload.as_ptr().expose_provenance() as u64;
        let there = if is_segmented { self.registered_at(address, payload.len() as u64) } else { None };
        self.ask_by(at, header, &there.map_or(Body::Bytes(payload), Body::There), on_answer)
    }

    fn ask_by(&mut self, at: usize, header: &Header, body: &Body<'_>, on_answer: OnAnswer<'_>) -> Result<(), Fault> {
        let gone = Fault::Gone { rank: (at / self.shapes.len()) as u32 };
        let mut looks = 0;
        self.watched.spent(Part::Act);
        loop {
            let Some(Some(pipe)) = self.pipes.get_mut(at) else { return Err(gone) };
            match pipe.ask(&self.core, &self.watched, header, body) {
                Ok(()) => return Ok(()),
                Err(Unsent::Gone) => return Err(gone),
                Err(Unsent::NoRoom) => {}
            }
            if self.poll(on_answer)? {
                continue;
            }
            looks += 1;
            if looks > LOOKS || looks > LOOKS_SHARED && cci::is_oversubscribed() {
                // The end of a rank is seen behind it.
                self.sleep(LONG)?;
            }
        }
    }

    /// The pipes by which stores have gone since their last flush, and their ranks.
    pub(crate) fn take_stored(&mut self) -> Vec<(usize, u32)> {
        let stored = self.pipes.iter_mut().enumerate().filter_map(|(at, pipe)| {
            let pipe = pipe.as_mut()?;
            std::mem::take(&mut pipe.has_stored).then_some((at, pipe.rank))
        });
        stored.collect()
    }

    /// Sends a request behind the stores of a pipe: its answer comes when they have been done.
    pub(crate) fn flush(&mut self, at: usize, header: &Header, on_answer: OnAnswer<'_>) -> Result<(), Fault> {
        self.ask_by(at, header, &Body::Bytes(&[]), on_answer)
    }

    /// Takes what has come: serves requests, and hands answers out. Whether something has come.
    pub(crate) fn poll(&mut self, on_answer: OnAnswer<'_>) -> Result<bool, Fault> {
        let mut has_come = false;
        self.is_drained = false;
        for _ in 0..BURST {
            let came = self.core.take_completed(self.queues.1, true).map_err(|why| failed(&why))?;
            self.watched.spent(if came.is_some() { Part::NotifyReceive } else { Part::Wait });
            self.is_drained = came.is_none();
            let Some((vi, _, end, token)) = came else { break };
            has_come = true;
            self.came(vi, end, token, on_answer);
        }
        // What has been sent is needed less, and is there when something has come.
        for _ in 0..BURST {
            let sent = self.core.take_completed(self.queues.0, false).map_err(|why| failed(&why))?;
            self.watched.spent(if sent.is_some() { Part::NotifySend } else { Part::Wait });
            let Some((vi, _, end, token)) = sent else { break };
            has_come = true;
            self.went(vi, end, token);
        }
        Ok(has_come)
    }

    /// Sleeps until something has come, for `limit` at most; not where the last poll has left
    /// something.
    pub(crate) fn sleep(&mut self, limit: Duration) -> Result<(), Fault> {
        let has_failed = |fault: cci_via::Fault| fault.code == FaultCode::Catastrophic;
        if self.core.fault().is_some_and(has_failed) {
            return Err(Fault::Endpoint("its device has failed".to_owned()));
        }
        if !self.is_drained {
            return Ok(());
        }
        let before = self.core.changes();
        let (after, sleeper) = self.core.arm();
        if after == before {
            sleep_on(sleeper.iter().map(AsFd::as_fd), Some(limit));
        }
        Ok(())
    }

    /// A rank whose pipe has ended, once.
    pub(crate) fn take_gone(&mut self) -> Option<u32> {
        self.gone.pop()
    }

    fn end(&mut self, at: usize) {
        if let Some(Some(pipe)) = self.pipes.get_mut(at)
            && pipe.close(&self.core)
        {
            self.gone.push(pipe.rank);
        }
    }

    fn went(&mut self, vi: u32, end: Completion, token: Token) {
        let Some(&at) = self.by_vi.get(&vi) else { return };
        let Some(Some(pipe)) = self.pipes.get_mut(at) else { return };
        if let Token::Send(buffer) = token {
            pipe.sent(buffer);
        }
        if end.status.is_error() || pipe.flush(&self.core, &self.watched).is_err() {
            self.end(at);
        }
        self.watched.spent(Part::RecycleSend);
    }

    fn came(&mut self, vi: u32, end: Completion, token: Token, on_answer: OnAnswer<'_>) {
        let (Some(&at), Token::Receive(buffer)) = (self.by_vi.get(&vi), token) else { return };
        // A write into this rank's memory brings no message, and nobody was told where to write.
        let is_no_message = end.status.is_error() || end.status.has(Status::OP_WRITE);
        let taken = if is_no_message { Err(Unsent::Gone) } else { self.take(at, buffer, end, on_answer) };
        let Some(Some(pipe)) = self.pipes.get_mut(at) else { return };
        self.watched.spent(Part::RecycleReceive);
        if taken.is_err() || pipe.post_receive(&self.core, buffer).is_err() {
            self.end(at);
        }
        self.watched.spent(Part::PostReceive);
    }

    /// Takes a message. Fails where its rank breaks the rules, or is gone.
    fn take(&mut self, at: usize, buffer: u16, end: Completion, on_answer: OnAnswer<'_>) -> Result<(), Unsent> {
        let Some(Some(mut pipe)) = self.pipes.get_mut(at).map(Option::take) else { return Ok(()) };
        let (len, back) = (end.length as usize, end.immediate.unwrap_or(0));
        let taken = if pipe.returned(back) {
            self.watched.spent(Part::Process);
            let found = pipe.read(buffer, len.min(HEADER), |bytes| Header::parse(bytes).map(|(header, _)| header));
            self.watched.spent(Part::Read);
            found.map_or(Err(Unsent::Gone), |header| match header.ask {
                // Each of these brings a credit back.
                Ask::Wake | Ask::Answer(..) | Ask::Lost(_) if back == 0 => Err(Unsent::Gone),
                Ask::Wake => Ok(()),
                Ask::Answer(..) | Ask::Lost(_) => {
                    pipe.read(buffer, len, |message| on_answer(Some(pipe.rank), message));
                    self.watched.spent(Part::Act);
                    Ok(())
                }
                _ if !pipe.begin() => Err(Unsent::Gone),
                _ => self.serve(&mut pipe, header, buffer, len),
            })
        } else {
            Err(Unsent::Gone)
        };
        self.pipes[at] = Some(pipe);
        taken
    }

    fn serve(&mut self, pipe: &mut Pipe, header: Header, buffer: u16, len: usize) -> Result<(), Unsent> {
        if let Ask::Read(count) = header.ask {
            if count > pipe.longest() as u64 {
                return Err(Unsent::Gone);
            }
            // Bytes that are registered leave from where they are.
            let is_segmented = count > 0 && pipe.is_segmented();
            if let Some(there) = self.registered_at(header.address, count).filter(|_| is_segmented) {
                let header = Header { ask: Ask::Answer(true, 0), ..header };
                self.watched.spent(Part::Act);
                return pipe.answer(&self.core, &self.watched, &header, &Body::There(there));
            }
        }
        let (server, rank, answer) = (&self.server, pipe.rank, &mut self.answer);
        let served = pipe.read(buffer, len, |bytes| server.serve(rank, header, &bytes[HEADER..], answer));
        self.watched.spent(Part::Act);
        match (header.ask, served.ask) {
            (Ask::Store, Ask::Answer(true, _)) => pipe.stored(&self.core, &self.watched),
            (Ask::Store, _) => {
                let lost = Header { ask: Ask::Lost((len - HEADER) as u64), number: self.me, address: header.address };
                pipe.answer(&self.core, &self.watched, &lost, &Body::Bytes(&[]))
            }
            _ => pipe.answer(&self.core, &self.watched, &served, &Body::Bytes(&self.answer)),
        }
    }
}
