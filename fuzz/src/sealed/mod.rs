//! Two engines with sealed connections, and somebody on the path who mutates, replays, reorders,
//! cuts, reflects and splices their frames, and keeps any of them back. Bytes decide what happens.
//! Whatever he does: nothing that he made reaches a program, no byte does that the peer has not
//! sent, every operation ends once, and no key is left. If he only changed frames, everything that
//! was sent arrives.

mod attacker;
mod content;
mod host;

use crate::bytes::Bytes;
use crate::config::{MAX_SEND, MOST_FRAMES, OPERATIONS, config};
use attacker::{Attacker, authentic_part};
use cci_proto::engine::{Engine, Index, Op, Open, Protection, Rma, Security, Target, ToySealer, Transmit, whole_frame};
use cci_proto::wire::is_sealed;
use cci_proto::{Access, Address, Attribute, Time};
use content::{Ledger, SERVED};
use host::{HANDLE, Known, Program, Running, Standing};
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

/// Largest frame, bytes.
const MTU: u16 = 1400;
/// Connections of a side to which an input adds more.
const CONNECTIONS: usize = 6;
/// Steps until both sides are at rest once the network is honest.
const MOST_STEPS: usize = 50_000;
/// Microseconds that frames may be kept back until the end of a connection is no fault.
const PATIENCE: u64 = 2_000_000;
/// What a redirected client is to show.
const TOKEN: u64 = 3;
/// Who the frames of the attacker's own address are for.
const ATTACKER: usize = 2;

fn address(of: usize) -> Address {
    Address([u8::try_from(of).unwrap_or(0) + 1; 24])
}

/// Two engines, their programs, and the path between them.
struct World {
    engines: [Engine; 2],
    programs: [Program; 2],
    now: Time,
    /// Frames under way: to whom, and their bytes.
    wire: VecDeque<(usize, Vec<u8>)>,
    ledger: Ledger,
    attacker: Attacker,
    /// Every frame that a side has sent, and what is authentic of it: by whom.
    sent: [BTreeSet<Vec<u8>>; 2],
    authentic: [BTreeSet<Vec<u8>>; 2],
    next_cookie: u32,
    restarts: u8,
    /// Microseconds until which no connection may break; 0: any may.
    patience: u64,
}

/// Any bytes: what the programs do, and what somebody on the path does, as they decide.
///
/// # Panics
///
/// When a sealed connection breaks a promise.
pub fn sealed(bytes: &[u8]) {
    let mut bytes = Bytes::new(bytes);
    let mut world = World::new(bytes.byte());
    while !bytes.is_empty() {
        world.step(&mut bytes);
    }
    world.end();
}

fn engine(seed: u64) -> Engine {
    Engine::new(&config(MTU), [seed; 8])
}

impl World {
    fn new(options: u8) -> Self {
        let shares_secret = options & 7 != 7;
        let is_short = options & 8 != 0;
        let program = |side: usize| {
            let secret = if shares_secret { 5 } else { 5 + side as u64 };
            let mut sealer = ToySealer::new(Security::Sealed, secret, side as u64 + 1);
            sealer.frames_per_key = if is_short { 30 } else { sealer.frames_per_key };
            Program::new(side, sealer, if options & 16 != 0 { 3 } else { 64 })
        };
        Self {
            engines: [engine(1), engine(2)],
            programs: [program(0), program(1)],
            now: Time(1 << 40),
            wire: VecDeque::new(),
            ledger: Ledger::default(),
            attacker: Attacker::default(),
            sent: Default::default(),
            authentic: Default::default(),
            next_cookie: 1,
            restarts: 0,
            // Under a key of few frames a connection ends when its peer is silent for a few.
            patience: if is_short { 0 } else { PATIENCE },
        }
    }

    fn step(&mut self, bytes: &mut Bytes<'_>) {
        match bytes.byte() % 24 {
            0 => self.pass_time(bytes.short().into()),
            1 => self.pass_time(u64::from(bytes.short()) * 1000),
            2 => self.wait(),
            3 => self.connect(bytes),
            4 => self.answer(bytes),
            5..8 => self.send(bytes),
            8 => self.rma(bytes),
            9 => self.close(bytes),
            10 => self.follow(bytes),
            11 => self.quote(bytes),
            12 => self.disturb(bytes),
            13..18 => self.deliver(bytes),
            18 => self.deliver_all(),
            _ => {
                if let Some((to, frame)) = self.attacker.attack(bytes) {
                    let from = if bytes.byte() & 7 == 7 { ATTACKER } else { 1 - to };
                    self.arrive(to, from, &frame);
                }
            }
        }
        self.pump();
    }

