//! The sizes at which the best of several topologies changes.

use crate::error::ModelError;
use crate::family::Family;
use crate::parameters::Parameters;
use crate::pattern::Pattern;
use crate::topology::Topology;

/// What is compared: families, under a pattern, with parameters.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The families. Of two that are equally good the one named first is taken; over growing whole
    /// sizes, the one that was the best already.
    pub families: Vec<Family>,
    /// The pattern.
    pub pattern: Pattern,
    /// The parameters.
    pub parameters: Parameters,
    /// Messages per second from each node, if contention counts.
    pub rate: Option<f64>,
}

/// A size from which on another family is better.
#[derive(Clone, Debug, PartialEq)]
pub struct Crossover {
    /// In nodes.
    pub nodes: f64,
    /// The best below.
    pub from: Family,
    /// The best above.
    pub to: Family,
    /// The time at which both are equal, or over whole sizes the better one's, ns.
    pub time_ns: f64,
}

/// A change of the best over whole sizes.
///
/// Sizes grow in steps, which differ between families: around a change the best goes to and fro.
#[derive(Clone, Debug, PartialEq)]
pub struct WholeCrossover {
    /// The first number of nodes for which the next family is best.
    pub first: u64,
    /// The number of nodes from which on the family before is not best any more; none if it still
    /// is at the largest size.
    pub settled: Option<u64>,
    /// The best below.
    pub from: Family,
    /// The best above.
    pub to: Family,
}

/// Points at which real-valued sizes are looked at, for each factor of e.
const DENSITY: f64 = 200.0;

impl Comparison {
    /// The best family at a size that need not be whole, of those that can have it, and its time;
    /// none if no family can.
    ///
    /// # Errors
    ///
    /// A pattern without closed form, or missing parameters.
    pub fn best(&self, nodes: f64) -> Result<Option<(Family, f64)>, ModelError> {
        let mut best: Option<(Family, f64)> = None;
        for family in self.families.iter().filter(|family| family.least() <= nodes) {
            let time = match family.time_ns(self.pattern, nodes, &self.parameters, self.rate) {
                // What is full is not the best, as long as another is not.
                Err(ModelError::Saturated { .. }) => continue,
                other => other?,
            };
            if best.is_none_or(|(_, least)| time < least) {
                best = Some((*family, time));
            }
        }
        Ok(best)
    }

    /// Where the best changes, over real-valued sizes from 2 to `most` nodes.
    ///
    /// # Errors
    ///
    /// No family, a pattern without closed form, or missing parameters.
    pub fn crossovers(&self, most: f64) -> Result<Vec<Crossover>, ModelError> {
        self.must_compare()?;
        let mut found = vec![];
        let points = ((most / 2.0).ln() * DENSITY).ceil().max(1.0) as u32;
        let at = |point: u32| 2.0 * (most / 2.0).powf(f64::from(point) / f64::from(points));
        let mut before = (at(0), self.best(at(0))?);
        for point in 1..=points {
            let here = (at(point), self.best(at(point))?);
            self.between(before, here, &mut found)?;
            before = here;
        }
        Ok(found)
    }

    /// Finds the changes between two sizes by halving; also those to a third family in between.
    fn between(
        &self,
        low: (f64, Option<(Family, f64)>),
        high: (f64, Option<(Family, f64)>),
        found: &mut Vec<Crossover>,
    ) -> Result<(), ModelError> {
        let (Some((from, _)), Some((to, time_ns))) = (low.1, high.1) else { return Ok(()) };
        if from == to {
            return Ok(());
        }
        if (high.0 - low.0) < 1e-12 * high.0 {
            found.push(Crossover { nodes: high.0, from, to, time_ns });
            return Ok(());
        }
        let middle = f64::midpoint(low.0, high.0);
        let middle = (middle, self.best(middle)?);
        self.between(low, middle, found)?;
        self.between(middle, high, found)
    }

