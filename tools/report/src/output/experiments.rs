//! Experiments with an interface beside CCI's own: tables on the terminal, and plots.

use super::legend;
use super::sheet::Sheet;
use super::style::{Failed, GRID, INK, font, labelled, short, written};
use super::table::{align, scaled, time};
use crate::UserError;
use crate::finding::PortalsPoint;
use crate::sizes::show_size;
use plotters::prelude::*;

/// How a figure is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Time,
    Rate,
    Bandwidth,
    /// Of 1.
    Part,
    Bytes,
}

/// How a place on the abscissa is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Bytes,
    Count,
}

/// An experiment: what it is, and what was expected before it ran.
#[derive(Debug)]
pub(crate) struct Experiment {
    /// Its name in a finding.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) place: Place,
    pub(crate) unit: Unit,
    pub(crate) expected: &'static str,
    /// Processors for whom.
    pub(crate) processors: &'static str,
    /// Without so many it says that it was not measured.
    pub(crate) least: u64,
}

impl Experiment {
    /// One that needs a processor for each of two programs.
    pub(crate) const fn new(
        name: &'static str,
        title: &'static str,
        place: Place,
        unit: Unit,
        expected: &'static str,
    ) -> Self {
        Self { name, title, place, unit, expected, processors: "one for each program", least: 2 }
    }

    /// The same with other needs.
    pub(crate) const fn needs(mut self, processors: &'static str, least: u64) -> Self {
        (self.processors, self.least) = (processors, least);
        self
    }

    pub(crate) fn value(&self, value: f64) -> String {
        match self.unit {
            Unit::Time => time(value),
            Unit::Rate => scaled(value, "/s"),
            Unit::Bandwidth => scaled(value, "B/s"),
            Unit::Part => format!("{:.3} %", 100.0 * value),
            Unit::Bytes => scaled(value, "B"),
        }
    }

    pub(crate) fn place(&self, x: u64) -> String {
        if self.place == Place::Bytes { show_size(x) } else { x.to_string() }
    }

    /// Its figures, and the ways that it has, those to compare with last.
    pub(crate) fn found<'a>(&self, points: &'a [PortalsPoint]) -> (Vec<&'a PortalsPoint>, Vec<&'a str>) {
        let points: Vec<_> = points.iter().filter(|point| point.experiment == self.name).collect();
        let mut ways = Vec::new();
        for point in &points {
            if !ways.contains(&point.way.as_str()) {
                ways.push(point.way.as_str());
            }
        }
        ways.sort_by_key(|way| BASES.contains(way));
        (points, ways)
    }

    /// What stands in its place when it has no figures.
    pub(crate) fn why_not(&self, processors: u64) -> String {
        if processors < self.least {
            format!("not measured: needs {} processors ({}), here are {}", self.least, self.processors, processors)
        } else {
            "not measured in this run".into()
        }
    }
}

/// What others are compared with: CCI's own, the system's own, what has no library, generic without
/// an engine, and windows beside MPI.
const BASES: [&str; 6] = ["cci", "bare", "without", "load", "rma", "windows"];

/// Gives a line below an experiment's table, if it has one.
pub(crate) type Note<'n> = &'n dyn Fn(&Experiment) -> Option<String>;

/// The tables, below a line that says what they are of. `sign` stands before a spread.
pub(crate) fn tables(
    text: String,
    experiments: &[Experiment],
    points: (&[PortalsPoint], &str),
    processors: u64,
) -> String {
    tables_with_notes(text, experiments, points, (processors, &|_| None))
}

