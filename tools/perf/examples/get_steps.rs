//! Gets over a network, and the RMA reads that they stand on, between marks at which `ci/steps.c`
//! counts instructions. A job of two ranks by `ci/instructions --splitc`.

use cci_perf::methods::splitc::Bare;
use cci_splitc::{SpreadArray, World};
use std::error::Error;
use std::time::Duration;

/// Operations between two marks, in this order: one, and many.
const COUNTS: [u32; 2] = [1, 17];
/// Rounds; the least count of them is taken.
const ROUNDS: usize = 8;
/// Longer than the other rank takes for the operations.
const ANSWERED: Duration = Duration::from_millis(2);

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
    let bare = Bare::open(world, "sock")?;
    world.barrier()?;
    if world.me() == 1 {
        while world.read(cells.of_rank(1))? == 0 {
            world.poll()?;
            bare.take_end()?;
        }
        return Ok(());
    }
    for round in 0..ROUNDS {
        for count in COUNTS {
            // The first round is for what happens once.
            let mark = if round == 0 { || {} } else { mark };
            gets(world, &cells, count, mark)?;
            reads(&bare, count, mark)?;
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

fn reads(bare: &Bare, count: u32, mark: fn()) -> Outcome {
    mark();
    for _ in 0..count {
        bare.start_read()?;
    }
    std::thread::sleep(ANSWERED);
    let mut left = count;
    while left > 0 {
        left -= u32::from(bare.take_end()?);
    }
    mark();
    Ok(())
}
