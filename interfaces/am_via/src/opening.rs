//! How channels open: VIs connect by client and server, then the client says what its engine says,
//! and the server's engine decides.

use crate::channel::{Channel, NONCE, Phase, ViaChannel};
use crate::door::{address_of, random};
use crate::flow::Class;
use crate::frame::{ACCEPT, HELLO};
use crate::mapping::ViaMapping;
use crate::options::Variant;
use crate::pipe::Pipe;
use crate::table::{Report, Table};
use crate::watch::Watch;
use cci_am::Refused;
use cci_via::engine::{Asking, sleep_on};
use cci_via::{Address, Error};
use std::os::fd::AsFd;
use std::time::Duration;

/// Bytes of a shape and a ring, before what the engine says.
const SHAPE: usize = 16;
/// Channels of peers that have not said hello, at most; others are turned away.
const MOST_STRANGERS: usize = 256;

/// The longest sleep while a channel connects.
const STEP: Duration = Duration::from_millis(2);

impl<W: Watch> ViaMapping<W> {
    /// Sleeps until something may have come to one of these, at most for `limit`.
    pub(crate) fn sleep(mappings: &[&Self], limit: Duration) {
        let before: Vec<u64> = mappings.iter().map(|mapping| mapping.core.changes()).collect();
        let (after, sleepers): (Vec<u64>, Vec<_>) = mappings.iter().map(|mapping| mapping.core.arm()).unzip();
        if before != after {
            return;
        }
        // A connect under way has no descriptor here: it is stepped.
        let is_connecting = mappings.iter().any(|mapping| !mapping.table.borrow().connecting.is_empty());
        let limit = if is_connecting { limit.min(STEP) } else { limit };
        let doors: Vec<_> = mappings.iter().map(|mapping| mapping.door.borrow()).collect();
        let left = doors.iter().filter_map(|door| door.clients.left()).min();
        let limit = left.map_or(limit, |left| left.min(limit));
        let peers = doors.iter().flat_map(|door| door.clients.descriptors());
        sleep_on(sleepers.iter().flatten().map(AsFd::as_fd).chain(peers), Some(limit));
    }

    /// What a pipe of a channel says of itself: its shape and its ring.
    fn shape_of(&self, channel: &Channel) -> [u8; SHAPE] {
        let pipe = &channel.pipes[channel.last()];
        let ring = pipe.ring.as_ref().map_or((0, 0), |ring| (ring.handle, ring.memory.len() as u32));
        let mut bytes = [0; SHAPE];
        bytes[0] = self.options.variant as u8;
        bytes[1] = channel.pipes.len() as u8;
        bytes[2..4].copy_from_slice(&pipe.shape.requests.to_le_bytes());
        bytes[4..6].copy_from_slice(&pipe.shape.replies.to_le_bytes());
        bytes[6..8].copy_from_slice(&pipe.shape.every.to_le_bytes());
        bytes[8..12].copy_from_slice(&ring.1.to_le_bytes());
        bytes[12..].copy_from_slice(&ring.0.to_le_bytes());
        bytes
    }

