//! Launches, and what they measured, put together.
//!
//! The figures of one pair of processes differ from those of the next by more than the blocks of
//! either tell: which physical pages they got, and where these lie in the caches, stays the same
//! for their whole life. So a run is split into launches, each with fresh processes (or, against a
//! server, with fresh endpoints), and its figures are those of the launches together.

use super::client::Progress;
use super::plan::Plan;
use crate::interrupt;
use crate::peers::PeerEvent;
use crate::point::{Point, histogram};
use cci_report::UserError;
use cci_report::finding::{Finding, Jitter, Overlap, OverlapPoint};
use cci_report::row::{Row, Samples};
use std::collections::BTreeMap;
use std::time::Duration;

/// What a launch may take for a size beyond its share of the time: calibration of short operations.
const ALLOWANCE: Duration = Duration::from_millis(25);

/// How a run ended.
#[derive(Debug)]
pub struct Finished {
    /// A row a size, and of each library.
    pub rows: Vec<Row>,
    /// Results that are no row over size.
    pub findings: Vec<Finding>,
    /// Why there is no more, when the run ended early.
    pub interrupted: Option<String>,
}

/// What the launches so far measured, by size and library.
#[derive(Debug, Default)]
struct Points(Vec<(Point, Samples)>);

impl Points {
    fn add(&mut self, point: &Point) {
        if point.pairs.is_empty() {
            return;
        }
        let is_same = |known: &Point| known.size == point.size && known.label == point.label;
        let at = self.0.iter().position(|(known, _)| is_same(known)).unwrap_or_else(|| {
            let fresh = Point { pairs: Vec::new(), singles: Vec::new(), overlaps: Vec::new(), ..point.clone() };
            self.0.push((fresh, Samples::default()));
            self.0.len() - 1
        });
        let (known, samples) = &mut self.0[at];
        known.singles.extend_from_slice(&point.singles);
        known.overlaps.extend_from_slice(&point.overlaps);
        samples.launches.push(point.pairs.clone());
        samples.operations += point.operations;
    }

    fn rows(&self, plan: &Plan) -> Vec<Row> {
        let rows = self.0.iter().filter_map(|(point, samples)| {
            let row = Row::new(&plan.subject(&point.transport), point.size, samples)?;
            Some(match (&point.label, jitter(point)) {
                (Some(label), _) => label.onto(row),
                (None, Ok(Some(found))) => found.onto(row),
                (None, _) => row,
            })
        });
        rows.collect()
    }

    fn findings(&self, plan: &Plan) -> Result<Vec<Finding>, UserError> {
        let mut findings = Vec::new();
        for (point, _) in &self.0 {
            findings.extend(jitter(point)?.map(Finding::Jitter));
        }
        let overlapped = self.0.iter().filter(|(point, _)| !point.overlaps.is_empty());
        let points: Vec<_> = overlapped.map(|(point, _)| OverlapPoint::new(point.size, &point.overlaps)).collect();
        if let (Some((point, _)), false) = (self.0.first(), points.is_empty()) {
            let operation = plan.session.operation.name().into();
            findings.push(Finding::Overlap(Overlap { transport: point.transport.clone(), operation, points }));
        }
        Ok(findings)
    }
}

/// The distribution of a point's single round trips, if these were timed.
fn jitter(point: &Point) -> Result<Option<Jitter>, UserError> {
    if point.singles.is_empty() {
        return Ok(None);
    }
    let mut times = histogram()?;
    point.singles.iter().for_each(|(value, count)| times.saturating_record_n(*value, *count));
    let steps = times.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value()));
    Ok(Some(Jitter {
        transport: point.transport.clone(),
        size: point.size,
        count: times.len(),
        min_ns: times.min(),
        median_ns: times.value_at_quantile(0.5),
        p99_ns: times.value_at_quantile(0.99),
        p999_ns: times.value_at_quantile(0.999),
        max_ns: times.max(),
        clock_ns: point.clock_ns,
        histogram: steps.collect(),
    }))
}

