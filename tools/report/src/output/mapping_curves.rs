//! Plots of mappings: bulk data over size, and short messages over what is swept.

use super::mappings::label;
use super::sheet::{Area, Sheet};
use super::style::{Failed, INK, font, legend, mesh, short, written};
use super::table::{scaled, time};
use crate::UserError;
use crate::finding::{MappingPoint, Mappings};
use crate::sizes::show_size;
use plotters::coord::combinators::IntoLogRange;
use plotters::prelude::*;
use std::ops::Range;

/// Colours of the lines; the first is that of native VI.
const LINES: [RGBColor; 6] = [
    RGBColor(110, 110, 110),
    RGBColor(0, 84, 147),
    RGBColor(214, 116, 18),
    RGBColor(70, 150, 70),
    RGBColor(190, 60, 40),
    RGBColor(120, 80, 160),
];

/// A line: its label and its points.
type Line = (String, Vec<(f64, f64)>);

/// A panel: lines over something.
struct Panel<'p> {
    title: &'p str,
    across: &'p str,
    up: &'p str,
    lines: Vec<Line>,
    show_across: &'p dyn Fn(&f64) -> String,
    show_up: &'p dyn Fn(&f64) -> String,
    legend: SeriesLabelPosition,
}

/// The plot as SVG: the paper's Figure 5; beside it, where credits or the messages after which they
/// go back are swept, short messages over these.
pub(crate) fn svg(found: &Mappings, sheet: &Sheet<'_>) -> Result<String, UserError> {
    written(|text| draw(found, sheet, text))
}

fn draw<'a>(found: &Mappings, sheet: &Sheet<'_>, text: &'a mut String) -> Result<(), Failed<'a>> {
    let title = format!("Active Messages by mapping over {}", found.transport);
    let bulk = Panel {
        title: "Bulk data, 8 requests under way",
        across: "size",
        up: "bytes per second",
        lines: bandwidths(found),
        show_across: &|bytes| show_size(round(*bytes)),
        show_up: &|rate| short(&scaled(*rate, "B/s")),
        legend: SeriesLabelPosition::LowerRight,
    };
    let by_credits = swept(found, |point| point.credits);
    let by_every = swept(found, |point| point.update_every);
    let (name, lines) = if by_credits.is_empty() {
        ("messages after which credits go back", by_every)
    } else {
        ("credits", by_credits)
    };
    let (root, panels) = sheet.panels(text, &title, if lines.is_empty() { 1 } else { 2 })?;
    panel(&panels[0], &bulk)?;
    let sweep = Panel {
        title: "Short messages",
        across: name,
        up: "time of a message",
        lines,
        show_across: &|count| format!("{count:.0}"),
        show_up: &|ns| short(&time(*ns)),
        legend: SeriesLabelPosition::UpperRight,
    };
    panels.get(1).map_or(Ok(()), |area| panel(area, &sweep))?;
    root.present()
}

/// Bulk data: a line for each mapping with its options, native VI first.
#[expect(clippy::cast_precision_loss, reason = "sizes below 2^52")]
fn bandwidths(found: &Mappings) -> Vec<Line> {
    let of = |point: &MappingPoint| {
        let is_its = |name: &String, credits, every| {
            *name == point.name && credits == point.credits && every == point.update_every
        };
        let its = found.bulk.iter().filter(|bulk| is_its(&bulk.name, bulk.credits, bulk.update_every));
        let mut places: Vec<_> = its.map(|bulk| (bulk.bytes as f64, bulk.mb_per_s * 1e6)).collect();
        places.sort_by(|left, right| left.0.total_cmp(&right.0));
        (label(found, &point.name, point.credits, point.update_every), places)
    };
    found.points.iter().map(of).collect()
}

/// Half a round trip, the gap and a store over what is swept; none where a mapping has but one.
fn swept(found: &Mappings, over: impl Fn(&MappingPoint) -> Option<u16>) -> Vec<Line> {
    let mut names: Vec<&str> = found.points.iter().map(|point| point.name.as_str()).collect();
    names.dedup();
    let mut lines = Vec::new();
    for name in names {
        let its: Vec<_> = found
            .points
            .iter()
            .filter(|point| point.name == name)
            .filter_map(|point| Some((over(point)?, point)))
            .collect();
        if its.iter().any(|(at, _)| *at != its[0].0) {
            let mut line = |what: &str, value: &dyn Fn(&MappingPoint) -> Option<f64>| {
                let places = its.iter().filter_map(|(at, point)| Some((f64::from(*at), value(point)?)));
                let mut places: Vec<_> = places.filter(|(_, ns)| *ns > 0.0).collect();
                places.sort_by(|left, right| left.0.total_cmp(&right.0));
                lines.push((format!("{name}: {what}"), places));
            };
            line("half round trip", &|point| Some(point.half_ns));
            line("gap", &|point| Some(point.g_ns));
            line("store", &|point| point.store_ns);
        }
    }
    lines
}

