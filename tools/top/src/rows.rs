//! From two looks at the host to what is shown of each endpoint.

use super::processes::{InvalidPage, Look, WatchedEndpoint};
use cci::WaitFor;
use cci_report::named;
use std::collections::HashMap;
use std::time::Duration;

/// An endpoint whose last progress is not older has been called: its clock ticks every few
/// milliseconds.
const RECENT: Duration = Duration::from_millis(100);

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
pub(crate) struct EndpointRow {
    pub(crate) endpoint: WatchedEndpoint,
    pub(crate) doing: Doing,
    /// Seconds since the last call that made progress; none: not known.
    pub(crate) quiet: Option<f64>,
    pub(crate) rates: Option<Rates>,
    /// The longest first.
    pub(crate) waits: Vec<Wait>,
}

named! {
    /// What to sort by.
    pub enum Order {
        /// Process
        Pid = "pid",
        /// Messages per second
        Rate = "rate",
        /// Bytes per second
        Bytes = "bytes",
        /// Longest wait for a peer
        Wait = "wait",
        /// Longest time without a call
        Quiet = "quiet",
    }
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

    /// What the live view calls it.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Pid => "process",
            Self::Rate => "messages/s",
            Self::Bytes => "bytes/s",
            Self::Wait => "longest wait",
            Self::Quiet => "longest quiet",
        }
    }

    /// Puts rows into this order; those that are alike stay in that of processes.
    pub(crate) fn sort(self, rows: &mut [EndpointRow]) {
        let place = |row: &EndpointRow| (row.endpoint.pid, row.endpoint.snapshot.uri.clone());
        rows.sort_by(|a, b| self.weight(b).total_cmp(&self.weight(a)).then_with(|| place(a).cmp(&place(b))));
    }

    /// The larger, the further up.
    fn weight(self, row: &EndpointRow) -> f64 {
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

/// Remembers, from look to look, what a single look does not show: when an endpoint's counters last
/// moved.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    before: Option<Look>,
    moved: HashMap<(u64, u64), Duration>,
}

impl Watch {
    /// What the look after the one before shows.
    pub(crate) fn rows(&mut self, look: &Look, order: Order) -> Vec<EndpointRow> {
        let before = self.before.replace(look.clone());
        self.moved.retain(|file, _| look.endpoints.iter().any(|endpoint| endpoint.file == *file));
        let mut rows: Vec<EndpointRow> = look
            .endpoints
            .iter()
            .map(|endpoint| {
                let earlier = before.as_ref().and_then(|before| Some((before.at, before.find(endpoint)?)));
                if earlier.is_some_and(|(_, earlier)| has_moved(earlier, endpoint)) {
                    self.moved.insert(endpoint.file, look.at);
                }
                row(look.at, earlier, endpoint, self.moved.get(&endpoint.file).copied())
            })
            .collect();
        order.sort(&mut rows);
        rows
    }
}

impl Look {
    /// The same endpoint in this look.
    fn find(&self, other: &WatchedEndpoint) -> Option<&WatchedEndpoint> {
        self.endpoints.iter().find(|endpoint| (endpoint.pid, endpoint.file) == (other.pid, other.file))
    }
}

fn has_moved(earlier: &WatchedEndpoint, now: &WatchedEndpoint) -> bool {
    let marks = |endpoint: &WatchedEndpoint| {
        let it = &endpoint.snapshot;
        ([it.sent, it.received, it.rma, it.refused, it.not_ready, it.dropped], it.progress)
    };
    marks(earlier) != marks(now)
}

fn row(
    at: Duration,
    earlier: Option<(Duration, &WatchedEndpoint)>,
    endpoint: &WatchedEndpoint,
    moved: Option<Duration>,
) -> EndpointRow {
    let it = &endpoint.snapshot;
    // Times of a virtual network cannot be compared with ours.
    let progress = if it.is_virtual { moved } else { Some(it.progress.max(moved.unwrap_or_default())) };
    let quiet = progress.map(|progress| at.saturating_sub(progress));
    let doing = match (endpoint.state, quiet) {
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
            seconds: own_now.saturating_sub(wait.since).as_secs_f64(),
            operations: wait.operations,
        })
        .collect();
    waits.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    EndpointRow {
        endpoint: endpoint.clone(),
        doing,
        quiet: quiet.map(|quiet| quiet.as_secs_f64()),
        rates: earlier.and_then(|(before, earlier)| rates(at.saturating_sub(before), earlier, endpoint)),
        waits,
    }
}

fn rates(elapsed: Duration, earlier: &WatchedEndpoint, now: &WatchedEndpoint) -> Option<Rates> {
    if elapsed.is_zero() {
        return None;
    }
    let (a, b) = (&earlier.snapshot, &now.snapshot);
    // What has become less has begun anew, or is no number.
    let per_second = |a: u64, b: u64| b.saturating_sub(a) as f64 / elapsed.as_secs_f64();
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
        Some(WaitFor::Memory) => "memory",
        None | Some(_) => "unknown",
    }
}

