//! The trait [`Link`], and [`Reliable`], which drives an engine over a link and so makes it a
//! transport (`docs/design/reliable.md`).

#![forbid(unsafe_code)]

mod connection_setup;
mod cookies;
mod deferred;
mod fault;
mod gauges;
mod host;
mod inbox;
mod keys;
mod link;
mod multicast;
mod names;
mod opening;
mod operation_table;
mod outbox;
mod readiness;
mod registrations;
mod send;
mod shares;
#[cfg(feature = "trace")]
mod trace;
mod transport;

pub use fault::{FaultCounters, FaultLink, Faults};
pub use link::{Groups, Incoming, Link, Names, Outgoing, Wait};
pub use opening::{MAX_SEND_SIZE, transport_over};
#[cfg(feature = "trace")]
pub use trace::TracedLink;

use cci_mem::guarded::Threading;
use cci_proto::engine::{Config, Engine};
use cci_proto::{Failure, MAX_REQUEST, Rights, Status, Time, wire};
use cci_transport::{
    Background, BackgroundWork, Core, ExpectedClients, NameCall, OpenError, PendingEvents, Placed, Readiness, Security,
    random, room_for,
};
use cookies::PendingConnections;
use deferred::index_of;
use gauges::GaugeTimes;
use host::{HostCtx, HostState};
use inbox::Inbox;
use keys::Keys;
use multicast::Group;
use names::PendingNames;
use operation_table::Operations;
use outbox::Outbox;
use readiness::HandleState;
use registrations::Registrations;
use send::Coalescer;
use std::collections::VecDeque;
use std::time::Duration;

/// Frames taken from the link in one call.
const BUDGET: usize = 64;
/// Interval at which events without a slot are retried.
const RETRY_EVENTS_EVERY: Duration = Duration::from_millis(10);

/// How an endpoint over a link is made.
#[derive(Clone, Debug)]
pub struct ReliableOptions {
    /// Largest message, bytes.
    pub max_send_size: u32,
    /// Which threads may call the endpoint. An endpoint of one thread has no background progress.
    pub threading: Threading,
    /// Whether the check over RMA bytes may be left out towards endpoints of this host that agree.
    pub unchecked_on_host: bool,
    /// Where sequences start, so that tests meet every wrap; `None`: at random.
    pub first_seq: Option<u32>,
    /// What connections are protected by.
    pub security: Security,
}

/// A transport over a link: everything of [`Transport`](cci_transport::Transport) that a link does
/// not do itself.
pub struct Reliable<L: Link> {
    engine: Engine,
    link: L,
    host: HostState,
    outbox: Outbox,
    /// The link took fewer frames than it was offered.
    blocked: bool,
    /// The engine may have more frames than fit into the outbox.
    more: bool,
    /// The link may have more frames than the last call took.
    rest: bool,
    coalescer: Coalescer,
    readiness: Readiness,
    handle: HandleState,
    background: Background,
    expected: ExpectedClients<Time>,
    names: PendingNames,
    groups: Vec<Group>,
    next_group: u32,
    /// Buffer for messages that become one piece: to groups, and of RMA.
    gathered: Vec<u8>,
    /// The last call received something that the program may answer.
    delivered: bool,
    /// Malformed frames, dropped before the lookup of their connection.
    malformed: u64,
    /// The engine's count of released buffers when it last refused a call for lack of buffers.
    refused_at: Option<u64>,
    gauge_times: GaugeTimes,
    /// What connections are protected by.
    security: Security,
}

/// A number of this host until it reboots, the same in all of its processes; 0 where the system has
/// none.
fn host_number() -> u64 {
    let boot = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    boot.iter().fold(0, |hash: u64, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3).rotate_left(5))
}

