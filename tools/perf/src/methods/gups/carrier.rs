//! How updates come to the process that has their part of the table: in batches, as messages or by
//! RMA.
//!
//! No update is lost either way, because only its owner changes a part. By RMA a batch is written
//! into a slot of a mailbox at the owner, which has slots for each of its peers; the message that
//! completes the write names the slot, the owner makes the updates and gives the slot back. Reading
//! a remote word, changing it and writing it back would lose what others change in between.

use super::table::UpdateTable;
use cci::__binding::Contract;
use cci::{Connection, Endpoint, EventKind, Notify, Rights, Rma, RmaError, RmaHandle, SendError, SharedMemory};
use cci_report::finding::LOOK_AHEAD;
use cci_report::named;
use cci_report::{UserError, while_doing};

/// Bytes of an update.
const WORD: usize = 8;
/// Batches on their way from one process to another, by RMA.
const SLOTS: usize = 8;

named! {
    /// How updates travel.
    pub enum Way {
        /// Batches as messages
        Send = "send",
        /// Batches written by RMA into a mailbox, each told by a message
        Write = "write",
        /// Batches as active messages, whose handler makes the updates
        Am = "am",
    }
}

/// Another process.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) connection: Connection,
    /// Updates for it that are not sent yet.
    batch: Vec<u8>,
    /// Its mailbox, when updates are written.
    remote: Option<RmaHandle>,
    /// Slots there that may be written.
    free: Vec<usize>,
    /// It has nothing more to send.
    is_over: bool,
}

impl Peer {
    pub(super) fn new(connection: Connection, remote: Option<RmaHandle>) -> Self {
        let batch = Vec::with_capacity(LOOK_AHEAD * WORD);
        Self { connection, batch, remote, free: (0..SLOTS).collect(), is_over: false }
    }
}

/// Memory for RMA: for each worker the slots that it writes here, then the slots from which this
/// process writes to each.
pub(super) struct Mailbox {
    memory: SharedMemory,
    pub(super) handle: RmaHandle,
    slot: usize,
    workers: usize,
}

impl Mailbox {
    /// Registers it.
    pub(super) fn new(endpoint: &Endpoint, workers: usize) -> Result<Self, UserError> {
        let slot = LOOK_AHEAD / (workers - 1) * WORD;
        let memory = SharedMemory::new(2 * workers * SLOTS * slot).map_err(while_doing("no memory for RMA"))?;
        let handle =
            endpoint.register_memory(memory.memory(), Rights::WRITE).map_err(while_doing("cannot register memory"))?;
        Ok(Self { memory, handle, slot, workers })
    }

    fn inbound(&self, from: usize, slot: usize) -> usize {
        (from * SLOTS + slot) * self.slot
    }

    fn outbound(&self, to: usize, slot: usize) -> usize {
        ((self.workers + to) * SLOTS + slot) * self.slot
    }
}

/// What a message says, when updates are written: a kind, a slot, and bytes.
const NOTE: usize = 8;
const FILLED: u8 = 1;
const EMPTIED: u8 = 2;

fn note(kind: u8, slot: usize, len: usize) -> [u8; NOTE] {
    let [.., high, low] = len.to_be_bytes();
    #[expect(clippy::cast_possible_truncation, reason = "fewer than 256 slots")]
    let slot = slot as u8;
    [kind, slot, high, low, 0, 0, 0, 0]
}

/// The process's end of everything.
pub(super) struct Carrier {
    endpoint: Endpoint,
    number: usize,
    /// By number; none for this process itself.
    peers: Vec<Option<Peer>>,
    mailbox: Option<Mailbox>,
    /// Bytes of a full batch.
    full: usize,
    received: Vec<u8>,
    /// Last messages of this process that are not sent yet.
    open_ends: u64,
}

impl Carrier {
    pub(super) fn new(endpoint: Endpoint, number: usize, peers: Vec<Option<Peer>>, mailbox: Option<Mailbox>) -> Self {
        let largest =
            peers.iter().flatten().map(|peer| peer.connection.max_send_size().map_or(0, |bytes| bytes as usize)).min();
        let share = LOOK_AHEAD / (peers.len() - 1) * WORD;
        let full = if mailbox.is_some() { share } else { share.min(largest.unwrap_or(0) / WORD * WORD) };
        Self { endpoint, number, peers, mailbox, full, received: Vec::new(), open_ends: 0 }
    }

    /// Hands an update to the process that has its part.
    #[inline(always)]
    pub(super) fn hand_over(&mut self, table: &mut UpdateTable, owner: usize, word: u64) -> Result<(), UserError> {
        let full = self.full;
        let Some(Some(peer)) = self.peers.get_mut(owner) else { return Ok(()) };
        peer.batch.extend_from_slice(&word.to_ne_bytes());
        if peer.batch.len() >= full { self.flush(table, owner) } else { Ok(()) }
    }

    /// Sends what is left, says that it was the last, and makes the others' updates until they have
    /// said so too.
    pub(super) fn finish(&mut self, table: &mut UpdateTable) -> Result<(), UserError> {
        (0..self.peers.len()).try_for_each(|owner| self.flush(table, owner))?;
        // What was written has been read once the slots are back.
        self.receive_while(table, |carrier| {
            carrier.peers.iter().flatten().any(|peer| peer.remote.is_some() && peer.free.len() < SLOTS)
        })?;
        for owner in 0..self.peers.len() {
            self.send(table, owner, &[], Notify::Always(0))?;
            self.open_ends += u64::from(self.peers[owner].is_some());
        }
        self.receive_while(table, |carrier| {
            carrier.open_ends > 0 || carrier.peers.iter().flatten().any(|peer| !peer.is_over)
        })
    }

