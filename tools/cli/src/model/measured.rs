//! Documents of `cci perf` about paths whose components are counted.

use cci_model::fit::{Observation, Path as Counts, Unknown};
use cci_report::finding::{Finding, PortalsPoint};
use cci_report::row::{Document, Row};
use cci_report::sizes::parse_key;
use cci_report::{UserError, while_doing};
use clap::{Args, ValueEnum};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// How documents are read, and what is known beforehand.
#[derive(Args, Clone, Debug)]
pub(crate) struct MeasuredArguments {
    /// Components of the path in a file, counted one way: --path ring.json=p:4,f:3,s:0,o:2. Without
    /// s none, without f p - s - 1, without o 2. The test bed writes them into its documents
    #[arg(long = "path", value_name = "FILE=COUNTS", value_parser = parse_key)]
    paths: Vec<(String, String)>,
    /// A component that is known from elsewhere: --fix l_p=7ns; o_0, l_p, l_f, l_s, or c as in
    /// c=11.6ns
    #[arg(long = "fix", value_name = "KEY=VALUE", value_parser = parse_key)]
    fixed: Vec<(String, String)>,
    /// Which of the measured times to take
    #[arg(long, value_enum, default_value = "min")]
    statistic: Statistic,
    /// m_0: the size that o_0 belongs to, bytes; the smallest measured when absent
    #[arg(long, value_name = "BYTES", value_parser = super::quantity::bytes)]
    reference: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Statistic {
    /// The fastest block
    Min,
    /// The median of blocks
    Median,
}

/// A measured path.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) name: String,
    pub(crate) counts: Counts,
    /// Bytes and nanoseconds, one way.
    pub(crate) times: Vec<(f64, f64)>,
}

/// What the test bed adds to a document.
#[derive(Deserialize)]
struct Annotated {
    path: Option<Annotation>,
}

#[derive(Deserialize)]
struct Annotation {
    name: Option<String>,
    #[serde(default = "two")]
    o: f64,
    p: f64,
    f: Option<f64>,
    #[serde(default)]
    s: f64,
}

fn two() -> f64 {
    2.0
}

impl Annotation {
    fn counts(&self) -> Counts {
        let between = self.p - self.s - 1.0;
        Counts { overheads: self.o, propagations: self.p, forwardings: self.f.unwrap_or(between), switchings: self.s }
    }
}

/// The way of windows whose times a fit takes: flushed after each message, and awaited by the
/// library.
const WINDOWS: &str = "library";
const COUNTS: &str = "give its components as in --path FILE=p:4,f:3,s:0,o:2";

impl MeasuredArguments {
    /// Reads documents. Of several about one path the fastest time of each size counts, as it does
    /// of the blocks of one; medians all count.
    pub(crate) fn read(&self, files: &[PathBuf]) -> Result<Vec<Measured>, UserError> {
        let measured = files.iter().map(|file| self.read_one(file)).collect::<Result<Vec<_>, _>>()?;
        Ok(if self.statistic == Statistic::Min { fastest(measured) } else { measured })
    }

    /// Refuses counts of a file that is not read: a slip that would otherwise go unnoticed.
    pub(crate) fn check(&self, files: &[&[PathBuf]]) -> Result<(), UserError> {
        let is_read = |name: &str| files.iter().any(|files| files.iter().any(|file| is_named(file, name)));
        match self.paths.iter().find(|(name, _)| !is_read(name)) {
            Some((name, _)) => Err(UserError(format!("--path {name}=...: no file of this name is read"))),
            None => Ok(()),
        }
    }

