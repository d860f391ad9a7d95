//! From the runs of all launches to figures, and to rows with bars.

use super::client::Group;
use super::end::MIRROR;
use crate::methods::compared::compared;
use cci_report::finding::{PortalsPoint, ViaPoint, ViaTold};
use cci_report::statistics::median;

/// A row: a way of a figure beside another one of the same runs.
struct Row {
    name: &'static str,
    experiment: &'static str,
    x: u64,
    bytes: u64,
    way: &'static str,
    beside: (&'static str, &'static str),
    told: ViaTold,
    /// Windows of this kind have the bar.
    kind: &'static str,
    bar: Option<f64>,
    target: Option<f64>,
}

/// What shared windows are called.
const SHARED: &str = "shared";

const ROWS: [Row; 12] = [
    Row {
        name: "a store, one way",
        experiment: "pingpong",
        x: 8,
        bytes: 8,
        way: "aligned",
        beside: ("bare", "bare line"),
        told: ViaTold::Time,
        kind: SHARED,
        bar: Some(1.1),
        target: None,
    },
    Row {
        name: "a copy, one way",
        experiment: "pingpong",
        x: 64 << 10,
        bytes: 64 << 10,
        way: "aligned",
        beside: ("bare", "bare copy"),
        told: ViaTold::Speed,
        kind: SHARED,
        bar: Some(0.95),
        target: None,
    },
    Row {
        name: "sequence check",
        experiment: "check",
        x: 1,
        bytes: 0,
        way: "check",
        beside: ("load", "bare load"),
        told: ViaTold::Nanoseconds,
        kind: SHARED,
        bar: Some(5.0),
        target: Some(2.0),
    },
    Row {
        name: "transfer of a DMA queue",
        experiment: "dma",
        x: 1 << 20,
        bytes: 1 << 20,
        way: "dma",
        beside: ("rma", "RMA of CCI"),
        told: ViaTold::Speed,
        kind: SHARED,
        bar: Some(0.95),
        target: None,
    },
    mirrored("polled by the library, window of 4 KiB", "turn", 4 << 10, "library", ViaTold::Time)
        .bytes(8)
        .bar(1.3, Some(1.15)),
    mirrored("polled by the library, window of 64 KiB", "turn", 64 << 10, "library", ViaTold::Time).bytes(8),
    mirrored("one line until confirmed, window of 4 KiB", "confirm", 4 << 10, "window", ViaTold::Time)
        .bytes(8)
        .bar(2.0, None),
    mirrored("one line until confirmed, window of 64 KiB", "confirm", 64 << 10, "window", ViaTold::More)
        .bytes(8)
        .bar(3000.0, None),
    mirrored("one line until confirmed, window of 4 KiB", "confirm", 4 << 10, "window", ViaTold::Time)
        .beside("message", "message, answer")
        .bytes(8),
    mirrored("one line until confirmed, window of 64 KiB", "confirm", 64 << 10, "window", ViaTold::More)
        .beside("message", "message, answer")
        .bytes(8)
        .bar(3000.0, None),
    mirrored("all bytes changed, flushed", "change", 64 << 10, "flushed", ViaTold::Speed).bar(0.55, Some(0.65)),
    mirrored("all bytes changed, until confirmed", "change", 64 << 10, "confirmed", ViaTold::Speed),
];

/// A row of mirror windows beside RMA writes, without a bar.
const fn mirrored(name: &'static str, experiment: &'static str, x: u64, way: &'static str, told: ViaTold) -> Row {
    let beside = ("rma", "RMA of CCI");
    Row { name, experiment, x, bytes: x, way, beside, told, kind: MIRROR, bar: None, target: None }
}

impl Row {
    const fn bytes(mut self, bytes: u64) -> Self {
        self.bytes = bytes;
        self
    }

    const fn beside(mut self, way: &'static str, name: &'static str) -> Self {
        self.beside = (way, name);
        self
    }

    const fn bar(mut self, bar: f64, target: Option<f64>) -> Self {
        (self.bar, self.target) = (Some(bar), target);
        self
    }
}