/// The same, with a line below those tables that have a note.
pub(crate) fn tables_with_notes(
    mut text: String,
    experiments: &[Experiment],
    (points, sign): (&[PortalsPoint], &str),
    (processors, note): (u64, Note<'_>),
) -> String {
    for experiment in experiments {
        text += &format!("\n\n{}\nexpected: {}", experiment.title, experiment.expected);
        let (points, ways) = experiment.found(points);
        if points.is_empty() {
            text += &format!("\n{}", experiment.why_not(processors));
            continue;
        }
        let rows = align(&rows(experiment, (&points, sign), &ways), &[]);
        text += &format!("; processors: {}\n{}", experiment.processors, rows.trim_end());
        text.extend(note(experiment).map(|note| format!("\n{note}")));
    }
    text
}

/// A line for each place, with a column for each way; and what the first is over the last, which
/// is there to compare with.
fn rows(experiment: &Experiment, (points, sign): (&[&PortalsPoint], &str), ways: &[&str]) -> Vec<Vec<String>> {
    let mut head = vec![String::new()];
    head.extend(ways.iter().map(|way| (*way).to_owned()));
    let base = ways.last().filter(|way| ways.len() > 1 && BASES.contains(way));
    head.extend(base.map(|base| format!("to {base}")));
    let mut rows = vec![head];
    let mut places: Vec<_> = points.iter().map(|point| point.x).collect();
    places.dedup();
    places.sort_unstable();
    places.dedup();
    for x in places {
        let of = |way: &str| points.iter().find(|point| point.x == x && point.way == way);
        let shown = |way: &&str| {
            of(way).map_or_else(
                || "-".into(),
                |point| {
                    let spread = 100.0 * point.spread / point.value.abs().max(f64::MIN_POSITIVE);
                    format!("{} {sign}{spread:.1} %", experiment.value(point.value))
                },
            )
        };
        let mut row = vec![experiment.place(x)];
        row.extend(ways.iter().map(shown));
        if let Some(base) = base {
            let ratio = of(ways[0]).zip(of(base)).map(|(first, base)| first.value / base.value.max(f64::MIN_POSITIVE));
            row.push(ratio.map_or_else(|| "-".into(), |ratio| format!("{ratio:.3}")));
        }
        rows.push(row);
    }
    rows
}

/// As many as an experiment has ways.
const COLORS: [RGBColor; 6] = [
    RGBColor(0, 84, 147),
    RGBColor(214, 116, 18),
    RGBColor(90, 90, 90),
    RGBColor(40, 132, 72),
    RGBColor(132, 58, 140),
    RGBColor(186, 38, 54),
];

/// Pixels between the edge of a panel and its axis, and beside what names the axis.
const MARGIN: i32 = 12;
const LABELS: i32 = 70;

/// The plot as SVG: a panel for each experiment of these names.
pub(super) fn svg(
    title: &str,
    (names, experiments): (&[&str], &[Experiment]),
    points: &[PortalsPoint],
    sheet: &Sheet<'_>,
) -> Result<String, UserError> {
    let drawn: Vec<_> =
        names.iter().filter_map(|name| experiments.iter().find(|experiment| experiment.name == *name)).collect();
    written(|text| draw(title, &drawn, points, sheet, text))
}

#[expect(clippy::cast_precision_loss, reason = "sizes below 2^52")]
fn draw<'a>(
    title: &str,
    drawn: &[&Experiment],
    points: &[PortalsPoint],
    sheet: &Sheet<'_>,
    text: &'a mut String,
) -> Result<(), Failed<'a>> {
    let (root, panels) = sheet.panels(text, title, drawn.len())?;
    for (experiment, panel) in drawn.iter().zip(panels) {
        let (points, ways) = experiment.found(points);
        if points.is_empty() {
            continue;
        }
        // A panel is too narrow for all of a title: its end names the axis.
        let (caption, across) = experiment.title.rsplit_once(", by ").unwrap_or((experiment.title, ""));
        let colored: Vec<_> = ways.iter().copied().zip(COLORS).collect();
        let panel = legend::heading(&panel, caption, &colored, MARGIN + LABELS)?;
        // Nothing has no place on a logarithmic axis.
        let x = |point: &PortalsPoint| point.x.max(1) as f64;
        let ends = |of: &dyn Fn(&PortalsPoint) -> f64| {
            points.iter().fold((f64::MAX, 0.0_f64), |(low, high), point| (low.min(of(point)), high.max(of(point))))
        };
        let (xs, ys) = (ends(&x), ends(&|point| point.value));
        // Sizes are powers of two, counts of ten.
        let base = if experiment.place == Place::Bytes { 2.0 } else { 10.0 };
        let mut chart = ChartBuilder::on(&panel)
            .margin(MARGIN)
            .margin_right(30)
            .x_label_area_size(42)
            .y_label_area_size(LABELS)
            .build_cartesian_2d(
                (xs.0..xs.1 * 1.1).log_scale().base(base),
                labelled(ys.0 * 0.8..ys.1 * 1.2).log_scale(),
            )?;
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .bold_line_style(GRID)
            .x_desc(across)
            .x_label_formatter(&|x| experiment.place(x.round() as u64))
            .x_labels(6)
            .y_labels(6)
            .y_label_formatter(&|value| short(&experiment.value(*value)))
            .label_style(font(13).color(&INK))
            .draw()?;
        for (way, color) in colored {
            let line = || points.iter().filter(|point| point.way == way).map(|point| (x(point), point.value));
            chart.draw_series(LineSeries::new(line(), color.stroke_width(2)))?;
            chart.draw_series(line().map(|at| Circle::new(at, 3, color.filled())))?;
        }
    }
    root.present()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of each line of the text that has this mark, the number in this attribute.
    fn heights(svg: &str, mark: &str, attribute: &str) -> Vec<f64> {
        let found = svg.lines().filter(|line| line.contains(mark)).filter_map(|line| {
            let (_, rest) = line.split_once(&format!("{attribute}=\""))?;
            rest.split('"').next()?.parse().ok()
        });
        found.collect()
    }

    /// The first way is the slowest one where the axis begins.
    #[test]
    fn no_name_lies_on_a_line() {
        let point = |x, way: &str, value| {
            let (experiment, way) = ("turn".into(), way.into());
            PortalsPoint { experiment, x, way, value, spread: 0.0 }
        };
        let ways = ["library", "flushed", "unflushed", "watched", "rma"];
        let points: Vec<_> = [4096, 65_536]
            .into_iter()
            .flat_map(|x| ways.iter().zip([5.0, 4.0, 3.0, 2.0, 1.0]).map(move |(way, ns)| point(x, way, ns * 1e3)))
            .collect();
        let experiments = &crate::output::sci::EXPERIMENTS;
        for sheet in [crate::output::sheet::tests::wide(), crate::output::sheet::tests::narrow()] {
            let text = svg("windows", (&["turn"], experiments), &points, &sheet).unwrap();
            let highest = heights(&text, "<circle", "cy").into_iter().fold(f64::INFINITY, f64::min);
            let lines: Vec<&str> = text.lines().collect();
            for way in ways {
                // The text of a name is the line behind its element.
                let at = lines.iter().position(|line| *line == way).unwrap();
                let [height] = heights(lines[at - 1], "<text", "y")[..] else { panic!("{}", lines[at - 1]) };
                assert!(height + 6.0 < highest, "{way} at {height}, a point at {highest}");
            }
        }
    }
}
