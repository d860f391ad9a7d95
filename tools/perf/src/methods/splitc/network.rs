//! A get over a network beside the RMA read that it stands on: two ranks, each with the run time's
//! endpoint and one of CCI. Blocks of both kinds alternate; rank 1 serves only what is measured.

use super::rank::{as_rank, fault};
use crate::measure::driver::DriverOptions;
use crate::measure::facade::Facade;
use crate::methods::middle;
use crate::task::Task;
use cci::{Connect, Connection, Endpoint, Event, Notify, Registration, Rights, Rma, RmaHandle, SharedMemory};
use cci_report::{UserError, while_doing};
use cci_splitc::{Global, SpreadArray, World};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::time::{Duration, Instant};

/// Operations of a block, and those before it that are not timed.
const COUNT: u32 = 200;
const BEFORE: u32 = 20;
/// Blocks of each kind, at least.
const BLOCKS: usize = 11;
/// Bytes of a card: four words of a handle, and a URI that zeroes end.
const CARD: usize = 512;
const HANDLE: usize = 32;
/// How long connecting may take.
const ARRIVAL: Duration = Duration::from_secs(30);
/// What rank 1 serves.
const GETS: u64 = 0;
const READS: u64 = 1;
const OVER: u64 = 2;

/// One of the two ranks.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct NetworkRank {
    pub(crate) transport: String,
    pub(crate) time: Duration,
}

impl Task for NetworkRank {
    const NAME: &'static str = "splitc-network";

    fn run(&self) -> Result<(), Option<UserError>> {
        as_rank(|world| self.play(world))
    }
}

impl NetworkRank {
    fn play(&self, world: &World) -> Result<(), UserError> {
        let bare = Bare::open(world, &self.transport)?;
        let cells = world.spread::<u64>(4).map_err(fault)?;
        world.barrier().map_err(fault)?;
        if world.me() == 0 { self.lead(world, &bare, &cells) } else { follow(world, &bare, &cells) }
    }

    fn lead(&self, world: &World, bare: &Bare, cells: &SpreadArray<u64>) -> Result<(), UserError> {
        let (word, turn) = (cells.of_rank(1), cells.of_rank(1).offset(1));
        let (begin, mut blocks) = (Instant::now(), [const { Vec::new() }; 2]);
        while blocks[0].len() < BLOCKS || begin.elapsed() < self.time {
            gets(world, word, BEFORE)?;
            blocks[0].push(timed(|| gets(world, word, COUNT))?);
            world.write(turn, READS).map_err(fault)?;
            bare.reads(BEFORE)?;
            blocks[1].push(timed(|| bare.reads(COUNT))?);
            bare.turn_back()?;
        }
        world.write(turn, OVER).map_err(fault)?;
        let pairs = || blocks[0].iter().zip(&blocks[1]);
        let difference = middle(pairs().map(|(get, read)| get - read).collect());
        let ratio = middle(pairs().map(|(get, read)| get / read).collect());
        let [get, read] = blocks.map(middle);
        writeln!(std::io::stdout(), "pair get-rma {get:.3} {read:.3} {difference:.3} {ratio:.5}")
            .map_err(while_doing("cannot print what was measured"))
    }
}

/// Serves gets, and reads while it is their turn.
fn follow(world: &World, bare: &Bare, cells: &SpreadArray<u64>) -> Result<(), UserError> {
    let turn = cells.of_rank(1).offset(1);
    loop {
        world.poll().map_err(fault)?;
        match world.read(turn).map_err(fault)? {
            READS => {
                // Before the end of the reads, behind which rank 0 writes the next turn.
                world.write(turn, GETS).map_err(fault)?;
                bare.serve()?;
            }
            OVER => return Ok(()),
            _ => {}
        }
    }
}

/// Nanoseconds of an operation.
fn timed(run: impl FnOnce() -> Result<(), UserError>) -> Result<f64, UserError> {
    let begin = Instant::now();
    run()?;
    Ok(begin.elapsed().as_secs_f64() * 1e9 / f64::from(COUNT))
}

pub(super) fn gets(world: &World, word: Global<u64>, count: u32) -> Result<(), UserError> {
    let mut value = 0;
    for _ in 0..count {
        world.split(|phase| phase.get(&mut value, word)).map_err(fault)?;
    }
    std::hint::black_box(value);
    Ok(())
}

/// An endpoint of CCI, connected to that of the other one of two ranks.
#[derive(Debug)]
pub struct Bare {
    // Before the endpoint, whose registration it is.
    memory: Registration<cci::Memory>,
    endpoint: Endpoint,
    connection: Connection,
    remote: RmaHandle,
}

