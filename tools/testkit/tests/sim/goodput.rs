//! How much gets through a lossy path, in virtual time, and whether two flows share one fairly.

use cci_proto::engine::Config;
use cci_sim::network::LinkSettings;
use cci_testkit::simulation::fixture::ample;
use cci_testkit::simulation::flows::{GIGABIT, goodput, jain, lossy, shares};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

#[test]
fn a_tenth_of_a_percent_of_loss_costs_less_than_a_tenth() {
    let rate = goodput(&lossy(5_000_000, 1000), &ample(9000), Duration::from_secs(1), Duration::from_secs(2));
    assert!(rate >= GIGABIT * 90 / 100, "{rate} bytes/s");
}

#[test]
fn five_percent_of_loss_cost_less_than_half() {
    let rate = goodput(&lossy(5_000_000, 50_000), &ample(9000), Duration::from_secs(1), Duration::from_secs(2));
    assert!(rate >= GIGABIT * 50 / 100, "{rate} bytes/s");
}

#[test]
fn half_of_the_bandwidth_is_noticed() {
    // The twin: the measure sees the path and not the sender.
    let link = LinkSettings { bandwidth: GIGABIT / 2, ..lossy(5_000_000, 1000) };
    let rate = goodput(&link, &ample(9000), Duration::from_secs(1), Duration::from_secs(2));
    assert!((GIGABIT * 40 / 100..GIGABIT * 50 / 100).contains(&rate), "{rate} bytes/s");
}

#[test]
fn two_flows_share_a_bottleneck() {
    let shares = shares();
    assert!(jain(shares) >= 0.95, "{shares:?}: {}", jain(shares));
    let used = shares[0] + shares[1];
    assert!(used >= GIGABIT / 10 * 15 * 80 / 100, "{used} bytes in 15 s");
    assert!(jain([9, 1]) < 0.95 && jain([3, 2]) > 0.95, "the index tells shares apart");
}

/// The table of goodput in percent of the path, by loss, window and round-trip time.
fn table() -> String {
    let mut text = String::from(
        "Goodput in percent of 1 Gb/s, in virtual time: RO messages of 8,000 bytes, for 50 round trips after 50 of warming up\n\
         (for 50 ms at least).\n\
         Window: the receive buffer that the receiver offers.\n\n\
         rtt ms  window KiB |    0%  0.1%    1%    5%   10%   20%   30%\n",
    );
    for delay in [50_000, 500_000, 5_000_000] {
        for window in [64 << 10, 1 << 20, 8 << 20] {
            let config = Config { recv_buffer: window, ..ample(9000) };
            let time = Duration::from_nanos(100 * delay).max(Duration::from_millis(50));
            #[expect(clippy::cast_precision_loss, reason = "a label")]
            let milliseconds = delay as f64 / 500_000.0;
            write!(text, "{milliseconds:6} {:11} |", window >> 10).expect("memory");
            for loss in [0, 1000, 10_000, 50_000, 100_000, 200_000, 300_000] {
                let rate = goodput(&lossy(delay, loss), &config, time, time);
                write!(text, " {:5}", rate * 100 / GIGABIT).expect("memory");
            }
            text.push('\n');
        }
    }
    text
}

/// A change is looked at by a person, and recorded with `UPDATE_GOODPUT=1`.
#[test]
fn goodput_is_as_recorded() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sim/goodput.txt");
    let table = table();
    if std::env::var_os("UPDATE_GOODPUT").is_some() {
        std::fs::write(&path, &table).expect("the file can be written");
    }
    let recorded = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        table == recorded,
        "{} has another table; if this one is right, run with UPDATE_GOODPUT=1:\n{table}",
        path.display()
    );
}
