//! Latency and bandwidth over size, as SVG for screen and print.

use super::grounds::for_both_grounds;
use super::sheet::{Area, Shape, Sheet};
use super::side_by_side::name;
use super::style::labelled;
pub use super::style::{Failed, GRID, INK, font, mesh, short, written};
use super::table::{subject, time, unit};
use crate::UserError;
use crate::finding::Finding;
use crate::row::{Document, Row};
use crate::sizes::show_size;
use plotters::coord::combinators::IntoLogRange;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::ops::Range;

/// Colours that differ in lightness too, for print without colour.
const MEASURED: RGBColor = RGBColor(0, 84, 147);
const BARE: RGBColor = RGBColor(214, 116, 18);

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
const NAMES: u32 = 136;
/// Pixels from a name to the next one.
const NAME_HEIGHT: i32 = 18;

/// The plot of a document for a page of this shape, for a light and for a dark ground.
pub fn svg(document: &Document, shape: Shape) -> Result<String, UserError> {
    drawn(document, &Sheet::new(&document.environment, shape)).map(|svg| for_both_grounds(&svg))
}

/// The plot of a document on a light ground.
fn drawn(document: &Document, sheet: &Sheet<'_>) -> Result<String, UserError> {
    if let ([], [Finding::Logp(found)]) = (&document.rows[..], &document.findings[..]) {
        return super::signature::svg(found, sheet);
    }
    if let ([], [Finding::MemoryCurves(found)]) = (&document.rows[..], &document.findings[..]) {
        return super::memory_curves::svg(found, sheet);
    }
    if let ([], [Finding::Am(found)]) = (&document.rows[..], &document.findings[..]) {
        return super::am::svg(found, sheet);
    }
    if let ([], [Finding::SplitC(found)]) = (&document.rows[..], &document.findings[..]) {
        return super::splitc::svg(found, sheet);
    }
    if let ([], [Finding::Mappings(found)]) = (&document.rows[..], &document.findings[..]) {
        return super::mapping_curves::svg(found, sheet);
    }
    if let ([], [Finding::Portals(found)]) = (&document.rows[..], &document.findings[..]) {
        return super::portals::svg(found, sheet);
    }
    if let ([], [Finding::Mx(found)]) = (&document.rows[..], &document.findings[..]) {
        return super::mx::svg(found, sheet);
    }
    if let ([], [Finding::Sci(found)]) = (&document.rows[..], &document.findings[..]) {
        return super::sci::svg(found, sheet);
    }
    if let ([], [Finding::Mpi(found)]) = (&document.rows[..], &document.findings[..]) {
        return super::mpi_figures::svg(found, sheet);
    }
    if document.rows.is_empty() {
        return Err(UserError::new("there is nothing to draw: no size was measured"));
    }
    written(|text| draw(&document.rows, sheet, text))
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

fn draw<'a>(rows: &[Row], sheet: &Sheet<'_>, text: &'a mut String) -> Result<(), Failed<'a>> {
    let (root, panels) = sheet.panels(text, &subject(&rows[0]), 2)?;
    for (area, drawn) in panels.iter().zip([times(rows), speeds(rows)]) {
        panel(area, &drawn)?;
    }
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

fn panel<'a>(area: &Area<'a>, panel: &Panel) -> Result<(), Failed<'a>> {
    let cut: Vec<_> = cuts(panel).filter(|(_, limit, high)| panel.band.len() > 1 && high > limit).collect();
    let notes = notes(panel, &cut);
    let (across, up) = (span(&abscissas(panel), 1.15), span(&ordinates(panel), 1.8));
    let up = labelled(with_room(up, notes.len(), area.dim_in_pixel().1));
    let mut chart = ChartBuilder::on(area)
        .caption(&panel.title, font(16).color(&INK))
        .margin(14)
        .margin_right(NAMES)
        .x_label_area_size(46)
        .y_label_area_size(66)
        .build_cartesian_2d(across.log_scale().base(2.0), up.log_scale())?;
    mesh(&mut chart.configure_mesh(), 15)
        .x_desc("size, bytes")
        .y_desc(panel.unit.0)
        .x_labels(8)
        .x_label_formatter(&|size| show_size(round(*size)).replace(" B", "").trim_end_matches('B').to_owned())
        .y_labels(6)
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
    let marks = cut.iter().map(|(x, limit, _)| TriangleMarker::new((*x, *limit), 7, MEASURED.filled()));
    chart.draw_series(marks)?;
    draw_names(area, &chart, panel)?;
    for (line, text) in notes.iter().enumerate() {
        let below = 44 + NAME_HEIGHT * i32::try_from(line).unwrap_or(0);
        area.draw(&Text::new(text.as_str(), (92, below), font(14).color(&INK)))?;
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
fn draw_names<'a>(area: &Area<'a>, chart: &Chart<'a, '_>, panel: &Panel) -> Result<(), Failed<'a>> {
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
        let style = font(15).color(&curve.colour).pos(Pos::new(HPos::Left, VPos::Center));
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

/// The range of a logarithmic axis, longer by so many lines of notes above the curves of a panel of
/// this height.
fn with_room(range: Range<f64>, notes: usize, height: u32) -> Range<f64> {
    // Caption, margins, and the axis below.
    const AROUND: f64 = 110.0;
    let lines = f64::from(NAME_HEIGHT) * f64::from(u32::try_from(notes).unwrap_or(0));
    let part = (lines / (f64::from(height) - AROUND)).clamp(0.0, 0.5);
    range.start..range.end * (range.end / range.start).powf(part / (1.0 - part))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a size, positive and below 2^52")]
fn round(size: f64) -> u64 {
    size.round() as u64
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::environment::Environment;
    use crate::names::Measurement;
    use crate::output::grounds::tests::assert_suits_both_grounds;
    use crate::row::tests::row;

    fn document(rows: Vec<Row>) -> Document {
        Document::new(Environment::default(), rows, vec![], None)
    }

    /// The plot of a finding has each of its colours for a light and for a dark ground, and all of
    /// its text on a page of each shape.
    pub(in super::super) fn assert_drawn_for_both_grounds(finding: Finding) {
        let document = Document::new(Environment::default(), vec![], vec![finding], None);
        for shape in [Shape::Wide, Shape::Narrow] {
            let svg = svg(&document, shape).unwrap();
            assert_suits_both_grounds(&svg);
            assert_text_is_on_the_page(&svg);
        }
    }

    /// A character is a little more than half as wide as text is high.
    fn assert_text_is_on_the_page(svg: &str) {
        let document = roxmltree::Document::parse(svg).unwrap();
        let number = |node: &roxmltree::Node<'_, '_>, name| node.attribute(name).unwrap().parse::<f64>().unwrap();
        let page = document.root_element();
        let (width, height) = (number(&page, "width"), number(&page, "height"));
        let is_upright = |node: &roxmltree::Node<'_, '_>| !node.has_attribute("transform");
        for node in document.descendants().filter(|node| node.has_tag_name("text")).filter(is_upright) {
            let words = node.text().unwrap_or("").trim();
            #[expect(clippy::cast_precision_loss, reason = "a line of text")]
            let long = 0.5 * number(&node, "font-size") * words.chars().count() as f64;
            let from: f64 = match node.attribute("text-anchor") {
                Some("middle") => -0.5,
                Some("end") => -1.0,
                _ => 0.0,
            };
            let left = from.mul_add(long, number(&node, "x"));
            assert!(left >= 0.0 && left + long <= width, "{words} from {left} over {long} of {width}");
            assert!(number(&node, "y") < height, "{words}");
        }
    }

    #[test]
    fn a_plot_has_both_panels_and_every_point() {
        let rows: Vec<_> = [8, 64, 512, 4096].map(|size| row(Measurement::PingPong, size)).into();
        let svg = svg(&document(rows), Shape::Wide).unwrap();
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
        let whole = svg(&document(rows.clone()), Shape::Wide).unwrap();
        assert!(!whole.contains("cut here"));
        rows[1].p99_ns = 1e9;
        rows[3].p99_ns = 2e9;
        let cut = svg(&document(rows), Shape::Wide).unwrap();
        assert!(cut.contains("p99 cut here, up to 2 s"), "{cut}");
        assert_eq!(triangles(&cut), triangles(&whole) + 2, "one for each size that is cut");
    }

    #[test]
    fn all_text_stays_on_the_page_and_the_band_near_its_curve() {
        let mut rows: Vec<_> = [8, 4096].map(|size| row(Measurement::PingPong, size)).into();
        rows[0].p99_ns = 1e9;
        let path =
            crate::environment::Path { messages: "word ".repeat(60), rma: "word ".repeat(60), why: "word ".repeat(60) };
        let environment = Environment { path: Some(path), ..Environment::default() };
        let document = Document::new(environment, rows, vec![], None);
        for shape in [Shape::Wide, Shape::Narrow] {
            let svg = svg(&document, shape).unwrap();
            assert_text_is_on_the_page(&svg);
            // The axis ends near the median, and not near a second.
            assert!(!svg.contains(">\nms\n") && svg.contains("p99 cut here, up to 1 s"), "{svg}");
        }
    }

    #[test]
    fn a_narrow_page_has_its_panels_below_each_other() {
        let document = document([8, 4096].map(|size| row(Measurement::PingPong, size)).into());
        let at = |shape, words: &str| {
            let svg = svg(&document, shape).unwrap();
            let all = roxmltree::Document::parse(&svg).unwrap();
            let is_it = |node: &roxmltree::Node<'_, '_>| node.text().is_some_and(|text| text.trim() == words);
            let it = all.descendants().find(|node| node.has_tag_name("text") && is_it(node)).unwrap();
            ["x", "y"].map(|name| it.attribute(name).unwrap().parse::<f64>().unwrap())
        };
        let apart = |shape| {
            let [left, right] = ["Half round trip", "Bandwidth"].map(|title| at(shape, title));
            [right[0] - left[0], right[1] - left[1]].map(|distance| distance > 200.0)
        };
        assert_eq!(apart(Shape::Wide), [true, false]);
        assert_eq!(apart(Shape::Narrow), [false, true]);
    }

    #[test]
    fn points_that_are_not_accurate_are_hollow() {
        let of = |accurate: bool| {
            let rows = [8, 64].map(|size| Row { accurate, ..row(Measurement::PingPong, size) });
            svg(&document(rows.into()), Shape::Wide).unwrap()
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
        let svg = svg(&document(rows), Shape::Wide).unwrap();
        assert!(svg.contains("cci sm 100") && svg.contains("openmpi shm 200"), "{svg}");
        assert_eq!(svg.matches("<circle").count(), 8, "two points of two libraries in two panels");
    }

    #[test]
    fn names_stand_apart_and_on_the_panel() {
        let mut heights = [10, 12, 300, 301, 302];
        apart(&mut heights, 310);
        assert_eq!(heights, [10, 28, 274, 292, 310]);
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
    fn notes_have_room_above_the_curves() {
        assert_eq!(with_room(1.0..10.0, 0, 446), 1.0..10.0);
        // Three lines of 18 pixels, of 336 pixels of an axis.
        let range = with_room(1.0..10.0, 3, 446);
        assert!((1.0 - 10_f64.log10() / range.end.log10() - 54.0 / 336.0).abs() < 1e-9, "{range:?}");
    }

    #[test]
    fn one_size_alone_and_size_0_can_be_drawn() {
        assert!(svg(&document(vec![row(Measurement::Bandwidth, 0)]), Shape::Wide).unwrap().contains("<svg"));
    }

    #[test]
    fn nothing_cannot_be_drawn() {
        assert!(svg(&document(vec![]), Shape::Wide).unwrap_err().0.contains("nothing to draw"));
    }
}
