//! Reading, writing, changing and allocating.

use cci_splitc::{Change, Fault, Global, World};

/// Each rank writes a word of each type to its neighbour, and all ranks read all.
pub(crate) fn words(world: &World) -> Result<(), Fault> {
    let (me, procs) = (world.me(), world.procs());
    let next = (me + 1) % procs;
    let wide = world.spread::<u64>(u64::from(procs))?;
    let floating = world.spread::<f64>(u64::from(procs))?;
    let bytes = world.spread::<u8>(u64::from(procs) * 3)?;
    world.write(wide.of_rank(next), u64::from(me) << 40 | 7)?;
    world.write(floating.of_rank(next), f64::from(me) + 0.5)?;
    world.write(bytes.of_rank(next).offset(2), me as u8 + 1)?;
    assert_eq!(world.read(wide.of_rank(next))?, u64::from(me) << 40 | 7, "what this rank has written");
    world.barrier()?;
    for rank in 0..procs {
        let before = (rank + procs - 1) % procs;
        assert_eq!(world.read(wide.of_rank(rank))?, u64::from(before) << 40 | 7);
        assert_eq!(world.read(floating.of_rank(rank))?.to_bits(), (f64::from(before) + 0.5).to_bits());
        assert_eq!(world.read(bytes.of_rank(rank).offset(2))?, before as u8 + 1);
        assert_eq!(world.read(bytes.of_rank(rank))?, 0, "beside it");
    }
    world.barrier()
}

/// More bytes than a message has, in all alignments.
pub(crate) fn bulk(world: &World) -> Result<(), Fault> {
    const LEN: usize = 100_000;
    let (me, procs) = (world.me(), world.procs());
    let array = world.spread::<u8>(u64::from(procs) * (LEN as u64 + 16))?;
    let value = |rank: u32, at: usize| (at.wrapping_mul(31) % 251) as u8 ^ rank as u8;
    let mine: Vec<u8> = (0..LEN).map(|at| value(me, at)).collect();
    let next = (me + 1) % procs;
    world.write_bulk(array.of_rank(next).offset(3), &mine)?;
    world.barrier()?;
    for rank in 0..procs {
        let before = (rank + procs - 1) % procs;
        for (from, len) in [(0, LEN), (1, 4096), (LEN - 9, 9), (77, 0)] {
            let mut bytes = vec![0; len];
            world.read_bulk(&mut bytes, array.of_rank(rank).offset(3 + from as i64))?;
            assert!((from..).zip(&bytes).all(|(at, byte)| *byte == value(before, at)), "{len} from {from} on");
        }
    }
    world.barrier()
}

/// More parts than requests may be under way.
pub(crate) fn many_parts(world: &World) -> Result<(), Fault> {
    const LEN: usize = (1 << 20) + 1;
    let (me, procs) = (world.me(), world.procs());
    let array = world.spread::<u8>(u64::from(procs) * LEN as u64)?;
    let value = |rank: u32, at: usize| (at % 253) as u8 ^ rank as u8;
    let mine: Vec<u8> = (0..LEN).map(|at| value(me, at)).collect();
    let next = (me + 1) % procs;
    world.write_bulk(array.of_rank(next), &mine)?;
    let mut bytes = vec![0; LEN];
    world.read_bulk(&mut bytes, array.of_rank(next))?;
    assert!(bytes == mine, "what this rank has written");
    world.barrier()?;
    bytes.fill(0);
    world.split(|phase| phase.get_bulk(&mut bytes, array.of_rank(me)))?;
    let before = (me + procs - 1) % procs;
    assert!((0..).zip(&bytes).all(|(at, byte)| *byte == value(before, at)), "from rank {before}");
    world.barrier()
}