    /// Everything that wants to leave now leaves.
    fn pump(&mut self) {
        for side in 0..2 {
            let mut buffer = [0; MTU as usize];
            for count in 0.. {
                assert!(count < MOST_FRAMES, "it never stops sending");
                let program = &mut self.programs[side];
                let Some(out) = self.engines[side].poll_transmit(self.now, true, &mut buffer, program) else { break };
                self.leave(side, &out, &buffer);
            }
            self.examine(side);
        }
    }

    fn leave(&mut self, side: usize, out: &Transmit<Vec<u8>>, buffer: &[u8]) {
        let piece = out.piece.clone().unwrap_or_default();
        assert_eq!(piece.len(), out.piece_len as usize, "the piece is as long as it is said to be");
        // A sealer refuses in a forked child: the frame is lost.
        let Some(frame) = whole_frame(out, buffer, &piece, &mut self.programs[side]) else { return };
        assert!(frame.len() <= usize::from(MTU), "a frame of {} bytes", frame.len());
        self.attacker.see(side, &frame);
        self.authentic[side].extend(authentic_part(&frame));
        if out.to == address(1 - side) {
            self.wire.push_back((1 - side, frame.clone()));
        }
        self.sent[side].insert(frame);
    }

    /// Whether the engine of this side has made the frame, or one that is the same to its receiver.
    fn is_of(&self, side: usize, frame: &[u8]) -> bool {
        let is_same = || authentic_part(frame).is_some_and(|part| self.authentic[side].contains(&part));
        self.sent[side].contains(frame) || is_same()
    }

    /// A frame comes to a side. What its peer has not sent changes nothing for the program.
    fn arrive(&mut self, to: usize, from: usize, frame: &[u8]) {
        let (is_peers, is_own) = (self.is_of(1 - to, frame), self.is_of(to, frame));
        let received = self.engines[to].stats().received;
        let program = &mut self.programs[to];
        let _ = self.engines[to].handle_frame(self.now, &address(from), frame, false, program);
        if !program.released.requests.is_empty() && (is_own || from == ATTACKER) {
            // The handshake names no address: who changes addresses leads a client elsewhere.
            self.ledger.is_mirrored |= is_own;
            self.patience = 0;
        }
        let is_authentic = is_peers || (is_own && self.ledger.is_mirrored);
        if !is_authentic {
            assert!(program.released.is_nothing(), "{frame:02x?} is forged: {:?}", program.released);
            let after = self.engines[to].stats().received;
            assert!(!is_sealed(frame) || received == after, "{frame:02x?} is forged, and counts as received");
        }
        self.examine(to);
    }

    /// What was released to the program of a side is what the other one has sent, over sealed
    /// connections.
    fn examine(&mut self, side: usize) {
        let program = &mut self.programs[side];
        let released = std::mem::take(&mut program.released);
        for (cookie, message) in &released.messages {
            let is_ordered = program.attribute_of(*cookie) == Attribute::ReliableOrdered;
            self.ledger.check_message(side, *cookie, is_ordered, message);
        }
        released.writes.iter().for_each(|write| self.ledger.check_write(side, write));
        released.reads.iter().for_each(|read| self.ledger.check_read(side, read));
        released.requests.iter().for_each(|payload| self.ledger.check_request(side, payload));
        if released.events > 0 {
            let secrets = [0, 1].map(|side: usize| self.programs[side].sealer.secret);
            for index in self.programs[side].with(Standing::Open) {
                assert_ne!(self.engines[side].report(Index(index)).protection, Protection::Plain, "{index} is plain");
                assert!(secrets[0] == secrets[1] || self.ledger.is_mirrored, "open without a common secret");
            }
        }
        assert!(released.failed == 0 || self.patience == 0, "an operation failed, though frames were only changed");
        assert!(self.programs[side].broken == 0 || self.patience == 0, "a connection ended by changed frames");
    }

    /// Frames are kept back for so many microseconds.
    fn pass_time(&mut self, micros: u64) {
        self.now = self.now.plus_micros(micros);
        self.patience = self.patience.saturating_sub(micros);
        for side in 0..2 {
            self.engines[side].handle_timeout(self.now, &mut self.programs[side]);
            self.examine(side);
        }
    }

    /// Until one of the engines wants to be called.
    fn wait(&mut self) {
        if let Some(at) = self.engines.iter().filter_map(Engine::poll_timeout).min() {
            self.pass_time(at.0.saturating_sub(self.now.0));
        }
    }

