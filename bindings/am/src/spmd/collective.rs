//! What all workers do together, by Active Messages of the library's own: handler 0, which no
//! program can name. A worker that waits polls.
//!
//! Barrier *n* has a round for each bit of the number of workers: in round *r* each worker sends to
//! the one 2^r above it and waits for the message of the one 2^r below. What comes is counted by
//! rounds, so that a worker may be one barrier behind. Blocks of gathers carry the number of the
//! gather, and are kept until this worker gets there.

use super::ending::leave_if_asked;
use super::program::{NAP, first_endpoint};
use crate::answer::say;
use crate::endpoint::{Bundle, Endpoint, State};
use crate::messages::{self, Body, Waited};
use crate::refusal::{Answer, Refusal};
use crate::registry;
use cci_am::{Peer, Request};
use cci_mem::fork::PerProcess;
use cci_mem::mutex::lock;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{c_int, c_void};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The number of the library's own handler.
const CONTROL: u8 = 0;

/// The first argument of a message.
const BARRIER: u32 = 0;
const BLOCK: u32 = 1;
/// Nothing: it shows whether its target is there.
const PROBE: u32 = 2;

/// Bytes of a block in one message.
const PIECE: usize = 32 << 10;
/// How long nothing comes before a worker looks whether those it waits for are there.
const SILENCE: Duration = Duration::from_secs(1);

/// A block of a gather, as far as it has come.
#[derive(Default)]
struct Block {
    total: usize,
    bytes: Vec<u8>,
}

impl Block {
    fn is_whole(&self) -> bool {
        self.bytes.len() == self.total
    }
}

#[derive(Default)]
struct Collective {
    rank: u32,
    size: u32,
    barriers: u32,
    /// Messages of barriers by rounds.
    came: [u32; 32],
    gathers: u32,
    /// By gather and rank.
    blocks: BTreeMap<(u32, u32), Block>,
    /// Workers from which messages have come back. One that ended well after a barrier is one too.
    lost: BTreeSet<u32>,
    /// Changes whenever something comes.
    ticks: u32,
}

/// Of this process: in a forked child no worker has begun.
static COLLECTIVE: PerProcess<Mutex<Collective>> = PerProcess::new();

fn with<T>(act: impl FnOnce(&mut Collective) -> T) -> Result<T, Refusal> {
    let collective = COLLECTIVE.get(Mutex::default);
    let (_, collective) = collective.map_err(|_| registry::NO_MEMORY)?;
    Ok(act(&mut lock(collective)))
}

pub(super) fn begin(rank: u32, size: u32) -> Answer {
    with(|all| (all.rank, all.size) = (rank, size))
}

/// Has an endpoint serve messages of the library's own.
pub(super) fn set_control(endpoint: &Endpoint) -> Answer {
    let (bundle, member) = endpoint.bundle()?;
    let mut engine = bundle.enter()?;
    let engine = engine.get(member).ok_or(messages::FORKED)?;
    engine.handlers().set_request(CONTROL, Some(on_control));
    Ok(())
}

fn on_control(_: &mut State, request: Request<'_>) {
    let (arguments, payload) = (request.arguments(), request.payload());
    // Without memory a worker waits for what has come, as if it had not.
    let _ = with(|all| {
        all.ticks = all.ticks.wrapping_add(1);
        match *arguments {
            [BARRIER, round] if round < 32 => all.came[round as usize] += 1,
            // A worker ahead has had this one's block, so that it is in the next gather at most.
            [BLOCK, gather, rank, total] if rank < all.size && gather.wrapping_sub(all.gathers) <= 1 => {
                let block = all.blocks.entry((gather, rank)).or_default();
                block.total = total as usize;
                let (begin, end) = (block.bytes.len(), block.bytes.len() + payload.len());
                if end <= block.total {
                    block.bytes.resize(end, 0);
                    payload.copy_to(0, &mut block.bytes[begin..]);
                }
            }
            _ => {}
        }
    });
}

/// A message of the library's own has come back.
pub(crate) fn lost(endpoint: &Endpoint, peer: Peer) {
    let index = endpoint.translations.borrow().of_peer(peer).map(|record| record.index);
    let _ = with(|all| all.lost.extend(index.and_then(|index| u32::try_from(index).ok())));
}

/// The bundle of the first endpoint, and that.
fn place() -> Result<(&'static Bundle, &'static Endpoint), Refusal> {
    let endpoint = first_endpoint()?;
    if with(|all| all.size)? == 0 {
        return Err(messages::FORKED);
    }
    Ok((endpoint.bundle()?.0, endpoint))
}