impl<L: Link> Reliable<L> {
    /// A transport over this link, for an endpoint with this core.
    ///
    /// # Errors
    ///
    /// No memory, no random numbers, or a largest message that no frame format carries.
    pub fn open(core: &Core, link: L, options: &ReliableOptions) -> Result<Self, OpenError> {
        let system = |source: rustix::io::Errno| OpenError::system("no memory for an endpoint", source);
        let unseeded = |refused| OpenError::call("cannot open an endpoint", refused);
        let [registrations] = random().by("getrandom").map_err(unseeded)?;
        let count = |count: usize| u32::try_from(count).map_err(|_| OpenError::new(Status::Inval, "too many buffers"));
        let (send, rma) = (count(core.send_count().1)?, count(core.rma_count())?);
        let config = Config {
            mtu: link.mtu(),
            base_mtu: link.base_mtu(),
            max_send_size: options.max_send_size,
            recv_buffer: link.recv_buffer(),
            frames: frames(send, options.max_send_size, link.mtu()),
            holds: count(core.recv_count().1)?.max(MIN_FRAMES),
            operations: send.saturating_add(rma),
            machine: host_number(),
            unchecked_on_host: options.unchecked_on_host,
            patient: core.is_patient(),
            first_seq: options.first_seq,
        };
        let largest = (options.max_send_size as usize).max(MAX_REQUEST);
        let host = HostState {
            openings: PendingConnections::default(),
            inbox: Inbox::new(core, largest).map_err(system)?,
            operations: Operations::new(send),
            registry: Registrations::new(registrations),
            deferred: Vec::new(),
            pending_events: PendingEvents::default(),
            unconfirmed: VecDeque::new(),
            max_send_size: options.max_send_size,
            keys: Keys::new(&options.security, link.uri(), host_number()),
        };
        // After everything that reports its own failure.
        room_for(engine_bytes(&config))?;
        let mut transport = Self {
            engine: Engine::new(&config, random().by("getrandom").map_err(unseeded)?),
            outbox: Outbox::new(link.mtu(), host.keys.is_some()).map_err(system)?,
            link,
            host,
            blocked: false,
            more: false,
            rest: false,
            coalescer: Coalescer::default(),
            readiness: Readiness::default(),
            handle: HandleState::default(),
            background: Background::new(core, options.threading),
            expected: ExpectedClients::default(),
            names: PendingNames::default(),
            groups: Vec::new(),
            next_group: 0,
            gathered: Vec::new(),
            delivered: false,
            malformed: 0,
            refused_at: None,
            gauge_times: GaugeTimes::default(),
            security: options.security.clone(),
        };
        if transport.link.is_virtual() {
            core.note_virtual();
        }
        core.note_protection(options.security.protect());
        // The handle stays readable until it is armed.
        Readiness::signal(&mut transport);
        transport.watch(false);
        Ok(transport)
    }

    /// Receives frames. Returns their number.
    fn receive(&mut self, core: &mut Core, now: Time) -> usize {
        let Self { engine, link, host, groups, malformed, .. } = self;
        link.recv_burst(BUDGET, &mut |incoming| match incoming {
            Incoming::Frame { from, bytes, congested } => {
                let handled = engine.handle_frame(now, &from, bytes, congested, &mut HostCtx { state: host, core });
                *malformed += u64::from(handled.is_err());
            }
            Incoming::Unasked { from, bytes, is_known } => is_known.set(engine.is_for_peer(&from, bytes)),
            Incoming::Multicast { group, bytes, .. } => {
                let Ok(header) = wire::verify(bytes) else {
                    *malformed += 1;
                    return;
                };
                multicast::receive(groups, host, core, group, (header, bytes));
            }
            Incoming::Refused { to, quoted, is_own } => {
                engine.handle_unreachable(now, &to, quoted, is_own, &mut HostCtx { state: host, core });
            }
            Incoming::TooBig { to, quoted, mtu } => engine.handle_too_big(&to, quoted, mtu),
            Incoming::Down { concerns } => engine.handle_down(now, concerns, &mut HostCtx { state: host, core }),
            Incoming::Faulted { span } => host.registry.note_fault(span),
        })
    }

    /// Makes progress without waiting. Returns the number of frames received, and the time.
    fn step(&mut self, core: &mut Core, reads: bool) -> (usize, Time) {
        let now = self.link.now();
        self.host.inbox.sweep_some(core);
        let count = if reads { self.receive(core, now) } else { 0 };
        self.rest = count >= BUDGET;
        if std::mem::take(&mut self.host.inbox.has_delivered) {
            self.coalescer.on_received();
        }
        self.engine.handle_timeout(now, &mut HostCtx { state: &mut self.host, core });
        self.run_deferred(core, now);
        if !self.expected.is_empty() {
            self.expire(core, now);
        }
        if self.names.is_waiting() {
            self.take_names(core, now);
        }
        if self.host.has_pending_events() {
            self.host.flush_events(core);
        }
        if core.recv_free() == 0 {
            // The credit advertised to peers must count the slots that the program has returned.
            self.host.inbox.sweep(core);
        }
        if core.landings().is_waiting() {
            self.land(core);
        }
        let idle = count == 0 && self.delivered && !core.has_event();
        self.delivered = count > 0 || self.delivered && !idle;
        if (count > 0 || !self.coalescer.is_holding(now)) && self.has_to_transmit(now, idle) {
            self.transmit(core, now, idle);
            self.run_deferred(core, now);
        }
        (count, now)
    }

