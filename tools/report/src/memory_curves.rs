//! Memory over peers and over connections to one peer: what was measured, and the computed rest.

use crate::named;
use serde::{Deserialize, Serialize};

named! {
    /// What the points of a curve count.
    pub enum Over {
        /// Peers, each with one connection
        Peers = "peers",
        /// Connections to one peer
        Connections = "connections",
    }
    /// Whose memory it is.
    pub enum Space {
        /// Memory of the process
        User = "user",
        /// Memory of the kernel
        Kernel = "kernel",
    }
}

/// Memory of one end over peers, and over connections to one peer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemoryCurves {
    /// The points of every curve, those of one curve together and from the smallest.
    pub points: Vec<MemoryCurvePoint>,
    /// Which sources of the system were read, which could not be, where a curve stopped and why.
    pub notes: Vec<String>,
}

/// Memory of one end with so many peers or connections, beyond that with none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemoryCurvePoint {
    /// The transport, or what stands beside the transports.
    pub curve: String,
    /// What `count` counts.
    pub over: Over,
    /// Whose memory it is.
    pub space: Space,
    /// Peers or connections.
    pub count: u64,
    /// Bytes beyond those with none.
    pub bytes: f64,
    /// It was not measured.
    pub computed: bool,
}

impl MemoryCurvePoint {
    fn is_of(&self, other: &Self) -> bool {
        (&self.curve, self.over, self.space) == (&other.curve, other.over, other.space)
    }

    /// The same curve at another count, in proportion.
    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 peers")]
    #[must_use]
    pub fn in_proportion(&self, count: u64) -> Self {
        let bytes = self.bytes * count as f64 / self.count.max(1) as f64;
        Self { count, bytes, computed: true, ..self.clone() }
    }
}

/// The points of one curve.
pub(crate) struct MemoryCurve<'a>(pub(crate) &'a [MemoryCurvePoint]);

impl MemoryCurve<'_> {
    /// The name for tables and legends.
    pub(crate) fn label(&self) -> String {
        let first = &self.0[0];
        let what = if self.measured().is_empty() { "computed" } else { first.space.name() };
        format!("{}, {what}", first.curve)
    }

    /// The points that were measured, which come first.
    pub(crate) fn measured(&self) -> &[MemoryCurvePoint] {
        &self.0[..self.0.iter().take_while(|point| !point.computed).count()]
    }

    /// The computed points, after the last measured one, where the dashed line begins.
    pub(crate) fn computed(&self) -> &[MemoryCurvePoint] {
        let measured = self.measured().len();
        if measured == self.0.len() { &[] } else { &self.0[measured.saturating_sub(1)..] }
    }
}

impl MemoryCurves {
    /// The curves over peers or over connections.
    pub(crate) fn curves(&self, over: Over) -> Vec<MemoryCurve<'_>> {
        let of = |points: &&[MemoryCurvePoint]| points[0].over == over;
        self.points.chunk_by(MemoryCurvePoint::is_of).filter(of).map(MemoryCurve).collect()
    }

    /// What is counted, of what there are points.
    pub(crate) fn overs(&self) -> Vec<Over> {
        let there_are = |over: &Over| self.points.iter().any(|point| point.over == *over);
        [Over::Peers, Over::Connections].into_iter().filter(there_are).collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A transport whose peers beyond 100 are computed, its kernel memory, and a curve that was not
    /// measured at all.
    pub(crate) fn found() -> MemoryCurves {
        let point = |curve: &str, over, space, count, bytes, computed| MemoryCurvePoint {
            curve: curve.into(),
            over,
            space,
            count,
            bytes,
            computed,
        };
        let (peers, user) = (Over::Peers, Space::User);
        let last = point("tcp", peers, user, 100, 90_000.0, false);
        MemoryCurves {
            points: vec![
                point("tcp", peers, user, 10, 12_000.0, false),
                last.clone(),
                last.in_proportion(10_000),
                point("tcp", peers, Space::Kernel, 100, 380_000.0, false),
                point("queue pairs", peers, user, 100, 409_600.0, true),
                point("tcp", Over::Connections, user, 10_000, 1.2e6, false),
            ],
            notes: vec!["one note".into()],
        }
    }

    #[test]
    fn a_curve_is_dashed_from_its_last_measured_point_on() {
        let found = found();
        let curves = found.curves(Over::Peers);
        let labels: Vec<_> = curves.iter().map(MemoryCurve::label).collect();
        assert_eq!(labels, ["tcp, user", "tcp, kernel", "queue pairs, computed"]);
        let counts = |points: &[MemoryCurvePoint]| points.iter().map(|point| point.count).collect::<Vec<_>>();
        assert_eq!(counts(curves[0].measured()), [10, 100]);
        assert_eq!(counts(curves[0].computed()), [100, 10_000]);
        assert!((curves[0].computed()[1].bytes - 9e6).abs() < 1.0);
        assert_eq!((curves[1].computed().len(), curves[2].computed().len()), (0, 1));
        assert_eq!(found.overs(), [Over::Peers, Over::Connections]);
    }
}
