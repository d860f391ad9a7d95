//! The lines that are more than an operation between two processes: many endpoints, many peers,
//! sleepers, memory that changes.

use super::speed::{least, most};
use super::streams::STREAMS;
use super::verdict::{Line, Standard};
use cci::Scope;
use cci_perf::methods::additions::{self, Addition};
use cci_perf::methods::{changing, many_peers, turns, wakeup, ways};
use cci_perf::reach::scope;
use cci_report::UserError;

/// The most endpoints in turn whose lines a second cache and a second-level TLB of today hold, and
/// the bars with at most so many endpoints and with more (`docs/design/robustness.md`, 32).
const CACHED_ENDPOINTS: usize = 100;
const TURN_BARS: [f64; 2] = [0.7, 0.4];

/// Many endpoints of one process that send in turn to one endpoint.
pub(super) fn turns(transport: &str, quick: bool) -> Vec<Line> {
    let counts: &[usize] = if quick { &[1, 10] } else { &[1, 10, 100, 500] };
    let line = |count: &usize| {
        let what = format!("messages in turn by {count} endpoints of one process, to bare UDP in turn");
        let bar = TURN_BARS[usize::from(*count > CACHED_ENDPOINTS)];
        let standard = Standard::AtLeast { bar: Some(bar), target: Some(0.9) };
        Line::new(&what, "x", standard, turns::measure(transport, *count))
    };
    counts.iter().map(line).collect()
}

/// Operations that CCI 2.2 does not have, to be known only: no bar says what they may cost.
pub(super) fn additions(transport: &str, quick: bool) -> Vec<Line> {
    let line = |what: &str, addition| {
        Line::new(what, "x", most_of_none(), additions::measure(transport, addition, additions::OPERATIONS))
    };
    let mut lines: Vec<_> = [(64 << 10, "64 KiB"), (1 << 20, "1 MiB"), (16 << 20, "16 MiB")]
        .into_iter()
        .take(if quick { 2 } else { 3 })
        .map(|(len, size)| {
            let what = format!("large message, {size}, any memory, to an RMA write of as many bytes");
            line(&what, Addition::Large(len))
        })
        .collect();
    lines.push(line("fetch-and-add, library memory, to an RMA write of 8 B", Addition::Atomic));
    for (len, size) in [(64, "64 B"), (1024, "1 KiB"), (4096, "4 KiB")] {
        let what = format!("message written in place, {size}, to one that is copied");
        lines.push(line(&what, Addition::Reserved(len)));
    }
    lines
}

fn most_of_none() -> Standard {
    Standard::AtMost { bar: None, target: None }
}

/// RMA of memory that changes meanwhile.
pub(super) fn changing(transport: &str, quick: bool) -> Vec<Line> {
    let of = |name: &str, read: bool, (text, len, operations): (&str, usize, usize)| {
        let figures = changing::measure(transport, read, len, operations);
        let what = format!("RMA {name}, {text} with one word changing, to quiet memory");
        let least = Standard::AtLeast { bar: Some(0.5), target: Some(0.9) };
        let speed = Line::new(&what, "x", least, figures.clone().map(|figures| figures.speed));
        let what = format!("longest RMA {name}, {text} with one word changing, to 4 medians of quiet memory and 10 ms");
        let most = Standard::AtMost { bar: Some(1.0), target: None };
        [speed, Line::new(&what, "x", most, figures.map(|figures| figures.longest))]
    };
    let sizes = [("8 B", 8, changing::OPERATIONS), ("64 KiB", 64 << 10, changing::OPERATIONS), ("64 MiB", 64 << 20, 3)];
    let sizes = &sizes[..if quick { 2 } else { 3 }];
    sizes.iter().flat_map(|size| [of("write", false, *size), of("read", true, *size)].concat()).collect()
}

/// The wake-up of an endpoint that sleeps.
pub(super) fn wakeup(transport: &str, quick: bool) -> Line {
    let bare = match scope(transport) {
        Some(Scope::Host) => "an eventfd",
        _ if transport == STREAMS => "bare TCP",
        _ => "bare UDP",
    };
    let standard = Standard::AtMost { bar: Some(1.3), target: Some(1.05) };
    let rounds = if quick { wakeup::ROUNDS / 4 } else { wakeup::ROUNDS };
    Line::new(&format!("wake-up from sleep, 8 B, to {bare}"), "x", standard, wakeup::measure(transport, rounds))
}

/// What a shared endpoint may take beyond a way within the host, nanoseconds: its messages take so
/// little that a share of it is below what can be measured.
const BEYOND_WITHIN_HOST: f64 = 5.0;

