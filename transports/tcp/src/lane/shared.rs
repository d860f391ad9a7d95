//! What all lanes of an endpoint share. A method of a lane gets it beside the endpoint's core.

use crate::inbox::Inbox;
use crate::lane::grants::{FIRST, MOST};
use crate::lane::pending_connect::PendingConnect;
use crate::lane::posted::Ending;
use crate::lane::work::Work;
use crate::seal::{Asked, RECORD, Sealed, Sealing, Secret};
use crate::settings::Settings;
use cci_mem::pages::Pages;
use cci_proto::{EventKind, Failure, Rights, Time};
use cci_transport::{
    CallError, Connection, Core, ExpectedClients, NameCall, PendingEvents, PollSet, RegistrationTable,
};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

/// Bytes of the buffer that streams are read into, or more: a whole message fits twice.
pub(crate) const SCRATCH: usize = 64 << 10;
/// Bytes that wait in a lane before further messages wait in their own memory.
pub(crate) const OUT: usize = 64 << 10;
/// Buffers that are kept for lanes with bytes to send.
const KEPT: usize = 16;

/// A peer whose kernel acknowledges nothing for so long is gone, unless the endpoint is patient.
const GONE_AFTER: Duration = Duration::from_secs(30);

/// Why a lane ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The stream has ended, or broke.
    Gone,
    /// The peer broke the protocol.
    Violation,
    /// The peer's kernel has not answered for too long.
    Silent,
    /// The listener has no room for another stranger.
    Full,
    /// Nobody needs it.
    Idle,
    /// A record or a handshake is not what a side with the secret has sealed.
    Forged,
    /// Its stream is a further one of the lane that has made this offer, by this number, and has
    /// begun this handshake.
    Joins([u64; 2], usize, Option<Box<Asked>>),
    /// Setting it up failed; why, in a sentence.
    Refused(String),
    /// The system refuses a call that it needs; which one, in a sentence.
    System(String),
}

/// Where a connect goes on.
pub(crate) enum Elsewhere {
    /// At the endpoint of this URI, in a peer's words.
    Uri(String),
    /// At another address of its host.
    Address(SocketAddr),
}

pub(crate) struct Shared {
    /// The time when the call began to make progress.
    pub(crate) now: Time,
    pub(crate) set: PollSet,
    pub(crate) settings: Settings,
    /// What sealed streams share; `None`: this side has no secret.
    pub(crate) sealing: Option<Box<Sealing>>,
    /// Random identity of the endpoint.
    pub(crate) identity: [u64; 2],
    pub(crate) max_send_size: u32,
    /// A peer whose kernel acknowledges nothing for so long is gone; `None`: peers are waited for
    /// until the stream ends.
    pub(crate) gone_after: Option<Duration>,
    pub(crate) inbox: Inbox,
    pub(crate) registrations: RegistrationTable<()>,
    /// Registrations with rights for peers.
    pub(crate) exposed: usize,
    pub(crate) pending_events: PendingEvents,
    /// Clients that another endpoint redirects here.
    pub(crate) expected: ExpectedClients<Time>,
    /// Connects that are to ask elsewhere.
    pub(crate) redirected: Vec<(&'static Connection, PendingConnect, Elsewhere)>,
    /// What streams are read into; taken out while it is in use.
    scratch: Option<Pages>,
    buffers: Vec<Vec<u8>>,
    /// Empty, for lanes that begin to have operations.
    #[expect(clippy::vec_box, reason = "a lane holds its box, so that an idle one is small")]
    works: Vec<Box<Work>>,
    /// Lanes that have something to send, or more to read than one call takes.
    pub(crate) active: Vec<u32>,
    /// Empty: memory for the next list of those.
    pub(crate) spare_active: Vec<u32>,
    /// Lanes whose peers are to be told what was taken or granted.
    pub(crate) owing: Vec<u32>,
    /// Lanes whose peers need their grants with the program's answer, or in the next call.
    pub(crate) urgent: Vec<u32>,
    /// Lanes whose peers want grants, where there were none, in turn.
    pub(crate) wanting: VecDeque<u32>,
    /// Lanes that share the receive slots.
    pub(crate) sharing: usize,
    /// Something waits for a slot where all are granted: lanes are to give unused grants back.
    pub(crate) is_short: bool,
    /// A request was refused for that, and will come again.
    pub(crate) keeps_one: bool,
    /// The lanes in `wanting` are to be looked at.
    pub(crate) grants_due: bool,
    /// Lanes that are over.
    pub(crate) ended: Vec<(u32, Cause)>,
    /// When the timers are to be looked at again, at the latest.
    pub(crate) check_at: Option<Time>,
    /// Large messages wait for memory.
    pub(crate) landings_wait: bool,
    /// Operations and connects that are open.
    pub(crate) open_operations: usize,
    /// Frames for connections or operations that do not exist any more.
    pub(crate) strays: u64,
    /// Lanes that broke the protocol.
    pub(crate) malformed: u64,
}

impl Shared {
    pub(crate) fn new(
        core: &Core,
        (settings, secret): (Settings, Option<Secret>),
        max_send_size: u32,
        words: [u64; 4],
    ) -> Result<Self, CallError> {
        let [key, first, second, spread] = words;
        let scratch = SCRATCH.max(2 * max_send_size as usize) + if secret.is_some() { RECORD } else { 0 };
        let mut buffers = Vec::with_capacity(KEPT);
        buffers.extend(secret.iter().flat_map(|_| [vec![0; OUT], vec![0; OUT]]));
        let sealing = secret.map(|secret| Sealing::new(secret, spread)).transpose().by("mmap")?;
        Ok(Self {
            sealing: sealing.map(Box::new),
            now: cci_transport::monotonic(),
            set: PollSet::new()?,
            settings,
            identity: [first, second],
            max_send_size,
            gone_after: (!core.is_patient()).then_some(GONE_AFTER),
            inbox: Inbox::new(core, max_send_size).by("mmap")?,
            registrations: RegistrationTable::new(key),
            exposed: 0,
            pending_events: PendingEvents::default(),
            expected: ExpectedClients::default(),
            redirected: Vec::new(),
            scratch: Some(Pages::new(scratch).by("mmap")?),
            buffers,
            works: Vec::with_capacity(KEPT),
            active: Vec::new(),
            spare_active: Vec::new(),
            owing: Vec::new(),
            urgent: Vec::new(),
            wanting: VecDeque::new(),
            sharing: 1,
            is_short: false,
            keeps_one: false,
            grants_due: false,
            ended: Vec::new(),
            check_at: None,
            landings_wait: false,
            open_operations: 0,
            strays: 0,
            malformed: 0,
        })
    }

