//! How long a message takes over a network that one may not have: by topology, size, pattern and
//! load.
//!
//! A message's way is a list of components ([`Route`]): overhead at both ends, propagation along
//! every link, forwarding through nodes within a dimension, switching into another dimension or
//! through a switch. What each costs stands in [`Parameters`]; how many there are follows from the
//! [`Topology`], or for sizes that need not be whole from a [`Family`] and its [`Shape`].
//! [`Pattern`] says who sends to whom; [`contention`] what messages wait for each other;
//! [`Comparison`] at which sizes another topology becomes the best, and what would move those.
//!
//! Times are nanoseconds, sizes of messages bytes, rates of links bytes per nanosecond. This is
//! arithmetic alone: no clock, no file, no dependency.
#![forbid(unsafe_code)]
#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers of nodes are at most 2^53, checked where a topology is made, and count exactly as floating-point numbers"
)]

pub mod contention;
mod crossover;
mod error;
mod family;
pub mod fit;
mod parameters;
mod pattern;
mod preset;
mod sensitivity;
mod topology;
mod traffic;

pub use crossover::{Comparison, Crossover, WholeCrossover};
pub use error::{MOST_NODES, ModelError};
pub use family::Family;
pub use parameters::{FirstTransmission, Link, Overhead, Parameters, Relay};
pub use pattern::{Loaded, Pattern};
pub use preset::{Preset, Published, UNICASTS_NOTE, preset, sci2000};
pub use sensitivity::{Change, Parameter, elasticity};
pub use topology::{
    Component, Components, Dragonfly, FatTree, Grid, Route, Shape, Star, Topology, Transaction, Vertex, Wrap,
};
pub use traffic::{Flow, LinkLoads, Waits};
