//! What `cci top` shows, without a terminal: a table, or JSON.

use super::processes::Look;
use super::rows::{EndpointRow, count, rate, refusals};
use cci_report::output::table::align;
use serde_json::{Value, json};

/// Heads of the columns, the same in the live view.
pub(crate) const HEADS: [&str; 11] =
    ["PID", "ENDPOINT", "STATE", "SEAL", "SEND/S", "RECV/S", "BYTE/S", "FLY", "RETX", "RNR", "BUF"];
/// Those that stand to the left.
pub(crate) const LEFT: [usize; 2] = [1, 2];

/// The cells of a row, as many as [`HEADS`].
pub(crate) fn cells(row: &EndpointRow) -> [String; 11] {
    let it = &row.endpoint.snapshot;
    let per_second = |pick: fn(&super::rows::Rates) -> f64| row.rates.map_or_else(|| "-".into(), |it| rate(pick(&it)));
    [
        row.endpoint.pid.to_string(),
        it.uri.clone(),
        row.doing(),
        row.seal().unwrap_or("-").into(),
        per_second(|it| it.sent),
        per_second(|it| it.received),
        per_second(|it| it.bytes),
        count(it.in_flight),
        count(it.resent),
        count(it.not_ready.saturating_add(it.refused)),
        row.buffers(),
    ]
}

/// What is left out, if anything.
pub(crate) fn left_out(look: &Look) -> Vec<String> {
    let processes = |number: usize| if number == 1 { "1 process".into() } else { format!("{number} processes") };
    let mut lines = refusals(&look.refused);
    let mut parts = Vec::new();
    if look.others > 0 {
        parts.push(format!("{} of other users", processes(look.others)));
    }
    if look.closed > 0 {
        parts.push(format!("{} that the kernel keeps closed", processes(look.closed)));
    }
    if !parts.is_empty() {
        lines.push(format!("Not looked at: {}.", parts.join(", ")));
    }
    lines
}

/// A table, a line for each wait and remark, and what is left out.
pub(crate) fn table(rows: &[EndpointRow], look: &Look) -> String {
    let mut text = String::new();
    if rows.is_empty() {
        text.push_str("No endpoint is open.\n");
    } else {
        let mut all = vec![HEADS.map(String::from).to_vec()];
        all[0].push("COMMAND".into());
        all.extend(rows.iter().map(|row| {
            let mut cells = cells(row).to_vec();
            cells.push(row.endpoint.command.clone());
            cells
        }));
        text.push_str(&align(&all, &[LEFT[0], LEFT[1], HEADS.len()]));
    }
    let remarks: Vec<String> = rows.iter().flat_map(EndpointRow::remarks).chain(left_out(look)).collect();
    if !remarks.is_empty() {
        text.push('\n');
    }
    for line in remarks {
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// Everything that is known, for programs.
pub(crate) fn json(rows: &[EndpointRow], look: &Look) -> Value {
    let refused: Vec<_> =
        look.refused.iter().map(|it| json!({ "pid": it.pid, "command": it.command, "why": it.why })).collect();
    json!({
        "schema": "cci-top/1",
        "endpoints": rows.iter().map(endpoint).collect::<Vec<_>>(),
        "refused": refused,
        "processes_of_others": look.others,
        "processes_closed": look.closed,
    })
}

fn endpoint(row: &EndpointRow) -> Value {
    let it = &row.endpoint.snapshot;
    let waits: Vec<_> = row
        .waits
        .iter()
        .map(|wait| json!({ "peer": wait.peer, "for": wait.what, "seconds": wait.seconds, "operations": wait.operations }))
        .collect();
    let rates = row.rates.map(|rates| {
        json!({
            "sent": rates.sent, "received": rates.received, "rma": rates.rma, "bytes": rates.bytes,
        })
    });
    json!({
        "pid": row.endpoint.pid,
        "command": row.endpoint.command,
        "process_state": row.endpoint.state.to_string(),
        "uri": it.uri,
        "transport": it.transport,
        "seal": row.seal(),
        "state": row.doing_word(),
        "quiet_seconds": row.quiet,
        "per_second": rates,
        "sent": it.sent,
        "sent_long_bytes": it.sent_long_bytes,
        "received": it.received,
        "received_long_bytes": it.received_long_bytes,
        "rma": it.rma,
        "rma_bytes": it.rma_bytes,
        "in_flight": it.in_flight,
        "not_ready": it.not_ready,
        "refused": it.refused,
        "dropped": it.dropped,
        "frames": {
            "sent": it.frames_sent, "received": it.frames_received, "resent": it.resent, "duplicates": it.duplicates,
            "spurious": it.spurious, "unheld": it.unheld, "strays": it.strays, "malformed": it.malformed,
        },
        "connections": it.connections,
        "buffers": {
            "receive": { "taken": it.recv_taken, "lent": it.recv_lent, "limit": it.recv_limit, "starving": it.is_starving },
            "send": { "taken": it.send_taken, "limit": it.send_limit },
            "rma": { "taken": it.rma_taken, "limit": it.rma_limit },
        },
        "waits": waits,
        "waits_unlisted": it.unlisted,
    })
}
