//! The lines of `sock`, over the loop-back interface: ratios to bare UDP and TCP.

use super::speed::{Runs, Speed, exchange, least, most, row};
use super::verdict::Standard;
use cci_perf::measure::plan::Plan;
use cci_report::names::{AttributeName, Measurement, Mode, Operation, ProbeKind, Target};
use cci_report::session::Session;
use std::time::Duration;

/// Messages in flight of the line of message rate.
pub(super) const WINDOW: u64 = 512;
/// Operations of a block, and blocks, of a transfer of 64 MiB: a block of these is long enough.
pub(super) const FEW: (u64, u32) = (2, 5);
/// The same where the target computes: long against the time until the progress thread takes over.
const LONG: (u64, u32) = (6, 3);
/// One operation a block: each meets a target that has just begun to compute.
const SINGLE: (u64, u32) = (1, 25);
pub(super) const MIB: u64 = 1 << 20;

/// Every line of `sock` that is a ratio to a probe.
pub(super) fn rows() -> Vec<Speed> {
    let blocking = Session { mode: Mode::Blocking, ..exchange(false) };
    let rate = Session {
        measurement: Measurement::Rate,
        attribute: AttributeName::Ru,
        window: Some(WINDOW),
        ..exchange(false)
    };
    let mut rows = vec![
        line("half round trip, 8 B, RO, polling, to bare UDP", exchange(false), 8, most(1.3, 1.15)),
        line("half round trip, 8 B, RO, blocking, to bare UDP", blocking, 8, most(1.2, 1.05)),
        line(
            "message rate, 8 B, RU, window 512, to batches of 64 bare datagrams",
            rate,
            8,
            least(Some(0.1), Some(0.4)),
        ),
    ];
    for (text, size) in [("1 MiB", MIB), ("64 MiB", 64 * MIB)] {
        let blocks = (size > MIB).then_some(FEW);
        let checked = format!("RMA write, {text}, checked");
        let stream = line(&format!("{checked}, to bare UDP stream"), write(), size, least(Some(0.6), Some(0.75)));
        let tcp = line(&format!("{checked}, to TCP"), write(), size, least(Some(1.0), None));
        let what = format!("RMA write, {text}, without check of the payload, to bare UDP stream");
        let unchecked = line(&what, write(), size, least(None, Some(0.9)));
        let keys = [unchecked.keys.clone(), vec![("check".into(), "remote".into())]].concat();
        rows.push(Speed { blocks, ..stream });
        rows.push(Speed { blocks, probe: ProbeKind::Tcp, ..tcp });
        rows.push(Speed { blocks, keys, ..unchecked });
    }
    rows
}

fn line(what: &str, session: Session, size: u64, standard: Standard) -> Speed {
    Speed::over("sock", what, session, size, standard)
}

fn write() -> Session {
    Session { measurement: Measurement::Bandwidth, operation: Operation::Write, ..exchange(false) }
}

/// The lines of a target that computes: when it is noticed, and how fast it is then, against one
/// that polls.
pub(super) fn of_computing_target(time: Duration) -> [Runs; 2] {
    let computing = Session { target: Target::Computing, ..write() };
    let single = Session { measurement: Measurement::OneWay, ..computing.clone() };
    let what = "RMA write, 8 B, target computing: first one ended, after";
    let first = Speed { blocks: Some(SINGLE), ..line(what, single, 8, least(None, None)) };
    let what = "RMA write, 64 MiB, target computing, to the same with a polling target";
    let away = Speed { blocks: Some(LONG), ..line(what, computing, 64 * MIB, least(Some(0.8), None)) };
    let near = Speed { blocks: Some(LONG), ..line(what, write(), 64 * MIB, least(None, None)) };
    let plan = |speed: &Speed| Plan { probe: None, ..speed.plan(None, time) };
    let (first_plan, away_plan, near_plan) = (plan(&first), plan(&away), plan(&near));
    let milliseconds = move || Ok(row(&first_plan)?.median_ns / 1e6);
    let rate = move || Ok(row(&near_plan)?.median_ns / row(&away_plan)?.median_ns);
    let soon = Standard::AtMost { bar: Some(2.0), target: None };
    [
        Runs { what: first.what, unit: "ms", standard: soon, run: Box::new(milliseconds) },
        Runs { what: away.what, unit: "x", standard: away.standard, run: Box::new(rate) },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_run_over_loop_back_that_fits_together_and_has_a_name_of_its_own() {
        let rows = rows();
        for row in &rows {
            assert_eq!(row.session.contradiction(), None, "{}", row.what);
            assert!(row.probe.is_network(), "{}", row.what);
            assert!(row.keys.contains(&("interface".into(), "lo".into())), "{}", row.what);
            assert_eq!(row.keys.len() == 2, row.what.contains("without check"), "{}", row.what);
        }
        let mut names: Vec<_> = rows.iter().map(|row| row.what.clone()).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), rows.len());
    }

    #[test]
    fn lines_are_held_against_what_they_name() {
        let rows = rows();
        let probe = |text: &str| rows.iter().find(|row| row.what.contains(text)).map(|row| row.probe);
        assert_eq!(probe("polling"), Some(ProbeKind::Udp));
        assert_eq!(probe("blocking"), Some(ProbeKind::UdpWake));
        assert_eq!(probe("window 512"), Some(ProbeKind::UdpMessages));
        assert_eq!(probe("to TCP"), Some(ProbeKind::Tcp));
        assert_eq!(probe("without check"), Some(ProbeKind::UdpStream));
    }
}