/// Gets and puts of a phase are complete at its end.
pub(crate) fn phases(world: &World) -> Result<(), Fault> {
    let (me, procs) = (world.me(), world.procs());
    let count = 300 * u64::from(procs);
    let array = world.spread::<u32>(count)?;
    world.split(|phase| {
        for at in (0..count).filter(|at| at % u64::from(procs) == u64::from((me + 1) % procs)) {
            phase.put(array.at(at), at as u32 * 3);
        }
    })?;
    world.barrier()?;
    let mut all = vec![0; count as usize];
    let mut first = [0; 300];
    world.split(|phase| {
        for (at, place) in (0..).zip(&mut all) {
            phase.get(place, array.at(at));
        }
        phase.get_bulk(&mut first, array.of_rank(procs - 1));
    })?;
    assert!((0..).zip(&all).all(|(at, value)| *value == at * 3));
    assert!((0..).zip(&first).all(|(row, value)| *value == (row * procs + procs - 1) * 3));
    // A phase that goes wrong says so, and the next one is well.
    let wrong = world.split(|phase| phase.put(Global::<u32>::new(procs, 0), 1));
    assert_eq!(wrong, Err(Fault::NoRank { rank: procs, procs }));
    world.split(|phase| phase.get(&mut all[0], array.at(1)))?;
    assert_eq!(all[0], 3);
    world.barrier()
}

/// One word, one meaning: each addition and each swap happens once.
pub(crate) fn atomics(world: &World) -> Result<(), Fault> {
    const TIMES: u64 = 500;
    let procs = u64::from(world.procs());
    let words = world.spread::<u64>(procs * 2)?;
    let (sum, ticket) = (words.of_rank(world.procs() - 1), words.of_rank(0).offset(1));
    let mut last = None;
    for _ in 0..TIMES {
        let old = world.fetch_add(sum, 2)?;
        assert!(last.is_none_or(|last| old > last), "it grows");
        last = Some(old);
        // A lock of 32 bits beside a counter that only its holder changes.
        let lock = ticket.cast::<u32>();
        while world.change(lock, Change::CompareSwap { expected: 0, desired: 1 })? != 0 {
            world.poll()?;
            std::thread::yield_now();
        }
        let counter = lock.offset(1);
        let count = world.read(counter)?;
        world.write(counter, count + 1)?;
        assert_eq!(world.change(lock, Change::Swap(0))?, 1);
    }
    world.barrier()?;
    assert_eq!(world.read(sum)?, 2 * TIMES * procs);
    assert_eq!(u64::from(world.read(ticket.cast::<u32>().offset(1))?), TIMES * procs);
    assert_eq!(world.compare_swap(sum, 1, 5)?, 2 * TIMES * procs, "it stays");
    world.barrier()
}

/// A pointer that leads nowhere is a fault with its rank and address, and no signal anywhere.
pub(crate) fn wrong_pointers(world: &World) -> Result<(), Fault> {
    let procs = world.procs();
    let array = world.spread::<u64>(u64::from(procs))?;
    for rank in 0..procs {
        for address in [0, 8, array.of_rank(rank).address() + (1 << 30), World::base(), (1 << 47) - 4] {
            let fault = Fault::Unmapped { rank, address, len: 8 };
            assert_eq!(world.read(Global::<u64>::new(rank, address)), Err(fault.clone()));
            assert_eq!(world.write(Global::<u64>::new(rank, address), 1), Err(fault.clone()));
            assert_eq!(world.store(Global::<u64>::new(rank, address), 1), Err(fault.clone()));
            assert!(
                fault.to_string().contains(&format!("rank {rank}"))
                    && fault.to_string().contains(&format!("{address:#x}"))
            );
        }
        let word = array.of_rank(rank).cast::<u32>();
        let misaligned = Global::<u32>::new(rank, word.address() + 2);
        let (address, size) = (misaligned.address(), 4);
        assert_eq!(world.change(misaligned, Change::Add(1)), Err(Fault::Misaligned { rank, address, size }));
        assert_eq!(world.change(word.cast::<u16>(), Change::Add(1)), Err(Fault::WordSize { size: 2 }));
    }
    assert_eq!(world.read(Global::<u8>::new(procs + 5, 0)), Err(Fault::NoRank { rank: procs + 5, procs }));
    world.barrier()
}