    /// One of the frames under way comes, is lost, or comes and is still under way.
    fn deliver(&mut self, bytes: &mut Bytes<'_>) {
        let (how, at) = (bytes.byte(), bytes.below(self.wire.len().max(1)));
        let at = if how & 12 == 12 { at } else { 0 };
        let Some((to, frame)) = self.wire.get(at).cloned() else { return };
        if how & 3 != 3 {
            self.wire.remove(at);
        }
        if how & 0xF0 != 0xF0 {
            self.arrive(to, 1 - to, &frame);
        }
    }

    fn deliver_all(&mut self) {
        while let Some((to, frame)) = self.wire.pop_front() {
            self.arrive(to, 1 - to, &frame);
            self.pump();
        }
    }

    fn cookie(&mut self) -> u32 {
        self.next_cookie += 1;
        self.next_cookie
    }

    fn connect(&mut self, bytes: &mut Bytes<'_>) {
        let side = bytes.below(2);
        if self.programs[side].connections.len() >= CONNECTIONS {
            return;
        }
        let attributes = [Attribute::ReliableOrdered, Attribute::ReliableUnordered, Attribute::Unreliable];
        let attribute = attributes[bytes.below(3)];
        let (cookie, payload) = (self.cookie(), bytes.some());
        let open = Open {
            to: address(1 - side),
            attribute,
            payload,
            host_cookie: cookie,
            timeout: bytes.flag().then_some(Duration::from_millis(500)),
            token: 0,
        };
        let Ok(index) = self.engines[side].connect(self.now, &open) else { return };
        self.ledger.ask(side, payload);
        let known = Known { cookie, attribute, standing: Standing::Asking };
        let before = self.programs[side].connections.insert(index.0, known);
        assert_eq!(before, None, "an index that is taken");
    }

    /// A connection of a side that stands so, or none.
    fn some(&self, side: usize, standing: Standing, bytes: &mut Bytes<'_>) -> Option<Index> {
        let found = self.programs[side].with(standing);
        found.get(bytes.below(found.len().max(1))).map(|index| Index(*index))
    }

    fn answer(&mut self, bytes: &mut Bytes<'_>) {
        let side = bytes.below(2);
        let Some(index) = self.some(side, Standing::Requested, bytes) else { return };
        let (cookie, how) = (self.cookie(), bytes.byte());
        let (engine, program) = (&mut self.engines[side], &mut self.programs[side]);
        let answered = match how {
            0..16 => engine.reject(self.now, index, program),
            16..32 => engine.redirect(self.now, index, b"sim://elsewhere", TOKEN, program),
            _ => engine.accept(self.now, index, cookie),
        };
        answered.expect("what asks can be answered");
        let Some(known) = program.connections.get_mut(&index.0) else { return };
        if how < 32 {
            program.connections.remove(&index.0);
        } else {
            (known.cookie, known.standing) = (cookie, Standing::Accepted);
        }
    }

    /// The redirected client asks again at the same address, with its token or without.
    fn follow(&mut self, bytes: &mut Bytes<'_>) {
        let side = bytes.below(2);
        if let Some(index) = self.some(side, Standing::Redirected, bytes) {
            let token = u64::from(bytes.flag()) * TOKEN;
            self.engines[side].follow(self.now, index, address(1 - side), token);
        }
    }

    /// An operation of a side that is not in progress, and a connection for it.
    fn begin(&self, bytes: &mut Bytes<'_>) -> Option<(usize, Index, Op)> {
        let side = bytes.below(2);
        let index = self.some(side, Standing::Open, bytes)?;
        let op = (0..OPERATIONS).find(|op| !self.programs[side].running.contains_key(op))?;
        Some((side, index, Op(op)))
    }

    fn send(&mut self, bytes: &mut Bytes<'_>) {
        let Some((side, index, op)) = self.begin(bytes) else { return };
        let len = if bytes.byte() & 7 == 0 { usize::from(bytes.short()) % MAX_SEND as usize } else { bytes.below(256) };
        let message = self.ledger.send(side, len);
        if self.engines[side].send(self.now, index, &[&message], op, bytes.flag()).is_ok() {
            self.programs[side].running.insert(op.0, Running::Send);
        }
    }

    fn rma(&mut self, bytes: &mut Bytes<'_>) {
        let Some((side, index, op)) = self.begin(bytes) else { return };
        let options = bytes.byte();
        let offset = u64::from(bytes.short()) % SERVED;
        let len = u64::from(bytes.short()) % (SERVED - offset);
        let target = Target { handle: HANDLE, offset, len };
        let (access, running) = match options & 1 {
            0 => (Access::Write, Running::Write(self.ledger.write(side, target))),
            _ => (Access::Read, Running::Read(offset, len)),
        };
        let message = (options & 2 != 0).then(|| self.ledger.send(side, bytes.below(64)));
        let rma = Rma { op, target, access, fence: options & 4 != 0, message: message.as_deref() };
        if self.engines[side].rma(self.now, index, &rma).is_ok() {
            self.programs[side].running.insert(op.0, running);
        }
    }

