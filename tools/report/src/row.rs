//! Rows and the document that holds them; see `docs/perf-json.md`.

use super::UserError;
use super::environment::Environment;
use super::finding::{Finding, Jitter};
use super::names::{Abi, MemoryOrigin, ProbeKind, Target};
use super::session::Session;
use super::statistics::Summary;
use serde::{Deserialize, Serialize};

/// Name and version of the document's format. A change that a reader could stumble over counts the
/// number up.
pub const SCHEMA: &str = "cci-perf/2";

/// One measured point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Name of the measurement.
    pub measurement: String,
    /// Name of the transport.
    pub transport: String,
    /// What the connection promises, in capitals.
    pub attribute: String,
    /// Name of the operation.
    pub operation: String,
    /// Bytes of an operation.
    pub size: u64,
    /// Operations over all blocks.
    pub count: u64,
    /// Blocks over all launches.
    pub blocks: u64,
    /// Of the fastest block, each operation.
    pub min_ns: f64,
    /// Median of the launches' medians.
    pub median_ns: f64,
    /// All blocks but one in a hundred took at most so long for each operation.
    pub p99_ns: f64,
    /// All blocks but one in a thousand took at most so long for each operation.
    pub p999_ns: f64,
    /// How uncertain the median is, as a part of it: half the range of the medians of six groups of
    /// launches, in order of time.
    pub spread: f64,
    /// The spread is within the bound that was asked for.
    pub accurate: bool,
    /// The bare operation that was measured in between; none where there was none.
    pub probe: Option<ProbeKind>,
    /// Its median.
    pub probe_ns: Option<f64>,
    /// The probe's blocks, each beside one of the measured: all but one in a hundred took at most
    /// so long.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub probe_p99_ns: Option<f64>,
    /// Median to the probe's median.
    pub ratio: Option<f64>,
    /// Operations per second, of a measurement of speed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub per_second: Option<f64>,
    /// Bytes per second, of a measurement of speed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bytes_per_second: Option<f64>,
    /// Whose figure this is: `cci`, or the name of a peer.
    pub library: String,
    /// The transport and settings that a peer ran in.
    pub setting: Option<String>,
    /// Through which interface the library was called.
    pub abi: Abi,
    /// How both ends waited.
    pub mode: String,
    /// Who could call the endpoints.
    pub threads: String,
    /// `reaped`, or `silent` without SEND events.
    pub completion: String,
    /// Every byte of a received message was read.
    pub touch: bool,
    /// Where the memory of RMA came from.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub memory: Option<MemoryOrigin>,
    /// What the target of RMA did meanwhile.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub target: Option<Target>,
    /// Operations in flight at most; 0: as many as there is room for.
    pub window: u64,
    /// Both ends begin operations.
    pub bidirectional: bool,
    /// One a block, in order: what was measured, and the probe just before it.
    pub pairs: Vec<Pair>,
    /// How many of the pairs each launch measured, in order.
    pub launches: Vec<u64>,
}

/// Nanoseconds per operation of one block, and of the probe's block before it.
pub type Pair = (f64, Option<f64>);

/// What was measured for one size.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// Of each launch, one a block.
    pub launches: Vec<Vec<Pair>>,
    /// Operations over all blocks.
    pub operations: u64,
}

/// What the rows of a run are about.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// What was measured.
    pub session: &'a Session,
    /// Name of the transport.
    pub transport: &'a str,
    /// Through which interface the library was called.
    pub abi: Abi,
    /// The bare operation that was measured in between.
    pub probe: Option<ProbeKind>,
    /// Largest spread of a point that counts as accurate, as a part of the median.
    pub bound: f64,
}

