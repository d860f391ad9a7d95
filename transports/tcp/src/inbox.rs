//! The receive slots: what arrives becomes an event in a slot.
//!
//! A message of a reliable connection has a grant, which stands for a slot. Everything else takes
//! slots beyond those of the grants that are out.

use cci_proto::Attribute;
use cci_transport::{Connection, Core, PendingRequests, ReceiveSlots, Slot};

/// A connection request that the program has not answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    /// Its lane.
    pub(crate) lane: u32,
    /// The client's number of the connection.
    pub(crate) number: u32,
    pub(crate) attribute: Attribute,
}

pub(crate) struct Inbox {
    slots: ReceiveSlots,
    pub(crate) requests: PendingRequests<Request>,
    /// Messages that peers may still send: each has its slot.
    granted: usize,
    /// All slots were looked at in this call: the next look is the next call's, since each of many
    /// lanes may ask.
    is_swept: bool,
    /// Something was queued for the program, which may answer it.
    pub(crate) has_delivered: bool,
}

impl Inbox {
    pub(crate) fn new(core: &Core, max_send_size: u32) -> rustix::io::Result<Self> {
        Ok(Self {
            slots: ReceiveSlots::new(core, max_send_size)?,
            requests: PendingRequests::default(),
            granted: 0,
            is_swept: false,
            has_delivered: false,
        })
    }

    /// Frees all slots that the program has returned.
    pub(crate) fn sweep(&mut self, core: &mut Core) {
        self.is_swept = true;
        self.slots.sweep(core);
    }

    /// A call begins: frees a few of the slots that the program has returned.
    #[inline]
    pub(crate) fn begin_call(&mut self, core: &mut Core) {
        self.is_swept = false;
        self.slots.sweep_some(core);
    }

    /// Slots that no grant stands for.
    pub(crate) fn spare(&mut self, core: &mut Core) -> usize {
        if core.recv_free() <= self.granted && !self.is_swept {
            self.sweep(core);
        }
        core.recv_free().saturating_sub(self.granted)
    }

    /// Grants messages to a lane: so many slots are spoken for.
    pub(crate) fn grant(&mut self, messages: u32) {
        self.granted += messages as usize;
    }

    /// Grants that were used, or given back, or whose lane has ended.
    #[inline]
    pub(crate) fn ungrant(&mut self, messages: u32) {
        self.granted = self.granted.saturating_sub(messages as usize);
    }

    /// Whether every slot is taken or granted.
    pub(crate) fn is_short(&mut self, core: &mut Core) -> bool {
        self.spare(core) == 0
    }

    /// Has the program's next return of an event call the endpoint, since slots are short. True: to
    /// be tried once more.
    #[cold]
    pub(crate) fn starve(&mut self, core: &mut Core) -> bool {
        self.slots.starve(core)
    }

    /// A slot for what has its own memory.
    #[inline]
    pub(crate) fn take_bare(&mut self, core: &mut Core) -> Option<&'static Slot> {
        self.slots.take(core)
    }

    /// Delivers a message. False: no slot is free.
    #[inline]
    pub(crate) fn message(&mut self, core: &mut Core, cell: &'static Connection, bytes: &[u8]) -> bool {
        let is_delivered = self.slots.message(core, cell, bytes);
        self.has_delivered |= is_delivered;
        is_delivered
    }

    /// Queues a connection request. False: strangers have their quarter of the slots, or not even a
    /// slot for requests is free.
    pub(crate) fn request(&mut self, core: &mut Core, request: Request, payload: &[u8]) -> bool {
        let (limit, _) = core.recv_count();
        if self.requests.len() >= (limit / 4).max(1) {
            return false;
        }
        let has_spare = self.spare(core) > 0;
        let Some(slot) = self.slots.request(core, request.attribute, payload, has_spare) else { return false };
        self.requests.insert(slot, request);
        self.has_delivered = true;
        true
    }
}
