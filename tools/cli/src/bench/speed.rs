//! The lines that are ratios to a bare probe, each a run of two pinned processes; and those of `sm`.

use super::verdict::{Line, Standard};
use crate::measure::plan::{
    Abi, AttributeName, Effort, Measurement, MemoryOrigin, Mode, Operation, Plan, ProbeKind, Session, Target, Threads,
};
use crate::measure::row::Row;
use crate::measure::{Sentence, local};
use crate::peers::Guests;
use std::path::Path;
use std::time::Duration;

/// Runs of a line, each with processes of its own: which physical pages these get decides how well a transfer near the
/// size of a cache fits into it, so a single run says as much of its luck as of the library. And a processor shared with others
/// changes its speed for seconds at a time, so the runs of a line are apart: all lines are measured once, then all again.
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
pub(super) fn row(plan: &Plan) -> Result<Row, Sentence> {
    let mut finished = local::run(plan, |_| ())?;
    match (finished.interrupted, finished.rows.pop()) {
        (None, Some(row)) => Ok(row),
        (why, _) => Err(Sentence(why.unwrap_or_else(|| "the run gave no figure".into()))),
    }
}

pub(super) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

pub(super) fn most(bar: f64, target: f64) -> Standard {
    Standard::AtMost { bar: Some(bar), target: Some(target) }
}

pub(super) fn least(bar: Option<f64>, target: Option<f64>) -> Standard {
    Standard::AtLeast { bar, target }
}

/// Every line of `sm`.
pub(super) fn rows() -> Vec<Speed> {
    let mut rows = Vec::new();
    for silent in [false, true] {
        latency(&mut rows, silent);
    }
    for silent in [false, true] {
        rates(&mut rows, silent);
    }
    transfers(&mut rows);
    let session = Session { mode: Mode::Blocking, ..exchange(false) };
    rows.push(Speed::new("blocking wake-up, 8 B, to eventfds", session, 8, most(1.2, 1.05)));
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
        for (text, size) in [("64 KiB", 64 << 10), ("1 MiB", 1 << 20)] {
            let session = Session { operation, ..session.clone() };
            let what = format!("RMA {name}, {text}, library memory, to memcpy");
            rows.push(Speed::new(&what, session, size, least(Some(0.8), Some(0.95))));
        }
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

impl Speed {
    /// A line of `sm`.
    fn new(what: &str, session: Session, size: u64, standard: Standard) -> Self {
        Self::over("sm", what, session, size, standard)
    }

    pub(super) fn over(transport: &'static str, what: &str, session: Session, size: u64, standard: Standard) -> Self {
        Self {
            what: what.into(),
            transport,
            keys: Plan::keys_of_loopback(transport),
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
            guests: Guests::default(),
        }
    }

    /// Runs it once. Times are held against a bar by their ratio to the probe, speeds by its inverse.
    fn run(&self, library: Option<&Path>, time: Duration) -> Result<f64, Sentence> {
        let ratio = row(&self.plan(library, time))?.ratio;
        let ratio = ratio.ok_or_else(|| Sentence::new("the run was not compared with its probe"))?;
        Ok(match self.standard {
            Standard::AtMost { .. } => ratio,
            Standard::AtLeast { .. } => 1.0 / ratio,
        })
    }
}

/// Measures these lines, each as often as [`RUNS`] says; `say` hears of each round that begins.
pub(super) fn measure(rows: &[Speed], library: Option<&Path>, time: Duration, mut say: impl FnMut(usize)) -> Vec<Line> {
    let mut all: Vec<Result<Vec<f64>, Sentence>> = rows.iter().map(|_| Ok(Vec::new())).collect();
    for round in 1..=RUNS {
        say(round);
        for (row, runs) in rows.iter().zip(&mut all) {
            // What failed once is not tried again.
            let Ok(values) = runs else { continue };
            match row.run(library, time) {
                Ok(value) => values.push(value),
                Err(why) => *runs = Err(why),
            }
        }
    }
    rows.iter().zip(all).map(|(row, runs)| Line::of_runs(&row.what, "x", row.standard, runs)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_run_that_fits_together_and_has_a_name_of_its_own() {
        let rows = rows();
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
    fn the_untouched_4_kib_are_held_against_a_bare_line_and_the_read_ones_against_a_copy() {
        let rows = rows();
        let probe = |text: &str| rows.iter().find(|row| row.what.contains(text)).map(|row| row.probe);
        assert_eq!(probe("4 KiB, not read"), Some(ProbeKind::Line));
        assert_eq!(probe("every byte read"), Some(ProbeKind::Copy));
        assert_eq!(probe("two-copy pipe"), Some(ProbeKind::Pipe));
        assert_eq!(probe("target computing"), Some(ProbeKind::ProcessVm));
        assert_eq!(probe("blocking"), Some(ProbeKind::Wake));
    }
}
