//! Topologies as text.

use super::{Dragonfly, FatTree, Grid, Star, Topology, Wrap};
use crate::error::{MOST_NODES, ModelError};
use crate::family::Family;
use std::fmt;
use std::str::FromStr;

const KNOWN: &str = "ring:8, biring:8, torus:10x10x10, bitorus:4x4, mesh:4x3, hypercube:64, star:24, fattree2:k=8, \
                     fattree3:k=8, dragonfly:h=2 and dragonfly:p=2,a=4,h=2, with sizes of your own";

impl FromStr for Topology {
    type Err = ModelError;

    fn from_str(text: &str) -> Result<Self, ModelError> {
        let unknown = || ModelError::Unknown { what: "topology", name: text.into(), known: KNOWN };
        let (kind, size) = text.split_once(':').ok_or_else(unknown)?;
        match kind {
            "ring" | "biring" => ring(text, kind, size),
            "torus" => grid(text, size, Wrap::Forward),
            "bitorus" => grid(text, size, Wrap::Both),
            "mesh" => grid(text, size, Wrap::Line),
            "hypercube" => Family::Hypercube.exactly(whole(text, size)?),
            "star" => Star::new(whole(text, size)?).map(Self::Star),
            "fattree2" => Ok(Self::FatTree(FatTree::new(measure(text, size, "k")?, 2)?)),
            "fattree3" | "fattree" => Ok(Self::FatTree(FatTree::new(measure(text, size, "k")?, 3)?)),
            "dragonfly" => dragonfly(text, size),
            _ => Err(unknown()),
        }
    }
}

fn ring(text: &str, kind: &str, size: &str) -> Result<Topology, ModelError> {
    let nodes = whole(text, size)?;
    if nodes < 2 {
        return Err(ModelError::Size {
            kind: format!("a {kind}"),
            asked: format!("{nodes} nodes"),
            instead: format!("the nearest is {kind}:2"),
        });
    }
    let wrap = if kind == "ring" { Wrap::Forward } else { Wrap::Both };
    Grid::new(&[nodes], wrap).map(Topology::Grid)
}

fn grid(text: &str, size: &str, wrap: Wrap) -> Result<Topology, ModelError> {
    let sides: Result<Vec<_>, _> = size.split('x').map(|side| whole(text, side)).collect();
    Grid::new(&sides?, wrap).map(Topology::Grid)
}

fn dragonfly(text: &str, size: &str) -> Result<Topology, ModelError> {
    let h = measure(text, size, "h")?;
    let twice = h.checked_mul(2).ok_or_else(|| ModelError::TooLarge { topology: text.into() })?;
    let or = |name, otherwise| if has(size, name) { measure(text, size, name) } else { Ok(otherwise) };
    // p = h and a = 2h balance the loads of the links, as the paper recommends.
    Dragonfly::new(or("p", h)?, or("a", twice)?, h).map(Topology::Dragonfly)
}

fn has(size: &str, name: &str) -> bool {
    size.split(',').any(|part| part.split('=').next() == Some(name))
}

/// The number behind `name=`.
fn measure(text: &str, size: &str, name: &str) -> Result<u64, ModelError> {
    let parts: Vec<_> = size.split(',').map(|part| part.split_once('=')).collect();
    let known = |key: &str| if name == "k" { key == "k" } else { ["p", "a", "h"].contains(&key) };
    let value = parts.iter().flatten().find(|(key, _)| *key == name);
    match value {
        Some((_, value)) if parts.iter().all(|part| part.is_some_and(|(key, _)| known(key))) => whole(text, value),
        _ => Err(ModelError::Unknown { what: "topology", name: text.into(), known: KNOWN }),
    }
}

/// A number of nodes or ports.
fn whole(text: &str, number: &str) -> Result<u64, ModelError> {
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    match number.parse() {
        Ok(number) if digits && number <= MOST_NODES => Ok(number),
        _ if digits => Err(ModelError::TooLarge { topology: text.into() }),
        _ => Err(ModelError::Size {
            kind: format!("`{text}`"),
            asked: format!("the size `{number}`"),
            instead: format!("sizes are whole numbers, as in {KNOWN}"),
        }),
    }
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Grid(grid) => f.write_str(&grid.name()),
            Self::Star(star) => write!(f, "star:{}", star.nodes()),
            Self::FatTree(tree) => f.write_str(&tree.name()),
            Self::Dragonfly(dragonfly) => f.write_str(&dragonfly.name()),
        }
    }
}