    /// Where two families are equal, over real-valued sizes from the least that both can have to
    /// `most`; the last such place.
    ///
    /// # Errors
    ///
    /// As [`Comparison::crossovers`].
    pub fn crossing(&self, from: Family, to: Family, most: f64) -> Result<Option<f64>, ModelError> {
        let pair = Self { families: vec![from, to], ..self.clone() };
        let last = pair.crossovers(most)?.into_iter().rfind(|change| (change.from, change.to) == (from, to));
        Ok(last.map(|change| change.nodes))
    }

    /// Where the best changes over whole sizes up to `most` nodes: each family with the smallest
    /// member that has as many nodes as are needed.
    ///
    /// # Errors
    ///
    /// As [`Comparison::crossovers`].
    pub fn whole_crossovers(&self, most: u64) -> Result<Vec<WholeCrossover>, ModelError> {
        self.must_compare()?;
        let mut members: Vec<_> = self.families.iter().map(|family| Member::new(*family)).collect();
        // In the order in which they are best for the first time: first and last size.
        let mut reigns: Vec<(Family, u64, u64)> = vec![];
        let mut before = None;
        for nodes in 2..=most {
            let mut best: Option<(Family, f64)> = None;
            for member in &mut members {
                let time = member.time_ns(nodes, self)?;
                if time.is_finite() && best.is_none_or(|(_, least)| time < least) {
                    best = Some((member.family, time));
                }
            }
            let Some((mut family, least)) = best else { continue };
            // Who is as good as the best remains it.
            let as_good = |member: &&Member| Some(member.family) == before && member.time_ns <= least * (1.0 + 1e-12);
            if let Some(member) = members.iter().find(as_good) {
                family = member.family;
            }
            before = Some(family);
            match reigns.iter_mut().find(|reign| reign.0 == family) {
                Some(reign) => reign.2 = nodes,
                None => reigns.push((family, nodes, nodes)),
            }
        }
        let change = |pair: &[(Family, u64, u64)]| WholeCrossover {
            first: pair[1].1,
            settled: (pair[0].2 < most).then_some(pair[0].2 + 1),
            from: pair[0].0,
            to: pair[1].0,
        };
        Ok(reigns.windows(2).map(change).collect())
    }

    fn must_compare(&self) -> Result<(), ModelError> {
        if self.families.len() < 2 {
            return Err(ModelError::NoAnswer("a crossover needs at least two families: name another".into()));
        }
        self.parameters.check()
    }
}

/// The member of a family that is compared, as sizes grow.
struct Member {
    family: Family,
    topology: Option<Topology>,
    /// Nodes that it has.
    nodes: u64,
    time_ns: f64,
}

impl Member {
    fn new(family: Family) -> Self {
        Self { family, topology: None, nodes: 0, time_ns: f64::INFINITY }
    }

    /// Its time with at least so many nodes; infinite when its links cannot carry the rate.
    fn time_ns(&mut self, nodes: u64, comparison: &Comparison) -> Result<f64, ModelError> {
        if nodes > self.nodes {
            self.topology = self.family.at_least(nodes);
            self.nodes = self.topology.as_ref().map_or(u64::MAX, Topology::nodes);
            self.time_ns = match &self.topology {
                Some(topology) => comparison.whole_time_ns(topology)?,
                None => f64::INFINITY,
            };
        }
        Ok(self.time_ns)
    }
}

impl Comparison {
    fn whole_time_ns(&self, topology: &Topology) -> Result<f64, ModelError> {
        let shape = topology.shape();
        let time = match self.rate {
            None => self.pattern.closed_ns(&shape, &self.parameters),
            Some(rate) => self.pattern.loaded_closed(&shape, &self.parameters, rate).map(|loaded| loaded.time_ns),
        };
        match time {
            Err(ModelError::Saturated { .. }) => Ok(f64::INFINITY),
            other => other,
        }
    }
}
