//! The components of latency from measured times of paths whose components are counted.
//!
//! A path with `a` overheads, `p` propagations, `f` forwardings and `s` switchings takes `a o(m) +
//! p l_p + f l_f + s l_s` with `o(m) = o_0 + c (m - m_0)`: linear in all five. The errors of
//! measured times grow with the times, so that each weighs by its own expected value: what is made
//! small is the sum of squares of *relative* residuals, in a few rounds, each with the weights of
//! the last.
//!
//! On every path of two ends `f = p - s - 1`. Then the columns of the linear model depend on each
//! other: adding any `x` to `l_f` and `l_s` and `x / 2` to `o_0`, and taking it from `l_p`, changes
//! no time. No further path can tell, and only the sums `2 o_0 - l_f`, `l_p + l_f` and `l_s - l_f`
//! are determined, until one component is known from elsewhere.

mod least_squares;
mod student;

#[cfg(test)]
mod tests;

use least_squares::{Data, Solution};
pub use student::quantile;

/// Rounds of weighting: the third changes less than rounding does.
const ROUNDS: usize = 4;
/// The level of all intervals.
pub const CONFIDENCE: f64 = 0.95;

/// What is fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// o_0: overhead of one end for a message of m_0 bytes, ns.
    Overhead,
    /// c: what each further byte costs one end, ns.
    PerByte,
    /// l_p: along one link, ns.
    Propagation,
    /// l_f: through a node, ns.
    Forwarding,
    /// l_s: into another dimension, ns.
    Switching,
}

impl Unknown {
    /// All of them, in order.
    pub const ALL: [Self; 5] = [Self::Overhead, Self::PerByte, Self::Propagation, Self::Forwarding, Self::Switching];

    /// Its name, such as `l_p`.
    #[must_use]
    pub fn name(self) -> &'static str {
        ["o_0", "c", "l_p", "l_f", "l_s"][self as usize]
    }

    /// The one of this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|unknown| unknown.name() == name)
    }
}

const UNKNOWNS: usize = Unknown::ALL.len();

/// A combination of the unknowns, in their order.
type Combination = [f64; UNKNOWNS];

/// What is determined in any case: name, and the combination.
const SUMS: [(&str, Combination); 3] = [
    ("2 o_0 - l_f", [2.0, 0.0, 0.0, -1.0, 0.0]),
    ("l_p + l_f", [0.0, 0.0, 1.0, 1.0, 0.0]),
    ("l_s - l_f", [0.0, 0.0, 0.0, -1.0, 1.0]),
];

/// The components of a path, counted one way; of half a round trip, the mean of both ways.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// Ends that handle the message.
    pub overheads: f64,
    /// Links.
    pub propagations: f64,
    /// Nodes that pass it on within a dimension.
    pub forwardings: f64,
    /// Nodes that pass it on into another dimension, and switches.
    pub switchings: f64,
}

/// One measured time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// The path.
    pub path: Path,
    /// Bytes of the message.
    pub bytes: f64,
    /// The time one way: half a ping-pong.
    pub ns: f64,
}

/// A fitted value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// Half the width of its interval of [`CONFIDENCE`]; 0 of what was given.
    pub half_width: f64,
}

impl Estimate {
    /// Whether the interval holds this.
    #[must_use]
    pub fn holds(&self, value: f64) -> bool {
        (self.value - value).abs() <= self.half_width
    }
}

/// Why nothing can be fitted.
#[derive(Clone, Debug, PartialEq)]
pub enum FitError {
    /// A time or a count that cannot be: what.
    Impossible(String),
    /// The measurements do not determine the components: which further one would.
    Undetermined(String),
}

impl std::fmt::Display for FitError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Impossible(what) => f.write_str(what),
            Self::Undetermined(needed) => write!(f, "the measurements do not determine the components: {needed}"),
        }
    }
}

impl std::error::Error for FitError {}

/// Components that were fitted.
#[derive(Clone, Debug)]
pub struct Fit {
    /// m_0: the size to which o_0 belongs, bytes.
    pub reference_bytes: f64,
    /// The relative standard deviation of a measured time.
    pub deviation: f64,
    /// Measurements less determined unknowns.
    pub degrees: u32,
    known: [Option<f64>; UNKNOWNS],
    solution: Solution<UNKNOWNS>,
}

impl Fit {
    /// Fits the unknowns that are not in `known`. `reference_bytes` is m_0.
    ///
    /// # Errors
    ///
    /// A count or a time is impossible, or the measurements determine not even the sums.
    pub fn new(observations: &[Observation], known: &[(Unknown, f64)], reference_bytes: f64) -> Result<Self, FitError> {
        check(observations)?;
        let mut given = [None; UNKNOWNS];
        for (unknown, value) in known {
            given[*unknown as usize] = Some(*value);
        }
        let mut expected: Vec<f64> = observations.iter().map(|observation| observation.ns).collect();
        let mut fit = None;
        for _ in 0..ROUNDS {
            let data = Data { rows: rows(observations, &given, reference_bytes, &expected) };
            let solution = data.solve();
            let Some(deviation) = solution.deviation else { return Err(undetermined(observations)) };
            let degrees = solution.degrees;
            let round = Self { reference_bytes, deviation, degrees, known: given, solution };
            expected = observations
                .iter()
                .zip(&expected)
                .map(|(observation, last)| round.weight(observation, *last))
                .collect();
            fit = Some(round);
        }
        fit.filter(Self::is_determined).ok_or_else(|| undetermined(observations))
    }

