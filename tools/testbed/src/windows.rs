//! A ping-pong over one path by mirror windows of SCI, each flushed, whose owners wait in the
//! library. Each end is a process in its node's name space.

use crate::bed::address;
use crate::measure::{Method, SIZES, Way, annotated};
use cci_perf::device::Device;
use cci_perf::methods::sci::{Place, SciOptions, measure as sci};
use cci_report::row::Document;
use std::path::Path;

/// Runs of each size, whose fastest one counts.
const RUNS: u32 = 50;

/// Measures a way, and writes the document with the path's counts to a file.
pub(crate) fn measure(method: &Method, way: &Way<'_>, file: &Path) -> Result<(), String> {
    let ips = [way.from, way.to].map(address);
    let nodes = |own: usize| format!("{} {}\n{} {}\n", 4 + 4 * own, ips[own], 8 - 4 * own, ips[1 - own]);
    let place = |end: usize, node: usize| Place {
        net: way.bed.node(node).path(),
        ip: ips[end].clone(),
        // The first node of a table that is here is the own one.
        nodes: nodes(end),
    };
    let options = SciOptions {
        device: Device { transport: Some("sock".into()), keys: Vec::new() },
        sizes: SIZES.into(),
        time: method.time,
        runs: RUNS,
        launches: 1,
        between: Some([place(0, way.from), place(1, way.to)]),
    };
    let found = sci(&options, &|_| ()).map_err(|why| format!("windows of {}: {}", way.name(), why.0))?;
    let document = Document::new(found.environment, Vec::new(), vec![found.finding], found.interrupted);
    let document = Document { command: std::env::args().collect(), ..document };
    std::fs::write(file, annotated(&document, way)?)
        .map_err(|error| format!("cannot write {}: {error}", file.display()))
}
