//! The ways of an endpoint, and who has the core.

use crate::accepting::Accepts;
use crate::call_set::CallSet;
use crate::connecting::Connects;
use crate::host::Place;
use crate::interval::Interval;
use crate::secret::Secret;
use crate::way::{NO_WAY, WARM, Way};
use cci_proto::Time;
use cci_transport::{CallError, Connection, Core, ExpectedClients, NameCall, PollSet, Readiness, Slot, Transport};
use rustix::event::epoll::EventFlags;
use std::collections::HashMap;
use std::sync::Arc;

/// One endpoint over several transports.
pub(crate) struct Auto {
    pub(crate) ways: Vec<Way>,
    /// The way that a call may go at once: it is current, none but `beside` is warm too, nobody
    /// uses the handle, and nothing else is to be done. [`NO_WAY`] as soon as that may have
    /// changed.
    pub(crate) plain: u8,
    /// A way within this host that calls look at when the plain one, of the network, has nothing.
    pub(crate) beside: u8,
    /// Calls until the next look at the cold ways.
    pub(crate) left: u32,
    pub(crate) interval: Interval,
    pub(crate) set: PollSet,
    pub(crate) readiness: Readiness,
    pub(crate) call_set: CallSet,
    /// The timer is set, for an edge.
    pub(crate) has_timer: bool,
    pub(crate) uri: String,
    pub(crate) identity: u64,
    pub(crate) place: Place,
    /// What peers prove.
    pub(crate) secret: Option<Secret>,
    pub(crate) connects: Connects,
    pub(crate) accepts: Accepts,
    /// Clients that another endpoint sends here: each way expects them too.
    pub(crate) expected: ExpectedClients<Time>,
    /// A sentence about each way that the endpoint lacks.
    pub(crate) down: Vec<String>,
    /// Why connections that this side asked for go no other way, by their places: their generations
    /// and a sentence for each way.
    pub(crate) why: HashMap<u32, (u32, Arc<str>)>,
    /// The last of these, which is the next one's too in most cases.
    pub(crate) last_why: Arc<str>,
}

impl Auto {
    pub(crate) fn new(
        mut ways: Vec<Way>,
        uri: String,
        (identity, place): (u64, Place),
        down: Vec<String>,
        secret: Option<Secret>,
    ) -> Result<Self, CallError> {
        if let [sole] = &mut ways[..] {
            sole.is_always_warm = true;
        }
        let set = PollSet::new()?;
        for (number, way) in (0..).zip(&ways) {
            set.watch(way.transport.handle(), number, EventFlags::IN).by("epoll_ctl")?;
        }
        let mut auto = Self {
            ways,
            plain: NO_WAY,
            beside: NO_WAY,
            left: 0,
            interval: Interval::new(),
            set,
            readiness: Readiness::default(),
            call_set: CallSet::default(),
            has_timer: false,
            uri,
            identity,
            place,
            secret,
            connects: Connects::default(),
            accepts: Accepts::default(),
            expected: ExpectedClients::default(),
            down,
            why: HashMap::new(),
            last_why: Arc::from(""),
        };
        // The handle stays readable until it is armed.
        Readiness::signal(&mut auto);
        Ok(auto)
    }

    /// Gives the core to a way for `act`. A way whose own handle is armed settles it afterwards,
    /// unless the endpoint's handle is armed too: then each way settles at the end of the call.
    pub(crate) fn within<T>(
        &mut self,
        core: &mut Core,
        number: u8,
        act: impl FnOnce(&mut dyn Transport, &mut Core) -> T,
    ) -> Option<T> {
        let way = self.ways.get_mut(usize::from(number))?;
        if number != self.plain {
            self.plain = NO_WAY;
        }
        let settles_later = core.is_armed();
        core.enter_way(number);
        let done = act(&mut *way.transport, core);
        if core.is_armed() && !settles_later {
            way.transport.settle(core);
        }
        core.leave_way();
        Some(done)
    }

    /// As [`Auto::within`], for a call of the program, which the way may soon answer.
    pub(crate) fn call<T>(
        &mut self,
        core: &mut Core,
        number: u8,
        act: impl FnOnce(&mut dyn Transport, &mut Core) -> T,
    ) -> Option<T> {
        let done = self.within(core, number, act)?;
        self.warm(number);
        self.end_call(core);
        Some(done)
    }

    /// The program uses a way, or it has delivered something: calls poll it.
    pub(crate) fn warm(&mut self, number: u8) {
        let Some(way) = self.ways.get_mut(usize::from(number)) else { return };
        way.warm = WARM;
        if number != self.plain {
            self.plain = NO_WAY;
        }
    }

    /// As [`Auto::call`], by the way of a connection.
    pub(crate) fn call_for<T>(
        &mut self,
        core: &mut Core,
        connection: &'static Connection,
        act: impl FnOnce(&mut dyn Transport, &mut Core) -> T,
    ) -> Option<T> {
        self.call(core, connection.way(), act)
    }

    /// As [`Auto::call`], by the way of a request.
    pub(crate) fn call_for_request<T>(
        &mut self,
        core: &mut Core,
        request: &'static Slot,
        act: impl FnOnce(&mut dyn Transport, &mut Core) -> T,
    ) -> Option<T> {
        let way = core.way_of_slot(request);
        self.call(core, way, act)
    }

    /// When something is to be done that no way's handle tells of.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.connects.deadline().into_iter().chain(self.expected.deadline()).min()
    }

    /// The numbers of all ways.
    pub(crate) fn numbers(&self) -> std::ops::Range<u8> {
        0..u8::try_from(self.ways.len()).unwrap_or(NO_WAY)
    }
}
