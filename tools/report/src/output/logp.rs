//! The parameters, and the signature that they were told from, on the terminal.

use super::table::{align, time};
use crate::finding::{Logp, LogpPoint};
use crate::sizes::show_size;

/// The whole text.
pub(crate) fn table(found: &Logp) -> String {
    format!(
        "LogP over {} ({}), requests and replies of {}:\n{}\n{}\nTime per request, over the length of the burst and the delay after \
         each:\n{}",
        found.transport,
        found.attribute,
        show_size(found.size),
        parameters(found),
        fit(found),
        signature(&found.points)
    )
}

fn parameters(found: &Logp) -> String {
    let cell = |name: &str, value: f64| [name.to_owned(), time(value)];
    let columns = [
        cell("RTT/2", found.round_trip_ns / 2.0),
        cell("L", found.l_ns),
        cell("o_s", found.o_s_ns),
        cell("o_r", found.o_r_ns),
        cell("g", found.g_ns),
        ["G".to_owned(), bulk(found.g_ns_per_byte)],
    ];
    let row = |at: usize| columns.iter().map(|column| column[at].clone()).collect::<Vec<_>>();
    align(&[row(0), row(1)], &[])
}

fn bulk(ns_per_byte: f64) -> String {
    if ns_per_byte > 0.0 {
        format!("{ns_per_byte:.4} ns/B ({:.2} GB/s)", 1.0 / ns_per_byte)
    } else {
        format!("{ns_per_byte:.4} ns/B (hidden behind g)")
    }
}

/// How well the model fits, and what it cannot tell.
fn fit(found: &Logp) -> String {
    let turn = match found.turn_ns {
        Some(turn) => format!("the time per request turns from g to o_s + delay + o_r at a delay of {}", time(turn)),
        None => "g is not longer than o_s + o_r, which it cannot be told from".to_owned(),
    };
    let mut text = format!(
        "Fit: {:.1} % left over ({} points, root of the mean square); {turn}.\n",
        100.0 * found.residual,
        found.points.len()
    );
    if found.window_bound {
        text += &format!("With {} requests on their way the round trip is what limits: g is shorter.\n", found.window);
    }
    let negative = [("L", found.l_ns), ("o_s", found.o_s_ns), ("o_r", found.o_r_ns)];
    for (name, _) in negative.iter().filter(|(_, value)| *value < 0.0) {
        text += &format!("{name} came out below nothing: this is no LogP machine, or it was disturbed.\n");
    }
    text
}

/// A line for each length, a column for each delay.
fn signature(points: &[LogpPoint]) -> String {
    let delays = delays(points);
    let mut lengths: Vec<_> = points.iter().map(|point| point.burst).collect();
    lengths.sort_unstable();
    lengths.dedup();
    let mut rows = vec![
        std::iter::once("burst".to_owned())
            .chain(delays.iter().map(|delay| format!("+{}", time(*delay))))
            .collect::<Vec<_>>(),
    ];
    for length in lengths {
        let cell = |delay: &f64| {
            let found = points.iter().find(|point| point.burst == length && is_same(point.delay_ns, *delay));
            found.map_or_else(String::new, |point| time(point.ns_per_message))
        };
        rows.push(std::iter::once(length.to_string()).chain(delays.iter().map(cell)).collect());
    }
    align(&rows, &[])
}

/// The delays, each once, in order.
pub(super) fn delays(points: &[LogpPoint]) -> Vec<f64> {
    let mut delays: Vec<_> = points.iter().map(|point| point.delay_ns).collect();
    delays.sort_by(f64::total_cmp);
    delays.dedup_by(|left, right| is_same(*left, *right));
    delays
}

/// Whether both are the same delay: each was measured once, and stands at many points.
pub(super) fn is_same(left: f64, right: f64) -> bool {
    left.to_bits() == right.to_bits()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn found() -> Logp {
        let point = |burst, delay_ns, ns_per_message| LogpPoint { burst, delay_ns, ns_per_message };
        Logp {
            transport: "sim".into(),
            size: 8,
            attribute: "UU".into(),
            l_ns: 5000.0,
            o_s_ns: 1000.0,
            o_r_ns: 1500.0,
            g_ns: 3000.0,
            g_ns_per_byte: 1.0,
            round_trip_ns: 15_000.0,
            turn_ns: Some(500.0),
            window: 32,
            window_bound: false,
            residual: 0.004,
            points: vec![
                point(1, 0.0, 1000.0),
                point(2, 0.0, 1000.0),
                point(256, 0.0, 2900.0),
                point(1, 15_000.0, 16_000.0),
                point(2, 15_000.0, 17_000.0),
            ],
        }
    }

    #[test]
    fn a_table_of_parameters_and_the_signature() {
        insta::assert_snapshot!(table(&found()));
    }

    #[test]
    fn what_cannot_be_told_is_said() {
        let odd = Logp { turn_ns: None, window_bound: true, l_ns: -3.0, g_ns_per_byte: 0.0, ..found() };
        let text = table(&odd);
        for words in ["cannot be told from", "g is shorter", "L came out below nothing", "hidden behind g"] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }
}
