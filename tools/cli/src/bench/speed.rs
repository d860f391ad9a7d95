//! The lines that are ratios to a bare probe, each a run of two pinned processes; and those of
//! `sm`.

use super::verdict::{Line, Standard};
use cci_perf::device::keys_of_loopback;
use cci_perf::effort::Effort;
use cci_perf::measure;
use cci_perf::measure::plan::Plan;
use cci_perf::peers::PeerSelection;
use cci_report::UserError;
use cci_report::names::{Abi, AttributeName, Measurement, MemoryOrigin, Mode, Operation, ProbeKind, Target, Threads};
use cci_report::row::Row;
use cci_report::session::Session;
use std::path::Path;
use std::time::Duration;

/// Runs of a line, each with processes of its own: which physical pages these get decides how well
/// a transfer near the size of a cache fits into it, so a single run says as much of its luck as of
/// the library. And a processor shared with others changes its speed for seconds at a time, so the
/// runs of a line are apart: all lines of a transport are run once, then all again.
pub(super) const RUNS: usize = 5;

/// A line to be measured.
pub(super) struct Speed {
    pub(super) what: String,
    pub(super) transport: &'static str,
    pub(super) keys: Vec<(String, String)>,
    pub(super) session: Session,
    pub(super) size: u64,
    pub(super) probe: ProbeKind,
    pub(super) abi: Abi,
    /// Operations of a block, and blocks, where they are not calibrated.
    pub(super) blocks: Option<(u64, u32)>,
    pub(super) standard: Standard,
}

/// The row of one run.
pub(super) fn row(plan: &Plan) -> Result<Row, UserError> {
    let mut finished = measure::run(plan, None, |_| ())?;
    match (finished.interrupted, finished.rows.pop()) {
        (None, Some(row)) => Ok(row),
        (why, _) => Err(UserError(why.unwrap_or_else(|| "the run gave no figure".into()))),
    }
}

pub(super) fn most(bar: f64, target: f64) -> Standard {
    Standard::AtMost { bar: Some(bar), target: Some(target) }
}

pub(super) fn least(bar: Option<f64>, target: Option<f64>) -> Standard {
    Standard::AtLeast { bar, target }
}

/// Every line of `sm`; a quick run leaves the largest transfers out.
pub(super) fn rows(quick: bool) -> Vec<Speed> {
    let mut rows = Vec::new();
    for silent in [false, true] {
        latency(&mut rows, silent);
    }
    for silent in [false, true] {
        rates(&mut rows, silent);
    }
    transfers(&mut rows);
    large_transfers(&mut rows, quick);
    let session = Session { mode: Mode::Blocking, ..exchange(false) };
    // The library spins and hardly ever sleeps here, while the probe sleeps each time: a target
    // would be met by spinning alone.
    let standard = Standard::AtMost { bar: Some(1.2), target: None };
    rows.push(Speed::new("half round trip, 8 B, blocking, spinning, to eventfds", session, 8, standard));
    rows
}

pub(super) fn exchange(silent: bool) -> Session {
    Session {
        measurement: Measurement::PingPong,
        operation: Operation::Send,
        attribute: AttributeName::Ro,
        mode: Mode::Polling,
        silent,
        threads: Threads::Many,
        memory: MemoryOrigin::Library,
        touch: false,
        target: Target::Polling,
        window: None,
        bidirectional: false,
        largest: 0,
    }
}

fn events(silent: bool) -> &'static str {
    if silent { "silent" } else { "reaped" }
}

fn latency(rows: &mut Vec<Speed>, silent: bool) {
    let (session, events) = (exchange(silent), events(silent));
    let one = Session { threads: Threads::One, ..session.clone() };
    let touch = Session { touch: true, ..session.clone() };
    let what = |text: &str| format!("half round trip, {text}, {events}");
    rows.push(Speed::new(&what("8 B, one thread"), one, 8, most(1.6, 1.3)));
    let c = Speed::new(&what("8 B, thread-safe, C ABI"), session.clone(), 8, most(2.0, 1.5));
    rows.push(Speed { abi: Abi::C, ..c });
    rows.push(Speed::new(&what("4 KiB, not read"), session, 4096, most(3.0, 2.2)));
    rows.push(Speed::new(&what("4 KiB, every byte read"), touch, 4096, most(1.4, 1.2)));
}

