//! What the programs of all nodes do.

use crate::world::{Happening, World};
use cci_proto::{Failure, Time};
use cci_sim::Random;

/// A connection that ended: its number, and why.
pub type Broken = (u32, Failure);

/// What came of a pattern in which every node sends its messages once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    /// From the first posting to the last arrival, nanoseconds.
    pub completion: u64,
    /// Mean from posting to arrival, nanoseconds.
    pub mean: f64,
    /// The slowest message, nanoseconds.
    pub slowest: u64,
    /// Messages.
    pub messages: u64,
}

/// One message on an idle network: nanoseconds from posting to arrival.
///
/// # Errors
///
/// The connection ended.
///
/// # Panics
///
/// The message is lost: links lose nothing here.
pub fn alone(world: &mut World, connection: u32) -> Result<u64, Broken> {
    world.post(connection);
    loop {
        match world.next(Time(u64::MAX))? {
            Some(Happening::Arrived { connection: arrived, posted }) if arrived == connection => {
                let took = world.now().since(posted);
                world.rest();
                return Ok(took);
            }
            Some(_) => {}
            None => panic!("a message is lost on links that lose nothing"),
        }
    }
}

/// Every node posts its messages, one whenever its processor is free: `turns` names the connections
/// of each, in order.
///
/// # Errors
///
/// A connection ended.
///
/// # Panics
///
/// A message is lost: links lose nothing here.
pub fn round(world: &mut World, turns: &[Vec<u32>]) -> Result<Round, Broken> {
    relay(world, turns, |_| &[])
}

/// As [`round`]; a message's arrival at its node is followed by those that `then` names: the tree
/// of a multicast.
///
/// # Errors
///
/// A connection ended.
///
/// # Panics
///
/// A message is lost: links lose nothing here.
pub fn relay<'t>(world: &mut World, turns: &'t [Vec<u32>], then: impl Fn(u32) -> &'t [u32]) -> Result<Round, Broken> {
    let begun = world.now();
    let mut queues: Vec<Vec<u32>> = turns.iter().map(|turns| turns.iter().rev().copied().collect()).collect();
    let (mut left, mut sum) = (0_u64, 0_u64);
    let mut round = Round { completion: 0, mean: 0.0, slowest: 0, messages: 0 };
    for (node, queue) in (0..).zip(&queues) {
        left += queue.len() as u64;
        if !queue.is_empty() {
            world.wake_at(node, begun);
        }
    }
    while left > 0 {
        match world.next(Time(u64::MAX))? {
            Some(Happening::Woken { node }) => {
                let free = world.free_at(node);
                if free > world.now() {
                    world.wake_at(node, free);
                } else if let Some(connection) = queues[node as usize].pop() {
                    world.post(connection);
                    let free = world.free_at(node);
                    world.wake_at(node, free);
                }
            }
            Some(Happening::Arrived { connection, posted }) => {
                let took = world.now().since(posted);
                (left, sum) = (left - 1, sum + took);
                round.messages += 1;
                round.slowest = round.slowest.max(took);
                let (_, node) = world.ends(connection);
                let more = then(connection);
                if !more.is_empty() {
                    left += more.len() as u64;
                    queues[node as usize].splice(0..0, more.iter().rev().copied());
                    let free = world.free_at(node);
                    world.wake_at(node, free);
                }
            }
            None => panic!("a message is lost on links that lose nothing"),
        }
    }
    round.completion = world.now().since(begun);
    round.mean = ratio(sum, round.messages);
    Ok(round)
}

/// Messages at random times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Messages that each node posts, per nanosecond, at random (Poisson).
    pub rate: f64,
    /// Messages of all nodes before those that count.
    pub warm_up: u64,
    /// Messages of all nodes that count, in each batch.
    pub batch: u64,
    /// Batches: their means tell how sure the mean is.
    pub batches: u32,
}

/// Posts messages at random times: the mean time from posting to arrival of each batch,
/// nanoseconds. `connections` names those of each node, `weights` has the sums of their weights so
/// far: a connection is drawn by its weight, and a node posts as often as its weights say together.
///
/// # Errors
///
/// A connection ended.
pub fn load(
    world: &mut World,
    connections: &[Vec<u32>],
    weights: &[Vec<f64>],
    load: &Load,
    seed: u64,
) -> Result<Vec<f64>, Broken> {
    /// Keeps these generators apart from those of links and identifiers.
    const PART: u64 = 0x6c6f_6164;
    let mut randoms: Vec<Random> = (0..).take(connections.len()).map(|node| Random::of(seed, PART, node)).collect();
    let begun = world.now();
    let mut due = vec![0.0; connections.len()];
    let mut next = |world: &mut World, randoms: &mut [Random], node: u32| {
        let at = node as usize;
        let Some(whole) = weights[at].last() else { return };
        due[at] += exponential(&mut randoms[at]) / (load.rate * whole);
        world.wake_at(node, Time(begun.0 + whole_ns(due[at])));
    };
    for node in (0..).take(connections.len()) {
        next(world, &mut randoms, node);
    }
    let (mut arrived, mut sum, mut means) = (0_u64, 0_u64, Vec::new());
    while means.len() < load.batches as usize {
        match world.next(Time(u64::MAX))? {
            Some(Happening::Woken { node }) => {
                let at = node as usize;
                world.post(connections[at][draw(&weights[at], &mut randoms[at])]);
                next(world, &mut randoms, node);
            }
            Some(Happening::Arrived { posted, .. }) => {
                arrived += 1;
                if arrived <= load.warm_up {
                    continue;
                }
                sum += world.now().since(posted);
                if (arrived - load.warm_up).is_multiple_of(load.batch) {
                    means.push(ratio(sum, load.batch));
                    sum = 0;
                }
            }
            None => break,
        }
    }
    Ok(means)
}

/// The sums of weights so far.
pub(crate) fn cumulative(weights: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut sum = 0.0;
    let add = |weight| {
        sum += weight;
        sum
    };
    weights.map(add).collect()
}

/// A place by its weight.
pub(crate) fn draw(cumulative: &[f64], random: &mut Random) -> usize {
    let whole = cumulative.last().copied().unwrap_or(0.0);
    let at = whole * ratio(random.below(1 << 53), 1 << 53);
    cumulative.partition_point(|sum| *sum <= at).min(cumulative.len().saturating_sub(1))
}

/// A time to the next of events at random, in units of their mean distance.
fn exponential(random: &mut Random) -> f64 {
    // 53 bits, from above 0 to 1.
    let uniform = ratio((random.next() >> 11) + 1, 1 << 53);
    -uniform.ln()
}

#[expect(clippy::cast_precision_loss, reason = "virtual times and counts below 2^53")]
fn ratio(a: u64, b: u64) -> f64 {
    a as f64 / b as f64
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time from 0 on, below 2^53 ns")]
fn whole_ns(ns: f64) -> u64 {
    ns.round() as u64
}
