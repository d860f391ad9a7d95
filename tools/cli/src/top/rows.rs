//! From two looks at the host to what is shown of each endpoint.

use super::processes::{Look, Refused, Seen};
use crate::output::table::scaled;
use cci::WaitFor;
use std::collections::HashMap;

/// Nanoseconds of a second.
const SECOND: f64 = 1e9;
/// An endpoint whose last progress is not older has been called: its clock ticks every few milliseconds.
const RECENT: u64 = 100_000_000;

/// What the process of an endpoint does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Doing {
    /// It calls the library.
    Calling,
    /// It has armed its handle and made no call since: it sleeps on it, or does something else.
    Asleep,
    /// It has made no call.
    Silent,
    /// It is stopped, by a signal or a debugger.
    Stopped,
}

/// Changes per second; none: there was no look before, or the clock stood still.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Rates {
    pub(crate) sent: f64,
    pub(crate) received: f64,
    /// Bytes of long messages, both ways, and of RMA.
    pub(crate) bytes: f64,
    pub(crate) rma: f64,
}

/// Somebody whom an endpoint waits for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wait {
    pub(crate) peer: String,
    pub(crate) what: &'static str,
    pub(crate) seconds: f64,
    pub(crate) operations: u64,
}

/// An endpoint.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) seen: Seen,
    pub(crate) doing: Doing,
    /// Seconds since the last call that made progress; none: not known.
    pub(crate) quiet: Option<f64>,
    pub(crate) rates: Option<Rates>,
    /// The longest first.
    pub(crate) waits: Vec<Wait>,
}

/// What to sort by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Order {
    /// Process
    Pid,
    /// Messages per second
    Rate,
    /// Bytes per second
    Bytes,
    /// Longest wait for a peer
    Wait,
    /// Longest time without a call
    Quiet,
}

impl Order {
    /// The one after it, round and round.
    pub(crate) fn next(self) -> Self {
        match self {
            Self::Pid => Self::Rate,
            Self::Rate => Self::Bytes,
            Self::Bytes => Self::Wait,
            Self::Wait => Self::Quiet,
            Self::Quiet => Self::Pid,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Pid => "process",
            Self::Rate => "messages/s",
            Self::Bytes => "bytes/s",
            Self::Wait => "longest wait",
            Self::Quiet => "longest quiet",
        }
    }

    /// Puts rows into this order; those that are alike stay in that of processes.
    pub(crate) fn sort(self, rows: &mut [Row]) {
        let place = |row: &Row| (row.seen.pid, row.seen.snapshot.uri.clone());
        rows.sort_by(|a, b| self.weight(b).total_cmp(&self.weight(a)).then_with(|| place(a).cmp(&place(b))));
    }

    /// The larger, the further up.
    fn weight(self, row: &Row) -> f64 {
        let rates = row.rates.unwrap_or_default();
        match self {
            Self::Pid => 0.0,
            Self::Rate => rates.sent + rates.received,
            Self::Bytes => rates.bytes,
            Self::Wait => row.waits.first().map_or(0.0, |wait| wait.seconds),
            Self::Quiet => row.quiet.unwrap_or(0.0),
        }
    }
}

/// Remembers, from look to look, what a single look does not show: when an endpoint's counters last moved.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    before: Option<Look>,
    moved: HashMap<(u64, u64), u64>,
}

impl Watch {
    /// What the look after the one before shows.
    pub(crate) fn rows(&mut self, look: &Look, order: Order) -> Vec<Row> {
        let before = self.before.replace(look.clone());
        self.moved.retain(|file, _| look.endpoints.iter().any(|seen| seen.file == *file));
        let mut rows: Vec<Row> = look
            .endpoints
            .iter()
            .map(|seen| {
                let earlier = before.as_ref().and_then(|before| Some((before.at, before.find(seen)?)));
                if earlier.is_some_and(|(_, earlier)| has_moved(earlier, seen)) {
                    self.moved.insert(seen.file, look.at);
                }
                row(look.at, earlier, seen, self.moved.get(&seen.file).copied())
            })
            .collect();
        order.sort(&mut rows);
        rows
    }
}

impl Look {
    /// The same endpoint in this look.
    fn find(&self, other: &Seen) -> Option<&Seen> {
        self.endpoints.iter().find(|seen| (seen.pid, seen.file) == (other.pid, other.file))
    }
}

fn has_moved(earlier: &Seen, now: &Seen) -> bool {
    let marks = |seen: &Seen| {
        let it = &seen.snapshot;
        [it.sent, it.received, it.rma, it.refused, it.not_ready, it.dropped, it.progress]
    };
    marks(earlier) != marks(now)
}

