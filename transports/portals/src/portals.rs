//! Portals as the shared part of the transport needs it.

use crate::blocks::{BLOCK, Blocks};
use crate::net::{Aim, Net, Put};
use crate::network::Lease;
use crate::sys::{Bound, Event as Told, Kind, Process, Wanted, options};
use crate::watcher::Queue;
use crate::wire::{Address, Class, REGISTRATIONS};
use cci_mem::memory::Memory;
use cci_over::{
    Arrival, Buffer, Ended, Event, Fate, Goal, Network, PATIENCE, Part, Registrations, Reply, Sent, Watcher, Way, Words,
};
use cci_proto::{Rights, Time};
use cci_transport::Message;

/// An endpoint's part of the interface.
pub(crate) struct Portals {
    /// `None`: it is closed.
    pub(crate) lease: Option<Lease>,
    pub(crate) net: Net,
    pub(crate) watcher: Watcher<Queue>,
    pub(crate) reliable: Blocks,
    pub(crate) unreliable: Blocks,
    pub(crate) setup: Blocks,
    /// The entries that are always there.
    pub(crate) fixed: Vec<Bound>,
    /// Blocks wait to be attached.
    pub(crate) is_short: bool,
}

type Happened = Event<Address, Process>;

impl Portals {
    fn blocks(&self, class: cci_over::Class) -> &Blocks {
        match class {
            cci_over::Class::Reliable => &self.reliable,
            cci_over::Class::Unreliable => &self.unreliable,
            cci_over::Class::Setup => &self.setup,
        }
    }

    /// A block is full.
    fn on_spent(&mut self, user: u64) {
        let blocks = match user >> 24 & 0xff {
            0 => &mut self.reliable,
            1 => &mut self.unreliable,
            _ => &mut self.setup,
        };
        if !blocks.refill(&self.net.interface, user) {
            self.is_short = true;
        }
    }

    fn on_put(&self, event: &Told, bytes: &mut [u8]) -> Happened {
        let Some(class) = Address::class(event.bits) else { return Event::Stray };
        let len = usize::try_from(event.len).unwrap_or(usize::MAX).min(bytes.len());
        let is_whole = self.blocks(class).copy_out(event.user, event.offset, &mut bytes[..len]);
        let has_failed = event.has_failed || !is_whole;
        Event::Arrival(Arrival { origin: event.initiator, header: event.header, class, from: 0, len, has_failed })
    }

    /// A put or a get has ended.
    fn on_ended(&mut self, aim: Aim, is_done: bool) -> Happened {
        match aim {
            Aim::Of(goal @ Goal::Read { .. }) => {
                let fate = if is_done { Fate::Done } else { Fate::Refused };
                Event::Ended(Ended { goal, fate })
            }
            Aim::Of(goal) => Event::Ended(Ended { goal, fate: if is_done { Fate::Done } else { Fate::Gone } }),
            Aim::Request { side } | Aim::Here { side } | Aim::AfterRequest { side } if !is_done => {
                Event::Asked { side, reply: Reply::Nobody }
            }
            // The peer's process has ended.
            Aim::Probe { side, .. } | Aim::AfterProbe { side, .. } if !is_done => {
                Event::Ended(Ended { goal: Goal::Control { side }, fate: Fate::Gone })
            }
            Aim::AfterRequest { side } => self.after_request(side),
            Aim::AfterProbe { side, serial } => self.after_probe(side, serial),
            Aim::Request { .. } | Aim::Here { .. } | Aim::Probe { .. } => Event::Nothing,
        }
    }

    /// The sentinel behind a request has arrived.
    fn after_request(&mut self, side: u32) -> Happened {
        let (request, here) = (Aim::Request { side }, Aim::Here { side });
        if !self.net.has(request) {
            return Event::Nothing;
        }
        // It was dropped: nobody has that number, or there is no room.
        let is_nobody = self.net.has(here);
        self.net.cancel(|aim| aim == request || aim == here);
        Event::Asked { side, reply: if is_nobody { Reply::Nobody } else { Reply::Again } }
    }

