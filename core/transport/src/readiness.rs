//! Readiness: in which state the OS handle of an endpoint is, and what each call does for it
//! (`docs/design/threading.md`, which has the states).

use crate::edge_policy::{Edge, EdgePolicy};
use crate::oversubscription::is_oversubscribed;
use crate::spin_policy::SpinPolicy;
use crate::wait_policy::{Transition, WaitPolicy};
use crate::{Core, monotonic};
use cci_proto::Time;

/// A tick, nanoseconds.
const TICK: u64 = 4_000_000;

/// Whether the descriptors of a handle are checked before it is armed. The edge of one may have
/// passed, so that a program which waits for edges would miss it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandleCheck {
    /// No: nobody relies on an edge of this call.
    Skip,
    /// Yes, unless the call under way has checked them.
    Once,
    /// Yes: a check of an earlier call does not count.
    Anew,
}

/// What a transport does for its OS handle. [`Readiness`] calls it with the endpoint's lock held,
/// and decides when. No call blocks. `transports/template/src/handle.rs` implements it in few
/// lines.
pub trait Arming {
    /// The state that the transport keeps for [`Readiness`].
    fn readiness(&mut self) -> &mut Readiness;

    /// Prepares for a sleep of the program: arrivals make the handle readable, the timer is set to
    /// the next deadline, and a written waker is drained ([`Readiness::take_signalled`]). Then it
    /// checks once more whether a call has something to do. True: nothing; the handle is quiet.
    /// False: the waker may have been left as it was.
    fn prepare(&mut self, core: &mut Core, check: HandleCheck) -> bool;

    /// Prepares for calls in close succession: the handle is armed, stays readable, and arrivals
    /// need not wake the program. Does nothing unless a transport can save something here.
    fn stay_awake(&mut self, core: &mut Core) {
        let _ = core;
    }

    /// Undoes [`Arming::prepare`], because the handle was disarmed: it stays readable, so that
    /// nothing else need make it readable. As [`Arming::stay_awake`] does, nothing by itself.
    fn on_disarmed(&mut self, core: &mut Core) {
        let _ = core;
    }

    /// Records that the timer is set to something else than [`Arming::prepare`] has set it to.
    fn forget_timer(&mut self);

    /// Sets the timer to this time, for an edge. False: there is no timer, or the system refuses.
    fn set_edge_timer(&mut self, at: Time) -> bool;

    /// Writes the waker.
    fn write_waker(&self);

    /// Now, by the timer's clock.
    fn now(&self) -> Time {
        monotonic()
    }

    /// Whether time is virtual: nothing arrives while a program spins, and a handle gives no edges.
    fn is_virtual(&self) -> bool {
        false
    }
}

/// The state of an OS handle, protected by the endpoint's lock: it decides when the handle is armed
/// and disarmed, when it stays readable, and how it gives edges. The transport supplies
/// [`Arming`].
///
/// A call of `get_event` that made progress ends with [`Readiness::on_progress`]: that is
/// [`Readiness::on_found`] or [`Readiness::on_empty`]. Then, while [`Core::is_armed`], the call
/// settles the handle by [`Readiness::settle_call`]. A transport that leaves more to the next call
/// does so in between the parts of that: [`Readiness::begin_settle`], [`Readiness::keep_readable`],
/// and if that returns false, [`Readiness::settle`]. A call that returns EAGAIN while the handle is
/// not armed ends with [`Readiness::leave_edge`].
///
/// ```
/// use cci_transport::{Arming, Core, Readiness, monotonic};
/// /// What a transport does in `Transport::progress`, and then in `Transport::settle`.
/// fn progress(transport: &mut impl Arming, core: &mut Core, has_found: bool) {
///     Readiness::on_progress(transport, core, has_found, monotonic());
/// }
/// fn settle(transport: &mut impl Arming, core: &mut Core) {
///     Readiness::settle_call(transport, core);
/// }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Readiness {
    wait_policy: WaitPolicy,
    spin_policy: SpinPolicy,
    edge_policy: EdgePolicy,
    /// The endpoint has written the waker.
    signalled: bool,
    /// The clock's reading within the call under way, if that has read it.
    called: Option<Time>,
    /// A blocking call has made a descriptor of its own, which the handle's state must not mislead.
    waits_in_call: bool,
}

