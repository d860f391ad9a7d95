//! Random access on the terminal.

use super::table::{align, scaled, time};
use crate::finding::{Gups, LOOK_AHEAD};
use crate::sizes::show_size;

/// The finding on the terminal.
pub(crate) fn table(found: &Gups) -> String {
    let head = ["updates", "time", "updates/s", "GUP/s", "bare GUP/s", "ratio", "errors"];
    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
    let row = [
        scaled(found.updates as f64, ""),
        time(found.seconds * 1e9),
        scaled(found.gups * 1e9, ""),
        format!("{:.6}", found.gups),
        format!("{:.6}", found.probe_gups),
        format!("{:.3}", found.gups / found.probe_gups.max(f64::MIN_POSITIVE)),
        found.errors.to_string(),
    ];
    let text = match &*found.operation {
        "write" => "written by RMA",
        "am" => "sent as active messages",
        _ => "sent as messages",
    };
    format!(
        "RandomAccess over {}: table of {} in {} processes, updates {text}, look-ahead {LOOK_AHEAD}; bare: each process alone in its \
         part\n{}",
        found.transport,
        show_size(found.table_bytes),
        found.processes,
        align(&[head.map(String::from).to_vec(), row.to_vec()], &[])
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_finding_on_the_terminal() {
        insta::assert_snapshot!(table(&Gups {
            transport: "sm".into(),
            operation: "send".into(),
            table_bytes: 64 << 20,
            updates: 1 << 25,
            seconds: 0.5,
            gups: 0.067_108_864,
            processes: 2,
            probe_gups: 0.25,
            errors: 0,
        }));
    }
}