    /// The sentinel behind a probe has arrived.
    fn after_probe(&mut self, side: u32, serial: u64) -> Happened {
        // Its probe was dropped, and so was the write, if both are still there.
        let (probe, goal) = (Aim::Probe { side, serial }, Goal::Write { side, serial });
        if !self.net.has(probe) || !self.net.has(Aim::Of(goal)) {
            return Event::Nothing;
        }
        self.net.cancel(|aim| aim == probe || aim == Aim::Of(goal));
        Event::Ended(Ended { goal, fate: Fate::Refused })
    }
}

impl Network for Portals {
    type Place = Address;
    type Origin = Process;
    type Bound = Bound;

    const WORDS: Words = Words { name: "portals", messages: "puts of Portals", rma: "puts and gets of Portals" };

    fn own(&self) -> Address {
        Address { process: self.net.interface.own, number: self.net.number }
    }

    fn number(&self) -> u32 {
        self.net.number
    }

    fn of_uri(uri: &str) -> Option<Address> {
        Address::of_uri(uri)
    }

    fn uri(place: Address) -> String {
        place.uri()
    }

    fn at(&self, origin: Process, number: u32) -> Address {
        Address { process: origin, number }
    }

    fn is_from(place: Address, origin: Process) -> bool {
        place.process == origin
    }

    #[inline]
    fn next(&mut self, _: &Registrations<Bound>, bytes: &mut Vec<u8>) -> Option<Happened> {
        let event = match self.watcher.take() {
            Some(handed) => handed?,
            None => self.net.interface.event(self.net.queue).ok()??,
        };
        let landed = match event.kind {
            Kind::PutEnd if event.user >> 32 == BLOCK => return Some(self.on_put(&event, bytes)),
            Kind::Unlink if event.user >> 32 == BLOCK => {
                self.on_spent(event.user);
                None
            }
            Kind::SendEnd => {
                let token = Net::token(event.user, event.bits);
                token.and_then(|token| self.net.on_sent(token, !event.has_failed))
            }
            Kind::Ack | Kind::ReplyEnd => {
                let token = Net::token(event.user, event.bits);
                token.and_then(|token| self.net.on_answered(token, !event.has_failed))
            }
            Kind::PutEnd | Kind::Unlink | Kind::Other => None,
        };
        Some(landed.map_or(Event::Nothing, |landed| self.on_ended(landed.aim, landed.is_done)))
    }

    fn progress(&mut self) {
        self.net.interface.progress();
    }

    #[inline]
    fn has_room(&self) -> bool {
        self.net.has_room()
    }

    fn is_short(&self) -> bool {
        self.is_short
    }

    fn mend(&mut self) {
        let interface = &self.net.interface;
        self.is_short = ![&mut self.reliable, &mut self.unreliable, &mut self.setup]
            .map(|blocks| blocks.mend(interface))
            .into_iter()
            .all(|is_whole| is_whole);
    }

    #[inline]
    fn sweep(&mut self) {
        if !self.net.left.is_empty() {
            self.net.sweep();
        }
    }

    fn deadline(&self, now: Time) -> Option<Time> {
        (!self.net.left.is_empty()).then(|| now + PATIENCE)
    }

    /// Two blocks more: the first one is filled in part, and another waits for its event.
    fn grant(&mut self, granted: usize) -> bool {
        let needed = granted.div_ceil(self.reliable.messages_each()) + 2;
        while self.reliable.len() < needed {
            if self.reliable.grow(&self.net.interface).is_err() {
                return false;
            }
        }
        true
    }

    fn unsent(&self) -> usize {
        self.net.unsent()
    }

    #[inline]
    fn write_message(&mut self, message: &Message<'_>) -> Option<Buffer> {
        self.net.pool.write_message(message)
    }

    fn write(&mut self, bytes: &[u8]) -> Option<Buffer> {
        self.net.pool.write(bytes)
    }

    fn give(&mut self, buffer: u32) {
        self.net.pool.give(buffer);
    }

