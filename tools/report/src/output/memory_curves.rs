//! Memory over peers and over connections: tables for the terminal, and the plot.

use super::sheet::{Area, Sheet};
use super::style::{Failed, INK, font, legend, mesh, short, written};
use super::table::{align, bytes, scaled};
use crate::UserError;
use crate::memory_curves::{MemoryCurve, MemoryCurvePoint, MemoryCurves, Over, Space};
use plotters::coord::combinators::{IntoLogRange, LogCoord};
use plotters::prelude::*;
use std::collections::BTreeSet;
use std::ops::Range;

/// The tables, and what is to be known beside them.
pub(super) fn text(found: &MemoryCurves) -> String {
    let tables = found.overs().into_iter().map(|over| table(found, over));
    let notes = found.notes.iter().map(|note| format!("{note}.\n"));
    tables.chain(notes).collect()
}

fn table(found: &MemoryCurves, over: Over) -> String {
    let curves = found.curves(over);
    let counts: BTreeSet<u64> = curves.iter().flat_map(|curve| curve.0).map(|point| point.count).collect();
    let mut cells = vec![std::iter::once(over.name().into()).chain(curves.iter().map(MemoryCurve::label)).collect()];
    for count in counts {
        let at = |curve: &MemoryCurve<'_>| curve.0.iter().find(|point| point.count == count).map_or("-".into(), cell);
        cells.push(std::iter::once(count.to_string()).chain(curves.iter().map(at)).collect());
    }
    cells.push(std::iter::once("for each".into()).chain(curves.iter().map(for_each)).collect());
    let what = match over {
        Over::Peers => "Memory of one end over peers, each with one connection",
        Over::Connections => "Memory of one end over connections to one peer",
    };
    format!("{what} (* computed, not measured)\n{}", align(&cells, &[]))
}

fn cell(point: &MemoryCurvePoint) -> String {
    format!("{}{}", bytes(point.bytes), if point.computed { " *" } else { "" })
}

/// The share of each with the most that were measured, or computed where none were.
#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 peers")]
fn for_each(curve: &MemoryCurve<'_>) -> String {
    let last = curve.measured().last().or(curve.0.last());
    last.map_or_else(String::new, |point| bytes(point.bytes / point.count.max(1) as f64))
}

/// Colours of the curves, by name.
const COLOURS: [RGBColor; 5] =
    [RGBColor(0, 84, 147), RGBColor(20, 120, 70), RGBColor(150, 40, 120), RGBColor(214, 116, 18), RGBColor(95, 95, 95)];

type Chart<'a, 'b> = ChartContext<'b, SVGBackend<'a>, Cartesian2d<LogCoord<f64>, LogCoord<f64>>>;

/// The plot as SVG: a panel over peers, one over connections.
pub(super) fn svg(found: &MemoryCurves, sheet: &Sheet<'_>) -> Result<String, UserError> {
    written(|text| draw(found, sheet, text))
}

fn draw<'a>(found: &MemoryCurves, sheet: &Sheet<'_>, text: &'a mut String) -> Result<(), Failed<'a>> {
    let overs = found.overs();
    let (root, panels) = sheet.panels(text, "cci perf memory: bytes of one end", overs.len().max(1))?;
    for (area, over) in panels.iter().zip(overs) {
        panel(area, found, over)?;
    }
    root.present()
}

/// The names of the curves, which have the same colour in each panel.
fn names(found: &MemoryCurves) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for point in &found.points {
        if !names.contains(&point.curve.as_str()) {
            names.push(&point.curve);
        }
    }
    names
}

