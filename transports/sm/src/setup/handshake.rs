//! Handshake: from a Unix connection to a lane that can be used, and what travels on the socket
//! afterwards.

use crate::format::address::Address;
use crate::format::layout::{Geometry, READY_LEN, VERSION};
use crate::format::packet::{self, Arrived, Kind, Packet};
use crate::lane::peer::Doorbell;
use crate::lane::state::EndpointState;
use crate::lane::wire::Wire;
use crate::lane::{Lane, Phase};
use crate::memory::chunks::FIRST_LEN;
use crate::memory::registry::PeerRegistry;
use crate::sys::{self, CopyError, Peer, Way};
use cci_mem::address_space::Tag;
use cci_mem::cancellation::Uncancelled;
use cci_mem::descriptors;
use cci_mem::inherited::close_in_children;
use cci_mem::segment::Segment;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, connect};

/// How a lane ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Nobody listens there.
    NobodyListens,
    /// The peer refused the handshake, or it is not one of ours, or belongs to another user.
    Refused,
    /// The peer closed its endpoint, died, or executed another program.
    Gone,
    /// The peer broke the protocol.
    Violation,
    /// No memory or descriptor here.
    NoMemory,
    /// Nobody needs it any more.
    Idle,
}

/// Packets read from one socket in one look.
const PACKETS: u32 = 64;

impl Lane {
    /// Tries to reach the listener. Stays `Connecting` when its backlog is full.
    pub(crate) fn open_socket(&mut self, state: &mut EndpointState, address: Address) -> Result<(), Cause> {
        let _uncancelled = Uncancelled::new();
        self.peer.set_address(address);
        let socket = descriptors::socket(AddressFamily::UNIX, SocketType::SEQPACKET).map_err(|error| match error {
            Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM => Cause::NoMemory,
            error => self.refused_call("socket", error),
        })?;
        close_in_children(&socket);
        let name = address.socket().map_err(|_| Cause::NobodyListens)?;
        match connect(&socket, &name) {
            Ok(()) => {}
            Err(Errno::AGAIN) => {
                self.phase = Phase::Connecting(address);
                return Ok(());
            }
            Err(Errno::CONNREFUSED | Errno::PROTOTYPE) => return Err(Cause::NobodyListens),
            Err(error) => return Err(self.refused_call("connect", error)),
        }
        let peer = state.control.peer_of(&socket);
        let process = peer.map_err(|why| self.refused_handshake(why))?;
        self.peer.set_process(process);
        let geometry = Geometry::new(state.max_send_size);
        let mut wire = Wire::create(geometry).map_err(|_| Cause::NoMemory)?;
        let mut hello = self.introduction(state, Kind::Hello);
        hello.set_geometry(geometry);
        let no_file = |_| Cause::NoMemory;
        let [registry, ready] = state.files().map_err(no_file)?;
        let fds = [wire.segment().file_of().map_err(no_file)?, registry, ready];
        packet::limit_unread(&socket);
        if let Err(error) = packet::send(&socket, &hello, &fds) {
            // A server that refuses this process may have said so and closed by now.
            return Err(match packet::receive(&socket) {
                Arrived::Packet(packet, _) if packet.kind == Kind::Refuse => self.refused_by_words(&packet),
                _ => self.cause_of_failed_send(error),
            });
        }
        wire.close_file();
        self.wire = Some(wire);
        self.peer.set_socket(socket);
        self.watch(state)?;
        self.phase = Phase::HelloSent;
        Ok(())
    }

    /// Takes a connection of the listener.
    pub(crate) fn answer_socket(&mut self, state: &mut EndpointState, socket: OwnedFd) -> Result<(), Cause> {
        let process = state.control.client_of(&socket).map_err(|why| {
            // The client learns the reason; it sees the hang-up in any case.
            let _ = packet::send(&socket, &Packet::new(Kind::Refuse, &why), &[]);
            Cause::Refused
        })?;
        self.peer.set_process(process);
        self.peer.set_socket(socket);
        self.watch(state)
    }

    /// Keeps why there is no handshake.
    fn refused_handshake(&mut self, why: String) -> Cause {
        self.peer.set_refusal(why);
        Cause::Refused
    }

    fn cause_of_failed_send(&mut self, error: Errno) -> Cause {
        match error {
            Errno::TOOMANYREFS | Errno::NOBUFS | Errno::NOMEM => Cause::NoMemory,
            Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN | Errno::AGAIN => Cause::Gone,
            error => self.refused_call("sendmsg", error),
        }
    }

    /// The system refuses a call that the lane needs.
    fn refused_call(&mut self, call: &str, error: Errno) -> Cause {
        let error = std::io::Error::from(error);
        self.refused_handshake(format!("the system refuses {call} ({error}); allow this call"))
    }

    /// Keeps the peer's own words about why there is no handshake.
    fn refused_by_words(&mut self, packet: &Packet) -> Cause {
        // They may reach a terminal.
        let words: String = packet.text.chars().filter(|letter| !letter.is_control()).collect();
        self.refused_handshake(format!("it says: {words}"))
    }

