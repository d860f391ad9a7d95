//! Endpoints as OpenMetrics, the text that Prometheus and its like collect.

use super::processes::Look;
use super::rows::EndpointRow;
use cci::Snapshot;
use std::fmt::Write as _;

/// What the text is, for the header of an answer.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A value of an endpoint: its name, what it counts, and where it stands.
type Metric = (&'static str, &'static str, fn(&Snapshot) -> u64);

/// What only grows while an endpoint is open.
const COUNTERS: [Metric; 12] = [
    ("cci_messages_sent", "Messages sent", |it| it.sent),
    ("cci_messages_received", "Messages received", |it| it.received),
    ("cci_long_bytes_sent", "Bytes of sent messages above 56 bytes", |it| it.sent_long_bytes),
    ("cci_long_bytes_received", "Bytes of received messages above 56 bytes", |it| it.received_long_bytes),
    ("cci_rma_operations", "RMA operations that this endpoint began", |it| it.rma),
    ("cci_rma_bytes", "Bytes of these", |it| it.rma_bytes),
    ("cci_not_ready", "Times that a peer had no room", |it| it.not_ready),
    ("cci_refused", "Times that a peer found no room here", |it| it.refused),
    ("cci_dropped", "Unreliable messages dropped without room", |it| it.dropped),
    ("cci_frames_sent", "Frames sent", |it| it.frames_sent),
    ("cci_frames_received", "Frames received", |it| it.frames_received),
    ("cci_frames_resent", "Frames sent again", |it| it.resent),
];

/// What goes up and down.
const GAUGES: [Metric; 9] = [
    ("cci_in_flight", "Operations in flight", |it| it.in_flight),
    ("cci_connections", "Open connections", |it| it.connections),
    ("cci_recv_buffers_taken", "Receive buffers taken", |it| it.recv_taken),
    ("cci_recv_buffers", "Receive buffers", |it| it.recv_limit),
    ("cci_send_buffers_taken", "Send buffers taken", |it| it.send_taken),
    ("cci_send_buffers", "Send buffers", |it| it.send_limit),
    ("cci_rma_taken", "RMA operations open", |it| it.rma_taken),
    ("cci_in_clear", "1 where what crosses a network is in clear, or may be", |it| u64::from(it.is_clear)),
    ("cci_starving", "1 where the program holds every receive buffer and a peer waits", |it| u64::from(it.is_starving)),
];

/// The text of a look.
pub(crate) fn text(rows: &[EndpointRow], look: &Look) -> String {
    let mut text = String::new();
    for (kind, suffix, metrics) in [("counter", "_total", &COUNTERS[..]), ("gauge", "", &GAUGES[..])] {
        for (name, about, value) in metrics {
            head(&mut text, name, kind, about);
            for row in rows {
                let _ = writeln!(text, "{name}{suffix}{{{}}} {}", labels(row), value(&row.endpoint.snapshot));
            }
        }
    }
    head(&mut text, "cci_quiet_seconds", "gauge", "Time since the endpoint's last progress");
    for row in rows {
        if let Some(quiet) = row.quiet {
            let _ = writeln!(text, "cci_quiet_seconds{{{}}} {quiet}", labels(row));
        }
    }
    head(&mut text, "cci_wait_seconds", "gauge", "How long the endpoint has waited for a peer");
    for row in rows {
        for wait in &row.waits {
            let (peer, labels) = (escaped(&wait.peer), labels(row));
            let _ =
                writeln!(text, "cci_wait_seconds{{{labels},peer=\"{peer}\",for=\"{}\"}} {}", wait.what, wait.seconds);
        }
    }
    head(&mut text, "cci_endpoints", "gauge", "Endpoints that are shown");
    let _ = writeln!(text, "cci_endpoints {}", rows.len());
    head(&mut text, "cci_pages_refused", "gauge", "Counters of endpoints that cannot be shown");
    let _ = writeln!(text, "cci_pages_refused {}\n# EOF", look.refused.len());
    text
}

fn head(text: &mut String, name: &str, kind: &str, about: &str) {
    let _ = writeln!(text, "# TYPE {name} {kind}\n# HELP {name} {about}.");
}

fn labels(row: &EndpointRow) -> String {
    let it = &row.endpoint;
    format!(
        "pid=\"{}\",command=\"{}\",transport=\"{}\",uri=\"{}\"",
        it.pid,
        escaped(&it.command),
        escaped(&it.snapshot.transport),
        escaped(&it.snapshot.uri)
    )
}

/// The text of a label: a process names its command and its URI itself.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::super::rows::tests::endpoint;
    use super::super::rows::{Order, Watch};
    use super::*;
    use std::time::Duration;

    /// Each metric that the board of Grafana asks for is there.
    #[test]
    fn the_board_shows_what_is_served() {
        let board = include_str!("../grafana.json");
        let look = Look { endpoints: vec![endpoint(7)], ..Look::default() };
        let text = text(&Watch::default().rows(&look, Order::Pid), &look);
        let names: Vec<_> = board.split("cci_").skip(1).filter_map(|rest| rest.split(['{', ',', '-']).next()).collect();
        assert!(names.len() > 10, "{names:?}");
        for name in names {
            let family = format!("# TYPE cci_{} ", name.trim_end_matches("_total"));
            assert!(text.contains(&family), "{name}");
        }
    }

    #[test]
    fn each_endpoint_has_a_sample_of_each_metric() {
        let mut one = endpoint(7);
        (one.snapshot.sent, one.command) = (42, "a \"b\"\\".into());
        let look = Look { at: Duration::from_secs(11), endpoints: vec![one, endpoint(8)], ..Look::default() };
        let text = text(&Watch::default().rows(&look, Order::Pid), &look);
        let sample =
            "cci_messages_sent_total{pid=\"7\",command=\"a \\\"b\\\"\\\\\",transport=\"sm\",uri=\"sm://7/0\"} 42\n";
        assert!(text.contains(sample), "{text}");
        assert!(text.ends_with("\ncci_endpoints 2\n# TYPE cci_pages_refused gauge\n# HELP cci_pages_refused Counters of endpoints that cannot be shown.\ncci_pages_refused 0\n# EOF\n"), "{text}");
        for (name, ..) in COUNTERS.iter().chain(&GAUGES) {
            assert_eq!(
                text.lines()
                    .filter(
                        |line| line.starts_with(&format!("{name}_total{{")) || line.starts_with(&format!("{name}{{"))
                    )
                    .count(),
                2,
                "{name}"
            );
            assert_eq!(text.matches(&format!("# TYPE {name} ")).count(), 1, "{name}");
        }
    }
}
