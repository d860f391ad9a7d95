//! What all ranks do together.

use cci_splitc::{Fault, Op, World};
use std::time::Duration;

/// Barriers, reductions, scans and broadcasts, many times over.
pub(crate) fn together(world: &World) -> Result<(), Fault> {
    let (me, procs) = (world.me(), world.procs());
    let visits = world.spread::<u64>(u64::from(procs))?;
    for turn in 1..=200 {
        world.write(visits.of_rank(me), turn)?;
        world.barrier()?;
        for rank in 0..procs {
            let seen = world.read(visits.of_rank(rank))?;
            assert!(seen == turn || seen == turn + 1, "rank {rank} is at {seen}, this one at {turn}");
        }
        world.barrier()?;
    }
    let sum = |count: u32| (0..count).map(|rank| i64::from(rank) - 2).sum::<i64>();
    let mine = i64::from(me) - 2;
    assert_eq!(world.reduce(Op::Add, mine)?, sum(procs));
    assert_eq!(world.scan(Op::Add, mine)?, sum(me + 1));
    assert_eq!(world.reduce(Op::Max, mine)?, i64::from(procs) - 3);
    assert_eq!(world.reduce(Op::Min, f64::from(me) * 0.5)?.to_bits(), 0);
    assert_eq!(world.reduce(Op::Mul, 2_u32)?, 1 << procs);
    for from in 0..procs {
        assert_eq!(world.broadcast(from, me as f32)?, from as f32);
        let mut values: Vec<u16> = (0..100).map(|at| at * (me as u16 + 1)).collect();
        world.broadcast_bulk(from, &mut values)?;
        assert!((0..).zip(&values).all(|(at, value)| *value == at * (from as u16 + 1)));
    }
    assert_eq!(world.broadcast(procs, 1_u8), Err(Fault::NoRank { rank: procs, procs }));
    // The sum of floating point numbers has the same bits everywhere.
    let bits = world.reduce(Op::Add, 0.1 / f64::from(me + 3))?.to_bits();
    assert_eq!(world.reduce(Op::Max, bits)?, world.reduce(Op::Min, bits)?);
    Ok(())
}

/// Stores are counted at their target, by sender.
pub(crate) fn stores(world: &World) -> Result<(), Fault> {
    const TIMES: u64 = 200;
    let (me, procs) = (world.me(), world.procs());
    let rows = 2 * TIMES * u64::from(procs);
    let array = world.spread::<u32>(rows * u64::from(procs))?;
    for round in 0..3 {
        for time in 0..TIMES {
            for rank in 0..procs {
                let at = (u64::from(me) * TIMES + time) * 2;
                let value = (round * 1000 + time) as u32 * 10 + me;
                world.store_bulk(array.of_rank(rank).offset(at as i64), &[value, !value])?;
            }
        }
        // All that comes here, in two parts.
        world.store_sync(8 * TIMES * u64::from(procs) - 8)?;
        world.store_sync(8)?;
        for sender in 0..procs {
            for time in 0..TIMES {
                let at = (u64::from(sender) * TIMES + time) * 2;
                let mut pair = [0; 2];
                world.read_bulk(&mut pair, array.of_rank(me).offset(at as i64))?;
                let value = (round * 1000 + time) as u32 * 10 + sender;
                assert_eq!(pair, [value, !value]);
            }
        }
        world.barrier()?;
    }
    for turn in 0..50 {
        world.store(array.of_rank((me + 1) % procs), turn * 10 + me)?;
        world.all_store_sync()?;
        assert_eq!(world.read(array.of_rank(me))?, turn * 10 + (me + procs - 1) % procs);
        // Nobody overwrites it before all have read.
        world.barrier()?;
    }
    world.store(array.of_rank(0), 1)?;
    world.sync()?;
    world.barrier()?;
    world.reset_store_sync();
    world.store_sync(0)
}

/// Ranks that come late find the others asleep, and wake them.
pub(crate) fn sleepers(world: &World) -> Result<(), Fault> {
    let array = world.spread::<u32>(u64::from(world.procs()))?;
    for late in 0..world.procs() {
        if world.me() == late {
            std::thread::sleep(Duration::from_millis(50));
            world.store(array.of_rank(0), late + 1)?;
        }
        if world.me() == 0 {
            world.store_sync(4)?;
            assert_eq!(world.read(array.of_rank(0))?, late + 1);
        }
        world.barrier()?;
    }
    Ok(())
}

/// Who waits for a rank that is busy elsewhere takes no processor time to speak of.
pub(crate) fn idle(world: &World) -> Result<(), Fault> {
    const AWAY: Duration = Duration::from_millis(1500);
    /// A tenth of what they wait: who spins takes all of it. A sleep of 200 ms costs 2.4 ms in a
    /// debug build, whose endpoints of all ways are armed and polled by cold code; in sum 40 ms
    /// here, and more on a busy machine.
    const MOST: i64 = 300_000_000;
    let word = world.spread::<u64>(u64::from(world.procs()))?;
    let used = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        time.tv_sec * 1_000_000_000 + time.tv_nsec
    };
    world.barrier()?;
    let before = used();
    if world.me() == 0 {
        std::thread::sleep(AWAY);
        (0..world.procs()).try_for_each(|rank| world.store(word.of_rank(rank), 1))?;
        std::thread::sleep(AWAY);
    }
    world.store_sync(8)?;
    world.barrier()?;
    let used = used() - before;
    assert!(used < MOST, "{used} ns of processor time while rank 0 was away");
    Ok(())
}