    /// Components that are known.
    pub(crate) fn known(&self) -> Result<Vec<(Unknown, f64)>, UserError> {
        let parse = |(name, value): &(String, String)| {
            let wrong = |why: &str| UserError(format!("--fix {name}={value}: {why}"));
            let unknown = Unknown::of_name(name);
            let unknown =
                unknown.ok_or_else(|| wrong("there is no such component; there are o_0, c, l_p, l_f and l_s"))?;
            let ns = match unknown {
                Unknown::PerByte => super::quantity::ns_per_byte(value),
                _ => super::quantity::time_ns(value),
            };
            let ns = ns.map_err(|why| wrong(&why.0))?;
            if ns < 0.0 { Err(wrong("a component takes no time below zero")) } else { Ok((unknown, ns)) }
        };
        self.fixed.iter().map(parse).collect()
    }

    /// m_0 for these paths.
    pub(crate) fn reference(&self, measured: &[Measured]) -> f64 {
        let sizes = measured.iter().flat_map(|path| &path.times).map(|(bytes, _)| *bytes);
        self.reference.unwrap_or_else(|| sizes.fold(f64::INFINITY, f64::min))
    }

    fn read_one(&self, file: &Path) -> Result<Measured, UserError> {
        let name = file.display().to_string();
        let text = std::fs::read_to_string(file).map_err(while_doing(&format!("cannot read {name}")))?;
        if text.trim().is_empty() {
            return Err(UserError(format!("{name} is empty: give a file that `cci perf pingpong --json` has written")));
        }
        let document = Document::parse(&text, &name)?;
        let rows = document.rows.iter().filter(|row| is_half_round_trip(row));
        let mut times: Vec<_> = rows.map(|row| (double(row.size), self.time(row))).collect();
        if times.is_empty() {
            times = self.of_windows(&document, &name)?;
        }
        if times.is_empty() {
            return Err(UserError(format!(
                "{name} has no times of ping-pongs of messages, nor of mirror windows of SCI: measure with `cci perf \
                 pingpong`, or `cci perf sci` over a network"
            )));
        }
        let annotated: Annotated = serde_json::from_str(&text)
            .map_err(|error| UserError(format!("{name}: its path is wrong ({error}); {COUNTS}")))?;
        let given = self.paths.iter().find(|(path, _)| is_named(file, path));
        let annotation = match (given, annotated.path) {
            (Some((_, counts)), _) => {
                parse_counts(counts).map_err(|why| UserError(format!("--path {name}={counts}: {why}")))?
            }
            (None, Some(annotation)) => annotation,
            (None, None) => return Err(UserError(format!("{name} does not name the parts of its path: {COUNTS}"))),
        };
        Ok(Measured { counts: annotation.counts(), name: annotation.name.unwrap_or(name), times })
    }

    /// Half round trips of flushed mirror windows: a figure is a minimum.
    fn of_windows(&self, document: &Document, name: &str) -> Result<Vec<(f64, f64)>, UserError> {
        let windows = document.findings.iter().filter_map(|finding| match finding {
            Finding::Sci(sci) if sci.window == "mirror" => Some(&sci.points),
            _ => None,
        });
        let is_flushed = |point: &&PortalsPoint| point.experiment == "pingpong" && point.way == WINDOWS;
        let points: Vec<_> = windows.flatten().filter(is_flushed).collect();
        if self.statistic == Statistic::Median && !points.is_empty() {
            return Err(UserError(format!(
                "{name} is of windows of SCI, which have minima alone: give --statistic min"
            )));
        }
        Ok(points.into_iter().map(|point| (double(point.x), point.value)).collect())
    }

    fn time(&self, row: &Row) -> f64 {
        match self.statistic {
            Statistic::Min => row.min_ns,
            Statistic::Median => row.median_ns,
        }
    }
}

/// Each path once, at each size the fastest of its documents.
fn fastest(measured: Vec<Measured>) -> Vec<Measured> {
    let mut paths: Vec<Measured> = Vec::new();
    for mut document in measured {
        let Some(path) = paths.iter_mut().find(|path| path.name == document.name && path.counts == document.counts)
        else {
            document.times.sort_by(|a, b| a.0.total_cmp(&b.0));
            paths.push(document);
            continue;
        };
        for (bytes, ns) in document.times {
            match path.times.iter_mut().find(|(own, _)| own.to_bits() == bytes.to_bits()) {
                Some((_, fastest)) => *fastest = fastest.min(ns),
                None => path.times.push((bytes, ns)),
            }
        }
    }
    paths
}

