//! The runs that a server serves: one line for each, over however many launches.

use super::control::{Client, Report};
use cci_report::UserError;
use cci_report::session::Session;
use cci_report::sizes::show_size;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long a client may take from one launch to the next, or to its report.
const RETURN: Duration = Duration::from_secs(15);
/// How long a client whose launch failed may take to its report.
const LAST_WORDS: Duration = Duration::from_secs(10);
/// Runs that are known at once, at most; beyond that the oldest is told of.
const MOST: usize = 64;

/// The sizes of the blocks of a run, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sizes(Option<(u64, u64)>);

impl Sizes {
    pub(super) fn add(&mut self, size: u64) {
        let (least, most) = self.0.unwrap_or((size, size));
        self.0 = Some((least.min(size), most.max(size)));
    }

    fn add_all(&mut self, Self(others): Self) {
        let (least, most) = others.unzip();
        least.into_iter().chain(most).for_each(|size| self.add(size));
    }

    fn text(self) -> String {
        match self.0 {
            None => String::new(),
            Some((least, most)) if least == most => format!(", {}", show_size(least)),
            Some((least, most)) => format!(", {} to {}", show_size(least), show_size(most)),
        }
    }
}

/// One run of a client.
#[derive(Debug)]
struct Visit {
    client: Client,
    session: Session,
    sizes: Sizes,
    launches: u32,
    /// When the last launch ended, and why if it failed.
    ended: Instant,
    failure: Option<UserError>,
}

impl Visit {
    fn line(&self, transport: &str, result: &str) -> String {
        let Self { client, session, launches, .. } = self;
        let (what, op, sizes) = (session.measurement.name(), session.operation.name(), self.sizes.text());
        let plural = if *launches == 1 { "launch" } else { "launches" };
        format!("{}: {what} of {op}{sizes}, over {transport}, {launches} {plural}: {result}", who(client))
    }

    fn is_overdue(&self, now: Instant) -> bool {
        let limit = if self.failure.is_some() { LAST_WORDS } else { RETURN };
        now.saturating_duration_since(self.ended) > limit
    }

    /// The result of a run whose client does not report.
    fn unreported(&self) -> String {
        let why = self.failure.as_ref().map_or("the client did not come back", |why| &why.0);
        format!("ended early: {}", printable(why, 300))
    }
}

/// The runs of clients that have not been told of.
#[derive(Debug)]
pub(super) struct Visits {
    transport: String,
    open: BTreeMap<u64, Visit>,
}

impl Visits {
    /// No runs yet, over this transport.
    pub(super) fn new(transport: &str) -> Self {
        Self { transport: transport.into(), open: BTreeMap::new() }
    }

    /// Adds a launch that has ended; the line of another run where there are too many.
    pub(super) fn add(
        &mut self,
        client: Client,
        session: Session,
        mut sizes: Sizes,
        failure: Option<UserError>,
        now: Instant,
    ) -> Option<String> {
        let run = client.run;
        let before = self.open.get(&run);
        let launches = before.map_or(0, |visit| visit.launches) + 1;
        // A size whose time is spent is measured by no further launch.
        sizes.add_all(before.map_or(Sizes::default(), |visit| visit.sizes));
        self.open.insert(run, Visit { client, session, sizes, launches, ended: now, failure });
        let oldest = self.open.iter().min_by_key(|(_, visit)| visit.ended).map(|(run, _)| *run);
        oldest.filter(|_| self.open.len() > MOST).and_then(|run| self.leave(run, None))
    }

    /// The line of a run whose client reports, if it was served here.
    pub(super) fn report(&mut self, run: u64, report: &Report) -> Option<String> {
        let early = report.early.as_ref().map(|why| format!("ended early: {}", printable(why, 300)));
        let found = (!report.result.is_empty()).then(|| printable(&report.result, 600));
        let result = match (early, found) {
            (None, found) => found.unwrap_or_else(|| "no result".into()),
            (Some(early), None) => early,
            (Some(early), Some(found)) => format!("{early}; until then {found}"),
        };
        self.leave(run, Some(result))
    }

