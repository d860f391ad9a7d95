//! Rows and the document that holds them; see `docs/perf-json.md`.

use super::environment::Environment;
use super::plan::{Abi, Measurement, MemoryOrigin, Operation, ProbeKind, Session, Target};
use super::statistics::Summary;
use serde::{Deserialize, Serialize};

/// Name and version of the document's format. A change that a reader could stumble over counts the number up.
pub(crate) const SCHEMA: &str = "cci-perf/1";

/// One measured point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) measurement: String,
    pub(crate) transport: String,
    pub(crate) attribute: String,
    pub(crate) operation: String,
    pub(crate) size: u64,
    pub(crate) count: u64,
    pub(crate) blocks: u64,
    pub(crate) min_ns: f64,
    pub(crate) median_ns: f64,
    pub(crate) p99_ns: f64,
    pub(crate) probe: Option<ProbeKind>,
    pub(crate) probe_ns: Option<f64>,
    pub(crate) ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) per_second: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) bytes_per_second: Option<f64>,
    pub(crate) library: String,
    pub(crate) abi: Abi,
    pub(crate) mode: String,
    pub(crate) threads: String,
    pub(crate) completion: String,
    pub(crate) touch: bool,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) memory: Option<MemoryOrigin>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) target: Option<Target>,
}

/// What was measured for one size: nanoseconds per operation, one sample a block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples {
    pub(crate) measured: Vec<f64>,
    pub(crate) probed: Vec<f64>,
    /// Operations over all blocks.
    pub(crate) operations: u64,
}

impl Row {
    /// The row of a size; none when no block was measured.
    pub(crate) fn new(
        session: &Session,
        abi: Abi,
        transport: &str,
        size: u64,
        probe: Option<ProbeKind>,
        samples: &Samples,
    ) -> Option<Self> {
        let summary = Summary::of(&samples.measured)?;
        let probe_ns = Summary::of(&samples.probed).map(|summary| summary.median);
        let per_second = matches!(session.measurement, Measurement::Rate | Measurement::Bandwidth)
            .then(|| 1e9 / summary.median.max(f64::MIN_POSITIVE));
        #[expect(clippy::cast_precision_loss, reason = "a size below 2^52")]
        let bytes_per_second = per_second.map(|rate| rate * size as f64);
        Some(Self {
            measurement: session.measurement.name().into(),
            transport: transport.into(),
            attribute: session.attribute.name().to_uppercase(),
            operation: session.operation.name().into(),
            size,
            count: samples.operations,
            blocks: samples.measured.len() as u64,
            min_ns: summary.min,
            median_ns: summary.median,
            p99_ns: summary.p99,
            probe: probe_ns.and(probe),
            probe_ns,
            ratio: probe_ns.filter(|probe| *probe > 0.0).map(|probe| summary.median / probe),
            per_second,
            bytes_per_second,
            library: "cci".into(),
            abi,
            mode: session.mode.name().into(),
            threads: session.threads.name().into(),
            completion: if session.silent { "silent" } else { "reaped" }.into(),
            touch: session.touch,
            memory: (session.operation != Operation::Send).then_some(session.memory),
            target: (session.operation != Operation::Send).then_some(session.target),
        })
    }
}

/// Everything a run gives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Document {
    pub(crate) schema: String,
    pub(crate) environment: Environment,
    /// False when the run ended early; `interrupted` then says why.
    pub(crate) complete: bool,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) interrupted: Option<String>,
    pub(crate) rows: Vec<Row>,
}

impl Document {
    /// A document of rows, and why there are no more if the run ended early.
    pub(crate) fn new(environment: Environment, rows: Vec<Row>, interrupted: Option<String>) -> Self {
        Self { schema: SCHEMA.into(), environment, complete: interrupted.is_none(), interrupted, rows }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::plan::tests::session;
    use super::*;

    pub(crate) fn row(measurement: Measurement, size: u64) -> Row {
        let mut session = session();
        session.measurement = measurement;
        let samples = Samples { measured: vec![90.0, 100.0, 130.0], probed: vec![50.0, 80.0, 90.0], operations: 3000 };
        Row::new(&session, Abi::Rust, "sm", size, Some(ProbeKind::Line), &samples).unwrap()
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
        let samples = Samples { measured: vec![1.0], probed: vec![], operations: 1 };
        let row = Row::new(&session(), Abi::C, "sm", 8, Some(ProbeKind::Line), &samples).unwrap();
        assert_eq!((row.probe, row.probe_ns, row.ratio), (None, None, None));
        assert_eq!(Row::new(&session(), Abi::C, "sm", 8, None, &Samples::default()), None);
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
