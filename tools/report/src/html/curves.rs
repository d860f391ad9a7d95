//! Rows over size: latency, bandwidth, rate; one figure for each transport and operation, one line
//! for each library and setting.

use super::Run;
use super::chart::{Axis, Bar, Chart, Line, Part, Point, Spread, bars};
use super::figure::{Entry, Figure, FigureTable};
use super::library;
use super::library::Look;
use super::unit;
use crate::documents::Key;
use crate::output::plot::CUT;
use crate::row::Row;

/// What a measurement is about, and in which unit its figures are read.
pub(super) struct Kind {
    pub(super) measurement: &'static str,
    pub(super) anchor: &'static str,
    pub(super) heading: &'static str,
    /// Name of the axis.
    pub(super) axis: &'static str,
    pub(super) value: Value,
}

/// In which unit figures are read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    Time,
    Bandwidth,
    Rate,
}

/// The measurements whose results are rows, in the order of the page.
pub(super) const KINDS: [Kind; 4] = [
    Kind {
        measurement: "pingpong",
        anchor: "latency",
        heading: "Latency: half a round trip",
        axis: "half round trip",
        value: Value::Time,
    },
    Kind {
        measurement: "oneway",
        anchor: "oneway",
        heading: "One operation after the other",
        axis: "time per operation",
        value: Value::Time,
    },
    Kind {
        measurement: "bw",
        anchor: "bandwidth",
        heading: "Bandwidth",
        axis: "bytes per second",
        value: Value::Bandwidth,
    },
    Kind { measurement: "rate", anchor: "rate", heading: "Rate", axis: "operations per second", value: Value::Rate },
];

impl Value {
    /// A time per operation of `size` bytes in this unit.
    #[expect(clippy::cast_precision_loss, reason = "a size below 2^52")]
    pub(super) fn of(self, ns: f64, size: u64) -> f64 {
        match self {
            Self::Time => ns,
            Self::Bandwidth => size as f64 * 1e9 / ns.max(f64::MIN_POSITIVE),
            Self::Rate => 1e9 / ns.max(f64::MIN_POSITIVE),
        }
    }

    pub(super) fn show(self, value: f64) -> String {
        match self {
            Self::Time => unit::time(value),
            Self::Bandwidth => unit::bandwidth(value),
            Self::Rate => unit::rate(value),
        }
    }

    /// A ratio of times, measured to bare, in words.
    pub(super) fn to_bare(self, ratio: f64) -> String {
        match self {
            Self::Time => format!("{} bare", unit::times(ratio)),
            Self::Bandwidth | Self::Rate => format!("{} of bare", unit::percent(1.0 / ratio.max(f64::MIN_POSITIVE))),
        }
    }

    fn axis(self) -> fn(f64) -> String {
        match self {
            Self::Time => |value| unit::short(&unit::time(value)),
            Self::Bandwidth => |value| unit::short(&unit::bandwidth(value)),
            Self::Rate => |value| unit::short(&unit::rate(value)),
        }
    }
}

/// The rows of one key over size, of one run.
struct Curve<'a> {
    key: Key,
    run: usize,
    rows: Vec<&'a Row>,
}

/// Curves that belong into one figure.
struct Group<'a> {
    curves: Vec<Curve<'a>>,
}

/// The figures of a kind of measurement.
pub(super) fn figures(kind: &Kind, runs: &[Run]) -> Vec<Figure> {
    let groups = groups(kind, runs);
    groups.iter().enumerate().map(|(number, group)| figure(kind, number, group)).collect()
}

fn groups<'a>(kind: &Kind, runs: &'a [Run]) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        for row in run.document.rows.iter().filter(|row| row.measurement == kind.measurement) {
            let about = about(row);
            let group = match groups.iter_mut().position(|group| self::about(group.curves[0].rows[0]) == about) {
                Some(at) => &mut groups[at],
                None => {
                    groups.push(Group { curves: Vec::new() });
                    groups.last_mut().unwrap_or_else(|| unreachable!("just pushed"))
                }
            };
            let key = Key::of(row).of_any_size();
            match group.curves.iter_mut().find(|curve| curve.key == key && curve.run == number) {
                Some(curve) => curve.rows.push(row),
                None => group.curves.push(Curve { key, run: number, rows: vec![row] }),
            }
        }
    }
    for group in &mut groups {
        group.curves.sort_by_key(|curve| library::rank(&curve.rows[0].library));
        group.curves.iter_mut().for_each(|curve| curve.rows.sort_by_key(|row| row.size));
    }
    groups
}

/// What the rows of one figure have in common.
fn about(row: &Row) -> (&str, &str, &str, bool) {
    (&row.transport, &row.operation, &row.mode, row.bidirectional)
}