impl Readiness {
    /// Records a call that made progress, and has found something or not. `now`: its reading of the
    /// clock.
    #[inline]
    pub fn on_progress(transport: &mut impl Arming, core: &mut Core, has_found: bool, now: Time) {
        if has_found || core.has_event() {
            Self::on_found(transport, core, Some(now));
        } else {
            Self::on_empty(transport, core, Some(now), Self::tick(now));
        }
    }

    /// Records a call that made progress and found something. `now`: its reading of the clock; read
    /// here if it is needed and the caller has none.
    #[inline]
    pub fn on_found(transport: &mut impl Arming, core: &Core, now: Option<Time>) {
        // In virtual time nothing arrives while the program spins.
        let measures = core.is_armed() && !transport.is_virtual();
        let state = transport.readiness();
        // What the call found need not be an event: it may return EAGAIN, and rely on a timer.
        state.called = now;
        if measures {
            state.spin_policy.on_found(!is_oversubscribed(), || now.unwrap_or_else(monotonic));
        }
        state.wait_policy.on_found();
    }

    /// As [`Readiness::on_found`], while the handle is not armed.
    #[inline(always)]
    pub fn on_found_unarmed(&mut self) {
        self.wait_policy.on_found();
    }

    /// Records an empty call, and arms or disarms the handle if the program seems to go to sleep or
    /// to spin. `now`: as for [`Readiness::on_found`]; `tick`: the number of the current tick of
    /// about four milliseconds ([`Readiness::tick`], or a coarse clock).
    pub fn on_empty(transport: &mut impl Arming, core: &mut Core, now: Option<Time>, tick: u64) {
        let now = if core.is_armed() { Some(now.unwrap_or_else(|| transport.now())) } else { now };
        let state = transport.readiness();
        state.called = now;
        if let Some(now) = now.filter(|_| core.is_armed()) {
            state.spin_policy.on_empty(now);
        }
        if core.is_armed_after_wait() {
            if state.wait_policy.on_empty_after_wait() {
                Self::disarm_now(transport, core);
            }
            return;
        }
        match state.wait_policy.on_empty(core.is_armed(), core.is_handle_in_use(), tick) {
            Transition::Stay => {}
            Transition::Arm => {
                if !Self::arm(transport, core, HandleCheck::Once) {
                    Self::disarm(transport, core);
                }
            }
            Transition::Disarm => Self::disarm(transport, core),
        }
    }

    /// The number of the tick at this time.
    #[must_use]
    pub fn tick(now: Time) -> u64 {
        now.0 / TICK
    }

    /// Arms the handle because the program has asked for it, and forgets that the program spun.
    /// True: there is nothing to do.
    pub fn arm_now(transport: &mut impl Arming, core: &mut Core) -> bool {
        transport.readiness().wait_policy.stop();
        Self::arm(transport, core, HandleCheck::Anew)
    }

    /// Disarms the handle, if it is armed, because the program polls and nobody waits on it.
    pub fn disarm_now(transport: &mut impl Arming, core: &mut Core) {
        if core.is_armed() {
            transport.readiness().spin_policy.stop();
            Self::disarm(transport, core);
        }
    }

    /// Arms the handle, and ends adaptive spin. True: there is nothing to do.
    pub fn arm(transport: &mut impl Arming, core: &mut Core, check: HandleCheck) -> bool {
        core.on_armed();
        transport.readiness().spin_policy.stop();
        transport.forget_timer();
        Self::settle(transport, core, check)
    }

    /// Makes an armed handle readable exactly if there is something to do. With a check of the
    /// descriptors it gives an edge too, if there is. True: there is nothing to do.
    pub fn settle(transport: &mut impl Arming, core: &mut Core, mut check: HandleCheck) -> bool {
        let state = transport.readiness();
        let called = state.called.take().unwrap_or_default();
        if state.edge_policy.on_arming(called) {
            transport.forget_timer();
            if check == HandleCheck::Skip {
                check = HandleCheck::Anew;
            }
        }
        // Checking the descriptors advances the time of a virtual network.
        if transport.is_virtual() {
            check = HandleCheck::Skip;
        }
        let is_idle = transport.prepare(core, check);
        if !is_idle && check == HandleCheck::Skip {
            Self::signal(transport);
        } else if !is_idle {
            Self::signal_again(transport);
        }
        is_idle
    }