impl Bare {
    /// Opens it on this host. Both ranks do so at once.
    ///
    /// # Errors
    ///
    /// The transport cannot be used, or the other rank does not come.
    pub fn open(world: &World, transport: &str) -> Result<Self, UserError> {
        use crate::measure::driver::Driver;
        let endpoint = Facade::open(&DriverOptions::on_loopback(transport))?.into_endpoint();
        let memory = SharedMemory::new(4096).map_err(while_doing("no memory for RMA"))?.memory();
        let memory = endpoint.register(memory, Rights::READ_WRITE).map_err(while_doing("cannot register memory"))?;
        let (uri, handle) = exchange(world, endpoint.uri(), memory.handle())?;
        if world.me() == 0 {
            let connect = Connect::to(&uri).timeout(ARRIVAL);
            endpoint.connect(&connect).map_err(while_doing("cannot connect to the other rank"))?;
        }
        let begin = Instant::now();
        let connection = loop {
            match endpoint.get_event().map_err(while_doing("cannot connect to the other rank"))? {
                Some(Event::Request(request)) => {
                    request.accept(0).map_err(while_doing("cannot answer the other rank"))?;
                }
                Some(event) => match event.connection() {
                    Some(connection) => break connection,
                    None => return Err(UserError::new("the ranks cannot connect")),
                },
                None if begin.elapsed() > ARRIVAL => return Err(UserError::new("the ranks did not connect in time")),
                None => {}
            }
        };
        Ok(Self { memory, endpoint, connection, remote: handle })
    }

    fn reads(&self, count: u32) -> Result<(), UserError> {
        for _ in 0..count {
            self.start_read()?;
            while !self.take_end()? {}
        }
        Ok(())
    }

    /// Starts a read of a word of the other rank.
    ///
    /// # Errors
    ///
    /// It was not started.
    #[inline]
    pub fn start_read(&self) -> Result<(), UserError> {
        let rma = Rma::new(self.memory.handle(), &self.remote, 8);
        let started = self.endpoint.read(self.connection, &rma, Notify::Always(0));
        started.map_err(while_doing("cannot start an RMA read"))
    }

    /// Takes an event, and serves reads of the other rank; whether it is the end of a read.
    ///
    /// # Errors
    ///
    /// The endpoint has failed, or the read.
    #[inline]
    pub fn take_end(&self) -> Result<bool, UserError> {
        let event = self.endpoint.get_event().map_err(while_doing("an RMA read did not end"))?;
        let Some(Event::Completed(ended)) = event else { return Ok(false) };
        ended.outcome().map_err(while_doing("an RMA read failed"))?;
        Ok(true)
    }

    fn turn_back(&self) -> Result<(), UserError> {
        self.endpoint.send(self.connection, b"back", Notify::OnFailure(0)).map_err(while_doing("cannot send a message"))
    }

    /// Serves reads until a message comes.
    fn serve(&self) -> Result<(), UserError> {
        loop {
            let event = self.endpoint.get_event().map_err(while_doing("cannot serve RMA reads"))?;
            if let Some(Event::Received(_)) = event {
                return Ok(());
            }
        }
    }
}

/// Gives URI and handle to the other rank, and returns its.
fn exchange(world: &World, uri: &str, handle: &RmaHandle) -> Result<(String, RmaHandle), UserError> {
    let cards = world.spread::<u8>(2 * CARD as u64).map_err(fault)?;
    let mut card: Vec<u8> = handle.words().iter().flat_map(|word| word.to_le_bytes()).collect();
    card.extend_from_slice(uri.as_bytes());
    if card.len() >= CARD {
        return Err(UserError(format!("the URI {uri} has no room in a card")));
    }
    world.write_bulk(cards.of_rank(world.me()), &card).map_err(fault)?;
    world.barrier().map_err(fault)?;
    let mut other = [0; CARD];
    world.read_bulk(&mut other, cards.of_rank(1 - world.me())).map_err(fault)?;
    let words = std::array::from_fn(|at| {
        let bytes = other[8 * at..].first_chunk::<8>().copied().unwrap_or_default();
        u64::from_le_bytes(bytes)
    });
    let uri: Vec<u8> = other[HANDLE..].iter().copied().take_while(|byte| *byte != 0).collect();
    let uri = String::from_utf8(uri).map_err(while_doing("cannot parse the URI of the other rank"))?;
    world.barrier().map_err(fault)?;
    Ok((uri, RmaHandle::from_words(words)))
}
