//! What the programs on the nodes do: a step at random times.

use super::pattern;
use super::plan::{End, NODES, Planned};
use super::side::{ARENA, CheckedHost, Operation};
use super::transfers::{self, Expect, READ_BACK, Transfer};
use super::violation::Rule;
use super::world::{Node, Stage, World, address};
use cci_proto::engine::{Index, Open, Post, Rma, Target};
use cci_proto::{Access, Atomic, Attribute, RmaError, SendError};
use cci_sim::Random;

/// The key of the contents of connection requests, beside the streams of messages.
const REQUESTS: u32 = u32::MAX;

/// Bytes of the words that atomic operations change.
const WORD: usize = 8;

fn size(random: &mut Random, low: u64, high: u64) -> usize {
    usize::try_from(random.between(low, high)).unwrap_or(0)
}

/// Whether a node's program has something to do.
pub(super) fn has_work(world: &World, at: usize) -> bool {
    let node = &world.nodes[at];
    if !node.side.borrowed.is_empty() || !node.requests.is_empty() {
        return true;
    }
    world.connections.iter().zip(&world.plan.connections).enumerate().any(|(connection, (ends, planned))| {
        [0, 1].into_iter().any(|side| {
            let end = &ends[side];
            let early = match planned.end {
                End::Early { side: closer, .. } | End::Unreachable { side: closer, .. } => closer == side,
                End::Done | End::Rejected | End::Nobody => false,
            };
            planned.nodes[side] as usize == at
                && match end.stage {
                    Stage::Before => side == 0,
                    Stage::Open => early || end.messages + end.transfers > 0 || is_left(world, at, connection, side),
                    Stage::Broken => true,
                    Stage::Opening | Stage::Over => false,
                }
        })
    })
}

/// Whether a side has done everything, and its peer believes that it is gone: nobody will ever tell
/// it.
fn is_left(world: &World, at: usize, connection: usize, side: usize) -> bool {
    let (end, other) = (&world.connections[connection][side], &world.connections[connection][1 - side]);
    let stream = u32::try_from(connection * 2 + side).unwrap_or(u32::MAX);
    let is_done = |operation| match operation {
        Operation::Send(of, _) => of != stream,
        Operation::Transfer(number) => world.oracle.transfers.get(number).stream != stream,
    };
    matches!(world.plan.connections[connection].end, End::Unreachable { .. })
        && (end.stage, other.stage) == (Stage::Open, Stage::Over)
        && end.messages + end.transfers == 0
        && world.nodes[at].side.open(|operation| !is_done(operation)) == 0
}

/// A node's program runs for a moment.
pub(super) fn step(world: &mut World, at: usize) {
    give_back(world, at);
    for (index, connection) in std::mem::take(&mut world.nodes[at].requests) {
        answer(world, at, index, connection as usize);
    }
    end_registrations(world, at);
    let count = world.connections.len();
    let first = size(&mut world.nodes[at].random, 0, count as u64 - 1);
    for connection in (0..count).map(|number| (first + number) % count) {
        for side in [0, 1] {
            if world.plan.connections[connection].nodes[side] as usize == at {
                tend(world, at, connection, side);
            }
        }
    }
}

/// Returns some of the events that the program has, in any order.
fn give_back(world: &mut World, at: usize) {
    let chance = world.plan.returns;
    let Node { engine, side, random, .. } = &mut world.nodes[at];
    let mut returned = false;
    for place in (0..side.borrowed.len()).rev() {
        if random.chance(chance) {
            side.give_back(place);
            returned = true;
        }
    }
    if returned {
        engine.refill(&mut CheckedHost { side, oracle: &mut world.oracle });
    }
}

/// Some registrations of a node end at some time.
fn end_registrations(world: &mut World, at: usize) {
    let Node { side, random, .. } = &mut world.nodes[at];
    for mortal in [2, 3] {
        if random.chance(20_000) {
            side.registrations[mortal].alive = false;
        }
    }
}

