//! Latency and bandwidth over size, as SVG for screen and print.

use super::table::{scaled, time};
use crate::environment::Environment;
use crate::finding::Finding;
use crate::row::{Document, Row};
use crate::sizes::show_size;
use crate::{UserError, while_doing};
use plotters::coord::Shift;
use plotters::coord::combinators::IntoLogRange;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::ops::Range;

/// Two panels side by side.
pub(crate) const AREA: (u32, u32) = (1160, 520);
/// Colours that differ in lightness too, for print without colour.
const MEASURED: RGBColor = RGBColor(0, 84, 147);
const BARE: RGBColor = RGBColor(214, 116, 18);
/// Colour of lines behind the curves.
pub const GRID: RGBColor = RGBColor(222, 222, 222);
/// Colour of axes and text.
pub const INK: RGBColor = RGBColor(40, 40, 40);

/// How many times its median the band of slow blocks reaches at each size: further, it would dwarf
/// the curve.
const CUT: f64 = 2.0;

/// Characters of a line of the footer: so many fit in its width at 12 pixels.
const LINE: usize = 165;
/// Height of a line of the footer.
const LINE_HEIGHT: u32 = 16;

/// Why a plot could not be drawn.
pub type Failed<'a> = DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>;

/// The plot of a document.
pub fn svg(document: &Document) -> Result<String, UserError> {
    if let ([], [Finding::Logp(found)]) = (&document.rows[..], &document.findings[..]) {
        return super::signature::svg(found, &document.environment);
    }
    if let ([], [Finding::MemoryCurves(found)]) = (&document.rows[..], &document.findings[..]) {
        return super::memory_curves::svg(found, &document.environment);
    }
    if let ([], [Finding::Am(found)]) = (&document.rows[..], &document.findings[..]) {
        return super::am::svg(found, &document.environment);
    }
    if document.rows.is_empty() {
        return Err(UserError::new("there is nothing to draw: no size was measured"));
    }
    let mut text = String::new();
    draw(document, &mut text).map_err(while_doing("cannot draw the plot"))?;
    Ok(text)
}

/// One panel: what its curves show, and how its axis is labelled.
struct Panel<'a> {
    title: &'a str,
    label: &'a str,
    measured: Vec<(f64, f64)>,
    bare: Vec<(f64, f64)>,
    /// Those of the measured that are not accurate.
    vague: Vec<(f64, f64)>,
    /// From the fastest to the slowest block but one in a hundred; only where it says something.
    band: Vec<(f64, f64, f64)>,
    show: &'a dyn Fn(&f64) -> String,
    /// Where no curve runs.
    legend: SeriesLabelPosition,
}

#[expect(clippy::cast_precision_loss, reason = "sizes below 2^52")]
fn draw<'a>(document: &Document, text: &'a mut String) -> Result<(), Failed<'a>> {
    let rows = &document.rows;
    let footer = Footer::new(&document.environment);
    let root = SVGBackend::with_string(text, footer.page()).into_drawing_area();
    root.fill(&WHITE)?;
    let (heading, rest) = root.split_vertically(44);
    let (panels, foot) = rest.split_vertically(i32::try_from(AREA.1).unwrap_or(0) - 44 - 30);
    heading.draw(&Text::new(heading_of(&rows[0]), (24, 14), font(19).color(&INK)))?;
    footer.draw(&foot)?;
    let (left, right) = panels.split_horizontally(AREA.0 / 2);
    // A message without bytes has no place on a logarithmic axis.
    let x = |row: &Row| row.size.max(1) as f64;
    let bytes = |row: &Row, ns: f64| x(row) / ns.max(1e-3) * 1e9;
    let probed = || rows.iter().filter_map(|row| Some((row, row.probe_ns?)));
    let vague = || rows.iter().filter(|row| !row.accurate);
    let latency = Panel {
        title: if rows[0].measurement == "pingpong" { "Half round trip" } else { "Time per operation" },
        label: "time",
        measured: rows.iter().map(|row| (x(row), row.median_ns)).collect(),
        bare: probed().map(|(row, ns)| (x(row), ns)).collect(),
        vague: vague().map(|row| (x(row), row.median_ns)).collect(),
        band: rows.iter().map(|row| (x(row), row.min_ns, row.p99_ns)).collect(),
        show: &|ns| short(&time(*ns)),
        legend: SeriesLabelPosition::UpperLeft,
    };
    let same_size = rows[0].probe.is_none_or(crate::names::ProbeKind::moves_the_size);
    let bandwidth = Panel {
        title: "Bandwidth",
        label: "bytes per second",
        measured: rows.iter().map(|row| (x(row), bytes(row, row.median_ns))).collect(),
        // A probe of one line moves a line whatever the size: its bandwidth would be an invention.
        bare: probed().filter(|_| same_size).map(|(row, ns)| (x(row), bytes(row, ns))).collect(),
        vague: vague().map(|row| (x(row), bytes(row, row.median_ns))).collect(),
        band: vec![],
        show: &|value| short(&scaled(*value, "B/s")),
        legend: SeriesLabelPosition::LowerRight,
    };
    panel(&left, &latency, rows)?;
    panel(&right, &bandwidth, rows)?;
    root.present()
}

