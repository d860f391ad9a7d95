//! RMA: the initiator copies from one registration to the other.
//!
//! A peer copies while it holds the lock of the target's registrations. So a deregistration, which
//! takes the lock, returns only when nobody touches the memory any more.

use crate::mailbox::{Mailbox, number_in};
use cci_mem::memory::Memory;
use cci_proto::{Access, Atomic, Failure, Registration, RmaError, RmaHandle};
use cci_transport::{Connection, Rma, lock};

/// Bytes copied in one call, at most: other connections must not wait for a long RMA.
const PIECE: u64 = 1 << 20;

/// An RMA that is not over.
pub(crate) struct Transfer {
    local: Registration,
    remote: RmaHandle,
    /// Where it begins in the local and in the remote memory.
    offsets: (u64, u64),
    pub(crate) len: u64,
    access: Access,
    /// Bytes that are copied.
    done: u64,
    /// After all earlier operations of the connection, before all later ones.
    pub(crate) is_fence: bool,
}

impl Transfer {
    /// Begins an RMA. The local range is checked at once, because this side alone knows it; the
    /// remote one is checked with the copy, because its registration may end before.
    pub(crate) fn new(own: &Mailbox, connection: &Connection, rma: &Rma<'_>) -> Result<Self, RmaError> {
        let registrations = lock(&own.registrations);
        let (local, entry) = registrations.find(rma.local.name()).ok_or(RmaError::LocalHandle)?;
        let memory = entry.memory_for(number_in(connection).into());
        memory.filter(|memory| memory.contains(rma.local_offset, rma.len)).ok_or(RmaError::LocalHandle)?;
        let offsets = (rma.local_offset, rma.remote_offset);
        Ok(Self { local, remote: *rma.remote, offsets, len: rma.len, access: rma.access, done: 0, is_fence: rma.fence })
    }

    /// Copies the next piece. Returns whether it was the last one.
    pub(crate) fn step(&mut self, own: &Mailbox, (peer, to): (&Mailbox, u32)) -> Result<bool, Failure> {
        // Both sides may be one endpoint, so that this lock is released before the next is taken.
        let local = lock(&own.registrations).get(self.local).and_then(|entry| entry.memory().cloned());
        let local = (&local.ok_or(Failure::RemoteHandle)?, self.offsets.0);
        let registrations = lock(&peer.registrations);
        let (_, entry) = registrations.find(self.remote.name()).ok_or(Failure::RemoteHandle)?;
        let is_allowed = entry.rights().has(self.access.rights());
        let remote =
            entry.memory_for(to.into()).filter(|memory| is_allowed && memory.contains(self.offsets.1, self.len));
        let remote = (remote.ok_or(Failure::RemoteHandle)?, self.offsets.1);
        let (from, to) = match self.access {
            Access::Atomic(atomic) => return self.change(atomic, local, remote).map(|()| true),
            Access::Read => (remote, local),
            Access::Write => (local, remote),
            // `send_large` is not offered.
            Access::Large => return Err(Failure::RemoteHandle),
        };
        let end = self.len.min(self.done + PIECE);
        if !from.0.copy_to(from.1 + self.done, to.0, to.1 + self.done, end - self.done) {
            return Err(Failure::Copy);
        }
        self.done = end;
        Ok(self.done == self.len)
    }

    /// Changes a word of the peer. The processor makes that one operation for every other endpoint
    /// that has registered the word, and for the program that owns it.
    fn change(&self, atomic: Atomic, local: (&Memory, u64), remote: (&Memory, u64)) -> Result<(), Failure> {
        let len = usize::try_from(self.len).map_err(|_| Failure::RemoteHandle)?;
        let old = remote.0.update(remote.1, len, |old| atomic.apply(old, self.len));
        let bytes = Atomic::bytes(old.ok_or(Failure::RemoteHandle)?, self.len);
        if local.0.copy_in(local.1, &bytes[..len]) { Ok(()) } else { Err(Failure::Copy) }
    }
}