impl EndpointRow {
    /// What its process does, in ten columns.
    pub(crate) fn doing(&self) -> String {
        let since = self.quiet.map_or_else(String::new, |quiet| format!(" {}", seconds(quiet)));
        match self.doing {
            Doing::Calling => "calling".into(),
            Doing::Asleep => format!("sleep{since}"),
            Doing::Silent => format!("quiet{since}"),
            Doing::Stopped => format!("stop{since}"),
        }
    }

    /// Whether what crosses a network is sealed, in four columns; none: nothing crosses one, or the
    /// process does not publish it.
    pub(crate) fn seal(&self) -> Option<&'static str> {
        let it = &self.endpoint.snapshot;
        match (it.is_sealed, it.is_clear) {
            (true, false) => Some("yes"),
            // Where the peer agrees.
            (true, true) => Some("may"),
            (false, true) => Some("no"),
            (false, false) => None,
        }
    }

    /// What its process does as a word, for programs.
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
        let it = &self.endpoint.snapshot;
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
        let (it, pid) = (&self.endpoint.snapshot, self.endpoint.pid);
        let uri = &it.uri;
        let mut lines: Vec<String> = self
            .waits
            .iter()
            .map(|wait| {
                let Wait { peer, what, seconds: since, operations } = wait;
                let plural = if *operations == 1 { "" } else { "s" };
                let (since, operations) = (seconds(*since), count(*operations));
                // What may be cut comes last.
                format!("{pid} waits {since} for {peer}: {what}, {operations} operation{plural} ({uri})")
            })
            .collect();
        if it.unlisted > 0 {
            lines.push(format!("{pid} waits for {} more ({uri})", count(it.unlisted)));
        }
        if it.is_starving {
            lines.push(format!("{pid} holds every receive buffer, and a peer waits ({uri})"));
        }
        lines
    }
}

/// One line for each file that is not shown.
pub(crate) fn refusals(refused: &[InvalidPage]) -> Vec<String> {
    refused.iter().map(|it| format!("process {} ({}): counters not shown: {}", it.pid, it.command, it.why)).collect()
}

/// A number in four columns.
pub(crate) fn count(number: u64) -> String {
    if number < 10_000 { number.to_string() } else { short(number as f64, 2) }
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
        short(per_second, 3)
    }
}

/// At least so many digits, three at most, and a decimal prefix.
fn short(number: f64, digits: usize) -> String {
    let mut number = number;
    for prefix in ["", "k", "M", "G", "T", "P", "E"] {
        if number < 999.5 {
            let before = if number < 9.95 { 1 } else { 2 + usize::from(number >= 99.5) };
            return format!("{number:.*}{prefix}", digits.saturating_sub(before));
        }
        number /= 1000.0;
    }
    ">999E".into()
}

