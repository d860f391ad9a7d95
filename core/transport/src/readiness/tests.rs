//! The states of a handle, with a transport that records what is asked of it.

use super::*;
use crate::{CoreOptions, Endpoint};
use Called::{Awake, Disarmed, EdgeAt, ForgetTimer, Prepare, Write};
use std::cell::RefCell;

/// What [`Readiness`] has asked of the transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Called {
    Prepare(HandleCheck),
    Awake,
    Disarmed,
    ForgetTimer,
    EdgeAt(Time),
    Write,
}

/// A transport that records calls.
#[derive(Default)]
struct Recorder {
    readiness: Readiness,
    calls: RefCell<Vec<Called>>,
    now: Time,
    has_work: bool,
    refuses_timer: bool,
    is_virtual: bool,
}

impl Recorder {
    fn note(&self, called: Called) {
        self.calls.borrow_mut().push(called);
    }

    fn take(&self) -> Vec<Called> {
        std::mem::take(&mut self.calls.borrow_mut())
    }
}

impl Arming for Recorder {
    fn readiness(&mut self) -> &mut Readiness {
        &mut self.readiness
    }

    fn prepare(&mut self, _: &mut Core, check: HandleCheck) -> bool {
        self.note(Prepare(check));
        if !self.has_work {
            self.readiness.take_signalled();
        }
        !self.has_work
    }

    fn stay_awake(&mut self, _: &mut Core) {
        self.note(Awake);
    }

    fn on_disarmed(&mut self, _: &mut Core) {
        self.note(Disarmed);
    }

    fn forget_timer(&mut self) {
        self.note(ForgetTimer);
    }

    fn set_edge_timer(&mut self, at: Time) -> bool {
        self.note(EdgeAt(at));
        !self.refuses_timer
    }

    fn write_waker(&self) {
        self.note(Write);
    }

    fn now(&self) -> Time {
        self.now
    }

    fn is_virtual(&self) -> bool {
        self.is_virtual
    }
}

/// An endpoint of which nobody uses the handle.
fn unused() -> (Recorder, Core) {
    let endpoint: &'static Endpoint = Box::leak(Box::new(Endpoint::default()));
    // No test takes a slot, and Miri pays for each slot whenever the array of slots is passed on.
    let few = CoreOptions { recv_count: 1, send_count: 1, rma_count: 1, ..CoreOptions::default() };
    (Recorder::default(), Core::new(endpoint, &few).expect("memory"))
}

/// An endpoint whose program has the handle, which is readable.
fn opened() -> (Recorder, Core) {
    let (mut transport, mut core) = unused();
    core.set_handle_in_use();
    Readiness::signal(&mut transport);
    assert_eq!(transport.take(), [Write]);
    (transport, core)
}

/// The same, armed.
fn armed() -> (Recorder, Core) {
    let (mut transport, mut core) = opened();
    assert!(Readiness::arm_now(&mut transport, &mut core));
    assert_eq!(transport.take(), [ForgetTimer, Prepare(HandleCheck::Anew)]);
    (transport, core)
}

/// The end of a call, as a transport makes it.
fn end(transport: &mut Recorder, core: &mut Core, is_empty: bool) {
    let check = transport.readiness.begin_settle(is_empty);
    if !Readiness::keep_readable(transport, core, is_empty) {
        Readiness::settle(transport, core, check);
    }
}

fn empty_call(transport: &mut Recorder, core: &mut Core) {
    let now = transport.now;
    Readiness::on_empty(transport, core, Some(now), 0);
    if core.is_armed() {
        end(transport, core, true);
    } else {
        Readiness::leave_edge(transport, core);
    }
}

/// Makes short waits until the handle is in adaptive spin.
fn spin(transport: &mut Recorder, core: &mut Core) {
    for _ in 0..4 {
        empty_call(transport, core);
        let now = Time(transport.now.0 + 1000);
        transport.now = now;
        Readiness::on_found(transport, core, Some(now));
        end(transport, core, false);
    }
    assert!(transport.readiness.is_adaptive_spin());
    transport.take();
}

#[test]
fn the_fifth_empty_call_arms_and_the_ones_before_give_edges() {
    let (mut transport, mut core) = opened();
    for _ in 0..4 {
        empty_call(&mut transport, &mut core);
        assert_eq!(transport.take(), [Write], "it may sleep now");
    }
    empty_call(&mut transport, &mut core);
    assert!(core.is_armed() && !transport.readiness.is_signalled());
    assert_eq!(transport.take(), [ForgetTimer, Prepare(HandleCheck::Once), Prepare(HandleCheck::Once)]);
}

#[test]
fn a_handle_with_work_is_not_armed() {
    let (mut transport, mut core) = opened();
    transport.has_work = true;
    for _ in 0..5 {
        empty_call(&mut transport, &mut core);
    }
    assert!(!core.is_armed() && transport.readiness.is_signalled());
    assert!(transport.take().ends_with(&[Prepare(HandleCheck::Once), Write, Disarmed, Write]));
}

