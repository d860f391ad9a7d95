//! Both ends of a run in this process and in virtual time, over the transport `sim`.
//!
//! The ends are two threads that take turns: exactly one runs. The turn passes when its end waits,
//! having looked and found nothing; when both have waited since anything happened, nobody can do
//! anything more at this moment of virtual time, and time moves to the next. So looking costs no
//! virtual time, waiting costs what the network says, and the same run gives the same figures,
//! however busy this machine is. `docs/design/perf.md` has the reasons.

use super::client;
use super::client::Progress;
use super::driver::{Asking, Completion, Driver, DriverError, DriverEvent, DriverOptions, PostError, Transfer};
use super::facade::Facade;
use super::plan::Plan;
use super::server;
use super::server::Notice;
use crate::device::{VIRTUAL, with_keys};
use cci::{Attribute, Connection, Memory, RmaHandle, Status};
use cci_report::UserError;
use cci_report::environment::Path;
use cci_report::names::{Mode, Threads};
use cci_sim::Clock;
use std::cell::RefCell;
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Operations of a block, and blocks, unless asked otherwise: the first is the same as any other,
/// where no link has a fault.
const COUNT: u64 = 100;
const BLOCKS: u32 = 11;

/// What the links are like unless their keys say otherwise: 1 us, 100 Gbit/s.
const LINK: [(&str, &str); 2] = [("delay", "1000"), ("bandwidth", "12500000000")];

/// The plan as it is measured in virtual time.
pub(crate) fn adapt(mut plan: Plan) -> Plan {
    let link: Vec<_> = LINK.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    plan.keys = with_keys(&link, &plan.keys);
    plan.effort.count.get_or_insert(COUNT);
    plan.effort.blocks.get_or_insert(BLOCKS);
    plan.effort.launches = 1;
    plan.session.threads = Threads::One;
    plan.probe = None;
    plan
}

/// Runs one launch of a plan in this process.
pub(crate) fn launch(plan: &Plan, mut on: impl FnMut(Progress<'_>)) -> Result<(), UserError> {
    let opening = DriverOptions {
        transport: Some(VIRTUAL.into()),
        threads: Threads::One,
        mode: Mode::Polling,
        keys: private(&plan.keys),
        library: None,
        ends: 1,
    };
    let plan = Plan { transport: opening.transport.clone(), keys: opening.keys.clone(), ..plan.clone() };
    let (sender, listening) = channel();
    let serve = || {
        server::serve::<InTurns>(&opening, server::PATIENCE, None, |notice| {
            if let Notice::Listening(uri) = notice {
                // The client's end of this channel is there as long as its thread.
                let _ = sender.send(uri.to_owned());
            }
            Ok(())
        })
    };
    let measure = || match listening.try_recv() {
        Ok(uri) => client::run::<InTurns>(&plan, &uri, None, &mut on),
        Err(_) => Err(UserError::new("the server end did not start")),
    };
    let (served, measured) = in_turns(serve, measure);
    // A server that could not start is why there is nothing to measure; one that was ended by the
    // client's end is as it should be.
    match (served, measured) {
        (Err(why), Err(_)) if listening.try_recv().is_err() && why != UserError::from(OVER) => Err(why),
        (_, measured) => measured,
    }
}

/// The keys, with a network of the run's own unless they name one: networks live as long as their
/// endpoints, and others of this process may measure at the same time.
fn private(keys: &[(String, String)]) -> Vec<(String, String)> {
    static RUNS: Mutex<u64> = Mutex::new(0);
    let mut runs = RUNS.lock().unwrap_or_else(PoisonError::into_inner);
    *runs += 1;
    with_keys(&[("network".into(), format!("perf-{runs}"))], keys)
}

/// What an end finds when the other has ended.
const OVER: DriverError = DriverError::Failed(Status::Disconnected);

/// Runs both ends, the server's first: until it waits for the first time. Within them
/// [`InTurns::open`] opens endpoints.
fn in_turns<S: Send, C>(serve: impl FnOnce() -> S + Send, measure: impl FnOnce() -> C) -> (S, C) {
    let schedule = Arc::new(Schedule::default());
    let slot = |number| Slot { schedule: schedule.clone(), number };
    std::thread::scope(|scope| {
        let (servers, clients) = (slot(0), slot(1));
        let server = scope.spawn(move || servers.occupy(serve));
        let measured = clients.occupy(measure);
        match server.join() {
            Ok(served) => (served, measured),
            Err(panicked) => std::panic::resume_unwind(panicked),
        }
    })
}

/// The schedule of the two ends: exactly one of them runs.
#[derive(Debug, Default)]
struct Schedule {
    state: Mutex<ScheduleState>,
    passed: Condvar,
}

#[derive(Debug, Default)]
struct ScheduleState {
    /// Number of the slot that runs.
    turn: usize,
    /// Consecutive waits of the ends without any event between them.
    quiet: u32,
    /// An end has left.
    is_over: bool,
}

/// The slot of an end in the schedule.
#[derive(Clone, Debug)]
struct Slot {
    schedule: Arc<Schedule>,
    number: usize,
}

thread_local! {
    /// The slot of the end that this thread is.
    static SLOT: RefCell<Option<Slot>> = const { RefCell::new(None) };
}

impl Slot {
    /// Runs an end on this thread, once it is its turn.
    fn occupy<T>(self, end: impl FnOnce() -> T) -> T {
        struct Leaving<'a>(&'a Slot);
        impl Drop for Leaving<'_> {
            fn drop(&mut self) {
                SLOT.set(None);
                let mut turns = self.0.turns();
                (turns.is_over, turns.turn) = (true, 1 - self.0.number);
                self.0.schedule.passed.notify_all();
            }
        }
        SLOT.set(Some(self.clone()));
        // Also when the end panics, so that the other does not wait for ever.
        let _leaving = Leaving(&self);
        self.await_turn(self.turns());
        end()
    }

    fn turns(&self) -> MutexGuard<'_, ScheduleState> {
        self.schedule.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn await_turn(&self, turns: MutexGuard<'_, ScheduleState>) {
        let is_others = |turns: &mut ScheduleState| turns.turn != self.number && !turns.is_over;
        drop(self.schedule.passed.wait_while(turns, is_others).unwrap_or_else(PoisonError::into_inner));
    }

    /// Something happened: the other end may have to look once more.
    fn stir(&self) {
        self.turns().quiet = 0;
    }

    /// This end waits: the other runs, after time has moved if that one waits too.
    fn wait(&self, clock: &Clock) {
        let mut turns = self.turns();
        turns.quiet += 1;
        if turns.quiet >= 2 || turns.is_over {
            turns.quiet = 0;
            clock.advance();
            if clock.waiting() > 0 {
                return;
            }
        }
        turns.turn = 1 - self.number;
        self.schedule.passed.notify_all();
        self.await_turn(turns);
    }
}