/// A side of a connection does what is due on it.
fn tend(world: &mut World, at: usize, connection: usize, side: usize) {
    let end = world.connections[connection][side];
    let planned = &world.plan.connections[connection];
    match end.stage {
        Stage::Before if side == 0 && world.network.now().0 >= planned.opens => connect(world, at, connection),
        Stage::Broken => world.close_if_open(connection, side),
        Stage::Open => {
            match planned.end {
                End::Early { side: closer, after } if closer == side && end.posted >= after => {
                    return world.close_if_open(connection, side);
                }
                End::Unreachable { side: hears, after } if hears == side && end.posted >= after => {
                    if world.refuse(at, end.index) {
                        world.totals.refused += 1;
                        return;
                    }
                    if end.messages + end.transfers == 0 {
                        return world.close_if_open(connection, side);
                    }
                }
                _ => {}
            }
            if is_left(world, at, connection, side) {
                return world.close_if_open(connection, side);
            }
            for _ in 0..world.nodes[at].random.between(1, 12) {
                if !post(world, at, connection, side) {
                    return;
                }
            }
        }
        Stage::Before | Stage::Opening | Stage::Over => {}
    }
}

fn connect(world: &mut World, at: usize, connection: usize) {
    let now = world.network.now();
    let planned = &world.plan.connections[connection];
    let node = &mut world.nodes[at];
    let number = u32::try_from(connection).unwrap_or(u32::MAX);
    let len = size(&mut node.random, pattern::HEAD as u64, cci_proto::CONN_REQ_LEN as u64);
    let (head, body) = pattern::message(REQUESTS, number, len);
    let payload = [&head[..], body].concat();
    let asked = planned.broker.unwrap_or(planned.nodes[1]);
    let server = if planned.end == End::Nobody { NODES + 7 } else { asked };
    let open = Open {
        to: address(server),
        attribute: planned.attribute,
        payload: &payload,
        host_cookie: number * 2,
        timeout: planned.timeout,
        token: 0,
    };
    match node.engine.connect(now, &open) {
        Ok(index) => {
            let end = &mut world.connections[connection][0];
            (end.index, end.stage) = (index, Stage::Opening);
        }
        Err(error) => world.oracle.violate(Rule::Cause, format!("connection {connection}: connect refused, {error}")),
    }
}

/// A request has come.
pub(super) fn request(world: &mut World, at: usize, index: Index, attribute: Attribute, payload: &[u8]) {
    let number = pattern::index(payload).unwrap_or(u32::MAX);
    let planned = world.plan.connections.get(number as usize);
    let is_asked = |planned: &Planned| planned.broker.unwrap_or(planned.nodes[1]) as usize == at;
    let is_right = planned.is_some_and(|planned| planned.attribute == attribute && is_asked(planned));
    if !is_right || !pattern::is_message(REQUESTS, number, payload.len(), payload) {
        let detail = format!("node {at} was asked for {attribute:?} with a payload that says {number}");
        return world.oracle.violate(Rule::Handshake, detail);
    }
    if world.nodes[at].random.below(2) == 0 {
        world.nodes[at].requests.push((index, number));
    } else {
        answer(world, at, index, number as usize);
    }
}

fn answer(world: &mut World, at: usize, index: Index, connection: usize) {
    let now = world.network.now();
    if world.plan.connections[connection].broker.is_some_and(|broker| broker as usize == at) {
        return redirect(world, at, index, connection);
    }
    let [client, server] = world.connections[connection];
    let rejected = world.plan.connections[connection].end == End::Rejected;
    if server.stage != Stage::Before && client.stage != Stage::Over {
        let detail = format!("connection {connection} was asked for again, while {:?}", server.stage);
        return world.oracle.violate(Rule::Handshake, detail);
    }
    let Node { engine, side, .. } = &mut world.nodes[at];
    // What comes after the client's end is an old copy of its request.
    let outcome = if rejected || client.stage == Stage::Over {
        engine.reject(now, index, &mut CheckedHost { side, oracle: &mut world.oracle })
    } else {
        let user = u32::try_from(connection * 2 + 1).unwrap_or(u32::MAX);
        let outcome = engine.accept(now, index, user);
        let end = &mut world.connections[connection][1];
        (end.index, end.stage) = (index, Stage::Opening);
        outcome
    };
    if let Err(error) = outcome {
        world.oracle.violate(Rule::Handshake, format!("connection {connection}: the answer was refused, {error}"));
    }
}