/// What a run ran on, below a plot.
pub(crate) struct Footer(Vec<String>);

impl Footer {
    /// The text of a footer, in lines that fit.
    pub(crate) fn new(environment: &Environment) -> Self {
        Self(wrapped(&environment.line(), LINE))
    }

    /// Width and height of a page with room for all of it.
    pub(crate) fn page(&self) -> (u32, u32) {
        let more = self.0.len().saturating_sub(1);
        (AREA.0, AREA.1 + LINE_HEIGHT * u32::try_from(more).unwrap_or(0))
    }

    /// Draws it.
    pub(crate) fn draw<'a>(&self, area: &DrawingArea<SVGBackend<'a>, Shift>) -> Result<(), Failed<'a>> {
        let mut below = 6;
        for line in &self.0 {
            area.draw(&Text::new(line.as_str(), (24, below), font(12).color(&INK)))?;
            below += i32::try_from(LINE_HEIGHT).unwrap_or(0);
        }
        Ok(())
    }
}

/// A text in lines of at most so many characters, broken between words and where it is broken
/// already.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in paragraph.split(' ') {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines
}

/// Text of this height, pixels.
pub fn font(size: i32) -> TextStyle<'static> {
    ("sans-serif", size).into_text_style(&AREA)
}

/// Without decimals that are all zero: axes have round numbers.
pub fn short(text: &str) -> String {
    text.replacen(".00 ", " ", 1).replacen(".0 ", " ", 1)
}

fn heading_of(row: &Row) -> String {
    format!(
        "cci perf: {} of {} over {} ({}, {}, {} events)",
        row.measurement, row.operation, row.transport, row.attribute, row.mode, row.completion
    )
}