    fn close(&mut self, bytes: &mut Bytes<'_>) {
        let side = bytes.below(2);
        let (known, chosen) = (self.programs[side].connections.len(), bytes.byte());
        let index = self.programs[side].connections.keys().nth(usize::from(chosen) % known.max(1)).copied();
        let Some(index) = index else { return };
        self.patience = 0;
        self.engines[side].close(self.now, Index(index), &mut self.programs[side]);
        self.programs[side].connections.remove(&index);
    }

    /// A router quotes a frame, or something like it. It ends no open connection.
    fn quote(&mut self, bytes: &mut Bytes<'_>) {
        let Some((by, frame)) = self.attacker.attack(bytes).map(|(to, frame)| (1 - to, frame)) else { return };
        let to = address(1 - by);
        if bytes.flag() {
            self.engines[by].handle_too_big(&to, &frame, bytes.short());
        } else {
            let (is_own, open) = (bytes.flag(), self.programs[by].with(Standing::Open));
            self.engines[by].handle_unreachable(self.now, &to, &frame, is_own, &mut self.programs[by]);
            assert_eq!(self.programs[by].with(Standing::Open), open, "a report ends a connection");
        }
        self.examine(by);
    }

    /// What happens rarely: a restart, a fork, other timeouts, slots.
    fn disturb(&mut self, bytes: &mut Bytes<'_>) {
        let (side, what) = (bytes.below(2), bytes.byte());
        match what % 8 {
            0 if self.restarts < 8 => self.restart(side),
            1 => {
                self.patience = 0;
                self.programs[side].sealer.is_forked ^= true;
            }
            2 => {
                self.patience = 0;
                let (send, keepalive) = (u32::from(bytes.short()) * 100, u32::from(bytes.short()) * 100);
                if let Some(index) = self.some(side, Standing::Open, bytes) {
                    self.engines[side].set_timeouts(self.now, index, send, keepalive);
                }
            }
            _ => {
                self.programs[side].slots += u32::from(bytes.byte() & 3);
                self.engines[side].refill(&mut self.programs[side]);
            }
        }
    }

    /// A side ends without a word and begins anew with the same secret and name.
    fn restart(&mut self, side: usize) {
        self.restarts += 1;
        self.patience = 0;
        self.engines[side] = engine(10 * u64::from(self.restarts) + side as u64);
        let old = &self.programs[side];
        let mut sealer = ToySealer::new(Security::Sealed, old.sealer.secret, old.sealer.name);
        (sealer.frames_per_key, sealer.drawn) = (old.sealer.frames_per_key, old.sealer.drawn + 1);
        self.programs[side] = Program::new(side, sealer, 64);
    }

    /// The network is honest from now on: what was sent arrives, if frames were only changed.
    fn settle(&mut self) {
        self.pump();
        for _ in 0..MOST_STEPS {
            self.deliver_all();
            if self.programs.iter().all(|program| program.running.is_empty()) {
                return;
            }
            let patience = self.patience;
            self.wait();
            self.patience = patience;
            self.pump();
        }
        panic!("operations that never end: {:?}", self.programs.each_ref().map(|program| &program.running));
    }

    /// All connections are closed: everything has ended, and both engines come to rest by
    /// themselves.
    fn end(&mut self) {
        self.programs.iter_mut().for_each(|program| program.slots += 64);
        for side in 0..2 {
            self.engines[side].refill(&mut self.programs[side]);
        }
        if self.patience > 0 {
            self.settle();
        }
        self.patience = 0;
        for side in 0..2 {
            while let Some((index, _)) = self.programs[side].connections.pop_first() {
                self.engines[side].close(self.now, Index(index), &mut self.programs[side]);
            }
        }
        for _ in 0..MOST_STEPS {
            self.pump();
            self.deliver_all();
            for side in 0..2 {
                // What asks only now is turned away.
                while let Some((index, _)) = self.programs[side].connections.pop_first() {
                    self.engines[side].close(self.now, Index(index), &mut self.programs[side]);
                }
            }
            if self.wire.is_empty() && self.engines.iter().all(Engine::is_quiet) {
                self.programs.iter().for_each(Program::assert_closed);
                return;
            }
            self.wait();
        }
        panic!("engines without connections do not come to rest");
    }
}