/// Sends a message of the library's own to a worker.
fn send(endpoint: &'static Endpoint, rank: u32, arguments: &[u32], bytes: Option<&[u8]>) -> Answer {
    let peer = endpoint.translations.borrow().get(rank as usize)?.and_then(|record| record.peer);
    let peer = peer.ok_or(Refusal::Resource("a worker's entry of the translation table is not mapped"))?;
    let body = bytes.map_or(Body::Short, |bytes| Body::Medium { source: bytes.as_ptr().cast(), bytes: bytes.len() });
    // SAFETY: a slice, so not NULL, and readable and unchanged until the call returns.
    if unsafe { messages::transmit(endpoint, peer, (CONTROL, arguments), body, false) }? {
        return Ok(());
    }
    with(|all| all.lost.insert(rank)).map(drop)
}

/// Polls until something is so. `missing` says who is waited for.
fn wait<D: crate::dialect::Dialect>(
    name: &str,
    is_done: impl Fn(&Collective) -> bool,
    missing: impl Fn(&Collective) -> Vec<u32>,
) -> Answer {
    let (bundle, endpoint) = place()?;
    let mut waited = Waited::new(bundle, NAP);
    let (mut ticks, mut since) = (0, Instant::now());
    loop {
        let (done, now) = with(|all| (is_done(all), all.ticks))?;
        if done {
            return Ok(());
        }
        leave_if_asked();
        if now != ticks {
            (ticks, since) = (now, Instant::now());
        }
        waited.pause(&mut bundle.enter()?)?;
        if waited.has_slept() && since.elapsed() >= SILENCE {
            let (missing, lost) = with(|all| (missing(all), all.lost.clone()))?;
            // What a worker sent before it went has come by now.
            if let Some(rank) = missing.iter().find(|rank| lost.contains(rank)) {
                if D::is_verbose() {
                    say(name, &format!("worker {rank} is gone, or has not polled for the send timeout"));
                }
                return Err(Refusal::NotSent("a worker is gone, or has not polled for the send timeout"));
            }
            missing.into_iter().try_for_each(|rank| probe(endpoint, rank))?;
            since = Instant::now();
        }
    }
}

/// Sends something to a worker to which nothing is open: it comes back if nobody is there.
fn probe(endpoint: &'static Endpoint, rank: u32) -> Answer {
    let peer = endpoint.translations.borrow().get(rank as usize)?.and_then(|record| record.peer);
    let (bundle, member) = endpoint.bundle()?;
    let mut engine = bundle.enter()?;
    let engine = engine.get(member).ok_or(messages::FORKED)?;
    if let Some(peer) = peer.filter(|peer| engine.outstanding(*peer) == 0) {
        // Without a credit now there is a next time.
        let _ = engine.now().request(peer, CONTROL, &[PROBE]);
    }
    Ok(())
}

/// Waits until all workers have come here.
pub(super) fn barrier<D: crate::dialect::Dialect>(name: &str) -> Answer {
    let (_, endpoint) = place()?;
    let (rank, size, number) = with(|all| {
        all.barriers += 1;
        (all.rank, all.size, all.barriers)
    })?;
    let rounds = size.next_power_of_two().trailing_zeros();
    for round in 0..rounds {
        let distance = 1 << round;
        send(endpoint, (rank + distance) % size, &[BARRIER, round], None)?;
        let below = (rank + size - distance % size) % size;
        wait::<D>(name, |all| all.came[round as usize] >= number, |_| vec![below])?;
    }
    // A program alone polls too.
    let (bundle, _) = place()?;
    bundle.enter()?.poll().map_err(|_| messages::FORKED)?;
    Ok(())
}

/// Sends bytes to all other workers, as this worker's block of a gather.
fn give(endpoint: &'static Endpoint, gather: u32, bytes: &[u8]) -> Answer {
    let (rank, size) = with(|all| (all.rank, all.size))?;
    let total = u32::try_from(bytes.len()).map_err(|_| Refusal::BadArg("a block is at most 4 GiB long"))?;
    for step in 1..size {
        let mut rest = bytes;
        loop {
            let (piece, behind) = rest.split_at(rest.len().min(PIECE));
            send(endpoint, (rank + step) % size, &[BLOCK, gather, rank, total], Some(piece))?;
            rest = behind;
            if rest.is_empty() {
                break;
            }
        }
    }
    Ok(())
}

