//! Registered memory, and RMA: the initiator copies from one registration to the other.
//!
//! A peer copies while it holds the lock of the target's registrations. So a deregistration, which
//! takes the lock, returns only when nobody touches the memory any more.

use crate::mailbox::{Mailbox, lock};
use crate::setup::number_in;
use cci_mem::memory::Memory;
use cci_proto::{Access, Atomic, Failure, RegisterError, Registration, Rights, RmaError, RmaHandle};
use cci_transport::{Connection, Rma};

/// Bytes copied in one call, at most: other connections must not wait for a long RMA.
const PIECE: u64 = 1 << 20;
/// Bytes copied at once, on the way between the two registrations. A multiple of 8, so that aligned
/// words arrive whole.
const CHUNK: usize = 4096;

/// An RMA that is not over.
pub(crate) struct Transfer {
    local: Registration,
    local_offset: u64,
    remote: RmaHandle,
    remote_offset: u64,
    pub(crate) len: u64,
    access: Access,
    /// Bytes that are copied.
    done: u64,
    /// After all earlier operations of the connection, before all later ones.
    pub(crate) is_fence: bool,
    /// Sent to the peer after the data.
    pub(crate) message: Option<Vec<u8>>,
}

/// The two words of a handle that name a registration. Programs may carry these alone.
fn words(handle: &RmaHandle) -> [u64; 2] {
    let [index, secret, ..] = handle.words();
    [index, secret]
}

/// Whether `len` bytes from `offset` on lie in memory.
fn holds(memory: &Memory, offset: u64, len: u64) -> bool {
    usize::try_from(len).is_ok_and(|len| memory.piece(offset, len).is_some())
}

impl Transfer {
    /// Begins an RMA. The local range is checked at once, because this side alone knows it; the
    /// remote one is checked with the copy, because its registration may end before.
    pub(crate) fn new(own: &Mailbox, connection: &Connection, rma: &Rma<'_>) -> Result<Self, RmaError> {
        let registrations = lock(&own.registrations);
        let (local, entry) = registrations.find(words(rma.local)).ok_or(RmaError::LocalHandle)?;
        let is_inside = entry.memory().is_some_and(|memory| holds(memory, rma.local_offset, rma.len));
        if !is_inside || !entry.serves(number_in(connection).into()) {
            return Err(RmaError::LocalHandle);
        }
        Ok(Self {
            local,
            local_offset: rma.local_offset,
            remote: *rma.remote,
            remote_offset: rma.remote_offset,
            len: rma.len,
            access: rma.access,
            done: 0,
            is_fence: rma.fence,
            message: rma.message.map(|message| message.to_vec()),
        })
    }

    /// Copies the next piece. Returns whether it was the last one.
    pub(crate) fn step(&mut self, own: &Mailbox, (peer, to): (&Mailbox, u32)) -> Result<bool, Failure> {
        // Both sides may be one endpoint, so that this lock is released before the next is taken.
        let local = lock(&own.registrations).get(self.local).and_then(|entry| entry.memory().cloned());
        let local = local.ok_or(Failure::RemoteHandle)?;
        let registrations = lock(&peer.registrations);
        let (_, entry) = registrations.find(words(&self.remote)).ok_or(Failure::RemoteHandle)?;
        let is_allowed = entry.rights().has(self.access.rights()) && entry.serves(to.into());
        let remote = entry.memory().filter(|memory| is_allowed && holds(memory, self.remote_offset, self.len));
        let remote = remote.ok_or(Failure::RemoteHandle)?;
        let (from, to) = match self.access {
            Access::Atomic(atomic) => {
                self.change(atomic, &local, remote)?;
                return Ok(true);
            }
            Access::Read => ((remote, self.remote_offset), (&local, self.local_offset)),
            // `send_large` is not offered.
            Access::Large => return Err(Failure::RemoteHandle),
            Access::Write => ((&local, self.local_offset), (remote, self.remote_offset)),
        };
        let end = self.len.min(self.done + PIECE);
        let mut chunk = [0; CHUNK];
        while self.done < end {
            let len = usize::try_from(end - self.done).map_or(CHUNK, |left| left.min(CHUNK));
            let bytes = &mut chunk[..len];
            if !from.0.copy_out(from.1 + self.done, bytes) || !to.0.copy_in(to.1 + self.done, bytes) {
                return Err(Failure::Copy);
            }
            self.done += len as u64;
        }
        Ok(self.done == self.len)
    }

    /// Changes a word of the peer. The processor makes that one operation for every other endpoint
    /// that has registered the word, and for the program that owns it.
    fn change(&self, atomic: Atomic, local: &Memory, remote: &Memory) -> Result<(), Failure> {
        let len = usize::try_from(self.len).map_err(|_| Failure::RemoteHandle)?;
        let old = remote.update(self.remote_offset, len, |old| atomic.apply(old, self.len));
        let bytes = Atomic::bytes(old.ok_or(Failure::RemoteHandle)?, self.len);
        if local.copy_in(self.local_offset, &bytes[..len]) { Ok(()) } else { Err(Failure::Copy) }
    }
}

/// Registers memory of this endpoint.
pub(crate) fn register(
    own: &Mailbox,
    memory: Memory,
    rights: Rights,
    only: Option<&Connection>,
) -> Result<RmaHandle, RegisterError> {
    let only = only.map(|connection| number_in(connection).into());
    lock(&own.registrations).register(memory, rights, only, ()).map(|(_, handle)| handle)
}

/// A connection has ended, and with it what was registered for it alone.
pub(crate) fn orphan(own: &Mailbox, connection: u32) {
    lock(&own.registrations).orphan(connection.into());
}

/// Ends a registration of this endpoint.
pub(crate) fn deregister(own: &Mailbox, handle: &RmaHandle) -> Result<(), RegisterError> {
    let mut registrations = lock(&own.registrations);
    let (number, _) = registrations.find(words(handle)).ok_or(RegisterError::UnknownHandle)?;
    registrations.remove(number);
    Ok(())
}