    fn receive_while(&mut self, table: &mut UpdateTable, is_open: impl Fn(&Self) -> bool) -> Result<(), UserError> {
        while is_open(self) {
            if !self.receive(table)? {
                // There may be more processes than processors.
                std::thread::yield_now();
            }
        }
        Ok(())
    }

    /// Sends a batch.
    fn flush(&mut self, table: &mut UpdateTable, owner: usize) -> Result<(), UserError> {
        let Some(Some(peer)) = self.peers.get_mut(owner) else { return Ok(()) };
        if peer.batch.is_empty() {
            return Ok(());
        }
        let mut batch = std::mem::take(&mut peer.batch);
        let sent = if peer.remote.is_some() {
            self.write(table, owner, &batch)
        } else {
            self.send(table, owner, &batch, Notify::OnFailure(0))
        };
        batch.clear();
        if let Some(Some(peer)) = self.peers.get_mut(owner) {
            peer.batch = batch;
        }
        sent?;
        // What has come meanwhile, so that nobody waits for long.
        for _ in 0..2 * self.peers.len() {
            if !self.receive(table)? {
                break;
            }
        }
        Ok(())
    }

    /// Sends a message, receiving while there is no room.
    fn send(&mut self, table: &mut UpdateTable, to: usize, bytes: &[u8], notify: Notify) -> Result<(), UserError> {
        let Some(Some(peer)) = self.peers.get(to) else { return Ok(()) };
        let connection = peer.connection;
        loop {
            match self.endpoint.send(connection, bytes, notify) {
                Ok(()) => return Ok(()),
                Err(SendError::NoBuffers) => {
                    self.receive(table)?;
                }
                Err(error) => return Err(UserError(format!("cannot send updates: {error}"))),
            }
        }
    }

    /// Writes a batch into a free slot of the peer's mailbox, receiving until there is one.
    fn write(&mut self, table: &mut UpdateTable, to: usize, batch: &[u8]) -> Result<(), UserError> {
        let slot = loop {
            let Some(Some(peer)) = self.peers.get_mut(to) else { return Ok(()) };
            if let Some(slot) = peer.free.pop() {
                break slot;
            }
            self.receive(table)?;
        };
        let (Some(mailbox), Some(Some(Peer { remote: Some(remote), connection, .. }))) =
            (&self.mailbox, self.peers.get(to))
        else {
            return Ok(());
        };
        let (connection, remote, local) = (*connection, *remote, mailbox.handle);
        let (from, into) = (mailbox.outbound(to, slot), mailbox.inbound(self.number, slot));
        mailbox.memory.write(from, batch);
        let note = note(FILLED, slot, batch.len());
        let rma = Rma::new(&local, &remote, batch.len() as u64)
            .local_offset(from as u64)
            .remote_offset(into as u64)
            .message(&note[..]);
        loop {
            match self.endpoint.write(connection, &rma, Notify::OnFailure(0)) {
                Ok(()) => return Ok(()),
                Err(RmaError::NoBuffers) => {
                    self.receive(table)?;
                }
                Err(error) => return Err(UserError(format!("cannot write updates: {error}"))),
            }
        }
    }

    /// Takes one event: makes the updates that it brings. Whether there was one.
    fn receive(&mut self, table: &mut UpdateTable) -> Result<bool, UserError> {
        let Some(event) = self.endpoint.get_event().map_err(while_doing("cannot receive updates"))? else {
            return Ok(false);
        };
        match event.kind() {
            EventKind::Recv => {}
            EventKind::Send => {
                event.outcome().map_err(while_doing("updates did not arrive"))?;
                self.open_ends = self.open_ends.saturating_sub(1);
                return Ok(true);
            }
            EventKind::Disconnect if self.peers.iter().flatten().any(|peer| !peer.is_over) => {
                return Err(UserError::new("another worker disconnected during the run"));
            }
            _ => return Ok(true),
        }
        let connection = event.connection();
        let is_from = |peer: &Option<Peer>| peer.as_ref().is_some_and(|peer| Some(peer.connection) == connection);
        let Some(from) = self.peers.iter().position(is_from) else { return Ok(true) };
        let mut bytes = std::mem::take(&mut self.received);
        if let Some(message) = event.received() {
            bytes.resize(message.len(), 0);
            message.copy_to(&mut bytes);
        }
        drop(event);
        let outcome = self.take(table, from, &mut bytes);
        self.received = bytes;
        outcome.map(|()| true)
    }

    /// Does what a message says.
    fn take(&mut self, table: &mut UpdateTable, from: usize, bytes: &mut Vec<u8>) -> Result<(), UserError> {
        let Some(Some(peer)) = self.peers.get_mut(from) else { return Ok(()) };
        if bytes.is_empty() {
            peer.is_over = true;
            return Ok(());
        }
        let Some(mailbox) = &self.mailbox else {
            apply(table, bytes);
            return Ok(());
        };
        let [kind, slot, high, low, ..] = bytes[..] else {
            return Err(UserError::new("a note of another process is short"));
        };
        let slot = usize::from(slot);
        if kind == EMPTIED {
            peer.free.push(slot);
            return Ok(());
        }
        bytes.resize(usize::from(u16::from_be_bytes([high, low])), 0);
        mailbox.memory.read(mailbox.inbound(from, slot), bytes);
        apply(table, bytes);
        self.send(table, from, &note(EMPTIED, slot, 0), Notify::OnFailure(0))
    }
}

/// Makes the updates of a batch.
fn apply(table: &mut UpdateTable, bytes: &[u8]) {
    for word in bytes.chunks_exact(WORD) {
        let mut update = [0; WORD];
        update.copy_from_slice(word);
        table.update(u64::from_ne_bytes(update));
    }
}