/// Arrays lie at equal addresses, apart, zero at first, and can be freed in any order.
pub(crate) fn spread_memory(world: &World) -> Result<(), Fault> {
    let procs = u64::from(world.procs());
    let arrays = [1, 1000, 400_000].map(|rows| world.spread::<u64>(rows * procs));
    let [small, middle, large] = arrays;
    let (small, middle, large) = (small?, middle?, large?);
    for array in [&small, &middle, &large] {
        let address = array.first().global().address();
        assert_eq!(world.broadcast(0, address)?, address, "equal everywhere");
        let own = array.of_rank(world.me());
        let rows = array.len_of_rank(world.me()) as usize;
        let mut values = vec![1; rows];
        world.read_bulk(&mut values, own)?;
        assert!(values.iter().all(|value| *value == 0));
        world.write_bulk(own, &vec![u64::MAX; rows])?;
    }
    let place = middle.first().to_bits();
    world.free(middle)?;
    assert_eq!(world.free_spread(place), Err(Fault::NotAllocated { address: place }));
    let again = world.spread::<u64>(1000 * procs)?;
    assert_eq!(again.first().to_bits(), place);
    assert_eq!(world.read(again.of_rank(world.me()).offset(999))?, 0, "zero again");
    assert_eq!(world.read(small.of_rank(world.me()))?, u64::MAX, "beside it");
    let unequal = world.spread::<u64>(procs * (1 + u64::from(world.me() / 2)));
    assert_eq!(unequal.is_ok(), world.procs() <= 2, "ranks 2 and 3 want more");
    world.free(large)
}

/// No memory holds it: an error everywhere, and the program goes on.
pub(crate) fn too_large(world: &World) -> Result<(), Fault> {
    for bytes in [1 << 40, 1 << 60, u64::MAX - 5] {
        match world.allocate_spread(bytes) {
            Err(Fault::TooLarge { bytes: wanted, available }) => assert!(wanted == bytes && available < bytes),
            other => return other.map(|_| unreachable!("{bytes} bytes")),
        }
    }
    let array = world.spread::<u8>(10)?;
    world.free(array)
}

/// Memory of one rank that others reach.
pub(crate) fn local_memory(world: &World) -> Result<(), Fault> {
    let mine = world.allocate_local(100 + u64::from(world.me())).expect("room");
    assert!(world.len_of_local(mine).is_some_and(|len| len >= 100));
    assert!(world.allocate_local(1 << 40).is_none());
    let other = world.allocate_local(8).expect("room");
    assert!(world.free_local(mine) && !world.free_local(mine) && !world.free_local(0) && world.free_local(other));
    assert_eq!(world.allocate_local(100), Some(mine));
    world.barrier()
}

/// A rank that makes no call which waits: mapped memory needs none of it.
pub(crate) fn never_polls(world: &World) -> Result<(), Fault> {
    if !(0..world.procs()).all(|rank| world.is_mapped(rank)) {
        return Ok(());
    }
    let words = world.spread::<u64>(3 * u64::from(world.procs()))?;
    let last = world.procs() - 1;
    let (go, sum) = (words.of_rank(last), words.of_rank(last).offset(1));
    if world.me() == last && last > 0 {
        while world.read(go)? < u64::from(last) {
            std::hint::spin_loop();
        }
    } else {
        world.fetch_add(sum, 5)?;
        world.split(|phase| phase.put(sum.offset(1), 7))?;
        assert_eq!(world.read(sum.offset(1))?, 7);
        world.fetch_add(go, 1)?;
    }
    world.barrier()?;
    assert_eq!(world.read(sum)?, 5 * u64::from(last.max(1)));
    world.barrier()
}
