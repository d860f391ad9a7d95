//! A host that keeps nothing but accounts, and holds the engine to its promises.

use crate::config::MAX_SEND;
use cci_proto::engine::{Event, Host, Index, MessageBuffer, Op, Source, Target};
use cci_proto::{Atomic, Failure};
use std::collections::BTreeMap;

/// Bytes of this side's registered memory.
pub(super) const MEMORY: u64 = 1 << 16;
/// The handle of it.
pub(super) const HANDLE: [u64; 2] = [7, 7];

/// What an operation in progress is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Running {
    Send,
    Write(u64),
    Read(u64),
}

/// Where a connection stands for the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Connect was called.
    Asked,
    /// A client asks, and waits for the answer.
    Requested,
    /// Accepted, and not confirmed yet.
    Accepted,
    Redirected,
    Open,
    Broken,
}

/// Accounts.
#[derive(Debug, Default)]
pub(super) struct Books {
    /// Slots that are free.
    pub(super) slots: u32,
    /// Whether local memory has been deregistered.
    pub(super) is_gone: bool,
    /// Operations in progress.
    pub(super) running: BTreeMap<u32, Running>,
    /// Messages that are being put together: length and user.
    places: BTreeMap<u32, (u32, u32)>,
    next_place: u32,
    /// Connections the host knows, with their cookies.
    pub(super) connections: BTreeMap<u32, (u32, Standing)>,
    /// Large messages that wait for memory: user and operation.
    pub(super) large: Vec<(u32, u32)>,
}

impl Books {
    pub(super) fn new(slots: u32) -> Self {
        Self { slots, ..Self::default() }
    }

    /// Nothing is left: every operation has ended, every place was delivered or abandoned.
    pub(super) fn assert_closed(&self) {
        assert!(self.running.is_empty(), "operations that never ended: {:?}", self.running);
        assert!(self.places.is_empty(), "messages neither delivered nor abandoned: {:?}", self.places);
    }

    /// A delivery is for a connection that is open.
    fn assert_open(&self, user: u32) {
        let is_open = self.connections.values().any(|known| *known == (user, Standing::Open));
        assert!(is_open, "delivered to {user}, which is not open: {:?}", self.connections);
    }

    fn is_mine(target: &Target) -> bool {
        target.handle == HANDLE && target.offset.checked_add(target.len).is_some_and(|end| end <= MEMORY)
    }
}

/// A range of an operation of this length.
fn assert_within(at: u64, len: u64, whole: u64) {
    assert!(len > 0 && at.checked_add(len).is_some_and(|end| end <= whole), "{len} bytes at {at} of {whole}");
}

impl Host for Books {
    /// Bytes of memory that follow.
    type Piece = u32;

    fn credit(&self) -> u32 {
        self.slots
    }

    fn begin(&mut self, user: u32, len: u32) -> Option<MessageBuffer> {
        self.assert_open(user);
        assert!(len <= MAX_SEND, "a message of {len} bytes");
        self.slots = self.slots.checked_sub(1)?;
        self.next_place += 1;
        self.places.insert(self.next_place, (len, user));
        Some(MessageBuffer(self.next_place))
    }

    fn fill(&mut self, buffer: MessageBuffer, at: u32, bytes: &[u8]) {
        let (len, _) = self.places[&buffer.0];
        if !bytes.is_empty() {
            assert_within(at.into(), bytes.len() as u64, len.into());
        }
    }

    fn deliver(&mut self, user: u32, buffer: MessageBuffer) {
        self.assert_open(user);
        let (_, begun_by) = self.places.remove(&buffer.0).expect("a place that was begun");
        assert_eq!(user, begun_by, "begun for one and delivered to another");
    }

    fn abandon(&mut self, buffer: MessageBuffer) {
        self.places.remove(&buffer.0).expect("a place that was begun");
        self.slots += 1;
    }

