//! All pairs connect, from one side or from both, in any order.

use crate::world::{Side, close, devices, open, until};
use cci::Device;
use cci_peers::{Name, Options, Table};
use fastrand::Rng;

/// How many sides there are.
const SIDES: u64 = 8;
/// How many orders are tried on each device.
const ORDERS: u64 = 6;

fn run(device: &Device, seed: u64) {
    let mut rng = Rng::with_seed(seed);
    let ends: Vec<_> = (0..SIDES).map(|_| open(device)).collect();
    let mut table = Table::new();
    (0..).zip(&ends).for_each(|(number, end)| table.insert(Name::Number(number), end.uri()));
    let mut sides: Vec<Side> =
        (0..).zip(ends).map(|(number, end)| Side::new(end, number, &table, &Options::new())).collect();
    // Every ordered pair has a number to send; sides take steps in between.
    let mut posts: Vec<(u64, u64)> =
        (0..SIDES).flat_map(|from| (0..SIDES).filter(move |to| *to != from).map(move |to| (from, to))).collect();
    rng.shuffle(&mut posts);
    let pause = rng.u32(0..4);
    for (from, to) in posts {
        sides[from as usize].post(to, u32::try_from(from * SIDES + to).expect("small"));
        for _ in 0..rng.u32(0..=pause) {
            let side = rng.usize(0..sides.len());
            sides[side].step();
        }
    }
    let others = SIDES as usize - 1;
    let what = format!("all numbers on {} with seed {seed}", device.transport);
    until(&mut sides, &what, |sides| sides.iter().all(|side| side.received.len() == others));
    for (at, side) in (0..).zip(&mut sides) {
        side.received.sort_by_key(|(from, _)| from.clone());
        let expected: Vec<_> = (0..SIDES)
            .filter(|from| *from != at)
            .map(|from| (Name::Number(from), u32::try_from(from * SIDES + at).expect("small")))
            .collect();
        assert_eq!(side.received, expected, "{what}");
        assert_eq!((side.ups.len(), side.downs.len(), side.failed.len()), (others, 0, 0), "{what}: {:?}", side.downs);
        assert!(side.ups.iter().all(|(_, is_new)| *is_new));
        assert_eq!(side.opened, others, "{what}: exactly one connection a pair");
    }
    close(sides);
}

#[test]
fn pairs_that_connect_at_once_end_in_one_connection() {
    for device in devices() {
        for order in 0..ORDERS {
            run(&device, fastrand::u64(..).wrapping_add(order));
        }
    }
}

/// Both ask before either has seen the other's request: one is rejected.
#[test]
fn of_two_connects_at_once_that_of_the_lower_name_counts() {
    for device in devices() {
        let mut sides = crate::world::two(&device, &Options::new());
        sides[0].post(1, 10);
        sides[1].post(0, 20);
        // Numbers may pass before the request that loses has arrived.
        until(&mut sides, "both numbers and the surplus request", |sides| {
            sides.iter().all(|side| side.received.len() == 1) && sides[0].peers.counts().surplus >= 1
        });
        let counts = [sides[0].peers.counts(), sides[1].peers.counts()];
        assert_eq!([counts[0].accepted, counts[1].accepted], [0, 1], "{}", device.transport);
        close(sides);
    }
}