impl Row {
    /// The row of a size; none when no block was measured.
    pub fn new(subject: &Subject<'_>, size: u64, samples: &Samples) -> Option<Self> {
        let session = subject.session;
        let pairs = || samples.launches.iter();
        let summary = Summary::of(pairs().map(|launch| launch.iter().map(|(measured, _)| *measured).collect()))?;
        let probed = pairs().map(|launch| launch.iter().filter_map(|(_, probe)| *probe).collect());
        let bare = Summary::of(probed);
        let probe_ns = bare.map(|probe| probe.median);
        let per_second = (session.measurement.is_speed() && summary.median > 0.0).then(|| 1e9 / summary.median);
        #[expect(clippy::cast_precision_loss, reason = "a size below 2^52")]
        let bytes_per_second = per_second.map(|rate| rate * size as f64);
        Some(Self {
            measurement: session.measurement.name().into(),
            transport: subject.transport.into(),
            attribute: session.attribute.name().to_uppercase(),
            operation: session.operation.name().into(),
            size,
            count: samples.operations,
            blocks: pairs().map(|launch| launch.len() as u64).sum(),
            min_ns: summary.min,
            median_ns: summary.median,
            p99_ns: summary.p99,
            p999_ns: summary.p999,
            spread: summary.spread,
            accurate: summary.spread <= subject.bound,
            probe: probe_ns.and(subject.probe),
            probe_ns,
            probe_p99_ns: bare.map(|probe| probe.p99),
            ratio: probe_ns.filter(|probe| *probe > 0.0).map(|probe| summary.median / probe),
            per_second,
            bytes_per_second,
            library: "cci".into(),
            setting: None,
            abi: subject.abi,
            mode: session.mode.name().into(),
            threads: session.threads.name().into(),
            completion: if session.silent { "silent" } else { "reaped" }.into(),
            touch: session.touch,
            memory: session.is_rma().then_some(session.memory),
            target: session.is_rma().then_some(session.target),
            window: session.window.unwrap_or(0),
            bidirectional: session.bidirectional,
            pairs: samples.launches.concat(),
            launches: pairs().map(|launch| launch.len() as u64).collect(),
        })
    }
}

impl Jitter {
    /// The row of these round trips: its figures are those of single ones, where other rows have
    /// blocks.
    #[expect(clippy::cast_precision_loss, reason = "times below 2^52 ns")]
    pub fn onto(&self, row: Row) -> Row {
        let [min_ns, median_ns, p99_ns, p999_ns] =
            [self.min_ns, self.median_ns, self.p99_ns, self.p999_ns].map(|ns| ns as f64);
        let ratio = row.probe_ns.filter(|probe| *probe > 0.0).map(|probe| median_ns / probe);
        Row { min_ns, median_ns, p99_ns, p999_ns, ratio, ..row }
    }
}

/// Everything a run gives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// Name and version of the format: [`SCHEMA`].
    pub schema: String,
    /// What it ran on.
    pub environment: Environment,
    /// The command line, as it was typed.
    pub command: Vec<String>,
    /// False when the run ended early; `interrupted` then says why.
    pub complete: bool,
    /// Why there is no more.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub interrupted: Option<String>,
    /// A row a size, and of each library.
    pub rows: Vec<Row>,
    /// Results that are no row over size.
    pub findings: Vec<Finding>,
}

impl Document {
    /// What a run gave, whose command line is not known, and why there is no more if it ended
    /// early.
    pub fn new(environment: Environment, rows: Vec<Row>, findings: Vec<Finding>, interrupted: Option<String>) -> Self {
        Self {
            schema: SCHEMA.into(),
            environment,
            command: Vec::new(),
            complete: interrupted.is_none(),
            interrupted,
            rows,
            findings,
        }
    }

    /// Reads what a run has written; `name` is the file's.
    ///
    /// # Errors
    ///
    /// It is no document of this version.
    pub fn parse(text: &str, name: &str) -> Result<Self, UserError> {
        let other = |what: &str| {
            UserError(format!(
                "{name} {what}: give a file that `cci perf --json` of this version has written ({SCHEMA})"
            ))
        };
        let value: serde_json::Value =
            serde_json::from_str(text).map_err(|error| other(&format!("is no JSON ({error})")))?;
        match value.get("schema").and_then(serde_json::Value::as_str) {
            Some(SCHEMA) => {}
            Some(schema) => return Err(other(&format!("has the format {schema}, not {SCHEMA}"))),
            None => return Err(other("names no format")),
        }
        serde_json::from_value(value).map_err(|error| other(&format!("is damaged ({error})")))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::names::Measurement;
    use super::super::session::tests::session;
    use super::*;

    /// A page made from a document shows what was measured. By default serde_json reads some
    /// numbers as their neighbours.
    #[test]
    fn a_figure_is_read_as_it_was_written() {
        for figure in [12.785_871_764_705_883_f64, 13.160_221_428_571_429, 13.534_617_777_777_779] {
            let text = serde_json::to_string(&figure).unwrap();
            assert_eq!(serde_json::from_str::<f64>(&text).unwrap().to_bits(), figure.to_bits());
        }
    }

    fn subject(session: &Session) -> Subject<'_> {
        Subject { session, transport: "sm", abi: Abi::Rust, probe: Some(ProbeKind::Line), bound: 0.05 }
    }

