//! An interface behind its lock: objects, operations, and links to partners.

use crate::memory::Source;
use crate::objects::Objects;
use crate::operations::{Operations, Phase, Whom};
use crate::shared::rings::{COMMANDS, In, Own};
use crate::types::{Limits, ProcessId};
use crate::wire::{self, Answer, Head, LONGEST};
use cci::{Connection, Endpoint, Event, Notify, SendError};
use cci_ground::Changing;
use cci_peers::{Change, Name, Peer, Peers};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Contexts of this interface's operations: what has ended, and the operation.
/// A message of which only a failure is reported.
pub(crate) const SENT: u64 = 1 << 56;
pub(crate) const READ: u64 = 2 << 56;
/// The message of a put or swap, which counts as undelivered until its end is reported.
pub(crate) const GIVEN: u64 = 3 << 56;
const KIND: u64 = 0xff << 56;

/// Answers that may wait for a peer.
const MOST_ANSWERS: usize = 65_536;
/// One of so many calls makes progress that begin operations, or find an event.
const OFTEN: u32 = 8;
/// How long a sleep lasts while messages wait for room.
const PAUSE: Duration = Duration::from_millis(1);
/// The longest put and reply that go in a message.
const MOST_SHORT: usize = 16_384;

/// What waits to be sent to a partner.
#[derive(Debug)]
pub(crate) enum Out {
    /// The message of an operation.
    Operation(u64),
    /// Reads of an operation.
    Reads(u64),
    Answer(Answer),
}

#[derive(Debug)]
pub(crate) struct Partner {
    pub(crate) id: ProcessId,
    connection: Option<Connection>,
    /// Counts links.
    link: u32,
    /// User and job, once it has said so on this link.
    pub(crate) identity: Option<(u32, u32)>,
    has_introduced: bool,
    outbox: VecDeque<Out>,
    /// Its requests that are open here.
    pub(crate) served: u32,
}

impl Partner {
    fn new(id: ProcessId) -> Self {
        let (identity, outbox) = (None, VecDeque::new());
        Self { id, connection: None, link: 0, identity, has_introduced: false, outbox, served: 0 }
    }

    /// The connection, if a message may go at once: nothing is before it.
    #[inline]
    pub(crate) fn is_free(&self) -> Option<Connection> {
        self.connection.filter(|_| self.has_introduced && self.outbox.is_empty())
    }
}

/// Partners by the number of the peer.
#[derive(Debug)]
pub(crate) struct Partners(Vec<Option<Partner>>);

impl Partners {
    #[inline]
    pub(crate) fn get(&self, peer: Peer) -> Option<&Partner> {
        self.0.get(peer.index())?.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, peer: Peer) -> Option<&mut Partner> {
        self.0.get_mut(peer.index())?.as_mut()
    }

    fn get_or_insert(&mut self, peer: Peer, id: ProcessId) -> &mut Partner {
        if self.0.len() <= peer.index() {
            self.0.resize_with(peer.index() + 1, || None);
        }
        self.0[peer.index()].get_or_insert_with(|| Partner::new(id))
    }
}

/// What has become of a message.
pub(crate) enum Sending {
    Gone,
    /// There is no room now.
    Blocked,
    /// There is no link any more.
    Lost,
}

impl Sending {
    pub(crate) fn of(why: SendError) -> Self {
        match why {
            SendError::NoBuffers => Self::Blocked,
            _ => Self::Lost,
        }
    }
}

pub(crate) struct State {
    pub(crate) objects: Objects,
    pub(crate) operations: Operations,
    pub(crate) peers: Peers<()>,
    pub(crate) partners: Partners,
    /// The last partner by its name: both are for ever.
    last: Option<(ProcessId, Peer)>,
    /// Messages of this process to itself.
    pub(crate) to_self: VecDeque<Vec<u8>>,
    pub(crate) own: ProcessId,
    pub(crate) uid: u32,
    pub(crate) jid: u32,
    /// Messages are made here.
    pub(crate) scratch: Vec<u8>,
    /// Partners for whom there was no room.
    blocked: Vec<Peer>,
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
            partners: Partners(Vec::new()),
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

