//! What a change of one parameter does: to a time, and to a crossover point.

use crate::crossover::Comparison;
use crate::error::ModelError;
use crate::family::Family;
use crate::parameters::Parameters;

/// A parameter that can be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// o_0.
    Overhead,
    /// c.
    PerByte,
    /// l_p.
    Propagation,
    /// l_f.
    Forwarding,
    /// l_s.
    Switching,
    /// The rate of the links.
    Rate,
}

impl Parameter {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Overhead, Self::PerByte, Self::Propagation, Self::Forwarding, Self::Switching, Self::Rate];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Overhead => "o_0",
            Self::PerByte => "c",
            Self::Propagation => "l_p",
            Self::Forwarding => "l_f",
            Self::Switching => "l_s",
            Self::Rate => "rate",
        }
    }

    /// Its value: ns, ns per byte, or bytes per ns; none if there is none.
    #[must_use]
    pub fn of(self, parameters: &Parameters) -> Option<f64> {
        match self {
            Self::Overhead => Some(parameters.overhead.at_reference_ns),
            Self::PerByte => Some(parameters.overhead.per_byte_ns),
            Self::Propagation => Some(parameters.propagation_ns),
            Self::Forwarding => Some(parameters.forwarding_ns),
            Self::Switching => Some(parameters.switching_ns),
            Self::Rate => parameters.link.bytes_per_ns,
        }
    }

    /// The parameters with this one multiplied.
    #[must_use]
    pub fn scaled(self, parameters: &Parameters, factor: f64) -> Parameters {
        let mut scaled = *parameters;
        match self {
            Self::Overhead => scaled.overhead.at_reference_ns *= factor,
            Self::PerByte => scaled.overhead.per_byte_ns *= factor,
            Self::Propagation => scaled.propagation_ns *= factor,
            Self::Forwarding => scaled.forwarding_ns *= factor,
            Self::Switching => scaled.switching_ns *= factor,
            Self::Rate => scaled.link.bytes_per_ns = scaled.link.bytes_per_ns.map(|rate| rate * factor),
        }
        scaled
    }
}

/// How much a quantity changes with a parameter: per cent for each per cent. None where the
/// quantity does not exist nearby.
///
/// # Errors
///
/// Those of the quantity.
pub fn elasticity(
    parameter: Parameter,
    parameters: &Parameters,
    quantity: impl Fn(&Parameters) -> Result<Option<f64>, ModelError>,
) -> Result<Option<f64>, ModelError> {
    /// Large against rounding, small against curvature.
    const STEP: f64 = 1e-3;
    let above = quantity(&parameter.scaled(parameters, 1.0 + STEP))?;
    let below = quantity(&parameter.scaled(parameters, 1.0 - STEP))?;
    let (Some(above), Some(below)) = (above, below) else { return Ok(None) };
    Ok(Some((above / below).ln() / ((1.0 + STEP) / (1.0 - STEP)).ln()))
}

/// A change of one parameter that moves a crossover point to a given size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The parameter.
    pub parameter: Parameter,
    /// What it is multiplied with.
    pub factor: f64,
}

impl Change {
    /// What it costs: as much to double as to halve.
    #[must_use]
    pub fn cost(&self) -> f64 {
        self.factor.ln().abs()
    }
}

/// How far a parameter may be changed, as a factor up or down.
const FURTHEST: f64 = 1e4;
/// Factors tried for each factor of e.
const DENSITY: f64 = 40.0;

impl Comparison {
    /// The changes of single parameters that move the crossover point between two families to
    /// `nodes`, the cheapest first. A parameter that cannot move it there is missing.
    ///
    /// # Errors
    ///
    /// As [`Comparison::crossovers`].
    pub fn changes(&self, from: Family, to: Family, nodes: f64) -> Result<Vec<Change>, ModelError> {
        let least = from.least().max(to.least());
        if nodes < least || nodes.is_nan() {
            return Err(ModelError::Size {
                kind: format!("a crossover from {from} to {to}"),
                asked: format!("a place at {nodes} nodes"),
                instead: format!("both have at least {least} nodes from there on"),
            });
        }
        let mut changes = vec![];
        for parameter in Parameter::ALL {
            if parameter.of(&self.parameters).is_some_and(|value| value > 0.0) {
                changes.extend(self.change(parameter, from, to, nodes)?);
            }
        }
        changes.sort_by(|one: &Change, other| one.cost().total_cmp(&other.cost()));
        Ok(changes)
    }

    /// The nearest factor of one parameter at which both are equal at `nodes`, and `to` is better
    /// above.
    fn change(&self, parameter: Parameter, from: Family, to: Family, nodes: f64) -> Result<Option<Change>, ModelError> {
        let gap = |factor: f64, nodes: f64| -> Result<f64, ModelError> {
            let parameters = parameter.scaled(&self.parameters, factor);
            let time = |family: Family| match family.time_ns(self.pattern, nodes, &parameters, self.rate) {
                Err(ModelError::Saturated { .. }) => Ok(f64::NAN),
                other => other,
            };
            let (one, other) = (time(from)?, time(to)?);
            // What is below rounding is equal.
            Ok(if (one - other).abs() < 1e-12 * one { 0.0 } else { one - other })
        };
        let steps = (FURTHEST.ln() * DENSITY) as i32;
        let factor = |step: i32| (f64::from(step) / DENSITY).exp();
        for step in 0..steps {
            for (near, far) in [(factor(step), factor(step + 1)), (factor(-step), factor(-step - 1))] {
                let (one, other) = (gap(near, nodes)?, gap(far, nodes)?);
                if one * other > 0.0 || !(one * other).is_finite() || one == other {
                    continue;
                }
                let factor = root(near, far, |factor| gap(factor, nodes))?;
                // A little below, the one is better, a little above the other.
                if gap(factor, nodes * 0.999)? < 0.0 && gap(factor, nodes * 1.001)? > 0.0 {
                    return Ok(Some(Change { parameter, factor }));
                }
            }
        }
        Ok(None)
    }
}

/// The zero of a function between two places where its signs differ.
fn root(mut low: f64, mut high: f64, function: impl Fn(f64) -> Result<f64, ModelError>) -> Result<f64, ModelError> {
    let sign = function(low)?;
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if middle == low || middle == high {
            break;
        }
        if function(middle)? * sign > 0.0 { low = middle } else { high = middle }
    }
    Ok(f64::midpoint(low, high))
}