/// The facade of an end that takes turns with the other. Its endpoint is for one thread, whatever
/// the plan asks for: an end is one, and the progress thread of an endpoint for many would act by
/// the clock of the machine. Fields drop in order: time moves by itself while the endpoint closes.
pub(crate) struct InTurns {
    facade: Facade,
    clock: Clock,
    slot: Slot,
    /// Holds time again.
    _held: Held,
}

struct Held(Clock);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.hold();
    }
}

/// For how long an end that closes an endpoint goes on taking turns: what it said last is
/// acknowledged by then, and closing has nothing to wait for.
const FAREWELL: Duration = Duration::from_millis(5);

impl Drop for InTurns {
    fn drop(&mut self) {
        let since = self.now();
        while self.now() - since < FAREWELL && self.facade.poll::<false>().is_ok() {
            self.wait();
        }
        self.clock.release();
    }
}

impl InTurns {
    /// What was started gives the other end something to see.
    fn started<T, E>(&self, outcome: Result<T, E>) -> Result<T, E> {
        if outcome.is_ok() {
            self.slot.stir();
        }
        outcome
    }

    fn is_over(&self) -> bool {
        self.slot.turns().is_over
    }
}

impl Driver for InTurns {
    type Connection = Connection;

    fn open(opening: &DriverOptions) -> Result<Self, UserError> {
        let slot = SLOT.with_borrow(Clone::clone);
        let slot = slot.ok_or_else(|| UserError::new("an endpoint in virtual time belongs to one of two ends"))?;
        let facade = Facade::open(&DriverOptions { mode: Mode::Polling, threads: Threads::One, ..opening.clone() })?;
        let clock = Clock::of(&facade.uri());
        let clock = clock.ok_or_else(|| UserError(format!("{} is not on a virtual network", facade.uri())))?;
        clock.hold();
        Ok(Self { facade, slot, _held: Held(clock.clone()), clock })
    }

    fn uri(&self) -> String {
        self.facade.uri()
    }

    fn transport(&self) -> &str {
        self.facade.transport()
    }

    fn max_send_size(&self, connection: Connection) -> u64 {
        self.facade.max_send_size(connection)
    }

    fn path(&self, connection: Connection) -> Option<Path> {
        self.facade.path(connection)
    }

    fn connect(
        &self,
        uri: &str,
        payload: &[u8],
        attribute: Attribute,
        context: u64,
        timeout: Duration,
    ) -> Result<(), UserError> {
        self.started(self.facade.connect(uri, payload, attribute, context, timeout))
    }

    fn send(&self, connection: Connection, message: &[u8], silent: bool) -> Result<(), PostError> {
        self.started(self.facade.send(connection, message, silent))
    }