/// One endpoint over several transports, beside endpoints of one.
pub(super) fn ways(transport: &str) -> Vec<Line> {
    let figures = match ways::in_a_child(transport) {
        Ok(figures) => figures,
        Err(why) => return vec![Line::new("half round trip, 8 B, way by way", "x", most(1.03, 1.0), Err(why))],
    };
    let exchange = |beside: &ways::Beside| {
        let is_within = scope(&beside.way) == Some(Scope::Host);
        let (beyond, less) = if is_within { (BEYOND_WITHIN_HOST, " less 5 ns") } else { (0.0, "") };
        let what = format!("half round trip, 8 B, by {}{less}, to {} alone", beside.way, beside.way);
        Line::new(&what, "x", most(1.03, 1.0), Ok((beside.shared - beyond) / beside.alone))
    };
    let mut lines: Vec<Line> = figures.exchange.iter().map(exchange).collect();
    let what = format!("a call that finds nothing, all ways open, beyond one with {} alone", figures.empty.way);
    let most = Standard::AtMost { bar: Some(15.0), target: None };
    lines.push(Line::new(&what, "ns", most, Ok(figures.empty.shared - figures.empty.alone)));
    lines
}

/// A figure of many peers, where it is measured.
type Field = fn(&many_peers::Figures) -> Option<f64>;

/// A figure, or why there is none.
fn figure(figures: &Result<many_peers::Figures, UserError>, field: Field) -> Result<f64, UserError> {
    let figures = figures.as_ref().map_err(UserError::clone)?;
    field(figures).ok_or_else(|| UserError::new("this is measured between processes of one host only"))
}

/// Many peers of one endpoint. Over a network those that send in turn are in [`turns()`].
pub(super) fn many_peers(transport: &str, quick: bool) -> Vec<Line> {
    let figures = |peers: u32| many_peers::in_a_child(transport, peers);
    let on_host = scope(transport) == Some(Scope::Host);
    let counts: &[u32] = match (on_host, quick) {
        (true, true) => &[10, 100],
        (true, false) => &[10, 100, 500, 1000, 2000],
        (false, true) => &[100],
        (false, false) => &[100, 1000],
    };
    let all: Vec<_> = counts.iter().map(|peers| (*peers, figures(*peers))).collect();
    let mut lines = Vec::new();
    let mut add = |peers: u32, what: &str, unit, standard: Standard, field: Field| {
        if let Some((_, figures)) = all.iter().find(|(count, _)| *count == peers) {
            lines.push(Line::new(what, unit, standard, figure(figures, field)));
        }
    };
    for (peers, bar) in [(100, 1.05), (1000, 1.1), (2000, 1.2)] {
        let what = format!("half round trip, 8 B, {peers} idle peers, to one");
        add(peers, &what, "x", most(bar, 1.02), |figures| Some(figures.exchange));
    }
    let of = if quick { 100 } else { 1000 };
    let at_most = |bar: f64, target| Standard::AtMost { bar: Some(bar), target };
    add(of, &format!("an empty call with {of} idle peers, to one"), "x", at_most(1.2, None), |figures| {
        Some(figures.empty)
    });
    if !on_host {
        return lines;
    }
    for (peers, bar) in [(10, 0.8), (100, 0.8), (500, 0.3)] {
        // To be known only: a bare line in a stream takes less time than the instructions of a
        // message (robustness.md, 31).
        let what = format!("messages in turn by {peers} senders, to bare lines in turn");
        add(peers, &what, "x", least(None, None), |figures| figures.turns.map(|turns| turns.to_bare));
        let what = format!("messages in turn by {peers} senders, to one sender");
        add(peers, &what, "x", least(Some(bar), Some(0.95)), |figures| figures.turns.map(|turns| turns.to_one));
    }
    add(of, "descriptors a peer", "", at_most(2.0, Some(1.0)), |figures| Some(figures.descriptors));
    add(of, "set-up a peer", "us", at_most(150.0, Some(60.0)), |figures| Some(figures.micros));
    add(of, "private bytes a lane of an idle peer", "B", at_most(8192.0, None), |figures| Some(figures.private));
    add(of, "shared bytes a lane of an idle peer", "B", at_most(40_960.0, None), |figures| Some(figures.shared));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use cci_perf::methods::many_peers::{Figures, Turns};

    #[test]
    fn a_figure_that_was_not_measured_is_no_zero() {
        let to_one: Field = |figures| figures.turns.map(|turns| turns.to_one);
        let over_network = Ok(Figures { exchange: 1.5, ..Figures::default() });
        assert_eq!(figure(&over_network, |figures| Some(figures.exchange)), Ok(1.5));
        let line = Line::new("turns", "x", least(None, None), figure(&over_network, to_one));
        assert_eq!(line.cells()[2..], ["-", "", "", "", "NOT MEASURED"]);
        let on_host = Ok(Figures { turns: Some(Turns { to_bare: 0.25, to_one: 0.75 }), ..Figures::default() });
        assert_eq!(figure(&on_host, to_one), Ok(0.75));
        assert_eq!(figure(&Err(UserError::new("why")), to_one), Err(UserError::new("why")));
    }
}
