//! From the blocks of all launches to the rows of the table.

use super::blocks::Samples;
use super::row::{ROWS, Row};
use crate::methods::compared::compared;
use cci_report::finding::ViaPoint;
use cci_report::statistics::median;

/// What all launches have measured.
#[derive(Debug, Default)]
pub(super) struct Launches(Vec<Samples>);

impl Launches {
    pub(super) fn add(&mut self, samples: Samples) {
        self.0.push(samples);
    }

    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }

    /// A point for each row; bars where they hold.
    pub(super) fn points(&self, cycle_ns: f64, has_bars: bool) -> Vec<ViaPoint> {
        ROWS.iter().enumerate().map(|(at, row)| self.point(at, row, cycle_ns, has_bars)).collect()
    }

    /// Launches are compared within themselves.
    fn point(&self, at: usize, row: &Row, cycle_ns: f64, has_bars: bool) -> ViaPoint {
        let of = |way: usize| -> Vec<f64> { self.0.iter().map(|launch| median(&launch[at][way])).collect() };
        let (ours, reference) = (of(0), of(1));
        let point = ViaPoint {
            name: row.name.into(),
            bytes: row.bytes as u64,
            reference: row.reference.name().into(),
            told: row.told,
            bar: row.bar.filter(|_| has_bars),
            target: row.target.filter(|_| has_bars),
            ..ViaPoint::default()
        };
        compared(point, &ours, &reference, cycle_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cci_report::finding::ViaTold;

    #[test]
    fn a_row_tells_cycles_or_a_ratio_of_its_launches() {
        let mut launches = Launches::default();
        for ns in [130.0, 150.0, 140.0] {
            launches.add(ROWS.iter().map(|_| [vec![ns; 3], vec![100.0; 3]]).collect());
        }
        let points = launches.points(0.5, true);
        let close = |left: f64, right: f64| assert!((left - right).abs() < 1e-9, "{left} is not {right}");
        for point in &points {
            match point.told {
                ViaTold::Cycles => close(point.figure, 80.0),
                ViaTold::Speed => close(point.figure, 100.0 / 140.0),
                ViaTold::Time => close(point.figure, 1.4),
                ViaTold::Nanoseconds | ViaTold::More => unreachable!("no row of VIs has it"),
            }
        }
        assert_eq!((points[0].bar, points[0].target), (Some(150.0), Some(80.0)));
        assert!(launches.points(0.5, false).iter().all(|point| point.bar.is_none() && point.target.is_none()));
    }
}
