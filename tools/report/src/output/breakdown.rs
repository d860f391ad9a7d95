//! A breakdown on the terminal.

use super::table::{align, time};
use crate::finding::Breakdown;
use crate::sizes::show_size;

/// The finding on the terminal.
pub(crate) fn table(found: &Breakdown) -> String {
    let mut rows = vec![["share", "time", "of all", "what it is"].map(String::from).to_vec()];
    for share in &found.shares {
        let part = 100.0 * share.ns / found.total_ns.max(f64::MIN_POSITIVE);
        rows.push(vec![share.name.clone(), time(share.ns), format!("{part:.1} %"), share.meaning.clone()]);
    }
    let mut text = format!(
        "Breakdown of a request and its reply of {} over {}: {} in all; bare {} there and back: {}\n{}",
        show_size(found.size),
        found.transport,
        time(found.total_ns),
        found.probe,
        time(found.probe_ns),
        align(&rows, &[0, 3])
    );
    for share in found.shares.iter().filter(|share| share.ns < 0.0) {
        text += &format!("{} came out below nothing: what else ran disturbed, measure again.\n", share.name);
    }
    text
}
