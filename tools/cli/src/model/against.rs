//! Model against measurement, as in figure 13 of the thesis.

use super::answer::SCHEMA;
use super::figure::{Area, FOOT, HEAD, LEGEND, PANEL, colour, legend};
use cci_report::output::grounds::for_both_grounds;
use cci_report::output::plot::{Failed, INK, font, mesh, short, written};
use cci_report::output::table;
use cci_report::{UserError, while_doing};
use plotters::prelude::*;
use serde::Deserialize;
use std::path::Path;

/// A path of which both are known.
#[derive(Clone, Debug, Deserialize)]
struct Validated {
    /// Name of the path.
    path: String,
    /// Links on it.
    hops: f64,
    message_bytes: f64,
    measured_ns: f64,
    predicted_ns: f64,
}

/// What `cci model validate` writes.
#[derive(Deserialize)]
struct Validation {
    schema: String,
    validation: Vec<Validated>,
}

/// The figure of a file: over the size of the message, for each path; and over the number of hops,
/// for each size.
pub(super) fn validation_svg(path: &Path) -> Result<String, UserError> {
    let name = path.display();
    let text = std::fs::read_to_string(path).map_err(while_doing(&format!("cannot read {name}")))?;
    let file: Validation = serde_json::from_str(&text).map_err(|error| {
        UserError(format!("{name} has no validation in it: {error}; give what cci model validate --json wrote"))
    })?;
    if file.schema != SCHEMA {
        let told = format!("{name} has schema {}, and this program reads {SCHEMA}: write it again", file.schema);
        return Err(UserError(told));
    }
    drawing(&file.validation)
}

/// The figure of a document, if it has a validation in it.
pub(super) fn figure_of(document: &serde_json::Value) -> Option<String> {
    let file: Validation = serde_json::from_value(document.clone()).ok()?;
    drawing(&file.validation).ok()
}

fn drawing(validated: &[Validated]) -> Result<String, UserError> {
    let size = |one: &Validated| (one.path.clone(), one.message_bytes);
    let over_size = Against::of(validated, "size of the message", "bytes", size);
    let hops = |one: &Validated| (format!("{} bytes", one.message_bytes), one.hops);
    let over_hops = Against::of(validated, "number of hops", "hops", hops);
    against_svg(&[over_size, over_hops])
}

/// One panel: times over a size, a number of hops or of nodes.
struct Against {
    title: String,
    /// What is across: its unit.
    across: &'static str,
    /// Names, and points: across, measured, predicted, ns.
    lines: Vec<(String, Vec<Point>)>,
}

/// Across, measured, predicted.
type Point = (f64, f64, f64);

impl Against {
    /// A line for each name, over what is across.
    fn of(
        validated: &[Validated],
        title: &str,
        across: &'static str,
        place: impl Fn(&Validated) -> (String, f64),
    ) -> Self {
        let mut lines: Vec<(String, Vec<Point>)> = vec![];
        for one in validated {
            let (name, x) = place(one);
            let point = (x, one.measured_ns, one.predicted_ns);
            match lines.iter_mut().find(|line| line.0 == name) {
                Some(line) => line.1.push(point),
                None => lines.push((name, vec![point])),
            }
        }
        lines.iter_mut().for_each(|(_, points)| points.sort_by(|one, other| one.0.total_cmp(&other.0)));
        Self { title: format!("Latency over {title}"), across, lines }
    }
}

/// Panels side by side: predictions as lines, measurements as circles.
fn against_svg(panels: &[Against]) -> Result<String, UserError> {
    if panels.iter().flat_map(|panel| &panel.lines).all(|(_, points)| points.is_empty()) {
        return Err(UserError::new("there is nothing to draw: no path was measured"));
    }
    Ok(for_both_grounds(&written(|text| draw(panels, text))?))
}

