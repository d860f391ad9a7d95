//! An interface behind its lock: objects, operations, and links to partners.

use crate::memory::Source;
use crate::objects::Objects;
use crate::operations::{Operations, Whom};
use crate::partner::{Out, Partner, Partners};
use crate::shared::rings::{COMMANDS, In, Own};
use crate::types::{Limits, ProcessId};
use crate::wire::{self, Head, LONGEST};
use cci::{Connection, Endpoint, Event, SendError};
use cci_ground::Changing;
use cci_peers::{Name, Peer, Peers};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Contexts of this interface's operations: what has ended, and the operation.
/// A message of which only a failure is reported.
pub(crate) const SENT: u64 = 1 << 56;
pub(crate) const READ: u64 = 2 << 56;
/// The message of a put or swap, which counts as undelivered until its end is reported.
pub(crate) const GIVEN: u64 = 3 << 56;
const KIND: u64 = 0xff << 56;

/// One of so many calls makes progress that begin operations, or find an event.
const OFTEN: u32 = 8;
/// How long a sleep lasts while messages wait for room.
const PAUSE: Duration = Duration::from_millis(1);
/// The longest put and reply that go in a message.
const MOST_SHORT: usize = 16_384;

/// What has become of a message.
pub(crate) enum Sending {
    Gone,
    /// There is no room now, or no link any more, which reports its end.
    Blocked,
}

impl Sending {
    pub(crate) fn of(sent: Result<(), SendError>) -> Self {
        sent.map_or(Self::Blocked, |()| Self::Gone)
    }
}

pub(crate) struct State {
    pub(crate) objects: Objects,
    pub(crate) operations: Operations,
    pub(crate) peers: Peers<()>,
    pub(crate) partners: Partners,
    /// The last partner by its name: both are for ever.
    pub(crate) last: Option<(ProcessId, Peer)>,
    /// Messages of this process to itself.
    pub(crate) to_self: VecDeque<Vec<u8>>,
    pub(crate) own: ProcessId,
    pub(crate) uid: u32,
    pub(crate) jid: u32,
    /// Messages are made here.
    pub(crate) scratch: Vec<u8>,
    /// Partners for whom there was no room.
    pub(crate) blocked: Vec<Peer>,
    now: Instant,
    pub(crate) is_closed: bool,
    /// A call waits, before it closes, until the last message is delivered.
    pub(crate) is_closing: bool,
    /// Messages of puts and swaps that CCI has, and has not reported as delivered.
    pub(crate) undelivered: u32,
    pub(crate) has_failed: bool,
    /// Messages of partners that broke the format.
    pub(crate) malformed: u64,
    /// Counts calls that may go on without progress.
    calls: u32,
    /// Reads have begun, of which some may have ended in the call.
    pub(crate) has_begun_reads: bool,
    /// Commands of calls, where there is an engine.
    pub(crate) commands: Option<In<COMMANDS, Own<COMMANDS>>>,
}

/// The name of a process among peers.
pub(crate) fn name_of(id: ProcessId) -> Name {
    Name::Number(id.word())
}

impl Changing for State {
    #[inline]
    fn changes(&self) -> u64 {
        self.objects.changes.get()
    }

    fn left(&self) -> Option<Duration> {
        let timer = self.peers.poll_timeout().map(|at| at.saturating_duration_since(Instant::now()));
        let pause = (!self.blocked.is_empty()).then_some(PAUSE);
        let own = (!self.to_self.is_empty()).then_some(Duration::ZERO);
        [timer, pause, own].into_iter().flatten().min()
    }

    /// An engine sleeps through what calls of the program leave to the program.
    fn wakes_sleeper(&self) -> bool {
        self.commands.is_none() || self.is_closed || self.has_work()
    }
}

impl State {
    pub(crate) fn new(
        (number, limits): (u32, Limits),
        own: ProcessId,
        (uid, jid): (u32, u32),
        peers: Peers<()>,
    ) -> Self {
        Self {
            objects: Objects::new(number, limits, uid),
            operations: Operations::new(),
            peers,
            partners: Partners::default(),
            last: None,
            to_self: VecDeque::new(),
            own,
            uid,
            jid,
            scratch: Vec::new(),
            blocked: Vec::new(),
            now: Instant::now(),
            is_closed: false,
            is_closing: false,
            undelivered: 0,
            has_failed: false,
            malformed: 0,
            calls: 0,
            has_begun_reads: false,
            commands: None,
        }
    }

    /// Takes an event of the endpoint.
    #[inline]
    pub(crate) fn take(&mut self, endpoint: &Endpoint, event: Event<'_>) {
        match event {
            Event::Received(message) => {
                let peer = message.connection().and_then(|connection| self.peers.peer_of(connection));
                let Some(peer) = peer else { return self.take_other(endpoint, Event::Received(message)) };
                let source = match message.bytes() {
                    Some(bytes) => Source::Bytes(bytes),
                    None => Source::View(message.view()),
                };
                self.take_message(endpoint, Whom::Peer(peer), &source);
            }
            Event::Completed(ended) if ended.context() & KIND == GIVEN => {
                self.on_delivered(ended.context() & !KIND, ended.outcome().is_ok());
            }
            Event::Completed(ended) if ended.context() & KIND == SENT => {
                if ended.outcome().is_err() {
                    self.fail(ended.context() & !KIND);
                }
            }
            event => self.take_other(endpoint, event),
        }
    }