    fn rma(&self, connection: Connection, transfer: &Transfer<'_>, silent: bool) -> Result<(), PostError> {
        self.started(self.facade.rma(connection, transfer, silent))
    }

    fn register(&self, memory: Memory) -> Result<RmaHandle, UserError> {
        self.facade.register(memory)
    }

    fn poll<const TOUCH: bool>(&self) -> Result<Completion, DriverError> {
        match self.facade.poll::<TOUCH>()? {
            Completion::Nothing if self.is_over() => Err(OVER),
            Completion::Nothing => Ok(Completion::Nothing),
            seen => self.started(Ok(seen)),
        }
    }

    fn poll_event(
        &self,
        bytes: &mut Vec<u8>,
        context_of: impl FnMut(&Asking<'_>) -> u64,
    ) -> Result<DriverEvent<Connection>, DriverError> {
        match self.facade.poll_event(bytes, context_of)? {
            DriverEvent::Nothing if self.is_over() => Err(OVER),
            DriverEvent::Nothing => Ok(DriverEvent::Nothing),
            event => self.started(Ok(event)),
        }
    }

    fn now(&self) -> Duration {
        // What the program has done so far includes what its processor is still charged with.
        Duration::from_nanos(self.clock.busy_until().0)
    }

    fn wait(&self) {
        self.slot.wait(&self.clock);
    }

    fn wait_beside<'a>(&'a self, _: impl Iterator<Item = &'a Self>) {
        self.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::plan;
    use super::super::points::{Finished, in_launches};
    use super::*;
    use cci_report::names::{Measurement, Operation};
    use cci_report::row::Row;

    fn measured(keys: &[(&str, &str)], change: impl Fn(&mut Plan)) -> Row {
        let mut plan = plan();
        plan.keys = keys.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        (plan.effort.count, plan.effort.blocks) = (Some(20), Some(3));
        change(&mut plan);
        plan.session.largest = plan.sizes[0];
        let plan = adapt(plan);
        let Finished { mut rows, interrupted, .. } = in_launches(&plan, |_| (), |plan, on| launch(plan, on)).unwrap();
        assert_eq!((rows.len(), interrupted), (1, None));
        rows.remove(0)
    }

    #[test]
    fn half_a_round_trip_is_the_delay_of_the_link_and_the_overheads_of_the_nodes() {
        let bare = measured(&[("delay", "5000"), ("bandwidth", "0")], |_| ());
        assert_eq!((bare.min_ns, bare.median_ns, bare.p99_ns), (5000.0, 5000.0, 5000.0));
        assert!(bare.accurate && bare.spread == 0.0 && bare.probe.is_none());
        let overheads = [("delay", "5000"), ("bandwidth", "0"), ("send_overhead", "300"), ("recv_overhead", "200")];
        let loaded = measured(&overheads, |_| ());
        assert!((5500.0..5800.0).contains(&loaded.median_ns), "{}", loaded.median_ns);
    }

    #[test]
    fn the_same_run_gives_the_same_figures() {
        let run = || measured(&[("loss", "1"), ("jitter", "700")], |plan| plan.session.measurement = Measurement::Rate);
        let (first, second) = (run(), run());
        assert!(first.median_ns > 0.0 && first.pairs.iter().any(|pair| *pair != first.pairs[0]));
        assert_eq!(first.pairs, second.pairs);
    }

    #[test]
    fn no_thread_acts_by_the_clock_of_the_machine() {
        let plan = adapt(plan());
        let mut whys = Vec::new();
        let on = |progress: Progress<'_>| {
            if let Progress::Path(path) = progress {
                whys.push(path.why.clone())
            }
        };
        launch(&plan, on).unwrap();
        assert_eq!(plan.session.threads, Threads::One);
        assert!(whys.len() == 1 && whys[0].contains("proceeds by its calls only"), "{whys:?}");
    }

    #[test]
    fn a_stream_fills_the_link_and_looking_costs_nothing() {
        let bw = |plan: &mut Plan| {
            plan.session.measurement = Measurement::Bandwidth;
            plan.session.operation = Operation::Write;
            plan.sizes = vec![1 << 18];
            plan.effort.blocks = Some(1);
        };
        let row = measured(&[("delay", "1000"), ("bandwidth", "1000000000")], bw);
        let per_second = row.bytes_per_second.unwrap();
        assert!((0.9e9..1e9).contains(&per_second), "{per_second} bytes/s of 10^9");
    }

    #[test]
    fn an_end_that_is_alone_is_told_so() {
        let mut plan = adapt(plan());
        plan.keys.push(("colour".into(), "1".into()));
        let error = launch(&plan, |_| ()).unwrap_err();
        assert!(error.0.contains("'colour'"), "{error}");
        let (served, measured) = in_turns(|| 1, || 2);
        assert_eq!((served, measured), (1, 2));
    }
}