/// A broker sends a client to its server, which expects it.
fn redirect(world: &mut World, at: usize, index: Index, connection: usize) {
    let now = world.network.now();
    let server = world.plan.connections[connection].nodes[1];
    let token = (connection as u64 + 1) << 32 | world.nodes[at].random.below(1 << 32);
    world.nodes[server as usize].engine.expect(token);
    let uri = format!("node-{server}");
    let Node { engine, side, .. } = &mut world.nodes[at];
    let mut host = CheckedHost { side, oracle: &mut world.oracle };
    if let Err(error) = engine.redirect(now, index, uri.as_bytes(), token, &mut host) {
        world.oracle.violate(Rule::Handshake, format!("connection {connection}: the redirection was refused, {error}"));
    }
}

/// A client that a broker sent has come.
pub(super) fn expected(world: &mut World, at: usize, index: Index, attribute: Attribute, token: u64) {
    let connection = usize::try_from((token >> 32).wrapping_sub(1)).unwrap_or(usize::MAX);
    let planned = world.plan.connections.get(connection);
    let is_right = |planned: &Planned| {
        planned.broker.is_some() && planned.attribute == attribute && planned.nodes[1] as usize == at
    };
    if !planned.is_some_and(is_right) {
        let detail = format!("node {at}: a client came for {attribute:?} with token {token:#x}");
        return world.oracle.violate(Rule::Handshake, detail);
    }
    answer(world, at, index, connection);
}

/// Posts one operation; false when none is left or the engine has no room.
fn post(world: &mut World, at: usize, connection: usize, side: usize) -> bool {
    let end = world.connections[connection][side];
    let (messages, transfers) = (u64::from(end.messages), u64::from(end.transfers));
    if messages + transfers == 0 || world.nodes[at].side.next_operation().is_none() {
        return false;
    }
    let is_message = world.nodes[at].random.below(messages + transfers) < messages;
    let posted = if is_message { send(world, at, connection, side) } else { transfer(world, at, connection, side) };
    let end = &mut world.connections[connection][side];
    if posted {
        end.posted += 1;
        if is_message {
            end.messages -= 1
        } else {
            end.transfers -= 1
        };
    }
    posted
}

/// Most messages are small, some fill a frame, some take several.
fn message_len(world: &mut World, at: usize, ordered: bool) -> usize {
    let longest = u64::from(world.plan.longest);
    let random = &mut world.nodes[at].random;
    // Those of an unordered stream say which they are.
    let shortest = if ordered { 0 } else { pattern::HEAD as u64 };
    match random.below(20) {
        0..=13 => size(random, shortest, 120),
        14..=17 => size(random, shortest, 1500.min(longest)),
        _ => size(random, shortest, longest),
    }
}