    #[inline(never)]
    fn take_other(&mut self, endpoint: &Endpoint, event: Event<'_>) {
        if let Event::Completed(ended) = &event
            && ended.context() & KIND == READ
        {
            return self.on_read(endpoint, ended.context() & !KIND, ended.outcome().is_ok());
        }
        // The clock is read for what opens and closes links alone.
        if !matches!(event, Event::Received(_) | Event::Completed(_)) {
            self.now = Instant::now();
        }
        match self.peers.handle_event(endpoint, event, self.now) {
            Some(Event::EndpointFailed(_)) => self.has_failed = true,
            // A request is dropped here, and so rejected: it is a stranger's.
            _ => self.take_changes(endpoint),
        }
    }

    #[inline(never)]
    fn take_message(&mut self, endpoint: &Endpoint, whom: Whom, source: &Source<'_>) {
        let is_right = match source {
            Source::Bytes(bytes) if bytes.first() == Some(&wire::PUT) => self.take_put(endpoint, whom, bytes),
            _ => self.take_any(endpoint, whom, source),
        };
        if !is_right {
            self.break_link(endpoint, whom);
        }
    }

    #[inline(never)]
    fn take_any(&mut self, endpoint: &Endpoint, whom: Whom, source: &Source<'_>) -> bool {
        let parsed = match source {
            Source::Bytes(bytes) => wire::parse(bytes),
            Source::View(view) => {
                view.prefetch();
                let mut front = [0; LONGEST];
                let len = view.copy_to(0, &mut front);
                wire::parse(&front[..len])
            }
        };
        parsed.is_some_and(|(head, len)| self.take_head(endpoint, whom, head, (source, len)))
    }

    /// False: the partner has broken the rules.
    fn take_head(&mut self, endpoint: &Endpoint, whom: Whom, head: Head, (source, from): (&Source<'_>, usize)) -> bool {
        match head {
            Head::Ident { uid, jid } => {
                let Whom::Peer(peer) = whom else { return false };
                let is_first = |partner: &mut Partner| partner.identity.replace((uid, jid)).is_none();
                source.len() == from && self.partners.get_mut(peer).is_some_and(is_first)
            }
            Head::Request(request) => self.take_request(endpoint, whom, &request, (source, from)),
            Head::Answer(answer) => self.take_answer(endpoint, whom, &answer, (source, from)),
        }
    }

    /// Whether a call that may go on without progress makes some.
    #[inline]
    pub(crate) fn is_progress_due(&mut self) -> bool {
        self.calls = self.calls.wrapping_add(1);
        self.calls.is_multiple_of(OFTEN)
    }

    /// Whether something waits that no event of CCI is about.
    #[inline]
    pub(crate) fn has_deferred_work(&self) -> bool {
        self.has_work() || self.peers.has_changes()
    }

    /// Goes on with what waited for room, with messages of this process to itself, and with what is
    /// due by the clock.
    #[inline(never)]
    pub(crate) fn catch_up(&mut self, endpoint: &Endpoint) {
        if self.peers.poll_timeout().is_some() {
            self.now = Instant::now();
            self.peers.handle_timeout(endpoint, self.now);
        }
        self.take_changes(endpoint);
        self.pump_blocked(endpoint);
        self.serve_self(endpoint);
    }

    /// Whether an engine has something to do that no event tells it: messages of this process to
    /// itself, messages that wait for room, links to be opened.
    #[inline]
    pub(crate) fn has_work(&self) -> bool {
        !self.to_self.is_empty() || !self.blocked.is_empty() || self.peers.poll_timeout().is_some()
    }

    /// The longest message with this connection, so that larger ones are offered.
    pub(crate) fn short(connection: Connection) -> usize {
        (connection.max_send_size().unwrap_or(0) as usize).min(MOST_SHORT + LONGEST)
    }

    pub(crate) fn send_to_self(&mut self, endpoint: &Endpoint, out: Out) {
        let mut message = Vec::new();
        match out {
            Out::Answer(answer) => answer.emit(&mut message),
            Out::Operation(number) => {
                if self.write_message(number, &mut message) {
                    self.to_self.push_back(message);
                    self.on_written(number);
                } else {
                    self.abandon(endpoint, number);
                }
                return;
            }
            // Of links alone: there is none to this process itself.
            Out::Reads(_) | Out::Ident => return,
        }
        self.to_self.push_back(message);
    }

    /// Takes the messages of this process to itself.
    pub(crate) fn serve_self(&mut self, endpoint: &Endpoint) {
        while let Some(message) = self.to_self.pop_front() {
            self.take_message(endpoint, Whom::Own, &Source::Bytes(&message));
        }
    }

    /// Ends all without events.
    pub(crate) fn close(&mut self, endpoint: &Endpoint) {
        self.is_closed = true;
        self.objects.changes.count();
        self.peers.close(endpoint);
        self.operations = Operations::new();
        self.objects.memories.values_mut().for_each(|memory| memory.own = None);
        self.partners = Partners::default();
        self.last = None;
        self.to_self.clear();
    }
}