    fn write(&mut self, _: u32, target: &Target, at: u64, bytes: &[u8]) -> Result<(), Failure> {
        assert_within(at, bytes.len() as u64, target.len);
        if Self::is_mine(target) { Ok(()) } else { Err(Failure::RemoteHandle) }
    }

    fn source(&mut self, source: &Source, at: u64, len: u32) -> Result<u32, Failure> {
        if self.is_gone {
            return Err(Failure::Copy);
        }
        let whole = match source {
            Source::Local(op) => match self.running.get(&op.0) {
                Some(Running::Write(whole)) => *whole,
                other => panic!("memory of {op:?} is read, which is {other:?}"),
            },
            Source::Served(target) if Self::is_mine(target) => target.len,
            Source::Served(_) => return Err(Failure::RemoteHandle),
        };
        assert_within(at, len.into(), whole);
        Ok(len)
    }

    fn may_read(&mut self, _: u32, target: &Target) -> Result<(), Failure> {
        if Self::is_mine(target) { Ok(()) } else { Err(Failure::RemoteHandle) }
    }

    fn atomic(&mut self, _: u32, target: &Target, _: Atomic) -> Result<u64, Failure> {
        assert!(Atomic::is_word(target.len), "a word of {} bytes", target.len);
        if Self::is_mine(target) { Ok(self.slots.into()) } else { Err(Failure::RemoteHandle) }
    }

    fn large(&mut self, user: u32, op: u32, len: u64) -> Result<(), Failure> {
        self.assert_open(user);
        if len > MEMORY || self.large.len() >= 64 {
            return Err(Failure::TooLong);
        }
        self.large.push((user, op));
        Ok(())
    }

    fn written_whole(&mut self, user: u32, _: u32, _: Result<(), ()>) {
        self.assert_open(user);
    }

    fn place(&mut self, op: Op, at: u64, bytes: &[u8]) {
        match self.running.get(&op.0) {
            Some(Running::Read(whole)) => assert_within(at, bytes.len() as u64, *whole),
            other => panic!("bytes for {op:?}, which is {other:?}"),
        }
    }

    fn ended(&mut self, op: Op, _: Result<(), Failure>) {
        self.running.remove(&op.0).unwrap_or_else(|| panic!("{op:?} ended, and was not in progress"));
    }

    fn event(&mut self, index: Index, user: u32, event: Event<'_>) -> bool {
        let known = self.connections.get(&index.0).copied();
        let next = match event {
            Event::Request { .. } | Event::Expected { .. } => {
                assert_eq!(known, None, "a request at an index that is taken");
                // Some are turned away, as by a host that has no room.
                if self.connections.len() >= 8 {
                    return false;
                }
                Some(Standing::Requested)
            }
            Event::Open { .. } => {
                let (_, standing) = known.expect("a known connection opens");
                assert!(
                    matches!(standing, Standing::Asked | Standing::Accepted | Standing::Redirected),
                    "{standing:?}"
                );
                Some(Standing::Open)
            }
            Event::Refused { .. } => {
                let (_, standing) = known.expect("a known connection is refused");
                assert!(!matches!(standing, Standing::Open | Standing::Broken), "{standing:?}");
                None
            }
            Event::Redirected { .. } => {
                let (_, standing) = known.expect("a known connection is redirected");
                assert!(matches!(standing, Standing::Asked | Standing::Redirected), "{standing:?}");
                Some(Standing::Redirected)
            }
            Event::Broken(_) => {
                assert_eq!(known.map(|(_, standing)| standing), Some(Standing::Open), "only what is open breaks");
                Some(Standing::Broken)
            }
            Event::Silent => {
                assert_eq!(known.map(|(_, standing)| standing), Some(Standing::Open), "only what is open is silent");
                Some(Standing::Open)
            }
        };
        assert!(known.is_none_or(|(cookie, _)| cookie == user), "the cookie of another connection");
        match next {
            Some(standing) => self.connections.insert(index.0, (user, standing)),
            None => self.connections.remove(&index.0),
        };
        true
    }
}
