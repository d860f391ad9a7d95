//! Systems whose parameters were published.

use crate::family::Family;
use crate::parameters::{FirstTransmission, Link, Overhead, Parameters, Relay};

/// A published system.
#[derive(Clone, Debug)]
pub struct Preset {
    /// Its name on the command line.
    pub name: &'static str,
    /// Where the parameters are from.
    pub source: &'static str,
    /// The parameters, for a message of 64 bytes.
    pub parameters: Parameters,
    /// The families that were compared.
    pub families: Vec<Family>,
    /// The crossover points that were published.
    pub published: Vec<Published>,
}

/// Where the next dimension becomes better, in nodes, as published.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// From which family to which.
    pub families: (Family, Family),
    /// Average latency.
    pub average: u32,
    /// One-to-all by unicasts.
    pub unicasts: u32,
    /// Average latency with the switching latency halved.
    pub average_enhanced: u32,
    /// One-to-all by unicasts with the switching latency halved.
    pub unicasts_enhanced: u32,
}

/// Why the published columns for one-to-all by unicasts are not reproduced.
pub const UNICASTS_NOTE: &str = "The multi-unicast columns of the thesis do not follow from its formulas as printed: the sum of the unicasts to all \
     destinations is (N - 1) times the average latency, and so crosses exactly where the average latency does. Ours is that sum.";

/// D. Gonzalez, "Performance Modeling and Evaluation of Topologies for Low-Latency SCI Systems":
/// nine PCs of 400 MHz with Wulfkit adapters in 2000.
///
/// l_p is half the speed of light over a metre, the others were measured (table 1); the crossover
/// points are table 2. The header of 16 bytes makes the packet of 40 symbols of 2 bytes that its
/// chapter 4 assumes for 64 bytes.
#[must_use]
pub fn sci2000() -> Preset {
    let published = [(18, 20, 9, 5), (191, 220, 45, 9), (1831, 2050, 232, 18)];
    let row = |(dimensions, row): (u32, &(u32, u32, u32, u32))| Published {
        families: (Family::torus(dimensions), Family::torus(dimensions + 1)),
        average: row.0,
        unicasts: row.1,
        average_enhanced: row.2,
        unicasts_enhanced: row.3,
    };
    Preset {
        name: "sci2000",
        source: "D. Gonzalez, Performance Modeling and Evaluation of Topologies for Low-Latency SCI Systems, tables 1 and 2",
        parameters: Parameters {
            overhead: Overhead { at_reference_ns: 2085.0, reference_bytes: 64.0, per_byte_ns: 11.6 },
            propagation_ns: 7.0,
            forwarding_ns: 60.0,
            switching_ns: 670.0,
            link: Link {
                bytes_per_ns: Some(0.4),
                header_bytes: 16.0,
                relay: Relay::CutThrough,
                first: FirstTransmission::InOverhead,
            },
            message_bytes: 64.0,
        },
        families: (1..=4).map(Family::torus).collect(),
        published: (1..).zip(&published).map(row).collect(),
    }
}

/// The system of this name.
#[must_use]
pub fn preset(name: &str) -> Option<Preset> {
    (name == "sci2000").then(sci2000)
}