fn figure(kind: &Kind, number: usize, group: &Group<'_>) -> Figure {
    let first = group.curves[0].rows[0];
    let title = title(first);
    let id = format!("{}-{}", kind.anchor, number + 1);
    let named = named(group);
    let sizes: Vec<_> = group.curves.iter().flat_map(|curve| &curve.rows).map(|row| row.size).collect();
    let is_one_size = sizes.iter().all(|size| *size == sizes[0]);
    let (picture, legend, note) = if is_one_size {
        (
            in_bars(kind, &id, &title, &named),
            Vec::new(),
            format!("{} of {}.", kind.axis_capital(), unit::short(&crate::sizes::show_size(sizes[0]))),
        )
    } else {
        let lines: Vec<_> =
            named.iter().map(|named| named.line(kind)).chain(bare(kind, group).map(|bare| bare.0)).collect();
        let mut legend: Vec<_> = named.iter().map(Named::entry).collect();
        legend.extend(bare(kind, group).map(|(line, name)| Entry { look: line.look, name, detail: String::new() }));
        (chart(kind, &id, &title, lines).draw(), legend, String::new())
    };
    let mut runs: Vec<_> = group.curves.iter().map(|curve| curve.run).collect();
    runs.sort_unstable();
    runs.dedup();
    Figure { title, note, picture, legend, table: table(kind, &named), runs, is_wide: false }
}

impl Kind {
    fn axis_capital(&self) -> String {
        let mut letters = self.axis.chars();
        letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
    }
}

fn title(row: &Row) -> String {
    let operation = match row.operation.as_str() {
        "send" => "messages",
        "write" => "RMA write",
        "read" => "RMA read",
        other => other,
    };
    let mode = if row.mode == "polling" { "" } else { ", waiting asleep" };
    let directions = if row.bidirectional { ", both directions" } else { "" };
    format!("{}: {operation}{mode}{directions}", transport(&row.transport))
}

/// A transport in words.
pub(super) fn transport(name: &str) -> String {
    match name {
        "sm" => "Shared memory (sm)".into(),
        "sock" => "Network, loop-back (sock)".into(),
        "sim" => "Simulated network (sim)".into(),
        other => other.into(),
    }
}

/// A curve with its names and look.
struct Named<'a> {
    curve: &'a Curve<'a>,
    look: Look,
    /// As short as it can be within the figure.
    label: String,
    name: String,
    detail: String,
}

fn named<'a>(group: &'a Group<'a>) -> Vec<Named<'a>> {
    let of = |library: &str| group.curves.iter().filter(|curve| curve.rows[0].library == library).count();
    let mut seen: Vec<&str> = Vec::new();
    let several_runs = |key: &Key| group.curves.iter().filter(|curve| curve.key == *key).count() > 1;
    group
        .curves
        .iter()
        .map(|curve| {
            let row = curve.rows[0];
            let before = seen.iter().filter(|library| **library == row.library).count();
            seen.push(&row.library);
            let name = library::name(&row.library);
            let (which, how) = setting(row);
            let others =
                curve.key.clone().without("library").without("setting").without("mode").without("bidirectional");
            let run = several_runs(&curve.key).then(|| format!("run {}", curve.run + 1));
            let detail = [how.to_owned(), others.peculiarities()].into_iter().filter(|text| !text.is_empty());
            let detail: Vec<_> = detail.chain(run.clone()).collect();
            // A word that tells this curve from the others of its library.
            let word = match (of(&row.library), which, run) {
                (1, _, _) => String::new(),
                (_, which, None) if !which.is_empty() => format!(" {which}"),
                (_, which, Some(run)) => format!(" {which} {run}").replace("  ", " "),
                (..) => format!(" {}", others.peculiarities().split(", ").next().unwrap_or("")).trim_end().into(),
            };
            Named {
                curve,
                look: Look::of(&row.library, before),
                label: format!("{name}{word}"),
                name: if which.is_empty() { name } else { format!("{name} {which}") },
                detail: detail.join(", "),
            }
        })
        .collect()
}

/// A peer's setting: its name, and what it is.
pub(super) fn setting(row: &Row) -> (&str, &str) {
    let setting = row.setting.as_deref().unwrap_or("");
    setting.split_once(':').map_or((setting, ""), |(name, what)| (name.trim(), what.trim()))
}

impl Named<'_> {
    fn entry(&self) -> Entry {
        Entry { look: self.look.clone(), name: self.name.clone(), detail: self.detail.clone() }
    }

    fn line(&self, kind: &Kind) -> Line {
        let points = self.curve.rows.iter().map(|row| point(kind, &self.name, row)).collect();
        Line { label: self.label.clone(), look: self.look.clone(), points }
    }
}

/// Where a size stands: a message without bytes has no place on a logarithmic axis.
#[expect(clippy::cast_precision_loss, reason = "a size below 2^52")]
fn x(row: &Row) -> f64 {
    row.size.max(1) as f64
}

fn point(kind: &Kind, name: &str, row: &Row) -> Point {
    let of = |ns: f64| kind.value.of(ns, row.size);
    let show = |ns: f64| kind.value.show(of(ns));
    let doubt = if row.accurate { "" } else { "; not accurate" };
    Point {
        x: x(row),
        y: of(row.median_ns),
        // A block that the system disturbed may take a thousand times as long: its band is cut,
        // rather than the curves flattened or the figure filled.
        band: Some((of(row.min_ns), of(row.p99_ns.min(CUT * row.median_ns)))),
        is_accurate: row.accurate,
        told: format!(
            "{name}, {}: median {}, minimum {}, p99 {}{doubt}",
            crate::sizes::show_size(row.size),
            show(row.median_ns),
            show(row.min_ns),
            show(row.p99_ns)
        ),
    }
}