    /// Takes the buffer that streams are read into. It is put back by [`Shared::put_scratch`].
    pub(crate) fn take_scratch(&mut self) -> Option<Pages> {
        self.scratch.take()
    }

    pub(crate) fn put_scratch(&mut self, scratch: Pages) {
        self.scratch = Some(scratch);
    }

    /// Takes the buffer that records are read into. It is put back by [`Shared::put_cipher`].
    pub(crate) fn take_cipher(&mut self) -> Option<Pages> {
        self.sealing.as_mut()?.take_cipher()
    }

    pub(crate) fn put_cipher(&mut self, cipher: Pages) {
        if let Some(sealing) = &mut self.sealing {
            sealing.put_cipher(cipher);
        }
    }

    /// Forgets the keys of a stream, which has ended.
    pub(crate) fn end_seal(&mut self, seal: &Sealed) {
        if let (Some(sealing), Some(index)) = (&mut self.sealing, seal.index()) {
            sealing.end(index);
        }
    }

    /// A buffer for bytes that cannot leave at once, with whatever was in it before.
    pub(crate) fn buffer(&mut self) -> Vec<u8> {
        // Records take longer to leave than bytes in clear: more waits behind them, now and then.
        let whole = || if self.sealing.is_some() { vec![0; OUT] } else { Vec::new() };
        self.buffers.pop().unwrap_or_else(whole)
    }

    /// Takes such a buffer back.
    pub(crate) fn reuse(&mut self, buffer: Vec<u8>) {
        if buffer.capacity() > 0 && buffer.capacity() <= 2 * OUT && self.buffers.len() < KEPT {
            self.buffers.push(buffer);
        }
    }

    /// Messages that each lane may have granted: together a quarter of the slots that the program
    /// allows now, because what a lane has granted may come in one piece, and the program gets to
    /// others behind it.
    pub(crate) fn share(&self, core: &Core) -> u32 {
        let (slots, _) = core.recv_count();
        let number = |count: usize| u32::try_from(count).unwrap_or(MOST);
        let least = number(slots / self.sharing).clamp(1, FIRST);
        number(slots / 4 / self.sharing).clamp(least, MOST)
    }

    /// What a lane with operations has.
    pub(crate) fn work(&mut self) -> Box<Work> {
        self.works.pop().unwrap_or_default()
    }

    /// Takes it back, once it is empty.
    pub(crate) fn reuse_work(&mut self, work: Box<Work>) {
        if self.works.len() < KEPT {
            self.works.push(work);
        }
    }

    /// Ends a message or an RMA.
    #[inline]
    pub(crate) fn end(&mut self, core: &mut Core, ending: Ending, outcome: Result<(), Failure>) {
        self.open_operations = self.open_operations.saturating_sub(1);
        core.end_operation(ending.slot, ending.cell, ending.posted, outcome);
    }

    /// Has the timers looked at by this time.
    #[inline]
    pub(crate) fn check_by(&mut self, at: Time) {
        self.check_at = Some(self.check_at.map_or(at, |other| other.min(at)));
    }

    /// Queues an event about a connection.
    pub(crate) fn notify(&mut self, core: &mut Core, kind: EventKind, cell: &'static Connection) {
        self.pending_events.queue(core, kind, cell);
        if let Some(again) = self.pending_events.deadline(self.now) {
            self.check_by(again);
        }
    }

    /// Counts a registration with these rights, or its end.
    pub(crate) fn count_exposed(&mut self, rights: Rights, is_new: bool) {
        if rights != Rights::NONE {
            self.exposed = if is_new { self.exposed + 1 } else { self.exposed.saturating_sub(1) };
        }
    }
}

/// The name of a connection among registrations.
pub(crate) fn name_of(connection: &Connection) -> u64 {
    connection.place().into()
}
