//! Gets over a network, and the RMA reads that they stand on, between marks at which `ci/steps.c`
//! counts instructions. A job of two ranks by `ci/instructions --splitc`.

use cci::{
    Connect, Connection, Context, Endpoint, EndpointOptions, Event, Notify, Registration, Rights, Rma, RmaHandle,
};
use cci::{Memory, SharedMemory};
use cci_splitc::{SpreadArray, World};
use std::error::Error;
use std::time::Duration;

/// Operations between two marks, in this order: one, and many.
const COUNTS: [u32; 2] = [1, 17];
/// Rounds; the least count of them is taken.
const ROUNDS: usize = 8;
/// Longer than the other rank takes for the operations.
const ANSWERED: Duration = Duration::from_millis(2);
/// Words of a card: those of a handle, and a URI that zeroes end.
const CARD: usize = 64;

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> Outcome {
    let mut outcome = Ok(());
    cci_splitc::run(|world| {
        outcome = play(world);
        Ok(())
    })?;
    outcome
}

fn play(world: &World) -> Outcome {
    let cells = world.spread::<u64>(2)?;
    let bare = Bare::open(world)?;
    world.barrier()?;
    if world.me() == 1 {
        while world.read(cells.of_rank(1))? == 0 {
            world.poll()?;
            bare.endpoint.get_event()?;
        }
        return Ok(());
    }
    for round in 0..ROUNDS {
        for count in COUNTS {
            // The first round is for what happens once.
            let mark = if round == 0 { || {} } else { mark };
            gets(world, &cells, count, mark)?;
            bare.reads(count, mark)?;
        }
    }
    world.write(cells.of_rank(1), 1)?;
    Ok(())
}

/// Here counting begins or ends.
fn mark() {
    // SAFETY: the tracer takes the trap; it changes no registers.
    unsafe { std::arch::asm!("int3") };
}

fn gets(world: &World, cells: &SpreadArray<u64>, count: u32, mark: fn()) -> Outcome {
    let mut values = [0; COUNTS[1] as usize];
    mark();
    world.split(|phase| {
        for value in values.iter_mut().take(count as usize) {
            phase.get(value, cells.of_rank(1).offset(1));
        }
        std::thread::sleep(ANSWERED);
    })?;
    mark();
    Ok(())
}

/// An endpoint of CCI, connected to that of the other rank.
struct Bare {
    // Before the endpoint, whose registration it is.
    memory: Registration<Memory>,
    endpoint: Endpoint,
    connection: Connection,
    remote: RmaHandle,
}

impl Bare {
    fn open(world: &World) -> Result<Self, Box<dyn Error>> {
        let context = Context::new()?;
        let device = context.devices().first().ok_or("no device")?;
        let endpoint = Endpoint::open(device, &EndpointOptions::new())?;
        let memory = endpoint.register(SharedMemory::new(4096)?.memory(), Rights::READ_WRITE)?;
        let mut card = vec![0u64; CARD];
        card[..4].copy_from_slice(&memory.handle().words());
        for (word, bytes) in card[4..].iter_mut().zip(endpoint.uri().as_bytes().chunks(8)) {
            *word = bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        }
        let cards = world.spread::<u64>(2 * CARD as u64)?;
        world.write_bulk(cards.of_rank(world.me()), &card)?;
        world.barrier()?;
        world.read_bulk(&mut card, cards.of_rank(1 - world.me()))?;
        let remote = RmaHandle::from_words(std::array::from_fn(|at| card[at]));
        let uri: Vec<u8> = card[4..].iter().flat_map(|word| word.to_le_bytes()).take_while(|byte| *byte != 0).collect();
        if world.me() == 0 {
            endpoint.connect(&Connect::to(std::str::from_utf8(&uri)?))?;
        }
        let connection = loop {
            world.poll()?;
            match endpoint.get_event()? {
                Some(Event::Request(request)) => request.accept(0)?,
                Some(event) => break event.connection().ok_or("the ranks cannot connect")?,
                None => {}
            }
        };
        Ok(Self { memory, endpoint, connection, remote })
    }

    fn reads(&self, count: u32, mark: fn()) -> Outcome {
        let rma = Rma::new(self.memory.handle(), &self.remote, 8);
        mark();
        for number in 0..count {
            self.endpoint.read(self.connection, &rma, Notify::Always(number.into()))?;
        }
        std::thread::sleep(ANSWERED);
        let mut left = count;
        while left > 0 {
            if let Some(Event::Completed(ended)) = self.endpoint.get_event()? {
                ended.outcome()?;
                left -= 1;
            }
        }
        mark();
        Ok(())
    }
}