    /// The standard deviation of a time but for the common factor: the time itself as the fit has
    /// it.
    fn weight(&self, observation: &Observation, last: f64) -> f64 {
        match self.predict(&observation.path, observation.bytes) {
            Some(Estimate { value, .. }) if value > 0.0 => value,
            _ => last,
        }
    }

    /// One of the unknowns; `None` if the measurements do not tell it from others.
    #[must_use]
    pub fn unknown(&self, unknown: Unknown) -> Option<Estimate> {
        let mut of = [0.0; UNKNOWNS];
        of[unknown as usize] = 1.0;
        self.combination(&of)
    }

    /// Whether it was given.
    #[must_use]
    pub fn is_known(&self, unknown: Unknown) -> bool {
        self.known[unknown as usize].is_some()
    }

    /// Whether the four times are told from each other; if not, only their [`Fit::sums`] are.
    #[must_use]
    pub fn is_separated(&self) -> bool {
        Unknown::ALL
            .into_iter()
            .filter(|unknown| *unknown != Unknown::PerByte)
            .all(|unknown| self.unknown(unknown).is_some())
    }

    /// The sums that paths of two ends determine: name and value.
    #[must_use]
    pub fn sums(&self) -> [(&'static str, Option<Estimate>); 3] {
        SUMS.map(|(name, of)| (name, self.combination(&of)))
    }

    /// The time of a path, with the interval of its mean; `None` if it depends on more than the
    /// measurements determine.
    #[must_use]
    pub fn predict(&self, path: &Path, bytes: f64) -> Option<Estimate> {
        self.combination(&combination(path, bytes - self.reference_bytes))
    }

    fn is_determined(&self) -> bool {
        self.sums().iter().all(|(_, sum)| sum.is_some())
    }

    fn combination(&self, of: &Combination) -> Option<Estimate> {
        let mut rest = *of;
        let mut value = 0.0;
        for (part, known) in rest.iter_mut().zip(&self.known) {
            if let Some(known) = known {
                value += std::mem::take(part) * known;
            }
        }
        if rest.iter().all(|part| *part == 0.0) {
            return Some(Estimate { value, half_width: 0.0 });
        }
        let (fitted, spread) = self.solution.combination(&rest)?;
        let half_width = quantile(CONFIDENCE, self.degrees) * self.deviation * spread;
        Some(Estimate { value: value + fitted, half_width })
    }
}

/// What a path's time is in the unknowns.
fn combination(path: &Path, bytes: f64) -> Combination {
    [path.overheads, path.overheads * bytes, path.propagations, path.forwardings, path.switchings]
}

fn rows(
    observations: &[Observation],
    known: &[Option<f64>; UNKNOWNS],
    reference_bytes: f64,
    expected: &[f64],
) -> Vec<(Combination, f64, f64)> {
    let row = |(observation, expected): (&Observation, &f64)| {
        let mut of = combination(&observation.path, observation.bytes - reference_bytes);
        let mut seen = observation.ns;
        for (part, known) in of.iter_mut().zip(known) {
            if let Some(known) = known {
                seen -= std::mem::take(part) * known;
            }
        }
        (of, seen, *expected)
    };
    observations.iter().zip(expected).map(row).collect()
}

fn check(observations: &[Observation]) -> Result<(), FitError> {
    for Observation { path, bytes, ns } in observations {
        let counts = [path.overheads, path.propagations, path.forwardings, path.switchings];
        if !counts.iter().all(|count| count.is_finite() && *count >= 0.0) || path.overheads + path.propagations == 0.0 {
            return Err(FitError::Impossible(format!(
                "a path has counts of zero or more, and at least an overhead or a link, not {counts:?}"
            )));
        }
        if !(ns.is_finite() && *ns > 0.0) {
            return Err(FitError::Impossible(format!(
                "a path of {} links took {ns} ns for {bytes} bytes; a time is above zero",
                path.propagations
            )));
        }
    }
    Ok(())
}

/// Which measurement is missing.
fn undetermined(observations: &[Observation]) -> FitError {
    let first = observations.first().map(|observation| observation.path);
    let same = |of: fn(&Path) -> f64| {
        observations
            .iter()
            .all(|observation| first.is_some_and(|first| of(&observation.path).to_bits() == of(&first).to_bits()))
    };
    let needed = match first {
        None => "there are none; give times of paths of different lengths, and of one that switches".to_owned(),
        Some(path) if same(|path| path.propagations) => {
            format!("all paths have {} links; measure one with another number of links", path.propagations)
        }
        Some(Path { switchings: 0.0, .. }) if same(|path| path.switchings) => {
            "no path switches from one dimension to another; measure one that does".to_owned()
        }
        Some(path) if same(|path| path.switchings) => {
            format!("all paths switch {} times; measure one that switches another number of times", path.switchings)
        }
        _ if observations.len() <= UNKNOWNS => "there are as few of them as unknowns, so that nothing tells their error; \
             measure another path, or another size"
            .to_owned(),
        _ => "links and switchings grow together on all paths; measure one that has as many links as another and another number \
              of switchings"
            .to_owned(),
    };
    FitError::Undetermined(needed)
}