fn row(at: u64, earlier: Option<(u64, &Seen)>, seen: &Seen, moved: Option<u64>) -> Row {
    let it = &seen.snapshot;
    // Times of a virtual network cannot be compared with ours.
    let progress = if it.is_virtual { moved } else { Some(it.progress.max(moved.unwrap_or(0))) };
    let quiet = progress.map(|progress| at.saturating_sub(progress));
    let doing = match (seen.state, quiet) {
        ('T' | 't', _) => Doing::Stopped,
        (_, Some(quiet)) if quiet <= RECENT || moved == Some(at) => Doing::Calling,
        _ if it.is_armed => Doing::Asleep,
        _ => Doing::Silent,
    };
    let own_now = if it.is_virtual { it.progress } else { at };
    let mut waits: Vec<Wait> = it
        .waits
        .iter()
        .map(|wait| Wait {
            peer: wait.peer.clone(),
            what: named(wait.what),
            seconds: own_now.saturating_sub(wait.since) as f64 / SECOND,
            operations: wait.operations,
        })
        .collect();
    waits.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    Row {
        seen: seen.clone(),
        doing,
        quiet: quiet.map(|quiet| quiet as f64 / SECOND),
        rates: earlier.and_then(|(before, earlier)| rates(at.saturating_sub(before), earlier, seen)),
        waits,
    }
}

fn rates(nanos: u64, earlier: &Seen, now: &Seen) -> Option<Rates> {
    if nanos == 0 {
        return None;
    }
    let (a, b) = (&earlier.snapshot, &now.snapshot);
    // What has become less has begun anew, or is no number.
    let per_second = |a: u64, b: u64| b.saturating_sub(a) as f64 * SECOND / nanos as f64;
    Some(Rates {
        sent: per_second(a.sent, b.sent),
        received: per_second(a.received, b.received),
        bytes: per_second(a.sent_long_bytes, b.sent_long_bytes)
            + per_second(a.received_long_bytes, b.received_long_bytes)
            + per_second(a.rma_bytes, b.rma_bytes),
        rma: per_second(a.rma, b.rma),
    })
}

fn named(what: Option<WaitFor>) -> &'static str {
    match what {
        Some(WaitFor::Connection) => "connection",
        Some(WaitFor::Room) => "room",
        Some(WaitFor::Acknowledgement) => "acknowledgement",
        Some(WaitFor::Rma) => "rma",
        None => "unknown",
    }
}

impl Row {
    /// What its process does, in nine columns.
    pub(crate) fn doing(&self) -> String {
        let since = self.quiet.map_or_else(String::new, |quiet| format!(" {}", seconds(quiet)));
        match self.doing {
            Doing::Calling => "calling".into(),
            Doing::Asleep => format!("slp{since}"),
            Doing::Silent => format!("mute{since}"),
            Doing::Stopped => format!("stop{since}"),
        }
    }

    /// The same as a word, for programs.
    pub(crate) fn doing_word(&self) -> &'static str {
        match self.doing {
            Doing::Calling => "calling",
            Doing::Asleep => "asleep",
            Doing::Silent => "silent",
            Doing::Stopped => "stopped",
        }
    }

    /// Share of the receive buffers that is taken.
    pub(crate) fn buffers(&self) -> String {
        let it = &self.seen.snapshot;
        if it.is_starving {
            return "full".into();
        }
        match it.recv_limit {
            0 => "-".into(),
            limit => format!("{:.0}%", (it.recv_taken as f64 / limit as f64 * 100.0).min(999.0)),
        }
    }

    /// What there is to say about it beside its line in the table.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let it = &self.seen.snapshot;
        let mut lines: Vec<String> = self
            .waits
            .iter()
            .map(|wait| {
                let Wait { peer, what, seconds: since, operations } = wait;
                let plural = if *operations == 1 { "" } else { "s" };
                format!(
                    "{} waits {} for {peer}: {what}, {} operation{plural}",
                    it.uri,
                    seconds(*since),
                    count(*operations)
                )
            })
            .collect();
        if it.unlisted > 0 {
            lines.push(format!("{} waits for {} more", it.uri, count(it.unlisted)));
        }
        if it.is_starving {
            lines.push(format!("{}: its program holds every receive buffer, and a peer waits", it.uri));
        }
        lines
    }
}

/// One line for each file that is not shown.
pub(crate) fn refusals(refused: &[Refused]) -> Vec<String> {
    refused.iter().map(|it| format!("process {} ({}): counters not shown: {}", it.pid, it.command, it.why)).collect()
}

/// A number in five columns.
pub(crate) fn count(number: u64) -> String {
    if number < 100_000 { number.to_string() } else { short(number as f64) }
}

/// A rate in five columns.
pub(crate) fn rate(per_second: f64) -> String {
    if per_second == 0.0 {
        "0".into()
    } else if per_second < 10.0 {
        format!("{per_second:.1}")
    } else if per_second < 99_999.5 {
        format!("{per_second:.0}")
    } else {
        short(per_second)
    }
}

fn short(number: f64) -> String {
    scaled(number, "").replace(' ', "")
}

/// A time in four columns.
pub(crate) fn seconds(seconds: f64) -> String {
    match seconds {
        s if s < 0.0995 => format!("{:.0}ms", s * 1e3),
        s if s < 9.95 => format!("{s:.1}s"),
        s if s < 999.5 => format!("{s:.0}s"),
        s if s < 99.0 * 3600.0 => format!("{:.0}m", (s / 60.0).min(999.0)),
        s if s < 999.0 * 86400.0 => format!("{:.0}d", s / 86400.0),
        _ => ">2y".into(),
    }
}