    /// The line of a run whose client should have come back, or reported, by now.
    pub(super) fn overdue(&mut self, now: Instant) -> Option<String> {
        let run = self.open.iter().find(|(_, visit)| visit.is_overdue(now)).map(|(run, _)| *run)?;
        self.leave(run, None)
    }

    fn leave(&mut self, run: u64, result: Option<String>) -> Option<String> {
        let visit = self.open.remove(&run)?;
        Some(visit.line(&self.transport, &result.unwrap_or_else(|| visit.unreported())))
    }
}

/// A client, as it names itself.
pub(super) fn who(client: &Client) -> String {
    format!("{} (pid {}, uid {})", printable(&client.uri, 100), client.pid, client.uid)
}

/// So many characters of a text of a client at most, on one line: it goes to a terminal.
pub(super) fn printable(text: &str, most: usize) -> String {
    let shown = |c: char| if c.is_control() { '?' } else { c };
    let mut told: String = text.chars().take(most).map(shown).collect();
    if text.chars().nth(most).is_some() {
        told += "...";
    }
    told
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::session;
    use super::*;

    fn client(run: u64) -> Client {
        Client { run, uri: format!("sm://{run}/1"), pid: 7, uid: 1000 }
    }

    fn sizes(all: &[u64]) -> Sizes {
        let mut sizes = Sizes::default();
        all.iter().for_each(|size| sizes.add(*size));
        sizes
    }

    fn report(result: &str, early: Option<&str>) -> Report {
        Report { result: result.into(), early: early.map(Into::into) }
    }

    #[test]
    fn launches_of_one_run_are_one_line_and_runs_may_take_turns() {
        let (mut visits, now) = (Visits::new("sock"), Instant::now());
        for all in [&[64, 8, 4096][..], &[8], &[]] {
            assert_eq!(visits.add(client(1), session(), sizes(all), None, now), None);
            assert_eq!(visits.add(client(2), session(), sizes(&[8]), None, now), None);
        }
        let line = visits.report(1, &report("half round trip 8 B: 1.20 us", None)).unwrap();
        let begin = "sm://1/1 (pid 7, uid 1000): pingpong of send, 8 B to 4 KiB, over sock, 3 launches: ";
        assert_eq!(line, format!("{begin}half round trip 8 B: 1.20 us"));
        assert_eq!(visits.report(1, &report("again", None)), None);
        let line = visits.report(2, &report("8 B: 2.00 us", Some("a signal ended the run"))).unwrap();
        assert!(line.ends_with(": ended early: a signal ended the run; until then 8 B: 2.00 us"), "{line}");
    }

    #[test]
    fn a_client_that_does_not_report_is_told_of_in_time() {
        let (mut visits, now) = (Visits::new("sm"), Instant::now());
        visits.add(client(1), session(), sizes(&[8]), None, now);
        visits.add(client(2), session(), sizes(&[]), Some(UserError::new("it is gone")), now);
        assert_eq!(visits.overdue(now + LAST_WORDS), None);
        let late = now + LAST_WORDS + Duration::from_secs(1);
        let line = visits.overdue(late).unwrap();
        assert!(line.starts_with("sm://2/1") && line.ends_with("over sm, 1 launch: ended early: it is gone"), "{line}");
        assert_eq!(visits.overdue(late), None);
        assert!(visits.overdue(now + 3 * RETURN).unwrap().ends_with("the client did not come back"));
    }

    #[test]
    fn runs_that_are_known_at_once_have_a_bound() {
        let (mut visits, now) = (Visits::new("sm"), Instant::now());
        for run in 0..MOST as u64 {
            assert_eq!(visits.add(client(run), session(), sizes(&[8]), None, now + Duration::from_nanos(run)), None);
        }
        let line = visits.add(client(9999), session(), sizes(&[8]), None, now + RETURN).unwrap();
        assert!(line.starts_with("sm://0/1"), "{line}");
    }

    #[test]
    fn texts_of_a_client_are_one_line_of_bounded_length() {
        assert_eq!(printable("a\nb\u{1b}[2J", 99), "a?b?[2J");
        assert_eq!(printable("abcdef", 3), "abc...");
    }
}