/// A point for each way of each figure of the first launch: the fastest run of all launches.
pub(super) fn points(launches: &[Vec<Group>]) -> Vec<PortalsPoint> {
    let mut points = Vec::new();
    for group in launches.first().into_iter().flatten() {
        for (way, _) in &group.ways {
            let runs = launches.iter().flat_map(|launch| runs(launch, &group.experiment, group.x, way));
            let (least, most) =
                runs.fold((f64::INFINITY, 0.0_f64), |(least, most), run| (least.min(*run), most.max(*run)));
            let (experiment, way) = (group.experiment.clone(), way.clone());
            points.push(PortalsPoint { experiment, x: group.x, way, value: least, spread: most - least });
        }
    }
    points
}

fn runs<'a>(launch: &'a [Group], experiment: &str, x: u64, way: &str) -> &'a [f64] {
    let group = launch.iter().find(|group| group.experiment == experiment && group.x == x);
    let found = group.and_then(|group| group.ways.iter().find(|(name, _)| name == way));
    found.map_or(&[], |(_, runs)| runs)
}

/// The rows whose figures were measured; bars where they hold: of windows of this kind.
pub(super) fn rows(launches: &[Vec<Group>], window: &str) -> Vec<ViaPoint> {
    ROWS.iter().filter_map(|row| row.point(launches, row.kind == window)).collect()
}

impl Row {
    /// Launches are compared within themselves.
    fn point(&self, launches: &[Vec<Group>], has_bars: bool) -> Option<ViaPoint> {
        let of = |way: &str| -> Vec<f64> {
            let runs = launches.iter().map(|launch| runs(launch, self.experiment, self.x, way));
            runs.filter(|runs| !runs.is_empty()).map(median).collect()
        };
        let (ours, reference) = (of(self.way), of(self.beside.0));
        if ours.is_empty() || ours.len() != reference.len() {
            return None;
        }
        let point = ViaPoint {
            name: self.name.into(),
            bytes: self.bytes,
            reference: self.beside.1.into(),
            told: self.told,
            bar: self.bar.filter(|_| has_bars),
            target: self.target.filter(|_| has_bars),
            ..ViaPoint::default()
        };
        // No row is told in cycles.
        Some(compared(point, &ours, &reference, f64::NAN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(factor: f64) -> Vec<Group> {
        let group = |experiment: &str, x, ways: [(&str, f64); 2]| Group {
            experiment: experiment.into(),
            x,
            ways: ways.map(|(way, ns)| (way.into(), vec![ns * factor * 2.0, ns * factor, ns * factor * 3.0])).into(),
        };
        vec![
            group("pingpong", 8, [("aligned", 63.0), ("bare", 60.0)]),
            group("check", 1, [("check", 1.0), ("load", 0.5)]),
            group("dma", 1 << 20, [("dma", 100.0), ("rma", 90.0)]),
        ]
    }

    #[test]
    fn a_point_is_the_fastest_run_and_its_spread_reaches_to_the_slowest() {
        let points = points(&[launch(1.0), launch(2.0)]);
        assert_eq!((points[0].way.as_str(), points[0].value, points[0].spread), ("aligned", 63.0, 6.0 * 63.0 - 63.0));
        assert_eq!(points.len(), 6);
    }

    #[test]
    fn a_row_compares_within_launches_and_is_there_once_it_was_measured() {
        let rows = rows(&[launch(1.0), launch(2.0)], SHARED);
        assert_eq!(rows.iter().map(|row| row.bytes).collect::<Vec<_>>(), [8, 0, 1 << 20]);
        let close = |left: f64, right: f64| assert!((left - right).abs() < 1e-9, "{left} is not {right}");
        close(rows[0].figure, 1.05);
        close(rows[1].figure, 3.0);
        close(rows[2].figure, 0.9);
        assert_eq!(rows.iter().map(ViaPoint::is_reached).collect::<Vec<_>>(), [Some(true), Some(true), Some(false)]);
        assert!(super::rows(&[launch(1.0)], MIRROR).iter().all(|row| row.bar.is_none() && row.target.is_none()));
    }
}
