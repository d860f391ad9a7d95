//! The readers of what clients and watched processes write, for the fuzz targets. No part of the
//! interface.

use crate::keys::keys;
use crate::listen::method_and_path;
use crate::metrics;
use crate::plain;
use crate::processes::{Look, WatchedEndpoint, name_and_state, pid_of};
use crate::rows::{Order, Watch};
use cci::Snapshot;
use std::time::Duration;

/// A request of HTTP, keys, and the texts of `/proc`.
pub fn texts(bytes: &[u8]) {
    let _ = method_and_path(bytes);
    let _ = keys(bytes);
    let _ = pid_of(&String::from_utf8_lossy(bytes));
    let (name, _) = name_and_state(bytes);
    assert!(!name.chars().any(char::is_control));
}

/// Pages of counters, whose numbers may be anything, as all views show them.
pub fn snapshots(bytes: &[u8]) {
    let mut watch = Watch::default();
    for (seconds, half) in (10..).zip([bytes, bytes.get(1..).unwrap_or_default()]) {
        let mut page = vec![0; Snapshot::LEN];
        page.iter_mut().zip(half).for_each(|(to, from)| *to = *from);
        let read = |target: &mut [u8]| {
            target.iter_mut().zip(&page).for_each(|(to, from)| *to = *from);
            Ok(page.len())
        };
        let Ok(snapshot) = Snapshot::take(read) else { return };
        let endpoint = WatchedEndpoint { pid: 7, command: "a".into(), state: 'S', file: (1, 2), snapshot };
        let look = Look { at: Duration::from_secs(seconds), endpoints: vec![endpoint], ..Look::default() };
        let rows = watch.rows(&look, Order::Wait);
        let _ = (metrics::text(&rows, &look), plain::table(&rows, &look), plain::json(&rows, &look));
        rows.iter().for_each(|row| drop(row.remarks()));
    }
}
