//! Memory of the peer that the program uses as its own: imported by the initiator, withdrawn by its
//! owner.

use crate::format::layout::{body, kind};
use crate::lane::state::EndpointState;
use crate::lane::{Lane, Phase};
use crate::memory::registry::{self, Published};
use cci_mem::ring::{BODY_WORDS, Header};
use cci_mem::sync::Ordering;
use cci_proto::{EventKind, ImportError, Rights, RmaHandle};
use cci_transport::{Connection, Core, Imported};

impl Lane {
    /// Maps memory that the peer has registered.
    pub(crate) fn import(
        &mut self,
        state: &mut EndpointState,
        cell: &'static Connection,
        handle: &RmaHandle,
    ) -> Result<Imported, ImportError> {
        if self.phase != Phase::Ready {
            return Err(ImportError::Disconnected);
        }
        let connection = cell.remote.load(Ordering::Relaxed);
        if self.lacks(handle) {
            // The peer sent the chunk before anyone could know the handle.
            self.read_segments(state);
            if self.lacks(handle) {
                return Err(ImportError::NotMapped);
            }
        }
        let published = self.published(connection, handle)?;
        let target = published.target;
        if self.peer_memory.lacks(target.segment) {
            // The peer sent it before anyone could know the handle.
            self.read_segments(state);
        }
        let Some(segment) = self.peer_memory.segment(target.segment) else {
            // Perhaps the peer has taken it back, because the registration has ended meanwhile.
            self.published(connection, handle)?;
            return Err(ImportError::NotMapped);
        };
        let len = usize::try_from(published.len).map_err(|_| ImportError::NotMapped)?;
        let memory = segment.memory(&target, len).ok_or(ImportError::NotMapped)?;
        let [name, secret] = handle.name();
        let ended = self.imports.add(name, cell);
        // The owner answers if the registration has ended meanwhile.
        self.post(state, Header { kind: kind::IMPORT, len: 0, word: connection }, body([name, secret]), None);
        Ok(Imported { memory, rights: published.rights, ended })
    }

    /// Whether the peer publishes this registration where it is not mapped here.
    fn lacks(&mut self, handle: &RmaHandle) -> bool {
        self.peer_memory.registry().is_some_and(|registry| registry.lacks(handle))
    }

    /// What the peer says of a registration that this side may read.
    fn published(&mut self, connection: u32, handle: &RmaHandle) -> Result<Published, ImportError> {
        let published = self.peer_memory.registry().and_then(|registry| registry.find(connection, handle));
        published.filter(|published| published.rights.has(Rights::READ)).ok_or(ImportError::Handle)
    }

    /// The peer has imported memory of this side.
    pub(crate) fn on_import(&mut self, state: &mut EndpointState, header: Header, words: &[u64; BODY_WORDS]) {
        let handle = RmaHandle::from_words([words[0], words[1], 0, 0]);
        let found = state.registry.find(&handle, registry::name(self.number(), header.word));
        match found.map(|(number, ..)| number) {
            Some(number) => state.registry.note_importer(number, self.number()),
            None => self.answer_frame(state, withdrawn(), body([words[0]])),
        }
    }

    /// A registration of this side has ended that the peer has imported.
    pub(crate) fn withdraw(&mut self, state: &mut EndpointState, name: u64) {
        if self.phase == Phase::Ready {
            self.post(state, withdrawn(), body([name]), None);
        }
    }

    /// The peer has ended a registration that this side has imported.
    pub(crate) fn on_withdrawn(&mut self, state: &mut EndpointState, core: &mut Core, words: &[u64; BODY_WORDS]) {
        for cell in self.imports.end_named(words[0]) {
            state.queue_event(core, EventKind::ImportEnded, cell);
        }
    }

    /// A connection is broken, and with it what was imported by it.
    pub(crate) fn end_imports(&mut self, state: &mut EndpointState, core: &mut Core, cell: &'static Connection) {
        for cell in self.imports.end_of(cell) {
            state.queue_event(core, EventKind::ImportEnded, cell);
        }
    }
}

fn withdrawn() -> Header {
    Header { kind: kind::WITHDRAWN, len: 0, word: 0 }
}
