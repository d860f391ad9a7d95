//! Launches, and what they measured, put together.
//!
//! The figures of one pair of processes differ from those of the next by more than the blocks of either tell: which physical pages
//! they got, and where these lie in the caches, stays the same for their whole life. So a run is split into launches, each with
//! fresh processes (or, against a server, with fresh endpoints), and its figures are those of the launches together.

use super::Sentence;
use super::client::Progress;
use super::plan::Plan;
use super::row::{Pair, Row, Samples};
use crate::peers::{Label, News};
use serde::{Deserialize, Serialize};

/// What one launch measured of one size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Point {
    pub(crate) transport: String,
    pub(crate) size: u64,
    /// One a block.
    pub(crate) pairs: Vec<Pair>,
    /// Operations over all blocks.
    pub(crate) operations: u64,
    /// Whose it is, when not CCI's.
    pub(crate) label: Option<Label>,
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
            self.0.push((Point { pairs: Vec::new(), ..point.clone() }, Samples::default()));
            self.0.len() - 1
        });
        let samples = &mut self.0[at].1;
        samples.launches.push(point.pairs.clone());
        samples.operations += point.operations;
    }

    fn rows(self, plan: &Plan) -> Vec<Row> {
        let rows = self.0.into_iter().filter_map(|(point, samples)| {
            let row = Row::new(plan, &point.transport, point.size, &samples)?;
            Some(match point.label {
                None => row,
                Some(label) => label.onto(row),
            })
        });
        rows.collect()
    }
}

/// Measures a plan in as many launches as it asks for: the rows, and why there are no more if one ended early.
///
/// # Errors
///
/// Nothing was measured at all.
pub(crate) fn in_launches(
    plan: &Plan,
    mut on: impl FnMut(Progress<'_>),
    mut launch: impl FnMut(&mut dyn FnMut(Progress<'_>)) -> Result<(), Sentence>,
) -> Result<(Vec<Row>, Option<String>), Sentence> {
    let mut points = Points::default();
    let mut ended = Ok(());
    for number in 0..plan.effort.launches() {
        ended = launch(&mut |progress| match progress {
            Progress::Point(point) => {
                points.add(point);
                on(progress);
            }
            // Said by the first.
            Progress::TooLarge(..) | Progress::Path(_) | Progress::Peer(News::LeftOut(_)) if number > 0 => {}
            other => on(other),
        });
        if ended.is_err() {
            break;
        }
    }
    let rows = points.rows(plan);
    match ended {
        Err(why) if rows.is_empty() => Err(why),
        ended => Ok((rows, ended.err().map(|why| why.0))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::plan;
    use super::*;

    fn point(size: u64, value: f64) -> Point {
        Point { transport: "sm".into(), size, pairs: vec![(value, None); 3], operations: 30, label: None }
    }

    #[test]
    fn launches_are_put_together_by_size() {
        let mut plan = plan();
        plan.effort.launches = 3;
        let mut number = 0.0;
        let (rows, interrupted) = in_launches(
            &plan,
            |_| (),
            |on| {
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
    fn a_launch_that_ends_early_ends_the_run_and_what_was_measured_is_kept() {
        let mut plan = plan();
        plan.effort.launches = 3;
        let mut number = 0;
        let (rows, interrupted) = in_launches(
            &plan,
            |_| (),
            |on| {
                number += 1;
                on(Progress::Point(&point(8, 5.0)));
                if number == 2 { Err(Sentence::new("gone")) } else { Ok(()) }
            },
        )
        .unwrap();
        assert_eq!((rows[0].launches.len(), interrupted.as_deref(), number), (2, Some("gone"), 2));
        let nothing = in_launches(&plan, |_| (), |_| Err(Sentence::new("not there")));
        assert_eq!(nothing.unwrap_err().0, "not there");
    }
}
