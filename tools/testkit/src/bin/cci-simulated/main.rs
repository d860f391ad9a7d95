//! The lines of the performance table that are measured in virtual time: what the protocol makes of
//! bad paths, and what very many connections take.

mod many_peers;

use cci_testkit::simulation::fixture::ample;
use cci_testkit::simulation::flows::{GIGABIT, goodput, jain, lossy, shares};
use cci_testkit::simulation::recovery::{ROUND_TRIP, deliver};
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

/// Frames that are sent in a row, of which one is lost.
const FRAMES: usize = 20;

/// A line: what, how much, the bar, and whether it is reached.
struct Line {
    what: &'static str,
    measured: String,
    bar: &'static str,
    is_met: bool,
}

impl Line {
    fn new(what: &'static str, measured: String, bar: &'static str, is_met: bool) -> Self {
        Self { what, measured, bar, is_met }
    }
}

/// The part of a path of 1 Gb/s and 10 ms that a flow gets, when so many frames in a million are
/// lost.
#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
fn part(loss: u32) -> f64 {
    let rate = goodput(&lossy(5_000_000, loss), &ample(9000), Duration::from_secs(1), Duration::from_secs(5));
    rate as f64 / GIGABIT as f64
}

/// Round trips from the sending of the frames to the delivery of the last, when this one of them is
/// lost. Infinite if they do not come.
#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
fn recovery(lost: usize) -> f64 {
    let time = deliver(FRAMES, move |frame, copy| frame == lost && copy == 0);
    time.map_or(f64::INFINITY, |time| time as f64 / ROUND_TRIP as f64)
}

fn lines() -> Vec<Line> {
    let percent = |part: f64| format!("{:.1} %", 100.0 * part);
    let trips = |trips: f64| format!("{trips:.2} RTT");
    // First, so that nothing that others have freed is used again.
    let bytes = many_peers::memory(1_000_000);
    let (little, much) = (part(1000), part(50_000));
    let (middle, last) = (recovery(5), recovery(FRAMES - 1));
    let fairness = jain(shares());
    let mebibytes = bytes.map(|bytes| bytes / f64::from(1 << 20));
    vec![
        Line::new("goodput, 1 Gb/s, 10 ms RTT, 0.1 % random loss", percent(little), ">= 90 %", little >= 0.9),
        Line::new("goodput, 1 Gb/s, 10 ms RTT, 5 % random loss", percent(much), ">= 50 %", much >= 0.5),
        Line::new("20 frames and a loss in their middle, to the last delivery", trips(middle), "< 3 RTT", middle < 3.0),
        Line::new("20 frames and the loss of the last, to its delivery", trips(last), "< 3 RTT", last < 3.0),
        Line::new(
            "two flows over one bottleneck, last half of 30 s, Jain's index",
            format!("{fairness:.3}"),
            ">= 0.95",
            fairness >= 0.95,
        ),
        Line::new(
            "1,000,000 connections, state of their endpoint",
            mebibytes.map_or_else(|| "not told by this kernel".into(), |size| format!("{size:.1} MiB")),
            "<= 256 MiB",
            mebibytes.is_some_and(|size| size <= 256.0),
        ),
    ]
}

fn main() -> ExitCode {
    let lines = lines();
    let width = |of: fn(&Line) -> usize| lines.iter().map(of).max().unwrap_or(0);
    let (what, measured) = (width(|line| line.what.len()), width(|line| line.measured.len()));
    let mut text = String::from("In virtual time:\n");
    for line in &lines {
        let verdict = if line.is_met { "ok" } else { "MISSES bar" };
        text += &format!("{:what$}  {:>measured$}  {:>10}  {verdict}\n", line.what, line.measured, line.bar);
    }
    // Without an output there is nobody to tell.
    let _ = io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}
