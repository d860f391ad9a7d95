//! MPI beside windows of SCI: the tables on the terminal.

use super::experiments::{self, Experiment, Place, Unit};
use super::table::{align, time};
use crate::finding::{Mpi, PortalsPoint};
use crate::sizes::show_size;
use crate::thesis;

const fn timed(name: &'static str, title: &'static str) -> Experiment {
    let (place, unit, processors) = (Place::Bytes, Unit::Time, "one for each program");
    Experiment { name, title, place, unit, expected: "windows a fifth of MPI at 8 B", processors, least: 1 }
}

/// All, in the order of the table.
pub(crate) const EXPERIMENTS: [Experiment; 2] = [
    timed("oneway", "(1) a message of a one-way stream, by bytes"),
    timed("pingpong", "(2) half round trip of a message, by bytes"),
];

/// Bytes of the longest message of the thesis's figures.
pub(super) const LONGEST: u64 = 512;

/// The overhead at each end over the bytes of a message, a line, fitted to ping-pongs: half of a
/// round trip is twice the overhead, since within a host there is no link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Overhead {
    /// At 64 bytes.
    pub(super) at_64: f64,
    pub(super) per_byte: f64,
}

impl Overhead {
    pub(super) fn of(&self, bytes: f64) -> f64 {
        self.at_64 + self.per_byte * (bytes - 64.0)
    }

    /// The line of the least relative errors; none of fewer than two sizes.
    fn fitted(times: &[(f64, f64)]) -> Option<Self> {
        let (mut s, mut sx, mut sxx, mut sy, mut sxy) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for (bytes, half) in times {
            let (x, y) = (bytes - 64.0, half / 2.0);
            let weight = 1.0 / (y * y);
            s += weight;
            sx += weight * x;
            sxx += weight * x * x;
            sy += weight * y;
            sxy += weight * x * y;
        }
        let determinant = s * sxx - sx * sx;
        let is_line = determinant.is_finite() && determinant > 1e-9 * s * sxx;
        is_line
            .then(|| Self { at_64: (sxx * sy - sx * sxy) / determinant, per_byte: (s * sxy - sx * sy) / determinant })
    }
}

/// The components of a way, and how well they predict sizes left out.
pub(super) struct Components {
    pub(super) way: String,
    /// Of every other size.
    pub(super) overhead: Overhead,
    /// Bytes and half round trips, those fitted and those left out.
    pub(super) fitted: Vec<(f64, f64)>,
    pub(super) left_out: Vec<(f64, f64)>,
}

impl Components {
    /// The largest relative error of a size that was left out.
    fn error(&self) -> f64 {
        let of = |(bytes, half): &(f64, f64)| (2.0 * self.overhead.of(*bytes) / half - 1.0).abs();
        self.left_out.iter().map(of).fold(0.0, f64::max)
    }
}

/// Figures of a way of an experiment, up to the longest message of the thesis's figures.
#[expect(clippy::cast_precision_loss, reason = "sizes below 2^52")]
pub(super) fn figures(points: &[PortalsPoint], experiment: &str, way: &str) -> Vec<(f64, f64)> {
    let of = |point: &&PortalsPoint| point.experiment == experiment && point.way == way && point.x <= LONGEST;
    points.iter().filter(of).map(|point| (point.x as f64, point.value)).collect()
}

/// The ways, windows last.
pub(super) fn ways(found: &Mpi) -> Vec<&str> {
    EXPERIMENTS[1].found(&found.points).1
}

/// The components of each way that has enough sizes.
pub(super) fn components(found: &Mpi) -> Vec<Components> {
    let of = |way: &str| {
        let all = figures(&found.points, "pingpong", way);
        let every_other = |rest: usize| all.iter().copied().skip(rest).step_by(2).collect::<Vec<_>>();
        let (fitted, left_out) = (every_other(0), every_other(1));
        let overhead = Overhead::fitted(&fitted)?;
        Some(Components { way: way.to_owned(), overhead, fitted, left_out })
    };
    ways(found).into_iter().filter_map(of).collect()
}