/// A time in four columns.
pub(crate) fn seconds(seconds: f64) -> String {
    match seconds {
        s if s < 0.0995 => format!("{:.0}ms", s * 1e3),
        s if s < 9.95 => format!("{s:.1}s"),
        s if s < 999.5 => format!("{s:.0}s"),
        s if s < 999.5 * 60.0 => format!("{:.0}m", s / 60.0),
        s if s < 99.5 * 3600.0 => format!("{:.0}h", s / 3600.0),
        s if s < 999.5 * 86400.0 => format!("{:.0}d", s / 86400.0),
        _ => ">2y".into(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use cci::{Snapshot, WaitShown};

    /// An endpoint that has been called just now, at ten seconds.
    pub(crate) fn endpoint(pid: i32) -> WatchedEndpoint {
        let snapshot = Snapshot {
            transport: "sm".into(),
            uri: format!("sm://{pid}/0"),
            progress: Duration::from_secs(10),
            recv_limit: 4096,
            recv_taken: 41,
            ..Snapshot::default()
        };
        WatchedEndpoint {
            pid,
            command: "server".into(),
            state: 'S',
            file: (1, u64::from(pid.unsigned_abs())),
            snapshot,
        }
    }

    fn look(seconds: u64, endpoints: Vec<WatchedEndpoint>) -> Look {
        Look { at: Duration::from_secs(seconds), endpoints, ..Look::default() }
    }

    fn one(watch: &mut Watch, look: &Look) -> EndpointRow {
        watch.rows(look, Order::Pid).remove(0)
    }

    #[test]
    fn rates_are_differences_over_the_time_between_looks() {
        let mut watch = Watch::default();
        assert_eq!(one(&mut watch, &look(10, vec![endpoint(1)])).rates, None, "a look alone has none");
        let mut later = endpoint(1);
        (later.snapshot.sent, later.snapshot.received) = (1000, 10);
        (later.snapshot.sent_long_bytes, later.snapshot.rma_bytes) = (400, 600);
        let rates = one(&mut watch, &look(12, vec![later.clone()])).rates.unwrap();
        assert_eq!(rates, Rates { sent: 500.0, received: 5.0, bytes: 500.0, rma: 0.0 });
        // Less than before: another life, or a liar.
        let rates = one(&mut watch, &look(14, vec![endpoint(1)])).rates.unwrap();
        assert_eq!(rates, Rates::default());
        assert_eq!(one(&mut watch, &look(14, vec![endpoint(1)])).rates, None, "no time has passed");
        later.file = (1, 77);
        assert_eq!(one(&mut watch, &look(15, vec![later])).rates, None, "another file is another endpoint");
    }

    #[test]
    fn what_a_process_does_follows_from_its_calls() {
        let doing = |endpoint: &WatchedEndpoint, at| one(&mut Watch::default(), &look(at, vec![endpoint.clone()]));
        let mut it = endpoint(1);
        assert_eq!(doing(&it, 10).doing, Doing::Calling);
        let quiet = doing(&it, 22);
        assert_eq!((quiet.doing, quiet.quiet, quiet.doing().as_str()), (Doing::Silent, Some(12.0), "quiet 12s"));
        it.snapshot.is_armed = true;
        assert_eq!(doing(&it, 22).doing(), "sleep 12s");
        it.state = 'T';
        assert_eq!(doing(&it, 22).doing(), "stop 12s");
        // A program that only sends makes no progress that the clock is read for, but its counters
        // move.
        let mut watch = Watch::default();
        let mut sender = endpoint(2);
        one(&mut watch, &look(20, vec![sender.clone()]));
        sender.snapshot.sent = 5;
        assert_eq!(one(&mut watch, &look(21, vec![sender.clone()])).doing, Doing::Calling);
        assert_eq!(one(&mut watch, &look(24, vec![sender])).quiet, Some(3.0));
    }

    #[test]
    fn in_virtual_time_only_what_moves_says_something() {
        let mut it = endpoint(1);
        it.snapshot.is_virtual = true;
        it.snapshot.progress = Duration::from_secs(7);
        it.snapshot.waits = vec![wait("sim://net/2", 4)];
        let mut watch = Watch::default();
        let row = one(&mut watch, &look(500, vec![it.clone()]));
        assert_eq!((row.doing, row.quiet), (Doing::Silent, None));
        assert_eq!(row.waits[0].seconds, 3.0, "by its own clock");
        it.snapshot.sent = 1;
        assert_eq!(one(&mut watch, &look(501, vec![it])).doing, Doing::Calling);
    }

    fn wait(peer: &str, since: u64) -> WaitShown {
        WaitShown { peer: peer.into(), what: Some(WaitFor::Room), since: Duration::from_secs(since), operations: 3 }
    }

    #[test]
    fn the_longest_wait_comes_first_and_reads_as_a_sentence() {
        let mut it = endpoint(1);
        it.snapshot.waits = vec![wait("sm://2/0", 9), wait("sm://3/0", 2)];
        (it.snapshot.unlisted, it.snapshot.is_starving) = (7, true);
        let row = one(&mut Watch::default(), &look(10, vec![it]));
        assert_eq!(
            row.remarks(),
            [
                "1 waits 8.0s for sm://3/0: room, 3 operations (sm://1/0)",
                "1 waits 1.0s for sm://2/0: room, 3 operations (sm://1/0)",
                "1 waits for 7 more (sm://1/0)",
                "1 holds every receive buffer, and a peer waits (sm://1/0)",
            ]
        );
    }

    #[test]
    fn orders_put_the_most_first_and_otherwise_the_process() {
        let mut busy = endpoint(3);
        busy.snapshot.sent = 100;
        let mut waiting = endpoint(2);
        waiting.snapshot.waits = vec![wait("sm://9/0", 1)];
        let before = look(9, vec![endpoint(1), endpoint(2), endpoint(3)]);
        let now = look(10, vec![endpoint(1), waiting, busy]);
        let sorted = |order| {
            let mut watch = Watch::default();
            watch.rows(&before, order);
            watch.rows(&now, order).iter().map(|row| row.endpoint.pid).collect::<Vec<_>>()
        };
        assert_eq!(sorted(Order::Pid), [1, 2, 3]);
        assert_eq!(sorted(Order::Rate), [3, 1, 2]);
        assert_eq!(sorted(Order::Wait), [2, 1, 3]);
        let mut order = Order::Pid;
        for _ in 0..5 {
            order = order.next();
        }
        assert_eq!(order, Order::Pid, "round and round");
    }

    #[test]
    fn numbers_keep_their_columns_however_large() {
        let counts = [0, 9_999, 10_000, 1_234_567, 99_999, u64::MAX];
        assert_eq!(counts.map(count), ["0", "9999", "10k", "1.2M", "100k", "18E"]);
        let rates = [0.0, 0.26, 9.96, 10.2, 99_999.4, 123_456.0, 1e9, u64::MAX as f64 * 1e9];
        assert_eq!(rates.map(rate), ["0", "0.3", "10.0", "10", "99999", "123k", "1.00G", ">999E"]);
        let times = [0.0, 0.05, 1.0, 12.4, 999.0, 1000.0, 86_400.0, 1e6, 1e12];
        assert_eq!(times.map(seconds), ["0ms", "50ms", "1.0s", "12s", "999s", "17m", "24h", "12d", ">2y"]);
        assert!(counts.map(count).iter().all(|text| text.len() <= 4));
    }
}