    /// The partner of this name. `None`: there are too many.
    pub(crate) fn whom(&mut self, id: ProcessId) -> Option<Whom> {
        if id == self.own {
            return Some(Whom::Own);
        }
        // Programs go on with the partner that they were with.
        if let Some((last, peer)) = self.last
            && last == id
        {
            return Some(Whom::Peer(peer));
        }
        let peer = self.peers.peer(&name_of(id)).ok()?;
        self.partner(peer)?;
        self.last = Some((id, peer));
        Some(Whom::Peer(peer))
    }

    pub(crate) fn partner(&mut self, peer: Peer) -> Option<&mut Partner> {
        let Name::Number(word) = self.peers.name(peer)? else { return None };
        let id = ProcessId::of_word(*word);
        Some(self.partners.get_or_insert(peer, id))
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

    #[cold]
    fn break_link(&mut self, endpoint: &Endpoint, whom: Whom) {
        if let Whom::Peer(peer) = whom {
            self.malformed += 1;
            self.peers.hang_up(endpoint, peer);
            self.on_down(endpoint, peer);
        }
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

    /// What has become of links.
    #[inline]
    pub(crate) fn take_changes(&mut self, endpoint: &Endpoint) {
        if self.peers.has_changes() {
            self.take_all_changes(endpoint);
        }
    }

    #[cold]
    #[inline(never)]
    fn take_all_changes(&mut self, endpoint: &Endpoint) {
        while let Some(change) = self.peers.poll_change() {
            match change {
                Change::Up { peer, connection, .. } => {
                    if let Some(partner) = self.partner(peer) {
                        (partner.connection, partner.identity, partner.has_introduced) =
                            (Some(connection), None, false);
                        partner.link = partner.link.wrapping_add(1);
                    }
                    self.pump(endpoint, peer);
                }
                Change::Down { peer, .. } => self.on_down(endpoint, peer),
                Change::Failed { peer, .. } => self.on_failed(peer),
                _ => {}
            }
        }
    }

    /// The link to a partner is no more: what was under way on it has failed.
    fn on_down(&mut self, endpoint: &Endpoint, peer: Peer) {
        let Some(partner) = self.partners.get_mut(peer) else { return };
        (partner.connection, partner.has_introduced) = (None, false);
        let mut outbox = std::mem::take(&mut partner.outbox);
        for number in self.operations.with(Whom::Peer(peer)) {
            let is_queued = |of: &crate::operations::Operation| of.phase == Phase::Queued && of.kind.is_initiator();
            if !self.operations.get(number).is_some_and(is_queued) {
                self.fail(number);
            }
        }
        outbox.retain(|out| matches!(out, Out::Operation(number) if self.operations.get(*number).is_some()));
        let has_more = !outbox.is_empty();
        if let Some(partner) = self.partners.get_mut(peer) {
            // What has failed names it.
            partner.identity = None;
            partner.outbox = outbox;
        }
        if has_more {
            self.peers.open(endpoint, peer, Instant::now());
        }
    }

    /// The partner cannot be reached: nothing for it will be sent.
    fn on_failed(&mut self, peer: Peer) {
        if let Some(partner) = self.partners.get_mut(peer) {
            partner.outbox.clear();
        }
        for number in self.operations.with(Whom::Peer(peer)) {
            self.fail(number);
        }
    }

    /// Has something sent, now or when there is a link and room.
    pub(crate) fn post(&mut self, endpoint: &Endpoint, whom: Whom, out: Out) {
        match whom {
            Whom::Own => self.send_to_self(endpoint, out),
            Whom::Peer(peer) => {
                let Some(partner) = self.partners.get_mut(peer) else { return };
                // What answers is for the link that it came by.
                if partner.connection.is_none() && !matches!(out, Out::Operation(_)) {
                    return;
                }
                if partner.outbox.len() >= MOST_ANSWERS && matches!(out, Out::Answer(_)) {
                    self.malformed += 1;
                    self.peers.hang_up(endpoint, peer);
                    return self.on_down(endpoint, peer);
                }
                partner.outbox.push_back(out);
                if partner.outbox.len() == 1 {
                    self.pump(endpoint, peer);
                }
            }
        }
    }

    /// Sends what waits for a partner, as far as there is room.
    fn pump(&mut self, endpoint: &Endpoint, peer: Peer) {
        let Some(partner) = self.partners.get_mut(peer) else { return };
        let Some(connection) = partner.connection else {
            if !partner.outbox.is_empty() {
                self.peers.open(endpoint, peer, Instant::now());
            }
            return;
        };
        if !partner.has_introduced {
            match endpoint.send(connection, &wire::ident(self.uid, self.jid), Notify::OnFailure(0)) {
                Ok(()) => partner.has_introduced = true,
                Err(_) => return self.blocked.push(peer),
            }
        }
        while let Some(out) = self.partners.get_mut(peer).and_then(|partner| partner.outbox.pop_front()) {
            let sending = match out {
                Out::Operation(number) => self.send_operation(endpoint, connection, number),
                Out::Reads(number) => self.begin_reads(endpoint, connection, number),
                Out::Answer(answer) => {
                    self.scratch.clear();
                    answer.emit(&mut self.scratch);
                    match endpoint.send(connection, &self.scratch, Notify::OnFailure(0)) {
                        Ok(()) => Sending::Gone,
                        Err(why) => Sending::of(why),
                    }
                }
            };
            if matches!(sending, Sending::Gone) {
                continue;
            }
            if let Some(partner) = self.partners.get_mut(peer) {
                partner.outbox.push_front(out);
            }
            // A link that is lost reports its end.
            return self.blocked.push(peer);
        }
    }

    /// Sends what found no room before.
    fn pump_blocked(&mut self, endpoint: &Endpoint) {
        if self.blocked.is_empty() {
            return;
        }
        for peer in std::mem::take(&mut self.blocked) {
            self.pump(endpoint, peer);
        }
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
        self.take_time(endpoint);
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

    fn send_to_self(&mut self, endpoint: &Endpoint, out: Out) {
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
            // Nothing of this process is offered to itself.
            Out::Reads(_) => return,
        }
        self.to_self.push_back(message);
    }

    /// Takes the messages of this process to itself.
    pub(crate) fn serve_self(&mut self, endpoint: &Endpoint) {
        while let Some(message) = self.to_self.pop_front() {
            self.take_message(endpoint, Whom::Own, &Source::Bytes(&message));
        }
    }

    /// What is due by the clock.
    fn take_time(&mut self, endpoint: &Endpoint) {
        if self.peers.poll_timeout().is_some() {
            self.now = Instant::now();
            self.peers.handle_timeout(endpoint, self.now);
            self.take_changes(endpoint);
        }
    }

    /// Ends all without events.
    pub(crate) fn close(&mut self, endpoint: &Endpoint) {
        self.is_closed = true;
        self.objects.changes.count();
        self.peers.close(endpoint);
        self.operations = Operations::new();
        self.objects.memories.values_mut().for_each(|memory| memory.own = None);
        self.partners = Partners(Vec::new());
        self.last = None;
        self.to_self.clear();
    }

    /// User and job of a partner that has introduced itself, and who it is.
    pub(crate) fn identity(&self, whom: Whom) -> Option<(ProcessId, u32, u32)> {
        match whom {
            Whom::Own => Some((self.own, self.uid, self.jid)),
            Whom::Peer(peer) => {
                let partner = self.partners.get(peer)?;
                partner.identity.map(|(uid, jid)| (partner.id, uid, jid))
            }
        }
    }

    /// The number of the link to a partner; `None`: there is none now.
    pub(crate) fn link(&self, whom: Whom) -> Option<u32> {
        match whom {
            Whom::Own => Some(0),
            Whom::Peer(peer) => {
                self.partners.get(peer).filter(|partner| partner.connection.is_some()).map(|partner| partner.link)
            }
        }
    }
}