/// The ranks, among these, whose blocks have not come.
fn without_block(all: &Collective, gather: u32, of: std::ops::Range<u32>) -> Vec<u32> {
    let is_missing = |rank: &u32| *rank != all.rank && !all.blocks.get(&(gather, *rank)).is_some_and(Block::is_whole);
    of.filter(is_missing).collect()
}

/// Copies the block of each of these ranks to where it belongs.
///
/// # Safety
///
/// `len` is 0, or the target is not NULL, has room for `len` bytes of each of these ranks, and
/// nobody else uses it until the call returns.
unsafe fn take_blocks(gather: u32, of: std::ops::Range<u32>, target: *mut u8, len: usize) -> Answer {
    let mut is_right = true;
    for (at, rank) in of.enumerate() {
        let Some(block) = with(|all| all.blocks.remove(&(gather, rank)))? else { continue };
        is_right &= block.bytes.len() == len;
        if block.bytes.len() == len {
            // SAFETY: the block has `len` bytes, and the target has room for those of this rank, by
            // the contract above. The block is the library's own, so that the two do not overlap.
            unsafe { std::ptr::copy_nonoverlapping(block.bytes.as_ptr(), target.add(at * len), len) };
        }
    }
    if is_right { Ok(()) } else { Err(Refusal::BadArg("another worker has called with another length")) }
}

/// Gathers `len` bytes of each worker, in the order of ranks.
///
/// # Safety
///
/// `source` is NULL or `len` bytes are readable there, and `target` is NULL or has room for `len`
/// bytes of each worker. Nobody else writes the first or uses the second until the call returns.
pub(super) unsafe fn gather<D: crate::dialect::Dialect>(
    name: &str,
    source: *const c_void,
    target: *mut c_void,
    len: usize,
) -> Answer {
    let (_, endpoint) = place()?;
    if len > 0 && (source.is_null() || target.is_null()) {
        return Err(Refusal::BadArg("the source or the target is NULL"));
    }
    let (rank, size, gather) = next()?;
    // SAFETY: not NULL, so `len` bytes are readable and unchanged until `target` is written, which
    // is after the last use of the result.
    let own = if len > 0 { unsafe { std::slice::from_raw_parts(source.cast::<u8>(), len) } } else { &[] };
    give(endpoint, gather, own)?;
    if len > 0 {
        // SAFETY: `target` is not NULL, so it has room for the block of this worker. The two may
        // overlap: a program may gather in place.
        unsafe { std::ptr::copy(own.as_ptr(), target.cast::<u8>().add(rank as usize * len), len) };
    }
    let missing = |all: &Collective| without_block(all, gather, 0..size);
    wait::<D>(name, |all| missing(all).is_empty(), missing)?;
    // SAFETY: `len` is 0, or `target` is not NULL and has room for `len` bytes of each worker.
    unsafe { take_blocks(gather, 0..size, target.cast(), len) }
}

/// The numbers of a gather that begins.
fn next() -> Result<(u32, u32, u32), Refusal> {
    with(|all| {
        all.gathers += 1;
        (all.rank, all.size, all.gathers)
    })
}

/// Gives all workers the bytes of one. Returns when all have come here: so the one is not ahead.
///
/// # Safety
///
/// `buffer` is NULL, or `len` bytes are readable and writable there, which nobody else uses until
/// the call returns.
pub(super) unsafe fn broadcast<D: crate::dialect::Dialect>(
    name: &str,
    buffer: *mut c_void,
    len: usize,
    root: c_int,
) -> Answer {
    let (_, endpoint) = place()?;
    let size = with(|all| all.size)?;
    let root = u32::try_from(root).ok().filter(|root| *root < size);
    let root = root.ok_or(Refusal::BadArg("the root is not below the number of workers"))?;
    if len > 0 && buffer.is_null() {
        return Err(Refusal::BadArg("the buffer is NULL"));
    }
    let (rank, _, gather) = next()?;
    let taken = if rank == root {
        // SAFETY: not NULL, so `len` bytes are readable, and nobody writes them until the call
        // returns.
        let own = if len > 0 { unsafe { std::slice::from_raw_parts(buffer.cast::<u8>(), len) } } else { &[] };
        give(endpoint, gather, own)
    } else {
        let missing = |all: &Collective| without_block(all, gather, root..root + 1);
        wait::<D>(name, |all| missing(all).is_empty(), missing)?;
        // SAFETY: `len` is 0, or `buffer` is not NULL and has room for the block of one rank.
        unsafe { take_blocks(gather, root..root + 1, buffer.cast(), len) }
    };
    barrier::<D>(name).and(taken)
}