fn send(world: &mut World, at: usize, connection: usize, side: usize) -> bool {
    let now = world.network.now();
    let attribute = world.plan.connections[connection].attribute;
    let len = message_len(world, at, attribute == Attribute::ReliableOrdered);
    let stream = u32::try_from(connection * 2 + side).unwrap_or(u32::MAX);
    let index = world.oracle.streams[stream as usize].next_index();
    let (head, body) = pattern::message(stream, index, len);
    let parts = [&head[..if len >= pattern::HEAD { pattern::HEAD } else { 0 }], body];
    let Node { engine, side: node, random, .. } = &mut world.nodes[at];
    let Some(op) = node.next_operation() else { return false };
    node.begin_operation(Operation::Send(stream, index));
    world.oracle.streams[stream as usize].post(u32::try_from(len).unwrap_or(u32::MAX), None);
    let prompt = random.below(10) == 0;
    let place = world.connections[connection][side].index;
    // Both ways that a message may take.
    let outcome = if index.is_multiple_of(2) {
        let post = Post { parts: &parts, op, prompt };
        let mut host = CheckedHost { side: node, oracle: &mut world.oracle };
        engine.send_now(now, place, &post, &mut world.buffer, &mut host, |_, _, _| {})
    } else {
        engine.send(now, place, &parts, op, prompt).map(|()| None)
    };
    match outcome {
        Ok(None) => {}
        Ok(Some(frame)) => {
            world.totals.at_once += 1;
            world.let_go(at, &frame);
        }
        Err(error) => {
            world.nodes[at].side.withdraw(op);
            world.oracle.streams[stream as usize].withdraw();
            if error != SendError::NoBuffers && !world.oracle.excused[stream as usize] {
                world.oracle.violate(Rule::Cause, format!("stream {stream}: send of {len} bytes refused, {error}"));
            }
            return false;
        }
    }
    world.totals.messages += 1;
    true
}

/// What an RMA is to be: its record, its target, and what the target knows it by.
struct Chosen {
    transfer: Transfer,
    target: Target,
    place: Option<u64>,
}

fn transfer(world: &mut World, at: usize, connection: usize, side: usize) -> bool {
    let now = world.network.now();
    let stream = u32::try_from(connection * 2 + side).unwrap_or(u32::MAX);
    let Some(Chosen { mut transfer, target, place }) = choose(world, at, connection, side) else { return false };
    let Node { engine, side: node, random, .. } = &mut world.nodes[at];
    let Some(op) = node.next_operation() else { return false };
    let message_len = (random.below(5) < 2).then(|| size(random, pattern::HEAD as u64, 200));
    let messages = &mut world.oracle.streams[stream as usize];
    let index = messages.next_index();
    transfer.large =
        !transfer.read && transfer.expect == Expect::Success && message_len.is_none() && transfer.len.is_multiple_of(3);
    let number = world.oracle.transfers.next_number();
    if let Some(len) = message_len {
        messages.post(u32::try_from(len).unwrap_or(u32::MAX), Some(number));
        transfer.message = Some(index);
    }
    let bytes = message_len.map(|len| {
        let (head, body) = pattern::message(stream, index, len);
        [&head[..], body].concat()
    });
    world.oracle.transfers.post(transfer, place);
    node.begin_operation(Operation::Transfer(number));
    let access = match transfer {
        Transfer { atomic: true, .. } => Access::Atomic(Atomic::FetchAdd(number.into())),
        Transfer { read: true, .. } => Access::Read,
        Transfer { large: true, .. } => Access::Large,
        _ => Access::Write,
    };
    let rma = Rma { op, target, access, fence: transfer.fence, message: bytes.as_deref() };
    if let Err(error) = engine.rma(now, world.connections[connection][side].index, &rma) {
        node.withdraw(op);
        world.oracle.transfers.withdraw(place);
        if message_len.is_some() {
            world.oracle.streams[stream as usize].withdraw();
        }
        if error != RmaError::NoBuffers && !world.oracle.excused[stream as usize] {
            world.oracle.violate(Rule::Cause, format!("stream {stream}: {rma:?} refused, {error}"));
        }
        return false;
    }
    world.totals.transfers += 1;
    world.totals.atomics += u32::from(transfer.atomic);
    world.totals.large += u32::from(transfer.large);
    world.totals.messages += u32::from(message_len.is_some());
    true
}

