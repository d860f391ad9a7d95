//! What very many idle connections of one engine take.

use cci_testkit::simulation::many_peers::{FORGOTTEN, ManyPeers};

/// Bytes of this process that it shares with nobody.
fn private_bytes() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").ok()?;
    let kilobytes = |name: &str| -> Option<f64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().trim_end_matches("kB").trim().parse().ok()
    };
    Some(1024.0 * (kilobytes("Private_Clean:")? + kilobytes("Private_Dirty:")?))
}

/// Bytes that so many idle connections of one engine take; none if they do not open, or the kernel
/// does not tell.
pub(crate) fn memory(count: u32) -> Option<f64> {
    private_bytes()?;
    let before = private_bytes()?;
    let mut many_peers = ManyPeers::new();
    many_peers.admit(0..count)?;
    many_peers.pass(FORGOTTEN);
    let after = private_bytes()?;
    (many_peers.open() == count).then_some(after - before)
}
