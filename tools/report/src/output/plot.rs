//! Latency and bandwidth over size, as SVG for screen and print.

use super::grounds::for_both_grounds;
use super::side_by_side::name;
use super::table::{subject, time, unit};
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

/// Colours of other libraries, in the order in which they appear.
const OTHERS: [RGBColor; 6] = [
    RGBColor(40, 132, 72),
    RGBColor(150, 60, 150),
    RGBColor(178, 34, 52),
    RGBColor(98, 98, 98),
    RGBColor(20, 140, 160),
    RGBColor(120, 90, 30),
];

/// How many times its median the band of slow blocks reaches at each size: further, it would dwarf
/// the curve.
pub(crate) const CUT: f64 = 1.5;
/// Pixels beside a panel, where its curves are named.
const NAMES: u32 = 118;
/// Pixels from a name to the next one.
const NAME_HEIGHT: i32 = 16;

/// Characters of a line of the footer: so many fit in its width at 12 pixels.
const LINE: usize = 165;
/// Height of a line of the footer.
const LINE_HEIGHT: u32 = 16;

/// Why a plot could not be drawn.
pub type Failed<'a> = DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>;

/// The plot of a document, for a light and for a dark ground.
pub fn svg(document: &Document) -> Result<String, UserError> {
    drawn(document).map(|svg| for_both_grounds(&svg))
}

/// The plot of a document on a light ground.
fn drawn(document: &Document) -> Result<String, UserError> {
    if let ([], [Finding::Logp(found)]) = (&document.rows[..], &document.findings[..]) {
        return super::signature::svg(found, &document.environment);
    }
    if let ([], [Finding::MemoryCurves(found)]) = (&document.rows[..], &document.findings[..]) {
        return super::memory_curves::svg(found, &document.environment);
    }
    if let ([], [Finding::Am(found)]) = (&document.rows[..], &document.findings[..]) {
        return super::am::svg(found, &document.environment);
    }
    if let ([], [Finding::SplitC(found)]) = (&document.rows[..], &document.findings[..]) {
        return super::splitc::svg(found, &document.environment);
    }
    if let ([], [Finding::Mappings(found)]) = (&document.rows[..], &document.findings[..]) {
        return super::mapping_curves::svg(found, &document.environment);
    }
    if let ([], [Finding::Portals(found)]) = (&document.rows[..], &document.findings[..]) {
        return super::portals::svg(found, &document.environment);
    }
    if let ([], [Finding::Mx(found)]) = (&document.rows[..], &document.findings[..]) {
        return super::mx::svg(found, &document.environment);
    }
    if let ([], [Finding::Sci(found)]) = (&document.rows[..], &document.findings[..]) {
        return super::sci::svg(found, &document.environment);
    }
    if let ([], [Finding::Mpi(found)]) = (&document.rows[..], &document.findings[..]) {
        return super::mpi_figures::svg(found, &document.environment);
    }
    if document.rows.is_empty() {
        return Err(UserError::new("there is nothing to draw: no size was measured"));
    }
    let mut text = String::new();
    draw(document, &mut text).map_err(while_doing("cannot draw the plot"))?;
    Ok(text)
}

/// A curve, and the name that stands at its end.
struct Curve {
    name: String,
    colour: RGBColor,
    points: Vec<(f64, f64)>,
    /// Those that are not accurate.
    vague: Vec<(f64, f64)>,
    is_bare: bool,
}

/// One panel: what its curves show, and how its axis is labelled.
struct Panel {
    title: String,
    /// The unit of the axis, and how many of the smallest one it is.
    unit: (&'static str, f64),
    curves: Vec<Curve>,
    /// From the fastest to the slowest block but one in a hundred, around the first curve; only
    /// where it says something.
    band: Vec<(f64, f64, f64)>,
}

#[expect(clippy::cast_precision_loss, reason = "sizes below 2^52")]
fn abscissa(row: &Row) -> f64 {
    // A message without bytes has no place on a logarithmic axis.
    row.size.max(1) as f64
}

/// Where something is drawn.
pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// An empty page with a heading and the footer of a run: the page, to be presented when it is full,
/// and the place between the two.
pub(super) fn page<'a>(
    text: &'a mut String,
    heading: &str,
    environment: &Environment,
) -> Result<(Area<'a>, Area<'a>), Failed<'a>> {
    let footer = Footer::new(environment);
    let root = SVGBackend::with_string(text, footer.page()).into_drawing_area();
    root.fill(&WHITE)?;
    let (above, rest) = root.split_vertically(44);
    let (panels, foot) = rest.split_vertically(i32::try_from(AREA.1).unwrap_or(0) - 44 - 30);
    above.draw(&Text::new(heading, (24, 14), font(19).color(&INK)))?;
    footer.draw(&foot)?;
    Ok((root, panels))
}