fn rates(rows: &mut Vec<Speed>, silent: bool) {
    let session = Session { measurement: Measurement::Rate, ..exchange(silent) };
    let one = Session { threads: Threads::One, ..session.clone() };
    let what = |text: &str| format!("message rate, 8 B, {text}, {}", events(silent));
    rows.push(Speed::new(&what("one thread"), one, 8, least(Some(0.5), Some(0.8))));
    rows.push(Speed::new(&what("thread-safe"), session, 8, least(Some(0.7), Some(0.9))));
}

fn transfers(rows: &mut Vec<Speed>) {
    let session = Session { measurement: Measurement::Bandwidth, operation: Operation::Write, ..exchange(false) };
    for (name, operation) in [("write", Operation::Write), ("read", Operation::Read)] {
        let session = Session { operation, ..session.clone() };
        let what = format!("RMA {name}, 64 KiB, library memory, to memcpy");
        rows.push(Speed::new(&what, session, 64 << 10, least(Some(0.8), Some(0.95))));
    }
    let any = Session { memory: MemoryOrigin::Any, ..session };
    let what = |text: &str| format!("RMA write, 1 MiB, any memory, {text}");
    let to_vm = what("target polling, to process_vm_writev");
    rows.push(Speed::new(&to_vm, any.clone(), 1 << 20, least(Some(0.95), None)));
    let to_pipe = what("target polling, to a two-copy pipe");
    let pipe = Speed::new(&to_pipe, any.clone(), 1 << 20, least(None, Some(0.9)));
    rows.push(Speed { probe: ProbeKind::Pipe, ..pipe });
    let computing = Session { target: Target::Computing, ..any };
    let to_vm = what("target computing, to process_vm_writev");
    rows.push(Speed::new(&to_vm, computing, 1 << 20, least(Some(0.9), None)));
}

/// Transfers that the library copies piece by piece, beside one `memcpy` of the whole.
fn large_transfers(rows: &mut Vec<Speed>, quick: bool) {
    let session = Session { measurement: Measurement::Bandwidth, ..exchange(false) };
    // Of the longest only a few are measured: each block is long against what the system disturbs.
    let sizes = [(1, None), (16, None), (64, Some((4, 5))), (256, Some((2, 3)))];
    for (name, operation) in [("write", Operation::Write), ("read", Operation::Read)] {
        for (mib, blocks) in sizes.into_iter().filter(|(mib, _)| !quick || *mib < 256) {
            let session = Session { operation, ..session.clone() };
            let what = format!("RMA {name}, {mib} MiB, library memory, to memcpy");
            rows.push(Speed { blocks, ..Speed::new(&what, session, mib << 20, least(Some(0.9), Some(1.0))) });
        }
    }
}

impl Speed {
    /// A line of `sm`.
    fn new(what: &str, session: Session, size: u64, standard: Standard) -> Self {
        Self::over("sm", what, session, size, standard)
    }

    pub(super) fn over(transport: &'static str, what: &str, session: Session, size: u64, standard: Standard) -> Self {
        Self {
            what: what.into(),
            transport,
            keys: keys_of_loopback(transport),
            probe: Plan::natural_probe(&session, transport).unwrap_or(ProbeKind::Line),
            session: Session { largest: size, ..session },
            size,
            abi: Abi::Rust,
            blocks: None,
            standard,
        }
    }

    pub(super) fn plan(&self, library: Option<&Path>, time: Duration) -> Plan {
        Plan {
            session: self.session.clone(),
            sizes: vec![self.size],
            effort: Effort {
                time,
                count: self.blocks.map(|(count, _)| count),
                blocks: self.blocks.map(|(_, blocks)| blocks),
                // Each of the runs below is a launch.
                launches: 1,
                // The runs in the middle of five count, not the blocks of each.
                bound: f64::MAX,
            },
            probe: Some(self.probe),
            transport: Some(self.transport.into()),
            keys: self.keys.clone(),
            abi: self.abi,
            library: library.map(Path::to_owned),
            peers: PeerSelection::default(),
        }
    }