    #[inline]
    fn put(&mut self, goal: Goal, put: &cci_over::Put<Address>) -> Sent {
        let cci_over::Put { to, class, header, bytes, ack } = *put;
        let begun = self.net.put(Aim::Of(goal), &Put { to, class: class.into(), header, bytes, ack });
        if begun.is_ok() { Sent::Begun } else { Sent::No }
    }

    /// The request, an empty put to the same endpoint, and the sentinel behind both.
    fn ask(&mut self, side: u32, to: Address, header: u64, request: &[u8]) -> bool {
        let Some(buffer) = self.net.pool.write(request) else { return false };
        let (request, here, after) = (Aim::Request { side }, Aim::Here { side }, Aim::AfterRequest { side });
        let put = Put { to, class: Class::Setup, header, bytes: Some(buffer), ack: true };
        if self.net.put(request, &put).is_err() {
            self.net.pool.give(buffer.0);
            return false;
        }
        let empty = Put { class: Class::Sentinel, header: 0, bytes: None, ..put };
        let is_sent = self.net.put(here, &empty).is_ok() && self.net.put(after, &Put::sentinel(to.process)).is_ok();
        if !is_sent {
            self.net.cancel(|aim| aim == here || aim == request);
        }
        is_sent
    }

    fn transfer(&mut self, goal: Goal, way: &Way<Address>, part: Part) -> bool {
        self.net.transfer(Aim::Of(goal), part.memory, (way.to.process, part.bits, part.offset)).is_ok()
    }

    /// An empty put at the end of the write, and the sentinel behind it.
    fn doubt(&mut self, side: u32, serial: u64, way: &Way<Address>, part: &Part) -> bool {
        let probe = Aim::Probe { side, serial };
        let asked = (way.to.process, part.bits, part.offset.saturating_add(part.memory.len()));
        let is_asked = self.net.transfer(probe, Memory::none(), asked).is_ok()
            && self.net.put(Aim::AfterProbe { side, serial }, &Put::sentinel(way.to.process)).is_ok();
        if !is_asked {
            self.net.cancel(|aim| aim == probe);
        }
        is_asked
    }

    fn cancel(&mut self, is_meant: impl Fn(Goal) -> bool) {
        self.net.cancel(|aim| match aim {
            Aim::Of(goal) => is_meant(goal),
            Aim::Probe { side, serial } => is_meant(Goal::Write { side, serial }),
            _ => false,
        });
    }

    fn attach(&mut self, bits: u64, memory: &Memory, rights: Rights) -> Option<Bound> {
        let mut allowed = options::MANAGE_REMOTE | options::NO_START;
        if rights.has(Rights::READ) {
            allowed |= options::GET;
        }
        if rights.has(Rights::WRITE) {
            allowed |= options::PUT;
        }
        let wanted = Wanted { options: allowed, threshold: None, max_size: 0, user: 0, queue: None };
        self.net.interface.attach((REGISTRATIONS, bits, 0), memory.clone(), &wanted, false).ok()
    }

    fn release(&mut self, bound: Bound) -> Result<(), Bound> {
        self.net.interface.release(bound)
    }

    fn watch(&mut self) -> bool {
        self.watcher.watch()
    }

    /// Puts an event into the queue that the watcher waits for. Without room there are events under
    /// way, which wake it as well.
    fn unwatch(&mut self) {
        if self.watcher.is_watching() {
            let put = Put { to: self.own(), class: Class::Wake, header: 0, bytes: None, ack: false };
            let _ = self.net.put(Aim::Of(Goal::Stray), &put);
        }
    }

    fn end(&mut self, registered: Vec<Bound>) {
        let Some(lease) = self.lease.take() else { return };
        let interface = &lease.interface;
        let left = &mut self.net.left;
        for blocks in [&mut self.reliable, &mut self.unreliable, &mut self.setup] {
            blocks.end(interface, left);
        }
        let bound = registered.into_iter().chain(self.fixed.drain(..));
        left.extend(bound.filter_map(|bound| interface.release(bound).err()));
        let queue = self.net.queue;
        self.watcher.end(|| interface.free_queue(queue));
        self.net.end();
        lease.end(std::mem::take(&mut self.net.left));
    }
}