    fn watch(&self, state: &mut EndpointState) -> Result<(), Cause> {
        let (socket, peer) = self.peer.ends().ok_or(Cause::Gone)?;
        state.control.watch_lane(self.number(), socket, peer).map_err(|_| Cause::NoMemory)
    }

    fn introduction(&self, state: &EndpointState, kind: Kind) -> Packet {
        let mut packet = Packet::new(kind, &state.uri);
        packet.set_pairing(state.pairing);
        packet.set_present(state.is_present);
        packet.max_send_size = state.max_send_size;
        packet.registry_len = FIRST_LEN as u64;
        packet.endpoint = state.id;
        packet.number = u64::from(self.number());
        packet.set_tag(state.tag);
        packet
    }

    /// Reads the socket until it is empty (true), or has had its turn: what is left keeps it
    /// readable, without another edge.
    pub(crate) fn read_socket(&mut self, state: &mut EndpointState) -> Result<bool, Cause> {
        for _ in 0..PACKETS {
            let Some(socket) = self.peer.socket() else { return Ok(true) };
            let step = match packet::receive(socket) {
                Arrived::Nothing => return Ok(true),
                Arrived::Closed => return Err(Cause::Gone),
                Arrived::Refused(error) => Err(self.refused_call("recvmsg", error)),
                Arrived::Wake => {
                    self.schedule.on_wake_up_read();
                    self.sleeping.on_wake_up_read();
                    Ok(())
                }
                Arrived::Packet(packet, fds) => self.on_packet(state, &packet, fds),
                Arrived::Garbage => Err(Cause::Violation),
            };
            step?;
        }
        Ok(false)
    }

    /// Reads what the peer has sent, within an operation that needs a segment which is among it. A
    /// wake-up that is among it makes the lane hot: nothing else looks at the frame that it tells
    /// of.
    pub(crate) fn read_segments(&mut self, state: &mut EndpointState) {
        // A hang-up stays readable and is handled where the descriptors are looked at.
        if self.read_socket(state).is_err_and(|cause| cause != Cause::Gone) {
            state.protocol_errors.push(self.number());
        }
        if self.schedule.take_wake_up() {
            self.busy(state);
        }
    }

    /// Takes one wake-up off the socket, or whatever else comes first.
    pub(crate) fn consume_wake(&mut self, state: &mut EndpointState) {
        let Some(socket) = self.peer.socket() else { return };
        let step = match packet::receive(socket) {
            Arrived::Packet(packet, fds) => self.on_packet(state, &packet, fds),
            Arrived::Garbage => Err(Cause::Violation),
            // A hang-up stays readable and is handled where the socket is read.
            Arrived::Nothing | Arrived::Closed | Arrived::Wake | Arrived::Refused(_) => Ok(()),
        };
        if step.is_err() {
            state.protocol_errors.push(self.number());
        }
    }

    fn on_packet(&mut self, state: &mut EndpointState, packet: &Packet, fds: Vec<OwnedFd>) -> Result<(), Cause> {
        // In this order: closing what nobody has taken is a cancellation point too.
        let (_uncancelled, fds) = (Uncancelled::new(), fds);
        match (packet.kind, self.phase) {
            (Kind::Hello, Phase::Answering(_)) => self.on_hello(state, packet, fds),
            (Kind::Welcome, Phase::HelloSent) => self.on_welcome(state, packet, fds),
            (Kind::Refuse, Phase::HelloSent) => Err(self.refused_by_words(packet)),
            (Kind::Segment, Phase::Ready) => self.on_segment(state, packet, fds),
            (Kind::Registry, Phase::Ready) => self.on_chunk(state, packet, fds),
            (Kind::SegmentGone, Phase::Ready) => {
                self.peer_memory.remove(packet.number);
                Ok(())
            }
            _ => Err(Cause::Violation),
        }
    }

    fn on_hello(&mut self, state: &mut EndpointState, packet: &Packet, fds: Vec<OwnedFd>) -> Result<(), Cause> {
        let geometry = packet.geometry();
        let opened = match (geometry, <[OwnedFd; 3]>::try_from(fds)) {
            (Err(sentence), _) => Err(sentence),
            (Ok(_), Err(_)) => Err("HELLO carries three descriptors: lane, registry, ready bitmap".into()),
            (Ok(geometry), Ok([lane, registry, ready])) => Wire::attach(lane, geometry)
                .and_then(|wire| {
                    Ok((wire, PeerRegistry::attach(registry, number_of(packet))?, attach_doorbell(ready, packet)?))
                })
                .map_err(|errno| format!("lane or registry cannot be mapped: {errno}")),
        };
        let (wire, registry, doorbell) = opened.map_err(|sentence| {
            if let Some(socket) = self.peer.socket() {
                // The peer learns the reason if its socket has room, and sees the hang-up in any
                // case.
                let _ = packet::send(socket, &Packet::new(Kind::Refuse, &sentence), &[]);
            }
            Cause::Refused
        })?;
        self.wire = Some(wire);
        self.peer.set_doorbell(Some(doorbell));
        // Before the WELCOME: a client that has it may sleep at once, and waits for no wake-up of
        // slots that it finds granted.
        self.grant_first(state, packet);
        let welcome = self.introduction(state, Kind::Welcome);
        let socket = self.peer.socket().ok_or(Cause::Gone)?;
        let files = state.files().map_err(|_| Cause::NoMemory)?;
        packet::limit_unread(socket);
        let sent = packet::send(socket, &welcome, &files);
        sent.map_err(|error| self.cause_of_failed_send(error))?;
        self.usable(state, packet, registry);
        Ok(())
    }