    /// Reads the peer's, which must be as this side's but for the ring's handle.
    fn agrees(&self, channel: &mut Channel, bytes: &[u8]) -> bool {
        let own = self.shape_of(channel);
        let Some(bytes) = bytes.first_chunk::<SHAPE>().filter(|bytes| bytes[..12] == own[..12]) else { return false };
        let handle = u32::from_le_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]);
        if let Some(ring) = channel.pipes.iter_mut().find_map(|pipe| pipe.ring.as_mut()) {
            ring.peer = Some(handle);
        }
        true
    }

    /// The client has said hello: what its engine says, unless it is of another shape.
    pub(crate) fn greeted(&self, channel: &mut Channel, bytes: &[u8]) -> Option<Vec<u8>> {
        if !self.agrees(channel, bytes) {
            return None;
        }
        channel.phase = Phase::Asked;
        bytes.get(SHAPE..).map(<[u8]>::to_vec)
    }

    /// The server has accepted.
    pub(crate) fn answered(&self, channel: &mut Channel, bytes: &[u8]) -> bool {
        channel.phase = Phase::Open;
        self.agrees(channel, bytes)
    }

    fn send_control(&self, channel: &mut Channel, kind: u8, bytes: &[u8]) -> Result<(), Refused> {
        let at = channel.last();
        let (class, order) = (Class::Request, channel.next_order());
        let pipe = &mut channel.pipes[at];
        let buffer = pipe.claim(class)?;
        let is_whole = pipe.fill(buffer, 0, bytes);
        let sent = match is_whole {
            true => pipe.launch(&self.core, &self.watch, kind, class, order, buffer, bytes.len()),
            false => Err(Refused::Gone),
        };
        match sent {
            Ok(()) => channel.advance_order(),
            Err(_) => pipe.unclaim(class, buffer),
        }
        sent
    }

    /// The engine accepts a client.
    pub(crate) fn admit(&self, at: ViaChannel, context: u64) -> bool {
        let mut table = self.table.borrow_mut();
        let Some(channel) = table.get(at).filter(|channel| channel.phase == Phase::Asked) else { return false };
        let answer = self.shape_of(channel);
        if self.send_control(channel, ACCEPT, &answer).is_err() {
            table.close(&self.core, at, true);
            return false;
        }
        channel.phase = Phase::Open;
        channel.context = Some(context);
        table.reports.push_back(Report::Opened(context, at));
        true
    }

    fn pipe(&self, index: usize) -> Result<Pipe, Error> {
        let queues = (self.sends, self.receives);
        Pipe::new(&self.core, self.tag, queues, self.shapes[index], &self.options)
    }

    fn channel(&self, generation: u32, nonce: [u8; NONCE]) -> Channel {
        let bulk = (self.options.variant == Variant::V1).then(Box::default);
        Channel {
            generation,
            phase: Phase::Connecting,
            context: None,
            is_client: false,
            nonce,
            hello: Vec::new(),
            remote: None,
            pipes: Vec::new(),
            bulk,
        }
    }

    /// Adds a pipe to a channel, and begins to connect it.
    fn add_pipe(
        &self,
        table: &mut Table,
        at: ViaChannel,
        connect: impl FnOnce(u32) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let index = table.get(at).ok_or(Error::NotReachable)?.pipes.len();
        let pipe = self.pipe(index)?;
        let vi = pipe.vi;
        table.enter(vi, at, index);
        table.get(at).ok_or(Error::NotReachable)?.pipes.push(pipe);
        connect(vi)
    }

    pub(crate) fn open_channel(&self, name: &str, hello: &[u8], context: u64) -> Result<(), String> {
        let remote = address_of(name)
            .ok_or_else(|| format!("{name} names no endpoint over the VI Architecture; give via://HOST/WORD"))?;
        let nonce = random().to_le_bytes();
        let table = &mut *self.table.borrow_mut();
        let at = table.insert(|generation| Channel {
            context: Some(context),
            is_client: true,
            hello: hello.to_vec(),
            remote: Some(remote),
            ..self.channel(generation, nonce)
        });
        table.connecting.push(at);
        let begun = self.add_own_pipe(table, at);
        begun.map_err(|why| {
            table.close(&self.core, at, true);
            why.to_string()
        })
    }

    /// Begins to connect the next VI of a client's channel.
    fn add_own_pipe(&self, table: &mut Table, at: ViaChannel) -> Result<(), Error> {
        let Some(channel) = table.get(at) else { return Ok(()) };
        let (index, nonce) = (channel.pipes.len(), channel.nonce);
        let Some(remote) = channel.remote.clone() else { return Ok(()) };
        let own = [&nonce[..], &[index as u8, self.options.variant as u8]].concat();
        let local = Address::new(self.core.host(), &own);
        self.add_pipe(table, at, |vi| self.core.begin_request(vi, &local, &remote, self.options.timeout))
    }

    /// A client wants to connect a VI.
    fn invite(&self, table: &mut Table, mut asking: Asking) {
        let own = asking.address().discriminator.clone();
        let [nonce @ .., index, variant] = &own[..] else { return self.core.reject(asking) };
        let (index, variant) = (usize::from(*index), *variant);
        let Ok(nonce) = <[u8; NONCE]>::try_from(nonce) else { return self.core.reject(asking) };
        let known = table.of_client(nonce);
        let at = match known {
            None if index == 0 && variant == self.options.variant as u8 && table.connecting.len() < MOST_STRANGERS => {
                let at = table.insert(|generation| self.channel(generation, nonce));
                table.connecting.push(at);
                at
            }
            Some(at) if index < self.shapes.len() => at,
            _ => return self.core.reject(asking),
        };
        // The VIs of a client come in turn: it connects the next one when one is connected.
        if table.get(at).is_none_or(|channel| channel.pipes.len() != index) {
            return self.core.reject(asking);
        }
        let begun = self.add_pipe(table, at, |vi| self.core.begin_accept(&mut asking, vi, self.options.timeout));
        if begun.is_err() {
            table.close(&self.core, at, true);
        }
    }

    /// Goes on with channels that open: those of clients that ask, and own ones.
    #[inline(never)]
    pub(crate) fn look_for_peers(&self) {
        let table = &mut *self.table.borrow_mut();
        let mut door = self.door.borrow_mut();
        while let Some(asking) = door.clients.next() {
            self.invite(table, asking);
        }
        drop(door);
        for at in table.connecting.clone() {
            self.step(table, at);
        }
    }

    /// One step of a channel that opens.
    fn step(&self, table: &mut Table, at: ViaChannel) {
        let Some(channel) = table.get(at) else { return };
        let mut all = true;
        for pipe in channel.pipes.iter_mut().filter(|pipe| !pipe.is_connected) {
            match self.core.peer_done(pipe.vi) {
                Ok(Some(_)) => pipe.is_connected = true,
                Ok(None) => all = false,
                Err(_) => return table.close(&self.core, at, false),
            }
        }
        if !all {
            return;
        }
        if channel.pipes.len() < self.shapes.len() {
            if channel.is_client && self.add_own_pipe(table, at).is_err() {
                table.close(&self.core, at, false);
            }
            return;
        }
        let Some(channel) = table.get(at) else { return };
        if channel.phase == Phase::Connecting {
            channel.phase = Phase::Waiting;
            if channel.is_client {
                let hello = [&self.shape_of(channel)[..], &std::mem::take(&mut channel.hello)].concat();
                if self.send_control(channel, HELLO, &hello).is_err() {
                    return table.close(&self.core, at, false);
                }
            }
        }
        table.connecting.retain(|other| *other != at);
    }
}