fn panel<'a>(area: &DrawingArea<SVGBackend<'a>, Shift>, panel: &Panel<'_>, rows: &[Row]) -> Result<(), Failed<'a>> {
    let (across, up) = (span(&abscissas(panel), 1.15), span(&ordinates(panel), 1.8));
    let top = up.end;
    let cut: Vec<_> = cuts(panel).filter(|(_, limit, high)| high > limit).collect();
    // The marks of what is cut stand below the legend, which takes a quarter of the height.
    let room = if cut.is_empty() { 1.0 } else { (top / up.start).powf(0.4) };
    let up = up.start..top * room;
    let mut chart = ChartBuilder::on(area)
        .caption(panel.title, font(16).color(&INK))
        .margin(14)
        .x_label_area_size(46)
        .y_label_area_size(74)
        .build_cartesian_2d(across.log_scale().base(2.0), up.log_scale())?;
    chart
        .configure_mesh()
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .axis_style(INK)
        .label_style(font(13).color(&INK))
        .x_desc("size")
        .y_desc(panel.label)
        .x_labels(8)
        .x_label_formatter(&|size| show_size(round(*size)))
        .y_label_formatter(panel.show)
        .draw()?;
    let band = panel.band.iter().map(|(x, low, _)| (*x, *low));
    let back = cuts(panel).map(|(x, limit, high)| (x, high.min(limit))).collect::<Vec<_>>().into_iter().rev();
    if panel.band.len() > 1 {
        chart
            .draw_series([Polygon::new(band.chain(back).collect::<Vec<_>>(), MEASURED.mix(0.14))])?
            .label("cci, minimum to p99")
            .legend(|(x, y)| Rectangle::new([(x, y - 5), (x + 22, y + 5)], MEASURED.mix(0.14).filled()));
    }
    chart
        .draw_series(LineSeries::new(panel.measured.iter().copied(), MEASURED.stroke_width(2)))?
        .label("cci, median")
        .legend(|(x, y)| PathElement::new([(x, y), (x + 22, y)], MEASURED.stroke_width(2)));
    chart.draw_series(panel.measured.iter().map(|point| Circle::new(*point, 4, MEASURED.filled())))?;
    if !panel.vague.is_empty() {
        chart
            .draw_series(panel.vague.iter().map(|point| Circle::new(*point, 3, WHITE.filled())))?
            .label("cci, not accurate")
            .legend(|(x, y)| Circle::new((x + 11, y), 4, MEASURED.stroke_width(2)));
    }
    if !panel.bare.is_empty() {
        chart
            .draw_series(DashedLineSeries::new(panel.bare.iter().copied(), 6, 4, BARE.stroke_width(2)))?
            .label(probe_label(rows))
            .legend(|(x, y)| PathElement::new([(x, y), (x + 22, y)], BARE.stroke_width(2)));
        chart.draw_series(panel.bare.iter().map(|point| TriangleMarker::new(*point, 5, BARE.filled())))?;
    }
    mark_last(&mut chart, panel)?;
    mark_cut(&mut chart, panel, &cut)?;
    chart
        .configure_series_labels()
        .position(panel.legend.clone())
        .margin(12)
        .background_style(WHITE.filled())
        .border_style(GRID)
        .label_font(font(13).color(&INK))
        .draw()
}

type Chart<'a, 'b> = ChartContext<
    'b,
    SVGBackend<'a>,
    Cartesian2d<plotters::coord::combinators::LogCoord<f64>, plotters::coord::combinators::LogCoord<f64>>,
>;

/// Writes the value of the last point beside it: the figure that one looks for.
fn mark_last<'a>(chart: &mut Chart<'a, '_>, panel: &Panel<'_>) -> Result<(), Failed<'a>> {
    let Some(last) = panel.measured.last() else { return Ok(()) };
    let style = font(12).color(&MEASURED).pos(Pos::new(HPos::Right, VPos::Bottom));
    let label = EmptyElement::at(*last) + Text::new((panel.show)(&last.1), (4, -9), style);
    chart.draw_series([label])?;
    Ok(())
}

/// Marks where the band is cut, and says in the legend how far it would go.
fn mark_cut<'a>(chart: &mut Chart<'a, '_>, panel: &Panel<'_>, cut: &[(f64, f64, f64)]) -> Result<(), Failed<'a>> {
    let Some(highest) = cut.iter().map(|(_, _, high)| *high).reduce(f64::max) else { return Ok(()) };
    let marks = cut.iter().map(|(x, limit, _)| TriangleMarker::new((*x, *limit), 7, MEASURED.filled()));
    chart
        .draw_series(marks)?
        .label(format!("p99 cut here, up to {}", (panel.show)(&highest)))
        .legend(|(x, y)| TriangleMarker::new((x + 11, y), 7, MEASURED.filled()));
    Ok(())
}

fn probe_label(rows: &[Row]) -> String {
    rows[0].probe.map_or_else(String::new, |probe| format!("bare {}, median", probe.name()))
}

fn abscissas(panel: &Panel<'_>) -> Vec<f64> {
    panel.measured.iter().map(|(x, _)| *x).collect()
}

fn ordinates(panel: &Panel<'_>) -> Vec<f64> {
    let lines = panel.measured.iter().chain(&panel.bare).map(|(_, y)| *y);
    let band = panel.band.iter().map(|(_, low, _)| *low).chain(cuts(panel).map(|(_, limit, high)| high.min(limit)));
    lines.chain(band).collect()
}

/// At each size of the band where it is cut, and how far it would reach: blocks that the system
/// disturbed may take a thousand times as long as the others.
fn cuts<'p>(panel: &'p Panel<'_>) -> impl Iterator<Item = (f64, f64, f64)> + 'p {
    panel.band.iter().zip(&panel.measured).map(|((x, _, high), (_, median))| (*x, CUT * median, *high))
}