fn draw<'a>(document: &Document, text: &'a mut String) -> Result<(), Failed<'a>> {
    let rows = &document.rows;
    let (root, panels) = page(text, &subject(&rows[0]), &document.environment)?;
    let (left, right) = panels.split_horizontally(AREA.0 / 2);
    panel(&left, &times(rows))?;
    panel(&right, &speeds(rows))?;
    root.present()
}

fn times(rows: &[Row]) -> Panel {
    let curves = curves(rows, true, &|_, ns| ns);
    let own = rows.iter().filter(|row| name(row) == name(&rows[0]));
    let title = unit(&rows[0]);
    let first = title.chars().next().into_iter().flat_map(char::to_uppercase);
    Panel {
        title: first.chain(title.chars().skip(1)).collect(),
        unit: unit_of(&curves, &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)]),
        band: own.map(|row| (abscissa(row), row.min_ns, row.p99_ns)).collect(),
        curves,
    }
}

fn speeds(rows: &[Row]) -> Panel {
    // A probe of one line moves a line whatever the size: its bandwidth would be an invention.
    let same_size = rows[0].probe.is_none_or(crate::names::ProbeKind::moves_the_size);
    let curves = curves(rows, same_size, &|row, ns| abscissa(row) / ns.max(1e-3) * 1e9);
    let unit = unit_of(&curves, &[("B/s", 1.0), ("kB/s", 1e3), ("MB/s", 1e6), ("GB/s", 1e9)]);
    Panel { title: "Bandwidth".into(), unit, band: vec![], curves }
}

/// The curve of each library, CCI's first, and of the bare machine.
fn curves(rows: &[Row], with_bare: bool, value: &dyn Fn(&Row, f64) -> f64) -> Vec<Curve> {
    let mut names: Vec<String> = Vec::new();
    for row in rows {
        if !names.contains(&name(row)) {
            names.push(name(row));
        }
    }
    let others = OTHERS.into_iter().cycle();
    let colours = std::iter::once(MEASURED).chain(others);
    let mut all: Vec<Curve> = Vec::new();
    for (name_of_curve, colour) in names.iter().zip(colours) {
        let own = || rows.iter().filter(|row| name(row) == *name_of_curve);
        let point = |row: &Row| (abscissa(row), value(row, row.median_ns));
        all.push(Curve {
            name: name_of_curve.clone(),
            colour,
            points: own().map(point).collect(),
            vague: own().filter(|row| !row.accurate).map(point).collect(),
            is_bare: false,
        });
    }
    let own = rows.iter().filter(|row| with_bare && name(row) == names[0]);
    let points: Vec<_> = own.filter_map(|row| Some((abscissa(row), value(row, row.probe_ns?)))).collect();
    if let Some(probe) = rows[0].probe.filter(|_| !points.is_empty()) {
        all.push(Curve { name: format!("bare {}", probe.name()), colour: BARE, points, vague: vec![], is_bare: true });
    }
    all
}