#[test]
fn a_program_that_spins_has_its_handle_disarmed_and_readable() {
    let (mut transport, mut core) = armed();
    let calls = (1..100).find(|_| {
        // Each call finds the handle quiet.
        transport.take();
        empty_call(&mut transport, &mut core);
        !core.is_armed()
    });
    assert_eq!(calls, Some(65));
    assert!(transport.readiness.is_signalled());
    assert!(matches!(transport.take()[..], [Disarmed, Write, ForgetTimer, EdgeAt(_)]), "and an edge to come");
}

#[test]
fn an_armed_handle_with_work_gives_an_edge_to_an_empty_call_only() {
    let (mut transport, mut core) = armed();
    transport.has_work = true;
    end(&mut transport, &mut core, false);
    assert_eq!(transport.take(), [Prepare(HandleCheck::Skip), Write]);
    end(&mut transport, &mut core, false);
    assert_eq!(transport.take(), [Prepare(HandleCheck::Skip)], "it is readable already");
    end(&mut transport, &mut core, true);
    assert_eq!(transport.take(), [Prepare(HandleCheck::Once), Write], "it may sleep now");
}

#[test]
fn adaptive_spin_leaves_the_handle_readable_and_each_empty_call_gives_an_edge() {
    let (mut transport, mut core) = armed();
    spin(&mut transport, &mut core);
    transport.refuses_timer = true;
    for _ in 0..20 {
        empty_call(&mut transport, &mut core);
        match transport.take()[..] {
            [Awake, Write] => {}
            [Awake, ForgetTimer, EdgeAt(_), Write] => transport.refuses_timer = false,
            ref calls => panic!("{calls:?}"),
        }
    }
    assert!(!transport.refuses_timer, "it never tried the timer");
    end(&mut transport, &mut core, false);
    assert_eq!(transport.take(), [Awake], "this call returns an event");
}

#[test]
fn a_call_checks_the_descriptors_anew_where_an_earlier_one_relies_on_the_timer() {
    let (mut transport, mut core) = armed();
    spin(&mut transport, &mut core);
    while !matches!(transport.take()[..], [Awake, ForgetTimer, EdgeAt(_)]) {
        empty_call(&mut transport, &mut core);
    }
    transport.readiness.spin_policy.stop();
    end(&mut transport, &mut core, false);
    assert_eq!(transport.take(), [ForgetTimer, Prepare(HandleCheck::Anew)]);
    end(&mut transport, &mut core, false);
    assert_eq!(transport.take(), [Prepare(HandleCheck::Skip)], "nothing relies on it any more");
}

#[test]
fn a_blocking_call_with_a_descriptor_of_its_own_ends_adaptive_spin() {
    let (mut transport, mut core) = armed();
    spin(&mut transport, &mut core);
    transport.readiness.on_wait_in_call();
    end(&mut transport, &mut core, false);
    assert_eq!(transport.take(), [Prepare(HandleCheck::Skip)]);
}

#[test]
fn in_virtual_time_there_are_neither_edges_nor_adaptive_spin() {
    let (mut transport, mut core) = opened();
    transport.is_virtual = true;
    Readiness::leave_edge(&mut transport, &mut core);
    assert_eq!(transport.take(), []);
    assert!(Readiness::arm_now(&mut transport, &mut core));
    assert_eq!(transport.take(), [ForgetTimer, Prepare(HandleCheck::Skip)]);
    for _ in 0..20 {
        empty_call(&mut transport, &mut core);
        Readiness::on_found(&mut transport, &core, None);
    }
    assert!(!transport.readiness.is_adaptive_spin());
}

/// Calls after a wait, which find something every other time, until the handle is not armed.
fn calls_until_disarmed(transport: &mut Recorder, core: &mut Core) -> Option<u32> {
    (1..1000).find(|_| {
        Readiness::on_empty(transport, core, Some(Time(0)), 0);
        Readiness::on_found(transport, core, Some(Time(0)));
        !core.is_armed()
    })
}

#[test]
fn a_program_that_polls_after_a_wait_has_no_armed_handle_for_long() {
    let (mut transport, mut core) = unused();
    core.begin_wait();
    core.begin_wait();
    assert!(core.is_handle_in_use() && Readiness::arm_now(&mut transport, &mut core));
    core.end_wait();
    assert_eq!(calls_until_disarmed(&mut transport, &mut core), None, "another thread waits");
    core.end_wait();
    assert!(core.is_armed() && !core.is_handle_in_use());
    let calls = calls_until_disarmed(&mut transport, &mut core);
    assert!(calls.is_some_and(|calls| calls > 16), "a program that polls and then waits, {calls:?}");
    for _ in 0..1000 {
        Readiness::on_empty(&mut transport, &mut core, Some(Time(0)), 0);
    }
    assert!(!core.is_armed(), "nobody waits");
    // The next wait begins anew.
    core.begin_wait();
    assert!(Readiness::arm_now(&mut transport, &mut core));
    assert_eq!(calls_until_disarmed(&mut transport, &mut core), None);
}

#[test]
fn a_handle_that_the_program_has_stays_in_use_after_a_wait() {
    let (mut transport, mut core) = armed();
    core.begin_wait();
    core.end_wait();
    assert!(core.is_handle_in_use());
    assert_eq!(calls_until_disarmed(&mut transport, &mut core), None);
}
