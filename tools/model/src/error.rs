//! What cannot be answered, as sentences that say what to give instead.

use std::fmt;

/// Why a question to the model has no answer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ModelError {
    /// No topology, family or pattern has this name.
    Unknown {
        /// What was to be named: topology, family or pattern.
        what: &'static str,
        /// The name as given.
        name: String,
        /// Names that there are.
        known: &'static str,
    },
    /// A topology of this kind cannot have this size.
    Size {
        /// The kind.
        kind: String,
        /// What was asked for, as given.
        asked: String,
        /// What sizes there are, and the nearest.
        instead: String,
    },
    /// More nodes than numbers of double precision count exactly.
    TooLarge {
        /// The topology as given.
        topology: String,
    },
    /// A parameter that is missing, zero, negative or not a number.
    Parameter {
        /// Its name, such as `l_p`.
        name: &'static str,
        /// What is wrong, and what to give instead.
        wrong: String,
    },
    /// The links cannot carry this rate.
    Saturated {
        /// The topology.
        topology: String,
        /// Messages per second and node asked for.
        rate: f64,
        /// Messages per second and node at which the busiest link is never idle.
        most: f64,
    },
    /// No closed form, and too many routes to list.
    TooMuchWork {
        /// What was to be computed.
        what: String,
        /// What to ask instead.
        instead: String,
    },
    /// The question has no meaning here.
    NoAnswer(String),
}

/// The largest number of nodes: up to here every whole number has a double of its own.
pub const MOST_NODES: u64 = 1 << 53;

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { what, name, known } => write!(f, "there is no {what} `{name}`; there are {known}"),
            Self::Size { kind, asked, instead } => write!(f, "{kind} cannot have {asked}: {instead}"),
            Self::TooLarge { topology } => {
                write!(f, "{topology} has more than 2^53 nodes, more than can be counted exactly; give a smaller size")
            }
            Self::Parameter { name, wrong } => write!(f, "{name} {wrong}"),
            Self::Saturated { topology, rate, most } => write!(
                f,
                "{topology} cannot carry {rate:.4e} messages per second from each node: its busiest link is full at \
                 {most:.4e}; give a lower rate"
            ),
            Self::TooMuchWork { what, instead } => write!(f, "{what} takes too long to compute: {instead}"),
            Self::NoAnswer(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for ModelError {}