    /// Settles an armed handle at the end of a call.
    pub fn settle_call(transport: &mut impl Arming, core: &mut Core) {
        core.take_popped();
        let is_empty = core.take_empty();
        let check = transport.readiness().begin_settle(is_empty);
        if !Self::keep_readable(transport, core, is_empty) {
            Self::settle(transport, core, check);
        }
    }

    /// Begins to settle at the end of a call. `is_empty`: the call returns EAGAIN. Returns the
    /// check for [`Readiness::settle`].
    #[inline]
    pub fn begin_settle(&mut self, is_empty: bool) -> HandleCheck {
        if is_empty {
            return HandleCheck::Once;
        }
        self.called = None;
        HandleCheck::Skip
    }

    /// Leaves an armed handle readable in adaptive spin. `is_empty`: the call returns EAGAIN, and
    /// must give an edge. False: the program is to sleep.
    pub fn keep_readable(transport: &mut impl Arming, core: &mut Core, is_empty: bool) -> bool {
        let state = transport.readiness();
        if !state.spin_policy.is_on() || state.waits_in_call {
            return false;
        }
        transport.stay_awake(core);
        Self::signal(transport);
        if is_empty {
            let called = transport.readiness().called.take();
            let now = called.unwrap_or_else(|| transport.now());
            let edge = transport.readiness().edge_policy.adaptive_spin(now);
            Self::give(transport, core, edge);
        }
        true
    }

    /// Gives an edge of a handle that is not armed, now or soon, or arms it.
    pub fn leave_edge(transport: &mut impl Arming, core: &mut Core) {
        if transport.is_virtual() {
            return;
        }
        let edge = if transport.readiness().wait_policy.spins() {
            let now = transport.now();
            transport.readiness().edge_policy.spinning(now)
        } else {
            Edge::Now
        };
        Self::give(transport, core, edge);
    }

    fn give(transport: &mut impl Arming, core: &mut Core, edge: Edge) {
        match edge {
            Edge::Coming => {}
            Edge::Now => Self::signal_again(transport),
            Edge::At(at) => {
                transport.forget_timer();
                if !transport.set_edge_timer(at) {
                    transport.readiness().edge_policy.on_refused();
                    Self::signal_again(transport);
                }
            }
            Edge::Arm => {
                if !Self::arm(transport, core, HandleCheck::Anew) {
                    Self::disarm(transport, core);
                    Self::signal_again(transport);
                }
            }
        }
    }

    fn disarm(transport: &mut impl Arming, core: &mut Core) {
        core.on_disarmed();
        transport.on_disarmed(core);
        Self::signal(transport);
    }

    /// Makes the handle readable.
    pub fn signal(transport: &mut impl Arming) {
        if !transport.readiness().signalled {
            Self::signal_again(transport);
        }
    }

    /// Makes the handle readable, and gives an edge even if it is readable already.
    pub fn signal_again(transport: &mut impl Arming) {
        transport.readiness().signalled = true;
        transport.write_waker();
    }

    /// Whether the endpoint has written the waker, and nobody has drained it since.
    #[inline]
    #[must_use]
    pub fn is_signalled(&self) -> bool {
        self.signalled
    }

    /// As [`Readiness::is_signalled`]; the transport drains the waker now.
    pub fn take_signalled(&mut self) -> bool {
        std::mem::take(&mut self.signalled)
    }

    /// Whether the handle is in adaptive spin.
    #[inline]
    #[must_use]
    pub fn is_adaptive_spin(&self) -> bool {
        self.spin_policy.is_on()
    }

    /// Records that the timer has fired, and was drained.
    pub fn on_timer_fired(&mut self) {
        self.edge_policy.on_fired();
    }

    /// Records that a blocking call waits on a descriptor of its own: from now on the handle is
    /// settled after each call, because its state is that descriptor's too.
    pub fn on_wait_in_call(&mut self) {
        self.waits_in_call = true;
    }

    /// Whether [`Readiness::on_wait_in_call`] was called.
    #[inline]
    #[must_use]
    pub fn waits_in_call(&self) -> bool {
        self.waits_in_call
    }
}

#[cfg(test)]
mod tests;