/// The unit in which the largest value has at most four digits before its point.
fn unit_of(curves: &[Curve], units: &[(&'static str, f64)]) -> (&'static str, f64) {
    let most = curves.iter().flat_map(|curve| &curve.points).map(|(_, y)| *y).fold(0.0, f64::max);
    let fits = |unit: &&(&'static str, f64)| most / unit.1 < 1e4;
    units.iter().find(fits).or(units.last()).copied().unwrap_or(("", 1.0))
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

/// A value in the unit of its axis, without decimals that say nothing.
fn number(value: f64) -> String {
    let decimals = match value {
        value if value >= 10.0 => 0,
        value if value >= 1.0 => 1,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn panel<'a>(area: &DrawingArea<SVGBackend<'a>, Shift>, panel: &Panel) -> Result<(), Failed<'a>> {
    let (across, up) = (span(&abscissas(panel), 1.15), span(&ordinates(panel), 1.8));
    let mut chart = ChartBuilder::on(area)
        .caption(&panel.title, font(16).color(&INK))
        .margin(14)
        .margin_right(NAMES)
        .x_label_area_size(46)
        .y_label_area_size(66)
        .build_cartesian_2d(across.log_scale().base(2.0), up.log_scale())?;
    chart
        .configure_mesh()
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .axis_style(INK)
        .label_style(font(13).color(&INK))
        .x_desc("size, bytes")
        .y_desc(panel.unit.0)
        .x_labels(8)
        .x_label_formatter(&|size| show_size(round(*size)).replace(" B", "").trim_end_matches('B').to_owned())
        .y_label_formatter(&|value| number(value / panel.unit.1))
        .draw()?;
    if panel.band.len() > 1 {
        let band = panel.band.iter().map(|(x, low, _)| (*x, *low));
        let back = cuts(panel).map(|(x, limit, high)| (x, high.min(limit))).collect::<Vec<_>>().into_iter().rev();
        chart.draw_series([Polygon::new(band.chain(back).collect::<Vec<_>>(), MEASURED.mix(0.14))])?;
    }
    // CCI's own curve is drawn last, above the others.
    for curve in panel.curves.iter().rev() {
        draw_curve(&mut chart, curve)?;
    }
    let cut: Vec<_> = cuts(panel).filter(|(_, limit, high)| panel.band.len() > 1 && high > limit).collect();
    let marks = cut.iter().map(|(x, limit, _)| TriangleMarker::new((*x, *limit), 7, MEASURED.filled()));
    chart.draw_series(marks)?;
    draw_names(area, &chart, panel)?;
    for (line, text) in notes(panel, &cut).iter().enumerate() {
        let below = 44 + NAME_HEIGHT * i32::try_from(line).unwrap_or(0);
        area.draw(&Text::new(text.as_str(), (92, below), font(12).color(&INK)))?;
    }
    Ok(())
}

type Chart<'a, 'b> = ChartContext<
    'b,
    SVGBackend<'a>,
    Cartesian2d<plotters::coord::combinators::LogCoord<f64>, plotters::coord::combinators::LogCoord<f64>>,
>;

fn draw_curve<'a>(chart: &mut Chart<'a, '_>, curve: &Curve) -> Result<(), Failed<'a>> {
    let (points, line) = (curve.points.iter().copied(), curve.colour.stroke_width(2));
    if curve.is_bare {
        chart.draw_series(DashedLineSeries::new(points, 6, 4, line))?;
        chart.draw_series(curve.points.iter().map(|point| TriangleMarker::new(*point, 5, curve.colour.filled())))?;
    } else {
        chart.draw_series(LineSeries::new(points, line))?;
        chart.draw_series(curve.points.iter().map(|point| Circle::new(*point, 4, curve.colour.filled())))?;
    }
    chart.draw_series(curve.vague.iter().map(|point| Circle::new(*point, 3, WHITE.filled())))?;
    Ok(())
}

/// Writes the name and the last value of each curve beside its end, apart from each other.
fn draw_names<'a>(
    area: &DrawingArea<SVGBackend<'a>, Shift>,
    chart: &Chart<'a, '_>,
    panel: &Panel,
) -> Result<(), Failed<'a>> {
    let (across, up) = area.get_pixel_range();
    let mut names: Vec<_> = panel
        .curves
        .iter()
        .filter_map(|curve| {
            let last = curve.points.last()?;
            let (x, y) = chart.backend_coord(last);
            Some((y - up.start, x - across.start, curve, number(last.1 / panel.unit.1)))
        })
        .collect();
    names.sort_by_key(|(y, ..)| *y);
    let mut heights: Vec<i32> = names.iter().map(|(y, ..)| *y).collect();
    apart(&mut heights, up.end - up.start - 60);
    for ((_, x, curve, value), y) in names.iter().zip(heights) {
        let style = font(13).color(&curve.colour).pos(Pos::new(HPos::Left, VPos::Center));
        area.draw(&Text::new(format!("{} {value}", curve.name), (x + 9, y), style))?;
    }
    Ok(())
}

/// Moves heights apart that are in order: down, and up again from the lowest that is allowed.
fn apart(heights: &mut [i32], lowest: i32) {
    for at in 1..heights.len() {
        heights[at] = heights[at].max(heights[at - 1] + NAME_HEIGHT);
    }
    let mut below = lowest + NAME_HEIGHT;
    for height in heights.iter_mut().rev() {
        *height = (*height).min(below - NAME_HEIGHT);
        below = *height;
    }
}

/// What the marks of a panel mean.
fn notes(panel: &Panel, cut: &[(f64, f64, f64)]) -> Vec<String> {
    let mut lines = Vec::new();
    if panel.band.len() > 1 {
        lines.push("band: fastest block to p99 of blocks".to_owned());
    }
    if let Some(highest) = cut.iter().map(|(_, _, high)| *high).reduce(f64::max) {
        lines.push(format!("triangles: p99 cut here, up to {}", short(&time(highest))));
    }
    if panel.curves.iter().any(|curve| !curve.vague.is_empty()) {
        lines.push("hollow: not accurate".to_owned());
    }
    lines
}

fn abscissas(panel: &Panel) -> Vec<f64> {
    panel.curves.iter().flat_map(|curve| &curve.points).map(|(x, _)| *x).collect()
}

fn ordinates(panel: &Panel) -> Vec<f64> {
    let lines = panel.curves.iter().flat_map(|curve| &curve.points).map(|(_, y)| *y);
    let band = panel.band.iter().map(|(_, low, _)| *low).chain(cuts(panel).map(|(_, limit, high)| high.min(limit)));
    lines.chain(band).collect()
}

/// At each size of the band where it is cut, and how far it would reach: blocks that the system
/// disturbed may take a thousand times as long as the others.
fn cuts(panel: &Panel) -> impl Iterator<Item = (f64, f64, f64)> + '_ {
    let medians = panel.curves.first().into_iter().flat_map(|curve| &curve.points);
    panel.band.iter().zip(medians).map(|((x, _, high), (_, median))| (*x, CUT * median, *high))
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
pub(super) mod tests {
    use super::*;
    use crate::names::Measurement;
    use crate::output::grounds::tests::assert_suits_both_grounds;
    use crate::row::tests::row;

    fn document(rows: Vec<Row>) -> Document {
        Document::new(Environment::default(), rows, vec![], None)
    }

    /// The plot of a finding has each of its colours for a light and for a dark ground.
    pub(in super::super) fn assert_drawn_for_both_grounds(finding: Finding) {
        let document = Document::new(Environment::default(), vec![], vec![finding], None);
        assert_suits_both_grounds(&svg(&document).unwrap());
    }

    #[test]
    fn a_plot_has_both_panels_and_every_point() {
        let rows: Vec<_> = [8, 64, 512, 4096].map(|size| row(Measurement::PingPong, size)).into();
        let svg = svg(&document(rows)).unwrap();
        for text in ["<svg", "Half round trip", "Bandwidth", "bare line 80", "cci sm 100", "size, bytes"] {
            assert!(svg.contains(text), "{text}");
        }
        assert!(svg.matches("<circle").count() >= 8);
        assert_suits_both_grounds(&svg);
    }

    #[test]
    fn a_band_that_is_cut_is_marked_at_each_size_and_explained() {
        let mut rows: Vec<_> = [8, 64, 512, 4096].map(|size| row(Measurement::PingPong, size)).into();
        rows.iter_mut().for_each(|row| (row.probe, row.probe_ns) = (None, None));
        let triangles = |svg: &str| svg.matches("<polygon").count();
        let whole = svg(&document(rows.clone())).unwrap();
        assert!(!whole.contains("cut here"));
        rows[1].p99_ns = 1e9;
        rows[3].p99_ns = 2e9;
        let cut = svg(&document(rows)).unwrap();
        assert!(cut.contains("p99 cut here, up to 2 s"), "{cut}");
        assert_eq!(triangles(&cut), triangles(&whole) + 2, "one for each size that is cut");
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
        // The axis ends near the median, and not near a second.
        assert!(!svg.contains(">\nms\n") && svg.contains("p99 cut here, up to 1 s"), "{svg}");
        assert_eq!(wrapped("a bb ccc\nd", 4), ["a bb", "ccc", "d"]);
    }

    #[test]
    fn points_that_are_not_accurate_are_hollow() {
        let of = |accurate: bool| {
            let rows = [8, 64].map(|size| Row { accurate, ..row(Measurement::PingPong, size) });
            svg(&document(rows.into())).unwrap()
        };
        let (sure, vague) = (of(true), of(false));
        assert!(!sure.contains("not accurate") && vague.contains("hollow: not accurate"));
        // Two in each panel.
        assert_eq!(vague.matches("<circle").count(), sure.matches("<circle").count() + 4);
    }

    #[test]
    fn each_library_has_a_curve_of_its_own_with_its_name_at_the_end() {
        let own = |size| Row { accurate: true, ..row(Measurement::PingPong, size) };
        let peer = |size| Row {
            library: "openmpi".into(),
            setting: Some("shm: a setting".into()),
            median_ns: 200.0,
            ..own(size)
        };
        let rows = [8, 64].into_iter().flat_map(|size| [own(size), peer(size)]).collect();
        let svg = svg(&document(rows)).unwrap();
        assert!(svg.contains("cci sm 100") && svg.contains("openmpi shm 200"), "{svg}");
        assert_eq!(svg.matches("<circle").count(), 8, "two points of two libraries in two panels");
    }

    #[test]
    fn names_stand_apart_and_on_the_panel() {
        let mut heights = [10, 12, 300, 301, 302];
        apart(&mut heights, 310);
        assert_eq!(heights, [10, 26, 278, 294, 310]);
    }

    #[test]
    fn an_axis_has_one_unit_for_all_of_its_numbers() {
        let of = |ns: f64| {
            let rows = [8, 64].map(|size| Row { median_ns: ns, ..row(Measurement::PingPong, size) });
            times(&rows).unit.0
        };
        assert_eq!([of(9_000.0), of(10_000.0), of(5e7), of(5e12)], ["ns", "us", "ms", "s"]);
        assert_eq!([number(1234.4), number(3.24), number(2.0), number(0.25)], ["1234", "3.2", "2", "0.25"]);
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
