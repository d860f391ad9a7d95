//! What a get by the VI Architecture consists of, part by part: the paper's Table 4. Two ranks, of
//! which rank 0 gets a word again and again; both tell a clock what they spend time on.

use super::rank::{as_rank, fault};
use crate::interrupt;
use crate::methods::mappings::parts::{Clock, Spent, category};
use crate::task::Task;
use cci_report::finding::MappingPart;
use cci_report::{UserError, while_doing};
use cci_splitc::World;
use cci_via::Part;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::time::{Duration, Instant};

/// Gets before any is told, and between two looks at the clock.
const FIRST: u32 = 200;
/// What rank 1 does.
const SERVES: u64 = 0;
const TELLS: u64 = 1;
const OVER: u64 = 2;

/// One of the two ranks.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PartsRank {
    pub(crate) time: Duration,
}

impl Task for PartsRank {
    const NAME: &'static str = "splitc-parts";

    fn run(&self) -> Result<(), Option<UserError>> {
        as_rank(|world| self.play(world))
    }
}

impl PartsRank {
    fn play(&self, world: &World) -> Result<(), UserError> {
        // Of each rank: a word to get, whose turn it is, and what rank 1 has spent.
        let cells = world.spread::<u64>(2 * (2 + Part::COUNT as u64)).map_err(fault)?;
        let told = |rank: u32, part: usize| cells.of_rank(rank).offset(2 + part as i64);
        let (clock, turn) = (Clock::new(), cells.of_rank(1).offset(1));
        let watch = |is_told: bool| {
            let clock = clock.clone();
            let watch = move |part| clock.spent(part);
            let is_vi = world.watch(is_told.then_some(std::rc::Rc::new(watch)));
            if is_vi { Ok(()) } else { Err(UserError::new("parts are told by the VI Architecture alone")) }
        };
        world.barrier().map_err(fault)?;
        let mut count = 0;
        if world.me() == 0 {
            let word = cells.of_rank(1);
            super::network::gets(world, word, FIRST)?;
            world.write(turn, TELLS).map_err(fault)?;
            clock.reset();
            watch(true)?;
            let begin = Instant::now();
            while count == 0 || begin.elapsed() < self.time && !interrupt::is_asked() {
                super::network::gets(world, word, FIRST)?;
                count += FIRST;
            }
            watch(false)?;
            world.write(turn, OVER).map_err(fault)?;
        } else {
            let mut now = SERVES;
            while now != OVER {
                world.poll().map_err(fault)?;
                let next = world.read(turn).map_err(fault)?;
                if (now, next) == (SERVES, TELLS) {
                    clock.reset();
                    watch(true)?;
                }
                now = next;
            }
            watch(false)?;
            let Spent(spent) = clock.read();
            for (part, ns) in spent.iter().enumerate() {
                world.write(told(0, part), ns.to_bits()).map_err(fault)?;
            }
        }
        world.barrier().map_err(fault)?;
        if world.me() == 0 { print(world, &clock.read(), count, |part| told(0, part)) } else { Ok(()) }
    }
}

/// Prints what both ranks have spent on each part of a get.
fn print(
    world: &World,
    Spent(own): &Spent,
    count: u32,
    told: impl Fn(usize) -> cci_splitc::Global<u64>,
) -> Result<(), UserError> {
    for part in Part::ALL.into_iter().filter(|part| *part != Part::Wait) {
        let at = part as usize;
        let other = f64::from_bits(world.read(told(at)).map_err(fault)?);
        let ns = (own.get(at).copied().unwrap_or_default() + other) / f64::from(count);
        writeln!(std::io::stdout(), "part {at} {ns:.4}").map_err(while_doing("cannot print what was measured"))?;
    }
    Ok(())
}

/// A printed part.
pub(super) fn part(mapping: &str, at: usize, ns: f64) -> Option<MappingPart> {
    let (category, name) = category(*Part::ALL.get(at)?);
    Some(MappingPart { mapping: mapping.into(), category: category.into(), name: name.into(), ns })
}
