//! The lines of `tcp`, over the loop-back interface: ratios to a bare TCP stream.

use super::network::{FEW, MIB, WINDOW};
use super::speed::{Speed, exchange, least, most};
use super::verdict::Standard;
use cci_report::names::{AttributeName, Measurement, Mode, Operation};
use cci_report::session::Session;

/// The transport whose lines are held against a bare TCP stream.
pub(super) const STREAMS: &str = "tcp";

/// Every line of `tcp` that is a ratio to a probe.
pub(super) fn rows() -> Vec<Speed> {
    let blocking = Session { mode: Mode::Blocking, ..exchange(false) };
    let rate = Session {
        measurement: Measurement::Rate,
        attribute: AttributeName::Ru,
        window: Some(WINDOW),
        ..exchange(false)
    };
    let mut rows = vec![
        line("half round trip, 8 B, RO, polling, to bare TCP", exchange(false), 8, most(1.15, 1.08)),
        line("half round trip, 8 B, RO, blocking, to bare TCP", blocking, 8, most(1.15, 1.05)),
        line("message rate, 8 B, RU, window 512, to one send() a message", rate, 8, least(Some(5.0), None)),
    ];
    let transfers = [
        ("write", Operation::Write, "1 MiB", MIB, 0.85, 0.95),
        ("write", Operation::Write, "64 MiB", 64 * MIB, 0.90, 0.97),
        ("read", Operation::Read, "1 MiB", MIB, 0.82, 0.92),
        ("read", Operation::Read, "64 MiB", 64 * MIB, 0.87, 0.94),
    ];
    for (name, operation, text, size, bar, target) in transfers {
        let session = Session { measurement: Measurement::Bandwidth, operation, ..exchange(false) };
        let what = format!("RMA {name}, {text}, to bare TCP stream");
        let blocks = (size > MIB).then_some(FEW);
        rows.push(Speed { blocks, ..line(&what, session, size, least(Some(bar), Some(target))) });
    }
    rows
}

fn line(what: &str, session: Session, size: u64, standard: Standard) -> Speed {
    Speed::over(STREAMS, what, session, size, standard)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cci_report::names::ProbeKind;

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
    fn lines_are_held_against_what_they_name() {
        let rows = rows();
        let probes = |text: &str| rows.iter().filter(|row| row.what.contains(text)).map(|row| row.probe).collect();
        let probes: [Vec<_>; 4] = ["polling", "blocking", "one send()", "stream"].map(probes);
        let [ping, wake, messages] =
            [ProbeKind::TcpPing, ProbeKind::TcpWake, ProbeKind::TcpMessages].map(|kind| vec![kind]);
        assert_eq!(probes, [ping, wake, messages, vec![ProbeKind::TcpStream; 4]]);
    }
}