/// Chooses an RMA at random; `None` when no memory is left for it.
fn choose(world: &mut World, at: usize, connection: usize, side: usize) -> Option<Chosen> {
    let stream = u32::try_from(connection * 2 + side).unwrap_or(u32::MAX);
    let peer = world.plan.connections[connection].nodes[1 - side];
    if world.nodes[at].random.below(3) == 0
        && let Some(chosen) = follow(world, at, stream, peer)
    {
        return Some(chosen);
    }
    let longest = u64::from(world.plan.longest_transfer);
    let random = &mut world.nodes[at].random;
    let len = match random.below(4) {
        0 => size(random, 1, 64),
        1 | 2 => size(random, 1, longest / 4),
        _ => size(random, 1, longest),
    };
    let read = random.below(2) == 0;
    // Drawn from what was drawn, so that the rest of a seed stays as it was.
    let atomic = read && len <= 64;
    let len = if atomic { WORD } else { len };
    let fence = random.below(6) == 0;
    let expect = match random.below(20) {
        0..=15 => Expect::Success,
        16 | 17 => Expect::Either,
        _ => Expect::Refusal,
    };
    let how = random.below(3);
    let from = size(random, 0, (pattern::LEN - len) as u64);
    let node = if read { u32::try_from(at).unwrap_or(0) } else { peer };
    // One byte more, for one that follows and overlaps.
    let to = world.arena_next[node as usize];
    if to + len + 1 > ARENA {
        return None;
    }
    world.arena_next[node as usize] += len + 1;
    world.nodes[node as usize].side.extend(to + len + 1);
    let there = &world.nodes[peer as usize].side.registrations;
    let registration = &there[usize::from(read) + if expect == Expect::Either { 2 } else { 0 }];
    let mut target = Target { handle: registration.handle, offset: to as u64, len: len as u64 };
    if read {
        world.read_next[peer as usize] += 8;
        target.offset = world.read_next[peer as usize];
    }
    let from = if read { usize::try_from(target.offset).unwrap_or(0) } else { from };
    let place = (expect != Expect::Refusal).then(|| transfers::place(peer, !read, target.offset));
    if expect == Expect::Refusal {
        match how {
            0 => target.handle = there[4].handle,
            1 => target.handle[1] ^= 1 << 40,
            _ => target.offset = u64::MAX - target.len / 2,
        }
    }
    let transfer = Transfer { stream, read, atomic, fence, expect, node, to, from, len, ..Transfer::EMPTY };
    Some(Chosen { transfer, target, place })
}

/// Chooses a fenced RMA that depends on the stream's last one: it overwrites what that wrote, or
/// reads it back.
fn follow(world: &mut World, at: usize, stream: u32, peer: u32) -> Option<Chosen> {
    let (number, last) = world.oracle.transfers.last(stream)?;
    if last.read || last.expect != Expect::Success || last.followed {
        return None;
    }
    let here = u32::try_from(at).ok()?;
    let overwrites = world.nodes[at].random.below(2) == 0;
    let [writable, .., readable] = world.nodes[peer as usize].side.registrations[..] else { return None };
    let base = Transfer { stream, fence: true, expect: Expect::Success, len: last.len, ..Transfer::EMPTY };
    let chosen = if overwrites {
        let from = size(&mut world.nodes[at].random, 0, (pattern::LEN - last.len) as u64);
        let offset = last.to as u64 + 1;
        let target = Target { handle: writable.handle, offset, len: last.len as u64 };
        let transfer = Transfer { node: peer, to: last.to + 1, from, followed: true, ..base };
        Chosen { transfer, target, place: Some(transfers::place(peer, true, offset)) }
    } else {
        let target = Target { handle: readable.handle, offset: last.to as u64, len: last.len as u64 };
        let to = world.arena_next[at];
        if to + last.len + 1 > ARENA {
            return None;
        }
        world.arena_next[at] += last.len + 1;
        world.nodes[at].side.extend(to + last.len + 1);
        let transfer = Transfer { read: true, node: here, to, from: last.from, ..base };
        Chosen { transfer, target, place: Some(transfers::place(peer, false, target.offset + READ_BACK)) }
    };
    world.oracle.transfers.get_mut(number).followed = true;
    Some(chosen)
}