/// Measures a plan in as many launches as it asks for: the rows, and why there are no more if one
/// ended early.
///
/// # Errors
///
/// Nothing was measured at all.
pub(crate) fn in_launches(
    plan: &Plan,
    mut on: impl FnMut(Progress<'_>),
    mut launch: impl FnMut(&Plan, &mut dyn FnMut(Progress<'_>)) -> Result<(), UserError>,
) -> Result<Finished, UserError> {
    let mut points = Points::default();
    let mut ended = Ok(());
    let mut now = plan.clone();
    let mut spent = BTreeMap::new();
    for number in 0..plan.effort.launches() {
        ended = launch(&now, &mut |progress| match progress {
            Progress::Point(point) => {
                points.add(point);
                if point.label.is_none() {
                    *spent.entry(point.size).or_insert(Duration::ZERO) += point.took.saturating_sub(ALLOWANCE);
                }
                on(progress);
            }
            // Said by the first.
            Progress::TooLarge(..) | Progress::Path(_) | Progress::Peer(PeerEvent::LeftOut(_)) if number > 0 => {}
            other => on(other),
        });
        // A size whose time is spent is left to the launches that measured it.
        let is_spent = |size: &u64| spent.get(size).is_some_and(|spent| *spent >= plan.effort.time);
        now.sizes.retain(|size| plan.effort.blocks.is_some() || !is_spent(size));
        if ended.is_ok() && interrupt::is_asked() {
            ended = Err(UserError::new(interrupt::ENDED));
        }
        if ended.is_err() || now.sizes.is_empty() {
            break;
        }
    }
    let (rows, findings) = (points.rows(plan), points.findings(plan)?);
    match ended {
        Err(why) if rows.is_empty() => Err(why),
        ended => Ok(Finished { rows, findings, interrupted: ended.err().map(|why| why.0) }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::plan;
    use super::*;

    fn point(size: u64, value: f64) -> Point {
        Point { transport: "sm".into(), size, pairs: vec![(value, None); 3], operations: 30, ..Point::default() }
    }

    #[test]
    fn launches_are_put_together_by_size() {
        let mut plan = plan();
        plan.effort.launches = 3;
        let mut number = 0.0;
        let Finished { rows, interrupted, .. } = in_launches(
            &plan,
            |_| (),
            |_, on| {
                number += 1.0;
                on(Progress::Point(&point(8, number)));
                on(Progress::Point(&point(64, 10.0 * number)));
                Ok(())
            },
        )
        .unwrap();
        assert_eq!((rows.len(), interrupted), (2, None));
        assert_eq!((rows[0].size, rows[0].count, rows[0].blocks), (8, 90, 9));
        assert_eq!(rows[0].launches, [3, 3, 3]);
        assert_eq!((rows[0].min_ns, rows[0].median_ns, rows[1].median_ns), (1.0, 2.0, 20.0));
    }

    #[test]
    fn a_size_whose_time_is_spent_is_measured_by_no_further_launch() {
        let mut plan = plan();
        (plan.effort.launches, plan.effort.time, plan.effort.blocks) = (6, Duration::from_millis(60), None);
        plan.sizes = vec![8, 64];
        let mut asked = Vec::new();
        let finished = in_launches(
            &plan,
            |_| (),
            |plan, on| {
                asked.push(plan.sizes.clone());
                for size in &plan.sizes {
                    let took = Duration::from_millis(if *size == 64 { 60 } else { 30 });
                    on(Progress::Point(&Point { took, ..point(*size, 5.0) }));
                }
                Ok(())
            },
        );
        assert_eq!(asked[..3], [vec![8, 64], vec![8, 64], vec![8]]);
        let launches: Vec<_> = finished.unwrap().rows.iter().map(|row| row.launches.len()).collect();
        assert_eq!(launches, [6, 2]);
    }

    #[test]
    fn a_launch_that_ends_early_ends_the_run_and_what_was_measured_is_kept() {
        let mut plan = plan();
        plan.effort.launches = 3;
        let mut number = 0;
        let Finished { rows, interrupted, .. } = in_launches(
            &plan,
            |_| (),
            |_, on| {
                number += 1;
                on(Progress::Point(&point(8, 5.0)));
                if number == 2 { Err(UserError::new("gone")) } else { Ok(()) }
            },
        )
        .unwrap();
        assert_eq!((rows[0].launches.len(), interrupted.as_deref(), number), (2, Some("gone"), 2));
        let nothing = in_launches(&plan, |_| (), |_, _| Err(UserError::new("not there")));
        assert_eq!(nothing.unwrap_err().0, "not there");
    }

    #[test]
    fn single_round_trips_of_all_launches_are_one_distribution() {
        let mut plan = plan();
        plan.effort.launches = 2;
        let finished = in_launches(
            &plan,
            |_| (),
            |_, on| {
                on(Progress::Point(&Point { singles: vec![(100, 98), (900, 2)], clock_ns: 20.0, ..point(8, 50.0) }));
                Ok(())
            },
        );
        let finished = finished.unwrap();
        let [Finding::Jitter(jitter)] = &finished.findings[..] else { panic!("{:?}", finished.findings) };
        assert_eq!(
            (jitter.count, jitter.min_ns, jitter.median_ns, jitter.p99_ns, jitter.max_ns),
            (200, 100, 100, 900, 900)
        );
        assert_eq!(jitter.histogram, [(100, 196), (900, 4)]);
        let row = &finished.rows[0];
        assert_eq!((row.min_ns, row.median_ns, row.p99_ns, row.p999_ns), (100.0, 100.0, 900.0, 900.0));
    }

    #[test]
    fn the_overlap_is_what_both_together_save() {
        let finished = in_launches(
            &plan(),
            |_| (),
            |_, on| {
                let overlaps = vec![[100.0, 100.0, 120.0]; 3];
                on(Progress::Point(&Point { overlaps, ..point(8, 50.0) }));
                on(Progress::Point(&Point { overlaps: vec![[100.0, 50.0, 160.0]], ..point(64, 50.0) }));
                Ok(())
            },
        );
        let finished = finished.unwrap();
        let [Finding::Overlap(overlap)] = &finished.findings[..] else { panic!("{:?}", finished.findings) };
        let of = |at: usize| (overlap.points[at].size, overlap.points[at].overlap);
        assert_eq!((of(0), of(1)), ((8, 0.8), (64, 0.0)));
    }
}