    pub(crate) fn row(measurement: Measurement, size: u64) -> Row {
        let session = Session { measurement, ..session() };
        let pairs = vec![(90.0, Some(50.0)), (100.0, Some(80.0)), (130.0, Some(90.0))];
        Row::new(&subject(&session), size, &Samples { launches: vec![pairs], operations: 3000 }).unwrap()
    }

    #[test]
    fn the_ratio_is_median_over_the_probes_median() {
        let row = row(Measurement::PingPong, 8);
        assert_eq!((row.median_ns, row.probe_ns, row.ratio), (100.0, Some(80.0), Some(1.25)));
        assert_eq!((row.per_second, row.bytes_per_second), (None, None));
    }

    #[test]
    fn rate_and_bandwidth_tell_operations_and_bytes_per_second() {
        let row = row(Measurement::Bandwidth, 4096);
        assert_eq!(row.per_second, Some(1e7));
        assert_eq!(row.bytes_per_second, Some(4.096e10));
    }

    #[test]
    fn without_a_probe_there_is_no_ratio_and_without_a_block_no_row() {
        let samples = Samples { launches: vec![vec![(1.0, None)]], operations: 1 };
        let session = session();
        let row = Row::new(&subject(&session), 8, &samples).unwrap();
        assert_eq!((row.probe, row.probe_ns, row.ratio), (None, None, None));
        assert_eq!(Row::new(&subject(&session), 8, &Samples::default()), None);
    }

    #[test]
    fn a_point_is_accurate_when_its_median_is_known_within_the_bound() {
        let of = |bound: f64| {
            let session = session();
            let subject = Subject { bound, ..subject(&session) };
            let pairs = (0..100).map(|block| (100.0 + f64::from(block % 10), None)).collect();
            Row::new(&subject, 8, &Samples { launches: vec![pairs], operations: 100 }).unwrap()
        };
        let row = of(0.05);
        assert!(row.accurate && row.spread > 0.001, "{}", row.spread);
        assert!(of(row.spread).accurate && !of(row.spread * 0.99).accurate);
    }

    #[test]
    fn a_document_comes_back_as_it_was_and_another_version_is_told_apart() {
        let rows = vec![row(Measurement::PingPong, 8)];
        let document = Document::new(Environment::default(), rows, vec![Finding::Unknown], None);
        let text = serde_json::to_string(&document).unwrap();
        assert_eq!(Document::parse(&text, "a.json").unwrap(), document);
        let told = |text: &str| Document::parse(text, "a.json").unwrap_err().0;
        let old = told(&text.replace("cci-perf/2", "cci-perf/1"));
        assert!(old.contains("a.json has the format cci-perf/1, not cci-perf/2"), "{old}");
        assert!(told("[]").contains("names no format"));
        assert!(told("rows").contains("no JSON"));
        assert!(told(r#"{"schema": "cci-perf/2"}"#).contains("damaged"));
    }

    #[test]
    fn fields_and_findings_of_a_later_version_are_passed_over() {
        let document = Document::new(Environment::default(), vec![], vec![], None);
        let text = serde_json::to_string(&document).unwrap();
        let text = text.replace("\"findings\":[", "\"novelty\":7,\"findings\":[{\"kind\":\"novel\",\"x\":1}");
        assert_eq!(Document::parse(&text, "a.json").unwrap().findings, [Finding::Unknown]);
    }

    #[test]
    fn the_json_of_a_row() {
        insta::assert_json_snapshot!(row(Measurement::PingPong, 8));
    }

    #[test]
    fn the_json_of_a_row_of_bandwidth() {
        insta::assert_json_snapshot!(row(Measurement::Bandwidth, 4096));
    }
}