    fn on_welcome(&mut self, state: &mut EndpointState, packet: &Packet, fds: Vec<OwnedFd>) -> Result<(), Cause> {
        let [registry, ready] = <[OwnedFd; 2]>::try_from(fds).map_err(|_| Cause::Violation)?;
        if packet.version != VERSION {
            return Err(
                self.refused_handshake(format!("it speaks lane layout {}, this side {VERSION}", packet.version))
            );
        }
        let registry = PeerRegistry::attach(registry, number_of(packet))
            .map_err(|errno| self.refused_handshake(format!("its registry cannot be mapped: {errno}")))?;
        let doorbell = attach_doorbell(ready, packet)
            .map_err(|errno| self.refused_handshake(format!("its ready bitmap cannot be mapped: {errno}")))?;
        self.peer.set_doorbell(Some(doorbell));
        self.grant_first(state, packet);
        self.usable(state, packet, registry);
        Ok(())
    }

    /// Agrees on how the two sides fence, and grants the first payload slots.
    fn grant_first(&mut self, state: &EndpointState, packet: &Packet) {
        if let Some(wire) = self.wire.as_mut() {
            wire.pairing = packet.pairing_with(state.pairing);
            wire.grant_first();
        }
        self.wake_producer();
    }

    /// The handshake is over.
    fn usable(&mut self, state: &mut EndpointState, packet: &Packet, registry: PeerRegistry) {
        self.peer_memory.set_registry(registry);
        let no_process_vm = match (self.peer.process(), &state.no_process_vm) {
            (_, Some(why)) => Some(why.clone()),
            (Some(peer), None) => probe(peer, packet.tag()).err(),
            (None, None) => Some("the peer is not known".into()),
        };
        self.peer.introduce(&packet.text, packet.tag(), no_process_vm);
        self.peer.set_present(packet.is_present());
        self.phase = Phase::Ready;
        self.activity.on_usable(state.now);
        self.sleeping.on_usable();
        state.lanes_changed = true;
        self.busy(state);
        self.announced.on_change_of_all();
        self.announce(state);
    }

    fn on_segment(&mut self, state: &EndpointState, packet: &Packet, fds: Vec<OwnedFd>) -> Result<(), Cause> {
        // Without a descriptor to spare here it does not arrive, and is done without like one that
        // cannot be mapped.
        let Ok([fd]) = <[OwnedFd; 1]>::try_from(fds) else { return Ok(()) };
        let len = usize::try_from(packet.memory_len).map_err(|_| Cause::Violation)?;
        // The peer has reserved memory for each byte that it registered: more than there is would
        // only use up our address space.
        // One that is not mapped is done without: process_vm reaches the same memory.
        if !self.peer_memory.has_room_for(packet.memory_len, state.physical_memory) {
            return Ok(());
        }
        if let Ok(mut segment) = Segment::attach(fd, len) {
            segment.close_file();
            self.peer_memory.insert(packet.number, segment);
        }
        Ok(())
    }

    /// The peer publishes registrations in a further chunk. One that does not arrive, or cannot be
    /// mapped, is done without: the peer looks up what lies there.
    fn on_chunk(&mut self, state: &EndpointState, packet: &Packet, mut fds: Vec<OwnedFd>) -> Result<(), Cause> {
        let is_known = self.peer_memory.add_chunk(fds.pop(), (packet.number, packet.memory_len), state.physical_memory);
        if is_known { Ok(()) } else { Err(Cause::Violation) }
    }
}

/// Maps the ready bitmap of the peer that sent this packet.
fn attach_doorbell(ready: OwnedFd, packet: &Packet) -> rustix::io::Result<Doorbell> {
    let mut page = Segment::attach(ready, READY_LEN)?;
    page.close_file();
    // A lane whose number has no bit is found by its wake-up.
    Ok(Doorbell::new(page, number_of(packet)))
}

/// The lane's number at the peer that sent this packet.
fn number_of(packet: &Packet) -> u32 {
    u32::try_from(packet.number).unwrap_or(u32::MAX)
}

/// Finds out by doing whether this process may copy to and from the peer's memory.
fn probe(peer: &Peer, tag: Tag) -> Result<(), String> {
    if peer.pid == 0 {
        return Err("its process is in a pid name space that this one does not see".into());
    }
    if tag.address == 0 {
        return Err("its address space has no tag".into());
    }
    for way in [Way::Read, Way::Write] {
        match sys::copy_tag(peer.pid, tag, way) {
            Ok(()) => {}
            Err(CopyError::Refused(errno)) => return Err(format!("the kernel refuses process_vm: {errno}")),
            Err(_) => return Err("process_vm reaches another process than the peer".into()),
        }
    }
    Ok(())
}