/// The line of the bare probe, and its name: of the first curve that has one. A probe that moves
/// one line whatever the size has no bandwidth.
fn bare(kind: &Kind, group: &Group<'_>) -> Option<(Line, String)> {
    let fits = |row: &&&Row| {
        row.probe_ns.is_some()
            && row.probe.is_some_and(|probe| kind.value != Value::Bandwidth || probe.moves_the_size())
    };
    let curve = group.curves.iter().find(|curve| curve.rows.iter().any(|row| fits(&row)))?;
    let points: Vec<_> = curve
        .rows
        .iter()
        .filter(fits)
        .filter_map(|row| {
            let y = kind.value.of(row.probe_ns?, row.size);
            Some(Point { x: x(row), y, band: None, is_accurate: true, told: String::new() })
        })
        .collect();
    let name = format!("bare {}", curve.rows.iter().find_map(|row| row.probe)?.name());
    Some((Line { label: name.clone(), look: Look::of_probe(), points }, name))
}

fn chart(kind: &Kind, id: &str, title: &str, lines: Vec<Line>) -> Chart {
    let points = || lines.iter().flat_map(|line| &line.points);
    let band = points().filter_map(|point| point.band).flat_map(|(a, b)| [a, b]);
    let y = Axis::new(kind.axis, Spread::Decimal, points().map(|point| point.y).chain(band), kind.value.axis());
    let x = Axis::new("size", Spread::Binary, points().map(|point| point.x), unit::size);
    let told: Vec<_> = lines
        .iter()
        .filter_map(|line| {
            let (first, last) = (line.points.first()?, line.points.last()?);
            let show = |point: &Point| format!("{} at {}", kind.value.show(point.y), unit::size(point.x));
            Some(format!("{} from {} to {}", line.label, show(first), show(last)))
        })
        .collect();
    let description = format!("{title}, {} over size. {}.", kind.axis, told.join("; "));
    Chart { id: id.into(), description, x, y, lines }
}

fn in_bars(kind: &Kind, id: &str, title: &str, named: &[Named<'_>]) -> maud::Markup {
    let bar = |named: &Named<'_>| {
        let row = named.curve.rows.last()?;
        let point = point(kind, &named.name, row);
        let ratio = row.ratio.map_or_else(String::new, |ratio| format!(", {}", kind.value.to_bare(ratio)));
        let doubt = if row.accurate { "" } else { " ≈" };
        Some(Bar {
            label: named.name.clone(),
            told: format!("{}{doubt}{ratio}", kind.value.show(point.y)),
            parts: vec![Part { class: named.look.class.clone(), value: point.y, told: point.told }],
        })
    };
    let mut all: Vec<_> = named.iter().filter_map(bar).collect();
    // The best first: the shortest time, or the highest rate.
    let weight = |bar: &Bar| if kind.value == Value::Time { bar.parts[0].value } else { -bar.parts[0].value };
    all.sort_by(|a, b| weight(a).total_cmp(&weight(b)));
    let told: Vec<_> = all.iter().map(|bar| format!("{} {}", bar.label, bar.told)).collect();
    bars(id, &format!("{title}, {}: {}.", kind.axis, told.join("; ")), &all)
}

fn table(kind: &Kind, named: &[Named<'_>]) -> FigureTable {
    let mut rows = Vec::new();
    for named in named {
        for row in &named.curve.rows {
            let show = |ns: f64| kind.value.show(kind.value.of(ns, row.size));
            let dash = || String::from("–");
            rows.push(vec![
                if named.detail.is_empty() { named.name.clone() } else { format!("{} ({})", named.name, named.detail) },
                crate::sizes::show_size(row.size),
                show(row.median_ns),
                show(row.min_ns),
                show(row.p99_ns),
                show(row.p999_ns),
                row.probe_ns.map_or_else(dash, unit::time),
                row.ratio.map_or_else(dash, unit::times),
                format!("±{:.1} %{}", row.spread * 100.0, if row.accurate { "" } else { " ≈" }),
            ]);
        }
    }
    let head = vec!["library", "size", "median", "minimum", "p99", "p99.9", "bare", "ratio", "spread"];
    FigureTable { head, rows, words: 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Measurement;
    use crate::row::tests::row;

    #[test]
    fn a_band_of_disturbed_blocks_is_cut_near_its_curve() {
        let band = |p99_ns| {
            let row = Row { median_ns: 100.0, min_ns: 90.0, p99_ns, ..row(Measurement::PingPong, 8) };
            point(&KINDS[0], "cci", &row).band
        };
        assert_eq!(band(149.0), Some((90.0, 149.0)));
        assert_eq!(band(1e9), Some((90.0, 150.0)));
    }
}