fn draw<'a>(panels: &[Against], text: &'a mut String) -> Result<(), Failed<'a>> {
    let each = PANEL.0 + LEGEND;
    let width = each * u32::try_from(panels.len()).unwrap_or(1);
    let root = SVGBackend::with_string(text, (width, HEAD + PANEL.1 + FOOT)).into_drawing_area();
    root.fill(&WHITE)?;
    let (above, below) = root.split_vertically(HEAD + PANEL.1);
    below.draw(&Text::new("lines: model; circles: measured", (24, 4), font(12).color(&INK)))?;
    for (area, against) in above.split_evenly((1, panels.len())).iter().zip(panels) {
        let (pane, right) = area.split_horizontally(PANEL.0);
        legend(&right, &against.lines.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>())?;
        panel(&pane, against)?;
    }
    root.present()
}

fn panel<'a>(area: &Area<'a>, against: &Against) -> Result<(), Failed<'a>> {
    let points = || against.lines.iter().flat_map(|(_, points)| points);
    let across = span(points().map(|point| point.0));
    let times = span(points().flat_map(|point| [point.1, point.2]));
    let mut chart = ChartBuilder::on(area)
        .caption(&against.title, font(16).color(&INK))
        .margin(14)
        .margin_right(30)
        .x_label_area_size(44)
        .y_label_area_size(70)
        .build_cartesian_2d(across, times)?;
    mesh(&mut chart.configure_mesh(), 13)
        .x_desc(against.across)
        .y_desc("time")
        // There is no half hop, nor half a byte.
        .x_label_formatter(&|value| if value.fract() == 0.0 { value.to_string() } else { String::new() })
        .y_label_formatter(&|time| short(&table::time(*time)))
        .draw()?;
    for (index, (_, points)) in against.lines.iter().enumerate() {
        let style = colour(index).stroke_width(2);
        chart.draw_series(LineSeries::new(points.iter().map(|point| (point.0, point.2)), style))?;
        chart.draw_series(
            points.iter().map(|point| Circle::new((point.0, point.1), 4, colour(index).stroke_width(2))),
        )?;
    }
    Ok(())
}

/// A range around values, never empty.
fn span(values: impl Iterator<Item = f64>) -> std::ops::Range<f64> {
    let (low, high) =
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    let margin = (0.08 * (high - low)).max(0.02 * high.abs()).max(1e-3);
    low - margin..high + margin
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn drawn(document: &serde_json::Value) -> Result<String, UserError> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("validation.json");
        std::fs::write(&path, document.to_string()).unwrap();
        validation_svg(&path)
    }

    fn row(path: &str, hops: u32, bytes: u32) -> serde_json::Value {
        json!({ "path": path, "hops": hops, "message_bytes": bytes, "measured_ns": 4300.0 + f64::from(bytes), "predicted_ns": 4400.0 })
    }

    #[test]
    fn every_measured_point_is_a_circle_in_both_panels() {
        let rows = [row("ring:6", 3, 64), row("ring:6", 3, 256), row("ring:4", 2, 64)];
        let svg = drawn(&json!({ "schema": SCHEMA, "validation": rows })).unwrap();
        assert_eq!(svg.matches("<circle").count(), 6);
        for text in ["ring:6", "ring:4", "256 bytes", "Latency over number of hops"] {
            assert!(svg.contains(text), "{text}");
        }
    }

    #[test]
    fn one_point_can_be_drawn_and_none_cannot() {
        assert!(drawn(&json!({ "schema": SCHEMA, "validation": [row("ring:2", 1, 64)] })).is_ok());
        assert!(drawn(&json!({ "schema": SCHEMA, "validation": [] })).unwrap_err().0.contains("nothing to draw"));
        assert!(drawn(&json!({ "schema": "cci-model/0", "validation": [] })).unwrap_err().0.contains("cci-model/1"));
        assert!(drawn(&json!({ "schema": SCHEMA })).unwrap_err().0.contains("cci model validate --json"));
        assert!(validation_svg(Path::new("/nonexistent.json")).unwrap_err().0.contains("cannot read"));
    }
}