fn panel<'a>(area: &Area<'a>, panel: &Panel<'_>) -> Result<(), Failed<'a>> {
    let places = || panel.lines.iter().flat_map(|(_, places)| places);
    let (across, up) = (span(places().map(|(x, _)| *x), 1.15), span(places().map(|(_, y)| *y), 2.0));
    // Room for the legend above the lines, where it stands there.
    let room = if matches!(panel.legend, SeriesLabelPosition::UpperRight) { 8.0 } else { 1.0 };
    let up = up.start..up.end * room;
    let mut chart = ChartBuilder::on(area)
        .caption(panel.title, font(16).color(&INK))
        .margin(14)
        .x_label_area_size(46)
        .y_label_area_size(80)
        .build_cartesian_2d(across.log_scale().base(2.0), up.log_scale())?;
    mesh(&mut chart.configure_mesh(), 15)
        .x_desc(panel.across)
        .y_desc(panel.up)
        .x_labels(9)
        .x_label_formatter(panel.show_across)
        .y_label_formatter(panel.show_up)
        .draw()?;
    for ((label, places), color) in panel.lines.iter().zip(LINES.iter().cycle()) {
        let color = *color;
        chart
            .draw_series(LineSeries::new(places.iter().copied(), color.stroke_width(2)))?
            .label(label.as_str())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 22, y)], color.stroke_width(2)));
        chart.draw_series(places.iter().map(|place| Circle::new(*place, 3, color.filled())))?;
    }
    legend(&mut chart.configure_series_labels(), panel.legend.clone(), 12)
}

/// A range around the values, never empty.
fn span(values: impl Iterator<Item = f64> + Clone, margin: f64) -> Range<f64> {
    let low = values.clone().fold(f64::INFINITY, f64::min).clamp(1e-3, 1e15);
    let high = values.fold(low, f64::max);
    low / margin..high * margin
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a size, positive and below 2^52")]
fn round(size: f64) -> u64 {
    size.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::BulkPoint;

    fn found(credits: &[u16]) -> Mappings {
        let point = |name: &str, credits| MappingPoint {
            name: name.into(),
            credits,
            half_ns: 500.0,
            g_ns: 300.0,
            store_ns: credits.map(|_| 200.0),
            ..MappingPoint::default()
        };
        let points: Vec<_> =
            std::iter::once(point("via", None)).chain(credits.iter().map(|k| point("v3", Some(*k)))).collect();
        let bulk = |point: &MappingPoint, bytes| BulkPoint {
            name: point.name.clone(),
            credits: point.credits,
            bytes,
            mb_per_s: 1000.0,
            ..BulkPoint::default()
        };
        let bulk = points.iter().flat_map(|point| [64, 1024].map(|bytes| bulk(point, bytes))).collect();
        Mappings { transport: "sm".into(), points, bulk, ..Mappings::default() }
    }

    #[test]
    fn each_mapping_has_a_line_and_a_sweep_a_panel() {
        let one = svg(&found(&[8]), &crate::output::sheet::tests::wide()).unwrap();
        assert!(one.contains("Bulk data") && !one.contains("Short messages"), "{one}");
        let many = svg(&found(&[1, 8, 64]), &crate::output::sheet::tests::wide()).unwrap();
        for words in ["Bulk data", "v3, k 64", "Short messages", "v3: store", "credits"] {
            assert!(many.contains(words), "{words}: {many}");
        }
        crate::output::plot::tests::assert_drawn_for_both_grounds(crate::finding::Finding::Mappings(found(&[
            1, 8, 64,
        ])));
    }

    #[test]
    fn nothing_can_be_drawn() {
        let text = svg(&Mappings::default(), &crate::output::sheet::tests::wide()).unwrap();
        assert!(text.contains("<svg") && !text.contains("NaN"), "{text}");
    }
}