/// The tables.
pub(crate) fn table(found: &Mpi) -> String {
    let head = format!(
        "MPI beside windows of SCI ({}) over {}, {} launches, {} processors; of {} runs the minimum, and how far the slowest lies above\n{}",
        found.window,
        found.transport,
        found.launches,
        found.processors,
        found.runs,
        found.programs.join("\n")
    );
    let mut text = experiments::tables(head, &EXPERIMENTS, (&found.points, "+"), found.processors);
    text += &format!("\n\n(3) the shortest message one way, and the thesis's of 1 byte in 1999\n{}", shortest(found));
    let components = components(found);
    if !components.is_empty() {
        text += &format!(
            "\n\n(4) overhead at each end, fitted to every other size up to {}, and the error at the sizes left out\n{}",
            show_size(LONGEST),
            fits(&components)
        );
    }
    text + "\n"
}

fn shortest(found: &Mpi) -> String {
    let mut rows = vec![["way", "bytes", "time", "to stores"].map(String::from).to_vec()];
    let row = |way: &str, bytes: String, ns: f64, own: f64| {
        vec![way.to_owned(), bytes, time(ns), format!("{:.2}", ns / own.max(f64::MIN_POSITIVE))]
    };
    let of = |way: &str| figures(&found.points, "oneway", way).first().copied();
    let own = of("windows").map_or(f64::NAN, |(_, ns)| ns);
    for way in ways(found) {
        if let Some((bytes, ns)) = of(way) {
            rows.push(row(way, format!("{bytes:.0}"), ns, own));
        }
    }
    rows.push(row("1999: MPI", "1".into(), thesis::MPI_NS, thesis::API_NS));
    rows.push(row("1999: stores", "1".into(), thesis::API_NS, thesis::API_NS));
    align(&rows, &[0]).trim_end().to_owned()
}

fn fits(components: &[Components]) -> String {
    let mut rows = vec![["way", "at 64 B", "ns for a byte", "largest error"].map(String::from).to_vec()];
    for of in components {
        let Overhead { at_64, per_byte } = of.overhead;
        rows.push(vec![of.way.clone(), time(at_64), format!("{per_byte:.3}"), format!("{:.1} %", 100.0 * of.error())]);
    }
    let old = ["1999: stores".to_owned(), time(thesis::OVERHEAD_NS), format!("{:.3}", thesis::PER_BYTE_NS), "-".into()];
    rows.push(old.to_vec());
    align(&rows, &[0]).trim_end().to_owned()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Windows of 20 ns and MPI of 100 ns overhead, which grow by 0.1 and 0.2 ns a byte.
    pub(crate) fn found() -> Mpi {
        let mut points = Vec::new();
        for x in [1_u32, 8, 64, 128, 256, 512, 65_536] {
            for (way, at_64, per_byte) in [("windows", 20.0, 0.1), ("openmpi", 100.0, 0.2)] {
                let half = 2.0 * Overhead { at_64, per_byte }.of(f64::from(x));
                for (experiment, value) in [("oneway", half / 2.0), ("pingpong", half)] {
                    let (experiment, way) = (experiment.into(), way.into());
                    points.push(PortalsPoint { experiment, x: u64::from(x), way, value, spread: 1.0 });
                }
            }
        }
        let programs = vec!["openmpi:shm: btl self,vader; version 4.1".into()];
        let (transport, window) = ("sm".into(), "shared".into());
        Mpi { transport, window, programs, launches: 2, runs: 10, processors: 2, points }
    }

    #[test]
    fn the_overhead_of_a_line_is_found_and_predicts_what_was_left_out() {
        let components = components(&found());
        assert_eq!(components.iter().map(|of| of.way.as_str()).collect::<Vec<_>>(), ["openmpi", "windows"]);
        let of = &components[1];
        assert!((of.overhead.at_64 - 20.0).abs() < 1e-6 && (of.overhead.per_byte - 0.1).abs() < 1e-9);
        assert!(of.error() < 1e-9 && of.left_out.len() == 3);
        assert_eq!(Overhead::fitted(&[(8.0, 100.0)]), None);
        assert_eq!(Overhead::fitted(&[(8.0, 100.0), (8.0, 101.0)]), None);
    }

    #[test]
    fn the_table_has_the_figures_of_1999_beside() {
        let text = table(&found());
        for expected in ["to windows", "6.40 us", "3.37", "2.08 us", "11.600", "0.200", "largest error"] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        assert!(!table(&Mpi { points: vec![], ..found() }).contains("(4)"));
    }
}