    /// Gives large messages of peers memory to be written to, as far as there is room.
    #[cold]
    fn land(&mut self, core: &mut Core) {
        let Self { engine, host, .. } = self;
        core.place_landings(|core, asked, memory| {
            let (cell, index) = (asked.connection, index_of(asked.connection));
            let Some(memory) = memory else {
                let told = engine.answer_large(index, asked.operation, Err(Failure::TooLong));
                return if told { Placed::Refused } else { Placed::Later };
            };
            let Some(slot) = host.inbox.take_bare(core, cell) else { return Placed::Later };
            let handle = host.registry.register(memory, Rights::WRITE, Some(cell));
            if let Ok(handle) = handle
                && engine.answer_large(index, asked.operation, Ok(handle.name()))
            {
                return Placed::Open(Some(slot), handle);
            }
            if let Ok(handle) = handle {
                // Nobody knows it.
                let _ = host.registry.deregister(&handle);
            }
            host.inbox.give_back(core, slot);
            Placed::Later
        });
    }

    /// The next deadline.
    fn deadline(&self) -> Option<Time> {
        // Frames that the link refuses wait until it is writable, even if they are due.
        let engine = self.engine.poll_timeout().filter(|due| !self.blocked || *due > Time(0));
        let expected = self.expected.deadline();
        let pending_events = self.host.has_pending_events().then(|| self.link.now() + RETRY_EVENTS_EVERY);
        [engine, expected, pending_events, self.names.deadline()].into_iter().flatten().min()
    }

    /// Whether a call would make progress without an arrival.
    fn is_runnable(&self) -> bool {
        self.more && !self.blocked || self.rest || !self.host.deferred.is_empty()
    }

    /// Whether there is work that the progress thread must do if the program makes no call.
    fn is_needed(&self, core: &Core) -> bool {
        self.reads_in_background(core) || !self.engine.is_quiet()
    }

    /// Records the time of a call that sends, for the progress thread. Virtual time is not the
    /// thread's time.
    #[inline(always)]
    fn on_send_call(&self, now: Time) {
        if !self.link.is_virtual() {
            self.background.on_sent(now);
        }
    }

    /// Ends a call: attaches the endpoint to the progress thread, or notifies the thread of the
    /// call.
    #[inline]
    fn after(&mut self, core: &Core) {
        if self.background.must_start() {
            self.background.start(self.link.handle());
        }
        if self.background.expects_call() {
            self.background.act_on_call(self.is_needed(core));
            self.unwatch(core);
        }
    }

    /// Whether the progress thread receives frames. Unless the endpoint is present, it does not for
    /// a program that only receives messages, so that the timeouts of peers detect an absent
    /// program.
    fn reads_in_background(&self, core: &Core) -> bool {
        core.is_present()
            || self.host.registry.is_exposed()
            || self.host.operations.count() > 0
            || !self.host.openings.is_empty()
    }

    /// Makes one step for the progress thread.
    fn background_step(&mut self, core: &mut Core) -> BackgroundWork {
        let watches = self.reads_in_background(core);
        self.delivered = true;
        let (count, now) = self.step(core, watches);
        self.publish_gauges(core, now, false);
        if !self.is_needed(core) {
            self.background.park();
            return BackgroundWork::Done;
        }
        let wakes = !watches || self.watch(true);
        let limit = if count > 0 || self.is_runnable() {
            Some(Duration::ZERO)
        } else if self.blocked || !wakes {
            Some(BLOCKED_AGAIN)
        } else {
            self.deadline().map(|deadline| (deadline - now).max(GRANULE))
        };
        self.background.set_acting();
        BackgroundWork::Pending { limit, watches, armed: core.is_armed() }
    }
}

impl<L: Link> Drop for Reliable<L> {
    fn drop(&mut self) {
        self.background.detach();
    }
}

/// Frames of an endpoint with few send slots.
const MIN_FRAMES: u32 = 1024;
/// Most bytes of frame buffers for the sends of an endpoint: 8,192 messages of 8 KiB.
const MOST_FRAME_BYTES: usize = 72 << 20;
/// Shortest timed sleep of the progress thread: the granularity of the engine's timers.
const GRANULE: Duration = Duration::from_micros(50);
/// Interval at which the progress thread retries a link that accepts no frames or cannot report
/// arrivals.
const BLOCKED_AGAIN: Duration = Duration::from_millis(1);

/// Number of frame buffers: enough for a message of the largest size in every send slot, within
/// [`MOST_FRAME_BYTES`].
fn frames(send: u32, max_send_size: u32, mtu: u16) -> u32 {
    let largest = u32::try_from(MOST_FRAME_BYTES / Engine::FRAME.min(mtu.into())).unwrap_or(u32::MAX);
    let wanted = send.saturating_mul(Engine::frames_of(max_send_size, mtu)).saturating_add(MIN_FRAMES);
    wanted.min(largest).max(send).max(MIN_FRAMES)
}

/// Approximate address space of an engine and its outbox, bytes.
fn engine_bytes(config: &Config) -> usize {
    let frames = config.frames as usize + config.holds as usize;
    frames * Engine::FRAME + (8 << 20)
}
