//! One side of a comparison: for each key, the launches of one build.

use crate::UserError;
use crate::documents::Key;
use crate::row::{Document, Row};

/// What one side has of a key.
#[derive(Clone, Debug, Default)]
pub(super) struct Series {
    /// One a launch: the logarithm of measured to probe, of each block. Without a probe, of
    /// nanoseconds.
    pub(super) launches: Vec<Vec<f64>>,
}

/// All keys of a side, in the order of their first row.
#[derive(Debug, Default)]
pub struct Side(pub(super) Vec<(Key, Series)>);

impl Side {
    /// Takes the rows of a document; rows of the same key are further launches. `name` is the
    /// file's.
    ///
    /// # Errors
    ///
    /// A row contradicts itself.
    pub fn take(&mut self, document: &Document, name: &str) -> Result<(), UserError> {
        for row in &document.rows {
            let key = Key::of(row);
            let launches = launches(row).map_err(|why| UserError(format!("{name}: the row of {key} {why}")))?;
            match self.0.iter_mut().find(|(known, _)| *known == key) {
                Some((_, series)) => series.launches.extend(launches),
                None => self.0.push((key, Series { launches })),
            }
        }
        Ok(())
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Series> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, series)| series)
    }
}

/// The blocks of a row, launch by launch.
fn launches(row: &Row) -> Result<Vec<Vec<f64>>, String> {
    let is_time = |ns: f64| ns > 0.0 && ns.is_finite();
    let logarithms = row.pairs.iter().map(|(measured, probe)| {
        let bare = if row.probe.is_some() { (*probe)? } else { 1.0 };
        (is_time(*measured) && is_time(bare)).then(|| measured.ln() - bare.ln())
    });
    let blocks = logarithms.collect::<Option<Vec<_>>>().ok_or("has a block without a time, or without its probe's")?;
    if blocks.is_empty() {
        return Err("has no blocks: it was written without its `pairs`, which a comparison needs".into());
    }
    if row.launches.is_empty() {
        return Ok(vec![blocks]);
    }
    let mut rest = blocks.as_slice();
    let mut launches = Vec::new();
    for len in &row.launches {
        let wrong = || format!("has {} blocks, and launches of {:?} blocks", row.pairs.len(), row.launches);
        let (launch, after) =
            usize::try_from(*len).ok().and_then(|len| rest.split_at_checked(len)).ok_or_else(wrong)?;
        rest = after;
        if !launch.is_empty() {
            launches.push(launch.to_vec());
        }
    }
    if rest.is_empty() { Ok(launches) } else { Err("has blocks that belong to no launch".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Environment;
    use crate::names::Measurement;
    use crate::row::tests::row;

    fn side(rows: Vec<Row>) -> Result<Side, UserError> {
        let mut side = Side::default();
        side.take(&Document::new(Environment::default(), rows, vec![], None), "a.json").map(|()| side)
    }

    #[test]
    fn blocks_are_cut_into_launches_and_rows_of_the_same_key_are_more_of_them() {
        let mut one = row(Measurement::PingPong, 8);
        one.pairs = vec![(2.0, Some(1.0)), (4.0, Some(2.0)), (6.0, Some(2.0))];
        one.launches = vec![2, 1];
        let mut other = one.clone();
        other.launches = vec![];
        let side = side(vec![one, other]).unwrap();
        let [(_, series)] = &side.0[..] else { panic!("{side:?}") };
        let (two, three) = (2_f64.ln(), 3_f64.ln());
        let expected = [vec![two, two], vec![three], vec![two, two, three]];
        for (launch, expected) in series.launches.iter().flatten().zip(expected.iter().flatten()) {
            assert!((launch - expected).abs() < 1e-12, "{:?}", series.launches);
        }
        assert_eq!(series.launches.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1, 3]);
    }

    #[test]
    fn without_a_probe_the_times_themselves_count() {
        let mut bare = row(Measurement::PingPong, 8);
        (bare.probe, bare.pairs, bare.launches) = (None, vec![(10.0, None)], vec![1]);
        let side = side(vec![bare]).unwrap();
        assert!((side.0[0].1.launches[0][0] - 10_f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn a_row_that_contradicts_itself_is_told_with_its_file() {
        let told = |change: &dyn Fn(&mut Row)| {
            let mut row = row(Measurement::PingPong, 8);
            change(&mut row);
            side(vec![row]).unwrap_err().0
        };
        assert!(told(&|row| row.launches = vec![2]).contains("belong to no launch"));
        assert!(told(&|row| row.launches = vec![2, u64::MAX]).contains("launches of"));
        assert!(told(&|row| row.pairs.clear()).contains("`pairs`"));
        assert!(told(&|row| row.pairs[1].0 = 0.0).contains("without a time"));
        let lost = told(&|row| row.pairs[1].1 = None);
        assert!(lost.contains("a.json: the row of pingpong of send, 8 B") && lost.contains("probe"), "{lost}");
    }
}