    /// Its runs. Times are held against a bar by their ratio to the probe, speeds by its inverse.
    pub(super) fn runs(self, library: Option<&Path>, time: Duration) -> Runs {
        let plan = self.plan(library, time);
        let run = move || {
            let ratio = row(&plan)?.ratio;
            let ratio = ratio.ok_or_else(|| UserError::new("the run was not compared with its probe"))?;
            Ok(match self.standard {
                Standard::AtMost { .. } => ratio,
                Standard::AtLeast { .. } => 1.0 / ratio,
            })
        };
        Runs { what: self.what, unit: "x", standard: self.standard, run: Box::new(run) }
    }
}

/// A line that is the median of several runs.
pub(super) struct Runs {
    pub(super) what: String,
    pub(super) unit: &'static str,
    pub(super) standard: Standard,
    pub(super) run: Box<dyn Fn() -> Result<f64, UserError>>,
}

/// Measures these lines, each as often as [`RUNS`] says. `say` hears how far it is, `add` gets each
/// line after its last run.
pub(super) fn measure(all: &[Runs], mut say: impl FnMut(&str), mut add: impl FnMut(Line)) {
    let mut measured: Vec<Result<Vec<f64>, UserError>> = all.iter().map(|_| Ok(Vec::new())).collect();
    for round in 1..=RUNS {
        say(&format!("round {round} of {RUNS} over {} lines", all.len()));
        for (runs, values) in all.iter().zip(&mut measured) {
            // What failed once is not tried again.
            if let Ok(so_far) = values {
                match (runs.run)() {
                    Ok(value) => so_far.push(value),
                    Err(why) => *values = Err(why),
                }
            }
            if round == RUNS {
                add(Line::of_runs(&runs.what, runs.unit, runs.standard, std::mem::replace(values, Ok(Vec::new()))));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    #[test]
    fn every_line_is_a_run_that_fits_together_and_has_a_name_of_its_own() {
        let rows = rows(false);
        for row in &rows {
            assert_eq!(row.session.contradiction(), None, "{}", row.what);
            assert_eq!(row.session.largest, row.size, "{}", row.what);
        }
        let mut names: Vec<_> = rows.iter().map(|row| row.what.clone()).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), rows.len());
    }

    #[test]
    fn a_quick_run_leaves_out_the_largest_transfers_only() {
        let names = |quick| rows(quick).into_iter().map(|row| row.what).collect::<Vec<_>>();
        let (all, quick) = (names(false), names(true));
        let left_out: Vec<_> = all.iter().filter(|name| !quick.contains(name)).collect();
        let name = |way| format!("RMA {way}, 256 MiB, library memory, to memcpy");
        assert_eq!(left_out, [&name("write"), &name("read")]);
    }

    #[test]
    fn all_lines_are_run_in_turn_and_one_that_fails_is_not_tried_again() {
        let order = Rc::new(RefCell::new(Vec::new()));
        let runs = |name: &'static str, fails: bool| {
            let order = Rc::clone(&order);
            let run = move || {
                order.borrow_mut().push(name);
                let nth = order.borrow().iter().filter(|run| **run == name).count();
                if fails && nth == 2 {
                    Err(UserError::new("why"))
                } else {
                    Ok(f64::from(u8::try_from(nth).expect("few")))
                }
            };
            Runs { what: name.into(), unit: "x", standard: least(Some(3.0), None), run: Box::new(run) }
        };
        let mut lines = Vec::new();
        measure(&[runs("a", false), runs("b", true)], |_| (), |line| lines.push((line.what, line.value, line.runs)));
        assert_eq!(order.borrow().concat(), "ababaaa");
        assert_eq!(lines, [("a".to_owned(), Some(3.0), Some([1.0, 5.0])), ("b".to_owned(), None, None)]);
    }

    #[test]
    fn the_untouched_4_kib_are_held_against_a_bare_line_and_the_read_ones_against_a_copy() {
        let rows = rows(false);
        let probe = |text: &str| rows.iter().find(|row| row.what.contains(text)).map(|row| row.probe);
        assert_eq!(probe("4 KiB, not read"), Some(ProbeKind::Line));
        assert_eq!(probe("every byte read"), Some(ProbeKind::Copy));
        assert_eq!(probe("two-copy pipe"), Some(ProbeKind::Pipe));
        assert_eq!(probe("target computing"), Some(ProbeKind::ProcessVm));
        assert_eq!(probe("blocking"), Some(ProbeKind::Wake));
    }
}