/// A range around the values, never empty.
fn span(values: &[f64], margin: f64) -> Range<f64> {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min).max(1e-3);
    let high = values.iter().copied().fold(0.0, f64::max).max(low);
    low / margin..high * margin
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a size, positive and below 2^52")]
fn round(size: f64) -> u64 {
    size.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Measurement;
    use crate::row::tests::row;

    fn document(rows: Vec<Row>) -> Document {
        Document::new(Environment::default(), rows, vec![], None)
    }

    #[test]
    fn a_plot_has_both_panels_and_every_point() {
        let rows: Vec<_> = [8, 64, 512, 4096].map(|size| row(Measurement::PingPong, size)).into();
        let svg = svg(&document(rows)).unwrap();
        for text in ["<svg", "Half round trip", "Bandwidth", "bare line", "cci, median"] {
            assert!(svg.contains(text), "{text}");
        }
        assert!(svg.matches("<circle").count() >= 8);
    }

    #[test]
    fn a_band_that_is_cut_is_marked_at_each_size_and_in_the_legend() {
        let mut rows: Vec<_> = [8, 64, 512, 4096].map(|size| row(Measurement::PingPong, size)).into();
        rows.iter_mut().for_each(|row| row.probe_ns = None);
        let triangles = |svg: &str| svg.matches("<polygon").count();
        let whole = svg(&document(rows.clone())).unwrap();
        assert!(!whole.contains("cut here"));
        rows[1].p99_ns = 1e9;
        rows[3].p99_ns = 2e9;
        let cut = svg(&document(rows)).unwrap();
        assert!(cut.contains("p99 cut here, up to 2 s"), "{cut}");
        assert_eq!(triangles(&cut), triangles(&whole) + 3, "one for each size that is cut, one in the legend");
    }

    #[test]
    fn the_footer_stays_on_the_page_and_the_band_near_its_curve() {
        let mut rows: Vec<_> = [8, 4096].map(|size| row(Measurement::PingPong, size)).into();
        rows[0].p99_ns = 1e9;
        let path =
            crate::environment::Path { messages: "word ".repeat(60), rma: "word ".repeat(60), why: "word ".repeat(60) };
        let environment = Environment { path: Some(path), ..Environment::default() };
        let svg = svg(&Document::new(environment, rows, vec![], None)).unwrap();
        let texts = svg.split("<text").skip(1).filter_map(|text| text.split_once("\n")?.1.split_once('<'));
        let widest = texts.map(|(text, _)| text.trim().chars().count()).max().unwrap();
        assert!(widest <= LINE && widest > LINE / 2, "{widest}");
        let height: f64 = svg.split_once("height=\"").unwrap().1.split('"').next().unwrap().parse().unwrap();
        let ordinates = svg.split(" y=\"").skip(1).map(|rest| rest.split('"').next().unwrap().parse::<f64>().unwrap());
        assert!(ordinates.fold(0.0, f64::max) < height, "{svg}");
        // The axis ends near twice the median, and not near a second.
        assert!(!svg.contains("ms\n") && svg.contains("p99 cut here, up to 1 s"), "{svg}");
        assert_eq!(wrapped("a bb ccc\nd", 4), ["a bb", "ccc", "d"]);
    }

    #[test]
    fn points_that_are_not_accurate_are_hollow() {
        let of = |accurate: bool| {
            let rows = [8, 64].map(|size| Row { accurate, ..row(Measurement::PingPong, size) });
            svg(&document(rows.into())).unwrap()
        };
        let (sure, vague) = (of(true), of(false));
        assert!(!sure.contains("not accurate") && vague.contains("cci, not accurate"));
        // Two in each panel, and one in each legend.
        assert_eq!(vague.matches("<circle").count(), sure.matches("<circle").count() + 6);
    }

    #[test]
    fn one_size_alone_and_size_0_can_be_drawn() {
        assert!(svg(&document(vec![row(Measurement::Bandwidth, 0)])).unwrap().contains("<svg"));
    }

    #[test]
    fn nothing_cannot_be_drawn() {
        assert!(svg(&document(vec![])).unwrap_err().0.contains("nothing to draw"));
    }
}