/// All times, as a fit takes them.
pub(crate) fn observations(measured: &[Measured]) -> Vec<Observation> {
    let of = |path: &Measured| {
        let path = path.clone();
        path.times.into_iter().map(move |(bytes, ns)| Observation { path: path.counts, bytes, ns })
    };
    measured.iter().flat_map(of).collect()
}

/// Of CCI, one message each way.
fn is_half_round_trip(row: &Row) -> bool {
    row.measurement == "pingpong" && row.operation == "send" && row.library == "cci"
}

#[expect(clippy::cast_precision_loss, reason = "sizes below 2^53")]
fn double(size: u64) -> f64 {
    size as f64
}

/// Whether a file is meant: its path as given, or its name.
fn is_named(file: &Path, name: &str) -> bool {
    file == Path::new(name) || file.file_name().is_some_and(|own| own == name)
}

/// `p:4,f:3,s:0,o:2`.
fn parse_counts(text: &str) -> Result<Annotation, UserError> {
    let mut counts = Annotation { name: None, o: two(), p: 0.0, f: None, s: 0.0 };
    for part in text.split(',') {
        let wrong = || UserError(format!("`{part}` is no count; give counts such as p:4,f:3,s:0,o:2"));
        let (key, value) = part.split_once(':').ok_or_else(wrong)?;
        let value = value.parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0).ok_or_else(wrong)?;
        match key {
            "o" => counts.o = value,
            "p" => counts.p = value,
            "f" => counts.f = Some(value),
            "s" => counts.s = value,
            _ => return Err(wrong()),
        }
    }
    if counts.counts().forwardings < 0.0 {
        return Err(UserError::new("a path has more links than switchings: p is at least s + 1"));
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_the_usual_ends_and_forwardings() {
        let counts = |text: &str| parse_counts(text).unwrap().counts();
        let [a, b] = [counts("p:4,s:1"), counts("o:2,p:4,f:2,s:1")];
        assert_eq!(a, b);
        assert_eq!((a.overheads, a.forwardings), (2.0, 2.0));
        assert_eq!(counts("o:4,p:2,f:0").overheads, 4.0);
        for wrong in ["p=4", "q:1", "p:-1", "p:x", "", "s:1"] {
            assert!(parse_counts(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn mirror_windows_have_times_and_others_none() {
        let point = |experiment: &str, x, way: &str| PortalsPoint {
            experiment: experiment.into(),
            x,
            way: way.into(),
            value: 100.0 + x as f64,
            spread: 5.0,
        };
        let points = vec![
            point("oneway", 8, "library"),
            point("pingpong", 8, "flushed"),
            point("pingpong", 8, "library"),
            point("pingpong", 64, "library"),
        ];
        let document = |window: &str| {
            let sci = cci_report::finding::Sci { window: window.into(), points: points.clone(), ..Default::default() };
            Document::new(cci_report::environment::Environment::default(), Vec::new(), vec![Finding::Sci(sci)], None)
        };
        let arguments =
            |statistic| MeasuredArguments { paths: Vec::new(), fixed: Vec::new(), statistic, reference: None };
        let of = |window, statistic| arguments(statistic).of_windows(&document(window), "w.json");
        assert_eq!(of("mirror", Statistic::Min).unwrap(), [(8.0, 108.0), (64.0, 164.0)]);
        assert_eq!(of("shared", Statistic::Min).unwrap(), []);
        assert!(of("mirror", Statistic::Median).unwrap_err().0.contains("--statistic min"));
    }

    #[test]
    fn files_are_known_by_path_or_name() {
        assert!(
            is_named(Path::new("out/ring.json"), "ring.json") && is_named(Path::new("out/ring.json"), "out/ring.json")
        );
        assert!(!is_named(Path::new("out/ring.json"), "other/ring.json"));
    }
}
