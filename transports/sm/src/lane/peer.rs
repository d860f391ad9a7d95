//! Who is at the other end of a lane: the socket to that endpoint, and what is known of it.

use crate::format::address::Address;
use crate::format::packet;
use crate::sys::Peer;
use cci_mem::address_space::Tag;
use cci_mem::hints;
use cci_mem::segment::Segment;
use rustix::fd::OwnedFd;
use std::sync::Arc;

/// A peer's ready bitmap, and the bit of a lane.
pub(crate) struct Doorbell {
    page: Segment,
    bit: u32,
}

impl Doorbell {
    pub(crate) fn new(page: Segment, bit: u32) -> Self {
        Self { page, bit }
    }
}

/// The peer endpoint of a lane.
pub(crate) struct PeerEndpoint {
    /// The address that this side connected to. A peer's own word is not taken for it, or it could
    /// have connections that are meant for others.
    address: Option<Address>,
    socket: Option<OwnedFd>,
    process: Option<Arc<Peer>>,
    /// What it calls itself.
    uri: String,
    /// The tag of its address space.
    tag: Tag,
    /// Why RMA cannot go by process_vm; none when it can.
    no_process_vm: Option<String>,
    /// Why there was no handshake: a sentence of the peer's, or ours about it.
    refusal: Option<String>,
    /// Where it wants to be told which lane holds something.
    doorbell: Option<Doorbell>,
    /// It has closed its socket or died: it copies nothing any more, whatever its announcement
    /// says.
    gone: bool,
    /// It is alive while its program makes no calls.
    is_present: bool,
}

impl Default for PeerEndpoint {
    fn default() -> Self {
        Self {
            address: None,
            socket: None,
            process: None,
            uri: String::new(),
            tag: Tag { address: 0, value: 0 },
            no_process_vm: None,
            refusal: None,
            doorbell: None,
            gone: false,
            is_present: false,
        }
    }
}

impl PeerEndpoint {
    /// The address that this side connected to.
    pub(crate) fn address(&self) -> Option<Address> {
        self.address
    }

    pub(crate) fn set_address(&mut self, address: Address) {
        self.address = Some(address);
    }

    /// The socket, until the lane ends.
    #[inline]
    pub(crate) fn socket(&self) -> Option<&OwnedFd> {
        self.socket.as_ref()
    }

    pub(crate) fn set_socket(&mut self, socket: OwnedFd) {
        self.socket = Some(socket);
    }

    pub(crate) fn take_socket(&mut self) -> Option<OwnedFd> {
        self.socket.take()
    }

    /// The process, as the kernel noted it when the two connected.
    pub(crate) fn process(&self) -> Option<&Arc<Peer>> {
        self.process.as_ref()
    }

    pub(crate) fn set_process(&mut self, process: Arc<Peer>) {
        self.process = Some(process);
    }

    /// Socket and process, while there are both.
    pub(crate) fn ends(&self) -> Option<(&OwnedFd, &Arc<Peer>)> {
        self.socket.as_ref().zip(self.process.as_ref())
    }

    /// Notes what the peer has said of itself, and whether RMA can go by process_vm.
    pub(crate) fn introduce(&mut self, uri: &str, tag: Tag, no_process_vm: Option<String>) {
        uri.clone_into(&mut self.uri);
        (self.tag, self.no_process_vm) = (tag, no_process_vm);
    }

    /// Notes whether the peer is alive while its program makes no calls.
    pub(crate) fn set_present(&mut self, is_present: bool) {
        self.is_present = is_present;
    }

    /// Whether the peer is alive while its program makes no calls.
    pub(crate) fn is_present(&self) -> bool {
        self.is_present
    }

    /// What the peer calls itself.
    pub(crate) fn uri(&self) -> &str {
        &self.uri
    }

    /// The tag of the peer's address space.
    #[inline]
    pub(crate) fn tag(&self) -> Tag {
        self.tag
    }

    /// Why RMA cannot go by process_vm; none when it can.
    #[inline]
    pub(crate) fn no_process_vm(&self) -> Option<&str> {
        self.no_process_vm.as_deref()
    }

    /// RMA cannot go by process_vm any more.
    pub(crate) fn refuse_process_vm(&mut self, why: String) {
        self.no_process_vm = Some(why);
    }

    /// Why there was no handshake.
    pub(crate) fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    pub(crate) fn set_refusal(&mut self, why: String) {
        self.refusal = Some(why);
    }

    /// Where the peer is told which lane holds something; `None`: nobody is there any more.
    pub(crate) fn set_doorbell(&mut self, doorbell: Option<Doorbell>) {
        self.doorbell = doorbell;
    }

    /// Sends a wake-up.
    pub(crate) fn wake(&self) {
        // First: a peer that polls sees the hint at once, and the wake-up when it next looks at its
        // descriptors.
        if let Some(doorbell) = &self.doorbell {
            hints::set(doorbell.page.words64(0, hints::WORDS), doorbell.bit);
        }
        if let Some(socket) = &self.socket {
            packet::wake(socket);
        }
    }

    /// The peer has closed its socket or died.
    pub(crate) fn on_gone(&mut self) {
        self.gone = true;
    }

    /// Whether there is a peer that could copy.
    pub(crate) fn may_copy(&self) -> bool {
        let is_gone = |process: &Arc<Peer>| match &self.socket {
            Some(socket) => process.is_gone(socket),
            None => self.gone || process.is_dead(),
        };
        self.process.as_ref().is_some_and(|process| !is_gone(process))
    }

    /// The peer, as a sentence names it that is about its process.
    pub(crate) fn process_name(&self) -> String {
        let pid = self.process.as_ref().filter(|process| process.pid != 0);
        let pid = pid.map(|process| format!(" (process {})", process.pid)).unwrap_or_default();
        // A peer's words may reach a terminal.
        let uri: String = self.uri.chars().filter(|letter| !letter.is_control()).collect();
        format!("{uri}{pid}")
    }

    /// The peer, as sentences name it.
    pub(crate) fn name(&self) -> String {
        self.address.map_or_else(|| "the peer".into(), |address| address.to_string())
    }
}