fn panel<'a>(area: &Area<'a>, found: &MemoryCurves, over: Over) -> Result<(), Failed<'a>> {
    let curves = found.curves(over);
    let all = || curves.iter().flat_map(|curve| curve.0).map(place).filter(|(_, bytes)| *bytes > 0.0);
    let across = span(all().map(|(count, _)| count), 1.3);
    let up = span(all().map(|(_, bytes)| bytes), 2.0);
    // The legend stands above the curves.
    let up = up.start..up.end * (up.end / up.start).powf(0.4);
    let title = if over == Over::Peers { "Peers, each with one connection" } else { "Connections to one peer" };
    let mut chart = ChartBuilder::on(area)
        .caption(title, font(16).color(&INK))
        .margin(14)
        .x_label_area_size(46)
        .y_label_area_size(74)
        .build_cartesian_2d(across.log_scale(), up.log_scale())?;
    mesh(&mut chart.configure_mesh(), 15)
        .x_desc(over.name())
        .y_desc("bytes")
        .x_label_formatter(&|count| short(&scaled(*count, "")))
        .y_label_formatter(&|bytes| short(&scaled(*bytes, "B")))
        .draw()?;
    let names = names(found);
    for curve in &curves {
        let index = names.iter().position(|name| *name == curve.0[0].curve).unwrap_or(0);
        line(&mut chart, curve, COLOURS[index % COLOURS.len()])?;
    }
    legend(&mut chart.configure_series_labels(), SeriesLabelPosition::UpperLeft, 12)
}

/// A curve: solid with marks where it was measured, dashed beyond. Memory of the kernel has hollow
/// marks and a thin line.
fn line<'a>(chart: &mut Chart<'a, '_>, curve: &MemoryCurve<'_>, colour: RGBColor) -> Result<(), Failed<'a>> {
    let places = |points: &[MemoryCurvePoint]| points.iter().map(place).filter(|(_, bytes)| *bytes > 0.0).collect();
    let (measured, computed): (Vec<_>, Vec<_>) = (places(curve.measured()), places(curve.computed()));
    let is_kernel = curve.0[0].space == Space::Kernel;
    let style = colour.stroke_width(if is_kernel { 1 } else { 2 });
    let mark = if is_kernel { colour.stroke_width(1) } else { colour.filled() };
    chart.draw_series(DashedLineSeries::new(computed, 6, 4, style))?;
    let has_both = !measured.is_empty() && !curve.computed().is_empty();
    // A dash in the legend of what is dashed altogether.
    let length = if measured.is_empty() { 8 } else { 22 };
    chart
        .draw_series(LineSeries::new(measured.iter().copied(), style))?
        .label(curve.label() + if has_both { " (dashed: computed)" } else { "" })
        .legend(move |(x, y)| PathElement::new([(x, y), (x + length, y)], style));
    chart.draw_series(measured.into_iter().map(|point| Circle::new(point, 3, mark)))?;
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 peers")]
fn place(point: &MemoryCurvePoint) -> (f64, f64) {
    (point.count.max(1) as f64, point.bytes)
}

/// A range around the values, never empty.
fn span(values: impl Iterator<Item = f64> + Clone, margin: f64) -> Range<f64> {
    let low = values.clone().fold(f64::INFINITY, f64::min).min(1e15);
    let high = values.fold(low, f64::max);
    low / margin..high * margin
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory_curves::tests::found;

    #[test]
    fn tables_mark_what_was_computed() {
        insta::assert_snapshot!(text(&found()));
    }

    #[test]
    fn the_plot_has_a_panel_for_each_and_names_dashed_lines() {
        let svg = svg(&found(), &crate::output::sheet::tests::wide()).unwrap();
        for text in ["Peers, each", "Connections to one peer", "tcp, user (dashed: computed)", "queue pairs, computed"]
        {
            assert!(svg.contains(text), "{text}");
        }
        crate::output::plot::tests::assert_drawn_for_both_grounds(crate::finding::Finding::MemoryCurves(found()));
        let none = super::svg(&MemoryCurves::default(), &crate::output::sheet::tests::wide()).unwrap();
        assert!(none.contains("<svg") && !none.contains("NaN"), "{none}");
    }
}
