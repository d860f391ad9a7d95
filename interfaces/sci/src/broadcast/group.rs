//! Groups that this process is a member of, as the state of a host has them.

use crate::errors::Error;
use crate::mirror::Groups;
use crate::partner::Key;
use crate::wire::Message;
use cci::Memory;
use cci_mem::segment::Segment;
use cci_peers::Peer;
use rustix::fd::{BorrowedFd, OwnedFd};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// The memory of a group on this host: each member of the host maps it, and keeps it.
pub(crate) struct Commons {
    pages: Arc<Segment>,
    pub(super) len: usize,
    /// Tells the hosts of a group apart.
    pub(super) key: u64,
}

impl Commons {
    /// Makes the memory of the first member. All of it is reserved.
    pub(super) fn create(len: usize, key: u64) -> Result<Self, Error> {
        let pages = Segment::create("cci-sci-broadcast", len).map_err(|_| Error::NoSpace)?;
        pages.reserve(0, len).map_err(|_| Error::NoSpace)?;
        Ok(Self { pages: Arc::new(pages), len, key })
    }

    /// Maps the memory that another member has handed over. It cannot be cut.
    pub(super) fn attach(file: OwnedFd, len: u64, key: u64) -> Result<Self, Error> {
        let len = usize::try_from(len).map_err(|_| Error::NoSpace)?;
        let pages = Segment::attach(file, len).map_err(|_| Error::System)?;
        Ok(Self { pages: Arc::new(pages), len, key })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn memory(&self) -> Memory {
        // The range is the whole.
        Memory::of_peer(Arc::clone(&self.pages), 0, self.len).unwrap_or_else(Memory::none)
    }

    pub(super) fn file(&self) -> Option<BorrowedFd<'_>> {
        self.pages.file_of().ok()
    }
}

/// A member of another host.
pub(super) struct Member {
    pub(super) memory: u64,
    pub(super) is_published: bool,
}

/// Another host: one of its members stores for all of them.
pub(super) struct Lane {
    /// The link to that member, and the member's token.
    pub(super) to: Key,
    /// The last patch that was to be confirmed, and the last one that was.
    pub(super) asked: u64,
    pub(super) confirmed: u64,
    /// Patches since the confirmed one. Another member of the host gets them if this one ends.
    pub(super) unconfirmed: VecDeque<(u64, Groups)>,
}

/// A group that this process is a member of.
pub(crate) struct Group {
    pub(crate) commons: Arc<Commons>,
    /// The name of the member on this host, and its place there.
    pub(super) claim: u64,
    pub(super) place: u32,
    pub(super) token: u64,
    /// The segment and the connections of this process.
    pub(super) uses: u32,
    pub(super) is_published: bool,
    pub(super) members: BTreeMap<Key, Member>,
    /// Members of other hosts that have not answered.
    pub(super) asked: BTreeSet<Peer>,
    /// By the memory of the host.
    pub(super) lanes: BTreeMap<u64, Lane>,
    /// Patches that were sent.
    pub(super) sent: u64,
    /// Which of them a connection or a queue waits for: its token, and the number it has for the
    /// patch.
    pub(super) waits: VecDeque<(u64, u64, u64)>,
}

impl Group {
    pub(super) fn join_message(&self, group: u32, is_answer: bool) -> Message {
        let (len, memory) = (self.commons.len as u64, self.commons.key);
        Message::Join { token: self.token, group, len, memory, is_answer, is_published: self.is_published }
    }

    pub(super) fn has_published(&self) -> bool {
        self.is_published || self.members.values().any(|member| member.is_published)
    }
}
