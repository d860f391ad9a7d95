//! Groups: unreliable, many senders, one frame for each message. The engine has no part in them.

use super::Reliable;
use super::shares::NOBODY;
use crate::{Link, Outgoing};
use cci_mem::sync::Ordering;
use cci_proto::wire::{self, HEADER, Header, Kind, Multicast};
use cci_proto::{Address, Attribute, ConnectError, EventKind, SendError};
use cci_transport::{Connect, Connection, ConnectionState, Core, Message, Posted, Protect, Slot};

/// A connection to a group.
pub(super) struct Group {
    cell: &'static Connection,
    /// Its number: that of the link, for one that receives.
    number: u32,
    /// Where to, for one that sends.
    to: Option<Address>,
    /// The sender's identifier.
    from: u64,
    /// Messages sent.
    sent: u32,
}

impl Group {
    /// The link's number of it, if it was joined.
    pub(super) fn joined(&self) -> Option<u32> {
        self.to.is_none().then_some(self.number)
    }
}

impl<L: Link> Reliable<L> {
    /// Bytes of the largest message to a group: one frame on every path.
    fn group_send_size(&self) -> u32 {
        u32::from(self.link.base_mtu()).saturating_sub(HEADER as u32).min(self.host.max_send_size)
    }

    /// Joins a group, or begins to send to it.
    pub(super) fn connect_group(&mut self, core: &mut Core, connect: &Connect<'_>) -> Result<(), ConnectError> {
        if self.security.protect() == Protect::Sealed {
            // Messages to a group are in clear.
            return Err(ConnectError::NotImplemented);
        }
        let groups = self.link.groups().ok_or(ConnectError::NotImplemented)?;
        let slot = core.take_send().ok_or(ConnectError::NoBuffers)?;
        let number = self.next_group;
        let to = match connect.attribute {
            Attribute::MulticastSend => groups.address(connect.uri).map(Some),
            _ => groups.join(connect.uri, number).map(|()| None),
        };
        let opened = to.and_then(|to| {
            let largest = self.group_send_size();
            let cell = core.open_connection(connect.attribute, connect.context, largest);
            Ok((to, cell.map_err(|_| ConnectError::NoMemory)?, super::random().map_err(|_| ConnectError::NoMemory)?))
        });
        let (to, cell, [from]) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                self.leave_number(number);
                core.release(slot);
                return Err(error);
            }
        };
        self.next_group = self.next_group.wrapping_add(1);
        cell.local.store(number, Ordering::Relaxed);
        cell.lane.store(NOBODY, Ordering::Relaxed);
        if to.is_none() {
            self.host.inbox.attach(cell, &of_group(number));
        }
        cell.set_state(ConnectionState::Open);
        self.groups.push(Group { cell, number, to, from, sent: 0 });
        core.finish_opening(slot, EventKind::Connect, connect.context, Ok(cell));
        Ok(())
    }

    /// Where a connection sends to, if it sends to a group.
    pub(super) fn group_address(&self, cell: &'static Connection) -> Option<Address> {
        self.group(cell).and_then(|at| self.groups[at].to)
    }

    fn group(&self, cell: &'static Connection) -> Option<usize> {
        self.groups.iter().position(|group| std::ptr::eq(group.cell, cell))
    }

    /// Leaves the group that was joined under this number, if any.
    pub(super) fn leave_number(&mut self, number: u32) {
        if let Some(groups) = self.link.groups() {
            groups.leave(number);
        }
    }

    /// Leaves a group.
    pub(super) fn leave_group(&mut self, core: &mut Core, cell: &'static Connection) {
        if let Some(at) = self.group(cell) {
            let group = self.groups.swap_remove(at);
            if let Some(number) = group.joined() {
                self.leave_number(number);
            }
        }
        self.host.inbox.detach(cell);
        core.end_connection(cell);
    }

    /// Sends a message to a group: now, or not at all.
    pub(super) fn send_to_group(
        &mut self,
        core: &mut Core,
        cell: &'static Connection,
        message: Message<'_>,
        posted: Posted,
    ) -> Result<Option<&'static Slot>, SendError> {
        let at = self.group(cell).ok_or(SendError::Disconnected)?;
        let to = self.groups[at].to.ok_or(SendError::Direction)?;
        let slot = match posted {
            Posted::Silent(_) => None,
            Posted::Event(_) | Posted::Waited => Some(core.take_send().ok_or(SendError::NoBuffers)?),
        };
        let group = &mut self.groups[at];
        group.sent = group.sent.wrapping_add(1);
        let head = Multicast { from: group.from, number: group.sent, time: self.link.now().micros(), bytes: &[] };
        let len = HEADER + message.len();
        if self.gathered.len() < len {
            self.gathered.resize(len, 0);
        }
        head.emit_head(&mut self.gathered);
        message.copy_to(&mut self.gathered[HEADER..]);
        wire::seal(&mut self.gathered[..len], 0, |crc| crc);
        let frame = Outgoing { to, head: &self.gathered[..len], piece: None, probe: false };
        if self.link.send_burst(&[frame]) == 1 {
            cell.counters.on_sent();
            core.counters().on_sent(message.len());
        } else {
            cell.counters.on_dropped();
            core.counters().on_dropped();
        }
        match (posted, slot) {
            (Posted::Event(context), Some(slot)) => core.finish(slot, cell, context, Ok(())),
            (Posted::Waited, Some(slot)) => core.finish_waited(slot, Ok(())),
            _ => {}
        }
        Ok(slot.filter(|_| posted == Posted::Waited))
    }
}

/// The fairness class of a group's messages: all its senders share one.
fn of_group(number: u32) -> Address {
    let mut address = Address([0xff; 24]);
    address.0[4..8].copy_from_slice(&number.to_be_bytes());
    address
}

/// Handles a verified frame, with its header, that was sent to the group with this number.
pub(super) fn receive(
    groups: &[Group],
    host: &mut super::host::HostState,
    core: &mut Core,
    number: u32,
    (header, frame): (Header, &[u8]),
) {
    if header.kind != Kind::Multicast {
        return;
    }
    let group = groups.iter().find(|group| group.number == number && group.to.is_none());
    if let (Some(group), Some(multicast)) = (group, Multicast::parse_after(header, frame)) {
        let fits = multicast.bytes.len() <= group.cell.max_send_size.load(Ordering::Relaxed) as usize;
        if !fits || !host.inbox.message(core, group.cell, multicast.bytes) {
            group.cell.counters.on_dropped();
            core.counters().on_dropped();
        }
    }
}
